"""The writer of a store: many tickets in one commit, each told what became of it, whatever happens to the file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab.store.batch import carry_out
from specwire.runtime.norfab.store.errors import StoreError, StoreInUseError, StoreVersionError
from specwire.runtime.norfab.store.keeper import Ticket
from specwire.runtime.norfab.store.writer import Writer
from tests.runtime.norfab_store.stories import locked_by_another, run

SCHEMA = ["CREATE TABLE thing (number INTEGER PRIMARY KEY, octets BLOB)"]
INSERT = "INSERT INTO thing VALUES (?, ?)"
NUMBERS = "SELECT number FROM thing ORDER BY number"


class Told:
    """What a writer has told."""

    def __init__(self) -> None:
        self.committed = 0
        self.failed: dict[int, str] = {}
        self.damage: list[str] = []
        self._changed = asyncio.Event()

    def commit(self, ticket: int) -> None:
        """Take the last ticket of a commit."""
        self.committed = ticket
        self._changed.set()

    def fail(self, ticket: int, reason: str) -> None:
        """Take a ticket that was not kept."""
        self.failed[ticket] = reason
        self._changed.set()

    async def until(self, ticket: int) -> None:
        """Wait until this ticket was told of."""
        while self.committed < ticket and ticket not in self.failed:
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def writing(path: Path, **settings: Any) -> AsyncIterator[tuple[Writer, Told]]:
    """Open a writer, and close it."""
    told = Told()
    given = {"schema": SCHEMA, "on_damaged": told.damage.append, **settings}
    writer = Writer(path, on_committed=told.commit, on_failed=told.fail, **given)
    await writer.open()
    try:
        yield writer, told
    finally:
        await writer.close()


@pytest.fixture
def unsecured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the redo log take nothing, so that each ticket is committed before it is told; see test_secured.py."""
    monkeypatch.setattr("specwire.runtime.norfab.store.redo.RECORD_OCTETS", 0)


def numbers_in(path: Path) -> list[int]:
    """Return what is in the file, read by another connection."""
    connection = sqlite3.connect(path)
    try:
        return [number for (number,) in connection.execute(NUMBERS)]
    finally:
        connection.close()


@pytest.mark.parametrize("durability", ["process", "full"])
def test_what_is_told_durable_is_in_the_file(tmp_path: Path, durability: str) -> None:
    """Another connection sees tickets as soon as they are told committed, unless one came alone (see test_secured.py)."""

    async def story() -> None:
        async with writing(tmp_path / "s.db", durability=durability) as (writer, told):
            writer.put([Ticket.of(1, [(INSERT, (7, b"x"))]), Ticket.of(2, [(INSERT, (8, b"y"))])])
            await told.until(2)
            assert numbers_in(tmp_path / "s.db") == [7, 8]

    run(story)


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("full", 2)])
def test_durability_is_what_sqlite_is_told(tmp_path: Path, durability: str, synchronous: int) -> None:
    """NORMAL waits for the disk at no commit, FULL at each."""

    async def story() -> None:
        async with writing(tmp_path / "s.db", durability=durability) as (writer, _):
            assert await writer.read("PRAGMA synchronous") == [(synchronous,)]
            assert await writer.read("PRAGMA journal_mode") == [("wal",)]

    run(story)


def test_many_tickets_are_few_commits(tmp_path: Path) -> None:
    """What gathers in one turn of the loop is not committed ticket by ticket, and all of it is kept in order."""

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            for ticket in range(1, 3001):
                writer.put([Ticket.of(ticket, [(INSERT, (ticket, b"x"))])])
            await told.until(3000)
            assert writer.commits < 300
            assert [number for (number,) in await writer.read(NUMBERS)] == [*range(1, 3001)]

    run(story)


@pytest.mark.usefixtures("unsecured")
@pytest.mark.parametrize("pages", [0, 20, 3000], ids=["in the thread", "often worked off", "as it is"])
def test_tickets_that_come_alone_are_kept_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    """Whether the loop commits them or the thread, and whenever the log is worked off, each is in the file when it is told."""
    monkeypatch.setattr("specwire.runtime.norfab.store.keeper.QUICK_PAGES", pages)

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            for ticket in range(1, 301):
                writer.put([Ticket.of(ticket, [(INSERT, (ticket, b"x" * ticket))])])
                await told.until(ticket)
                if ticket % 50 == 0:
                    assert numbers_in(tmp_path / "s.db") == [*range(1, ticket + 1)]
            assert told.failed == {}
            assert writer.commits == 300

    run(story)


