"""What a client keeps: the same on disk and in memory, bounded, and mended where it is damaged."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

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
from specwire.runtime.norfab.client.store import BUNCH, NAME, DiskStore, Store
from specwire.runtime.norfab.store.errors import StoreInUseError
from tests.runtime.norfab_store.stories import as_killed

KINDS = ["disk", "memory"]


class Desk:
    """A store, with tickets of its own."""

    def __init__(self, kind: str, folder: Path, **settings: Any) -> None:
        limits = ClientSettings(**settings)
        self.committed: list[int] = []
        self.failed: list[str] = []
        self.damage: list[str] = []
        self.store: Store = (
            MemoryStore(limits, self.committed.append)
            if kind == "memory"
            else DiskStore(
                folder,
                "process",
                limits,
                on_committed=self.committed.append,
                on_failed=lambda _, reason: self.failed.append(reason),
                on_damaged=self.damage.append,
            )
        )
        self._ticket = 0

    def write(self, *records: Record) -> None:
        """Write them as one."""
        self._ticket += 1
        self.store.write(self._ticket, records)

    def end(self, uuid: str, at: float, octets: int = 10) -> None:
        """Write a job that has ended."""
        self.write(job(uuid, at - 1))
        self.write(
            ResultRecord(uuid, "w1", 200, b"x" * octets, at),
            StateRecord(uuid, "COMPLETED", ("w1",), at + 60, 200, "", at, octets),
        )

    async def left(self) -> list[str]:
        """Return the uuids that are kept, sorted."""
        return sorted(entry.uuid for entry in await self.store.history(1000))


def job(uuid: str, at: float = 1.0) -> JobRecord:
    """Return a job."""
    return JobRecord(uuid, "svc", "add", "all", b"{}", at, at + 60)


def tell(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story."""
    asyncio.run(story())


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
    """A job, how it stands, its results and its progress."""

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
            desk.write(EventRecord("u1", 6.5, b"{1}"), EventRecord("u1", 6.0, b"{2}"))
            found = await desk.store.find("u1")
            assert found is not None and (found.state, list(found.results)) == (state, results)
            assert await desk.store.events("u1") == [(6.5, b"{1}"), (6.0, b"{2}")]
            assert await desk.store.find("u2") is None
            assert desk.committed and desk.committed[-1] == 5 and not desk.failed

    tell(story)


def test_a_job_overtakes_what_is_patient_and_both_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the thread commits them together, as it does while the file was locked by somebody."""
    monkeypatch.setattr("specwire.runtime.norfab.store.gathering.monotonic", count(100.0, 1.0).__next__)
    monkeypatch.setattr("specwire.runtime.norfab.client.store.RESULTS_S", 1000.0)

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            with sqlite3.connect(tmp_path / NAME, isolation_level=None) as other:
                other.execute("BEGIN IMMEDIATE")
                desk.write(job("u1"))
                desk.write(StateRecord("u1", "STARTED", ("w1",), 61.0))
                desk.write(job("u2"))
                finding = asyncio.create_task(desk.store.find("u1"))
                await asyncio.sleep(0)
                other.execute("ROLLBACK")
            found = await finding
            assert found is not None and found.state.state == "STARTED"
            assert max(desk.committed) == 3 and not desk.failed

    tell(story)


def test_very_many_jobs_of_one_turn_are_told_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bunches, in their order; the rest is told when the turn is over."""
    monkeypatch.setattr("specwire.runtime.norfab.store.gathering.monotonic", count(100.0, 1.0).__next__)

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            while not desk.committed:  # until the store's thread rests
                await asyncio.sleep(0.001)
                desk.write(job("u"))
            monkeypatch.setattr("specwire.runtime.norfab.store.gathering.monotonic", lambda: 0.0)
            before = desk.committed[-1]
            for number in range(2 * BUNCH + 10):
                desk.write(job(f"u{number}"))
            assert desk.committed[-2:] == [before + BUNCH, before + 2 * BUNCH]
            while desk.committed[-1] != before + 2 * BUNCH + 10:
                await asyncio.sleep(0)
            assert await desk.store.find("u0") and await desk.store.find(f"u{2 * BUNCH + 9}")

    tell(story)


def test_a_job_that_is_written_alone_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that follows at once is told in a later turn of the loop, and not before it is kept."""
    monkeypatch.setattr("specwire.runtime.norfab.store.gathering.monotonic", count(100.0, 1.0).__next__)

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            assert await desk.store.find("u1") is None
            while not desk.committed:  # until the store's thread rests
                await asyncio.sleep(0.001)
                desk.write(job("u0"))
            before = desk.committed[-1]
            desk.write(job("u1"))
            assert desk.committed[-1] == before + 1
            monkeypatch.setattr("specwire.runtime.norfab.store.gathering.monotonic", lambda: 0.0)
            desk.write(job("u2"))
            assert desk.committed[-1] == before + 1
            while desk.committed[-1] == before + 1:
                await asyncio.sleep(0)
            assert await desk.left() == ["u0", "u1", "u2"]

    tell(story)


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ticket is told, also of those that were written together."""
    monkeypatch.setattr(
        "specwire.runtime.norfab.store.redo.RECORD_OCTETS", 0
    )  # else they are in the redo log

    async def story() -> None:
        desk = Desk("disk", tmp_path)
        await desk.store.open()
        desk.write(ResultRecord("u1", "w1", 200, b"{}", 6.0))
        desk.write(ResultRecord("u1", "w2", 200, b"{}", 7.0))
        with sqlite3.connect(tmp_path / NAME) as connection:
            connection.execute("DROP TABLE results")
        async with asyncio.timeout(30):
            while len(desk.failed) < 2:
                await asyncio.sleep(0.01)
        assert all("results" in reason for reason in desk.failed)
        await desk.store.close()

    tell(story)


