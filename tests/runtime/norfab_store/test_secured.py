"""Tickets that come alone: durable at once by the redo log, in the database soon after, once, and before all else."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab.store import secured as securing
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.store.keeper import Keeper, Ticket
from specwire.runtime.norfab.store.opening import tidy_up
from specwire.runtime.norfab.store.redo import read_redo, redo_file
from specwire.runtime.norfab.store.writer import Writer
from tests.runtime.norfab_store.stories import as_killed, locked_by_another, run

SCHEMA = ["CREATE TABLE thing (number INTEGER)"]
"""Without a key: what is brought in twice is there twice."""

INSERT = "INSERT INTO thing VALUES (?)"
COUNT_UP = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO thing SELECT i FROM n"
NUMBERS = "SELECT number FROM thing ORDER BY rowid"


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing brought in because time has passed."""
    monkeypatch.setattr(securing, "SECURED_S", 1000.0)


@asynccontextmanager
async def writing(path: Path, **settings: Any) -> AsyncIterator[tuple[Writer, list[str]]]:
    """Open a writer, with a list of what it tells, and close it."""
    told: list[str] = []
    writer = Writer(
        path,
        **{"schema": SCHEMA, "on_damaged": told.append, **settings},
        on_committed=lambda ticket: told.append(f"committed {ticket}"),
        on_failed=lambda ticket, reason: told.append(f"failed {ticket}: {reason}"),
    )
    await writer.open()
    try:
        yield writer, told
    finally:
        await writer.close()


def put_alone(writer: Writer, ticket: int, *numbers: int, sql: str = INSERT) -> None:
    """Put a ticket that nothing comes with, and have it kept now."""
    writer.gathering.hold()
    writer.put([Ticket.of(ticket, [(sql, (number,)) for number in numbers or (ticket,)])])
    writer.gathering.finish()


def numbers_in(path: Path) -> list[int]:
    """Return what another program finds in the file."""
    connection = sqlite3.connect(path)
    try:
        return [number for (number,) in connection.execute(NUMBERS)]
    finally:
        connection.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it is so."""
    while not condition():
        await asyncio.sleep(0.001)


@pytest.mark.usefixtures("never")
def test_ticket_that_comes_alone_is_told_at_once_and_committed_later(tmp_path: Path) -> None:
    """It is in the redo log by then; a question is asked when it is in the database, too."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, told):
            for ticket in (1, 2, 3):
                put_alone(writer, ticket)
                assert told[-1] == f"committed {ticket}"
            assert writer.commits == 0
            assert numbers_in(path) == []
            assert [serial for serial, _ in read_redo(redo_file(path), 0)] == [1, 2, 3]
            assert await writer.read(NUMBERS) == [(1,), (2,), (3,)]
            assert writer.commits == 1
            assert numbers_in(path) == [1, 2, 3]
            assert [*read_redo(redo_file(path), 0)] == []

    run(story)


def test_what_is_secured_is_in_the_database_soon(tmp_path: Path) -> None:
    """Nobody has to ask."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, told):
            put_alone(writer, 1)
            assert told == ["committed 1"]
            await until(lambda: numbers_in(path) == [1])
            put_alone(writer, 2)
            await until(lambda: numbers_in(path) == [1, 2])
            assert writer.commits == 2

    run(story)


@pytest.mark.usefixtures("never")
def test_what_is_put_together_comes_after_what_was_secured(tmp_path: Path) -> None:
    """In the same commit, and in order: what was secured is changed by what follows, and not the other way about."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, told):
            await writer.read(NUMBERS)
            await until(lambda: writer._labour.resting)
            put_alone(writer, 1, 10, 20)
            writer.gathering.hold()
            writer.put([Ticket.of(2, [("UPDATE thing SET number = number + ?", (1,))])])
            writer.put([Ticket.of(3, [(INSERT, (30,))])])
            writer.gathering.finish()
            assert told == ["committed 1", "committed 3"]
            assert numbers_in(path) == [11, 21, 30]
            assert writer.commits == 1
            put_alone(writer, 4, 40)
            put_alone(writer, 5, 1, sql="UPDATE thing SET number = number + ?")
        assert numbers_in(path) == [12, 22, 31, 41]

    run(story)


