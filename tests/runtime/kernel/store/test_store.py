"""Order, batches, faulty writes and closing of a store, beside an idle and a busy event loop."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from specwire.runtime.kernel.store import (
    Execute,
    Insert,
    Statement,
    StoreError,
    StoreInUseError,
)
from tests.runtime.kernel.store.stores import (
    FULL,
    INTO,
    NAMES,
    Disk,
    RecordedStore,
    names_in,
    opened,
    row,
    run,
)

# --- order and batches


def test_writes_are_committed_in_order_and_reported_in_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3") as store:
            for ticket in range(1, 2001):
                store.put(ticket, [row(f"n{ticket}")])
            assert store.waiting == 2000, "`put` returns at once"
            await store.wait_until(lambda: store.last == 2000)
            assert store.waiting == 0 and not store.failures
            assert await store.names() == [f"n{ticket}" for ticket in range(1, 2001)]

    run(story)


def test_what_is_queued_when_a_commit_ends_is_the_next_transaction(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.stop_at("COMMIT")
            store.put(1, [row("first")])
            await disk.stopped()
            for ticket in range(2, 1002):
                store.put(ticket, [row(f"n{ticket}")])
            assert store.last == 0
            disk.gate.set()
            await store.wait_until(lambda: store.last == 1001)
            assert store.commits == 2
            assert store.events == [("committed", 1, []), ("committed", 1001, [])]

    run(story)


def test_a_transaction_has_a_bound(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.stop_at("COMMIT")
            store.put(1, [row("first")])
            await disk.stopped()
            for ticket in range(2, 5002):
                store.put(ticket, [row(f"n{ticket}")])
            disk.gate.set()
            await store.wait_until(lambda: store.last == 5001)
            assert store.events == [("committed", last, []) for last in (1, 4097, 5001)]

    run(story)


def test_thousand_rows_take_few_calls_of_sqlite(tmp_path: Path) -> None:
    """Each call may wait 5 ms for the interpreter lock: a call for every row would take five seconds."""
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.stop_at("BEGIN")
            store.put(1, [row("first")])
            await disk.stopped()
            for ticket in range(2, 1002):
                store.put(ticket, [row(f"n{ticket}")])
            disk.gate.set()
            await store.wait_until(lambda: store.last == 1001)
            calls = disk.statements[disk.statements.index("COMMIT", -10) + 1 :]
            assert len(calls) == 8, "BEGIN, 512 + 256 + 128 + 64 + 32 + 8 rows, COMMIT"
            assert await store.names() == ["first", *(f"n{ticket}" for ticket in range(2, 1002))]

    run(story)


def test_statements_of_a_write_are_executed_in_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3") as store:
            statements: list[Statement] = [
                row("a"),
                row("b"),
                Execute("UPDATE entry SET value = ? WHERE name = 'b'", (b"new",)),
                Execute("DELETE FROM entry WHERE name = ?", ("a",)),
                row("a", b"again"),
                Insert("INSERT INTO entry (name) VALUES", ("c",)),
            ]
            assert await store.write(1, *statements) == ""
            rows = await store.read("SELECT name, value FROM entry ORDER BY number")
            assert rows == [("b", b"new"), ("a", b"again"), ("c", None)]

    run(story)


def test_empty_write_is_reported(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3") as store:
            assert await store.write(7) == "" and store.last == 7

    run(story)


def test_waiting_octets_count_texts_and_blobs(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.stop_at("BEGIN")
            store.put(
                1,
                [
                    Insert(INTO, ("four", b"12345")),
                    Insert(INTO, ("x", bytearray(10))),
                    Execute("SELECT ?", (1,)),
                ],
            )
            assert (store.waiting, store.waiting_octets) == (1, 20)
            await disk.stopped()
            disk.gate.set()
            await store.wait_until(lambda: store.last)
            assert (store.waiting, store.waiting_octets) == (0, 0)

    run(story)


def test_reads_see_earlier_writes(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3") as store:
            for ticket in range(1, 100):
                store.put(ticket, [row(f"n{ticket}")])
                assert await store.read("SELECT count(*) FROM entry") == [(ticket,)]

    run(story)


def test_call_has_the_connection_in_autocommit_mode(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3") as store:

            def insert(connection: sqlite3.Connection) -> int:
                assert not connection.in_transaction
                return connection.execute(f"{INTO} ('a', NULL)").rowcount

            assert await store.call(insert) == 1
        assert names_in(store.path) == ["a"]

    run(story)


def test_call_that_leaves_a_transaction_open_fails_and_harms_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3") as store:

            def begin(connection: sqlite3.Connection) -> None:
                connection.execute("BEGIN")
                connection.execute(f"{INTO} ('lost', NULL)")

            with pytest.raises(StoreError, match="a transaction was left open"):
                await store.call(begin)
            assert await store.write(1, row("a")) == ""
            assert await store.names() == ["a"]

    run(story)


def test_query_that_fails_raises_and_the_store_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3") as store:
            with pytest.raises(StoreError, match=r"a\.sqlite3 cannot be used: no such table: absent"):
                await store.read("SELECT * FROM absent")
            with pytest.raises(StoreError, match="by zero"):
                await store.call(lambda connection: 1 // 0)
            assert await store.write(1, row("a")) == "" and store.refusing == ""

    run(story)


# --- faulty writes


@pytest.mark.parametrize(
    "faulty",
    [
        [row("kept")],
        [row("new"), Insert(INTO, (None, None))],
        [row("new"), row("\ud800")],
        [row("new"), Insert(INTO, ("x", 1 << 63))],
        [row("new"), Insert(INTO, ("x", object()))],
        [row("new"), Insert(INTO, ("x",))],
        [row("new"), Insert(INTO, ("x", 1, 2))],
        [row("new"), Insert(INTO, ())],
        [row("new"), Insert("INSERT INTO absent VALUES", (1,))],
        [row("new"), Insert("INSERT INTO entry (number, name) VALUES", ("no number", "x"))],
        [row("new"), Execute("DELETE FROM entry WHERE name = ?", ())],
        [row("new"), Execute("no SQL", ())],
        [row("new"), Execute("SELECT 1; SELECT 2", ())],
        [row("new"), Execute("INSERT OR ROLLBACK INTO entry (name) VALUES ('kept')", ())],
        [row("new"), Execute("SELECT 'a\0b", ())],
    ],
    ids=lambda statements: str(statements[-1]).encode("ascii", "backslashreplace").decode()[:60],
)
def test_faulty_write_fails_alone(tmp_path: Path, faulty: list[Statement]) -> None:
    """All three are one transaction: those before and after the faulty one are committed, in order."""
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.stop_at("COMMIT")
            store.put(1, [row("kept")])
            await disk.stopped()
            store.put(2, [row("before")])
            store.put(3, faulty)
            store.put(4, [row("after")])
            disk.gate.set()
            await store.wait_until(lambda: store.last == 4)
            assert list(store.failures) == [3] and store.refusing == ""
            assert store.events == [
                *(("committed", last, []) for last in (1, 2)),
                ("committed", 3, [3]),
                ("committed", 4, []),
            ]
            assert await store.names() == ["kept", "before", "after"]

    run(story)


def test_rows_of_two_faulty_writes_do_not_make_two_good_ones(tmp_path: Path) -> None:
    """One has a value less and the next a value more: together they have the right number."""
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.stop_at("COMMIT")
            store.put(1, [row("a")])
            await disk.stopped()
            store.put(2, [Insert(INTO, ("b",))])
            store.put(3, [Insert(INTO, ("c", b"", b""))])
            disk.gate.set()
            await store.wait_until(lambda: store.last == 3)
            assert set(store.failures) == {2, 3} and await store.names() == ["a"]

    run(story)


def test_many_faulty_writes_among_many(tmp_path: Path) -> None:
    disk = Disk()
    faulty = {ticket for ticket in range(2, 3000) if ticket % 7 == 0 or 500 < ticket < 700}

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.stop_at("COMMIT")
            store.put(1, [row("0")])
            await disk.stopped()
            for ticket in range(2, 3000):
                store.put(ticket, [row("0" if ticket in faulty else str(ticket))])
            disk.gate.set()
            await store.wait_until(lambda: store.last == 2999)
            assert store.failures.keys() == faulty
            good = [str(ticket) for ticket in range(2, 3000) if ticket not in faulty]
            assert await store.names() == ["0", *good]

    run(story)


# --- closing


def test_close_commits_everything(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3") as store:
            for ticket in range(1, 10_001):
                store.put(ticket, [row(str(ticket))], refusable=ticket % 2 == 0)
        assert store.last == 10_000 and store.waiting == 0 and not store.failures
        assert names_in(store.path) == [str(ticket) for ticket in range(1, 10_001)]
        assert sorted(file.name for file in tmp_path.iterdir()) == ["a.sqlite3", "a.sqlite3-lock"]

    run(story)


def test_close_while_the_disk_fails_reports_what_it_does_not_take(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            assert await store.write(1, row("a")) == ""
            disk.fail(FULL, "COMMIT")
            for ticket in range(2, 12):
                store.put(ticket, [row(str(ticket))])
            await store.wait_until(lambda: store.refusing)
        reason = f"{store.path} is closed: {FULL}"
        assert store.failures == dict.fromkeys(range(2, 12), reason) and store.waiting == 0
        assert names_in(store.path) == ["a"]

    run(story)


def test_close_tries_once_more(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect, probe_s=1000) as store:
            disk.fail(FULL, "COMMIT", times=1)
            store.put(1, [row("a")])
            await store.wait_until(lambda: store.refusing)
        assert store.last == 1 and not store.failures and names_in(store.path) == ["a"]

    run(story)


def test_closed_store_refuses(tmp_path: Path) -> None:
    async def story() -> None:
        store = RecordedStore(tmp_path / "a.sqlite3")
        await store.close()
        assert await store.write(1, row("a")) == f"{store.path} is closed"
        await store.open()
        assert await store.write(2, row("b")) == ""
        await asyncio.gather(store.close(), store.close())
        await store.close()
        assert await store.write(3, row("c")) == f"{store.path} is closed"
        with pytest.raises(StoreError, match="is closed"):
            await store.read("SELECT 1")
        assert names_in(store.path) == ["b"] and store.waiting == store.waiting_octets == 0

    run(story)


def test_close_does_not_wait_for_ever_and_keeps_the_lock(tmp_path: Path) -> None:
    """The thread may still commit: nobody else may open the file until it has ended."""
    disk = Disk()

    async def story() -> None:
        store = RecordedStore(tmp_path / "a.sqlite3", connect=disk.connect, close_s=0.05)
        await store.open()
        disk.stop_at("COMMIT")
        store.put(1, [row("a")])
        with pytest.raises(StoreError, match=r"the disk has not answered for 0\.05 s"):
            await store.close()
        with pytest.raises(StoreInUseError):
            await RecordedStore(tmp_path / "a.sqlite3").open()
        disk.gate.set()
        await store.wait_until(lambda: store.last == 1)
        await store.close()
        async with opened(tmp_path / "a.sqlite3") as again:
            assert await again.names() == ["a"]

    run(story)


def test_cancelled_open_releases_the_file_when_its_thread_has_ended(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        store = RecordedStore(tmp_path / "a.sqlite3", connect=disk.connect)
        disk.stop_at("PRAGMA journal_mode")
        opening = asyncio.create_task(store.open())
        await disk.stopped()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        with pytest.raises(StoreInUseError):
            await RecordedStore(tmp_path / "a.sqlite3").open()
        disk.gate.set()
        await store.close()
        async with opened(tmp_path / "a.sqlite3"):
            pass

    run(story)


# --- beside a busy event loop


def test_busy_event_loop_does_not_hold_up_commits(tmp_path: Path) -> None:
    """A thousand writes of one turn, and then a second in which the loop never rests."""
    disk = Disk()
    committed_at: list[float] = []

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.before = lambda sql: committed_at.append(time.monotonic()) if sql == "COMMIT" else None
            begun = time.monotonic()
            for ticket in range(1, 1001):
                store.put(ticket, [row(str(ticket))])
            while time.monotonic() < begun + 1:
                pass
            await store.wait_until(lambda: store.last == 1000)
            assert store.commits <= 10
            assert max(committed_at) - begun < 1, "while the loop was busy"

    run(story)


def test_nothing_is_lost_between_two_threads(tmp_path: Path) -> None:
    """Puts at irregular moments: each is reported without another put that would wake the thread."""

    async def story() -> None:
        before = threading.active_count()
        async with opened(tmp_path / "a.sqlite3") as store:
            for ticket in range(1, 1001):
                store.put(ticket, [row(str(ticket))])
                if ticket % 3 == 0:
                    await asyncio.sleep(ticket % 7 * 0.0002)
                if ticket % 10 == 0:
                    await store.wait_until(lambda: not store.waiting)
            assert threading.active_count() < before + 10
            assert await store.read(NAMES) == [(str(ticket),) for ticket in range(1, 1001)]

    run(story)
