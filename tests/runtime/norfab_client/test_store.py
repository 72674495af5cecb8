"""Stores of a client: the same on disk and in memory, bounded, and durable on disk."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.kernel.store import Failure, StoreInUseError
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.memory import MemoryStore
from specwire.runtime.norfab.client.places import candidates, find_job, read_history
from specwire.runtime.norfab.client.records import (
    EventRecord,
    ForgottenRecord,
    JobRecord,
    Record,
    ResultRecord,
    StateRecord,
)
from specwire.runtime.norfab.client.store import NAME, SCHEMA, ClientStore, DiskStore
from tests.runtime.kernel.store.stores import FULL, Disk, run

KINDS = ["disk", "memory"]


class Desk:
    """Store that counts its tickets and records its reports.

    Attributes:
        last: every write up to this ticket is durable or has failed.
        failures: reasons by ticket.
        refusals: arguments of ``on_refusing``.
        notices: sentences about damaged files.
        disk: of a store in a folder.
    """

    def __init__(self, kind: str, folder: Path, **settings: Any) -> None:
        self.last = self.ticket = 0
        self.failures: dict[int, str] = {}
        self.refusals: list[str] = []
        self.notices: list[str] = []
        self.disk = Disk()
        self._reported = asyncio.Event()
        limits = ClientSettings(**settings)
        self.store: ClientStore = (
            MemoryStore(limits, self._on_committed)
            if kind == "memory"
            else DiskStore(
                folder,
                "process",
                limits,
                on_committed=self._on_committed,
                on_refusing=self.refusals.append,
                on_notice=self.notices.append,
                connect=self.disk.connect,
                probe_s=0.02,
            )
        )

    def _on_committed(self, last: int, failures: Sequence[Failure]) -> None:
        self.last = last
        self.failures.update(failures)
        self._reported.set()

    def write(self, *records: Record, refusable: bool = False) -> int:
        """Write the records as one commit; return its ticket."""
        self.ticket += 1
        self.store.write(self.ticket, records, refusable=refusable)
        return self.ticket

    def end(self, uuid: str, at: float, octets: int = 10) -> None:
        """Write a job that has ended."""
        self.write(job(uuid, at - 1))
        self.write(
            ResultRecord(uuid, "w1", 200, b"x" * octets, at),
            StateRecord(uuid, "COMPLETED", ("w1",), at + 60, 200, "", at, octets),
        )

    async def outcome(self, ticket: int) -> str:
        """Wait until a commit is durable or has failed; return the reason for the failure."""
        while self.last < ticket and ticket not in self.failures:
            self._reported.clear()
            await self._reported.wait()
        return self.failures.get(ticket, "")

    async def uuids(self) -> list[str]:
        """Return the uuids of the stored jobs, sorted."""
        return sorted(entry.uuid for entry in await self.store.history(1000))


def job(uuid: str, at: float = 1.0) -> JobRecord:
    """Return a job."""
    return JobRecord(uuid, "svc", "add", "all", b"{}", at, at + 60)


@asynccontextmanager
async def desk_at(kind: str, folder: Path, **settings: Any) -> AsyncIterator[Desk]:
    """Open a store."""
    desk = Desk(kind, folder, **settings)
    await desk.store.open()
    try:
        yield desk
    finally:
        await desk.store.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_found(tmp_path: Path, kind: str) -> None:
    """A job, its state, its results and its progress."""

    async def story() -> None:
        async with desk_at(kind, tmp_path) as desk:
            desk.write(job("u1", 5.0))
            found = await desk.store.find("u1")
            assert found is not None and (found.job, found.state.state) == (job("u1", 5.0), "NEW")
            state = StateRecord("u1", "STARTED", ("w1", "w2"), 70.0)
            results = [ResultRecord("u1", "w2", 200, b"{}", 6.0), ResultRecord("u1", "w1", 500, b"[]", 7.0)]
            desk.write(state, results[0])
            desk.write(results[1])
            desk.write(results[1])
            last = desk.write(EventRecord("u1", 6.5, b"{1}"), EventRecord("u1", 6.0, b"{2}"))
            found = await desk.store.find("u1")
            assert found is not None and (found.state, list(found.results)) == (state, results)
            assert await desk.store.events("u1") == [(6.5, b"{1}"), (6.0, b"{2}")]
            assert await desk.store.find("u2") is None
            assert not await desk.outcome(last) and not desk.failures

    run(story)


@pytest.mark.parametrize("kind", KINDS)
def test_the_history_has_the_newest_first(tmp_path: Path, kind: str) -> None:
    """Up to the limit."""

    async def story() -> None:
        async with desk_at(kind, tmp_path) as desk:
            for number in range(5):
                desk.end(f"u{number}", 10.0 + number)
            newest = await desk.store.history(2)
            assert [entry.uuid for entry in newest] == ["u4", "u3"]
            assert (newest[0].state, newest[0].workers, newest[0].ended_at) == ("COMPLETED", ("w1",), 14.0)

    run(story)


@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_job_leaves_nothing(tmp_path: Path, kind: str) -> None:
    """Neither itself nor its results and progress."""

    async def story() -> None:
        async with desk_at(kind, tmp_path) as desk:
            desk.end("u1", 10.0)
            desk.write(job("u2"), EventRecord("u2", 1.0, b"{}"))
            desk.write(ForgottenRecord("u1"))
            desk.write(ForgottenRecord("u2"))
            assert await desk.store.find("u1") is None and await desk.store.find("u2") is None
            assert await desk.store.events("u2") == []

    run(story)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"kept_s": 50.0}, ["u3", "u4", "open"]),
        ({"kept_jobs": 3}, ["u2", "u3", "u4", "open"]),
        ({"kept_octets": 250}, ["u3", "u4", "open"]),
        ({}, ["u0", "u1", "u2", "u3", "u4", "open"]),
    ],
)
def test_retention(tmp_path: Path, kind: str, settings: dict[str, Any], left: list[str]) -> None:
    """By age, by number, by octets. A job that has not ended is never deleted."""

    async def story() -> None:
        async with desk_at(kind, tmp_path, **settings) as desk:
            desk.write(job("open", 0.5))
            for number in range(5):
                desk.end(f"u{number}", 100.0 + 10 * number, octets=100)
            desk.store.prune(1000, 175.0)
            assert await desk.uuids() == sorted(left)

    run(story)


def test_unfinished_jobs_are_restored(tmp_path: Path) -> None:
    """With their results, the oldest first."""

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            desk.write(job("late", 9.0))
            desk.write(job("early", 2.0))
            desk.write(StateRecord("early", "STARTED", ("w1", "w2"), 62.0))
            desk.write(ResultRecord("early", "w1", 200, b"{}", 3.0))
            desk.end("done", 8.0)
        async with desk_at("disk", tmp_path) as desk:
            stored = await desk.store.unfinished()
            assert [one.job.uuid for one in stored] == ["early", "late"]
            assert [result.worker for result in stored[0].results] == ["w1"]
            assert stored[0].state.workers == ("w1", "w2")

    run(story)


# --- failures


def test_submissions_fail_and_results_wait_while_the_disk_is_full(tmp_path: Path) -> None:
    """The submission has the reason at once. The result is stored when there is room."""

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            assert not await desk.outcome(desk.write(job("u1"), refusable=True))
            desk.disk.fail(FULL, at="INSERT")
            assert "full" in await desk.outcome(desk.write(job("u2"), refusable=True))
            result = desk.write(ResultRecord("u1", "w1", 200, b"{}", 6.0))
            event = desk.write(EventRecord("u1", 6.0, b"{}"))
            assert "full" in await desk.outcome(desk.write(job("u3"), refusable=True))
            assert desk.last < result, "it waits"
            desk.disk.recover()
            assert not await desk.outcome(result) and not await desk.outcome(event)
            assert not await desk.outcome(desk.write(job("u4"), refusable=True))
            assert [bool(reason) for reason in desk.refusals] == [True, False]
            assert sorted(desk.failures) == [2, 5] and "full" in desk.refusals[0]
        async with desk_at("disk", tmp_path) as desk:
            assert await desk.uuids() == ["u1", "u4"]
            found = await desk.store.find("u1")
            assert found is not None and [one.worker for one in found.results] == ["w1"]
            assert await desk.store.events("u1") == [(6.0, b"{}")]

    run(story)


def test_what_the_disk_does_not_take_at_the_end_is_reported(tmp_path: Path) -> None:
    """Closing tries once more, and reports the failure of what is left."""

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            desk.disk.fail(FULL, at="INSERT")
            result = desk.write(ResultRecord("u1", "w1", 200, b"{}", 6.0))
        assert "full" in desk.failures[result]

    run(story)


def test_a_faulty_record_fails_alone(tmp_path: Path) -> None:
    """A text that SQLite does not accept."""

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            before, faulty, after = desk.write(job("u1")), desk.write(job("\ud800")), desk.write(job("u2"))
            assert "surrogates" in await desk.outcome(faulty)
            assert not await desk.outcome(before) and not await desk.outcome(after)
            assert await desk.uuids() == ["u1", "u2"]

    run(story)


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    """The damaged file is kept under another name, and the replacement is reported."""

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            desk.end("u1", 8.0)
        (tmp_path / NAME).write_bytes(b"no database at all" * 100)
        async with desk_at("disk", tmp_path) as desk:
            assert await desk.uuids() == []
            desk.end("u2", 9.0)
            assert await desk.uuids() == ["u2"]
            assert len(desk.notices) == 1 and "damaged" in desk.notices[0]
        assert any("damaged" in path.name for path in tmp_path.iterdir())

    run(story)


KILLED = """
import asyncio, os, sys
from pathlib import Path
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import JobRecord, ResultRecord, StateRecord
from specwire.runtime.norfab.client.store import DiskStore

