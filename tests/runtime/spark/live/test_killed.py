"""`specwire pipeline watch` is killed while its capture grows, and in the end has what a batch job makes of it.

`SPECWIRE_WATCH_KILLS` says how often it is killed (`make soak` asks for five; a kill takes minutes, so by default there is none); half of the times with its Java
process, half of the times without, which then has to end by itself. When it is killed is left to chance.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture.segments import list_files
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import TYPED, Store
from tests.processes import kill_all
from tests.runtime.spark import captures
from tests.runtime.spark.growing import add_segment
from tests.runtime.spark.live.same import count, read_alerts, read_rows

pytestmark = [pytest.mark.slow, pytest.mark.spark]

COMMAND = [
    sys.executable,
    "-P",
    "-m",
    "specwire.runtime.cli.main",
    "pipeline",
    "watch",
    "--master",
    "local[2]",
]
LIMIT_S = 600.0
KILLS = int(os.environ.get("SPECWIRE_WATCH_KILLS", "0"))

SEGMENTS = 30 * KILLS
CONVERSATIONS = 5
OPENING: list[captures.Message] = [("C", captures.OHAI), ("S", captures.OHAI_OK), ("C", captures.NOM)]
CHATTER: list[captures.Message] = [("S", captures.CHEEZBURGER), ("C", captures.NOM), ("S", captures.DELETION)]
ODD = {17: [("S", captures.ICANHAZ_OK)], 23: [("C", captures.SHORT_NOM)]}
"""What a few segments hold instead: an answer that nobody asked for, and frames that end too early."""


def segment(number: int) -> list[captures.Message]:
    """The messages of one segment; the first ones open a conversation each."""
    return OPENING if number < CONVERSATIONS else ODD.get(number, []) + CHATTER[: 3 - (number in ODD)]


def grow(capture: Path, first: int, last: int) -> None:
    """Add some segments, a few each second."""
    for number in range(first, last):
        conversation = f"c{number % CONVERSATIONS}"
        add_segment(capture, number, segment(number), first=3 * number, conversation=conversation, now=True)
        time.sleep(0.15)


def start(capture: Path, out: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a watch in a process group of its own, as shells do, its words in a file."""
    options = [
        "--capture",
        capture,
        "--out",
        out,
        "--every",
        "0.2",
        "--answers-every",
        "20",
        "--silent-after",
        "9999",
    ]
    with log.open("wb") as said:
        return subprocess.Popen(
            [*COMMAND, *map(str, options), "--json"], stdout=said, stderr=said, process_group=0
        )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def batches(out: Path) -> int:
    """How many runs were committed: each batch is one."""
    return Store(out).manifest.run


def alerts(out: Path) -> int:
    """How many alerts are in their table."""
    return sum(pq.read_metadata(path).num_rows for path in (out / "alerts").rglob("alerts-*.parquet"))


def events(log: Path) -> list[dict[str, Any]]:
    """The lines that a watch has written."""
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


@pytest.mark.skipif(not KILLS, reason="a kill takes minutes: `make soak` does it (SPECWIRE_WATCH_KILLS=5)")
def test_a_watch_that_is_killed_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Typed tables, answers and alerts are those of a batch job, each row once."""
    capture, out, log = tmp_path / "capture", tmp_path / "out", tmp_path / "log"
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    capture.mkdir()
    share = SEGMENTS // (KILLS + 1)
    for turn in range(KILLS):
        growing = threading.Thread(target=grow, args=(capture, turn * share, (turn + 1) * share))
        growing.start()
        process = start(capture, out, log)
        try:
            begun = batches(out)
            wait_for(lambda begun=begun: batches(out) > begun, process, log)  # type: ignore[misc]
            time.sleep(chance.uniform(0.0, 4.0))
        finally:
            if turn % 2:
                kill_all(process)
            else:
                process.kill()
            process.wait(LIMIT_S)
            growing.join(LIMIT_S)

    growing = threading.Thread(target=grow, args=(capture, KILLS * share, SEGMENTS))
    growing.start()
    process = start(capture, out, log)
    try:
        growing.join(LIMIT_S)
        wait_for(lambda: Store(out).manifest.rows.get("frames") == 3 * SEGMENTS, process, log)
        wait_for(lambda: alerts(out) >= 2, process, log)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0, log.read_text()
    finally:
        process.kill()
    last = [event for event in events(log) if "messages" in event][-1]
    assert (last["messages"], last["undecoded"]) == (3 * SEGMENTS, 1)

    advance(spark, Store(tmp_path / "batch"), list_files(capture), Request(capture))
    found = read_rows(out)
    assert count(read_rows(out, TYPED)) == 3 * SEGMENTS
    assert found == read_rows(tmp_path / "batch")
    told = [(row.kind, row.seq, row.message) for row in read_alerts(spark, out).collect()]
    assert sorted(told) == [("undecodable", 3 * 23, None), ("violation", 3 * 17, "IcanhazOk")]
