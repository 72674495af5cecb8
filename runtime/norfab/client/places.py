"""Folders of clients that each run one command: ``1``, ``2``, … below one folder.

One process at a time can use a store. So each command takes the first folder that is free, and leaves its
jobs there. A job is found by reading all folders, which is possible while other processes write.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from specwire.runtime.kernel.store import StoreError, StoreInUseError
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import HistoryEntry, StoredJob
from specwire.runtime.norfab.client.store import NAME, DiskStore, select_history, select_job

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_PLACES = 1000


def candidates(folder: Path) -> Iterator[Path]:
    """Return the folders in the order in which a command tries them, existing or not."""
    return (folder / str(number) for number in range(1, MAX_PLACES + 1))


async def find_job(folder: Path, uuid: str) -> tuple[Path, StoredJob] | None:
    """Return the folder of a job, and the job; None if no folder has it."""
    for place in _used(folder):
        stored = await _read(place, lambda connection: select_job(connection, uuid))
        if stored is not None:
            return place, stored
    return None


async def read_history(folder: Path, limit: int) -> list[HistoryEntry]:
    """Return the newest jobs of all folders, the newest first."""
    found: list[HistoryEntry] = []
    for place in _used(folder):
        found += await _read(place, lambda connection: select_history(connection, limit)) or []
    return sorted(found, key=lambda entry: -entry.submitted_at)[:limit]


def _used(folder: Path) -> list[Path]:
    return [place for place in candidates(folder) if (place / NAME).exists()]


async def _read(place: Path, select: Callable[[sqlite3.Connection], T]) -> T | None:
    """Return what `select` returns for a folder; None, with a warning, if it cannot be read."""
    try:
        with closing(_connect(place)) as connection:
            [version] = connection.execute("PRAGMA user_version").fetchone()
            if version != 1:
                return select(connection)
        await _upgrade(place)
        with closing(_connect(place)) as connection:
            return select(connection)
    except sqlite3.Error as error:
        logger.warning("%s is skipped: it cannot be read: %s", place / NAME, error)
        return None


def _connect(place: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{(place / NAME).absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)


async def _upgrade(place: Path) -> None:
    """Upgrade a folder of version 0.1, whose process may have been killed, if no process uses it."""
    store = DiskStore(place, "full", ClientSettings(), on_committed=lambda last, failures: None)
    try:
        await store.open()
        await store.close()
    except StoreInUseError:
        pass  # it is read as it is
    except StoreError as error:
        logger.warning("what was submitted last in %s may be missing: %s", place, error)
