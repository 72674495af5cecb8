"""What an inbox knows of its files: digest by state, and which server sent them.

Servers (`origin`) have numbers here, each told once, in a line of its own before the first that needs it. Of a file that
was noted before there were numbers, it is known that a server sent it, and not which.

One line of JSON for each change, appended before it is made, so that a kill loses nothing that was
done. A line that was cut off (by a kill, or a full disk) is skipped and counted when the journal is
read; each line begins with its line feed so that the next one is whole again. A journal that grew
long, or has such a line when it is opened, is written again. A deletion that is withheld until
somebody confirms it has a line too, which ends with the next record.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import msgspec

from specwire.runtime.filemq.catalogue import Signature
from specwire.runtime.filemq.digests import sign

NAME = "journal"
WITHHELD = "withheld"
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Record(NamedTuple):
    """What is known of a file; `received`: the number of the server that sent it, True for one unknown."""

    sha1: str
    signature: Signature
    received: bool | int


class _Line(msgspec.Struct, frozen=True, array_like=True):
    """What is known of the file `name`: a record, None or `WITHHELD`; or which server a number means."""

    name: str | int
    record: Record | str | None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Line)


class Journal:
    """The records of an inbox by virtual name.

    Args:
        folder: descriptor of the inbox's own folder.
        origin: the server whose files are coming; empty: one unknown.

    Attributes:
        origin: that server as `Record.received` has it.
        lines_lost: how many lines could not be read.
        withheld: digests of files that the server has withdrawn and that are still here, by name.
    """

    def __init__(self, folder: int, origin: str = "") -> None:
        self._folder = folder
        self._records: dict[str, Record] = {}
        self._origins: dict[int, str] = {}
        self.withheld: dict[str, str] = {}
        self._withheld_by_sha1: dict[str, set[str]] = {}
        self._descriptor = os.open(NAME, _FLAGS, 0o666, dir_fd=folder)
        self.lines_lost = 0
        self._lines = self._load()
        self._untold: _Line | None = None
        self.origin: bool | int = self._find_number(origin) if origin else True
        self._shorten(50, at_once=bool(self.lines_lost))

    def __len__(self) -> int:
        return len(self._records)

    def received(self) -> Iterator[tuple[str, Record]]:
        """Yield what came from this server."""
        return (item for item in self._records.items() if self.find_other_owner(item[0]) is None)

    def find(self, name: str, state: os.stat_result | None = None) -> Record | None:
        """Return the record of `name`; with `state`, only where the file is still in that state."""
        record = self._records.get(name)
        if record is None or state is None:
            return record
        return record if record.signature == sign(state) else None

    def find_other_owner(self, name: str) -> str | None:
        """Return in words where the file came from, None where it came from this server, or one unknown."""
        record = self._records.get(name)
        if record is None or record.received is False:
            return "did not come from a server"
        if record.received is True or (self.origin is not True and record.received == self.origin):
            return None  # True is 1 too, to Python
        return f"came from {self._origins.get(record.received, 'another server')}"

    def put(self, name: str, record: Record) -> None:
        """Note a file; raises OSError, and then nothing is noted."""
        self.put_all([(name, record)])

    def put_all(self, records: Sequence[tuple[str, Record]]) -> None:
        """Note files, with a single write; raises OSError, and then none counts as noted."""
        lines = [_Line(name, record) for name, record in records]
        if self._untold is not None:
            lines.insert(0, self._untold)
        self._append(lines)
        self._untold = None
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
        """Return a withheld file with this content, None where there is none."""
        return next(iter(self._withheld_by_sha1.get(sha1, ())), None)

    def forget_withheld(self, names: Iterable[str]) -> None:
        """The server will say again which of these are withdrawn; raises OSError."""
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
        self._withheld_by_sha1.setdefault(sha1, set()).add(name)

    def _release(self, name: str) -> None:
        if (sha1 := self.withheld.pop(name, None)) is not None:
            self._withheld_by_sha1[sha1].discard(name)

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
                # A kill can cut the last line off; what it said of its file is then not known.
                self.lines_lost += bool(octets)
                continue
            match line:
                case _Line(str(name), Record() as record):
                    self._records[name] = record
                    self._release(name)
                case _Line(str(name), None):
                    self._records.pop(name, None)
                    self._release(name)
                case _Line(str(name), str(said)):
                    if said == WITHHELD and name in self._records:
                        self._note_withheld(name)
                case _Line(int(number), str(origin)):
                    self._origins[number] = origin
        return len(lines)

    def _find_number(self, origin: str) -> int:
        """Return the number of a server; one that has none gets one, which is told with the first file."""
        for number, known in self._origins.items():
            if known == origin:
                return number
        # The line that told a number may be lost, and files have it still.
        taken = {int(record.received) for record in self._records.values()}
        number = max(taken | self._origins.keys(), default=0) + 1
        self._origins[number] = origin
        self._untold = _Line(number, origin)
        return number

    def _shorten(self, spare: int = 1000, *, at_once: bool = False) -> None:
        """Write the journal again when more than half of it, and `spare` lines, are obsolete."""
        if at_once or self._lines > 2 * len(self._records) + spare:
            with suppress(OSError):  # no room for a second one: the journal is good as it is
                self._rewrite()
            self._lines = len(self._records)

    def _rewrite(self) -> None:
        origins = (_Line(number, origin) for number, origin in self._origins.items())
        records = (_Line(name, record) for name, record in self._records.items())
        withheld = (_Line(name, WITHHELD) for name in self.withheld)
        octets = b"".join(b"\n" + _encoder.encode(line) for line in chain(origins, records, withheld))
        aside = f"{NAME}.new"
        descriptor = os.open(aside, _FLAGS | os.O_TRUNC, 0o666, dir_fd=self._folder)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(octets)
            file.flush()
            os.fsync(file.fileno())
        os.rename(aside, NAME, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.close(self._descriptor)
        self._descriptor, self._untold = descriptor, None
