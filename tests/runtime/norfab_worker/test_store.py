"""Durable store of a worker, with real files."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Literal

import pytest

from specwire.runtime.kernel.store import Failure, StoreInUseError
from specwire.runtime.norfab.worker.records import (
    BegunRecord,
    DeletedRecord,
    ForgottenRecord,
    JobRecord,
    Record,
    ResultRecord,
)
from specwire.runtime.norfab.worker.store import NAME, WorkerStore


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, which has half a minute."""
    asyncio.run(asyncio.wait_for(story(), 30))


class Opened:
    """A store that is open."""

    def __init__(self, store: WorkerStore, records: list[Record], begun: int) -> None:
        self.store, self.records, self.begun = store, records, begun
        self.ticket = 0
        self.failed: dict[int, str] = {}
        self.durable = asyncio.Event()
        self.stored = 0

    async def write(self, *records: Record) -> None:
        """Keep records, and wait until they are durable, or cannot be."""
        self.ticket += 1
        self.durable.clear()
        self.store.write(self.ticket, records)
        while self.stored < self.ticket and self.ticket not in self.failed:
            await self.durable.wait()
            self.durable.clear()

    def note(self, last: int, failures: Sequence[Failure]) -> None:
        """Note the outcome of an attempt to commit."""
        self.stored = last
        self.failed |= dict(failures)
        self.durable.set()


@asynccontextmanager
async def opened(
    folder: Path, durability: Literal["process", "full"] = "process", damage: list[str] | None = None
) -> AsyncIterator[Opened]:
    """Open a store."""
    found: list[Opened] = []
    store = WorkerStore(
        folder,
        durability,
        on_committed=lambda last, failures: found[0].note(last, failures),
        on_notice=(damage if damage is not None else []).append,
    )
    records, begun = await store.open()
    found.append(Opened(store, records, begun))
    try:
        yield found[0]
    finally:
        await store.close()


def a_job(number: int, body: bytes = b'{"task":"add"}', *, held: bool = False) -> JobRecord:
    """Return the record of a job."""
    return JobRecord(number, f"uuid{number}", b"\xff\x00client", "add", body, 1000.25 + number, held)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as first:
            assert (first.records, first.begun) == ([], 0)
            await first.write(a_job(1))
            await first.write(a_job(2), a_job(3, held=True))
            await first.write(ResultRecord(1, b'{"w1":{}}', 2000.5, 9, True, True))
            await first.write(DeletedRecord(2, 2001.5))
            await first.write(BegunRecord(2))
            assert await first.store.read_result(1) == b'{"w1":{}}'
            assert await first.store.read_result(2) is None
            assert await first.store.read_result(99) is None
        async with opened(tmp_path) as second:
            assert second.begun == 2
            assert second.records == [
                a_job(1, b""),  # the body of an ended job is of no use any more
                a_job(2, b""),
                a_job(3, held=True),
                ResultRecord(1, b"", 2000.5, 9, True, True),
                DeletedRecord(2, 2001.5),
            ]
            await second.write(ForgottenRecord(1), ForgottenRecord(2))
            assert await second.store.read_result(1) is None
        async with opened(tmp_path) as third:
            assert third.records == [a_job(3, held=True)]

    run(story)


@pytest.mark.parametrize("durability", ["process", "full"])
def test_beginnings_are_in_the_database(tmp_path: Path, durability: Literal["process", "full"]) -> None:
    async def story() -> None:
        async with opened(tmp_path, durability) as first:
            await first.write(a_job(1), BegunRecord(1))
            await first.write(a_job(2), a_job(3))
            await first.write(BegunRecord(2))
        async with opened(tmp_path, durability) as second:
            assert second.begun == 2

    run(story)


def test_if_it_is_lost_what_has_begun_all_has(tmp_path: Path) -> None:
    """None may run twice."""

    async def story() -> None:
        async with opened(tmp_path) as first:
            await first.write(a_job(1), a_job(2), a_job(3))
            await first.write(BegunRecord(1))
        with closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as database:
            database.execute("DELETE FROM begun")
        async with opened(tmp_path) as second:
            assert second.begun == 3

    run(story)


def test_a_deletion_is_final(tmp_path: Path) -> None:
    """A result that was queued behind it does not replace it."""

    async def story() -> None:
        async with opened(tmp_path) as first:
            await first.write(a_job(1))
            await first.write(DeletedRecord(1, 2000.5))
            await first.write(ResultRecord(1, b"{}", 2001.5, 2, False, False))
            assert await first.store.read_result(1) is None
        async with opened(tmp_path) as second:
            assert second.records == [a_job(1, b""), DeletedRecord(1, 2000.5)]

    run(story)


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path):
            with pytest.raises(StoreInUseError, match="in use by process"):
                async with opened(tmp_path):
                    pass
        async with opened(tmp_path):
            pass

    run(story)


def test_a_damaged_database_is_replaced_and_reported(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as first:
            await first.write(a_job(1), BegunRecord(1))
        (tmp_path / NAME).write_bytes(b"no database at all" * 100)
        notices: list[str] = []
        async with opened(tmp_path, damage=notices) as second:
            assert second.records == []
            await second.write(a_job(2))
        assert len(notices) == 1 and "damaged" in notices[0]
        assert list(tmp_path.glob(NAME + ".damaged-*"))

    run(story)


def test_a_record_that_cannot_be_kept_is_told_with_its_ticket(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as first:
            await first.write(a_job(1 << 70))
            assert list(first.failed) == [1]
            await first.write(a_job(1))
            assert first.stored == 2

    run(story)


def test_the_tables_are_as_a_person_would_ask_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as first:
            await first.write(a_job(1))
            await first.write(ResultRecord(1, b"{}", 5.0, 2, False, False))
        with sqlite3.connect(tmp_path / NAME) as database:
            rows = database.execute(
                "SELECT uuid, task, failed, length(job.body) FROM job JOIN result USING (number)"
            ).fetchall()
        assert rows == [("uuid1", "add", 0, 0)]

    run(story)
