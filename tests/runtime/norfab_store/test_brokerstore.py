"""What a broker keeps: records come back as they were, retention takes away, damage costs what cannot be read."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab.actions import Store
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
from specwire.runtime.norfab.store import brokerstore
from specwire.runtime.norfab.store.brokerstore import BrokerStore
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.store.rows import Stored
from tests.runtime.norfab_store.stories import as_killed, run


@asynccontextmanager
async def keeping(folder: Path, **settings: Any) -> AsyncIterator[BrokerStore]:
    """Open a store, and close it."""
    store = BrokerStore(folder, **settings)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def job(uuid: str, *slots: str, body: bytes = b"{}") -> JobRecord:
    """Return a job's record, its client no text."""
    parts = tuple(TaskRecord(slot, slot, 1) for slot in slots)
    return JobRecord(uuid, b"c\xff\x00", "ada", "svc", "all", body, 1.5, 2.5, parts)


async def written(folder: Path, records: Sequence[Record], **settings: Any) -> None:
    """Write records, each with a ticket of its own, in a run of a store."""
    async with keeping(folder, **settings) as store:
        await store.load()
        for ticket, record in enumerate(records, 1):
            store.write([Store(ticket, (record,))])


def held(result: Record) -> HeldResult:
    """Return what is told of a result when a broker begins."""
    assert isinstance(result, ResultRecord)
    return HeldResult(result.uuid, result.slot, result.status, len(result.body), result.ended_at)


async def kept(folder: Path) -> list[Stored]:
    """Return what another run finds."""
    async with keeping(folder) as store:
        return await store.load()


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    """Every kind that matters after a restart, job by job in the order of writing, and nothing of the history."""
    records: list[Record] = [
        job("a", "w1", "w2"),
        job("b"),
        ResultRecord("a", "w1", 200, b"\x00\xff", 3.25),
        EventRecord("a", 3.0, b"{}"),
        AssignedRecord("b", (TaskRecord("w1", "w2", 2),)),
    ]

    async def story() -> None:
        await written(tmp_path, records)
        assert await kept(tmp_path) == [records[0], held(records[2]), records[1], records[4]]

    run(story)


def test_runs_follow_each_other(tmp_path: Path) -> None:
    """What a later run adds to a job of an earlier one is kept with it, and new jobs take no old one's place."""

    async def story() -> None:
        await written(tmp_path, [job("a", "w1", "w2")])
        await written(tmp_path, [job("b", "w1"), ResultRecord("a", "w1", 200, b"1", 3.0)])
        await written(tmp_path, [ResultRecord("b", "w1", 200, b"2", 4.0), job("c", "w1")])
        assert await kept(tmp_path) == [
            job("a", "w1", "w2"),
            HeldResult("a", "w1", 200, 1, 3.0),
            job("b", "w1", body=b""),
            HeldResult("b", "w1", 200, 1, 4.0),
            job("c", "w1"),
        ]

    run(story)


def test_forgotten_jobs_leave_nothing_and_deleted_ones_their_uuid(tmp_path: Path) -> None:
    """Retention takes every record of a job; a deletion leaves the record that says so."""

    async def story() -> None:
        gone: list[Record] = [ResultRecord("a", "w1", 200, b"1", 3.0), ForgottenRecord("a", "age")]
        deleted = DeletedRecord("b", "svc", 4.0)
        await written(tmp_path, [job("a", "w1"), job("b", "w1"), job("c", "w1"), *gone])
        await written(tmp_path, [deleted])
        assert await kept(tmp_path) == [job("c", "w1"), deleted]
        await written(tmp_path, [ForgottenRecord("b", "number"), ForgottenRecord("unknown", "age")])
        assert await kept(tmp_path) == [job("c", "w1")]

    run(story)


