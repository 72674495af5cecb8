"""A disk that takes no writes: as a test makes it, and a real one that is full, limited or locked."""

from __future__ import annotations

import asyncio
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from specwire.runtime.kernel.store import (
    StoreError,
)
from tests.runtime.kernel.store.stores import (
    BUSY,
    CANTOPEN,
    FULL,
    IOERR,
    NO_SPACE,
    Disk,
    RecordedStore,
    names_in,
    opened,
    row,
    run,
    start_python,
)

# --- a disk that fails

FAILING = [
    (FULL, "BEGIN"),
    (FULL, "INSERT"),
    (FULL, "COMMIT"),
    (IOERR, "BEGIN"),
    (IOERR, "INSERT"),
    (IOERR, "COMMIT"),
    (BUSY, "BEGIN"),
    (BUSY, "COMMIT"),
    (NO_SPACE, "BEGIN"),
    (MemoryError(), "INSERT"),
    (FULL, ""),
]


@pytest.mark.parametrize(
    ("error", "at"), FAILING, ids=lambda value: getattr(value, "sqlite_errorname", None) or str(value)
)
def test_refusable_writes_fail_and_others_wait_while_the_disk_fails(
    tmp_path: Path, error: Exception, at: str
) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            assert await store.write(1, row("a")) == ""
            disk.fail(error, at)
            store.put(2, [row("waits")])
            store.put(3, [row("refused")], refusable=True)
            store.put(4, [row("waits too")])
            await store.wait_until(lambda: 3 in store.failures)
            reason = str(error) or repr(error)
            assert store.refusing == store.failures[3] == reason
            assert await store.write(5, row("refused at once"), refusable=True) == reason
            store.put(6, [row("waits as well")])
            await asyncio.sleep(0.1)  # some attempts
            assert (store.last, store.waiting) == (1, 3)
            assert store.events.count(("refusing", reason)) == 1, "called when it begins"
            disk.recover()
            await store.wait_until(lambda: not store.refusing)
            await store.wait_until(lambda: store.last == 6)
            assert [event for event in store.events if event[0] == "refusing"] == [
                ("refusing", reason),
                ("refusing", ""),
            ]
            assert await store.write(7, row("taken"), refusable=True) == ""
            assert await store.names() == ["a", "waits", "waits too", "waits as well", "taken"]
            assert store.failures.keys() == {3, 5}

    run(story)


def test_backlog_of_a_failing_disk_is_committed_in_bounded_transactions(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.fail(FULL, "COMMIT")
            for ticket in range(1, 5001):
                store.put(ticket, [row(str(ticket))])
            await store.wait_until(lambda: store.refusing)
            await asyncio.sleep(0.1)
            disk.recover()
            await store.wait_until(lambda: store.last == 5000)
            assert store.events[-2:] == [("committed", 4096, []), ("committed", 5000, [])]

    run(story)


def test_refusable_write_does_not_wait_while_the_loop_does_not_know_yet(tmp_path: Path) -> None:
    """It is queued before the event loop has had the turn in which the store begins to refuse."""
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect, probe_s=1000) as store:
            disk.fail(FULL, "BEGIN")
            store.put(1, [row("first")], refusable=True)
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                pass  # the thread gets its time, the loop does not
            assert not store.refusing
            store.put(2, [row("second")], refusable=True)
            await store.wait_until(lambda: 2 in store.failures)
            assert store.failures == {1: str(FULL), 2: str(FULL)}
            disk.recover()

    run(story)


def test_rollback_that_fails_too_costs_nothing(tmp_path: Path) -> None:
    """The transaction cannot be ended: the connection is closed, and a new one is opened."""
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:

            def before(sql: str) -> None:
                if sql in ("COMMIT", "ROLLBACK"):
                    raise IOERR
                if sql == "connect":
                    raise CANTOPEN

            disk.before = before
            store.put(1, [row("waits")])
            store.put(2, [row("refused")], refusable=True)
            await store.wait_until(lambda: 2 in store.failures)
            await asyncio.sleep(0.1)
            assert store.refusing == str(CANTOPEN), "the last reason"
            disk.recover()
            await store.wait_until(lambda: store.last == 1)
            assert store.refusing == "" and await store.names() == ["waits"]

    run(story)


