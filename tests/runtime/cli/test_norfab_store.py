"""`specwire norfab store`: what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from specwire.runtime.norfab.records import EventRecord
from specwire.runtime.norfab.storekinds import KINDS
from tests.runtime.cli.commands import Outcome, specwire
from tests.runtime.norfab.samplestores import BROKER, CLIENT, FILES, WORKER, add, change, job, make_store

ALL = pytest.mark.parametrize("kind", [BROKER, WORKER, CLIENT])
PROGRAM = [sys.executable, "-c", "from specwire.runtime.cli.main import main; main()", "norfab", "store"]


def store(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> Outcome:
    """Run one of the commands."""
    return specwire(capfd, "norfab", "store", *map(str, arguments))


def test_check_of_a_sound_store(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = make_store(tmp_path / "a b?#%20", BROKER)
    told = store(capfd, "check", "--folder", path.parent)
    size = f"{path.stat().st_size / 1000:.1f} kB"
    assert (told.status, told.err) == (0, "")
    summary = "jobs: 2 open, 2 ended, 1 deleted; 1 worker; 13 records"
    assert told.out == f"{path}: {summary}; {size}: sound\n"


def test_check_of_a_worker_and_a_client(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    worker, client = make_store(tmp_path / "w", WORKER), make_store(tmp_path / "c", CLIENT)
    told = store(capfd, "check", "--folder", worker.parent)
    assert told.out.startswith(f"{worker}: jobs: 2 open, 1 ended, 1 deleted; 7 records; ")
    told = store(capfd, "check", "--folder", client)
    assert told.out.startswith(f"{client}: jobs: 2 open, 1 ended; 10 records; ")


def test_the_default_is_the_folder_of_the_broker(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    told = store(capfd, "check")
    assert (told.status, told.out) == (2, "")
    assert f"specwire: {tmp_path}/specwire/norfab has no store: none of" in told.err
    make_store(tmp_path / "specwire" / "norfab", BROKER)
    assert store(capfd, "check").status == 0
    assert store(capfd, "export").out.count("\n") == 13
    assert store(capfd, "backup", tmp_path / "copy").status == 0


def test_faults_are_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = make_store(tmp_path, BROKER)
    add(path, [EventRecord("evil\x1b[31m\n", 1.0, b""), job("a")])
    told = store(capfd, "check", "--folder", tmp_path)
    lines = told.out.splitlines()
    assert (told.status, told.err) == (1, "")
    assert lines[:2] == [
        "record 14 of evil\\x1b[31m\\n: the store has no job of this uuid before it",
        "record 15 of a: a second job, deletion or worker of this uuid",
    ]
    assert lines[2].endswith(" kB: 2 faults")
    told = store(capfd, "check", "--folder", tmp_path, "--json")
    report = json.loads(told.out)
    assert told.status == 1
    assert report["sound"] is False
    assert report["faults"][1] == {
        "row": "record 15",
        "uuid": "a",
        "fault": "a second job, deletion or worker of this uuid",
    }
    assert (report["path"], report["peer"], report["found"]) == (str(path), "broker", 2)
    assert report["counts"] == {"open": 2, "ended": 2, "deleted": 1, "workers": 1, "records": 15}


def test_many_faults(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = make_store(tmp_path, BROKER)
    add(path, [EventRecord(f"x{number}", 1.0, b"") for number in range(1200)])
    told = store(capfd, "check", "--folder", tmp_path)
    assert told.out.count("\n") == 101
    assert told.out.endswith("kB: 1,200 faults, 100 of them listed\n")


@ALL
def test_damage_says_what_the_next_start_does(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    name = FILES[kind]
    (tmp_path / name).write_bytes(b"no database" * 1000)
    told = store(capfd, "check", "--folder", tmp_path)
    assert told.status == 1
    assert told.out == f"file is not a database\n{tmp_path / name}: 11.0 kB: 1 fault\n"
    assert f"when the {kind} starts, it copies the rows that can be read" in told.err
    assert f"renames this one to {name}.damaged-TIME" in told.err
    assert store(capfd, "export", "--folder", tmp_path).status == 1
    assert store(capfd, "backup", tmp_path / "copy", "--folder", tmp_path).status == 1


@ALL
@pytest.mark.parametrize("version", [1, 9])
def test_other_versions_are_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str, version: int
) -> None:
    path = make_store(tmp_path, kind)
    change(path, f"PRAGMA user_version = {version}")
    for command in (["check"], ["check", "--json"], ["export"], ["backup", tmp_path / "copy"]):
        told = store(capfd, *command, "--folder", tmp_path)
        assert (told.status, told.out, told.err.count("\n")) == (2, "", 1)
        what = f"start the {kind} on it once" if version == 1 else "use the release that wrote it"
        assert what in told.err


def test_backup(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_store(tmp_path / "store", BROKER)
    copy = tmp_path / "copy #1"
    told = store(capfd, "backup", copy, "--folder", tmp_path / "store")
    assert (told.status, told.err) == (0, "")
    assert told.out == f"{copy}: {copy.stat().st_size / 1000:.1f} kB\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    told = store(capfd, "backup", copy, "--folder", tmp_path / "store")
    assert (told.status, told.out) == (2, "")
    assert told.err == f"specwire: {copy} exists: choose another name, a backup overwrites nothing\n"
    told = store(capfd, "backup", tmp_path / "2", "--folder", tmp_path / "store", "--json")
    assert json.loads(told.out) == {"file": str(tmp_path / "2"), "octets": copy.stat().st_size}
    told = store(capfd, "check", "--folder", copy)
    assert (told.status, "13 records" in told.out) == (0, True)
    told = store(capfd, "backup", tmp_path / "nowhere" / "copy", "--folder", tmp_path / "store")
    assert (told.status, "No such file or directory" in told.err) == (1, True)


@ALL
def test_export(tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    make_store(tmp_path, kind)
    told = store(capfd, "export", "--folder", tmp_path)
    records = [json.loads(line) for line in told.out.splitlines()]
    assert told.status == 0
    assert told.out.isascii()
    assert len(records) == {BROKER: 13, WORKER: 7, CLIENT: 10}[kind]
    assert all(list(record)[:2] == ["kind", "uuid"] for record in records)
    told = store(capfd, "export", "--folder", tmp_path, "--uuid", "a")
    assert [json.loads(line) for line in told.out.splitlines()] == [
        record for record in records if record["uuid"] == "a"
    ]
    told = store(capfd, "export", "--folder", tmp_path, "--uuid", "unknown")
    assert (told.status, told.out) == (1, "")
    assert told.err == "specwire: no record has the uuid unknown\n"


def test_a_line_of_an_export(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_store(tmp_path, BROKER)
    lines = store(capfd, "export", "--folder", tmp_path, "--uuid", "a").out.splitlines()
    result = '"slot": "w1", "status": 200, "body": "{\\"w1\\": 1}", "ended_at": 3.25'
    assert lines[1:3] == [
        f'{{"kind": "result", "uuid": "a", "number": 3, {result}}}',
        '{"kind": "event", "uuid": "a", "number": 4, "at": 3.0, "body_base64": "/wA="}',
    ]


def test_an_export_skips_what_is_damaged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    change(make_store(tmp_path, BROKER), "UPDATE record SET octets = x'c1' WHERE number = 2")
    told = store(capfd, "export", "--folder", tmp_path)
    assert (told.status, told.out.count("\n")) == (1, 12)
    assert told.err.startswith("specwire: skipped record 2 of a: ")


def test_a_closed_pipe_ends_an_export(tmp_path: Path) -> None:
    path = make_store(tmp_path, BROKER)
    add(path, [EventRecord("a", 1.0, b"{}" * 500) for _ in range(2000)])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [*PROGRAM, "export", "--folder", str(tmp_path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert json.loads(process.stdout.readline())["kind"] == "worker"
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_an_export_streams(tmp_path: Path) -> None:
    """A store of 200 MB, in a process that may have 100 MB more than at its start."""
    path = make_store(tmp_path, BROKER)
    for _ in range(20):
        add(path, [EventRecord("a", 1.0, b"x" * 100_000) for _ in range(100)])
    script = """
import resource, sys
from specwire.runtime.cli import norfab_store
from specwire.runtime.cli.main import main
from specwire.runtime.norfab import storetools
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 100_000_000, resource.RLIM_INFINITY))
main(["norfab", "store", "export", "--folder", sys.argv[1]])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_help_names_every_file(capfd: pytest.CaptureFixture[str]) -> None:
    told = store(capfd, "backup", "--help").out
    assert all(kind.file in told for kind in KINDS)
