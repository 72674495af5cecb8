"""Damaged files: what can be read is in the new file, nothing is deleted, and a kill changes neither."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from specwire.runtime.kernel.store import Schema, StoreError, StoreVersionError
from specwire.runtime.kernel.store.salvage import salvage
from tests.examples import examples
from tests.runtime.kernel.store.stores import (
    SCHEMA,
    Disk,
    RecordedStore,
    as_killed,
    names_in,
    opened,
    row,
    run,
)

PAGE = 4096
WIDE = Schema(
    3,
    (
        "CREATE TABLE keyed (number INTEGER PRIMARY KEY, value BLOB NOT NULL)",
        "CREATE TABLE plain (name TEXT, value BLOB)",
        (
            'CREATE TABLE "odd ""name" ("group" TEXT, second INTEGER, value BLOB, PRIMARY KEY (second, "group"))'
            " WITHOUT ROWID"
        ),
        "CREATE TABLE log (what TEXT)",
        "CREATE INDEX plain_by_name ON plain (name)",
        "CREATE TRIGGER on_plain AFTER INSERT ON plain BEGIN INSERT INTO log VALUES (new.name); END",
        "CREATE VIEW numbers AS SELECT number FROM keyed",
    ),
)
ODD = '"odd ""name"'
ROWS = 500
SEEDS = examples(30)


def make_wide(path: Path) -> None:
    """Make a file with `ROWS` rows of 300 octets in each of three tables, numbered with gaps."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in WIDE.statements:
            connection.execute(statement)
        for number in range(ROWS):
            value = bytes([number % 256]) * 300
            connection.execute("INSERT INTO keyed VALUES (?, ?)", (number * 3, value))
            connection.execute(
                "INSERT INTO plain (rowid, name, value) VALUES (?, ?, ?)", (number * 2, f"n{number}", value)
            )
            connection.execute(f"INSERT INTO {ODD} VALUES (?, ?, ?)", (f"g{number % 7}", number, value))
        connection.execute("PRAGMA user_version = 3")


def pages_of(path: Path, table: str) -> list[int]:
    """Return the numbers of the leaf pages of a table in the order of its rows."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
        return [number for (number,) in connection.execute(query, (table,))]


def overwrite(path: Path, pages: Iterable[int], content: bytes = b"\xa5" * PAGE) -> None:
    """Overwrite pages, which count from 1."""
    with path.open("r+b") as file:
        for number in pages:
            file.seek((number - 1) * PAGE)
            file.write(content)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the content of all files but locks and shared memory."""
    files = (file for file in folder.iterdir() if not file.name.endswith(("-lock", "-shm")))
    return {file.name: file.read_bytes() for file in files}


def damaged_files(folder: Path) -> list[Path]:
    """Return the databases that were moved aside."""
    return sorted(file for file in folder.glob("*.damaged-*") if file.name.endswith("Z"))


def write_names(path: Path, names: Iterable[str]) -> None:
    """Write entries with a large value each, in a store, and close it."""

    async def story() -> None:
        async with opened(path) as store:
            for ticket, name in enumerate(names, 1):
                store.put(ticket, [row(name, bytes(1000))])

    run(story)


# --- damage that is found when a store is opened


