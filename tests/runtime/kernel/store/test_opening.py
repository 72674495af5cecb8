"""Files of a store: names, modes, settings, exclusive use, versions, and what kill -9 leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from specwire.runtime.kernel.store import (
    Schema,
    StoreError,
    StoreInUseError,
    StoreVersionError,
)
from tests.runtime.kernel.store.stores import (
    SCHEMA,
    Disk,
    RecordedStore,
    as_killed,
    names_in,
    opened,
    row,
    run,
    start_python,
)

# --- files and folders


def test_file_belongs_to_its_owner(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path / "new" / "folder" / "a.sqlite3") as store:
            assert await store.write(1, row("a")) == ""
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in store.path.parent.iterdir()}
            assert modes == {f"a.sqlite3{suffix}": 0o600 for suffix in ("", "-wal", "-shm", "-lock")}

    mask = os.umask(0o022)
    try:
        run(story)
    finally:
        os.umask(mask)


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "a?mode=ro",
        "a#b",
        "100%",
        "it's",
        'a"b',
        "äöü",
        os.fsdecode(b"\xff\xfe"),
        "new\nline",
        "file:x",
    ],
)
@pytest.mark.parametrize("where", ["folder", "file"])
def test_odd_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: str) -> None:
    """Relative, so that a name may begin with ``file:``, and again after damage: each step knows the name."""
    monkeypatch.chdir(tmp_path)
    path = Path(name) / "a.sqlite3" if where == "folder" else Path(name)

    async def story() -> None:
        async with opened(path) as store:
            assert await store.write(1, row("a")) == ""
        with path.open("r+b") as file:
            file.write(bytes(100))
        async with opened(path) as store:
            assert len(store.notices) == 1 and await store.names() == []
            assert await store.write(1, row("b")) == ""
        assert names_in(path) == ["b"]
        assert {file.name.removeprefix(path.name)[:9] for file in path.parent.iterdir()} >= {
            "",
            "-lock",
            ".damaged-",
        }

    run(story)


def test_memory_is_no_name_of_a_file_that_sqlite_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def story() -> None:
        async with opened(Path(":memory:")) as store:
            assert await store.write(1, row("a")) == ""
        assert names_in(tmp_path / ":memory:") == ["a"]

    run(story)


def test_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def story() -> None:
        with pytest.raises(StoreError, match="file cannot be created: File exists"):
            await RecordedStore(tmp_path / "file" / "a.sqlite3").open()
        with pytest.raises(StoreError, match="cannot be created: Not a directory"):
            await RecordedStore(tmp_path / "file" / "deeper" / "a.sqlite3").open()
        (tmp_path / "b.sqlite3").mkdir()
        with pytest.raises(StoreError, match=r"b\.sqlite3 cannot be used: "):
            await RecordedStore(tmp_path / "b.sqlite3").open()

    run(story)


# --- exclusive use


def test_store_of_another_process(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from tests.runtime.kernel.store.stores import opened, row

async def main():
    async with opened(Path(sys.argv[1])) as store:
        await store.write(1, row("theirs"))
        print(flush=True)
        await asyncio.to_thread(input)

asyncio.run(main())
"""
    path = tmp_path / "a.sqlite3"

    async def story() -> None:
        with start_python(code, path) as other:
            assert other.stdout
            await asyncio.to_thread(other.stdout.readline)
            with pytest.raises(StoreInUseError, match=f"is in use by process {other.pid}: end that one"):
                await RecordedStore(path).open()
            other.kill()
        async with opened(path) as store:
            assert await store.names() == ["theirs"]

    run(story)


def test_lock_is_released_by_close_and_by_a_failed_open(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"

    async def story() -> None:
        for _ in range(3):
            async with opened(path):
                with pytest.raises(StoreInUseError, match=f"process {os.getpid()}"):
                    await RecordedStore(path).open()
            with pytest.raises(StoreVersionError):
                await RecordedStore(path, Schema(9, ())).open()

    run(story)


def test_lock_is_released_although_a_forked_process_lives_on(tmp_path: Path) -> None:
    async def story() -> None:
        store = RecordedStore(tmp_path / "a.sqlite3")
        await store.open()
        with forked():
            await store.close()
            async with opened(tmp_path / "a.sqlite3"):
                pass

    run(story)


@contextmanager
def forked() -> Iterator[None]:
    """Have a copy of this process, which has all its files open."""
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# --- versions


@pytest.mark.parametrize("version", [0, 2, 7, -1])
def test_file_of_another_version_is_refused_and_unchanged(tmp_path: Path, version: int) -> None:
    path = tmp_path / "a.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (a)")
        connection.execute("INSERT INTO other VALUES (1)")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
    before = path.read_bytes()

    async def story() -> None:
        for _ in "twice":
            with pytest.raises(StoreVersionError, match="move it away, or use the program that made it"):
                await RecordedStore(path).open()
            assert path.read_bytes() == before
        assert {file.name for file in tmp_path.iterdir()} == {"a.sqlite3", "a.sqlite3-lock"}

    run(story)


