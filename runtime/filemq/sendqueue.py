"""What a client lacks, the queue of changes to send to it, and listings.

The queue has names of files, each once, with its newest operation, at the place of its newest
change. The order matters if a file becomes a folder or the reverse: of ``/a`` and ``/a/b`` at most
one exists in the end. The deletion of the other came first, so it is sent first.

After RESYNC a client may lack every published file. These files have one place in the queue
(`Lacking`), so a client that is far behind costs little. A later RESYNC moves the rest of an
earlier one to its own place: these files exist, and a creation may always be sent later. For the
same reason, many changes are also stored there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from specwire.generated.filemq import Operation
from specwire.runtime.filemq.catalogue import Catalogue
from specwire.runtime.filemq.names import absolute_name, covers, fault_in_entry, is_folder
from specwire.runtime.filemq.resync import LEFT

MANY_CHANGES = 4096
"""From so many changes on, or from an eighth of all files, creations are moved to `Lacking` too."""


class Lacking:
    """Names of existing files that a client lacks, in order.

    Args:
        names: sorted. They are not copied: clients that lack everything share one sequence.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = names
        self._next = 0
        self._removed: set[str] = set()

    def __len__(self) -> int:
        return len(self._names) - self._next - len(self._removed)

    def __contains__(self, name: str) -> bool:
        at = bisect_left(self._names, name, self._next)
        return at < len(self._names) and self._names[at] == name and name not in self._removed

    def __iter__(self) -> Iterator[str]:
        return (name for name in islice(self._names, self._next, None) if name not in self._removed)

    def discard(self, name: str) -> bool:
        """Remove a name; return False if it is not there."""
        if name not in self:
            return False
        self._removed.add(name)
        return True

    def pop(self) -> str:
        """Remove the first name and return it."""
        while (name := self._names[self._next]) in self._removed:
            self._removed.remove(name)
            self._next += 1
        self._next += 1
        return name


class SendQueue:
    """Changes for one client, oldest first; `files` are all published files."""

    def __init__(self, files: Catalogue) -> None:
        self._files = files
        # Not dicts: repeatedly taking from the front of one is quadratic. A name is in one of the three.
        self._earlier: OrderedDict[str, Operation] = OrderedDict()
        self._lacking = Lacking()
        self._later: OrderedDict[str, Operation] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._earlier or self._lacking or self._later)

    def __len__(self) -> int:
        return self.by_name + len(self._lacking)

    @property
    def by_name(self) -> int:
        """Number of changes that are kept with their operation."""
        return len(self._earlier) + len(self._later)

    def has_creation(self, name: str) -> bool:
        """Return whether a file is still to be sent."""
        return name in self._lacking or Operation.CREATE in (self._earlier.get(name), self._later.get(name))

    def first(self, most: int) -> list[str]:
        """Return the names of the first files, at most `most`."""
        return [*islice(chain(self._earlier, self._lacking, self._later), most)]

    def put(self, name: str, operation: Operation) -> None:
        """Queue the newest operation on `name`, at the end."""
        self.drop(name)
        self._later[name] = operation
        if len(self._later) >= max(MANY_CHANGES, len(self._files) // 8):
            self.put_lacking(sorted(n for n, each in self._later.items() if each is Operation.CREATE))

    def put_first(self, name: str, operation: Operation) -> None:
        """Queue an operation that must come before everything else."""
        self.drop(name)
        self._earlier[name] = operation
        self._earlier.move_to_end(name, last=False)

    def put_lacking(self, names: Sequence[str]) -> None:
        """Queue the creation of existing files after everything else, and of those that were lacking before.

        Args:
            names: sorted. The queue keeps the sequence.
        """
        if not names:
            return
        lacking = Lacking(sorted({*names, *self._lacking}) if self._lacking else names)
        waiting = chain(self._earlier.items(), self._later.items())
        self._earlier = OrderedDict(
            (name, operation)
            for name, operation in waiting
            if operation is Operation.DELETE or name not in lacking  # a deleted file is not created
        )
        self._lacking, self._later = lacking, OrderedDict()

    def pop(self) -> tuple[str, Operation] | None:
        """Remove and return the oldest operation and the name of its file; None if the queue is empty."""
        if self._earlier:
            return self._earlier.popitem(last=False)
        if self._lacking:
            return self._lacking.pop(), Operation.CREATE
        return self._later.popitem(last=False) if self._later else None

    def drop(self, name: str) -> None:
        """Remove a name from the queue, if it is there."""
        if not self._lacking.discard(name):
            self._earlier.pop(name, None)
            self._later.pop(name, None)


class ClientCache:
    """Files that one client holds under one path, from several ICANHAZ.

    Only names are kept: of files that are as published, and of files that are not published at all.
    A name with another digest needs no entry, because its file is sent anyway.

    Attributes:
        stale_octets: octets of the names that are not published.
    """

    def __init__(self, path: str, files: Catalogue) -> None:
        self._path, self._files = path, files
        self._same: set[str] = set()
        self._stale: dict[str, None] = {}
        self.stale_octets = 0

    def add(self, entries: Iterable[tuple[str, str]]) -> None:
        """Add the entries of one ICANHAZ."""
        for cached, digest in entries:
            name = absolute_name(self._path, cached)
            if not covers(self._path, name):
                continue
            entry = self._files.find(name)
            if entry is None:
                self._note_stale(name)
            elif entry.sha1 == digest.upper():
                self._same.add(entry.name)

    def exclude(self, name: str) -> None:
        """Do not send this file: another command requests it."""
        self._same.add(name)

    def stale(self) -> Iterator[str]:
        """Yield the files that the client has and that are certainly not published."""
        files = self._files
        return (name for name in self._stale if files.find(name) is None and not files.is_in_doubt(name))

    def lacking(self) -> Sequence[str]:
        """Return the published files that the client lacks, or has in another version, in order."""
        names = self._files.names(self._path)
        return [name for name in names if name not in self._same] if self._same else names

    def _note_stale(self, name: str) -> None:
        if name not in self._stale and fault_in_entry(name) is None:
            self._stale[name] = None
            self.stale_octets += len(name.encode())


class ListingStep(NamedTuple):
    """A command of the answer to `LIST`: what it names, its offset, and its headers."""

    name: str
    offset: int
    headers: tuple[tuple[str, str], ...]


def list_files(files: Catalogue, path: str, *, folders: bool) -> Iterator[ListingStep]:
    """Yield the commands that list the files under `path`, each in its current version.

    Args:
        folders: list empty folders, too.
    """
    names = files.names(path)
    left = len(names)
    for name in names:
        entry = files.find(name)
        if entry is not None and (folders or not is_folder(name)):
            headers = (("size", str(entry.size)), ("sha-1", entry.sha1), (LEFT, str(left)))
            yield ListingStep(name, entry.size, headers)
        left -= 1
    yield ListingStep(path, 0, ((LEFT, "0"),))
