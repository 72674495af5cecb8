"""Durable store of a worker: its jobs, their results, and which jobs have begun, in ``worker.sqlite3``.

One process at a time uses the folder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from specwire.runtime.kernel.store import (
    Durability,
    Execute,
    Failure,
    Insert,
    Schema,
    Statement,
    Store,
    StoreError,
)
from specwire.runtime.norfab.migration import upgrade_worker
from specwire.runtime.norfab.worker.records import (
    BegunRecord,
    DeletedRecord,
    JobRecord,
    Record,
    ResultRecord,
)

logger = logging.getLogger(__name__)

NAME = "worker.sqlite3"

SCHEMA = Schema(
    version=2,
    statements=(
        """CREATE TABLE job (number INTEGER PRIMARY KEY, uuid TEXT NOT NULL, client BLOB NOT NULL,
        task TEXT NOT NULL, body BLOB NOT NULL, accepted_at REAL NOT NULL, held INTEGER NOT NULL)""",
        """CREATE TABLE result (number INTEGER PRIMARY KEY, body BLOB NOT NULL, ended_at REAL NOT NULL,
        failed INTEGER NOT NULL, fault INTEGER NOT NULL, deleted INTEGER NOT NULL)""",
        "CREATE TABLE begun (one INTEGER PRIMARY KEY, number INTEGER NOT NULL)",
        """CREATE TRIGGER ended AFTER INSERT ON result
        BEGIN UPDATE job SET body = x'' WHERE number = NEW.number; END""",
        """CREATE TRIGGER forgotten AFTER DELETE ON job
        BEGIN DELETE FROM result WHERE number = OLD.number; END""",
    ),
    upgrades={1: upgrade_worker},
)

_JOB = "INSERT OR REPLACE INTO job VALUES"
_DELETED = "INSERT OR REPLACE INTO result VALUES"
_RESULT = "INSERT INTO result VALUES (?, ?, ?, ?, ?, 0) ON CONFLICT (number) DO NOTHING"
"""A deletion that was committed before the result is final."""
_BEGUN = "INSERT OR REPLACE INTO begun VALUES"
_FORGET = "DELETE FROM job WHERE number = ?"

_LOAD_JOBS = "SELECT number, uuid, client, task, body, accepted_at, held FROM job ORDER BY number"
_LOAD_RESULTS = "SELECT number, ended_at, length(body), failed, fault, deleted FROM result"


class WorkerStore:
    """Store in a worker's folder; `open` comes first, `close` last.

    Args:
        folder: created if necessary.
        on_committed: see `Store`.
        options: the other arguments of `Store`.
    """

    def __init__(
        self,
        folder: Path,
        durability: Durability,
        *,
        on_committed: Callable[[int, Sequence[Failure]], None],
        **options: Any,
    ) -> None:
        self.store = Store(folder / NAME, SCHEMA, durability, on_committed=on_committed, **options)

    async def open(self) -> tuple[list[Record], int]:
        """Return what is stored, and the number up to which jobs have begun; raises StoreError."""
        await self.store.open()
        try:
            records = await self._load()
            return records, await self._read_begun(records)
        except BaseException:
            await self.store.close()
            raise

    async def _load(self) -> list[Record]:
        records: list[Record] = [
            JobRecord(number, uuid, bytes(client), task, bytes(body), accepted_at, bool(held))
            for number, uuid, client, task, body, accepted_at, held in await self.store.read(_LOAD_JOBS)
        ]
        for number, ended_at, octets, failed, fault, deleted in await self.store.read(_LOAD_RESULTS):
            if deleted:
                records.append(DeletedRecord(number, ended_at))
            else:
                records.append(ResultRecord(number, b"", ended_at, octets, bool(failed), bool(fault)))
        return records

    async def _read_begun(self, records: Sequence[Record]) -> int:
        """Return which jobs have begun. If that is lost, all count as begun: none may run twice."""
        rows = await self.store.read("SELECT number FROM begun")
        if rows:
            return int(rows[0][0])
        return max((record.number for record in records), default=0)

    def write(self, ticket: int, records: Sequence[Record], *, refusable: bool = False) -> None:
        """Queue the records of one commit; see `Store.put`."""
        self.store.put(ticket, [_statement(record) for record in records], refusable=refusable)

    async def read_result(self, number: int) -> bytes | None:
        """Return the result of a job; None if there is none, or it cannot be read."""
        try:
            rows = await self.store.read(
                "SELECT body FROM result WHERE number = ? AND NOT deleted", (number,)
            )
        except StoreError as error:
            logger.warning("a result cannot be read: %s", error)
            return None
        return bytes(rows[0][0]) if rows else None

    async def close(self) -> None:
        """Commit what is queued, and let another process use the folder."""
        await self.store.close()


def _statement(record: Record) -> Statement:
    match record:
        case JobRecord():
            return Insert(
                _JOB,
                (
                    record.number,
                    record.uuid,
                    record.client,
                    record.task,
                    record.body,
                    record.accepted_at,
                    int(record.held),
                ),
            )
        case ResultRecord():
            row = (record.number, record.body, record.ended_at, int(record.failed), int(record.fault))
            return Execute(_RESULT, row)
        case DeletedRecord():
            return Insert(_DELETED, (record.number, b"", record.at, 0, 0, 1))
        case BegunRecord():
            return Insert(_BEGUN, (1, record.number))
        case _:
            return Execute(_FORGET, (record.number,))
