"""A folder published at a virtual path: which files it holds, and what changed.

A publication is looked at by one thread at a time. `scan` compares the whole folder with what was known;
`examine` looks only at the places that a notification named. Both return changes, deletions first, so that a
file that became a folder leaves before the files in it come. A file that is being written while it is read is
passed over: its writer causes the next notification.

A folder that has vanished as a whole is rather a disk that is not mounted, or a mistake, than the deletion of
everything in it. So where the folder cannot be opened, or another one with nothing in it is in its place, that is
reported once, and everything stays listed. When it is there again, the same or another with something in it, it
is compared with what is known, and what is not in it is gone. (Who empties the folder itself deletes its files.)

A name that does not fit the protocol (more than 255 octets, not UTF-8) is reported once and not published, and so
is what is no regular file: symbolic links are not followed, and named pipes not read.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.containment import ContainmentError, kind_of, open_folder
from specwire.runtime.filemq.catalogue import Entry
from specwire.runtime.filemq.containment import open_file, walk_files
from specwire.runtime.filemq.digests import AbandonedError, Digest, UnstableError, digest_file
from specwire.runtime.filemq.keptdigests import KeptDigests
from specwire.runtime.filemq.known import KnownFiles
from specwire.runtime.filemq.names import (
    MAX_NAME_OCTETS,
    RESERVED,
    covers,
    fault_in_name,
    fault_in_path,
    normalise_path,
)
from specwire.runtime.filemq.root import Root

if TYPE_CHECKING:
    from specwire.runtime.filemq.digeststore import DigestStore

logger = logging.getLogger(__name__)

STEP_FILES = 1000
"""A step of a walk; in a large folder others look in between, and notice a change in time."""

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
        digests: keeps the digests of the files from one run to the next; without it each run reads every file.

    Attributes:
        missing: the folder was not there when it was looked at last.

    Raises:
        ValueError: `path` is not a virtual path.
    """

    def __init__(self, folder: Path, path: str = "/", *, digests: DigestStore | None = None) -> None:
        self.folder = folder
        self.path = normalise_path(path)
        fault = fault_in_path(self.path)
        self._longest_octets = MAX_NAME_OCTETS
        if fault is not None:
            raise ValueError(f"{path!r} {fault}")
        self._prefix = "/" if self.path == "/" else f"{self.path}/"
        self._root = Root()
        self.missing = False
        self._known = KnownFiles()
        self._digests = digests
        self._kept: KeptDigests | None = None
        self._unfit: set[str] = set()
        self._walk = 0
        self._met: set[str] = set()
        self._untold: dict[str, Change] = {}
        self._abandoned = threading.Event()

    def open(self, *, longest_octets: int = MAX_NAME_OCTETS) -> None:
        """Open the folder, for names of so many octets; raises OSError where it is missing or is none."""
        self._longest_octets = longest_octets
        self.folder = self.folder.resolve()  # notifications name places by it, wherever the process goes
        self._root.open(self.folder)
        self._abandoned.clear()
        if self._digests is not None and self._digests.is_inside(self.folder):
            logger.warning("%s is published: no digests are kept there", self._digests.folder)
        elif self._digests is not None:
            self._kept = KeptDigests(self._digests, self.folder)

    def abandon(self) -> None:
        """Have every look end with AbandonedError from now on, that of another thread too; before `close`."""
        self._abandoned.set()

    def close(self) -> None:
        """Close the folder; digests of files that were read for an abandoned look are kept."""
        if self._kept is not None:
            self._kept.save()
        self._root.close()

    @property
    def replaced(self) -> int:
        """How often another folder was found in place of the one before."""
        return self._root.replaced

    def overlaps(self, other: Publication) -> bool:
        """Tell whether two publications could name the same file."""
        return covers(self.path, other.path) or covers(other.path, self.path)

    def open_entry(self, name: str) -> int:
        """Return a descriptor of a published file, from any thread; raises OSError or ContainmentError."""
        return open_file(self._root.descriptor, self._inner_name(name))

    def scan(self) -> list[Change]:
        """Compare the whole folder with what is known."""
        return [change for step in self.walk() for change in step]

    def walk(self) -> Iterator[list[Change]]:
        """Compare the whole folder with what is known, in steps between which `examine` may be called.

        What was found is returned with the last step, or by `examine` where that is asked for it before. A walk
        that is begun during another ends that one.
        """
        self._walk = walk = self._walk + 1
        if (absence := self._find_root()) is not None:
            yield absence
            return
        self._met = set()
        files = walk_files(self._root.descriptor, self._prefix, self._longest_octets)
        while step := [*islice(files, STEP_FILES)]:
            self._untold |= {_name_of(change): change for change in self._look_at(step, self._met)}
            yield []
            if self._walk != walk:
                return
        yield self._finish_walk()

    def _finish_walk(self) -> list[Change]:
        first = self._find_root()  # where it vanished during the walk, what was not met is not gone
        if first is None:
            first = self._forget(self._known.all_but(self._met))
            if self._kept is not None:
                self._kept.remove_unfound()
                self._kept.save()
        found, self._untold, self._met = [*self._untold.values()], {}, set()
        return [*first, *found]

    def examine(self, places: Iterable[str]) -> list[Change]:
        """Look at files and folders, given as paths in the file system that begin with the folder's own."""
        if (absence := self._find_root()) is not None:
            return absence
        names = sorted({self._virtual_name(place) for place in places})
        if len(names) > MANY_PLACES or self._prefix in names:
            return self.scan()
        here: list[tuple[str, os.stat_result]] = []
        files, folders = set[str](), set[str]()
        for name in names:
            place = [*self._list_place(name)]
            here += place
            first = next((inner for inner, state in place if stat.S_ISREG(state.st_mode)), None)
            if first is not None:
                (files if first == name else folders).add(name)
        if (absence := self._find_root()) is not None:
            return absence
        # What is gone is forgotten before anything is looked at: it may have come again meanwhile.
        gone = self._forget({*names} - files | self._known.under({*names} - folders))
        untold = {name: self._untold.pop(name) for name, _ in here if name in self._untold}
        found = [*(untold | {_name_of(change): change for change in self._look_at(here, self._met)}).values()]
        if self._kept is not None:
            self._kept.save()
        return [*gone, *found]

    def examine_name(self, name: str) -> list[Change]:
        """Look at one file, by its virtual name."""
        return self.examine([str(self.folder / self._inner_name(name)[1:])])

    def _find_root(self) -> list[Change] | None:
        """See which folder is there, and open it; where there is none, return what is to be told of that."""
        fault = self._root.find(may_be_empty=not self._known)
        told, self.missing = self.missing, fault is not None
        if fault is not None:
            reason = f"its folder {self.folder} {fault}, so its files stay listed until it is back"
            return [] if told else [Unfit(self.path, reason)]
        if told:
            logger.warning("%s is back", self.folder)
        return None

    def _inner_name(self, name: str) -> str:
        return name if self.path == "/" else name[len(self.path) :]

    def _virtual_name(self, place: str) -> str:
        inner = os.path.relpath(place, self.folder)
        folders = inner.split("/")
        if RESERVED in folders:  # somebody's inbox: told of as a walk does, and not each file in it
            inner = "/".join(folders[: folders.index(RESERVED) + 1])
        return self._prefix if inner == "." else self._prefix + inner

    def _list_place(self, name: str) -> Iterator[tuple[str, os.stat_result]]:
        """Yield what is at `name` or below it now; see `walk_files`."""
        *folders, leaf = self._inner_name(name)[1:].split("/")
        try:
            parent = open_folder(self._root.descriptor, folders)
        except (OSError, ContainmentError):
            return
        try:
            state = os.stat(leaf, dir_fd=parent, follow_symlinks=False)
            if not stat.S_ISDIR(state.st_mode) or leaf == RESERVED:
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
            if self._abandoned.is_set():
                raise AbandonedError
            known = self._known.find(name)
            if known is not None and known.still_holds(state) and stat.S_ISREG(state.st_mode):
                seen.add(name)
                continue
            fault = fault_in_name(name, self._longest_octets)
            if fault is None and not stat.S_ISREG(state.st_mode):
                fault = f"is {kind_of(state)}, and not published"
            if fault is not None:
                if name not in self._unfit:
                    self._unfit.add(name)
                    yield Unfit(name, fault)
                continue
            seen.add(name)
            kept = self._find_kept(name, state) if known is None else None
            if kept is None:
                yield from self._read(name)
            else:
                yield self._know(name, kept)

    def _find_kept(self, name: str, state: os.stat_result) -> Digest | None:
        return None if self._kept is None else self._kept.find(name[len(self._prefix) :], state)

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
            digest = digest_file(descriptor, self._abandoned.is_set)
        except (OSError, UnstableError):
            return
        finally:
            os.close(descriptor)
        if self._kept is not None:
            self._kept.put(name[len(self._prefix) :], digest)
        yield self._know(name, digest)

    def _know(self, name: str, digest: Digest) -> Put:
        self._known.put(name, digest)
        return Put(Entry(name, digest.signature.size, digest.sha1, digest.signature, digest.fresh))

    def _forget(self, names: Iterable[str]) -> list[Change]:
        gone = [name for name in sorted(names) if self._known.remove(name)]
        for name in gone:
            self._untold.pop(name, None)
            if self._kept is not None:
                self._kept.remove(name[len(self._prefix) :])
        return [Gone(name) for name in gone]


def _name_of(change: Change) -> str:
    return change.entry.name if isinstance(change, Put) else change.name
