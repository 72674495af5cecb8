"""What a broker keeps: every record of its engine, in the order of writing, until the engine forgets the job.

There is one table, and every record is a row of it, so that writing costs one statement for many jobs. The number of a row
is that of its job (they count up) and that of the record in its job: rows of a job are neighbours, the rows that come are
at the end of the file, and those that retention takes away at its beginning.

Retention by age and number is the engine's: it sends `ForgottenRecord`. What it does not count is the history (`EventRecord`):
where the file grows beyond `limit_octets` the history of the oldest jobs is dropped, and never anything else.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from specwire.runtime.norfab.actions import Store
from specwire.runtime.norfab.records import AssignedRecord, ForgottenRecord, HeldResult, JobRecord
from specwire.runtime.norfab.store.batch import Statement
from specwire.runtime.norfab.store.database import Durability
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.store.gathering import Gathering
from specwire.runtime.norfab.store.keeper import Rows, Ticket
from specwire.runtime.norfab.store.rows import (
    BODY,
    EVENT,
    INSERT,
    OCTETS,
    REPLACING,
    SCHEMA,
    SELECT,
    SELECT_BODY,
    Stored,
    make_row,
    read_row,
)
from specwire.runtime.norfab.store.writer import Writer

logger = logging.getLogger(__name__)

NAME = "broker.sqlite3"
LIMIT_OCTETS = 8 << 30
ROWS = 2000
"""Rows that are read at a time."""

PART_BITS = 20
"""A job has fewer records than 2 to this power: its parts, attempts and history are bounded by `limits.Settings`."""

FREED_PAGES = 2000
"""Pages of deleted records that are given back to the system at a time."""

HISTORY_ROWS = 20_000
_DELETE = "DELETE FROM record WHERE number BETWEEN ? AND ?"
_TAKE_OVER = "INSERT OR IGNORE INTO record"
_DROP_HISTORY = (
    "DELETE FROM record WHERE number IN (SELECT number FROM record WHERE kind = ? ORDER BY number LIMIT ?)"
)


class BrokerStore:
    """The records of one broker; `open` and `load` before anything else, `close` at the end.

    Args:
        folder: where the database is, or will be made.
        durability: see `Writer`.
        on_stored, on_failed: see `Writer`.
        on_damaged: called with a sentence where a damaged database was moved aside; without it the log tells.
        limit_octets: size of the database beyond which history is dropped.
    """

    def __init__(
        self,
        folder: Path,
        durability: Durability = "process",
        *,
        on_stored: Callable[[int], None] = lambda ticket: None,
        on_failed: Callable[[int, str], None] = lambda ticket, reason: None,
        on_damaged: Callable[[str], None] | None = None,
        limit_octets: int = LIMIT_OCTETS,
    ) -> None:
        self.path = folder / NAME
        self._limit = limit_octets
        self._next: dict[str, int] = {}
        self._jobs = 0
        self._taken_over: Path | None = None
        self._writer = Writer(
            self.path,
            SCHEMA,
            durability,
            on_stored,
            on_failed,
            on_damaged=on_damaged or logger.warning,
            salvage=self._salvage,
        )

    @property
    def gathering(self) -> Gathering:
        """When what was written is committed."""
        return self._writer.gathering

    @property
    def waiting(self) -> int:
        """Tickets that wait for the disk."""
        return self._writer.waiting

    @property
    def commits(self) -> int:
        """Commits so far."""
        return self._writer.commits

    async def open(self) -> None:
        """Open the database; raises StoreError."""
        await self._writer.open()

    async def close(self) -> None:
        """Write what waits, and close."""
        await self._writer.close()

    async def load(self) -> list[Stored]:
        """Return what was kept, in the order that matters: that of the records of each job.

        History is left out, and so are the bodies of results, and of jobs that have ended, which nobody will run again.

        Raises:
            StoreError: the database cannot be read.
        """
        try:
            return await self._load()
        except StoreError:
            if self._writer.moved_aside == self._taken_over:
                raise
        return await self._load()  # it was damaged, and is a new one now

    async def _load(self) -> list[Stored]:
        await self._take_over(living=False)
        kept: list[Stored] = []
        last, whole = -1, False
        rows: Rows = []
        while not whole:
            more = await self._writer.read(SELECT, (last, ROWS))
            whole = not more
            last = more[-1][0] if more else last
            *jobs, rows = [[*job] for _, job in groupby(rows + more, key=_job_of)] or [[]]
            for job in [*jobs, rows] if whole else jobs:  # the last one may go on in the next rows
                kept += without_body([*self._read(job)])
        self._jobs = max(self._jobs, (last >> PART_BITS) + 1)
        return kept

    def write(self, stores: Iterable[Store]) -> None:
        """Have the records of each kept together; returns at once."""
        tickets: list[Ticket] = []
        for store in stores:
            try:
                tickets.append(self._make_ticket(store))
            except Exception as error:  # a fault of ours, which costs no other one
                logger.exception("a record could not be written down")
                self._writer.refuse(store.ticket, f"a fault of the store: {error!r}")
        if tickets:
            self._writer.put(tickets)

    def _make_ticket(self, store: Store) -> Ticket:
        statements: list[Statement] = []
        octets = others = 0
        for record in store.records:
            if type(record) in REPLACING:
                deletions = self._delete(record.uuid)
                statements += deletions
                others += len(deletions)
                if type(record) is ForgottenRecord:
                    continue
            row = make_row(self._place(record.uuid), record)
            octets += len(row[OCTETS]) + len(row[BODY] or b"")
            statements.append((INSERT, row))
        return Ticket(store.ticket, statements, octets, others)

    async def fetch(self, uuid: str, slot: str) -> bytes | None:
        """Return the body of a result, None where the store does not have it, or cannot read it."""
        number = self._next.get(uuid)
        if number is None:
            return None
        try:
            rows = await self._writer.read(SELECT_BODY, (*_range_of(number), slot))
        except StoreError as error:
            logger.warning("the result of %s at %s cannot be read: %s", uuid, slot, error)
            return None
        return bytes(rows[0][0]) if rows and rows[0][0] is not None else None

    async def tend(self) -> None:
        """Give room back to the system, drop history where the file is too large, and take over what was damaged.

        To be called now and then.

        Raises:
            StoreError: the database cannot be read or written.
        """
        await self._take_over(living=True)
        [(page,)], [(pages,)], [(free,)] = [
            await self._writer.read(f"PRAGMA {name}")
            for name in ("page_size", "page_count", "freelist_count")
        ]
        if (pages - free) * page > self._limit:
            await self._writer.read(_DROP_HISTORY, (EVENT, HISTORY_ROWS))
        if free > pages // 4:
            await self._writer.shrink(FREED_PAGES)

    def _place(self, uuid: str) -> int:
        number = self._next.get(uuid)
        if number is None:
            number = self._jobs << PART_BITS
            self._jobs += 1
        self._next[uuid] = number + 1
        return number

    def _delete(self, uuid: str) -> list[Statement]:
        number = self._next.pop(uuid, None)
        if number is None:
            return []
        return [(_DELETE, _range_of(number))]

    def _read(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[Stored]:
        for row in rows:
            try:
                record = read_row(row)
            except ValueError as error:
                logger.warning("a record in %s is left out, it cannot be read: %s", self.path, error)
                continue
            self._next[record.uuid] = max(self._next.get(record.uuid, 0), row[0] + 1)
            yield record

    def _salvage(self, aside: Path) -> list[Statement]:
        self._taken_over = aside
        rows = salvage(aside)
        logger.warning("%d records are taken over from %s", len(rows), aside)
        return [(f"{_TAKE_OVER} VALUES (?, ?, ?, ?, ?)", row) for row in rows]

    async def _take_over(self, *, living: bool) -> None:
        """Take what can be read from a database that was damaged into the new one, once.

        Args:
            living: only what belongs to a job that is known: others were deleted meanwhile, and must not come back.
        """
        aside = self._writer.moved_aside
        if aside is None or aside == self._taken_over:
            return
        self._taken_over = aside
        taken = await asyncio.to_thread(salvage, aside)
        if living:
            known = {number >> PART_BITS for number in self._next.values()}
            taken = [row for row in taken if _job_of(row) in known]
        for at in range(0, len(taken), ROWS):
            rows = ", ".join(["(?, ?, ?, ?, ?)"] * len(taken[at : at + ROWS]))
            values = [value for row in taken[at : at + ROWS] for value in row]
            await self._writer.read(f"{_TAKE_OVER} VALUES {rows}", values)
        logger.warning("%d records were taken over from %s", len(taken), aside)


def _job_of(row: tuple[Any, ...]) -> int:
    number: int = row[0]
    return number >> PART_BITS


def _range_of(number: int) -> tuple[int, int]:
    """Return the first and the last number of the job that has this one."""
    first = number >> PART_BITS << PART_BITS
    return first, first + (1 << PART_BITS) - 1


def without_body(records: list[Stored]) -> list[Stored]:
    """Return the records of one job, without its body where every part has a result."""
    slots = {
        part.slot
        for record in records
        if isinstance(record, JobRecord | AssignedRecord)
        for part in record.tasks
    }
    ended = {record.slot for record in records if isinstance(record, HeldResult)}
    if not ended or slots - ended:
        return records
    return [
        msgspec.structs.replace(record, body=b"") if isinstance(record, JobRecord) else record
        for record in records
    ]


def salvage(aside: Path) -> list[tuple[Any, ...]]:
    """Return the rows of a damaged database that can be read: from its beginning, and from its end backwards."""
    found: dict[int, tuple[Any, ...]] = {}
    for order in ("ASC", "DESC"):
        try:
            with closing(sqlite3.connect(f"{aside.as_uri()}?mode=ro", uri=True)) as connection:
                rows = connection.execute(
                    f"SELECT * FROM record WHERE kind <> ? ORDER BY number {order}", (EVENT,)
                )
                for row in rows:
                    if row[0] in found:
                        break
                    found[row[0]] = row
        except (sqlite3.Error, UnicodeError):
            continue
    return [found[number] for number in sorted(found)]
