"""The main job on a small scale: real peers of four protocols, a real capture, real Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import dataset

from specwire.runtime.cli.job.workspace import ADDED, CHANGED, DELETED, EMPTY, MARK, SPACED
from specwire.runtime.packages import REGISTRY
from tests.spark_session import Command

ROOT = Path(__file__).parents[2]


@pytest.fixture
def own_packages() -> Iterator[None]:
    """Forget the packages that the job adds."""
    yield
    REGISTRY.clear()


@pytest.mark.spark
@pytest.mark.peers
def test_job_holds(
    command: Command, own_packages: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make run` on a small scale, in a folder with the output of an earlier run.

    In this process, with the shared session; `test_pipeline_command` has one of its own.
    """
    shutil.copytree(ROOT / "grammars" / "filemq", tmp_path / "grammars" / "filemq")
    out = tmp_path / "out"
    (out / "result").mkdir(parents=True)
    (out / MARK).write_text('{"files": 305, "transfer": {}, "faults": []}')  # as version 0.1 wrote it
    (out / "result" / "old").write_text("of an earlier run")
    monkeypatch.chdir(tmp_path)
    options = ("--json", "--out", str(out), "--grammars", str(tmp_path / "grammars"), "--master", "local[2]")
    done = command("run", *options, "--small-files", "40", "--large-octets", str(3 << 20))
    assert done.status == 0, done.out + done.err
    for step in ("generated packages", "compiling ticker", "running peers", "decoding ticker"):
        assert step in done.err
    found = json.loads(done.out)
    job, summary = found["job"], found["summary"]
    assert job["faults"] == []
    assert json.loads((out / MARK).read_bytes()) == job

    # 40 modules of the standard library and five special files.
    assert job["files"] == 45
    inbox = out / "inboxes" / "filemq-client-1"
    assert (inbox / EMPTY).read_bytes() == b""
    assert (inbox / SPACED).is_file()
    assert not (inbox / DELETED).exists()
    assert (inbox / CHANGED).read_text().startswith("content after the change")
    assert (inbox / ADDED).is_file()

    # Each of two clients squares 0 to 99, and takes their roots: ten of them are perfect squares.
    flux, norfab, ticker = (job["peers"][name] for name in ("flux", "norfab", "ticker"))
    assert (flux["answered"], flux["failed"], flux["received"]) == (2 * (100 + 10), 2 * 90, 2 * 50)
    # A first job for each worker, 30 for both, 30 for either of them, and 30 that fail.
    assert (norfab["done"], norfab["failed"], norfab["results"]) == (62, 30, 2 + 30 * 2 + 30 + 30)
    assert ticker["quotes"] == 3 * 200

    recorded = {tap["tap"]: (tap["recorded"], 0) for tap in job["peers"]["taps"]}
    assert {tap["tap"]: (tap["messages"], tap["errors"]) for tap in summary["taps"]} == recorded
    quotes = dataset.dataset(out / "result/typed/ticker/Quote", partitioning="hive").to_table()
    assert max(int(price) for price in quotes["price"].to_pylist() if price is not None) >= 2**63
    report = (out / "result" / "report.html").read_text()
    assert all(name in report for name in ("filemq", "flux", "norfab", "ticker"))
    assert not (out / "result" / "old").exists()
