"""Check, backup and export of stores: each fault is found, and a copy is a prefix of the commits."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.kernel.store import Failure, StoreError, StoreVersionError
from specwire.runtime.norfab import brokerstore
from specwire.runtime.norfab.brokerstore import BrokerStore
from specwire.runtime.norfab.client import store as clientstore
from specwire.runtime.norfab.client.states import ENDED, State
from specwire.runtime.norfab.records import (
    AssignedRecord,
    DeletedRecord,
    EventRecord,
    JobRecord,
    Record,
    ResultRecord,
    TaskRecord,
    WorkerRecord,
    worker_key,
)
from specwire.runtime.norfab.storekinds import BROKER as BROKER_KIND
from specwire.runtime.norfab.storekinds import CLIENT as CLIENT_KIND
from specwire.runtime.norfab.storekinds import KINDS, Kind
from specwire.runtime.norfab.storereading import NoStoreError, open_store, read_rows
from specwire.runtime.norfab.storetools import FAULTS, StoreFault, backup, check, export
from specwire.runtime.norfab.worker import store as workerstore
from tests.runtime.norfab.samplestores import (
    BROKER,
    BROKER_RECORDS,
    CLIENT,
    FILES,
    SCHEMAS,
    WORKER,
    add,
    change,
    job,
    make_store,
)

ALL = pytest.mark.parametrize("kind", [BROKER, WORKER, CLIENT])
HOSTILE_NAME = "a b?mode=rw#%41&x"


def faults_of(folder: Path) -> list[tuple[str, str, str]]:
    """Return what a check finds."""
    return [(fault.row, fault.uuid, fault.fault) for fault in check(folder).faults]


# --- the descriptions


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.peer))
def test_descriptions_fit_the_stores_that_peers_create(kind: Kind) -> None:
    schema = SCHEMAS[kind.peer]
    assert kind.version == schema.version
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in schema.statements:
            connection.execute(statement)
        for table in kind.tables:
            columns = {column for _, column, *_ in connection.execute(f"PRAGMA table_info({table.name})")}
            described = {*table.fields, *table.key} | ({"body"} if kind.peer == BROKER else set())
            assert described - columns <= {"number"}
            assert columns <= described
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        assert {table.name for table in kind.tables} == tables
    assert {kind.file for kind in KINDS} == {brokerstore.NAME, workerstore.NAME, clientstore.NAME}


def test_states_of_a_client_are_known() -> None:
    rules = " ".join(rule.select for rule in CLIENT_KIND.rules)
    assert ", ".join(f"'{state.value}'" for state in State) in rules
    assert f"({', '.join(repr(state.value) for state in ENDED)})" in rules


# --- check


@ALL
def test_a_sound_store(tmp_path: Path, kind: str) -> None:
    path = make_store(tmp_path / HOSTILE_NAME, kind)
    report = check(path.parent)
    counts = {
        BROKER: {"open": 2, "ended": 2, "deleted": 1, "workers": 1, "records": 13},
        WORKER: {"open": 2, "ended": 1, "deleted": 1, "records": 7},
        CLIENT: {"open": 2, "ended": 1, "records": 10},
    }
    assert (report.path, report.peer, report.faults, report.found) == (path, kind, [], 0)
    assert report.counts == counts[kind]
    assert report.octets == path.stat().st_size
    assert not report.damaged


@pytest.mark.parametrize(
    ("records", "row", "uuid", "fault"),
    [
        ([ResultRecord("x", "w1", 200, b"", 3.0)], 14, "x", "no job"),
        ([AssignedRecord("x", ())], 14, "x", "no job"),
        ([EventRecord("x", 3.0, b""), job("x")], 14, "x", "no job"),
        ([job("a", "w1")], 14, "a", "a second job"),
        ([job("d", "w1")], 14, "d", "a second job, deletion"),
        ([DeletedRecord("e", "svc", 5.0)], 14, "e", "a second job, deletion"),
        (
            [WorkerRecord(worker_key("w1"), "w1", "other")],
            14,
            "worker w1",
            "a second job, deletion or worker",
        ),
        ([ResultRecord("a", "w1", 200, b"", 3.0)], 14, "a", "a second result"),
        ([ResultRecord("c", "", 200, b"", 3.0)], 14, "c", "a second result"),
        ([ResultRecord("b", "w2", 200, b"", 3.0)], 14, "b", "a part that the job does not have"),
        ([ResultRecord("e", "", 200, b"", 3.0)], 14, "e", "a part that the job does not have"),
        ([WorkerRecord("worker w2", "w3", "svc")], 14, "worker w2", "its worker is w3"),
    ],
)
def test_records_of_a_broker_that_do_not_fit(
    tmp_path: Path, records: Sequence[Record], row: int, uuid: str, fault: str
) -> None:
    add(make_store(tmp_path, BROKER), records)
    [found] = faults_of(tmp_path)
    assert found[:2] == (f"record {row}", uuid)
    assert fault in found[2]


def test_parts_of_an_assignment_are_parts_of_the_job(tmp_path: Path) -> None:
    """Also after a job of this uuid was deleted by retention."""
    path = make_store(tmp_path, BROKER)
    change(path, "DELETE FROM record WHERE uuid = 'a'")
    add(
        path,
        [job("a"), AssignedRecord("a", (TaskRecord("w9", "w1", 1),)), ResultRecord("a", "w9", 200, b"", 3.0)],
    )
    report = check(tmp_path)
    assert report.faults == []
    assert report.counts["ended"] == 2


@pytest.mark.parametrize(
    ("kind", "statement", "row", "uuid", "fault"),
    [
        (BROKER, "UPDATE record SET octets = x'c1' WHERE number = 4", "record 4", "a", "byte"),
        (BROKER, "UPDATE record SET kind = 9 WHERE number = 4", "record 4", "a", "9"),
        (BROKER, "UPDATE record SET kind = 4 WHERE number = 3", "record 3", "a", "missing required field"),
        (BROKER, "UPDATE record SET body = NULL WHERE number = 3", "record 3", "a", "no body"),
        (BROKER, "UPDATE record SET body = 'text' WHERE number = 2", "record 2", "a", "no body"),
        (BROKER, "UPDATE record SET octets = 'text' WHERE number = 4", "record 4", "a", "octets is str"),
        (BROKER, "UPDATE record SET slot = 'w9' WHERE number = 4", "record 4", "a", "its slot is"),
        (BROKER, "UPDATE record SET uuid = 'b' WHERE number = 13", "record 13", "b", "its uuid is e"),
        (WORKER, "UPDATE job SET held = 2 WHERE number = 4", "job 4", "d", "held is int, not bool"),
        (WORKER, "UPDATE result SET body = 'x' WHERE number = 1", "result 1", "a", "body is str, not bytes"),
        (
            WORKER,
            "UPDATE job SET number = 9 WHERE number = 1",
            "result 1",
            "",
            "a job that the store does not have",
        ),
        (WORKER, "UPDATE job SET uuid = 'a' WHERE number = 4", "job 4", "a", "a second job"),
        (WORKER, "INSERT INTO begun VALUES (2, 3)", "begun 2", "", "a second number"),
        (CLIENT, "UPDATE jobs SET deadline = NULL WHERE uuid = 'a'", "jobs a", "a", "deadline is NoneType"),
        (
            CLIENT,
            "UPDATE jobs SET task = CAST(x'ff' AS TEXT) WHERE uuid = 'a'",
            "jobs a",
            "a",
            "task is not UTF-8",
        ),
        (CLIENT, "UPDATE states SET state = 'GONE' WHERE uuid = 'a'", "states a", "a", "an unknown state"),
        (CLIENT, "UPDATE states SET ended_at = 3.0 WHERE uuid = 'a'", "states a", "a", "contradict"),
        (CLIENT, "UPDATE states SET ended_at = 0 WHERE uuid = 'z'", "states z", "z", "contradict"),
        (CLIENT, "UPDATE states SET workers = '[' WHERE uuid = 'a'", "states a", "a", "not JSON"),
        (CLIENT, "DELETE FROM results WHERE worker = 'w1'", "states z", "z", "without the result"),
        (
            CLIENT,
            "INSERT INTO results VALUES ('x', 'w', 200, x'', 1.0)",
            "results 3",
            "x",
            "not in the store",
        ),
        (CLIENT, "INSERT INTO events VALUES ('x', 1.0, x'')", "events 3", "x", "not in the store"),
        (
            CLIENT,
            "INSERT INTO states VALUES ('x', 'STARTED', '[]', 1.0, 200, '', 0.0, 0)",
            "states x",
            "x",
            "not in the store",
        ),
    ],
)
def test_rows_that_are_not_sound(
    tmp_path: Path, kind: str, statement: str, row: str, uuid: str, fault: str
) -> None:
    change(make_store(tmp_path, kind), statement)
    found = faults_of(tmp_path)
    assert (row, uuid) in [one[:2] for one in found]
    assert any(fault in one[2] for one in found if one[0] == row), found
    assert not check(tmp_path).damaged


def test_all_faults_are_counted_and_some_are_listed(tmp_path: Path) -> None:
    path = make_store(tmp_path, BROKER)
    add(path, [EventRecord(f"x{number}", 1.0, b"") for number in range(FAULTS + 50)])
    add(path, [job("a")])
    report = check(tmp_path)
    assert report.found == FAULTS + 51
    assert len(report.faults) == FAULTS + 1
    assert report.faults[-1].uuid == "a"


@ALL
def test_a_damaged_file(tmp_path: Path, kind: str) -> None:
    path = make_store(tmp_path, kind)
    octets = bytearray(path.read_bytes())
    octets[4096 : 2 * 4096] = os.urandom(4096)
    path.write_bytes(octets)
    report = check(tmp_path)
    assert report.damaged
    assert report.found
    with pytest.raises(StoreError, match="is damaged, and was not copied"):
        backup(tmp_path, tmp_path / "copy")
    assert sorted(file.name for file in tmp_path.iterdir() if "-" not in file.name) == [FILES[kind]]


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / FILES[BROKER]).write_bytes(b"no database" * 1000)
    report = check(tmp_path)
    assert (report.damaged, report.faults) == (True, [StoreFault("", "", "file is not a database")])
    with pytest.raises(StoreError, match="file is not a database"):
        list(export(tmp_path))


def test_a_wrong_index_is_a_fault_that_no_start_repairs(tmp_path: Path) -> None:
    path = make_store(tmp_path, BROKER)
    select = "SELECT name, tbl_name, rootpage, sql FROM sqlite_master WHERE type = 'index'"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        [index] = connection.execute(select).fetchall()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE type = 'index'")
    add(path, [job("f")])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES ('index', ?, ?, ?, ?)", index)
    report = check(tmp_path)
    assert any("missing from index record_by_uuid" in fault.fault for fault in report.faults)
    assert not report.damaged


def test_a_log_without_its_header(tmp_path: Path) -> None:
    """SQLite would ignore the log, and find the rest sound."""
    path = make_store(tmp_path, BROKER)
    _be_killed_while_writing(path)
    log = path.with_name(f"{path.name}-wal")
    log.write_bytes(bytes(32) + log.read_bytes()[32:])
    report = check(tmp_path)
    assert report.damaged
    assert "write-ahead log" in report.faults[0].fault
    with pytest.raises(StoreError, match="write-ahead log"):
        backup(tmp_path, tmp_path / "copy")


@pytest.mark.parametrize(
    "tool", [check, lambda folder: backup(folder, folder / "copy"), lambda f: [*export(f)]]
)
def test_versions(tmp_path: Path, tool: Any) -> None:
    """Nothing is upgraded."""
    path = make_store(tmp_path, WORKER)
    for version, sentence in [
        (1, "version 1, of an earlier release: start the worker on it once with this release"),
        (9, "version 9, not 2: use the release that wrote it"),
        (0, "version 0, not 2: use the release that wrote it"),
    ]:
        change(path, f"PRAGMA user_version = {version}")
        with pytest.raises(StoreVersionError, match=sentence):
            tool(tmp_path)
    path.unlink()
    path.touch()
    with pytest.raises(StoreVersionError, match=r"is empty: the worker creates its tables"):
        tool(tmp_path)
    assert not (tmp_path / "copy").exists()


def test_folders_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(NoStoreError, match=r"has no store: none of broker\.sqlite3, .* is there$"):
        check(tmp_path / "nowhere")
    make_store(tmp_path / "client" / "1", CLIENT)
    with pytest.raises(NoStoreError, match=r"/client/1 has one$"):
        check(tmp_path)
    make_store(tmp_path / "client" / "1", BROKER)
    with pytest.raises(NoStoreError, match=r"has several stores: name one, such as .*broker\.sqlite3$"):
        check(tmp_path / "client" / "1")
    assert check(tmp_path / "client" / "1" / "client.db").peer == CLIENT
    (tmp_path / "text").write_text("text")
    with pytest.raises(NoStoreError, match="text is no store"):
        check(tmp_path / "text")


# --- backup


@ALL
def test_a_backup_is_a_store(tmp_path: Path, kind: str) -> None:
    path = make_store(tmp_path / HOSTILE_NAME, kind)
    copy = tmp_path / f"copy of {HOSTILE_NAME}"
    assert backup(path.parent, copy) == copy.stat().st_size
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert list(export(copy)) == list(export(path.parent))
    report, of_copy = check(path.parent), check(copy)
    assert (of_copy.counts, of_copy.faults, of_copy.peer) == (report.counts, [], kind)
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([HOSTILE_NAME, copy.name])


def test_a_backup_overwrites_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_store(tmp_path / "store", BROKER)
    there, link = tmp_path / "there", tmp_path / "link"
    there.write_text("precious")
    link.symlink_to(tmp_path / "nowhere")
    for file in (there, link, tmp_path / "store"):
        with pytest.raises(NoStoreError, match="overwrites nothing"):
            backup(tmp_path / "store", file)
    with pytest.raises(StoreError, match="cannot be written: No such file or directory"):
        backup(tmp_path / "store", tmp_path / "no folder" / "copy")

    made_meanwhile = tmp_path / "meanwhile"

    def link_late(source: Any, target: Any) -> None:
        made_meanwhile.write_text("precious")
        raise FileExistsError

    monkeypatch.setattr(os, "link", link_late)
    with pytest.raises(NoStoreError, match="overwrites nothing"):
        backup(tmp_path / "store", made_meanwhile)
    assert made_meanwhile.read_text() == there.read_text() == "precious"
    assert not list(tmp_path.glob(".specwire-backup-*"))


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_store(tmp_path / "store", BROKER)

    def refuse(source: Any, target: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    backup(tmp_path / "store", tmp_path / "copy")
    assert check(tmp_path / "copy").found == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy", "store"]


def test_a_full_disk(tmp_path: Path) -> None:
    """In a process whose files may have 100 kB."""
    path = make_store(tmp_path / "store", BROKER)
    add(path, [EventRecord("a", 1.0, bytes(1000)) for _ in range(1000)])
    done = _run(
        """
        import resource, signal, sys
        from pathlib import Path
        from specwire.runtime.norfab.storetools import backup
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        try:
            backup(Path(sys.argv[1]), Path(sys.argv[2]))
        except Exception as error:
            print(type(error).__name__, error)
        """,
        str(path.parent),
        str(tmp_path / "copy"),
    )
    assert done.stdout.startswith(f"StoreError {path} cannot be copied to {tmp_path / 'copy'}: "), done
    assert [file.name for file in tmp_path.iterdir()] == ["store"]


def test_a_killed_backup_leaves_no_copy(tmp_path: Path) -> None:
    make_store(tmp_path / "store", BROKER)
    done = _run(
        """
        import os, signal, sys
        from pathlib import Path
        from specwire.runtime.norfab.storetools import backup
        os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        backup(Path(sys.argv[1]), Path(sys.argv[2]))
        """,
        str(tmp_path / "store"),
        str(tmp_path / "copy"),
    )
    assert done.returncode == -signal.SIGKILL
    names = sorted(file.name for file in tmp_path.iterdir())
    assert [name for name in names if not name.startswith(".specwire-backup-")] == ["store"]
    assert len(names) == 2
    backup(tmp_path / "store", tmp_path / "copy")
    assert check(tmp_path / "copy").found == 0


# --- while a broker writes


def test_all_tools_beside_a_broker_that_writes(tmp_path: Path) -> None:
    """Every backup is a prefix of the commits, with all that was committed before it began.

    The broker writes at most 1,000 jobs for each backup, so a slow machine has no more to read.
    """
    committed = 0
    sizes: list[int] = []

    def note(last: int, failures: Sequence[Failure]) -> None:
        nonlocal committed
        assert not failures
        committed = last

    async def write(store: BrokerStore) -> None:
        for ticket in range(1, 1_000_000):
            uuid = f"j{ticket:06}"
            records = (job(uuid, "w1", body=bytes(500)), ResultRecord(uuid, "w1", 200, b"{}", 3.0))
            store.write([Commit(ticket, records)])
            if ticket % 20 == 0:
                await asyncio.sleep(0.001)
            while store.store.waiting > 100 or ticket > 1_000 * (len(sizes) + 1):
                await asyncio.sleep(0.001)

    async def story() -> None:
        store = BrokerStore(tmp_path, on_committed=note)
        await store.open()
        writing = asyncio.create_task(write(store))
        for number in range(5):
            await asyncio.sleep(0.05)
            before, copy = committed, tmp_path / f"copy {number}"
            await asyncio.to_thread(backup, tmp_path, copy)
            report = await asyncio.to_thread(check, tmp_path)
            assert (report.faults, report.counts["open"]) == ([], 0)
            exported = await asyncio.to_thread(lambda: list(export(tmp_path)))
            numbers = [record["number"] for record in exported]
            assert numbers == [*range(1, len(numbers) + 1)]
            assert before * 2 <= len(numbers)
            with closing(sqlite3.connect(copy)) as connection:
                rows = connection.execute("SELECT number, uuid, kind FROM record ORDER BY number").fetchall()
            assert rows == [(n, f"j{(n + 1) // 2:06}", 1 if n % 2 else 3) for n in range(1, len(rows) + 1)]
            assert len(rows) % 2 == 0
            assert before <= len(rows) // 2 <= committed
            assert check(copy).found == 0
            sizes.append(len(rows))
        assert not writing.done()
        writing.cancel()
        await store.close()
        assert sizes == sorted(set(sizes))

        (tmp_path / "restored").mkdir()
        shutil.copy(tmp_path / "copy 4", tmp_path / "restored" / "broker.sqlite3")
        restored = BrokerStore(tmp_path / "restored", on_committed=note)
        await restored.open()
        records = await restored.load()
        assert len(records) == sizes[-1]
        jobs = [record for record in records if isinstance(record, JobRecord)]
        assert jobs[-1] == job(f"j{sizes[-1] // 2:06}", "w1", body=b"")
        await restored.close()

    async def bounded() -> None:
        async with asyncio.timeout(100):
            await story()

    asyncio.run(bounded())


# --- a stopped store


def _be_killed_while_writing(path: Path) -> None:
    """Leave a job ``k`` in the WAL only."""
    script = """
    import os, sqlite3, sys
    from tests.runtime.norfab.samplestores import *
    connection = sqlite3.connect(sys.argv[1], isolation_level=None)
    connection.execute("INSERT INTO record (uuid, kind, slot, octets, body) VALUES (?, ?, ?, ?, ?)", make_row(job("k")))
    os._exit(9)
    """
    assert _run(script, str(path)).returncode == 9
    assert path.with_name(f"{path.name}-wal").stat().st_size


def _run(script: str, *arguments: str, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    lines = script.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return subprocess.run(
        [*prefix, sys.executable, "-c", "\n".join(line[indent:] for line in lines), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


_UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
"""Root may write everywhere without this."""

needs_setpriv = pytest.mark.skipif(
    bool(_UNPRIVILEGED) and shutil.which("setpriv") is None, reason="root needs setpriv to be refused"
)


@needs_setpriv
@pytest.mark.parametrize("files", [0o400, 0o600])
@pytest.mark.parametrize("state", ["stopped", "killed", "killed, without -shm"])
def test_a_folder_in_which_nothing_can_be_created(tmp_path: Path, state: str, files: int) -> None:
    folder = tmp_path / HOSTILE_NAME
    path = make_store(folder, BROKER)
    if state != "stopped":
        _be_killed_while_writing(path)
    if state.endswith("-shm"):
        path.with_name(f"{path.name}-shm").unlink()
    for file in folder.iterdir():
        file.chmod(files)
    names = sorted(file.name for file in folder.iterdir())
    folder.chmod(0o500)
    try:
        done = _run(
            """
            import sys
            from pathlib import Path
            from specwire.runtime.norfab.storetools import backup, check, export
            folder, copy = Path(sys.argv[1]), Path(sys.argv[2])
            try:
                print(check(folder).counts["records"], len([*export(folder)]), backup(folder, copy) > 0)
            except Exception as error:
                print(type(error).__name__, error)
            """,
            str(folder),
            str(tmp_path / "copy"),
            prefix=_UNPRIVILEGED,
        )
    finally:
        folder.chmod(0o700)
    if state.endswith("-shm"):
        assert "StoreError" in done.stdout and "in a folder where files can be created" in done.stdout, done
    else:
        records = len(BROKER_RECORDS) + (state == "killed")
        assert done.stdout == f"{records} {records} True\n", done
        assert check(tmp_path / "copy").counts["records"] == records
    assert sorted(file.name for file in folder.iterdir()) == names


def test_a_reader_loses_nothing_that_a_killed_broker_has_committed(tmp_path: Path) -> None:
    path = make_store(tmp_path, BROKER)
    _be_killed_while_writing(path)
    for _ in range(2):
        assert check(tmp_path).counts["open"] == 3
    assert [record["uuid"] for record in export(tmp_path)][-1] == "k"


# --- export


def test_an_export_of_a_broker(tmp_path: Path) -> None:
    make_store(tmp_path, BROKER)
    exported = list(export(tmp_path))
    task = {"slot": "w1", "worker": "w1", "attempt": 1}
    assert exported[:4] == [
        {"kind": "worker", "number": 1, "uuid": "worker w1", "name": "w1", "service": "svc"},
        {
            "kind": "job",
            "number": 2,
            "uuid": "a",
            "client": "c1",
            "user": "ada",
            "service": "svc",
            "target": "all",
            "body": "{}",
            "accepted_at": 1.5,
            "deadline": 2.5,
            "tasks": (task, {"slot": "w2", "worker": "w2", "attempt": 1}),
        },
        {
            "kind": "result",
            "number": 3,
            "uuid": "a",
            "slot": "w1",
            "status": 200,
            "body": '{"w1": 1}',
            "ended_at": 3.25,
        },
        {"kind": "event", "number": 4, "uuid": "a", "at": 3.0, "body_base64": "/wA="},
    ]
    assert exported[6] == {
        "kind": "assigned",
        "number": 7,
        "uuid": "b",
        "tasks": ({"slot": "w1", "worker": "w2", "attempt": 2},),
    }
    assert exported[9] == {"kind": "deleted", "number": 10, "uuid": "d", "service": "svc", "at": 4.5}
    assert [record["number"] for record in exported] == [*range(1, 14)]
    assert list(export(tmp_path, "a")) == exported[1:5]
    assert list(export(tmp_path, "unknown")) == list(export(tmp_path, "\udcff")) == []


def test_an_export_of_a_worker(tmp_path: Path) -> None:
    make_store(tmp_path, WORKER)
    exported = list(export(tmp_path))
    assert exported[0] == {
        "kind": "job",
        "uuid": "a",
        "number": 1,
        "client_base64": "/wE=",
        "task": "paint",
        "body": "",
        "accepted_at": 1.5,
        "held": False,
    }
    assert exported[3]["held"] is True
    assert exported[4:] == [
        {
            "kind": "result",
            "uuid": "a",
            "number": 1,
            "body": "{}",
            "ended_at": 3.5,
            "failed": False,
            "fault": True,
            "deleted": False,
        },
        {
            "kind": "result",
            "uuid": "b",
            "number": 2,
            "body": "",
            "ended_at": 4.5,
            "failed": False,
            "fault": False,
            "deleted": True,
        },
        {"kind": "begun", "uuid": "", "number": 3},
    ]
    assert list(export(tmp_path, "a")) == [exported[0], exported[4]]


def test_an_export_of_a_client(tmp_path: Path) -> None:
    make_store(tmp_path, CLIENT)
    exported = list(export(tmp_path))
    assert [(record["kind"], record["uuid"]) for record in exported] == [
        ("job", "z"),
        ("job", "a"),
        ("job", "n"),
        ("state", "a"),
        ("state", "old"),
        ("state", "z"),
        ("result", "z"),
        ("result", "z"),
        ("event", "a"),
        ("event", "z"),
    ]
    assert list(export(tmp_path, "z")) == [
        {
            "kind": "job",
            "uuid": "z",
            "service": "svc",
            "task": "paint",
            "target": "all",
            "body": "{}",
            "created_at": 1.5,
            "deadline": 9.5,
        },
        {
            "kind": "state",
            "uuid": "z",
            "state": "COMPLETED",
            "workers": '["w1","w2"]',
            "deadline": 9.5,
            "code": 200,
            "error": "",
            "ended_at": 5.5,
            "octets": 4,
        },
        {"kind": "result", "uuid": "z", "worker": "w2", "code": 200, "entry": "{}", "at": 4.5},
        {"kind": "result", "uuid": "z", "worker": "w1", "code": 200, "entry": "{}", "at": 5.5},
        {"kind": "event", "uuid": "z", "at": 4.5, "body_base64": "/g=="},
    ]


def test_damaged_records_are_reported_and_skipped(tmp_path: Path) -> None:
    change(make_store(tmp_path, BROKER), "UPDATE record SET octets = x'c1' WHERE number = 2")
    skipped: list[StoreFault] = []
    assert [record["number"] for record in export(tmp_path, on_fault=skipped.append)] == [1, *range(3, 14)]
    assert [(fault.row, fault.uuid) for fault in skipped] == [("record 2", "a")]


@ALL
@pytest.mark.parametrize(("page_rows", "page_octets"), [(1, 1 << 20), (2, 1 << 20), (500, 1), (500, 30)])
def test_pages(tmp_path: Path, kind: str, page_rows: int, page_octets: int) -> None:
    """Also where the key of a row is damaged, or shared."""
    path = make_store(tmp_path, kind)
    if kind == CLIENT:
        change(
            path,
            "UPDATE jobs SET created_at = NULL WHERE uuid IN ('a', 'n')",
            "INSERT INTO jobs SELECT CAST(x'fe' AS TEXT), service, task, target, body, 1.5, 2 FROM jobs LIMIT 1",
            "INSERT INTO jobs SELECT 'same', service, task, target, body, 1.5, 2.0 FROM jobs WHERE uuid = 'z'",
        )
    described = next(one for one in KINDS if one.peer == kind)
    with open_store(path, described) as connection:
        for table in described.tables:
            rows = connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
            paged = list(read_rows(connection, table, page_rows=page_rows, page_octets=page_octets))
            assert paged == list(read_rows(connection, table))
            assert len(paged) == rows
            uuid = paged[0]["uuid"]
            assert list(read_rows(connection, table, uuid, page_rows=page_rows)) == [
                row for row in paged if row["uuid"] == uuid
            ]


def test_an_export_does_not_hold_the_log(tmp_path: Path) -> None:
    """While its reader waits, the broker's checkpoints go through."""
    path = make_store(tmp_path, BROKER)
    add(path, [EventRecord("a", 1.0, bytes(1000)) for _ in range(2000)])
    records = export(tmp_path)
    next(records)
    add(path, [EventRecord("a", 1.0, b"") for _ in range(10)])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    assert sum(1 for _ in records) == len(BROKER_RECORDS) - 1 + 2010


def test_rules_are_linear(tmp_path: Path) -> None:
    """A job with many parts and much history does not take the square of them."""
    path = make_store(tmp_path, BROKER)
    slots = [f"w{number}" for number in range(3000)]
    add(path, [job("wide", *slots)])
    add(path, [EventRecord("wide", 1.0, b"{}") for _ in range(20_000)])
    add(path, [ResultRecord("wide", slot, 200, b"{}", 3.0) for slot in slots])
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    with open_store(path, BROKER_KIND) as connection:
        connection.set_progress_handler(count, 1000)
        for rule in BROKER_KIND.rules:
            assert connection.execute(rule.select).fetchall() == []
        for sql in BROKER_KIND.counts.values():
            connection.execute(sql).fetchall()
    assert steps < 10_000
    assert check(tmp_path).counts["ended"] == 3


def test_reports_are_values(tmp_path: Path) -> None:
    make_store(tmp_path, CLIENT)
    assert msgspec.to_builtins(check(tmp_path), enc_hook=str)["peer"] == "client"
