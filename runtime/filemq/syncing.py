"""Bringing many files to the disk in the time of a few.

A file system writes one record of its own journal for all files that wait for it at the same moment, so files
that are synced from several threads share the waiting that each of them would have alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

THREADS = 16


class Syncing:
    """Syncs groups of open files."""

    def __init__(self) -> None:
        # Threads are started as they are needed: none where files come one by one.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="filemq-sync")

    def sync(self, descriptors: Sequence[int]) -> list[OSError | None]:
        """Return when every file is on the disk; what went wrong with each, None where nothing did."""
        count = min(THREADS, len(descriptors))
        if count == 1:
            return _sync_each(descriptors)
        shares = list(self._threads.map(_sync_each, [descriptors[n::count] for n in range(count)]))
        return [shares[n % count][n // count] for n in range(len(descriptors))]

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def _sync_each(descriptors: Sequence[int]) -> list[OSError | None]:
    return [sync_file(descriptor) for descriptor in descriptors]


def sync_file(descriptor: int) -> OSError | None:
    """Wait for the disk, and return what went wrong."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        return error
    return None