@pytest.mark.usefixtures("never")
def test_full_log_is_committed_with_what_finds_no_room(tmp_path: Path) -> None:
    """And begins at its beginning; what is too large for it is committed, too."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, told):
            await writer.read(NUMBERS)
            await until(lambda: writer._labour.resting)
            for ticket in range(1, 3001):
                put_alone(writer, ticket)
                assert told[-1] == f"committed {ticket}"
            # A record of one INSERT and a number has some 55 octets.
            assert 2 <= writer.commits <= 4
            before = writer.commits
            put_alone(writer, 3001, *range(3001, 5001))
            await until(lambda: told[-1] == "committed 3001")
            assert writer.commits == before + 1
            assert numbers_in(path) == [*range(1, 5001)]

    run(story)


def killed_after(path: Path, *, tickets: int, seconds: float) -> None:
    """Have a process put so many tickets one by one, and kill it when the last is told."""
    program = (
        "import asyncio, os, sys; from pathlib import Path\n"
        "from specwire.runtime.norfab.store import secured\n"
        "from specwire.runtime.norfab.store.keeper import Ticket\n"
        "from specwire.runtime.norfab.store.writer import Writer\n"
        f"secured.SECURED_S = {seconds}\n"
        "def told(ticket):\n"
        f"    if ticket == {tickets}: os.kill(os.getpid(), 9)\n"
        "async def main():\n"
        f"    writer = Writer(Path(sys.argv[1]), {SCHEMA!r}, on_committed=told)\n"
        "    await writer.open()\n"
        f"    for ticket in range(1, {tickets} + 1):\n"
        "        writer.gathering.hold()\n"
        f"        writer.put([Ticket.of(ticket, [({INSERT!r}, (ticket,))])])\n"
        "        writer.gathering.finish()\n"
        "        if ticket % 10 == 0: await asyncio.sleep(0.001)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], check=False)
    assert done.returncode == -9


@pytest.mark.parametrize("durability", ["process", "full"])
@pytest.mark.parametrize(("tickets", "seconds"), [(1, 1000.0), (300, 1000.0), (2000, 1000.0), (400, 0.001)])
def test_killed_process_has_lost_nothing_and_nothing_is_there_twice(
    tmp_path: Path, tickets: int, seconds: float, durability: str
) -> None:
    """Whether nothing was brought in, or a part again and again; whoever opens the store next has all, once."""
    path = tmp_path / "s.db"
    killed_after(path, tickets=tickets, seconds=seconds)

    async def story() -> None:
        for _ in range(2):
            async with writing(path, durability=durability) as (writer, _told):
                assert await writer.read(NUMBERS) == [(number,) for number in range(1, tickets + 1)]
        assert numbers_in(path) == [*range(1, tickets + 1)]

    run(story)


@pytest.mark.usefixtures("never")
def test_killed_between_the_commit_and_the_clearing_of_the_log(tmp_path: Path) -> None:
    """The database knows what it has: of the same log nothing is brought in again."""
    path = tmp_path / "s.db"

    async def fill() -> None:
        async with writing(path) as (writer, _):
            for ticket in (1, 2, 3):
                put_alone(writer, ticket)
            (tmp_path / "as it was").write_bytes(redo_file(path).read_bytes())

    async def story() -> None:
        async with writing(path) as (writer, _):
            assert await writer.read(NUMBERS) == [(1,), (2,), (3,)]
            put_alone(writer, 4)
            assert [serial for serial, _ in read_redo(redo_file(path), 3)] == [4]

    run(fill)
    assert numbers_in(path) == [1, 2, 3]
    redo_file(path).write_bytes((tmp_path / "as it was").read_bytes())
    assert [serial for serial, _ in read_redo(redo_file(path), 0)] == [1, 2, 3]
    run(story)
    assert numbers_in(path) == [1, 2, 3, 4]


def test_full_durability_has_no_redo_log(tmp_path: Path) -> None:
    """What the disk has not confirmed is not told."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path, durability="full") as (writer, told):
            put_alone(writer, 1)
            assert told == []
            await until(lambda: told == ["committed 1"])
            assert numbers_in(path) == [1]
            assert not redo_file(path).exists()

    run(story)