def upgrade(connection: sqlite3.Connection, path: Path) -> tuple[Path, ...]:
    """Bring version 1 to version 2."""
    connection.execute("ALTER TABLE entry ADD COLUMN origin TEXT")
    origin = path.with_name("origin")
    connection.execute("UPDATE entry SET origin = ?", (origin.read_text(),))
    return (origin, path.with_name("never there"))


NEXT = Schema(2, (*SCHEMA.statements, "CREATE TABLE second (a)"), {1: upgrade})


def test_upgrade_gets_the_path_and_is_one_transaction(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"

    async def story() -> None:
        async with opened(path) as store:
            assert await store.write(1, row("a")) == ""
        with pytest.raises(StoreError, match=r"cannot be used: .*origin"):
            await RecordedStore(path, NEXT).open()
        async with opened(path) as store:
            assert await store.names() == ["a"], "nothing has changed"
        path.with_name("origin").write_text("here")
        async with opened(path, NEXT) as store:
            assert await store.read("SELECT name, origin FROM entry") == [("a", "here")]
            assert await store.read("PRAGMA user_version") == [(2,)]
        assert not path.with_name("origin").exists(), "it is not needed any more"
        with pytest.raises(StoreVersionError, match="has version 2, not 1"):
            await RecordedStore(path).open()
        async with opened(tmp_path / "b.sqlite3", NEXT) as store:
            assert await store.read("SELECT count(*) FROM second") == [(0,)], "a new file is not upgraded"

    run(story)


@pytest.mark.parametrize(
    "at", ["PRAGMA auto_vacuum", "PRAGMA journal_mode", "CREATE", "PRAGMA user_version =", "COMMIT"]
)
def test_kill_while_the_file_is_created(tmp_path: Path, at: str) -> None:
    """At any statement: the next start makes the store complete."""
    disk = Disk()

    async def story() -> None:
        disk.stop_at(at)
        opening = asyncio.create_task(
            RecordedStore(tmp_path / "store" / "a.sqlite3", connect=disk.connect).open()
        )
        await disk.stopped()
        copy = as_killed(tmp_path / "store", tmp_path / "copy")
        disk.gate.set()
        await opening
        async with opened(copy / "a.sqlite3") as store:
            assert await store.write(1, row("a")) == "" and store.notices == []
            assert await store.read("PRAGMA auto_vacuum") == [(2,)]
            assert await store.read("PRAGMA user_version") == [(1,)]

    run(story)


# --- durability


@pytest.mark.parametrize(("durability", "value"), [("process", 1), ("full", 2)])
def test_settings_of_the_connection(tmp_path: Path, durability: str, value: int) -> None:
    async def story() -> None:
        async with opened(tmp_path / "a.sqlite3", SCHEMA, durability) as store:
            assert await store.read("PRAGMA synchronous") == [(value,)]
            assert await store.read("PRAGMA journal_mode") == [("wal",)]
            assert await store.read("PRAGMA auto_vacuum") == [(2,)]
            assert await store.read("PRAGMA user_version") == [(1,)]

    run(story)


def test_what_was_reported_survives_kill(tmp_path: Path) -> None:
    """A copy of the files at the moment of the report is what kill -9 leaves."""

    async def story() -> None:
        async with opened(tmp_path / "store" / "a.sqlite3") as store:
            for ticket in range(1, 20):
                assert await store.write(ticket, row(str(ticket))) == ""
                copy = as_killed(store.path.parent, tmp_path / str(ticket)) / "a.sqlite3"
                async with opened(copy) as again:
                    assert await again.names() == [str(number) for number in range(1, ticket + 1)]

    run(story)


@pytest.mark.parametrize("durability", ["process", "full"])
def test_real_kill_right_after_the_report(tmp_path: Path, durability: str) -> None:
    """The process kills itself in `on_committed`: everything it was told is in the file."""
    script = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.runtime.kernel.store.stores import SCHEMA, row
from specwire.runtime.kernel.store import Store

def committed(last, failures):
    os.write(1, f"{last}\\n".encode())
    if last >= 300:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = Store(Path(sys.argv[1]), SCHEMA, sys.argv[2], on_committed=committed)
    await store.open()
    for ticket in range(1, 1000):
        store.put(ticket, [row(str(ticket))])
        await asyncio.sleep(0)
    await asyncio.sleep(60)

asyncio.run(main())
"""
    for round_ in (1, 2):
        path = tmp_path / str(round_) / "a.sqlite3"
        with start_python(script, path, durability) as process:
            output, _ = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        last = int(output.split()[-1])

        async def story(path: Path = path, last: int = last) -> None:
            for _ in "twice":
                async with opened(path) as store:
                    names = await store.names()
                    assert (
                        names == [str(number) for number in range(1, len(names) + 1)] and len(names) >= last
                    )

        run(story)
