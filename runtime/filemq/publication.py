"""A folder published at a virtual path: which files it holds, and what changed.

A publication is looked at by one thread at a time. `scan` compares the whole folder with what was known;
`examine` looks only at the places that a notification named. Both return changes, deletions first, so that a
file that became a folder leaves before the files in it come. A file that is being written while it is read is
passed over: its writer causes the next notification.

A name that does not fit the protocol (more than 255 octets, not UTF-8) is reported once and not published, and so
is what is no regular file: symbolic links are not followed, and named pipes not read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from specwire.runtime.filemq.catalogue import Entry
from specwire.runtime.filemq.containment import (
    ContainmentError,
    kind_of,
    open_file,
    open_folder,
    open_root,
    walk_files,
)
from specwire.runtime.filemq.digests import Digest, UnstableError, digest_file
from specwire.runtime.filemq.names import (
    MAX_NAME_OCTETS,
    covers,
    fault_in_name,
    fault_in_path,
    normalise_path,
)

MANY_PLACES = 1000
"""From so many notifications on, one walk through the folder costs less."""


class Put(msgspec.Struct, frozen=True):
    """A file is there; its content may be as before."""

    entry: Entry


class Gone(msgspec.Struct, frozen=True):
    """A file is not there any more."""

    name: str


class Unfit(msgspec.Struct, frozen=True):
    """A file that cannot be published."""

    name: str
    reason: str


Change = Put | Gone | Unfit


class Publication:
    """One published folder.

    Args:
        folder: the folder; it must exist when `open` is called.
        path: its virtual path, ``/`` for the root.

    Raises:
        ValueError: `path` is not a virtual path.
    """

    def __init__(self, folder: Path, path: str = "/") -> None:
        self.folder = folder
        self.path = normalise_path(path)
        fault = fault_in_path(self.path)
        self._longest_octets = MAX_NAME_OCTETS
        if fault is not None:
            raise ValueError(f"{path!r} {fault}")
        self._prefix = "/" if self.path == "/" else f"{self.path}/"
        self._root = -1
        self._known: dict[str, Digest] = {}
        self._unfit: set[str] = set()

    def open(self, *, longest_octets: int = MAX_NAME_OCTETS) -> None:
        """Open the folder, for names of so many octets; raises OSError where it is missing or is none."""
        self._longest_octets = longest_octets
        self.folder = self.folder.resolve()  # notifications name places by it, wherever the process goes
        self._root = open_root(self.folder)

    def close(self) -> None:
        """Close the folder."""
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def overlaps(self, other: Publication) -> bool:
        """Tell whether two publications could name the same file."""
        return covers(self.path, other.path) or covers(other.path, self.path)

    def open_entry(self, name: str) -> int:
        """Return a descriptor of a published file, from any thread; raises OSError or ContainmentError."""
        return open_file(self._root, self._inner_name(name))

    def scan(self) -> list[Change]:
        """Compare the whole folder with what is known."""
        seen: set[str] = set()
        found = [*self._look_at(walk_files(self._root, self._prefix, self._longest_octets), seen)]
        return [*self._forget(name for name in self._known.keys() - seen), *found]

    def examine(self, places: Iterable[str]) -> list[Change]:
        """Look at files and folders, given as paths in the file system that begin with the folder's own."""
        names = sorted({self._virtual_name(place) for place in places})
        if len(names) > MANY_PLACES or self._prefix in names:
            return self.scan()
        gone: list[Change] = []
        found: list[Change] = []
        for name in names:
            here = [*self._list_place(name)]
            found += self._look_at(here, set())
            files = [inner for inner, state in here if stat.S_ISREG(state.st_mode)]
            if not files:
                gone += self._forget(self._known_under(name))
            elif files[0] != name:
                gone += self._forget([name])  # a folder now
        return [*gone, *found]

    def examine_name(self, name: str) -> list[Change]:
        """Look at one file, by its virtual name."""
        return self.examine([str(self.folder / self._inner_name(name)[1:])])

    def _inner_name(self, name: str) -> str:
        return name if self.path == "/" else name[len(self.path) :]

    def _virtual_name(self, place: str) -> str:
        inner = os.path.relpath(place, self.folder)
        return self._prefix if inner == "." else self._prefix + inner

    def _known_under(self, name: str) -> list[str]:
        return [name] if name in self._known else [known for known in self._known if covers(name, known)]

    def _list_place(self, name: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield what is at `name` or below it now; see `walk_files`."""
        *folders, leaf = self._inner_name(name)[1:].split("/")
        try:
            parent = open_folder(self._root, folders)
        except (OSError, ContainmentError):
            return
        try:
            state = os.stat(leaf, dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISDIR(state.st_mode):
                yield name, state
            else:
                inner = open_folder(parent, [leaf])
                try:
                    yield from walk_files(inner, f"{name}/", self._longest_octets)
                finally:
                    os.close(inner)
        except (OSError, ContainmentError):
            return
        finally:
            os.close(parent)

    def _look_at(self, files: Iterable[tuple[str, os.stat_result]], seen: set[str]) -> Iterator[Change]:
        for name, state in files:
            fault = fault_in_name(name, self._longest_octets)
            if fault is None and not stat.S_ISREG(state.st_mode):
                fault = f"is {kind_of(state)}, and not published"
            if fault is not None:
                if name not in self._unfit:
                    self._unfit.add(name)
                    yield Unfit(name, fault)
                continue
            seen.add(name)
            known = self._known.get(name)
            if known is None or not known.still_holds(state):
                yield from self._read(name)

    def _read(self, name: str) -> Iterator[Change]:
        try:
            descriptor = self.open_entry(name)
        except FileNotFoundError:
            yield from self._forget([name])
            return
        except (OSError, ContainmentError) as error:
            yield Unfit(name, f"cannot be read: {error}")
            return
        try:
            digest = digest_file(descriptor)
        except (OSError, UnstableError):
            return
        finally:
            os.close(descriptor)
        self._known[name] = digest
        yield Put(Entry(name, digest.signature.size, digest.sha1, digest.signature, digest.fresh))

    def _forget(self, names: Iterable[str]) -> list[Change]:
        return [Gone(name) for name in sorted(names) if self._known.pop(name, None) is not None]
