"""The main job on a small scale: real peers, real capture, real Spark, and that it notices what is wrong."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specwire.runtime.job.files import CHANGED, DOOMED, EMPTY, SPACED, change_files, digest_folder, make_files
from specwire.runtime.job.findings import compare_counts, compare_files
from specwire.runtime.job.folder import MARK, JobFolderError
from specwire.runtime.job.job import run_job
from specwire.runtime.job.transfer import Peer, Transfer
from specwire.runtime.spark.pipeline.summary import Summary, TapCount, Timeline
from tests.runtime.cli.commands import specwire

ROOT = Path(__file__).parents[2]


def _quiet(step: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def run_command(out: Path, grammars: Path, *, brief: bool) -> dict[str, Any]:
    """Run the command in a process of its own, as `make run` does, on a small scale.

    Not `brief`, Spark has its own defaults and Java compiles as it does for a user.
    """
    arguments = ["run", "--json", "--out", str(out), "--grammars", str(grammars), "--master", "local[2]"]
    sizes = ["--small-files", "40", "--large-octets", str(3 << 20)]
    command = [sys.executable, "-m", "specwire.runtime.cli.main", *arguments, *sizes]
    ours = () if brief else ("SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")
    variables = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, cwd=out.parent, env=variables
    )
    assert done.returncode == 0, done.stderr
    for step in ("generated packages", "transferring files", "comparing files", "decoding filemq"):
        assert step in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.spark
@pytest.mark.peers
def test_job_holds_twice(tmp_path: Path) -> None:
    """The second run replaces the first and finds the same."""
    shutil.copytree(ROOT / "grammars" / "filemq", tmp_path / "grammars" / "filemq")
    out = tmp_path / "out"
    for brief in (False, True):
        found = run_command(out, tmp_path / "grammars", brief=brief)
        assert found["job"]["faults"] == []
        assert found["job"]["files"] == 45
        taps = found["summary"]["taps"]
        recorded = {peer["name"]: peer["recorded"] for peer in found["job"]["transfer"]["peers"]}
        assert {tap["tap"].rpartition("-")[0].rpartition("-")[0]: tap["messages"] for tap in taps} == recorded
        assert [tap["errors"] for tap in taps] == [0, 0, 0]
    inbox = out / "inboxes" / "client-1"
    assert (
        (inbox / EMPTY).read_bytes() == b"" and (inbox / SPACED).is_file() and not (inbox / DOOMED).exists()
    )
    assert (inbox / CHANGED).read_text().startswith("as it is now")
    assert (out / "result" / "report.html").is_file()
    assert json.loads((out / MARK).read_bytes())["faults"] == []


def test_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(JobFolderError, match="not the output of an earlier run"):
        run_job(tmp_path, progress=_quiet)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_folder_that_is_a_file_is_told_before_anything_is_done(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is a slip of the user's, which costs neither packages nor a start of Spark."""
    (tmp_path / "out").touch()
    outcome = specwire(capfd, "run", "--out", str(tmp_path / "out"), "--grammars", str(tmp_path))
    told = f"specwire: {tmp_path / 'out'} is a file; name a folder with --out\n"
    assert (outcome.status, outcome.out, outcome.err) == (2, "", told)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    """The second is refused before it touches what the first has written."""
    (tmp_path / MARK).write_text("{}")
    (tmp_path / "published").mkdir()
    with (tmp_path / MARK).open("rb") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        with pytest.raises(JobFolderError, match="another run is at work in"):
            run_job(tmp_path, progress=_quiet)
    assert (tmp_path / "published").is_dir()


def test_a_wrong_file_is_found(tmp_path: Path) -> None:
    make_files(tmp_path / "sent", small_files=3, large_octets=10)
    make_files(tmp_path / "got", small_files=3, large_octets=10)
    assert list(compare_files(tmp_path / "sent", {"a": tmp_path / "got"})) == []
    change_files(tmp_path / "sent")
    (sentence,) = compare_files(tmp_path / "sent", {"a": tmp_path / "got"})
    assert sentence.startswith("a: 3 of 8 files are missing, wrong or too many: notes/added.txt")


def test_digests_leave_hidden_files_out(tmp_path: Path) -> None:
    (tmp_path / ".part").write_text("x")
    (tmp_path / "file").write_bytes(b"abc")
    assert digest_folder(tmp_path) == {"file": "a9993e364706816aba3e25717850c26c9cd0d89d"}


PEER = Peer("server", 2, 3, 100, 50, 1, 5, 0, ())
SUMMARY = Summary(
    "capture", (TapCount("t", "filemq", 5, 100, 0, 0, None, None),), (), (), (), Timeline(1.0, ()), {}, 1.0
)


@pytest.mark.parametrize(
    ("peer", "errors", "sentence"),
    [
        ({"recorded": 4}, 0, "server moved 5 messages, its tap recorded 4 and dropped 0"),
        ({"dropped": 1}, 0, "server moved 5 messages, its tap recorded 5 and dropped 1"),
        ({"refusals": ("x: why",)}, 0, "server refused x: why"),
        ({"octets": 101}, 0, "the peers moved 101 octets and the capture holds 100"),
        ({}, 2, "2 messages did not decode"),
    ],
)
def test_counts_that_disagree_are_faults(peer: dict[str, object], errors: int, sentence: str) -> None:
    transfer = Transfer((msgspec.structs.replace(PEER, content_octets=0, **peer),), 1.0)
    tap = msgspec.structs.replace(SUMMARY.taps[0], errors=errors)
    assert sentence in compare_counts(transfer, msgspec.structs.replace(SUMMARY, taps=(tap,)))
    agreed = Transfer((msgspec.structs.replace(PEER, content_octets=0),), 1.0)
    assert list(compare_counts(agreed, SUMMARY)) == []