def test_body_of_an_ended_job_is_not_loaded(tmp_path: Path) -> None:
    """A job with a result for each part comes without its body; one that still has to be run with it."""

    async def story() -> None:
        result = ResultRecord("a", "w1", 200, b"1", 3.0)
        await written(tmp_path, [job("a", "w1", "w2", body=b"long"), result])
        assert (await kept(tmp_path))[0] == job("a", "w1", "w2", body=b"long")
        await written(tmp_path, [ResultRecord("a", "w2", 200, b"2", 3.0)])
        assert (await kept(tmp_path))[0] == job("a", "w1", "w2", body=b"")

    run(story)


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_jobs_are_whole_wherever_reading_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """The records of a job are looked at together, however few rows are read at a time."""
    monkeypatch.setattr(brokerstore, "ROWS", rows)

    async def story() -> None:
        records: list[Record] = []
        for name in "abcd":
            records += [job(name, "w1", "w2", body=b"x")]
            records += [ResultRecord(name, slot, 200, b"", 3.0) for slot in ("w1", "w2")]
        await written(tmp_path, records)
        bodies = [record.body for record in await kept(tmp_path) if isinstance(record, JobRecord)]
        assert bodies == [b""] * 4

    run(story)


def test_history_is_dropped_where_the_file_is_too_large(tmp_path: Path) -> None:
    """Beyond the limit the history goes and the file becomes smaller; jobs and results stay."""

    async def story() -> None:
        async with keeping(tmp_path, limit_octets=1 << 20) as store:
            await store.load()
            store.write([Store(1, (job("a", "w1"), ResultRecord("a", "w1", 200, b"1", 3.0)))])
            store.write([Store(2, tuple(EventRecord("a", 1.0, os.urandom(10_000)) for _ in range(400)))])
            await store.tend()
        before = (tmp_path / brokerstore.NAME).stat().st_size
        async with keeping(tmp_path, limit_octets=1 << 20) as store:
            for _ in range(5):
                await store.tend()
        assert (tmp_path / brokerstore.NAME).stat().st_size < min(before, 1 << 20)
        assert await kept(tmp_path) == [job("a", "w1", body=b""), HeldResult("a", "w1", 200, 1, 3.0)]

    run(story)


@pytest.mark.parametrize("checked_octets", [1 << 30, 0], ids=["found by the check", "come across"])
def test_readable_part_of_a_damaged_database_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked_octets: int
) -> None:
    """A hole in the middle of the file costs the jobs in it; what is before and after comes back, and is told."""
    monkeypatch.setattr("specwire.runtime.norfab.store.database.CHECKED_OCTETS", checked_octets)
    told: list[str] = []

    async def story() -> None:
        await written(tmp_path, [job(f"j{number}", "w1", body=bytes(500)) for number in range(2000)])
        path = tmp_path / brokerstore.NAME
        spoil_the_middle(path)
        async with keeping(tmp_path, on_damaged=told.append) as store:
            found = [record.uuid for record in await store.load()]
            assert found[0] == "j0"
            assert found[-1] == "j1999"
            assert 1500 < len(found) < 2000
            store.write([Store(1, (job("new", "w1"),))])
        assert len(told) == 1
        assert [record.uuid for record in await kept(tmp_path)] == [*found, "new"]

    run(story)


def spoil_the_middle(path: Path) -> None:
    """Have two pages in the middle of a file be nonsense."""
    octets = bytearray(path.read_bytes())
    middle = len(octets) // 2 // 4096 * 4096
    octets[middle : middle + 8192] = os.urandom(8192)
    path.write_bytes(octets)


