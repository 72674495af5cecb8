"""Store of a broker: records are loaded as they were written, and retention and size limits delete the right ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.kernel.store import Failure
from specwire.runtime.norfab import brokerstore
from specwire.runtime.norfab.brokerstore import NAME, BrokerStore, find_unfinished
from specwire.runtime.norfab.records import (
    AssignedRecord,
    DeletedRecord,
    EventRecord,
    ForgottenRecord,
    HeldResult,
    JobRecord,
    Record,
    ResultRecord,
    TaskRecord,
    WorkerRecord,
    worker_key,
)
from specwire.runtime.norfab.rows import Stored


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, for a minute at most."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(bounded())


def fail_on(last: int, failures: Sequence[Failure]) -> None:
    """Accept no failure, where a test expects none."""
    assert not failures, failures


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[BrokerStore]:
    """Open a store, and close it."""
    store = BrokerStore(folder, **{"on_committed": fail_on} | settings)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def job(uuid: str, *slots: str, body: bytes = b"{}") -> JobRecord:
    """Return the record of a job whose client's routing id is no text."""
    parts = tuple(TaskRecord(slot, slot, 1) for slot in slots)
    return JobRecord(uuid, b"c\xff\x00", "ada", "svc", "all", body, 1.5, 2.5, parts)


async def written(folder: Path, records: Sequence[Record], **settings: Any) -> None:
    """Write records, each in a commit of its own, in one run of a store."""
    async with opened(folder, **settings) as store:
        await store.load()
        for ticket, record in enumerate(records, 1):
            store.write([Commit(ticket, (record,))])


async def loaded(folder: Path) -> list[Stored]:
    """Return what another run finds."""
    async with opened(folder) as store:
        return await store.load()


def test_records_are_loaded_in_the_order_of_writing_without_history(tmp_path: Path) -> None:
    records: list[Record] = [
        job("a", "w1", "w2"),
        job("b"),
        ResultRecord("a", "w1", 200, b"\x00\xff", 3.25),
        EventRecord("a", 3.0, b"{}"),
        AssignedRecord("b", (TaskRecord("w1", "w2", 2),)),
    ]

    async def story() -> None:
        await written(tmp_path, records)
        result = HeldResult("a", "w1", 200, 2, 3.25)
        assert await loaded(tmp_path) == [records[0], records[1], result, records[4]]

    run(story)


def test_a_record_after_history_and_a_restart_takes_nobodys_place(tmp_path: Path) -> None:
    """Version 0.1 numbered rows in memory, did not count history after a restart, and lost this result."""

    async def story() -> None:
        events = [EventRecord("a", 3.0, b"%d" % number) for number in range(5)]
        await written(tmp_path, [job("a", "w1"), *events])
        await written(tmp_path, [ResultRecord("a", "w1", 200, b"done", 4.0), EventRecord("a", 4.0, b"last")])
        assert await loaded(tmp_path) == [job("a", "w1", body=b""), HeldResult("a", "w1", 200, 4, 4.0)]
        async with opened(tmp_path) as store:
            assert await store.fetch("a", "w1") == b"done"
            rows = await store.store.read("SELECT count(*) FROM record")
            assert rows == [(1 + 5 + 2,)]

    run(story)


def test_forgotten_jobs_leave_nothing_and_deleted_ones_their_uuid(tmp_path: Path) -> None:
    async def story() -> None:
        gone: list[Record] = [ResultRecord("a", "w1", 200, b"1", 3.0), ForgottenRecord("a", "age")]
        deleted = DeletedRecord("b", "svc", 4.0)
        await written(tmp_path, [job("a", "w1"), job("b", "w1"), job("c", "w1"), *gone])
        await written(tmp_path, [deleted])
        assert await loaded(tmp_path) == [job("c", "w1"), deleted]
        await written(tmp_path, [ForgottenRecord("b", "number"), ForgottenRecord("unknown", "age")])
        assert await loaded(tmp_path) == [job("c", "w1")]

    run(story)


@pytest.mark.parametrize("rows", [1, 2, 3, 2000])
def test_only_bodies_of_unfinished_jobs_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """However few rows are read at a time."""
    monkeypatch.setattr(brokerstore, "ROWS", rows)

    async def story() -> None:
        records: list[Record] = []
        for name in "abcd":
            records += [job(name, "w1", "w2", body=name.encode())]
            records += [ResultRecord(name, slot, 200, b"", 3.0) for slot in ("w1", "w2")]
        await written(tmp_path, [*records, job("e", body=b"e"), job("f", "w1", body=b"f")])
        bodies = {
            record.uuid: record.body for record in await loaded(tmp_path) if isinstance(record, JobRecord)
        }
        assert bodies == {"a": b"", "b": b"", "c": b"", "d": b"", "e": b"e", "f": b"f"}

    run(story)