def test_what_is_patient_waits_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It joins the commit of the next ticket that is not, of a question, or of the end; else its time comes."""
    monkeypatch.setattr("specwire.runtime.norfab.store.gathering.PATIENCE_S", 1000.0)

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            writer.put([Ticket.of(1, [(INSERT, (1, b"x"))])], patient=True)
            for _ in range(10):
                await asyncio.sleep(0)
            assert told.committed == 0
            writer.put([Ticket.of(2, [(INSERT, (2, b"x"))])])
            writer.put([Ticket.of(3, [(INSERT, (3, b"x"))])], patient=True)
            await told.until(3)
            assert writer.commits == 1
            writer.put([Ticket.of(4, [(INSERT, (4, b"x"))])], patient=True)
            assert await writer.read(NUMBERS) == [(1,), (2,), (3,), (4,)]
            writer.put([Ticket.of(5, [(INSERT, (5, b"x"))])], patient=True)
        assert numbers_in(tmp_path / "s.db") == [1, 2, 3, 4, 5]
        monkeypatch.setattr("specwire.runtime.norfab.store.gathering.PATIENCE_S", 0.001)
        async with writing(tmp_path / "s.db") as (writer, told):
            writer.put([Ticket.of(6, [(INSERT, (6, b"x"))])], patient=True)
            await told.until(6)

    run(story)


@pytest.mark.parametrize(("busy_s", "commits"), [(1000.0, 1), (0.0, 5)])
def test_what_goes_on_coming_is_one_commit_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy_s: float, commits: int
) -> None:
    """Four tickets in each of five turns of the loop: all are kept when a turn brings none, or when it takes too long."""
    monkeypatch.setattr("specwire.runtime.norfab.store.gathering.BUSY_S", busy_s)

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            for turn in range(5):
                for number in range(4 * turn + 1, 4 * turn + 5):
                    writer.put([Ticket.of(number, [(INSERT, (number, b"x"))])])
                await asyncio.sleep(0)
            await told.until(20)
            assert writer.commits == commits
            assert numbers_in(tmp_path / "s.db") == [*range(1, 21)]

    run(story)


@pytest.mark.usefixtures("unsecured")
def test_what_comes_alone_is_told_before_settle_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the file by then; of two that come together, and of one that follows at once, it is told later."""
    monkeypatch.setattr("specwire.runtime.norfab.store.gathering.monotonic", count(100.0, 1.0).__next__)

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            await at_rest(writer)
            writer.gathering.hold()
            writer.put([Ticket.of(1, [(INSERT, (1, b"x"))])], patient=True)
            writer.put([Ticket.of(2, [(INSERT, (2, b"x"))])])
            assert told.committed == 0
            writer.gathering.settle()
            assert told.committed == 2
            assert numbers_in(tmp_path / "s.db") == [1, 2]
            writer.gathering.hold()
            writer.put([Ticket.of(3, [(INSERT, (3, b"x"))])])
            writer.put([Ticket.of(4, [(INSERT, (4, b"x"))])])
            writer.gathering.settle()
            assert told.committed == 2
            await told.until(4)
            writer.gathering.hold()
            writer.put([Ticket.of(5, [(INSERT, (5, b"x"))])])
            writer.gathering.settle()
            assert told.committed == 4
            await told.until(5)
            assert writer.commits == 3

    run(story)


