"""Stores of NORFAB peers that version 0.1 has written: opened once, they have everything that version had made durable."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.kernel.store import Schema, Store, StoreError
from specwire.runtime.norfab import brokerstore
from specwire.runtime.norfab.brokerstore import BrokerStore, find_unfinished
from specwire.runtime.norfab.client.store import NAME as CLIENT_NAME
from specwire.runtime.norfab.client.store import SCHEMA as CLIENT_SCHEMA
from specwire.runtime.norfab.records import DeletedRecord, HeldResult, JobRecord, WorkerRecord
from specwire.runtime.norfab.worker.store import NAME as WORKER_NAME
from specwire.runtime.norfab.worker.store import SCHEMA as WORKER_SCHEMA

DATA = Path(__file__).parents[1] / "data" / "0.1" / "norfab"
EXPECTED: dict[str, Any] = json.loads((DATA / "expected.json").read_text())
BROKERS = ["clean/broker", "killed/broker", "collision/broker"]
WORKERS = ["clean/worker", "killed/worker"]
CLIENTS = ["clean/client", "killed/client"]
RUNS = [1, 2]
"""How often a store is opened: what the upgrade gives is what is there ever after."""


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies a folder of the data."""

    def copied(name: str) -> Path:
        return Path(shutil.copytree(DATA / name, tmp_path / "copy"))

    return copied


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, for a minute at most."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(bounded())


async def rows_of(path: Path, schema: Schema, sql: str) -> list[tuple[Any, ...]]:
    """Open a store, and return the rows of a query."""
    store = Store(path, schema, on_committed=lambda last, failures: None)
    await store.open()
    try:
        return await store.read(sql)
    finally:
        await store.close()


@pytest.mark.parametrize("opened", RUNS)
@pytest.mark.parametrize("name", BROKERS)
def test_a_broker_has_every_job_result_and_event(name: str, opened: int, copy: Callable[[str], Path]) -> None:
    folder, expected = copy(name), EXPECTED[name]

    async def story() -> None:
        for _ in range(opened):
            store = BrokerStore(folder, on_committed=lambda last, failures: None)
            await store.open()
            records = await store.load()
            if _ < opened - 1:
                await store.close()
        jobs = {record.uuid: record for record in records if isinstance(record, JobRecord)}
        deleted = {record.uuid for record in records if isinstance(record, DeletedRecord)}
        results = {(r.uuid, r.slot): r for r in records if isinstance(r, HeldResult)}
        unfinished = find_unfinished(records)
        states = {uuid: "open" if uuid in unfinished else "ended" for uuid in jobs if uuid not in deleted}
        states |= dict.fromkeys(deleted, "deleted")
        known = {uuid: job for uuid, job in expected["jobs"].items() if job["state"] != "forgotten"}
        assert states == {uuid: job["state"] for uuid, job in known.items()}
        assert {r.name for r in records if isinstance(r, WorkerRecord)} == set(expected["workers"])
        for uuid, job in known.items():
            [(events,)] = await store.store.read(
                "SELECT count(*) FROM record WHERE uuid = ? AND kind = 4", (uuid,)
            )
            assert events == job["events"], uuid
            if job["state"] == "deleted":
                continue
            found = jobs[uuid]
            assert (found.service, found.target) == (job["service"], job["target"])
            body = job["body"].encode() if job["state"] == "open" else b""
            assert found.body == body, uuid
            assert {slot for known_uuid, slot in results if known_uuid == uuid} == set(job["results"])
            for slot, result in job["results"].items():
                assert results[uuid, slot].status == result["status"]
                assert await store.fetch(uuid, slot) == result["body"].encode()
        await store.close()

    run(story)
    assert not list(folder.glob("*-redo"))


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_has_every_job_and_result_and_knows_which_have_begun(
    name: str, copy: Callable[[str], Path]
) -> None:
    folder, expected = copy(name), EXPECTED[name]
    sql = (
        "SELECT job.uuid, job.task, job.body, job.held, result.body, result.failed, result.deleted,"
        " job.number <= (SELECT number FROM begun) FROM job LEFT JOIN result USING (number)"
    )

    async def story() -> None:
        for _ in RUNS:
            rows = {row[0]: row[1:] for row in await rows_of(folder / WORKER_NAME, WORKER_SCHEMA, sql)}
            assert await rows_of(folder / WORKER_NAME, WORKER_SCHEMA, "SELECT number FROM begun") == [
                (expected["mark"],)
            ]
            known = {uuid: job for uuid, job in expected["jobs"].items() if job["state"] != "forgotten"}
            assert set(rows) == set(known)
            for uuid, job in known.items():
                task, body, held, result, failed, deleted, begun = rows[uuid]
                assert (task, bool(deleted)) == (job["task"], job["state"] == "deleted"), uuid
                if job["state"] == "ended":
                    assert (bytes(result).decode(), bool(failed)) == (job["result"], job["failed"]), uuid
                elif job["state"] == "open":
                    assert result is None, uuid
                    assert (bytes(body).decode(), bool(held), bool(begun)) == (
                        job["body"],
                        job["held"],
                        job["begun"],
                    ), uuid

    run(story)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_has_every_job_result_and_event(name: str, copy: Callable[[str], Path]) -> None:
    folder, expected = copy(name), EXPECTED[name]
    path = folder / CLIENT_NAME

    async def story() -> None:
        for _ in RUNS:
            jobs = await rows_of(
                path,
                CLIENT_SCHEMA,
                "SELECT jobs.uuid, service, task, target, body, state, workers FROM jobs LEFT JOIN states USING (uuid)",
            )
            results = await rows_of(path, CLIENT_SCHEMA, "SELECT uuid, worker, code, entry FROM results")
            events = await rows_of(path, CLIENT_SCHEMA, "SELECT uuid FROM events")
            known = {uuid: job for uuid, job in expected["jobs"].items() if job["state"] != "forgotten"}
            assert {row[0] for row in jobs} == set(known)
            for uuid, service, task, target, body, word, workers in jobs:
                job = known[uuid]
                assert (service, task, target) == (job["service"], job["task"], job["target"])
                assert bytes(body).decode() == job["body"]
                assert word == job["word"]
                assert json.loads(workers or "[]") == job["workers"]
                assert {
                    worker: {"status": code, "body": bytes(entry).decode()}
                    for owner, worker, code, entry in results
                    if owner == uuid
                } == job["results"]
                assert events.count((uuid,)) == job["events"], uuid

    run(story)


def test_an_upgrade_that_is_interrupted_leaves_the_old_store_whole(copy: Callable[[str], Path]) -> None:
    """The redo log is read again at the next start."""
    folder = copy("killed/broker")
    path = folder / brokerstore.NAME

    class Interrupted(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if sql == "DROP TABLE redo":
                raise sqlite3.OperationalError("interrupted")
            return super().execute(sql, parameters)

    def connect(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Interrupted)

    async def story() -> None:
        store = BrokerStore(folder, on_committed=lambda last, failures: None, connect=connect)
        with pytest.raises(StoreError, match="interrupted"):
            await store.open()

    run(story)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert len(list(folder.glob("*-redo"))) == 1
