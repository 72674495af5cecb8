"""`specwire pipeline run` killed with its Java process: the next run comes to what an undisturbed one comes to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, write_segment
from specwire.runtime.spark.session.target import find_java
from tests.processes import kill_all

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(find_java() is None, reason="Spark needs Java 17 or newer"),
]

COMMAND = [sys.executable, "-P", "-m", "specwire.runtime.cli.main", "pipeline", "run", "--master", "local[2]"]
LIMIT_S = 600
TAP = "server-1-0"
NOM = bytes.fromhex("aaa3070000010000000000")

KILLS = os.environ.get("SPECWIRE_PIPELINE_KILLS", "") not in ("", "0")

STEPS = ("writing filemq tables", "writing the report")
"""The run is killed when it says that it begins one of these: with half its tables staged, and shortly before it commits."""


def write(capture: Path, number: int) -> None:
    """Write a segment of three messages, the last of which does not decode."""
    capture.mkdir(exist_ok=True)
    rows = [
        Captured(1_700_000_000_000_000 + seq, seq, seq, "c1", "C", "00aa", (frame,), 0)
        for seq, frame in enumerate((NOM, NOM, NOM[:6]), start=3 * number)
    ]
    table = build_table(rows, Source(TAP, "filemq", "2"), 0)
    write_segment(capture, segment_name(TAP, number), table)


def start(capture: Path, out: Path) -> subprocess.Popen[str]:
    """Start a run."""
    return subprocess.Popen(
        [*COMMAND, "--capture", str(capture), "--out", str(out), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> dict[str, object]:
    """Wait for a run to end well; return its summary."""
    output, complaints = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, complaints
    summary: dict[str, object] = json.loads(output)
    return summary


def kill_at(process: subprocess.Popen[str], step: str) -> None:
    """Kill a run and all its processes when it says that it begins a step."""
    assert process.stderr is not None
    while (line := process.stderr.readline()) and line.strip() != step:
        pass
    assert line, "the run ended before the step"
    kill_all(process)
    process.communicate(timeout=LIMIT_S)


def seqs(out: Path, table: str) -> list[int]:
    """Return the messages that a plain reader finds in a table."""
    found: list[int] = []
    for file in (out / table).rglob("[!._]*.parquet"):
        found += pq.read_table(file)["seq"].to_numpy().tolist()
    return sorted(found)


@pytest.mark.skipif(
    not KILLS, reason="four starts of Spark take minutes: `make soak` kills runs (SPECWIRE_PIPELINE_KILLS=1)"
)
def test_killed_runs_leave_the_old_or_the_new(tmp_path: Path) -> None:
    """Killed twice on its way through the second segment, then left alone: everything is there once."""
    capture, out = tmp_path / "capture", tmp_path / "out"
    write(capture, 0)
    first = finish(start(capture, out))
    write(capture, 1)
    for step in STEPS:
        kill_at(start(capture, out), step)
        assert json.loads((out / "summary.json").read_bytes()) == first, (
            "what readers see is of the first run"
        )
        assert (seqs(out, "frames"), seqs(out, "typed/filemq/Nom")) == ([0, 1, 2], [0, 1])
    last = finish(start(capture, out))
    assert last["totals"] == {"captured": 6, "typed": 4, "errors": 2, "late": 0, "repeated": 0}
    assert seqs(out, "frames") == [0, 1, 2, 3, 4, 5]
    assert (seqs(out, "typed/filemq/Nom"), seqs(out, "typed/filemq/_errors")) == ([0, 1, 3, 4], [2, 5])
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == [".lock"]
