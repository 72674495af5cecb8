"""Durable store of a client: jobs, their states, results and progress, in one SQLite file.

Ended jobs are deleted by age, by number and by the size of their results. A job that has not ended is
never deleted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from specwire.runtime.kernel.store import Durability, Execute, Failure, Insert, Schema, Statement, Store
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import (
    EventRecord,
    HistoryEntry,
    JobRecord,
    Record,
    ResultRecord,
    StateRecord,
    StoredJob,
    history_entry,
)
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.migration import upgrade_client

NAME = "client.db"

SCHEMA = Schema(
    version=2,
    statements=(
        """CREATE TABLE jobs (uuid TEXT PRIMARY KEY, service TEXT, task TEXT, target TEXT, body BLOB,
        created_at REAL, deadline REAL) WITHOUT ROWID""",
        """CREATE TABLE states (uuid TEXT PRIMARY KEY, state TEXT, workers TEXT, deadline REAL,
        code INTEGER, error TEXT, ended_at REAL, octets INTEGER) WITHOUT ROWID""",
        """CREATE TABLE results (uuid TEXT, worker TEXT, code INTEGER, entry BLOB, at REAL,
        PRIMARY KEY (uuid, worker))""",
        "CREATE TABLE events (uuid TEXT, at REAL, body BLOB)",
        "CREATE INDEX jobs_by_time ON jobs (created_at)",
        "CREATE INDEX states_by_end ON states (ended_at)",
        "CREATE INDEX events_by_job ON events (uuid, at)",
        """CREATE TRIGGER forget AFTER DELETE ON states BEGIN
        DELETE FROM jobs WHERE uuid = OLD.uuid;
        DELETE FROM results WHERE uuid = OLD.uuid;
        DELETE FROM events WHERE uuid = OLD.uuid;
        END""",
    ),
    upgrades={1: upgrade_client},
)

_JOB = "INSERT OR IGNORE INTO jobs VALUES"
_STATE = "INSERT OR REPLACE INTO states VALUES"
_RESULT = "INSERT OR REPLACE INTO results VALUES"
_EVENT = "INSERT INTO events VALUES"
_FORGET = (
    "DELETE FROM states WHERE uuid = ?",
    "DELETE FROM jobs WHERE uuid = ?",
    "DELETE FROM results WHERE uuid = ?",
    "DELETE FROM events WHERE uuid = ?",
)

_COLUMNS = (
    "SELECT j.uuid, j.service, j.task, j.target, j.body, j.created_at, j.deadline, "
    "s.state, s.workers, s.deadline, s.code, s.error, s.ended_at, s.octets "
    "FROM jobs j LEFT JOIN states s ON s.uuid = j.uuid "
)
_ONE_JOB = f"{_COLUMNS} WHERE j.uuid = ?"
_RESULTS_OF_ONE_JOB = "SELECT uuid, worker, code, entry, at FROM results WHERE uuid = ? ORDER BY rowid"
_NEWEST = f"{_COLUMNS} ORDER BY j.created_at DESC LIMIT ?"
_UNFINISHED = f"{_COLUMNS} WHERE coalesce(s.ended_at, 0) = 0 ORDER BY j.created_at"
_RESULTS_OF_UNFINISHED = (
    "SELECT r.uuid, r.worker, r.code, r.entry, r.at FROM results r "
    "LEFT JOIN states s ON s.uuid = r.uuid WHERE coalesce(s.ended_at, 0) = 0 ORDER BY r.rowid"
)
_EVENTS_OF_ONE_JOB = "SELECT at, body FROM events WHERE uuid = ? ORDER BY rowid"
_BY_AGE = "DELETE FROM states WHERE ended_at > 0 AND ended_at < ?"
_BY_NUMBER = (
    "DELETE FROM states WHERE uuid IN "
    "(SELECT uuid FROM states WHERE ended_at > 0 ORDER BY ended_at DESC LIMIT -1 OFFSET ?)"
)
_BY_OCTETS = (
    "DELETE FROM states WHERE uuid IN (SELECT uuid FROM (SELECT uuid, sum(octets) OVER "
    "(ORDER BY ended_at DESC, uuid) AS total FROM states WHERE ended_at > 0) WHERE total > ?)"
)

OnCommitted = Callable[[int, Sequence[Failure]], None]


class ClientStore(Protocol):
    """Store of a client, on disk or in memory."""

    async def open(self) -> None:
        """Open the store; raises StoreError."""

    def write(self, ticket: int, records: Sequence[Record], *, refusable: bool = False) -> None:
        """Commit the records together; ``on_committed`` reports the outcome."""

    def prune(self, ticket: int, now: float) -> None:
        """Delete ended jobs beyond the bounds of `ClientSettings`."""

    async def unfinished(self) -> list[StoredJob]:
        """Return the jobs that have not ended, the oldest first; raises StoreError."""

    async def find(self, uuid: str) -> StoredJob | None:
        """Return one job, or None; raises StoreError."""

    async def history(self, limit: int) -> list[HistoryEntry]:
        """Return the newest jobs, the newest first; raises StoreError."""

    async def events(self, uuid: str) -> list[tuple[float, bytes]]:
        """Return the progress of a job, in order: time and JSON; raises StoreError."""

    async def close(self) -> None:
        """Commit what is queued, and close; raises StoreError."""


class DiskStore:
    """Store in a folder.

    Args:
        folder: created if necessary; one process at a time can use it.
        durability: ``process`` or ``full``.
        settings: how long, how many and how large ended jobs are kept.
        options: the other arguments of `Store`: its callbacks, and what tests replace.
    """

    def __init__(
        self, folder: Path, durability: Durability, settings: ClientSettings, **options: Any
    ) -> None:
        self._settings = settings
        self._store = Store(folder / NAME, SCHEMA, durability, **options)

    async def open(self) -> None:
        """Open the file, and upgrade one of version 0.1; raises StoreError."""
        await self._store.open()

    def write(self, ticket: int, records: Sequence[Record], *, refusable: bool = False) -> None:
        """Commit the records together; see `Store.put`."""
        statements = [statement for record in records for statement in _statements(record)]
        self._store.put(ticket, statements, refusable=refusable)

    def prune(self, ticket: int, now: float) -> None:
        """Delete ended jobs beyond the bounds of `ClientSettings`."""
        settings = self._settings
        self._store.put(
            ticket,
            [
                Execute(_BY_AGE, (now - settings.kept_s,)),
                Execute(_BY_NUMBER, (settings.kept_jobs,)),
                Execute(_BY_OCTETS, (settings.kept_octets,)),
            ],
        )

    async def unfinished(self) -> list[StoredJob]:
        """Return the jobs that have not ended, the oldest first; raises StoreError."""
        return await self._store.call(_select_unfinished)

    async def find(self, uuid: str) -> StoredJob | None:
        """Return one job, or None; raises StoreError."""
        return await self._store.call(lambda connection: select_job(connection, uuid))

    async def history(self, limit: int) -> list[HistoryEntry]:
        """Return the newest jobs, the newest first; raises StoreError."""
        return await self._store.call(lambda connection: select_history(connection, limit))

    async def events(self, uuid: str) -> list[tuple[float, bytes]]:
        """Return the progress of a job, in order: time and JSON; raises StoreError."""
        return [(at, body) for at, body in await self._store.read(_EVENTS_OF_ONE_JOB, (uuid,))]

    async def close(self) -> None:
        """Commit what is queued, and close; raises StoreError."""
        await self._store.close()


def select_job(connection: sqlite3.Connection, uuid: str) -> StoredJob | None:
    """Return one job, or None; raises sqlite3.Error."""
    row = connection.execute(_ONE_JOB, (uuid,)).fetchone()
    if row is None:
        return None
    return _read_job(row, [ResultRecord(*one) for one in connection.execute(_RESULTS_OF_ONE_JOB, (uuid,))])


def select_history(connection: sqlite3.Connection, limit: int) -> list[HistoryEntry]:
    """Return the newest jobs, the newest first; raises sqlite3.Error."""
    jobs = (_read_job(row, ()) for row in connection.execute(_NEWEST, (limit,)))
    return [history_entry(stored.job, stored.state) for stored in jobs]


def _select_unfinished(connection: sqlite3.Connection) -> list[StoredJob]:
    results: dict[str, list[ResultRecord]] = {}
    for row in connection.execute(_RESULTS_OF_UNFINISHED):
        results.setdefault(row[0], []).append(ResultRecord(*row))
    return [_read_job(row, results.get(row[0], ())) for row in connection.execute(_UNFINISHED)]


def _statements(record: Record) -> list[Statement]:
    if type(record) is JobRecord:
        return [Insert(_JOB, msgspec.structs.astuple(record))]
    if type(record) is ResultRecord:
        return [Insert(_RESULT, msgspec.structs.astuple(record))]
    if type(record) is StateRecord:
        uuid, state, workers, *rest = msgspec.structs.astuple(record)
        return [Insert(_STATE, (uuid, state, msgspec.json.encode(workers).decode(), *rest))]
    if type(record) is EventRecord:
        return [Insert(_EVENT, msgspec.structs.astuple(record))]
    return [Execute(statement, (record.uuid,)) for statement in _FORGET]


def _read_job(row: Sequence[Any], results: Sequence[ResultRecord]) -> StoredJob:
    job = JobRecord(*row[:7])
    if row[7] is None:
        return StoredJob(job, StateRecord(job.uuid, State.NEW.value, (), job.deadline), tuple(results))
    state, workers, *rest = row[7:]
    return StoredJob(
        job, StateRecord(job.uuid, state, tuple(msgspec.json.decode(workers)), *rest), tuple(results)
    )
