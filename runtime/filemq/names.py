"""Virtual names of files and subscriptions, and ignore patterns.

FILEMQ v2 names a file by its full virtual path, such as ``/photos/2013/a.jpg``, in a string of at
most 255 octets. The specification says nothing about hostile names, so the rule is ours: a name is
a ``/`` before each of one or more components, none of which is empty, ``.`` or ``..``. Spaces and
any UTF-8 are allowed. A name that breaks the rule is refused and reported. It is never repaired,
because the repaired name could belong to another file.

An empty folder has a name too, with a slash at its end: ``/photos/2014/``.

A subscription is a name too, or ``/`` for everything. It covers the file of that name and every
file below it: ``/foo`` covers ``/foo`` and ``/foo/bar``, but not ``/foobar``.

Ignore patterns (`IgnoreRule`) have the syntax of gitignore(5). They are relative to the published
folder on a server, and to the inbox on a subscriber. The last pattern that matches decides. As with
Git, ``!`` cannot include a file again if one of its folders is ignored.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING

MAX_NAME_OCTETS = 255
"""A string has a length of one octet (FILEMQ v2, rule `size`)."""

LONGEST_NAME_OCTETS = 4095
"""Longest name where lengths have four octets. The longest path of the system is not longer."""

MAX_CACHED_NAME_OCTETS = MAX_NAME_OCTETS - len("=") - 40
"""Room for the name in a cache entry, ``name=digest``, beside the 40 digits of a SHA-1."""

RESERVED = ".specwire-inbox"
"""Folder in which an inbox keeps its unfinished files and its journal. No file may have this name."""

TRASH = "trash"
"""Folder below `RESERVED` for files that an update or a deletion took out of an inbox."""

UNFIT = frozenset({"", ".", "..", RESERVED})
"""No component of a file's name may be one of these."""

MAX_LEAF_OCTETS = 255
"""Octets that file systems allow for one component of a path."""

_CONFLICT = re.compile(r"\.conflict-\d{8}-\d{6}(-\d+)?(\.[^./]*)?$")


def fault_in_name(name: str, longest_octets: int = MAX_NAME_OCTETS) -> str | None:
    """Return why `name` cannot be the name of a file, None if it can."""
    try:
        octets = len(name.encode())
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if not name.startswith("/"):
        return "is not a full virtual path: it does not begin with '/'"
    if octets > longest_octets:
        return f"is {octets} octets long, and {longest_octets} are allowed"
    if "\0" in name:
        return "contains a NUL"
    components = split_name(name)
    if UNFIT.isdisjoint(components):
        return None
    if "" in components:
        return "has an empty component"
    if "." in components or ".." in components:
        return "has a component '.' or '..'"
    return f"is reserved: '{RESERVED}' holds the inbox's own files"


def is_folder(name: str) -> bool:
    """Return whether this is the name of an empty folder."""
    return name.endswith("/")


def fault_in_entry(name: str, longest_octets: int = MAX_NAME_OCTETS) -> str | None:
    """Return why `name` cannot be the name of a file or an empty folder, None if it can."""
    return (
        fault_in_name(name[:-1], longest_octets - 1)
        if is_folder(name)
        else fault_in_name(name, longest_octets)
    )


def fault_in_path(path: str, longest_octets: int = MAX_NAME_OCTETS) -> str | None:
    """Return why nobody can subscribe to `path`, None if one can; see `normalise_path`."""
    return None if path == "/" else fault_in_name(path, longest_octets)


def as_utf8(text: str) -> str:
    """Return `text` with octets that are not UTF-8 escaped.

    File names of the system may contain such octets, documents may not.
    """
    return text.encode(errors="backslashreplace").decode()


def normalise_path(path: str) -> str:
    """Return a subscription's path without a slash at its end."""
    return path[:-1] if path.endswith("/") and path != "/" else path


def covers(path: str, name: str) -> bool:
    """Return whether a subscription to `path` (normalised) includes the file `name`."""
    return path == "/" or name == path or (name.startswith(path) and name[len(path)] == "/")


def folders_of(name: str) -> Iterator[str]:
    """Yield the folders that a file is in, the outermost first, without the root."""
    end = name.find("/", 1)
    while end > 0:
        yield name[:end]
        end = name.find("/", end + 1)


def is_below(name: str, places: Container[str]) -> bool:
    """Return whether `name` is one of these places, or below one."""
    return name in places or "/" in places or any(folder in places for folder in folders_of(name))


def split_name(name: str) -> list[str]:
    """Return the components of a file's name."""
    return name[1:].split("/")


def relative_name(path: str, name: str) -> str:
    """Return the name of a file in a cache of `path`: relative to the path if that is shorter."""
    if name == path:
        return name
    return name[1:] if path == "/" else name[len(path) + 1 :]


def absolute_name(path: str, cached: str) -> str:
    """Return the full virtual path of a name in a cache of `path`."""
    if cached.startswith("/"):
        return cached
    return f"/{cached}" if path == "/" else f"{path}/{cached}"


def cut_reason(reason: str) -> str:
    """Return as much of `reason` as fits the string of an error command, in whole characters."""
    return reason.encode(errors="replace")[:MAX_NAME_OCTETS].decode(errors="ignore")


def is_conflict_copy(name: str) -> bool:
    """Return whether a file has the name of a conflict copy."""
    return _CONFLICT.search(name) is not None


def conflict_name(leaf: str, now: time.struct_time, number: int = 0) -> str:
    """Return ``name.conflict-YYYYmmdd-HHMMSS.ext`` for `leaf`, truncated to what file systems allow."""
    stem, dot, extension = leaf.rpartition(".")
    if not stem or len(extension) > 16:
        stem, dot, extension = leaf, "", ""
    mark = f".conflict-{time.strftime('%Y%m%d-%H%M%S', now)}{f'-{number}' if number else ''}"
    room = MAX_LEAF_OCTETS - len(f"{mark}{dot}{extension}".encode())
    return f"{stem.encode()[:room].decode(errors='ignore')}{mark}{dot}{extension}"


def flat_name(name: str) -> str:
    """Return the name in the trash of the file with this virtual name: one component."""
    flat = name[1:].replace("%", "%25").replace("/", "%2F")
    octets = flat.encode()
    if len(octets) <= MAX_LEAF_OCTETS:
        return flat
    digest = hashlib.sha1(octets, usedforsecurity=False).hexdigest()
    return f"{digest}-{octets[-(MAX_LEAF_OCTETS - 41) :].decode(errors='ignore')}"


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