@pytest.mark.usefixtures("unsecured")
def test_what_has_failed_is_told_before_what_was_committed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the thread has done with the one before the loop comes to hear of it."""
    monkeypatch.setattr("specwire.runtime.norfab.store.gathering.monotonic", count(100.0, 1.0).__next__)

    async def story() -> None:
        order: list[str] = []
        path = tmp_path / "s.db"
        writer = Writer(
            path,
            SCHEMA,
            on_committed=lambda ticket: order.append(f"committed {ticket}"),
            on_failed=lambda ticket, reason: order.append(f"failed {ticket}"),
        )
        await writer.open()
        await at_rest(writer)
        writer.gathering.hold()
        writer.put([Ticket.of(1, [("INSERT INTO nothing VALUES (?)", (1,))])])
        writer.gathering.settle()
        wait_without_the_loop(writer)
        for ticket in (2, 3):
            writer.gathering.hold()
            writer.put([Ticket.of(ticket, [(INSERT, (ticket, b"x"))])])
            writer.gathering.settle()
        assert order == []
        while len(order) < 2 or not order[-1].endswith("3"):
            await asyncio.sleep(0.001)
        assert order[0] == "failed 1"
        assert numbers_in(path) == [2, 3]
        await writer.close()

    run(story)


def test_statements_of_several_kinds_keep_their_order(tmp_path: Path) -> None:
    """A row that is written, deleted and written again is there at the end with its last content."""

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, _):
            writer.put([Ticket.of(1, [(INSERT, (1, b"a")), (INSERT, (2, b"a"))])])
            writer.put([Ticket.of(2, [("DELETE FROM thing WHERE number = ?", (1,))])])
            writer.put([Ticket.of(3, [(INSERT, (1, b"b"))])])
            assert await writer.read("SELECT number, octets FROM thing ORDER BY number") == [
                (1, b"b"),
                (2, b"a"),
            ]

    run(story)


def test_a_ticket_that_fails_costs_no_other(tmp_path: Path) -> None:
    """Of a group in which one ticket cannot be kept all others are, and that one not even in part."""

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            for ticket in range(1, 101):
                number = 1 if ticket == 50 else ticket
                writer.put([Ticket.of(ticket, [(INSERT, (1000 + ticket, b"")), (INSERT, (number, b""))])])
            await told.until(100)
            assert list(told.failed) == [50]
            assert "UNIQUE" in told.failed[50]
            kept = {number for (number,) in await writer.read(NUMBERS)}
            assert kept == {n for t in range(1, 101) if t != 50 for n in (t, 1000 + t)}

    run(story)


@pytest.mark.parametrize("value", [1 << 70, "\ud800", object()], ids=["huge", "surrogate", "unfit"])
def test_what_sqlite_cannot_take_fails_by_itself(tmp_path: Path, value: object) -> None:
    """A value that fits no column is told for its ticket; the writer goes on."""

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            writer.put([Ticket.of(1, [(INSERT, (1, value))])])
            writer.put([Ticket.of(2, [(INSERT, (2, b""))])])
            await told.until(2)
            assert list(told.failed) == [1]
            assert await writer.read(NUMBERS) == [(2,)]

    run(story)


def test_full_disk_is_told_per_ticket_and_recovered_from(tmp_path: Path) -> None:
    """Without room tickets fail with the reason; what is small enough, or comes when there is room, is kept."""

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            [(pages,)] = await writer.read("PRAGMA page_count")
            await writer.read(f"PRAGMA max_page_count = {pages + 4}")
            for ticket in range(1, 11):
                writer.put([Ticket.of(ticket, [(INSERT, (ticket, bytes(100_000 if ticket % 2 else 10)))])])
            await told.until(10)
            assert {*told.failed} == {1, 3, 5, 7, 9}
            assert "full" in told.failed[1]
            await writer.read("PRAGMA max_page_count = 100000")
            writer.put([Ticket.of(11, [(INSERT, (11, bytes(100_000)))])])
            await told.until(11)
            assert 11 not in told.failed

    run(story)


def test_process_cannot_have_the_store_of_another(tmp_path: Path) -> None:
    """The second is told who has it; when the first is killed the store is free at once."""
    path = tmp_path / "s.db"
    program = (
        "import asyncio, sys; from pathlib import Path\n"
        "from specwire.runtime.norfab.store.writer import Writer\n"
        "async def main():\n"
        f"    await Writer(Path(sys.argv[1]), {SCHEMA!r}).open()\n"
        "    print('open', flush=True); await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(StoreInUseError, match=f"in use by process {other.pid}"):
            asyncio.run(Writer(path, SCHEMA).open())
        other.kill()
        other.wait()

    async def story() -> None:
        async with writing(path) as (writer, _):
            assert await writer.read(NUMBERS) == []

    run(story)


def test_killed_process_loses_nothing_that_was_told_durable(tmp_path: Path) -> None:
    """After kill -9 in the middle of writing the file has at least what was told, without a gap."""
    path = tmp_path / "s.db"
    program = (
        "import asyncio, os, sys; from pathlib import Path\n"
        "from specwire.runtime.norfab.store.keeper import Ticket\n"
        "from specwire.runtime.norfab.store.writer import Writer\n"
        "def told(ticket):\n"
        "    os.write(1, f'{ticket}\\n'.encode())\n"
        "async def main():\n"
        f"    writer = Writer(Path(sys.argv[1]), {SCHEMA!r}, on_committed=told)\n"
        "    await writer.open()\n"
        "    ticket = 0\n"
        "    while True:\n"
        "        for _ in range(10 if writer.waiting < 100 else 0):\n"
        "            ticket += 1\n"
        f"            writer.put([Ticket.of(ticket, [({INSERT!r}, (ticket, bytes(100)))])])\n"
        "        await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        told = [other.stdout.readline() for _ in range(20)]
        other.kill()
        durable = int((told + other.stdout.readlines())[-1])
    kept = numbers_in(path)
    assert kept == [*range(1, len(kept) + 1)]
    assert len(kept) >= durable


@pytest.mark.parametrize("damage", ["header", "pages", "nonsense"])
def test_damaged_file_is_moved_aside_and_told(tmp_path: Path, damage: str) -> None:
    """The store begins anew, the damaged file is still there under another name, and both are told."""
    path = tmp_path / "s.db"

    async def fill() -> None:
        async with writing(path) as (writer, _):
            writer.put([Ticket.of(1, [(INSERT, (number, bytes(3000))) for number in range(200)])])

    run(fill)
    octets = bytearray(path.read_bytes())
    if damage == "header":
        octets[:16] = b"not a database.."
    elif damage == "pages":
        octets[8192:] = os.urandom(len(octets) - 8192)
    else:
        octets = bytearray(b"nonsense" * 1000)
    path.write_bytes(octets)

    async def story() -> None:
        async with writing(path) as (writer, told):
            writer.put([Ticket.of(1, [(INSERT, (1, b"new"))])])
            await told.until(1)
            assert await writer.read(NUMBERS) == [(1,)]
            [aside] = [
                file for file in tmp_path.glob("s.db.damaged-*") if not file.name.endswith(("wal", "shm"))
            ]
            assert aside.read_bytes() == octets
            [sentence] = told.damage
            assert str(path) in sentence
            assert str(aside) in sentence

    run(story)


@pytest.mark.usefixtures("unsecured")
def test_damage_at_work_is_told_and_the_next_ticket_is_kept(tmp_path: Path) -> None:
    """A file that is spoilt under a running writer is replaced; nothing ends."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, told):
            writer.put([Ticket.of(1, [(INSERT, (number, bytes(3000))) for number in range(200)])])
            await writer.read("PRAGMA wal_checkpoint(TRUNCATE)")
            octets = path.read_bytes()
            path.write_bytes(octets[:4096] + os.urandom(len(octets) - 4096))
            await writer.read("PRAGMA cache_size = 0")
            ticket = 1
            while not told.damage:
                ticket += 1
                writer.put([Ticket.of(ticket, [("DELETE FROM thing WHERE number = ?", (ticket,))])])
                await told.until(ticket)
                assert ticket < 150
            writer.put([Ticket.of(ticket + 1, [(INSERT, (1, b"new"))])])
            await told.until(ticket + 1)
            assert await writer.read(NUMBERS) == [(1,)]

    run(story)