def on_committed(last, failures):
    assert not failures
    if last >= int(sys.argv[2]):
        print(last, flush=True)
        os.kill(os.getpid(), 9)

async def main():
    store = DiskStore(Path(sys.argv[1]), "process", ClientSettings(), on_committed=on_committed)
    await store.open()
    for number in range(1, 201):
        uuid = f"u{number:03}"
        records = (
            JobRecord(uuid, "svc", "add", "all", b"{}", number, 1e9),
            ResultRecord(uuid, "w1", 200, b"[1]", number),
            StateRecord(uuid, "STARTED", ("w1", "w2"), 1e9),
        )
        store.write(number, records)
        if number % 10 == 0:
            await asyncio.sleep(0)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("acknowledged", [1, 50, 200])
def test_a_killed_process_leaves_what_was_committed(tmp_path: Path, acknowledged: int) -> None:
    """kill -9 after a report: everything up to it is there, and no commit is there in part."""
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(acknowledged)]
    process = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    last = int(process.stdout)

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            uuids = await desk.uuids()
            assert last <= len(uuids) <= 200 and uuids == [f"u{n:03}" for n in range(1, len(uuids) + 1)]
            for stored in await desk.store.unfinished():
                assert stored.state.state == "STARTED" and [one.worker for one in stored.results] == ["w1"]
            assert not desk.notices

    run(story)


