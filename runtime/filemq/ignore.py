"""Ignore patterns: names of files that a server does not publish, or a subscriber does not receive.

Patterns have the syntax of ``.gitignore`` (see the manual page gitignore(5)). They are relative to
the published folder on a server, and to the inbox on a subscriber. The last pattern that matches
decides. As with Git, ``!`` cannot include a file again if one of its folders is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from specwire.runtime.filemq.names import folders_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class IgnoreRule:
    """Decides by name what is ignored. Immutable, so any thread may use it.

    Args:
        patterns: lines of a ``.gitignore``.
        path: virtual path of the folder to which they are relative.

    Attributes:
        patterns: as given.

    Raises:
        ValueError: a pattern is not valid.
    """

    def __init__(self, patterns: Sequence[str], path: str = "/") -> None:
        self.patterns = tuple(patterns)
        self._start = 1 if path == "/" else len(path) + 1
        self._spec = _compile(patterns) if patterns else None

    def ignores_folder(self, name: str) -> bool:
        """Return whether a folder is ignored, if the folders that contain it are not."""
        return self._spec is not None and self._spec.match_file(f"{name[self._start :]}/")

    def ignores_file(self, name: str) -> bool:
        """Return whether a file is ignored, if the folders that contain it are not."""
        return self._spec is not None and self._spec.match_file(name[self._start :])

    def ignores(self, name: str) -> bool:
        """Return whether a file is ignored, by its name or one of its folders."""
        if self._spec is None:
            return False
        folders = (folder for folder in folders_of(name) if len(folder) > self._start)
        return any(map(self.ignores_folder, folders)) or self.ignores_file(name)


NOTHING = IgnoreRule(())


def check_pattern(pattern: str) -> None:
    """Raise ValueError for a pattern that is not valid."""
    _compile([pattern])


def _compile(patterns: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # takes some 30 ms, which only its users need

    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except (ValueError, re.error):
            raise ValueError(f"{pattern!r} is not a pattern as in .gitignore") from None
    return GitIgnoreSpec.from_lines(patterns)
