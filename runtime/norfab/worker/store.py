"""What a worker keeps on disk: its jobs and their results in SQLite, and which have begun.

Folder: ``worker.sqlite3`` with its companions, and ``begun``. One process at a time uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from specwire.runtime.norfab.store.batch import Statement, blob
from specwire.runtime.norfab.store.database import Durability
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.store.gathering import Gathering
from specwire.runtime.norfab.store.keeper import Ticket
from specwire.runtime.norfab.store.writer import Writer
from specwire.runtime.norfab.worker.mark import BeginningMark, read_mark
from specwire.runtime.norfab.worker.records import (
    BegunRecord,
    DeletedRecord,
    JobRecord,
    Record,
    ResultRecord,
)

DATABASE = "worker.sqlite3"
MARK = "begun"

SCHEMA = (
    """CREATE TABLE job (number INTEGER PRIMARY KEY, uuid TEXT NOT NULL, client BLOB NOT NULL, task TEXT NOT NULL,
    body BLOB NOT NULL, accepted_at REAL NOT NULL, held INTEGER NOT NULL)""",
    """CREATE TABLE result (number INTEGER PRIMARY KEY, body BLOB NOT NULL, ended_at REAL NOT NULL,
    failed INTEGER NOT NULL, fault INTEGER NOT NULL, deleted INTEGER NOT NULL)""",
    "CREATE TABLE begun (one INTEGER PRIMARY KEY, number INTEGER NOT NULL)",
    """CREATE TRIGGER ended AFTER INSERT ON result
    BEGIN UPDATE job SET body = x'' WHERE number = NEW.number; END""",
    """CREATE TRIGGER forgotten AFTER DELETE ON job
    BEGIN DELETE FROM result WHERE number = OLD.number; END""",
)
_JOB = "INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?, ?, ?, ?)"
_RESULT = "INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?, ?)"
_BEGUN = "INSERT OR REPLACE INTO begun VALUES (?, ?)"
_FORGET = "DELETE FROM job WHERE number = ?"

_LOAD_JOBS = "SELECT number, uuid, client, task, body, accepted_at, held FROM job ORDER BY number"
_LOAD_RESULTS = "SELECT number, ended_at, length(body), failed, fault, deleted FROM result"


class WorkerStore:
    """A worker's folder; `open` before anything else, `close` at the end.

    Args:
        folder: made where there is none.
        durability: as for `Writer`.
        on_stored: called on the loop with a ticket: it and all before it that did not fail are durable.
        on_failed: called on the loop with a ticket that was not kept, and the reason.
        on_damaged: called with a sentence when a damaged database was moved aside.
    """

    def __init__(
        self,
        folder: Path,
        durability: Durability,
        *,
        on_stored: Callable[[int], None],
        on_failed: Callable[[int, str], None],
        on_damaged: Callable[[str], None],
    ) -> None:
        self._folder, self._durability = folder, durability
        self._writer = Writer(
            folder / DATABASE, SCHEMA, durability, on_stored, on_failed, on_damaged=on_damaged
        )
        self._mark: BeginningMark | None = None

    @property
    def gathering(self) -> Gathering:
        """When what was written is committed."""
        return self._writer.gathering

    async def open(self) -> tuple[list[Record], int]:
        """Return what is stored, and the number up to which jobs have begun; raises StoreError."""
        await self._writer.open()
        try:
            records = await self._load()
            begun = await self._read_begun(records)
            if self._durability == "process":
                self._mark = BeginningMark(self._folder / MARK, begun)
        except BaseException:
            await self._writer.close()
            raise
        return records, begun

    async def _load(self) -> list[Record]:
        records: list[Record] = [
            JobRecord(number, uuid, client, task, body, accepted_at, bool(held))
            for number, uuid, client, task, body, accepted_at, held in await self._writer.read(_LOAD_JOBS, ())
        ]
        for number, ended_at, octets, failed, fault, deleted in await self._writer.read(_LOAD_RESULTS, ()):
            if deleted:
                records.append(DeletedRecord(number, ended_at))
            else:
                records.append(ResultRecord(number, b"", ended_at, octets, bool(failed), bool(fault)))
        return records

    async def _read_begun(self, records: Sequence[Record]) -> int:
        """Return which jobs have begun; where nothing says it any more, all count as begun: none may run twice."""
        rows = await self._writer.read("SELECT number FROM begun", ())
        known = [number for (number,) in rows]
        marked = read_mark(self._folder / MARK)
        if marked is not None:
            known.append(marked)
        if known:
            return int(max(known))
        return max((record.number for record in records), default=0)

    def write(self, ticket: int, records: Sequence[Record], *, patient: bool = False) -> None:
        """Keep the records, all or none; `patient` as for `Writer.put`."""
        self._writer.put([Ticket.of(ticket, [*map(_statement, records)])], patient=patient)

    def mark(self, number: int) -> None:
        """Note that jobs up to this number have begun."""
        if self._mark is not None:
            self._mark.write(number)

    async def read_result(self, number: int) -> bytes | None:
        """Return the result of a job; None where there is none, or it cannot be read."""
        try:
            rows = await self._writer.read(
                "SELECT body FROM result WHERE number = ? AND NOT deleted", (number,)
            )
        except StoreError:
            return None
        return bytes(rows[0][0]) if rows else None

    async def close(self) -> None:
        """Write what waits, and let another process have the folder."""
        await self._writer.close()
        if self._mark is not None:
            self._mark.close()


def _statement(record: Record) -> Statement:
    if type(record) is JobRecord:
        return _JOB, (
            record.number,
            record.uuid,
            blob(record.client),
            record.task,
            blob(record.body),
            record.accepted_at,
            int(record.held),
        )
    if type(record) is ResultRecord:
        return _RESULT, (
            record.number,
            blob(record.body),
            record.ended_at,
            int(record.failed),
            int(record.fault),
            0,
        )
    if type(record) is DeletedRecord:
        return _RESULT, (record.number, bytearray(), record.at, 0, 0, 1)
    if type(record) is BegunRecord:
        return _BEGUN, (1, record.number)
    return _FORGET, (record.number,)