@pytest.mark.parametrize("kind", KINDS)
def test_the_history_has_the_newest_first(tmp_path: Path, kind: str) -> None:
    """As many as are asked for."""

    async def story() -> None:
        async with desk_at(kind, tmp_path) as desk:
            for number in range(5):
                desk.end(f"u{number}", 10.0 + number)
            newest = await desk.store.history(2)
            assert [entry.uuid for entry in newest] == ["u4", "u3"]
            assert (newest[0].state, newest[0].workers, newest[0].ended_at) == ("COMPLETED", ("w1",), 14.0)

    tell(story)


@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_job_leaves_nothing(tmp_path: Path, kind: str) -> None:
    """Neither itself nor what belongs to it."""

    async def story() -> None:
        async with desk_at(kind, tmp_path) as desk:
            desk.end("u1", 10.0)
            desk.write(job("u2"), EventRecord("u2", 1.0, b"{}"))
            desk.write(ForgottenRecord("u1"))
            desk.write(ForgottenRecord("u2"))
            assert await desk.store.find("u1") is None and await desk.store.find("u2") is None
            assert await desk.store.events("u2") == []

    tell(story)


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
    """By age, by number, by octets; what has not ended is never dropped."""

    async def story() -> None:
        async with desk_at(kind, tmp_path, **settings) as desk:
            desk.write(job("open", 0.5))
            for number in range(5):
                desk.end(f"u{number}", 100.0 + 10 * number, octets=100)
            desk.store.prune(1000, 175.0)
            assert await desk.left() == sorted(left)

    tell(story)


def test_what_had_not_ended_comes_back(tmp_path: Path) -> None:
    """With the results that there are, the oldest first."""

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            desk.write(job("late", 9.0))
            desk.write(job("early", 2.0))
            desk.write(StateRecord("early", "STARTED", ("w1", "w2"), 62.0))
            desk.write(ResultRecord("early", "w1", 200, b"{}", 3.0))
            desk.end("done", 8.0)
        async with desk_at("disk", tmp_path) as desk:
            kept = await desk.store.unfinished()
            assert [one.job.uuid for one in kept] == ["early", "late"]
            assert [result.worker for result in kept[0].results] == ["w1"]
            assert kept[0].state.workers == ("w1", "w2")

    tell(story)


def test_a_damaged_file_is_moved_aside(tmp_path: Path) -> None:
    """It is told, never thrown away, and a new one is begun."""

    async def story() -> None:
        async with desk_at("disk", tmp_path) as desk:
            desk.end("u1", 8.0)
        (tmp_path / NAME).write_bytes(b"no database at all" * 100)
        async with desk_at("disk", tmp_path) as desk:
            assert await desk.left() == []
            desk.end("u2", 9.0)
            assert await desk.left() == ["u2"]
            assert len(desk.damage) == 1 and "moved to" in desk.damage[0]
        assert any("damaged" in path.name for path in tmp_path.iterdir())

    tell(story)


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    """A second client is told so."""

    async def story() -> None:
        async with desk_at("disk", tmp_path):
            with pytest.raises(StoreInUseError, match="in use"):
                await Desk("disk", tmp_path).store.open()

    tell(story)


def test_places_are_looked_into_while_they_are_in_use(tmp_path: Path) -> None:
    """A command finds what another one, that still runs, has submitted."""

    async def story() -> None:
        first, second = (place for place, _ in zip(candidates(tmp_path), range(2), strict=False))
        async with desk_at("disk", first) as one, desk_at("disk", second) as other:
            one.end("u1", 10.0)
            other.end("u2", 20.0)
            await one.left()
            await other.left()
            assert [entry.uuid for entry in read_history(tmp_path, 10)] == ["u2", "u1"]
            found = find_job(tmp_path, "u2")
            assert found is not None and found[0] == second
            assert [result.worker for result in found[1].results] == ["w1"]
            assert find_job(tmp_path, "u3") is None
        assert read_history(tmp_path / "nothing", 10) == []

    tell(story)


def test_a_place_whose_process_was_killed_has_all_that_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in its redo log alone is found by who only looks."""
    monkeypatch.setattr("specwire.runtime.norfab.store.secured.SECURED_S", 1000.0)

    async def story() -> None:
        first = next(candidates(tmp_path / "live"))
        async with desk_at("disk", first) as desk:
            desk.write(job("u1"))
            assert desk.committed == [1]
            as_killed(tmp_path / "live", tmp_path / "killed")
        found = find_job(tmp_path / "killed", "u1")
        assert found is not None and found[0] == next(candidates(tmp_path / "killed"))
        assert [entry.uuid for entry in read_history(tmp_path / "killed", 10)] == ["u1"]

    tell(story)


def test_a_place_that_is_no_database_hides_no_other(tmp_path: Path) -> None:
    """What cannot be read is left out."""

    async def story() -> None:
        bad, good = (place for place, _ in zip(candidates(tmp_path), range(2), strict=False))
        bad.mkdir()
        (bad / NAME).write_bytes(b"?" * 5000)
        async with desk_at("disk", good) as desk:
            desk.end("u1", 10.0)
            await desk.left()
            assert [entry.uuid for entry in read_history(tmp_path, 10)] == ["u1"]

    tell(story)


def test_the_file_is_read_by_its_owner_alone(tmp_path: Path) -> None:
    """Results may be secrets."""

    async def story() -> None:
        async with desk_at("disk", tmp_path / "c"):
            assert (tmp_path / "c" / NAME).stat().st_mode & 0o077 == 0
            with sqlite3.connect(tmp_path / "c" / NAME) as connection:
                assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    tell(story)