@pytest.mark.parametrize(
    "making", ["PRAGMA user_version = 9", "CREATE TABLE other (x)"], ids=["version", "tables"]
)
def test_file_of_something_else_is_left_alone(tmp_path: Path, making: str) -> None:
    """A newer version's store, or somebody else's database, is refused and not touched."""
    path = tmp_path / "s.db"
    with sqlite3.connect(path) as connection:
        connection.execute(making)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match="move it away"):
        asyncio.run(Writer(path, SCHEMA).open())
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'thing'").fetchone() == (
            0,
        )
    connection.close()
    assert len(path.read_bytes()) == len(before)


def test_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """The sentence names the folder."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file/folder"):
        asyncio.run(Writer(tmp_path / "file" / "folder" / "s.db", SCHEMA).open())


def test_too_much_that_waits_is_refused(tmp_path: Path) -> None:
    """Beyond the bounds tickets fail with the reason, and those that wait are kept."""

    async def story() -> None:
        async with writing(tmp_path / "s.db", max_waiting=10) as (writer, told):
            for ticket in range(1, 16):  # in one turn of the loop: the thread cannot take anything
                writer.put([Ticket.of(ticket, [(INSERT, (ticket, b""))])])
            await told.until(15)
            await told.until(10)
            assert {*told.failed} == {11, 12, 13, 14, 15}
            assert "slow" in told.failed[11]
            assert len(await writer.read(NUMBERS)) == 10

    run(story)


@pytest.mark.usefixtures("unsecured")
def test_of_several_that_are_put_those_for_which_there_is_room_are_kept(tmp_path: Path) -> None:
    """In number and in octets; one that is alone has room, however large."""

    async def story() -> None:
        async with writing(tmp_path / "s.db", max_waiting=4, max_octets=1000) as (writer, told):
            writer.put([Ticket.of(ticket, [(INSERT, (ticket, b""))]) for ticket in range(1, 7)])
            await told.until(6)
            await told.until(4)
            assert {*told.failed} == {5, 6}
            await at_rest(writer)
            writer.put([Ticket.of(ticket, [(INSERT, (ticket, bytes(600)))]) for ticket in (7, 8)])
            await told.until(8)
            await told.until(7)
            assert {*told.failed} == {5, 6, 8}
            await at_rest(writer)
            writer.put([Ticket.of(9, [(INSERT, (9, bytes(2000)))])])
            await told.until(9)
            assert {*told.failed} == {5, 6, 8}
            assert numbers_in(tmp_path / "s.db") == [1, 2, 3, 4, 7, 9]

    run(story)


def test_what_was_refused_is_told_before_what_is_committed_later(tmp_path: Path) -> None:
    """Also where the commit was to come first, as something was put before."""

    async def story() -> None:
        order: list[str] = []
        writer = Writer(
            tmp_path / "s.db",
            SCHEMA,
            on_committed=lambda ticket: order.append(f"committed {ticket}"),
            on_failed=lambda ticket, reason: order.append(f"failed {ticket}, {reason}"),
        )
        await writer.open()
        await at_rest(writer)
        writer.put([Ticket.of(1, [(INSERT, (1, b""))])])
        writer.refuse(2, "no")
        writer.put([Ticket.of(3, [(INSERT, (3, b""))])])
        writer.refuse(4, "never")
        await writer.close()
        assert order == ["failed 2, no", "failed 4, never", "committed 3"]

    run(story)


def test_close_writes_what_waits_and_refuses_what_comes(tmp_path: Path) -> None:
    """Closing loses nothing; afterwards tickets fail and questions raise."""

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            for ticket in range(1, 501):
                writer.put([Ticket.of(ticket, [(INSERT, (ticket, b""))])])
            await writer.close()
            assert told.committed == 500
            writer.put([Ticket.of(501, [(INSERT, (501, b""))])])
            await told.until(501)
            assert "closed" in told.failed[501]
            with pytest.raises(StoreError, match="closed"):
                await writer.read(NUMBERS)
            await writer.close()
        assert numbers_in(tmp_path / "s.db") == [*range(1, 501)]

    run(story)


@pytest.mark.usefixtures("unsecured")
def test_locked_by_another_program_is_told_and_over_when_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that holds the database fails what waits, with the reason; afterwards tickets are kept again."""
    path = tmp_path / "s.db"

    async def story() -> None:
        async with writing(path) as (writer, told):
            with locked_by_another(path, monkeypatch):
                writer.put([Ticket.of(1, [(INSERT, (1, b""))])])
                await told.until(1)
                assert "locked" in told.failed[1]
            writer.put([Ticket.of(2, [(INSERT, (2, b""))])])
            await told.until(2)
            assert 2 not in told.failed

    run(story)


