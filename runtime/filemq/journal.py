"""What an inbox knows of its files: digest by state, and whether the server sent them.

One line of JSON for each change, appended with a single write, so that a kill loses nothing that was done. A
line that was cut off (by a kill, or a full disk) is skipped and counted when the journal is read; each line begins
with its line feed so that the next one is whole again. On opening, a journal that grew long or has such a line is
written anew.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

import msgspec

from specwire.runtime.filemq.catalogue import Signature
from specwire.runtime.filemq.digests import sign

NAME = "journal"
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Record(NamedTuple):
    """What is known of a file; `received` where the server sent it, so that the server may delete it."""

    sha1: str
    signature: Signature
    received: bool


class _Line(msgspec.Struct, frozen=True, array_like=True):
    name: str
    record: Record | None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Line)


class Journal:
    """The records of an inbox by virtual name; `folder` is a descriptor of the inbox's own folder.

    `lines_lost` counts the lines that could not be read.
    """

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._records: dict[str, Record] = {}
        self._descriptor = os.open(NAME, _FLAGS, 0o666, dir_fd=folder)
        self.lines_lost = 0
        lines = self._load()
        if lines > 2 * len(self._records) + 1000:
            self._rewrite()
        elif self.lines_lost:
            with suppress(
                OSError
            ):  # a full disk may be what cut the line off, and the journal is good as it is
                self._rewrite()

    def find(self, name: str, state: os.stat_result | None = None) -> Record | None:
        """Return the record of `name`; with `state`, only where the file is still in that state."""
        record = self._records.get(name)
        if record is None or state is None:
            return record
        return record if record.signature == sign(state) else None

    def put(self, name: str, record: Record) -> None:
        """Note a file; raises OSError, and then nothing is noted."""
        self._append(_Line(name, record))
        self._records[name] = record

    def remove(self, name: str) -> None:
        """Forget a file; raises OSError."""
        if name in self._records:
            self._append(_Line(name, None))
            del self._records[name]

    def close(self) -> None:
        """Close the journal's file."""
        os.close(self._descriptor)

    def _append(self, line: _Line) -> None:
        octets = b"\n" + _encoder.encode(line)
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
            if line.record is None:
                self._records.pop(line.name, None)
            else:
                self._records[line.name] = line.record
        return len(lines)

    def _rewrite(self) -> None:
        octets = b"".join(b"\n" + _encoder.encode(_Line(*item)) for item in self._records.items())
        aside = f"{NAME}.new"
        descriptor = os.open(aside, _FLAGS | os.O_TRUNC, 0o666, dir_fd=self._folder)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(octets)
            file.flush()
            os.fsync(file.fileno())
        os.rename(aside, NAME, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.close(self._descriptor)
        self._descriptor = descriptor
