"""Exclusive use of a store, by a file lock that the kernel releases when its process ends.

The errors of a store are here too. ``str()`` of each names the file, the reason, and what to do.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from specwire.runtime.forking import withhold


class StoreError(Exception):
    """A store cannot be opened, read or closed."""


class StoreInUseError(StoreError):
    """Another process has the store open."""


class StoreVersionError(StoreError):
    """The file belongs to another version of this program, or to another one. It is unchanged."""


class StoreLock:
    """Lock on ``PATH-lock``, held from construction until `release`.

    The file remains, and contains the process id of its last holder. The kernel releases an `flock`
    when the last copy of its descriptor is closed, so forked children close theirs: one that
    outlives a killed process does not keep the store locked.

    Raises:
        StoreInUseError: another process holds the lock.
        StoreError: the lock file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        file = path.with_name(f"{path.name}-lock")
        try:
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{file} cannot be created: {error.strerror}") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0).strip().decode("ascii", "replace") or "unknown"
            os.close(self._descriptor)
            if not isinstance(error, BlockingIOError):
                raise StoreError(f"{file} cannot be locked: {error.strerror}") from None
            advice = "end that one, or choose another folder"
            raise StoreInUseError(f"{path} is in use by process {holder}: {advice}") from None
        withhold(self)
        with suppress(OSError):  # the process id is for people: a full disk must not matter
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another process use the store. May be called twice, and in a child."""
        if self._descriptor >= 0:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.close_in_child()

    def close_in_child(self) -> None:
        """Close the descriptor; the lock stays with the process that has another copy."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