def test_job_that_was_deleted_before_the_damage_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deletion is in the redo log alone when the process is killed, its job in what can be read of the database."""
    monkeypatch.setattr("specwire.runtime.norfab.store.secured.SECURED_S", 1000.0)
    jobs = [job(f"j{number}", "w1", body=bytes(500)) for number in range(2000)]

    async def story() -> None:
        async with keeping(tmp_path / "broker") as store:
            store.write([Store(number, (record,)) for number, record in enumerate(jobs, 1)])
            await store._writer.read("PRAGMA wal_checkpoint(TRUNCATE)")
            store.gathering.hold()
            store.write([Store(2001, (DeletedRecord("j7", "svc", 5.0),))])
            store.gathering.finish()
            folder = as_killed(tmp_path / "broker", tmp_path / "killed")
        spoil_the_middle(folder / brokerstore.NAME)
        async with keeping(folder) as store:
            found = await store.load()
            assert len(found) > 1500
            assert [record for record in found if record.uuid == "j7"] == [DeletedRecord("j7", "svc", 5.0)]
            store.write([Store(1, (ForgottenRecord("j7", "age"),))])
        assert "j7" not in [record.uuid for record in await kept(folder)]

    run(story)


def test_job_that_was_deleted_after_the_damage_does_not_come_back(tmp_path: Path) -> None:
    """What is damaged under a running broker is taken over a while later, without what was deleted meanwhile."""

    async def story() -> None:
        path = tmp_path / brokerstore.NAME
        async with keeping(tmp_path) as store:
            store.write(
                [Store(number, (job(f"j{number}", "w1", body=bytes(500)),)) for number in range(1, 2001)]
            )
            await store._writer.read("PRAGMA wal_checkpoint(TRUNCATE)")
            await store._writer.read("PRAGMA cache_size = 0")
            spoil_the_middle(path)
            with pytest.raises(StoreError):
                await store._writer.read("SELECT sum(length(body)) FROM record")
            store.write([Store(2001, (ForgottenRecord("j1", "age"),))])
            await store.tend()
        uuids = [record.uuid for record in await kept(tmp_path)]
        assert "j1" not in uuids
        assert {"j2", "j2000"} <= {*uuids}
        assert len(uuids) > 1500

    run(story)


def test_damage_where_the_number_of_the_redo_log_is_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is come across as the store is opened, where the file is too large to be read through before."""
    monkeypatch.setattr("specwire.runtime.norfab.store.database.CHECKED_OCTETS", 0)
    told: list[str] = []

    async def story() -> None:
        await written(tmp_path, [job(f"j{number}") for number in range(100)])
        path = tmp_path / brokerstore.NAME
        with closing(sqlite3.connect(path)) as connection:
            [(root,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'redo'")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        octets = bytearray(path.read_bytes())
        octets[(root - 1) * 4096 : root * 4096] = bytes([0xFF]) * 4096
        path.write_bytes(octets)
        async with keeping(tmp_path, on_damaged=told.append) as store:
            assert len(await store.load()) == 100
        assert len(told) == 1
        assert len(await kept(tmp_path)) == 100

    run(story)


def test_record_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    """One row of nonsense does not keep a broker from beginning."""

    async def story() -> None:
        await written(tmp_path, [job("a"), job("b")])
        async with keeping(tmp_path) as store:
            await store._writer.read("UPDATE record SET octets = x'c1' WHERE number = 0")
            assert await store.load() == [job("b")]

    run(story)


def test_tickets_are_told_durable_in_order(tmp_path: Path) -> None:
    """The last ticket of each commit is told, counting up to the last one."""
    told: list[int] = []

    async def story() -> None:
        async with keeping(tmp_path, on_stored=told.append) as store:
            for ticket in range(1, 501):
                store.write([Store(ticket, (job(f"j{ticket}"),))])
                if ticket % 100 == 0:
                    await asyncio.sleep(0)
            store.write([Store(501, ())])
        assert told == sorted(told)
        assert told[-1] == 501

    run(story)


def test_body_of_a_result_is_fetched_by_itself(tmp_path: Path) -> None:
    """The last result of a part, also one of an earlier run; None where there is none."""

    async def story() -> None:
        results = [ResultRecord("a", slot, 200, slot.encode() * 100_000, 3.0) for slot in ("w1", "w2")]
        await written(tmp_path, [job("a", "w1", "w2"), *results, job("b", "w1")])
        async with keeping(tmp_path) as store:
            await store.load()
            store.write([Store(1, (ResultRecord("a", "w1", 200, b"\x00later", 4.0),))])
            assert await store.fetch("a", "w1") == b"\x00later"
            assert await store.fetch("a", "w2") == b"w2" * 100_000
            assert await store.fetch("a", "w3") is None
            assert await store.fetch("b", "w1") is None
            assert await store.fetch("c", "w1") is None

    run(story)


def test_workers_are_remembered_until_they_are_gone(tmp_path: Path) -> None:
    """A worker that registered again is kept once; one that left is not kept."""

    async def story() -> None:
        here, moved = (
            WorkerRecord(worker_key("w1"), "w1", "svc"),
            WorkerRecord(worker_key("w1"), "w1", "other"),
        )
        left = WorkerRecord(worker_key("w2"), "w2", "svc")
        await written(tmp_path, [here, left, ForgottenRecord(left.uuid, "left"), moved])
        assert await kept(tmp_path) == [moved]

    run(story)
