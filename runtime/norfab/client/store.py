"""What a client keeps in its folder: jobs, how they stand, results and progress, in one SQLite file.

Ended jobs are kept for a time, up to a number, and up to so many octets of results; what has not ended is never dropped.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import msgspec

from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import (
    EventRecord,
    ForgottenRecord,
    HistoryEntry,
    JobRecord,
    Kept,
    Record,
    ResultRecord,
    StateRecord,
)
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.store.batch import Statement, blob
from specwire.runtime.norfab.store.database import Durability
from specwire.runtime.norfab.store.gathering import Gathering
from specwire.runtime.norfab.store.keeper import Ticket
from specwire.runtime.norfab.store.writer import Writer

NAME = "client.db"
RESULTS_S = 0.02
"""How long results wait for others to be kept with. A client that is killed meanwhile asks the broker for them again."""

SCHEMA = (
    """CREATE TABLE jobs (uuid TEXT PRIMARY KEY, service TEXT, task TEXT, target TEXT, body BLOB,
    created_at REAL, deadline REAL) WITHOUT ROWID""",
    """CREATE TABLE states (uuid TEXT PRIMARY KEY, state TEXT, workers TEXT, deadline REAL, code INTEGER,
    error TEXT, ended_at REAL, octets INTEGER) WITHOUT ROWID""",
    "CREATE TABLE results (uuid TEXT, worker TEXT, code INTEGER, entry BLOB, at REAL, PRIMARY KEY (uuid, worker))",
    "CREATE TABLE events (uuid TEXT, at REAL, body BLOB)",
    "CREATE INDEX jobs_by_time ON jobs (created_at)",
    "CREATE INDEX states_by_end ON states (ended_at)",
    "CREATE INDEX events_by_job ON events (uuid, at)",
    """CREATE TRIGGER forget AFTER DELETE ON states BEGIN
    DELETE FROM jobs WHERE uuid = OLD.uuid;
    DELETE FROM results WHERE uuid = OLD.uuid;
    DELETE FROM events WHERE uuid = OLD.uuid;
    END""",
)

_JOB = "INSERT OR IGNORE INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?)"
_STATE = "INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_RESULT = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)"
_EVENT = "INSERT INTO events VALUES (?, ?, ?)"
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
_ITS_RESULTS = "SELECT uuid, worker, code, entry, at FROM results WHERE uuid = ? ORDER BY rowid"
_NEWEST = f"{_COLUMNS} ORDER BY j.created_at DESC LIMIT ?"
_OPEN = "coalesce(s.ended_at, 0) = 0"
_BY_AGE = "DELETE FROM states WHERE ended_at > 0 AND ended_at < ?"
_BY_NUMBER = (
    "DELETE FROM states WHERE uuid IN "
    "(SELECT uuid FROM states WHERE ended_at > 0 ORDER BY ended_at DESC LIMIT -1 OFFSET ?)"
)
_BY_OCTETS = (
    "DELETE FROM states WHERE uuid IN (SELECT uuid FROM (SELECT uuid, sum(octets) OVER "
    "(ORDER BY ended_at DESC, uuid) AS total FROM states WHERE ended_at > 0) WHERE total > ?)"
)

BUNCH = 512
"""So many records are kept at once, and do not wait for the turn of the loop to end: who makes thousands of jobs in one turn has the
first ones on their way to workers while the others are made."""

_AWAITED: frozenset[type[Record]] = frozenset({JobRecord, ForgottenRecord})

_ORDER = {kind: place for place, kind in enumerate((JobRecord, ResultRecord, EventRecord, StateRecord))}


class Store(Protocol):
    """Where a client keeps its jobs."""

    async def open(self) -> None:
        """Open it; raises StoreError."""

    def write(self, ticket: int, records: Sequence[Record]) -> None:
        """Keep the records, together; callbacks tell when."""

    def prune(self, ticket: int, now: float) -> None:
        """Drop what is kept no longer."""

    async def unfinished(self) -> list[Kept]:
        """Return the jobs that have not ended."""

    async def find(self, uuid: str) -> Kept | None:
        """Return one job."""

    async def history(self, limit: int) -> list[HistoryEntry]:
        """Return the newest jobs, the newest first."""

    async def events(self, uuid: str) -> list[tuple[float, bytes]]:
        """Return when what was said of a job, in order."""

    async def close(self) -> None:
        """Write what waits, and close."""


class DiskStore:
    """The store in a folder; arguments as in `Writer`."""

    def __init__(
        self,
        folder: Path,
        durability: Durability,
        settings: ClientSettings,
        *,
        on_committed: Callable[[int], None],
        on_failed: Callable[[int, str], None],
        on_damaged: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._on_committed, self._on_failed = on_committed, on_failed
        self._writer = Writer(
            folder / NAME, SCHEMA, durability, self._kept, self._not_kept, on_damaged=on_damaged
        )
        self._gathering = Gathering(self._commit, patience_s=RESULTS_S)
        self._gathered: list[Record] = []
        self._tickets: list[int] = []
        self._numbers = count(1)
        self._put_as: dict[int, Sequence[int]] = {}

    async def open(self) -> None:
        """Open the file; raises StoreError."""
        await self._writer.open()

    def write(self, ticket: int, records: Sequence[Record]) -> None:
        """Keep the records, together; of a job that is written after a pause it is told before this returns.

        Nobody waits until results are kept: the broker has them, too. So they wait a moment (`RESULTS_S`), and do not join a job
        for which somebody waits. What is written together is one ticket of the `Writer`, ordered by kind: rows of one kind that
        follow each other are one call of SQLite.
        """
        if (
            len(records) == 1
            and type(records[0]) is JobRecord
            and self._gathering.idle
            and self._writer.gathering.idle
        ):
            self._put([ticket], _statements(records[0]), now=True)
            return
        self._tickets.append(ticket)
        self._gathered.extend(records)
        if len(self._gathered) >= BUNCH:
            self._flush(now=True)
            return
        self._gathering.add(patient=_AWAITED.isdisjoint(map(type, records)))

    def _commit(self) -> None:
        self._flush(now=True)

    def _flush(self, *, now: bool = False) -> None:
        self._gathering.clear()
        if not self._tickets:
            return
        records, tickets = self._gathered, self._tickets
        self._gathered, self._tickets = [], []
        if ForgottenRecord not in map(type, records):
            records.sort(key=lambda record: _ORDER[type(record)])
        self._put(tickets, [statement for record in records for statement in _statements(record)], now=now)

    def _put(self, tickets: Sequence[int], statements: Sequence[Statement], *, now: bool = False) -> None:
        """Have the `Writer` keep them, under a number of its own: a job may have overtaken what is patient."""
        number = next(self._numbers)
        self._put_as[number] = tickets
        if now:
            self._writer.gathering.hold()
        self._writer.put([Ticket.of(number, statements)])
        if now:
            self._writer.gathering.finish()

    def _kept(self, number: int) -> None:
        last = 0
        while self._put_as and (first := next(iter(self._put_as))) <= number:
            last = max(last, self._put_as.pop(first)[-1])
        if last:
            self._on_committed(last)

    def _not_kept(self, number: int, reason: str) -> None:
        for ticket in self._put_as.pop(number, ()):
            self._on_failed(ticket, reason)

    def prune(self, ticket: int, now: float) -> None:
        """Drop what is kept no longer."""
        self._flush()
        settings = self._settings
        self._put(
            [ticket],
            [
                (_BY_AGE, (now - settings.kept_s,)),
                (_BY_NUMBER, (settings.kept_jobs,)),
                (_BY_OCTETS, (settings.kept_octets,)),
            ],
        )

    async def unfinished(self) -> list[Kept]:
        """Return the jobs that have not ended, the oldest first."""
        self._flush()
        jobs = await self._writer.read(f"{_COLUMNS} WHERE {_OPEN} ORDER BY j.created_at")
        results = await self._writer.read(
            "SELECT r.uuid, r.worker, r.code, r.entry, r.at FROM results r "
            f"LEFT JOIN states s ON s.uuid = r.uuid WHERE {_OPEN}"
        )
        by_job: dict[str, list[ResultRecord]] = {}
        for row in results:
            by_job.setdefault(row[0], []).append(ResultRecord(*row))
        return [_kept(row, by_job.get(row[0], [])) for row in jobs]

    async def find(self, uuid: str) -> Kept | None:
        """Return one job."""
        self._flush()
        rows = await self._writer.read(_ONE_JOB, (uuid,))
        if not rows:
            return None
        results = await self._writer.read(_ITS_RESULTS, (uuid,))
        return _kept(rows[0], [ResultRecord(*row) for row in results])

    async def history(self, limit: int) -> list[HistoryEntry]:
        """Return the newest jobs, the newest first."""
        self._flush()
        rows = await self._writer.read(_NEWEST, (limit,))
        return [entry_of(_kept(row, ())) for row in rows]

    async def events(self, uuid: str) -> list[tuple[float, bytes]]:
        """Return when what was said of a job, in order."""
        self._flush()
        rows = await self._writer.read("SELECT at, body FROM events WHERE uuid = ? ORDER BY rowid", (uuid,))
        return [(at, body) for at, body in rows]

    async def close(self) -> None:
        """Write what waits, and close."""
        self._flush()
        await self._writer.close()


def select_job(connection: sqlite3.Connection, uuid: str) -> Kept | None:
    """Return a job of a file that another process may write; raises sqlite3.Error."""
    row = connection.execute(_ONE_JOB, (uuid,)).fetchone()
    if row is None:
        return None
    return _kept(row, [ResultRecord(*result) for result in connection.execute(_ITS_RESULTS, (uuid,))])


def select_history(connection: sqlite3.Connection, limit: int) -> list[HistoryEntry]:
    """Return the newest jobs of a file that another process may write; raises sqlite3.Error."""
    return [entry_of(_kept(row, ())) for row in connection.execute(_NEWEST, (limit,))]


def _statements(record: Record) -> list[Statement]:
    if type(record) is JobRecord:
        *begun, body, created_at, deadline = msgspec.structs.astuple(record)
        return [(_JOB, (*begun, blob(body), created_at, deadline))]
    if type(record) is ResultRecord:
        return [(_RESULT, (record.uuid, record.worker, record.code, blob(record.entry), record.at))]
    if type(record) is StateRecord:
        uuid, state, workers, *rest = msgspec.structs.astuple(record)
        return [(_STATE, (uuid, state, msgspec.json.encode(workers).decode(), *rest))]
    if type(record) is EventRecord:
        return [(_EVENT, (record.uuid, record.at, blob(record.body)))]
    return [(statement, (record.uuid,)) for statement in _FORGET]


def _kept(row: Sequence[Any], results: Sequence[ResultRecord]) -> Kept:
    job = JobRecord(*row[:7])
    if row[7] is None:
        return Kept(job, StateRecord(job.uuid, State.NEW.value, (), job.deadline))
    state, workers, *rest = row[7:]
    return Kept(job, StateRecord(job.uuid, state, tuple(msgspec.json.decode(workers)), *rest), tuple(results))


def entry_of(kept: Kept) -> HistoryEntry:
    job, state = kept.job, kept.state
    return HistoryEntry(
        job.uuid,
        job.service,
        job.task,
        job.target,
        state.state,
        state.workers,
        state.code,
        state.error,
        job.created_at,
        state.ended_at,
    )
