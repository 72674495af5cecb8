"""A redo log: what is durable, and on its way into a database.

A commit takes SQLite a dozen calls of the system, an append to this file one; and what was appended is the system's however the
process ends. (A loss of power is another matter: who has to survive that has no redo log.) All of the file is allocated when
it is made, so there is room for a record when there is none on the disk.

Each record has a serial number. The database notes, in the commit that brings records in, up to which number it has them: so
each is brought in once, whenever the process was killed. A record that was half written is none, and nothing follows it.

What follows the newest record is what is left of earlier ones, octets that a peer has sent among them. Records are signed with a
key that only this file has, so none of those can pass for a record, whatever they are.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any

import msgspec

from specwire.runtime.norfab.store.batch import Statement
from specwire.runtime.norfab.store.errors import StoreError

logger = logging.getLogger(__name__)

OCTETS = 64 * 1024
"""Of the file."""

RECORD_OCTETS = 8 * 1024
"""What is larger is written once and not twice."""

KEY_OCTETS = 16
"""The file begins with its key, which is another one each time that it is opened for writing."""

_HEAD = Struct("<QI8s")
"""Serial number, octets of the record, and what signs both and the record."""

_SIGNED = Struct("<QI")

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(list[tuple[str, list[Any]]])


def redo_file(database: Path) -> Path:
    """Return where the redo log of a database is."""
    return database.with_name(f"{database.name}-redo")


def read_redo(file: Path, after: int) -> Iterator[tuple[int, Sequence[Statement]]]:
    """Yield what an earlier process has appended and not brought in: serial numbers and statements, in order.

    Args:
        after: the number up to which the database has them.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}") from None
    key, at = content[:KEY_OCTETS], KEY_OCTETS
    before: int | None = None
    while at + _HEAD.size <= len(content):
        serial, octets, signature = _HEAD.unpack_from(content, at)
        record = content[at + _HEAD.size : at + _HEAD.size + octets]
        if len(record) < octets or signature != _sign(key, serial, record):
            return
        if before is not None and serial != before + 1:
            return  # an earlier one that happens to be here
        at, before = at + _HEAD.size + octets, serial
        if serial > after:
            try:
                yield serial, _decoder.decode(record)
            except msgspec.DecodeError as error:
                logger.error("%s: record %d is left out, it cannot be read: %s", file, serial, error)


def _sign(key: bytes, serial: int, record: bytes) -> bytes:
    return blake2b(_SIGNED.pack(serial, len(record)) + record, digest_size=8, key=key).digest()


class RedoLog:
    """The file, opened for writing; what it had is gone, so `read_redo` comes first.

    Args:
        serial: the number of the first record.

    Raises:
        OSError: it cannot be made, or there is no room for it.
    """

    def __init__(self, file: Path, serial: int) -> None:
        self._file = file
        self._serial, self._end, self._key = serial, KEY_OCTETS, os.urandom(KEY_OCTETS)
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.pwrite(self._descriptor, self._key + bytes(OCTETS - KEY_OCTETS), 0) < OCTETS:
                raise OSError(f"there is no room for the {OCTETS} octets of {file}")
            os.ftruncate(self._descriptor, OCTETS)
        except BaseException:
            self.close()
            raise

    def append(self, statements: Sequence[Statement]) -> int:
        """Have the statements outlive the process; return their serial number, 0 where that is not possible.

        It is not where they are too large, where the file is full, where a value cannot be written down, and where the disk is at fault.
        """
        try:
            record = _encode(statements)
            octets = len(record)
            if octets > RECORD_OCTETS or self._end + _HEAD.size + octets > OCTETS:
                return 0
            serial = self._serial
            head = _HEAD.pack(serial, octets, _sign(self._key, serial, record))
            if os.pwrite(self._descriptor, head + record, self._end) < _HEAD.size + octets:
                return 0
        except (OSError, TypeError, OverflowError, UnicodeError):
            return 0
        self._end += _HEAD.size + octets
        self._serial = serial + 1
        return serial

    def clear(self) -> None:
        """The database has all that was appended: begin at the beginning again.

        Where the disk takes no zeros the serial numbers tell what is left.
        """
        self._end = KEY_OCTETS
        try:
            os.pwrite(self._descriptor, bytes(_HEAD.size), KEY_OCTETS)
        except OSError as error:
            logger.warning("the redo log of a store cannot be written: %s", error.strerror)

    def close(self, *, remove: bool = False) -> None:
        """Append no more."""
        os.close(self._descriptor)
        if remove:
            with suppress(OSError):  # the numbers tell that nothing of it is needed
                self._file.unlink()