@pytest.mark.usefixtures("never")
def test_without_room_for_the_log_each_ticket_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As it would be without one; the log of the process tells."""
    path = tmp_path / "s.db"

    def full(descriptor: int, octets: bytes, at: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("specwire.runtime.norfab.store.redo.os.pwrite", full)

    async def story() -> None:
        async with writing(path) as (writer, told):
            await writer.read(NUMBERS)
            await until(lambda: writer._labour.resting)
            for ticket in (1, 2):
                put_alone(writer, ticket)
                assert told[-1] == f"committed {ticket}"
                assert numbers_in(path)[-1] == ticket

    run(story)
    assert "s.db-redo cannot be made, so each commit is waited for: " in caplog.text


@pytest.mark.usefixtures("never")
def test_full_disk_keeps_what_was_told_and_refuses_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Until there is room nothing overtakes it: what is put fails, questions do; then all goes on by itself."""
    path = tmp_path / "s.db"
    monkeypatch.setattr(securing, "AGAIN_S", 0.01)

    async def story() -> None:
        async with writing(path) as (writer, told):
            [(pages,)] = await writer.read("PRAGMA page_count")
            await writer.read(f"PRAGMA max_page_count = {pages}")
            await until(lambda: writer._labour.resting)
            numbers = [*range(1, 1001)]
            for ticket in (1, 2, 3):
                put_alone(writer, ticket, 1000, sql=COUNT_UP)
            assert told == ["committed 1", "committed 2", "committed 3"]
            writer.put([Ticket.of(4, [("DELETE FROM thing", ())]), Ticket.of(5, [(INSERT, (5,))])])
            await until(lambda: len(told) == 6)
            assert told[3:] == [
                "failed 4: database or disk is full",
                "failed 5: database or disk is full",
                "committed 5",
            ]
            put_alone(writer, 6)  # nothing is secured any more
            await until(lambda: len(told) == 8)
            assert told[6] == "failed 6: database or disk is full"
            with pytest.raises(
                StoreError, match="does not take what is to be kept: database or disk is full"
            ):
                await writer.read(NUMBERS)
            assert f"does not take what is kept in {redo_file(path)} meanwhile" in caplog.text
            assert numbers_in(path) == []
            assert writer._keeper._connection is not None
            writer._keeper._connection.execute("PRAGMA max_page_count = 100000")  # somebody has made room
            await until(lambda: numbers_in(path) == [*numbers] * 3)
            await until(lambda: not writer._in_debt)
            put_alone(writer, 7)
            assert told[-1] == "committed 7"
            assert (await writer.read(NUMBERS))[-1] == (7,)

    run(story)


@pytest.mark.usefixtures("never")
def test_full_disk_to_the_end_loses_nothing(tmp_path: Path) -> None:
    """What could not be brought in before the store was closed is there when it is opened."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, told):
            [(pages,)] = await writer.read("PRAGMA page_count")
            await writer.read(f"PRAGMA max_page_count = {pages}")
            await until(lambda: writer._labour.resting)
            put_alone(writer, 1, 1000, sql=COUNT_UP)
            assert told == ["committed 1"]
        assert numbers_in(path) == []
        async with writing(path) as (writer, told):
            assert len(await writer.read(NUMBERS)) == 1000

    run(story)


@pytest.mark.usefixtures("never")
def test_store_that_cannot_take_what_it_must_not_lose_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence says which file has it; when the fault is over nothing is lost."""
    path = tmp_path / "s.db"
    killed_after(path, tickets=3, seconds=1000.0)

    async def refused() -> None:
        with pytest.raises(
            StoreError, match=r"s\.db does not take what .*s\.db-redo has, and must not lose: .*locked"
        ):
            await Writer(path, SCHEMA).open()

    with locked_by_another(path, monkeypatch):
        run(refused)

    async def story() -> None:
        async with writing(path) as (writer, _):
            assert await writer.read(NUMBERS) == [(1,), (2,), (3,)]

    run(story)


@pytest.mark.usefixtures("never")
def test_locked_database_takes_what_comes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program that holds the file delays what is secured, and nothing else."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, told):
            with locked_by_another(path, monkeypatch):
                put_alone(writer, 1)
                assert told == ["committed 1"]
            assert await writer.read(NUMBERS) == [(1,)]

    run(story)