# --- folders


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    """A second client gets an error."""

    async def story() -> None:
        async with desk_at("disk", tmp_path):
            with pytest.raises(StoreInUseError, match="in use"):
                await Desk("disk", tmp_path).store.open()

    run(story)


def test_the_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """Results may be secrets."""

    async def story() -> None:
        async with desk_at("disk", tmp_path / "c"):
            assert (tmp_path / "c" / NAME).stat().st_mode & 0o077 == 0
            with closing(sqlite3.connect(tmp_path / "c" / NAME)) as connection:
                assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    run(story)


def test_folders_are_read_while_they_are_in_use(tmp_path: Path) -> None:
    """A command finds a job of another one that is running."""

    async def story() -> None:
        first, second = (place for place, _ in zip(candidates(tmp_path), range(2), strict=False))
        async with desk_at("disk", first) as one, desk_at("disk", second) as other:
            one.end("u1", 10.0)
            other.end("u2", 20.0)
            await one.uuids()
            await other.uuids()
            assert [entry.uuid for entry in await read_history(tmp_path, 10)] == ["u2", "u1"]
            found = await find_job(tmp_path, "u2")
            assert found is not None and found[0] == second
            assert [result.worker for result in found[1].results] == ["w1"]
            assert await find_job(tmp_path, "u3") is None
        assert await read_history(tmp_path / "nothing", 10) == []

    run(story)


