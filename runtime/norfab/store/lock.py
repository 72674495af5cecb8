"""One process for each store: a lock that the system lets go of when its process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from specwire.runtime.norfab.store.errors import StoreError, StoreInUseError

SUFFIX = "-lock"


class StoreLock:
    """Holds ``PATH-lock`` from its making until `release`; the file stays, with the number of the last process in it.

    Raises:
        StoreInUseError: another process holds it.
        StoreError: it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.with_name(path.name + SUFFIX)
        try:
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{self._file} cannot be made: {error.strerror}") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _read_holder(self._descriptor)
            os.close(self._descriptor)
            if isinstance(error, BlockingIOError):
                raise StoreInUseError(
                    f"{path} is in use by process {holder}: end that one, or choose another folder"
                ) from None
            raise StoreError(f"{self._file} cannot be locked: {error.strerror}") from None
        self._note_holder()

    def release(self) -> None:
        """Let another process have the store."""
        os.close(self._descriptor)

    def _note_holder(self) -> None:
        """Write who holds it, for people; on a full disk nobody is told."""
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            return


def _read_holder(descriptor: int) -> str:
    text = os.pread(descriptor, 32, 0).strip()
    return text.decode("ascii") if text.isdigit() else "unknown"