@pytest.mark.usefixtures("never")
def test_damaged_database_costs_nothing_that_is_secured(tmp_path: Path) -> None:
    """It is brought into the new one."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, told):
            writer.put([Ticket.of(1, [(INSERT, (number,)) for number in range(20_000)])])
            await writer.read("PRAGMA wal_checkpoint(TRUNCATE)")
            await writer.read("PRAGMA cache_size = 0")
            await until(lambda: writer._labour.resting)
            put_alone(writer, 2, 42)
            octets = path.read_bytes()
            path.write_bytes(octets[:4096] + os.urandom(len(octets) - 4096))
            put_alone(writer, 3, 43)
            assert told == ["committed 1", "committed 2", "committed 3"]
            assert await writer.read(NUMBERS) == [(42,), (43,)]
            assert "is damaged" in told[3]

    run(story)


@pytest.mark.usefixtures("never")
def test_statement_that_is_wrong_costs_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A fault of the program's own is found too late to be told of; the log tells, and all others are kept."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, _):
            put_alone(writer, 1)
            put_alone(writer, 2, sql="INSERT INTO elsewhere VALUES (?)")
            put_alone(writer, 3)
            assert await writer.read(NUMBERS) == [(1,), (3,)]
            put_alone(writer, 4)
            assert await writer.read(NUMBERS) == [(1,), (3,), (4,)]

    run(story)
    assert "s.db: what was to be kept is left out: no such table: elsewhere" in caplog.text


@pytest.mark.parametrize("value", [["a"], {"a": 1}, 1 << 63], ids=["list", "mapping", "huge"])
@pytest.mark.usefixtures("never")
def test_value_that_a_log_takes_and_sqlite_does_not_costs_no_other(
    tmp_path: Path, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does it keep the store from being opened again."""
    path = tmp_path / "broker" / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, _):
            put_alone(writer, 1)
            writer.put([Ticket.of(2, [(INSERT, (value,))])])
            writer.gathering.finish()
            put_alone(writer, 3)
            killed = as_killed(path.parent, tmp_path / "killed") / path.name
            assert await writer.read(NUMBERS) == [(1,), (3,)]
        async with writing(killed) as (writer, _):
            assert await writer.read(NUMBERS) == [(1,), (3,)]

    run(story)
    assert caplog.text.count("what was to be kept is left out") == 2


@pytest.mark.usefixtures("never")
def test_log_is_there_as_long_as_it_is_needed(tmp_path: Path) -> None:
    """A store that was closed has none; who only reads one that was killed has what came last, too."""
    path = tmp_path / "peer" / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, _):
            put_alone(writer, 1)
            killed = as_killed(path.parent, tmp_path / "killed") / path.name
            tidy_up(path, SCHEMA)  # somebody has it: it is left alone
            assert numbers_in(path) == []
        assert numbers_in(path) == [1]
        assert not redo_file(path).exists()
        assert numbers_in(killed) == []
        tidy_up(killed, SCHEMA)
        assert numbers_in(killed) == [1]
        assert not redo_file(killed).exists()
        async with writing(killed) as (writer, _):
            assert await writer.read(NUMBERS) == [(1,)]

    run(story)


def test_keeper_passes_over_what_the_database_has(tmp_path: Path) -> None:
    """A commit of which SQLite says that it has failed may have been one."""
    path = tmp_path / "s.db"
    keeper = Keeper(path, SCHEMA, 1, "process", lambda sentence: None)
    keeper.open()
    tickets = [Ticket.of(serial, [(INSERT, (serial,))]) for serial in (1, 2, 3)]
    assert keeper.bring_in(tickets[:2]) == ((), "")
    assert keeper.bring_in(tickets) == ((), "")
    keeper.close()
    assert numbers_in(path) == [1, 2, 3]


def test_keeper_brings_in_what_it_can_and_says_what_is_left(tmp_path: Path) -> None:
    """One by one, where one is at fault: those before a full disk are in, and are not brought in again."""
    path = tmp_path / "s.db"
    keeper = Keeper(path, SCHEMA, 1, "process", lambda sentence: None)
    keeper.open()
    assert keeper.brought_in() == 0
    [(pages,)] = keeper.ask(lambda connection: connection.execute("PRAGMA page_count").fetchall())
    keeper.ask(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall())
    large = Ticket.of(3, [(INSERT, (number,)) for number in range(5000)])
    tickets = [Ticket.of(1, [(INSERT, (1,))]), Ticket.of(2, [("nonsense", ())]), large]
    left, why = keeper.bring_in(tickets)
    # SQLite prepares "nonsense" before it runs out of pages in the third.
    assert (left, why) == ([large], "database or disk is full")
    assert keeper.brought_in() == 1
    keeper.ask(lambda connection: connection.execute("PRAGMA max_page_count = 10000").fetchall())
    assert keeper.bring_in(left) == ((), "")
    assert keeper.brought_in() == 3
    keeper.close()
    assert numbers_in(path) == [1, *range(5000)]
