"""How long a capture is kept and how large it may become; what is older, or too much, is deleted, the oldest first.

A segment's age is that of its file: when it was written, or, of a compacted one, when the last that it holds was. Only
files that are called as taps call theirs are deleted, and what a writer that died has left behind. A reader that is at
work meanwhile may miss a file that it has listed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from specwire.runtime.capture.names import is_visible, read_name

LEFT_OVER_S = 3600.0
"""After so long without a change a file that is being written is what a writer that died has left."""


class Retention(msgspec.Struct, frozen=True):
    """What of a folder is kept; None bounds nothing.

    Attributes:
        keep_s: segments older than this go, in seconds.
        max_octets: all segments together; the oldest go.
    """

    keep_s: float | None = None
    max_octets: int | None = None


FOREVER = Retention()


class Aged(msgspec.Struct, frozen=True):
    """A file of a capture; `changed_s` is in seconds since 1970."""

    path: Path
    octets: int
    changed_s: float


class Pruned(msgspec.Struct, frozen=True):
    """What is deleted, or would be: segments, and what was left by writers that died; and how much stays."""

    segments: tuple[Aged, ...]
    left_over: tuple[Aged, ...]
    kept: int
    kept_octets: int

    @property
    def octets(self) -> int:
        """Octets of all that is deleted."""
        return sum(file.octets for file in (*self.segments, *self.left_over))


def choose_old(files: Iterable[Aged], retention: Retention, now_s: float) -> list[Aged]:
    """Return the files that are too old, or too much, the oldest first; `now_s` is in seconds since 1970."""
    ordered = sorted(files, key=lambda file: (file.changed_s, file.path.name))
    total = sum(file.octets for file in ordered)
    chosen: list[Aged] = []
    for file in ordered:
        too_old = retention.keep_s is not None and now_s - file.changed_s > retention.keep_s
        too_much = retention.max_octets is not None and total > retention.max_octets
        if not (too_old or too_much):
            break
        chosen.append(file)
        total -= file.octets
    return chosen


def prune(folder: Path, retention: Retention, now_s: float, *, pretend: bool = False) -> Pruned:
    """Delete what is not to be kept of a folder, and return what that was; with `pretend` nothing is deleted.

    Raises OSError where the folder or a file in it cannot be looked at or deleted; what has gone meanwhile is fine.
    """
    segments: list[Aged] = []
    left_over: list[Aged] = []
    for file in _look_around(folder):
        if is_visible(file.path.name):
            segments.append(file)
        elif now_s - file.changed_s > LEFT_OVER_S:
            left_over.append(file)
    chosen = choose_old(segments, retention, now_s)
    for file in () if pretend else (*chosen, *left_over):
        file.path.unlink(missing_ok=True)
    octets = sum(file.octets for file in segments) - sum(file.octets for file in chosen)
    return Pruned(tuple(chosen), tuple(left_over), len(segments) - len(chosen), octets)


def _look_around(folder: Path) -> list[Aged]:
    """The files that taps have written to a folder, or are writing."""
    found: list[Aged] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            hidden = entry.name.startswith(".") and entry.name.endswith(".tmp")
            name = read_name(entry.name[1:].removesuffix(".tmp") if hidden else entry.name)
            if name is None or not name.is_a_taps:
                continue
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    state = entry.stat(follow_symlinks=False)
                    found.append(Aged(Path(entry.path), state.st_size, state.st_mtime))
    return found
