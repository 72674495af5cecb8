"""What a worker keeps on disk, with real files."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from specwire.runtime.norfab.store.errors import StoreInUseError
from specwire.runtime.norfab.worker.mark import OCTETS, BeginningMark, read_mark
from specwire.runtime.norfab.worker.records import (
    BegunRecord,
    DeletedRecord,
    ForgottenRecord,
    JobRecord,
    Record,
    ResultRecord,
)
from specwire.runtime.norfab.worker.store import DATABASE, MARK, WorkerStore


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

    def note(self, ticket: int) -> None:
        """The store says that all up to `ticket` is durable."""
        self.stored = ticket
        self.durable.set()

    def fail(self, ticket: int, reason: str) -> None:
        """The store says that `ticket` was not kept."""
        self.failed[ticket] = reason
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
        on_stored=lambda ticket: found[0].note(ticket),
        on_failed=lambda ticket, reason: found[0].fail(ticket, reason),
        on_damaged=(damage if damage is not None else []).append,
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
            first.store.mark(2)
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


def test_with_full_durability_beginnings_are_in_the_database(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path, "full") as first:
            await first.write(a_job(1), a_job(2))
            await first.write(BegunRecord(1))
            await first.write(BegunRecord(2))
        assert not (tmp_path / MARK).exists()
        async with opened(tmp_path, "full") as second:
            assert second.begun == 2
        async with opened(tmp_path, "process") as third:
            assert third.begun == 2
            third.store.mark(7)
        async with opened(tmp_path, "full") as fourth:
            assert fourth.begun == 7

    run(story)


@pytest.mark.parametrize("harm", ["gone", "empty", "torn", "long"])
def test_where_nothing_says_what_has_begun_all_has(tmp_path: Path, harm: str) -> None:
    """None may run twice."""

    async def story() -> None:
        async with opened(tmp_path) as first:
            await first.write(a_job(1), a_job(2), a_job(3))
            first.store.mark(1)
        mark = tmp_path / MARK
        if harm == "gone":
            mark.unlink()
        else:
            mark.write_bytes({"empty": b"", "torn": os.urandom(OCTETS), "long": b"\0" * 99}[harm])
        async with opened(tmp_path) as second:
            assert second.begun == 3

    run(story)


def test_a_process_that_is_killed_while_it_marks_leaves_the_mark_before(tmp_path: Path) -> None:
    file = tmp_path / "begun"
    mark = BeginningMark(file, 0)
    for number in range(1, 6):
        mark.write(number)
        assert read_mark(file) == number
    mark.close()
    octets = file.read_bytes()
    newer = 0 if struct.unpack("<Q", octets[:8])[0] == 5 else 16
    for torn in range(1, 16):
        file.write_bytes(octets[:newer] + bytes(torn) + octets[newer + torn :])
        assert read_mark(file) in (4, 5)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_mark_goes_on_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "begun"
    mark = BeginningMark(file, 0)
    mark.write(9)
    mark.close()
    again = BeginningMark(file, 9)
    assert read_mark(file) == 9
    again.close()


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path):
            with pytest.raises(StoreInUseError, match="in use by process"):
                async with opened(tmp_path):
                    pass
        async with opened(tmp_path):
            pass

    run(story)


def test_a_damaged_database_is_moved_aside_and_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as first:
            await first.write(a_job(1))
            first.store.mark(1)
        (tmp_path / DATABASE).write_bytes(b"no database at all" * 100)
        told: list[str] = []
        async with opened(tmp_path, damage=told) as second:
            assert second.records == []
            assert second.begun == 1  # new jobs are numbered from here
            await second.write(a_job(2))
        assert len(told) == 1 and "damaged" in told[0]
        assert list(tmp_path.glob(DATABASE + ".damaged-*"))

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
        with sqlite3.connect(tmp_path / DATABASE) as database:
            rows = database.execute(
                "SELECT uuid, task, failed, length(job.body) FROM job JOIN result USING (number)"
            ).fetchall()
        assert rows == [("uuid1", "add", 0, 0)]

    run(story)
