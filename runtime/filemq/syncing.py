"""Bringing many files to the disk in the time of a few.

A file system writes one record of its own journal for all files that wait for it at the same moment, so files
that are synced from several threads share the waiting that each of them would have alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

THREADS = 16

Outcome = OSError | None
"""What went wrong with a file, None where it is on the disk."""


class Syncing:
    """Syncs groups of open files."""

    def __init__(self) -> None:
        # Threads are started as they are needed: none where files come one by one.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="filemq-sync")

    def begin(self, descriptors: Sequence[int]) -> Callable[[], list[Outcome]]:
        """Begin to bring every file to the disk; call what this returns to wait for it."""
        count = min(THREADS, len(descriptors))
        futures = [self._threads.submit(_sync_each, descriptors[n::count]) for n in range(count)]

        def wait() -> list[Outcome]:
            shares = [future.result() for future in futures]
            return [shares[n % count][n // count] for n in range(len(descriptors))]

        return wait

    def sync(self, descriptors: Sequence[int]) -> list[Outcome]:
        """Return when every file is on the disk."""
        return _sync_each(descriptors) if len(descriptors) == 1 else self.begin(descriptors)()

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def _sync_each(descriptors: Sequence[int]) -> list[Outcome]:
    return [sync_file(descriptor) for descriptor in descriptors]


def sync_file(descriptor: int) -> Outcome:
    """Wait for the disk, and return what went wrong."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        return error
    return None