def test_question_that_is_wrong_raises_and_the_writer_goes_on(tmp_path: Path) -> None:
    """A question of the program's own that SQLite does not take is told to who asked."""

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, _):
            with pytest.raises(StoreError, match="no such table"):
                await writer.read("SELECT * FROM other")
            assert await writer.read(NUMBERS) == []

    run(story)


@pytest.mark.usefixtures("unsecured")
@pytest.mark.parametrize(("deletions", "in_thread"), [(8, False), (9, True)])
def test_many_deletions_are_left_to_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deletions: int, in_thread: bool
) -> None:
    """One may be of very many rows, and the event loop has others to see to."""
    threads: list[str] = []

    def note(connection: sqlite3.Connection, statements: Any) -> None:
        threads.append(threading.current_thread().name)
        carry_out(connection, statements)

    monkeypatch.setattr("specwire.runtime.norfab.store.keeper.carry_out", note)

    async def story() -> None:
        async with writing(tmp_path / "s.db") as (writer, told):
            assert await writer.read(NUMBERS) == []
            await at_rest(writer)
            writer.put([Ticket.of(1, [(INSERT, (number, b"x")) for number in range(20)])])
            await told.until(1)
            writer.put(
                [
                    Ticket.of(
                        2, [("DELETE FROM thing WHERE number = ?", (number,)) for number in range(deletions)]
                    )
                ]
            )
            await told.until(2)
            assert numbers_in(tmp_path / "s.db") == [*range(deletions, 20)]

    run(story)
    assert [name.startswith("store ") for name in threads] == [False, in_thread]


def wait_without_the_loop(writer: Writer) -> None:
    """Wait until the writer's thread has done what it has, of which the loop is not to hear."""
    while writer._labour.queue or not writer._labour.resting:
        time.sleep(0.001)


async def at_rest(writer: Writer) -> None:
    """Wait until the writer's thread has nothing to do."""
    while not writer._labour.resting:
        await asyncio.sleep(0.001)