def test_a_folder_that_cannot_be_read_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With a warning that names it; jobs in other folders are found."""

    async def story() -> None:
        bad, good = (place for place, _ in zip(candidates(tmp_path), range(2), strict=False))
        bad.mkdir()
        (bad / NAME).write_bytes(b"?" * 5000)
        async with desk_at("disk", good) as desk:
            desk.end("u1", 10.0)
            await desk.uuids()
            assert [entry.uuid for entry in await read_history(tmp_path, 10)] == ["u1"]
        assert f"{bad / NAME} is skipped" in caplog.text

    run(story)


# --- version 0.1


def make_version_1(folder: Path) -> None:
    """Write a file of version 1 with the job ``u1``, and leftovers of its process."""
    folder.mkdir()
    with closing(sqlite3.connect(folder / NAME, isolation_level=None)) as connection:
        for statement in (*SCHEMA.statements, "PRAGMA journal_mode = WAL", "PRAGMA user_version = 1"):
            connection.execute(statement)
        row = ("u1", "svc", "add", "all", b"{}", 1.0, 61.0)
        connection.execute("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        state = ("u1", "STARTED", json.dumps(["w1"]), 61.0, 0, "", 0.0, 0)
        connection.execute("INSERT INTO states VALUES (?, ?, ?, ?, ?, ?, ?, ?)", state)
    (folder / f"{NAME}-redo").write_bytes(bytes(16))


def version_of(folder: Path) -> int:
    """Return the version of a file."""
    with closing(sqlite3.connect(folder / NAME)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_a_folder_of_version_1_is_upgraded(tmp_path: Path) -> None:
    """By the client that opens it; its redo log is deleted."""
    make_version_1(tmp_path / "1")

    async def story() -> None:
        async with desk_at("disk", tmp_path / "1") as desk:
            assert [one.state.workers for one in await desk.store.unfinished()] == [("w1",)]

    run(story)
    assert version_of(tmp_path / "1") == 2 and not (tmp_path / "1" / f"{NAME}-redo").exists()


def test_a_folder_of_version_1_is_upgraded_before_it_is_read(tmp_path: Path) -> None:
    """Otherwise records in its redo log would be missing."""
    make_version_1(tmp_path / "1")

    async def story() -> None:
        assert [entry.uuid for entry in await read_history(tmp_path, 10)] == ["u1"]

    run(story)
    assert version_of(tmp_path / "1") == 2 and not (tmp_path / "1" / f"{NAME}-redo").exists()


def test_a_folder_of_version_1_in_use_is_read_as_it_is(tmp_path: Path) -> None:
    """Its process, of version 0.1, may still be running."""
    make_version_1(tmp_path / "1")
    holder = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", holder, str(tmp_path / "1" / f"{NAME}-lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()

        async def story() -> None:
            found = await find_job(tmp_path, "u1")
            assert found is not None and found[1].state.workers == ("w1",)

        run(story)
        assert version_of(tmp_path / "1") == 1
