"""Files that a server publishes, by virtual name, with the changes and requests that concern them.

The engine asks the catalogue which files a subscription covers. The catalogue lives on the event
loop. Its strings are shared with every client's queue, so a long queue costs references only. All
clients that ask while no file comes or goes share one tuple of names.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from specwire.runtime.filemq.names import is_below, is_folder


class Signature(NamedTuple):
    """Part of a file's state in the file system that changes when its content does."""

    size: int
    mtime_ns: int
    inode: int


class Entry(msgspec.Struct, frozen=True):
    """One published file, or empty folder; see `names`.

    Attributes:
        sha1: digest in upper-case hexadecimal, as FILEMQ peers print it.
        fresh, touched_ns: as in `Digest`: the digest was taken so soon after a change that the
            signature may miss another one; ctime.
        mode: permission bits (0o777), None if they are not known.
    """

    name: str
    size: int
    sha1: str
    signature: Signature
    fresh: bool = True
    mode: int | None = None
    touched_ns: int = 0

    @property
    def mtime_ns(self) -> int:
        """Modification time in nanoseconds since 1970."""
        return self.signature.mtime_ns

    def has_content_of(self, other: Entry | None) -> bool:
        """Return whether a client that holds `other` has this content."""
        return other is not None and other.size == self.size and other.sha1 == self.sha1


class Put(msgspec.Struct, frozen=True):
    """A file exists. Its content may be unchanged."""

    entry: Entry


class Gone(msgspec.Struct, frozen=True):
    """A file does not exist any more."""

    name: str


class Unfit(msgspec.Struct, frozen=True):
    """A file that cannot be published."""

    name: str
    reason: str


class Doubt(msgspec.Struct, frozen=True):
    """A place that cannot be read now. Its last known state stays. Logged only if there is a reason."""

    name: str
    reason: str


class Trust(msgspec.Struct, frozen=True):
    """A place that was in doubt can be read again."""

    name: str


Change = Put | Gone | Unfit | Doubt | Trust


class Catalogue:
    """The files of all publications of one server.

    Attributes:
        doubts: places that cannot be read now, with the reason.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._sorted: list[str] = []
        self._names: tuple[str, ...] | None = ()
        self.doubts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, name: str) -> Entry | None:
        """Return the file called `name`."""
        return self._entries.get(name)

    def under(self, path: str) -> Iterator[Entry]:
        """Return the files that a subscription to `path` covers, in order of name."""
        return (self._entries[name] for name in self.names(path))

    def names(self, path: str = "/") -> Sequence[str]:
        """Return the names that a subscription to `path` covers at this moment, in order."""
        if path == "/":
            if self._names is None:
                self._names = tuple(self._sorted)
            return self._names
        own = [path] if path in self._entries else []
        start = bisect_left(self._sorted, f"{path}/")
        end = bisect_left(self._sorted, f"{path}0", start)  # the digit 0 follows the slash in Unicode
        return own + self._sorted[start:end]

    def is_in_doubt(self, name: str) -> bool:
        """Return whether a file may exist although it is not listed."""
        return is_below(name, self.doubts)

    def put(self, entry: Entry) -> bool:
        """Add or replace a file; return whether its content is new."""
        old = self._entries.get(entry.name)
        self._entries[entry.name] = entry
        if old is None:
            insort(self._sorted, entry.name)
            self._names = None
        return not entry.has_content_of(old)

    def remove(self, name: str) -> bool:
        """Remove a file; return False if it was not listed."""
        if self._entries.pop(name, None) is None:
            return False
        del self._sorted[bisect_left(self._sorted, name)]
        self._names = None
        return True

    def digests(self, path: str = "/") -> dict[str, str]:
        """Return the digest of each file that a subscription to `path` covers, by name."""
        return {entry.name: entry.sha1 for entry in self.under(path)}


class PublicationTotals:
    """Number and total size of the files of a publication, without empty folders."""

    def __init__(self) -> None:
        self.files = self.octets = 0

    def replace(self, old: Entry | None, new: Entry | None) -> None:
        """Count `new` in place of `old`; None for no file."""
        if old is not None and not is_folder(old.name):
            self.files -= 1
            self.octets -= old.size
        if new is not None and not is_folder(new.name):
            self.files += 1
            self.octets += new.size


class ReadChunk(msgspec.Struct, frozen=True):
    """Request: read `size` octets at `offset` of a file.

    Answered with exactly so many octets, or None if the file has changed.
    """

    entry: Entry
    offset: int
    size: int


class CheckPart(msgspec.Struct, frozen=True):
    """Request: compute the SHA-1 of the first `size` octets of a file.

    Answered with upper-case hexadecimal, or None if the file has changed.
    """

    entry: Entry
    size: int
