"""Journal of the files that an inbox received, and inventory of those that it has.

The journal notes for each file its digest, its state in the file system, and the server that sent
it. Servers (`origin`) have numbers here; each number has a line before the first record that uses
it. For a file from before there were numbers, it is only known that some server sent it.

Each change is one line of JSON, appended before the change is made, so that a kill loses nothing
that was done. A line that was cut off (by a kill, or a full disk) is skipped and counted when the
journal is read. Each line begins with its line feed, so the next one is complete again. The journal
is rewritten if it has become long, or has a line that is cut off when it is opened. A withheld
deletion has a line too, which ends with the next record of that file.

The inventory compares the files on the disk with the journal. It reads only files whose state the
journal does not have.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import msgspec

from specwire.runtime.containment import ContainmentError, open_folder
from specwire.runtime.filemq.catalogue import Signature
from specwire.runtime.filemq.disk import (
    Answer,
    Present,
    Unknown,
    look_at,
    open_file,
    parent_of,
    trouble_in,
    walk,
)
from specwire.runtime.filemq.names import (
    LONGEST_NAME_OCTETS,
    covers,
    fault_in_name,
    is_below,
    is_conflict_copy,
    is_folder,
    split_name,
)
from specwire.runtime.filemq.reading import UnstableError, digest_file, sign

NAME = "journal"
WITHHELD = "withheld"
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Record(NamedTuple):
    """Known state of a file. `received`: number of the server that sent it, True for an unknown one."""

    sha1: str
    signature: Signature
    received: bool | int


class _Line(msgspec.Struct, frozen=True, array_like=True):
    """A record of the file `name`, None if it is gone, `WITHHELD`; or the server that a number means."""

    name: str | int
    record: Record | str | None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Line)


class Journal:
    """The records of an inbox by virtual name.

    Args:
        folder: descriptor of the inbox's own folder; None for no folder, if `read_only` is set.
        origin: the server that sends files now; empty: an unknown one.
        read_only: the file is not changed, and nothing can be noted (OSError). It may be missing.

    Attributes:
        origin: that server, as in `Record.received`.
        lines_lost: number of lines that could not be read.
        withheld: by name, digests of files that the server has withdrawn and that are still here.
    """

    def __init__(self, folder: int | None, origin: str = "", *, read_only: bool = False) -> None:
        self._folder = folder
        self._records: dict[str, Record] = {}
        self._origins: dict[int, str] = {}
        self.withheld: dict[str, str] = {}
        self._withheld_by_sha1: dict[str, dict[str, None]] = {}  # names in order
        self._descriptor = _open_to_read(folder) if read_only else os.open(NAME, _FLAGS, 0o666, dir_fd=folder)
        self.lines_lost = 0
        self._lines = self._load()
        self._unwritten_origin: _Line | None = None
        self.origin: bool | int = self._find_number(origin) if origin else True
        if not read_only:
            self._shorten(50, at_once=bool(self.lines_lost))

    def __len__(self) -> int:
        return len(self._records)

    def received(self) -> Iterator[tuple[str, Record]]:
        """Yield the files that came from this server."""
        return (item for item in self._records.items() if self.find_other_owner(item[0]) is None)

    def find(self, name: str, state: os.stat_result | None = None) -> Record | None:
        """Return the record of `name`; with `state`, only if the file still has that state."""
        record = self._records.get(name)
        if record is None or state is None:
            return record
        return record if record.signature == sign(state) else None

    def find_other_owner(self, name: str) -> str | None:
        """Return in words where the file came from; None: from this server, or an unknown one."""
        record = self._records.get(name)
        if record is None or record.received is False:
            return "did not come from a server"
        if record.received is True or (self.origin is not True and record.received == self.origin):
            return None  # True == 1 in Python
        return f"came from {self._origins.get(record.received, 'another server')}"

    def put(self, name: str, record: Record) -> None:
        """Note a file; raises OSError, and then nothing is noted."""
        self.put_all([(name, record)])

    def put_all(self, records: Sequence[tuple[str, Record]]) -> None:
        """Note files with a single write; raises OSError, and then none counts as noted."""
        lines = [_Line(name, record) for name, record in records]
        if self._unwritten_origin is not None:
            lines.insert(0, self._unwritten_origin)
        self._append(lines)
        self._unwritten_origin = None
        self._records.update(records)
        for name, _ in records:
            self._release(name)
        self._shorten()

    def withhold(self, name: str) -> None:
        """Note that the server has withdrawn a file that stays here for now; raises OSError."""
        if name in self._records and name not in self.withheld:
            self._append([_Line(name, WITHHELD)])
            self._note_withheld(name)

    def find_withheld(self, sha1: str) -> str | None:
        """Return a withheld file with this content, None if there is none."""
        return next(iter(self._withheld_by_sha1.get(sha1, ())), None)

    def forget_withheld(self, names: Iterable[str]) -> None:
        """Forget that these are withheld; raises OSError."""
        self.put_all([(name, self._records[name]) for name in names])

    def remove(self, name: str) -> None:
        """Forget a file; raises OSError."""
        if name in self._records:
            self._append([_Line(name, None)])
            del self._records[name]
            self._release(name)
            self._shorten()

    def close(self) -> None:
        """Close the journal's file."""
        os.close(self._descriptor)

    def _note_withheld(self, name: str) -> None:
        sha1 = self.withheld[name] = self._records[name].sha1
        self._withheld_by_sha1.setdefault(sha1, {})[name] = None

    def _release(self, name: str) -> None:
        if (sha1 := self.withheld.pop(name, None)) is not None:
            names = self._withheld_by_sha1[sha1]
            del names[name]
            if not names:
                del self._withheld_by_sha1[sha1]

    def _append(self, lines: Iterable[_Line]) -> None:
        encoded = [b"\n" + _encoder.encode(line) for line in lines]
        octets = b"".join(encoded)
        self._lines += len(encoded)
        if os.write(self._descriptor, octets) != len(octets):
            raise OSError("the journal could be written only in part")

    def _load(self) -> int:
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            lines = file.read().split(b"\n")
        for octets in lines:
            try:
                line = _decoder.decode(octets)
            except msgspec.MsgspecError:
                self.lines_lost += bool(octets)  # a kill can cut off the last line
                continue
            match line:
                case _Line(str(name), Record() as record):
                    self._records[name] = record
                    self._release(name)
                case _Line(str(name), None):
                    self._records.pop(name, None)
                    self._release(name)
                case _Line(str(name), str(mark)):
                    if mark == WITHHELD and name in self._records:
                        self._note_withheld(name)
                case _Line(int(number), str(origin)):
                    self._origins[number] = origin
        return len(lines)

    def _find_number(self, origin: str) -> int:
        """Return the number of a server. A new one is written with the first file."""
        for number, known in self._origins.items():
            if known == origin:
                return number
        # The line of a number may be lost while files still have it.
        taken = {int(record.received) for record in self._records.values()}
        number = max(taken | self._origins.keys(), default=0) + 1
        self._origins[number] = origin
        self._unwritten_origin = _Line(number, origin)
        return number

    def _shorten(self, spare: int = 1000, *, at_once: bool = False) -> None:
        """Rewrite the journal if more than half of it, and `spare` lines, are obsolete."""
        if at_once or self._lines > 2 * len(self._records) + spare:
            with suppress(OSError):  # no room for a second file: the long journal is valid too
                self._rewrite()
            self._lines = len(self._records)

    def _rewrite(self) -> None:
        origins = (_Line(number, origin) for number, origin in self._origins.items())
        records = (_Line(name, record) for name, record in self._records.items())
        withheld = (_Line(name, WITHHELD) for name in self.withheld)
        octets = b"".join(b"\n" + _encoder.encode(line) for line in chain(origins, records, withheld))
        aside = f"{NAME}.new"
        descriptor = os.open(aside, _FLAGS | os.O_TRUNC, 0o666, dir_fd=self._folder)
        try:
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(octets)
                file.flush()
                os.fsync(file.fileno())
            os.rename(aside, NAME, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            os.close(descriptor)
            os.unlink(aside, dir_fd=self._folder)
            raise
        os.close(self._descriptor)
        self._descriptor, self._unwritten_origin = descriptor, None


def _open_to_read(folder: int | None) -> int:
    """Return a descriptor of the journal in `folder`, or of an empty file if there is none."""
    if folder is not None:
        with suppress(FileNotFoundError):
            return os.open(NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class Inventory:
    """The files of one inbox.

    Args:
        root: descriptor of the inbox.
    """

    def __init__(self, root: int, journal: Journal) -> None:
        self._root, self._journal = root, journal
        self._edited: dict[str, Record] = {}

    def list_held(self, path: str) -> dict[str, str]:
        """Return the digests of the files under `path` by name. Unreadable ones count as received."""
        held: dict[str, str] = {}
        unknown: dict[str, str] = {}
        for answer in self._look_under(path):
            match answer:
                case Present(name, state) if _is_file(name, state):
                    record = self._find(name, state)
                    if record is not None and (record.received is not False or not is_conflict_copy(name)):
                        held[name] = record.sha1
                case Unknown(name, reason):
                    unknown[name] = reason
        for name, record in self._journal.received():
            if covers(path, name) and (is_below(name, unknown) or self._is_received_folder(name)):
                held[name] = record.sha1
        return held

    def find_changes(self) -> set[str]:
        """Return the names of files that are not as they were received."""
        unknown: dict[str, str] = {}
        present: dict[str, os.stat_result] = {}
        for answer in walk(self._root, "/", LONGEST_NAME_OCTETS):
            match answer:
                case Present(name, state):
                    present[name] = state
                case Unknown(name, reason):
                    unknown[name] = reason
        return {
            name
            for name, record in [*self._journal.received()]
            if not is_below(name, unknown) and not self._is_as_received(name, record, present.get(name))
        }

    def _is_received_folder(self, name: str) -> bool:
        """Return whether this is a folder, which the server sent as an empty one, and it still exists."""
        if not is_folder(name):
            return False
        try:
            os.close(open_folder(self._root, split_name(name[:-1])))
        except (OSError, ContainmentError):
            return False
        return True

    def _is_as_received(self, name: str, record: Record, state: os.stat_result | None) -> bool:
        if is_folder(name):
            return self._is_received_folder(name)
        if state is None or not stat.S_ISREG(state.st_mode):
            return False
        found = self._find(name, state)
        return found is None or found.sha1 == record.sha1

    def _look_under(self, path: str) -> Iterator[Answer]:
        if path == "/":
            yield from walk(self._root, "/", LONGEST_NAME_OCTETS)
            return
        try:
            with parent_of(self._root, path) as (folder, leaf):
                yield from look_at(folder, leaf, path, LONGEST_NAME_OCTETS)
        except (OSError, ContainmentError) as fault:
            if (trouble := trouble_in(fault)) is not None:
                yield Unknown(path, trouble)

    def _find(self, name: str, state: os.stat_result) -> Record | None:
        """Return the record of a file in this state. Reads the file if the state is not known."""
        if (known := self._journal.find(name, state)) is not None:
            return known
        received = self._journal.find(name)
        edited = self._edited.get(name)
        if edited is not None and edited.signature == sign(state):
            return edited
        try:
            descriptor = open_file(self._root, name)
            try:
                digest = digest_file(descriptor)
            finally:
                os.close(descriptor)
        except (OSError, ContainmentError, UnstableError):
            return received  # it cannot be compared now, so it counts as received
        record = Record(digest.sha1, digest.signature, received is not None and received.received)
        if digest.fresh:
            return record
        if received is None or received.received is False or received.sha1 == digest.sha1:
            with suppress(OSError):  # no room for the note: the file is read again next time
                self._journal.put(name, record)
        else:  # the journal keeps what the server sent, so that the change remains visible
            self._edited[name] = record
        return record


def _is_file(name: str, state: os.stat_result) -> bool:
    return stat.S_ISREG(state.st_mode) and fault_in_name(name, LONGEST_NAME_OCTETS) is None
