"""Folders of clients that do one thing each and end, side by side below one folder.

A store belongs to one process at a time. So a command takes the first folder that is free (``1``, ``2``, …) and leaves its jobs
there; what was left is found by looking into all of them, which may be done while others work.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from specwire.runtime.norfab.client.records import HistoryEntry, Kept
from specwire.runtime.norfab.client.store import NAME, SCHEMA, select_history, select_job
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.store.opening import tidy_up

logger = logging.getLogger(__name__)

MAX_PLACES = 1000


def candidates(folder: Path) -> Iterator[Path]:
    """Return the places in the order in which they are to be tried; those that are not there yet, too."""
    return (folder / str(number) for number in range(1, MAX_PLACES + 1))


def find_job(folder: Path, uuid: str) -> tuple[Path, Kept] | None:
    """Return a job, and the place that has it; None where no place has."""
    for place in _used(folder):
        with suppress(sqlite3.Error), closing(_look_into(place)) as connection:
            kept = select_job(connection, uuid)
            if kept is not None:
                return place, kept
    return None


def read_history(folder: Path, limit: int) -> list[HistoryEntry]:
    """Return the newest jobs of all places, the newest first."""
    found: list[HistoryEntry] = []
    for place in _used(folder):
        with suppress(sqlite3.Error), closing(_look_into(place)) as connection:
            found += select_history(connection, limit)
    return sorted(found, key=lambda entry: -entry.submitted_at)[:limit]


def _used(folder: Path) -> list[Path]:
    return [place for place in candidates(folder) if (place / NAME).exists()]


def _look_into(place: Path) -> sqlite3.Connection:
    try:
        tidy_up(place / NAME, SCHEMA)
    except StoreError as error:
        logger.warning("what came last in %s is left out: %s", place, error)
    return sqlite3.connect(f"{(place / NAME).absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)
