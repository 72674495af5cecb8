"""What a server publishes: every file by its virtual name, with size and digest.

The engine asks it which files a subscription covers; publications feed it. It lives on the event loop's
thread, and its strings are shared with every client's queue, so a long queue costs references only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec

from specwire.runtime.filemq.names import is_below
from specwire.runtime.filemq.nameset import Order, SortedNames


class Signature(NamedTuple):
    """What tells cheaply whether a file is still the one that was read: its state in the file system."""

    size: int
    mtime_ns: int
    inode: int


class Entry(msgspec.Struct, frozen=True):
    """One published file: `sha1` is the digest in upper-case hexadecimal, as FILEMQ peers print it.

    `fresh` where it was taken so soon after a change that the signature may miss another one, see `Digest`.
    """

    name: str
    size: int
    sha1: str
    signature: Signature
    fresh: bool = True

    def has_content_of(self, other: Entry | None) -> bool:
        """Tell whether a client that holds `other` has this content."""
        return other is not None and other.size == self.size and other.sha1 == self.sha1


class Listing(Protocol):
    """What the engine asks of the files."""

    def __len__(self) -> int:
        """Return how many there are."""

    def find(self, name: str) -> Entry | None:
        """Return the file called `name`."""

    def under(self, path: str) -> Iterator[Entry]:
        """Return the files that a subscription to `path` covers, in order of name."""

    def order(self) -> Order:
        """Return the names of all files as they are now."""

    def is_in_doubt(self, name: str) -> bool:
        """Tell whether a file that is not listed may be there all the same."""


class Catalogue:
    """The files of all publications of one server.

    Attributes:
        doubts: places of which the disk does not say what is there, with the reason.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._names = SortedNames()
        self.doubts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, name: str) -> Entry | None:
        """See `Listing.find`."""
        return self._entries.get(name)

    def under(self, path: str) -> Iterator[Entry]:
        """See `Listing.under`."""
        return (self._entries[name] for name in self.order().under(path))

    def order(self) -> Order:
        """See `Listing.order`."""
        return self._names.order()

    def is_in_doubt(self, name: str) -> bool:
        """See `Listing.is_in_doubt`."""
        return is_below(name, self.doubts)

    def put(self, entry: Entry) -> bool:
        """Take a file in; True where its content is new, False where only its signature changed."""
        old = self._entries.get(entry.name)
        self._entries[entry.name] = entry
        if old is None:
            self._names.add(entry.name)
        return not entry.has_content_of(old)

    def remove(self, name: str) -> bool:
        """Take a file out; False where it was not there."""
        if self._entries.pop(name, None) is None:
            return False
        self._names.remove(name)
        return True

    def digests(self, path: str = "/") -> dict[str, str]:
        """Return the digest of each file that a subscription to `path` covers, by name."""
        return {entry.name: entry.sha1 for entry in self.under(path)}


class PublicationTotals:
    """How many files a publication has, and how large they are together: kept up to date with each change."""

    def __init__(self) -> None:
        self.files = self.octets = 0

    def replace(self, old: Entry | None, new: Entry | None) -> None:
        """The file `old` is now `new`; None for one that is not there."""
        if old is not None:
            self.files -= 1
            self.octets -= old.size
        if new is not None:
            self.files += 1
            self.octets += new.size
