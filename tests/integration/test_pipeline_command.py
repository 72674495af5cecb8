"""`specwire pipeline run` as its user runs it: a process, a folder, an exit status, and a quiet screen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specwire.generated import filemq
from specwire.runtime.capture import Tap
from specwire.runtime.spark.session.target import find_java
from tests.runtime.cli.commands import Outcome, specwire

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-P", "-m", "specwire.runtime.cli.main", "pipeline", "run"]
LIMIT_S = 600

NOM = bytes.fromhex("aaa3070000010000000000")
SHORT_NOM = NOM[:6]

needs_java = pytest.mark.skipif(find_java() is None, reason="Spark needs Java 17 or newer")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Live captures of two peers, one of which said something odd."""
    folder = tmp_path_factory.mktemp("command") / "capture"
    with (
        Tap.open(folder, protocol="filemq", name="server", edition=filemq.EDITION) as server,
        Tap.open(folder, protocol="filemq", name="client", edition=filemq.EDITION) as client,
    ):
        for frames in ([NOM], [NOM], [SHORT_NOM]):
            server.record(sender="C", peer="00aa", conversation="1", frames=frames)
            client.record(sender="C", peer="tcp://127.0.0.1:5670", conversation="a", frames=frames)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A working directory full of modules that must not be imported."""
    for name in ("random", "pyarrow", "numpy", "signal", "specwire", "msgspec"):
        (tmp_path / f"{name}.py").write_text(
            "raise SystemExit('a module of the working directory was imported')"
        )
    return tmp_path


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@needs_java
@pytest.mark.spark
def test_a_capture_becomes_tables_and_a_report(capture: Path, elsewhere: Path) -> None:
    """The summary on standard output, the steps on standard error and nothing else, no litter around.

    Without answers, which take as long again and are written by the process of `test_job`.
    """
    out = capture.parent / "out"
    before = sorted(elsewhere.iterdir())
    options = ("--layers", "frames,typed", "--master", "local[2]", "--json")
    ran = run("--capture", capture, "--out", out, *options, cwd=elsewhere)
    assert ran.returncode == 0, ran.stderr
    summary = json.loads(ran.stdout)
    counts = {(item["tap"].split("-")[0], item["message"]): item["messages"] for item in summary["types"]}
    assert counts == {("server", "Nom"): 2, ("server", None): 1, ("client", "Nom"): 2, ("client", None): 1}
    assert json.loads((out / "summary.json").read_bytes()) == summary
    assert "<!DOCTYPE html>" in (out / "report.html").read_text(encoding="utf-8")
    steps = ran.stderr.splitlines()
    assert steps == [
        "starting Spark",
        "reading segments",
        "decoding filemq",
        "writing filemq tables",
        "writing the report",
    ]
    assert sorted(elsewhere.iterdir()) == before


@needs_java
@pytest.mark.spark
def test_an_interrupt_leaves_nothing_behind(capture: Path, tmp_path: Path) -> None:
    """No trace, no half output, and no folder that was not there; a terminal interrupts the whole group."""
    out = tmp_path / "out"
    arguments = ["--capture", str(capture), "--out", str(out), "--master", "local[2]"]
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("writing"):
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        _, rest = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("missing", "there is no such capture folder"),
        ("empty", "the capture folder holds no segments"),
        ("foreign", "foreign.parquet: not a whole Parquet file"),
    ],
)
def test_a_bad_capture_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], damage: str, sentence: str
) -> None:
    """On standard error, exit status 2, before Spark is started."""
    capture = tmp_path / "capture"
    if damage != "missing":
        capture.mkdir()
    if damage == "foreign":
        (capture / "foreign.parquet").write_text("a letter, not a table")
    ran = refused(capfd, "--capture", str(capture), "--out", str(tmp_path / "out"))
    assert (ran.status, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("specwire: ")
    assert sentence in line
    assert not (tmp_path / "out").exists()


def test_an_unknown_protocol_is_one_sentence(
    capture: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It lists the known ones."""
    options = ("--capture", str(capture), "--out", str(tmp_path / "out"), "--protocol", "gopher")
    ran = refused(capfd, *options)
    assert ran.status == 2
    assert "there is no protocol 'gopher'; the known ones are " in ran.err
    assert len(ran.err.splitlines()) == 1


def refused(capfd: pytest.CaptureFixture[str], *options: str) -> Outcome:
    """Run the command in this process, with a master that would fail if Spark were started."""
    return specwire(capfd, "pipeline", "run", "--master", "not a master", *options)
