"""The number of the job that began last, in a file that outlives the process.

It is written for each job before it begins, so it has to be cheap: the file is mapped, writing is a copy in memory, and
what was written is the system's however the process ends. (A loss of power is another matter: with ``full``
durability beginnings go through the store.) Two places are written in turn, each with its complement: a process that is
killed in the middle of writing one leaves the other.
"""

from __future__ import annotations

import mmap
import os
import threading
from pathlib import Path
from struct import Struct

from specwire.runtime.norfab.store.errors import StoreError

_PLACE = Struct("<QQ")
_ALL = (1 << 64) - 1
OCTETS = 2 * _PLACE.size


def read_mark(file: Path) -> int | None:
    """Return the number that was marked last; None where the file is missing or damaged. Raises StoreError."""
    try:
        octets = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}") from None
    if len(octets) != OCTETS:
        return None
    sound = [number for number, check in _PLACE.iter_unpack(octets) if number ^ check == _ALL]
    return max(sound, default=None)


class BeginningMark:
    """The file, opened for writing.

    Args:
        number: what it says at first.

    Raises:
        StoreError: it cannot be made.
    """

    def __init__(self, file: Path, number: int) -> None:
        self._second, self._number = False, number
        self._lock = threading.Lock()
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(descriptor, _PLACE.pack(number, number ^ _ALL) * 2, 0)
                os.ftruncate(descriptor, OCTETS)
                self._map = mmap.mmap(descriptor, OCTETS)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(f"{file} cannot be written: {error.strerror}") from None

    def write(self, number: int) -> None:
        """Mark this number, from whichever thread; one below the one before changes nothing."""
        with self._lock:
            if number > self._number:
                _PLACE.pack_into(self._map, _PLACE.size * self._second, number, number ^ _ALL)
                self._number, self._second = number, not self._second

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            self._map.close()