def test_a_job_is_unfinished_while_a_part_has_no_result() -> None:
    one = HeldResult("a", "w1", 200, 1, 3.0)
    assert find_unfinished([job("a", "w1", "w2"), one]) == {"a"}
    assert find_unfinished([job("a", "w1"), one]) == set()
    assert find_unfinished([job("a")]) == {"a"}
    assert find_unfinished([job("a"), AssignedRecord("a", (TaskRecord("w1", "w1", 1),)), one]) == set()


def test_history_is_deleted_where_the_file_is_too_large(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path, limit_octets=1 << 20) as store:
            store.write([Commit(1, (job("a", "w1"), ResultRecord("a", "w1", 200, b"1", 3.0)))])
            store.write([Commit(2, tuple(EventRecord("a", 1.0, os.urandom(10_000)) for _ in range(400)))])
        before = (tmp_path / NAME).stat().st_size
        async with opened(tmp_path, limit_octets=1 << 20) as store:
            for _ in range(5):
                await store.tend()
        assert (tmp_path / NAME).stat().st_size < min(before, 1 << 20)
        assert await loaded(tmp_path) == [job("a", "w1", body=b""), HeldResult("a", "w1", 200, 1, 3.0)]

    run(story)


def test_jobs_of_a_damaged_file_are_loaded_except_those_in_the_damage(tmp_path: Path) -> None:
    notices: list[str] = []

    async def story() -> None:
        await written(tmp_path, [job(f"j{number}", "w1", body=bytes(500)) for number in range(2000)])
        octets = bytearray((tmp_path / NAME).read_bytes())
        middle = len(octets) // 3 // 4096 * 4096
        octets[middle : middle + 8192] = os.urandom(8192)
        (tmp_path / NAME).write_bytes(octets)
        async with opened(tmp_path, on_notice=notices.append) as store:
            found = [record.uuid for record in await store.load()]
            assert found[0] == "j0"
            assert found[-1] == "j1999"
            assert 1500 < len(found) < 2000
            store.write([Commit(1, (job("new", "w1"),))])
        assert len(notices) == 1
        assert [record.uuid for record in await loaded(tmp_path)] == [*found, "new"]

    run(story)


def test_a_record_that_cannot_be_read_is_reported_and_stays(tmp_path: Path) -> None:
    """It does not keep a broker from starting, and nothing deletes it."""
    notices: list[str] = []

    async def story() -> None:
        await written(tmp_path, [job("a"), job("b")])
        async with opened(tmp_path, on_notice=notices.append) as store:
            await store.store.call(lambda c: c.execute("UPDATE record SET octets = x'c1' WHERE uuid = 'a'"))
            assert await store.load() == [job("b")]
            assert await store.store.read("SELECT count(*) FROM record") == [(2,)]
        assert len(notices) == 1
        assert "record 1 is damaged" in notices[0]

    run(story)


def test_a_record_that_cannot_be_encoded_fails_alone(tmp_path: Path) -> None:
    outcomes: list[tuple[int, list[int]]] = []

    def note(last: int, failures: Sequence[Failure]) -> None:
        outcomes.append((last, [failure.ticket for failure in failures]))

    async def story() -> None:
        async with opened(tmp_path, on_committed=note) as store:
            commits = [Commit(1, (job("a"),)), Commit(2, (job("\udc80"),)), Commit(3, (job("c"),))]
            store.write(commits)
        assert [failed for _, failed in outcomes if failed] == [[2]]
        assert outcomes[-1][0] == 3
        assert await loaded(tmp_path) == [job("a"), job("c")]

    run(story)


def test_the_last_result_of_a_part_is_fetched(tmp_path: Path) -> None:
    async def story() -> None:
        results = [ResultRecord("a", slot, 200, slot.encode() * 100_000, 3.0) for slot in ("w1", "w2")]
        await written(tmp_path, [job("a", "w1", "w2"), *results, job("b", "w1")])
        async with opened(tmp_path) as store:
            store.write([Commit(1, (ResultRecord("a", "w1", 200, b"\x00later", 4.0),))])
            assert await store.fetch("a", "w1") == b"\x00later"
            assert await store.fetch("a", "w2") == b"w2" * 100_000
            assert await store.fetch("a", "w3") is None
            assert await store.fetch("b", "w1") is None
            assert await store.fetch("c", "w1") is None

    run(story)


def test_a_worker_is_stored_once_until_it_leaves(tmp_path: Path) -> None:
    async def story() -> None:
        here, moved = (
            WorkerRecord(worker_key("w1"), "w1", "svc"),
            WorkerRecord(worker_key("w1"), "w1", "other"),
        )
        left = WorkerRecord(worker_key("w2"), "w2", "svc")
        await written(tmp_path, [here, left, ForgottenRecord(left.uuid, "left"), moved])
        assert await loaded(tmp_path) == [moved]

    run(story)