def test_connection_is_kept_while_the_disk_fails(tmp_path: Path) -> None:
    """A new connection could restore a commit that failed, and the next attempt would repeat it."""
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.statements.clear()
            disk.fail(IOERR, "COMMIT", times=3)
            assert await store.write(1, row("a")) == ""
            assert disk.connections == 1 and disk.statements.count("COMMIT") == 4

    run(story)


def test_probe_ends_the_refusal_where_no_write_waits(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.fail(FULL, "INSERT")
            assert await store.write(1, row("refused"), refusable=True) == str(FULL)
            assert store.waiting == 0
            await asyncio.sleep(0.1)
            assert store.refusing, "the probe inserts as well"
            disk.recover()
            await store.wait_until(lambda: not store.refusing)
            assert await store.read("SELECT name FROM sqlite_master WHERE type = 'table'") == [("entry",)]

    run(story)


def test_faulty_write_does_not_end_the_refusal(tmp_path: Path) -> None:
    """It fails before it reaches the disk."""
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.fail(FULL, "COMMIT")
            store.put(1, [row("\ud800")])
            store.put(2, [row("waits")])
            await store.wait_until(lambda: store.refusing)
            store.put(3, [row("\ud800")])
            await asyncio.sleep(0.1)
            assert store.refusing and store.last == 1
            disk.recover()
            await store.wait_until(lambda: store.last == 3)
            assert store.failures.keys() == {1, 3}
            assert [event for event in store.events if event[0] == "refusing"] == [
                ("refusing", str(FULL)),
                ("refusing", ""),
            ]

    run(story)


def test_faulty_write_does_not_end_the_refusal_where_it_is_the_next(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.fail(FULL, "COMMIT")
            assert await store.write(1, row("refused"), refusable=True) == str(FULL)
            assert "surrogates" in await store.write(2, row("\ud800"))
            await asyncio.sleep(0.1)
            assert store.events == [("refusing", str(FULL)), ("committed", 0, [1]), ("committed", 2, [2])]
            disk.recover()
            await store.wait_until(lambda: not store.refusing)

    run(story)


def test_reads_work_while_the_disk_takes_no_writes(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            assert await store.write(1, row("a")) == ""
            disk.fail(FULL, "BEGIN")
            store.put(2, [row("waits")])
            await store.wait_until(lambda: store.refusing)
            assert await store.names() == ["a"]
            disk.recover()
            await store.wait_until(lambda: store.last == 2)
            assert await store.names() == ["a", "waits"]

    run(story)


def test_read_that_the_disk_fails_raises(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            disk.fail(IOERR, "SELECT", times=1)
            with pytest.raises(StoreError, match="cannot be used: disk I/O error"):
                await store.names()
            assert await store.names() == [] and store.refusing == ""

    run(story)


def test_another_process_that_has_the_file_locked(tmp_path: Path) -> None:
    disk = Disk()

    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", connect=disk.connect) as store:
            code = (
                "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
                "c.execute('BEGIN IMMEDIATE'); print(flush=True); input()"
            )
            with start_python(code, store.path) as other:
                assert other.stdout
                await asyncio.to_thread(other.stdout.readline)
                store.put(1, [row("waits")])
                assert await store.write(2, row("refused"), refusable=True) == "database is locked"
                assert store.refusing == "database is locked" and store.last == 0
                other.kill()
            await store.wait_until(lambda: store.last == 1)
            assert not store.refusing and await store.names() == ["waits"]

    run(story)


# --- real faults


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_real_disk_that_is_full(small_disk: Path) -> None:
    ballast = small_disk / "ballast"

    async def story() -> None:
        async with opened(small_disk / "a.sqlite3") as store:
            assert await store.write(1, row("before", bytes(100_000))) == ""
            with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
                while True:
                    file.write(bytes(4096))
            store.put(2, [row("waits", bytes(300_000))])
            reason = await store.write(3, row("refused", bytes(100_000)), refusable=True)
            assert store.refusing == reason == "database or disk is full"
            await asyncio.sleep(0.1)
            assert await store.names() == ["before"]
            ballast.unlink()
            await store.wait_until(lambda: store.last == 2)
            assert await store.write(4, row("after"), refusable=True) == ""
            assert await store.names() == ["before", "waits", "after"]

    run(story)


def test_disk_that_is_full_when_the_file_is_created(small_disk: Path) -> None:
    async def story() -> None:
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(bytes(4096))
        with pytest.raises(StoreError, match="cannot be used: "):
            await RecordedStore(small_disk / "a.sqlite3").open()
        ballast.unlink()
        async with opened(small_disk / "a.sqlite3") as store:
            assert await store.write(1, row("a")) == ""

    run(story)


def test_real_disk_that_cannot_confirm(tmp_path: Path) -> None:
    """Each fsync fails: a commit is complete in the WAL, and must be neither repeated nor restored."""
    compiler = shutil.which("cc") or pytest.skip("a C compiler is missing")
    source, library, switch = (tmp_path / name for name in ("fsync.c", "fsync.so", "fails"))
    source.write_text(
        f"""
#include <errno.h>
#include <unistd.h>
#include <sys/syscall.h>
static int fail(void) {{ return access("{switch}", F_OK) == 0; }}
int fsync(int file) {{ if (fail()) {{ errno = EIO; return -1; }} return syscall(SYS_fsync, file); }}
int fdatasync(int file) {{ if (fail()) {{ errno = EIO; return -1; }} return syscall(SYS_fdatasync, file); }}
"""
    )
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    script = """
import asyncio, os, sys
from pathlib import Path
from specwire.runtime.kernel.store import Schema
from tests.runtime.kernel.store.stores import opened, row

async def main():
    path, switch = map(Path, sys.argv[1:])
    schema = Schema(1, ("CREATE TABLE entry (number INTEGER PRIMARY KEY, name TEXT, value BLOB)",))
    async with opened(path, schema, "full") as store:
        assert await store.write(1, row("before")) == ""
        switch.touch()
        store.put(2, [row("waits")])
        assert await store.write(3, row("refused"), refusable=True) == "disk I/O error"
        await asyncio.sleep(0.1)
        switch.unlink()
        await store.wait_until(lambda: store.last == 2)
        assert await store.names() == ["before", "waits"]

asyncio.run(main())
"""
    path = tmp_path / "a.sqlite3"
    with start_python(script, path, switch, LD_PRELOAD=library) as process:
        process.communicate(timeout=60)
    assert process.returncode == 0 and names_in(path) == ["before", "waits"]


def test_real_limit_of_the_size_of_files(tmp_path: Path) -> None:
    """In a process whose files may have 200 kB, and then more."""
    script = """
import asyncio, resource, signal, sys
from pathlib import Path
from tests.runtime.kernel.store.stores import opened, row

async def main():
    async with opened(Path(sys.argv[1])) as store:
        assert await store.write(1, row("before")) == ""
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        store.put(2, [row("waits", bytes(300_000))])
        reason = await store.write(3, row("refused", bytes(300_000)), refusable=True)
        assert reason and store.refusing
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await store.wait_until(lambda: store.last >= 2)
        assert await store.names() == ["before", "waits"]

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
asyncio.run(main())
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    path = tmp_path / "a.sqlite3"
    with start_python(script, path) as process:
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert names_in(path) == ["before", "waits"]
