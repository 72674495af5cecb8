"""`specwire pipeline watch` killed while its capture grows, by SIGKILL, and what is there in the end.

Spark is behind a Connect server here, so that a death costs the start of a Python process and not of Java: this
program begins and commits all batches itself, so all that can be cut in two is in it. Queries that the server's Spark has
begun run on, as on a cluster whose driver was killed. `tests.runtime.spark.live.test_killed` kills a watch with and
without its Java process.

`make soak` kills it (`SPECWIRE_WATCH_KILLS`). `make test` stops a watch at each point of a commit instead
(`tests.runtime.spark.live.test_cut_short`), and runs one behind a server (`test_connect_watch`).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture.segments import list_files
from specwire.runtime.spark.live.watch import ROUNDS_FILE
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.commit import STAGING, begin
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import TYPED, Store
from tests.runtime.spark import captures
from tests.runtime.spark.cluster.servers import Server
from tests.runtime.spark.growing import add_segment
from tests.runtime.spark.live.same import count, read_rows

pytestmark = [pytest.mark.slow, pytest.mark.spark]

COMMAND = [sys.executable, "-P", "-m", "specwire.runtime.cli.main", "pipeline", "watch", "--no-alerts"]
LIMIT_S = 600.0
KILLS = int(os.environ.get("SPECWIRE_WATCH_KILLS", "0"))
SAID: list[captures.Message] = [("C", captures.OHAI), ("S", captures.OHAI_OK), ("C", captures.SHORT_NOM)]
ASKED = Asked(layers=("typed",))


class Scene:
    """A capture that grows by itself, and the watches over it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.capture, self.out, self._log = folder / "capture", folder / "out", folder / "log"
        self._url = url
        self.capture.mkdir()
        self.segments = 0
        with begin(self.out) as run:
            run.commit(msgspec.structs.replace(run.before, asked=ASKED, answered=run.number))

    def grow(self, stop: threading.Event) -> None:
        """Add a segment now and then."""
        while not stop.wait(0.2):
            add_segment(self.capture, self.segments, SAID, first=3 * self.segments)
            self.segments += 1

    def start(self) -> subprocess.Popen[bytes]:
        """Start a watch, its words in a file."""
        options = ["--capture", self.capture, "--out", self.out, "--remote", self._url, "--every", "0.1"]
        with self._log.open("ab") as said:
            return subprocess.Popen([*COMMAND, *map(str, options)], stdout=said, stderr=said)

    def wait_for(self, condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
        """Wait until something holds, while a watch runs."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            assert process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.01)

    def staged(self) -> set[str]:
        """Return the folders of runs that are under way, or were when they were killed."""
        return {path.name for path in self.out.glob(f"{STAGING}*")}

    def rows(self) -> int:
        """Return how many messages the manifest counts."""
        rows = Store(self.out).manifest.rows
        return sum(number for table, number in rows.items() if table.startswith(f"{TYPED}/"))


@pytest.mark.skipif(not KILLS, reason="`make soak` kills watches (SPECWIRE_WATCH_KILLS=5)")
def test_a_watch_that_is_killed_loses_nothing(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    """Each death is within a batch, whose time is told by chance; the tables are those of a batch job, each row once."""
    scene = Scene(tmp_path, server.url)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    done = threading.Event()
    growing = threading.Thread(target=scene.grow, args=(done,))
    growing.start()
    try:
        for _ in range(KILLS):
            wanted, left = scene.rows() + 3 * chance.randrange(2), scene.staged()
            process = scene.start()
            try:
                scene.wait_for(lambda wanted=wanted: scene.rows() >= wanted, process)  # type: ignore[misc]
                scene.wait_for(lambda left=left: bool(scene.staged() - left), process)  # type: ignore[misc]
                time.sleep(chance.uniform(0.0, 0.5))
            finally:
                process.kill()
                assert process.wait(LIMIT_S) == -signal.SIGKILL
    finally:
        done.set()
        growing.join(LIMIT_S)
    process = scene.start()
    try:
        scene.wait_for(lambda: scene.rows() == 3 * scene.segments, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0
    finally:
        process.kill()
        process.wait(LIMIT_S)
    assert (scene.out / "live" / ROUNDS_FILE).is_file()
    advance(spark, Store(tmp_path / "batch"), list_files(scene.capture), Request(scene.capture, ASKED))
    found = read_rows(scene.out)
    assert count(read_rows(scene.out, TYPED)) == 3 * scene.segments > 0
    assert found == read_rows(tmp_path / "batch")