@pytest.mark.parametrize("table", ["keyed", "plain", 'odd "name'])
def test_rows_on_both_sides_of_the_damage_are_kept(tmp_path: Path, table: str) -> None:
    path = tmp_path / "a.sqlite3"
    make_wide(path)
    leaves = pages_of(path, table)
    assert len(leaves) > 20
    damaged = leaves[10:12]
    before = rows_of(path)
    overwrite(path, damaged)
    octets = path.read_bytes()

    async def story() -> None:
        async with opened(path, WIDE) as store:
            [notice] = store.notices
            [aside] = damaged_files(tmp_path)
            assert notice.startswith(f"{path} was damaged (") and notice.endswith(
                f"the damaged file is {aside}"
            )
            assert aside.read_bytes() == octets
            assert await store.read("SELECT count(*) FROM log") == [(ROWS,)], "no trigger ran"
            assert await store.read("PRAGMA user_version") == [(3,)]
            assert await store.read("PRAGMA auto_vacuum") == [(2,)]
            await store.call(lambda connection: connection.execute("INSERT INTO plain VALUES ('new', x'')"))
            assert await store.read("SELECT what FROM log ORDER BY rowid DESC LIMIT 1") == [("new",)]
            [plan] = await store.read("EXPLAIN QUERY PLAN SELECT * FROM plain WHERE name = 'n7'")
            assert "plain_by_name" in plan[3]
            await store.call(lambda connection: connection.execute("DELETE FROM plain WHERE name = 'new'"))
            [(kept,)] = await store.read(
                "SELECT (SELECT count(*) FROM keyed) + (SELECT count(*) FROM plain)"
                f" + (SELECT count(*) FROM {ODD}) + {ROWS}"
            )
            assert f" {kept} rows could be read" in notice

    run(story)
    after = rows_of(path)
    for name, rows in before.items():
        lost = [one for one in rows if one not in after[name]]
        assert after[name] == [one for one in rows if one not in lost], (
            "in the same order, with the same numbers"
        )
        if name == table:
            first = rows.index(lost[0])
            assert lost == rows[first : first + len(lost)] and 15 <= len(lost) <= 30, "the rows of two pages"
        else:
            assert not lost


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of the three tables, with their numbers."""
    queries = {
        "keyed": "SELECT number, value FROM keyed ORDER BY number",
        "plain": "SELECT rowid, name, value FROM plain ORDER BY rowid",
        'odd "name': f'SELECT second, "group", value FROM {ODD} ORDER BY second, "group"',
    }
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = lambda octets: octets.decode(errors="replace")
        return {table: connection.execute(query).fetchall() for table, query in queries.items()}


@pytest.mark.parametrize("which", [slice(0, 3), slice(-3, None), slice(0, None)])
def test_damage_at_an_end_of_a_table(tmp_path: Path, which: slice) -> None:
    path = tmp_path / "a.sqlite3"
    make_wide(path)
    leaves = pages_of(path, "keyed")
    overwrite(path, leaves[which])

    async def story() -> None:
        async with opened(path, WIDE) as store:
            numbers = [number for (number,) in await store.read("SELECT number FROM keyed ORDER BY number")]
            everything = [number * 3 for number in range(ROWS)]
            lost = len(everything) - len(numbers)
            if which.stop == 3:
                assert numbers == everything[lost:] and 20 <= lost <= 45
            elif which.start == -3:
                assert numbers == everything[:-lost] and 20 <= lost <= 45
            else:
                assert numbers == []

    run(story)


def test_root_of_a_table_is_destroyed(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    make_wide(path)
    with closing(sqlite3.connect(path)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'plain'").fetchone()
    overwrite(path, [root])

    async def story() -> None:
        async with opened(path, WIDE) as store:
            assert await store.read("SELECT (SELECT count(*) FROM plain), (SELECT count(*) FROM keyed)") == [
                (0, ROWS)
            ]

    run(story)


@pytest.mark.parametrize("octets", [100, PAGE])
def test_header_is_destroyed(tmp_path: Path, octets: int) -> None:
    path = tmp_path / "a.sqlite3"
    write_names(path, map(str, range(200)))
    overwrite(path, [1], b"x" * octets)
    content = path.read_bytes()

    async def story() -> None:
        for _ in "twice":
            async with opened(path) as store:
                assert await store.names() == []

    run(story)
    [aside] = damaged_files(tmp_path)
    assert aside.read_bytes() == content


@pytest.mark.parametrize("name", [b"tableloglog", b"tablel\xffglog"])
def test_entry_of_the_schema_is_damaged(tmp_path: Path, name: bytes) -> None:
    """Its table cannot be read and is there again, empty; the others are complete.

    SQLite quotes the name in its message, which Python cannot decode.
    """
    path = tmp_path / "a.sqlite3"
    make_wide(path)
    octets = path.read_bytes()
    assert b"tableloglog" in octets
    octets = octets.replace(b"tableloglog", name, 1).replace(b"CREATE TABLE log", b"CREATE TABLE l\xffg", 1)
    path.write_bytes(octets)

    async def story() -> None:
        async with opened(path, WIDE) as store:
            assert len(store.notices) == 1
            assert await store.read("SELECT count(*) FROM keyed") == [(ROWS,)]
            assert await store.read("SELECT count(*) FROM plain") == [(ROWS,)]
            assert await store.read("SELECT count(*) FROM log") == [(0,)]

    run(story)


def test_text_that_is_no_utf8_costs_its_row_only(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    write_names(path, [f"name{number:04}" for number in range(400)])
    pages = pages_of(path, "entry")
    octets = path.read_bytes()
    for number in (100, 300):
        octets = octets.replace(b"name%04d" % number, b"name\xff\xff%02d" % (number % 100))
    path.write_bytes(octets)
    overwrite(path, pages[50:51])

    async def story() -> None:
        async with opened(path) as store:
            names = await store.names()
            assert 390 <= len(names) < 398 and not {"name0100", "name0300"} & {*names}

    run(story)


@pytest.mark.parametrize("content", [b"", b"This is a text.\n" * 1000, b"\0" * 10_000, b"short"])
def test_no_database_at_all(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.sqlite3"
    path.write_bytes(content)

    async def story() -> None:
        async with opened(path) as store:
            assert len(store.notices) == bool(content)
            assert await store.write(1, row("a")) == ""

    run(story)
    assert [file.read_bytes() for file in damaged_files(tmp_path)] == [content] * bool(content)
    assert names_in(path) == ["a"]


def test_file_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    write_names(path, map(str, range(400)))
    os.truncate(path, 40 * PAGE)
    content = path.read_bytes()

    async def story() -> None:
        async with opened(path) as store:
            names = await store.names()
            assert names == [str(number) for number in range(len(names))] and 80 < len(names) < 200

    run(story)
    assert damaged_files(tmp_path)[0].read_bytes() == content


# --- the write-ahead log


def killed_with_wal(tmp_path: Path) -> Path:
    """Return a database that was killed: 100 entries in the file, and 50 in its WAL."""
    path = tmp_path / "first" / "a.sqlite3"

    async def story() -> None:
        write = [row(str(number), bytes(1000)) for number in range(100)]
        async with opened(path) as store:
            assert await store.write(1, *write) == ""
        async with opened(path) as store:
            for ticket in range(100, 150):
                assert await store.write(ticket, row(str(ticket), bytes(1000))) == ""
            as_killed(path.parent, tmp_path / "killed")

    run(story)
    return tmp_path / "killed" / "a.sqlite3"


def test_wal_of_a_killed_process_is_used(tmp_path: Path) -> None:
    path = killed_with_wal(tmp_path)

    async def story() -> None:
        async with opened(path) as store:
            assert await store.names() == [str(number) for number in range(150)] and not store.notices

    run(story)


@pytest.mark.parametrize("octets", [b"\0" * 32, b"\xff", b"text" * 100, None])
def test_wal_is_destroyed(tmp_path: Path, octets: bytes | None) -> None:
    """What it held is lost; the store tells so, and keeps the file."""
    path = killed_with_wal(tmp_path)
    wal = path.with_name("a.sqlite3-wal")
    with wal.open("r+b") as file:
        if octets is None:
            file.seek(20)  # in the salt: only the checksum tells
            octets = b"\1\2\3\4"
        file.write(octets)
    before = files_in(path.parent)

    async def story() -> None:
        async with opened(path) as store:
            assert await store.names() == [str(number) for number in range(100)]
            [notice] = store.notices
            assert (
                "the header of its write-ahead log is damaged" in notice
                and "100 rows could be read" in notice
            )

    run(story)
    [aside] = damaged_files(path.parent)
    assert aside.read_bytes() == before["a.sqlite3"]
    assert aside.with_name(f"{aside.name}-wal").read_bytes() == before["a.sqlite3-wal"]


@pytest.mark.parametrize("octets", [b"", b"short"])
def test_wal_without_a_commit_is_no_damage(tmp_path: Path, octets: bytes) -> None:
    path = tmp_path / "a.sqlite3"
    write_names(path, ["a"])
    path.with_name("a.sqlite3-wal").write_bytes(octets)

    async def story() -> None:
        async with opened(path) as store:
            assert await store.names() == ["a"] and not store.notices

    run(story)


def test_database_is_destroyed_and_its_wal_is_not(tmp_path: Path) -> None:
    """The WAL of an empty file is worthless for SQLite, which deletes it; here it is kept."""
    for damage in ("truncated", "deleted"):
        path = killed_with_wal(tmp_path / damage)
        wal = path.with_name("a.sqlite3-wal").read_bytes()
        path.unlink()
        if damage == "truncated":
            path.touch()

        async def story(path: Path = path) -> None:
            async with opened(path) as store:
                assert (
                    await store.names() == []
                    and "it is empty, and its write-ahead log is not" in store.notices[0]
                )

        run(story)
        [aside] = damaged_files(path.parent)
        assert aside.with_name(f"{aside.name}-wal").read_bytes() == wal


@pytest.mark.parametrize("octets", [100, PAGE])
def test_header_is_destroyed_and_the_wal_has_another(tmp_path: Path, octets: int) -> None:
    """SQLite reads the first page from the WAL: nothing is lost."""
    path = killed_with_wal(tmp_path)
    overwrite(path, [1], b"x" * octets)

    async def story() -> None:
        async with opened(path) as store:
            assert await store.names() == [str(number) for number in range(150)] and not store.notices

    run(story)


def test_damage_below_the_wal(tmp_path: Path) -> None:
    """Entries of the WAL are kept with those of the file."""
    path = killed_with_wal(tmp_path)
    with path.open("r+b") as file:
        file.seek(12 * PAGE)
        file.write(b"\xa5" * PAGE)

    async def story() -> None:
        async with opened(path) as store:
            names = [int(name) for name in await store.names()]
            assert (
                len(store.notices) == 1
                and 144 <= len(names) < 150
                and names[-1] == 149
                and names == sorted(names)
            )

    run(story)


# --- damage while a store is open


def corrupt(path: Path) -> None:
    """Destroy all leaves of the table but the first and the last."""
    overwrite(path, pages_of(path, "entry")[1:-1])


async def corrupt_open(store: RecordedStore) -> None:
    """Destroy the file of a store that is open, and have SQLite read it again."""
    await store.read("PRAGMA wal_checkpoint(TRUNCATE)")
    corrupt(store.path)
    await store.read("PRAGMA shrink_memory")


def test_damage_that_a_write_finds(tmp_path: Path) -> None:
    """The write is repeated in the new file, also one that could be refused."""
    path = tmp_path / "a.sqlite3"
    write_names(path, map(str, range(400)))
    disk = Disk()
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT

    async def story() -> None:
        async with opened(path, connect=disk.connect) as store:
            pages = pages_of(path, "entry")
            disk.fail(error, "INSERT", times=1)
            overwrite(path, pages[75:])
            store.put(1000, [row("new")])
            assert await store.write(1001, row("refusable"), refusable=True) == ""
            assert len(store.notices) == 1 and store.events == [("committed", 1001, [])]
            names = await store.names()
            assert names == [*map(str, range(len(names) - 2)), "new", "refusable"] and 290 < len(names) < 330
        async with opened(path) as store:
            assert await store.names() == names and not store.notices

    run(story)


def test_damage_that_a_read_finds(tmp_path: Path) -> None:
    """The read is repeated in the new file."""
    path = tmp_path / "a.sqlite3"
    write_names(path, map(str, range(400)))

    async def story() -> None:
        async with opened(path) as store:
            await corrupt_open(store)
            names = await store.names()
            assert (
                len(store.notices) == 1 and 3 <= len(names) <= 12 and names[0] == "0" and names[-1] == "399"
            )

    run(story)


def test_second_damage_is_left_alone(tmp_path: Path) -> None:
    """A disk that damages a file twice is not trusted: nothing is written until somebody has looked."""
    path = tmp_path / "a.sqlite3"
    write_names(path, map(str, range(400)))

    async def story() -> None:
        async with opened(path) as store:
            await corrupt_open(store)
            await store.names()
            assert await store.write(1000, *(row(f"n{number}", bytes(1000)) for number in range(300))) == ""
            await corrupt_open(store)
            with pytest.raises(StoreError, match="it was replaced before, so the disk cannot be trusted"):
                await store.read("SELECT * FROM entry")
        assert len(damaged_files(tmp_path)) == 1
        async with opened(path) as store:
            assert len(store.notices) == 1 and len(damaged_files(tmp_path)) == 2

    run(story)


def test_salvage_that_fails_is_tried_again_and_writes_wait(tmp_path: Path) -> None:
    """The folder takes no new file: nothing is written to the damaged one meanwhile."""
    path = tmp_path / "store" / "a.sqlite3"
    write_names(path, map(str, range(400)))

    async def story() -> None:
        async with opened(path) as store:
            block = path.with_name("a.sqlite3.salvaging")
            block.mkdir()  # cannot be unlinked
            await corrupt_open(store)
            with pytest.raises(StoreError, match=r"it is damaged .* and cannot be replaced: "):
                await store.names()
            block.rmdir()
            assert await store.write(1000, row("new")) == ""
            names = await store.names()
            assert names[-2:] == ["399", "new"] and len(store.notices) == 1

    run(story)


def test_salvage_stops_between_the_renames(tmp_path: Path) -> None:
    """A complete new file waits for its name: until it has that, no write is committed to the damaged one."""
    path = tmp_path / "store" / "a.sqlite3"
    write_names(path, map(str, range(400)))

    async def story() -> None:
        async with opened(path) as store:
            block = path.with_name("a.sqlite3.salvaged")
            (block / "full").mkdir(parents=True)  # cannot be replaced by a file
            await corrupt_open(store)
            with pytest.raises(StoreError, match="cannot be replaced"):
                await store.names()
            shutil.rmtree(block)
            assert await store.write(1000, row("new")) == ""
            names = await store.names()
        async with opened(path) as store:
            assert await store.names() == names and names[-2:] == ["399", "new"]

    run(story)


def test_second_salvage_gets_another_name(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite3"
    for number in range(1, 5):
        write_names(path, [f"{number} {name}" for name in range(50)])
        overwrite(path, [1], b"x" * 100)

        async def story() -> None:
            async with opened(path) as store:
                assert len(store.notices) == 1

        run(story)
        assert len(damaged_files(tmp_path)) == number
        assert len({file.read_bytes() for file in damaged_files(tmp_path)}) == number


# --- kills between the steps


def make_damaged(folder: Path) -> tuple[Path, list[str]]:
    """Make a damaged file with a WAL and a journal; return it and the names that can be read."""
    killed = killed_with_wal(folder / "made")
    path = folder / "store" / "a.sqlite3"
    path.parent.mkdir()
    for one in killed.parent.iterdir():
        shutil.copy(one, path.parent)
    with path.open("r+b") as file:
        file.seek(12 * PAGE)
        file.write(b"\xa5" * PAGE)
    control = as_killed(path.parent, folder / "control") / "a.sqlite3"
    salvage(control, SCHEMA, "as a control")
    return path, names_in(control)


def after_step(folder: Path, step: str) -> tuple[Path, list[str]]:
    """Leave the files that a process leaves which is killed after a step of the salvage."""
    path, names = make_damaged(folder)
    if step == "nothing":
        return path, names
    new = path.with_name("a.sqlite3.salvaging")
    if step == "half a copy":
        new.write_bytes(b"half a file")
        new.with_name(f"{new.name}-journal").write_bytes(b"half a journal")
        return path, names
    shutil.copy(folder / "control" / "a.sqlite3", new)
    if step == "complete copy":
        return path, names
    new = new.rename(path.with_name("a.sqlite3.salvaged"))
    os.utime(new, ns=(10**18, 10**18))
    aside = path.with_name("a.sqlite3.damaged-20010909T014640.000000Z")
    if step in ("WAL renamed", "all renamed"):
        path.with_name("a.sqlite3-wal").rename(f"{aside}-wal")
    if step == "all renamed":
        path.rename(aside)
    return path, names


STEPS = ["nothing", "half a copy", "complete copy", "complete", "WAL renamed", "all renamed"]


@pytest.mark.parametrize("step", STEPS)
def test_kill_between_two_steps(tmp_path: Path, step: str) -> None:
    path, names = after_step(tmp_path, step)
    damaged = {content for name, content in files_in(path.parent).items() if ".salvag" not in name}
    assert 144 <= len(names) < 150

    async def story() -> None:
        async with opened(path) as store:
            assert await store.names() == names and len(store.notices) == 1
            assert await store.write(1000, row("new")) == ""
        async with opened(path) as store:
            assert await store.names() == [*names, "new"] and not store.notices

    run(story)
    files = files_in(path.parent)
    [aside] = damaged_files(path.parent)
    assert not [name for name in files if ".salvag" in name]
    if step in STEPS[3:]:
        assert aside.name == "a.sqlite3.damaged-20010909T014640.000000Z"
        assert files.keys() == {"a.sqlite3", aside.name, f"{aside.name}-wal"}, "under one name"
        assert damaged <= {*files.values()}, "unchanged"
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT max(number) FROM entry").fetchone() == (150,), "with its WAL"


def test_journal_of_a_damaged_file_is_not_applied_to_the_new_one(tmp_path: Path) -> None:
    """An earlier version may have left one: SQLite rolls it back into any file of that name."""
    path = tmp_path / "a.sqlite3"
    write_names(path, ["a"])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    overwrite(path, [1], b"x" * 200)
    journal = path.with_name("a.sqlite3-journal")
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))

    async def story() -> None:
        async with opened(path) as store:
            assert await store.write(1, row("b")) == ""

    run(story)
    assert not journal.exists() and names_in(path) == ["b"]


# --- other versions


def add_origin(connection: sqlite3.Connection, path: Path) -> tuple[Path, ...]:
    """Bring version 3 to version 4."""
    connection.execute("ALTER TABLE plain ADD COLUMN origin TEXT DEFAULT 'upgraded'")
    return ()


def test_damaged_file_of_an_earlier_version_is_upgraded_afterwards(tmp_path: Path) -> None:
    """Its tables, indexes and triggers are those of its own version."""
    path = tmp_path / "a.sqlite3"
    make_wide(path)
    overwrite(path, pages_of(path, "keyed")[5:10])

    async def story() -> None:
        async with opened(path, Schema(4, ("CREATE TABLE other (a)",), {3: add_origin})) as store:
            rows = await store.read("SELECT name, origin FROM plain ORDER BY rowid")
            assert rows == [(f"n{number}", "upgraded") for number in range(ROWS)] and len(store.notices) == 1
            assert await store.read("PRAGMA user_version") == [(4,)]
            names = await store.read("SELECT name FROM sqlite_master WHERE sql IS NOT NULL")
            known = {"keyed", "plain", 'odd "name', "log", "plain_by_name", "on_plain", "numbers"}
            assert {name for (name,) in names} == known

    run(story)


def test_damaged_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    """Its version can be read: it is unchanged."""
    path = tmp_path / "a.sqlite3"
    write_names(path, map(str, range(400)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 5")
    corrupt(path)
    before = files_in(tmp_path)

    async def story() -> None:
        with pytest.raises(StoreVersionError):
            await RecordedStore(path).open()

    run(story)
    assert files_in(tmp_path) == before


# --- random damage


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_damage(tmp_path: Path, seed: int) -> None:
    """Whatever is overwritten, every row that can be read was written, and a second start finds no damage."""
    random = Random(seed)
    path = tmp_path / "a.sqlite3"
    make_wide(path)
    size = path.stat().st_size
    before = {table: {*rows} for table, rows in rows_of(path).items()}
    in_schema = seed % 3 == 0
    with path.open("r+b") as file:
        for _ in range(random.randint(1, 5)):
            file.seek(random.randrange(100, PAGE) if in_schema else random.randrange(PAGE, size))
            file.write(random.randbytes(random.choice((1, 8, 50, 3000))))
    content = path.read_bytes()

    async def story() -> None:
        async with opened(path, WIDE) as store:
            notices = len(store.notices)
        async with opened(path, WIDE) as store:
            assert not store.notices
        assert [file.read_bytes() for file in damaged_files(tmp_path)] == [content] * notices

    run(story)
    if not in_schema:
        differing = sum(len({*rows} - before[table]) for table, rows in rows_of(path).items())
        assert differing <= 60, "rows whose own octets were overwritten"
