"""Durable store of a broker: every record of its engine, in the order of writing, until the engine forgets the job.

Retention by age and number is the engine's: it emits `ForgottenRecord`. It does not count the history of jobs (`EventRecord`):
where the file grows beyond `limit_octets`, the oldest history is deleted, and never anything else.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from specwire.runtime.kernel.commits import Commit
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
from specwire.runtime.norfab.migration import upgrade_broker
from specwire.runtime.norfab.records import (
    AssignedRecord,
    DeletedRecord,
    ForgottenRecord,
    HeldResult,
    JobRecord,
    Record,
    WorkerRecord,
)
from specwire.runtime.norfab.rows import (
    EVENT,
    INSERT,
    JOB,
    RESULT,
    SCHEMA_STATEMENTS,
    SELECT,
    Stored,
    make_row,
    read_row,
)

logger = logging.getLogger(__name__)

NAME = "broker.sqlite3"
SCHEMA = Schema(version=2, statements=SCHEMA_STATEMENTS, upgrades={1: upgrade_broker})
LIMIT_OCTETS = 8 << 30

ROWS = 2000
"""Rows that are read at a time."""

FREED_PAGES = 2000
"""Pages of deleted records that are returned to the file system at a time."""

HISTORY_ROWS = 20_000
"""Rows of history that are deleted at a time."""

_REPLACING = (DeletedRecord, WorkerRecord)
"""Records that replace everything written before for their uuid."""

_DELETE = "DELETE FROM record WHERE uuid = ?"
_RESULT_BODY = "SELECT body FROM record WHERE uuid = ? AND kind = ? AND slot = ? ORDER BY number DESC LIMIT 1"
_JOB_BODIES = "SELECT uuid, body FROM record WHERE kind = ? AND uuid IN"
_DELETE_HISTORY = (
    "DELETE FROM record WHERE number IN (SELECT number FROM record WHERE kind = ? ORDER BY number LIMIT ?)"
)


class BrokerStore:
    """Records of one broker; `open` and `load` come first, `close` last.

    Args:
        folder: contains the database, or will.
        on_committed: see `Store`; with ``last`` 0 for a commit that was never queued.
        on_notice: called with a sentence about something damaged.
        limit_octets: size of the database beyond which history is deleted.
        options: the other arguments of `Store`.
    """

    def __init__(
        self,
        folder: Path,
        durability: Durability = "process",
        *,
        on_committed: Callable[[int, Sequence[Failure]], None],
        on_notice: Callable[[str], None] = logger.warning,
        limit_octets: int = LIMIT_OCTETS,
        **options: Any,
    ) -> None:
        self.store = Store(
            folder / NAME, SCHEMA, durability, on_committed=on_committed, on_notice=on_notice, **options
        )
        self._on_committed, self._on_notice, self._limit = on_committed, on_notice, limit_octets

    async def open(self) -> None:
        """Open the database; raises StoreError."""
        await self.store.open()

    async def close(self) -> None:
        """Commit what is queued, and close."""
        await self.store.close()

    async def load(self) -> list[Stored]:
        """Return the records in the order of writing.

        History is omitted, and so are the bodies of results, and those of jobs that have ended: nobody runs these again.

        Raises:
            StoreError: the database cannot be read.
        """
        records: list[Stored] = []
        last = -1
        while rows := await self.store.read(SELECT, (last, EVENT, ROWS)):
            last = rows[-1][0]
            for row in rows:
                try:
                    records.append(read_row(row))
                except ValueError as error:
                    self._on_notice(f"{self.store.path}: record {row[0]} is damaged, and not used: {error}")
        bodies = await self._read_bodies(sorted(find_unfinished(records)))
        return [
            msgspec.structs.replace(record, body=bodies[record.uuid])
            if isinstance(record, JobRecord) and record.uuid in bodies
            else record
            for record in records
        ]

    async def _read_bodies(self, uuids: Sequence[str]) -> dict[str, bytes]:
        """Return the bodies of jobs."""
        bodies: dict[str, bytes] = {}
        for start in range(0, len(uuids), ROWS):
            part = uuids[start : start + ROWS]
            marks = ", ".join("?" * len(part))
            found = await self.store.read(f"{_JOB_BODIES} ({marks})", (JOB, *part))
            bodies.update((uuid, bytes(body)) for uuid, body in found)
        return bodies

    def write(self, commits: Iterable[Commit]) -> None:
        """Queue the records of each commit; returns at once."""
        for commit in commits:
            try:
                statements = [statement for record in commit.records for statement in _statements(record)]
            except (UnicodeError, TypeError) as error:
                failure = Failure(commit.ticket, f"a record cannot be encoded: {error}")
                asyncio.get_running_loop().call_soon(self._on_committed, 0, (failure,))
            else:
                self.store.put(commit.ticket, statements, refusable=commit.refusable)

    async def fetch(self, uuid: str, slot: str) -> bytes | None:
        """Return the body of a result; None where the store does not have it, or cannot read it."""
        try:
            rows = await self.store.read(_RESULT_BODY, (uuid, RESULT, slot))
        except StoreError as error:
            self._on_notice(f"the result of {uuid} at {slot} cannot be read: {error}")
            return None
        return bytes(rows[0][0]) if rows and rows[0][0] is not None else None

    async def tend(self) -> None:
        """Delete history where the file is too large, and return space to the file system. Call it now and then.

        Raises:
            StoreError: the database cannot be read or written.
        """
        await self.store.call(self._shrink)

    def _shrink(self, connection: sqlite3.Connection) -> None:
        page, pages, free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
        if (pages - free) * page > self._limit:
            connection.execute(_DELETE_HISTORY, (EVENT, HISTORY_ROWS))
        if free > pages // 4:
            connection.executescript(f"PRAGMA incremental_vacuum({FREED_PAGES})")


def _statements(record: Record) -> list[Statement]:
    if isinstance(record, ForgottenRecord):
        return [Execute(_DELETE, (record.uuid,))]
    insert = Insert(INSERT, make_row(record))
    return [Execute(_DELETE, (record.uuid,)), insert] if isinstance(record, _REPLACING) else [insert]


def find_unfinished(records: Iterable[Stored]) -> set[str]:
    """Return the uuids of jobs that have no worker, or a part without a result."""
    slots: dict[str, set[str]] = {}
    results: dict[str, set[str]] = {}
    for record in records:
        if isinstance(record, JobRecord):
            slots[record.uuid], results[record.uuid] = set(), set()
        if isinstance(record, JobRecord | AssignedRecord):
            slots.setdefault(record.uuid, set()).update(part.slot for part in record.tasks)
        elif isinstance(record, HeldResult):
            results.setdefault(record.uuid, set()).add(record.slot)
    return {uuid for uuid, parts in slots.items() if not results.get(uuid) or parts - results[uuid]}
