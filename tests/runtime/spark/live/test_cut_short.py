"""A watch dies at each point at which a batch is committed by us and not by Spark, and nothing is lost or doubled.

No process is killed, so that each death comes where it is wanted: what a commit does next does not happen, and neither
does what would tidy up. Processes are killed at random in `test_killed`.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture.segments import list_files
from specwire.runtime.spark.live.watch import ROUNDS_FILE, watch
from specwire.runtime.spark.live.work import Listener, Watch, Work
from specwire.runtime.spark.pipeline import commit
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.commit import JOURNAL, STAGING, Journal, perform, write_journal
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import TYPED, Store
from tests.runtime.spark import captures
from tests.runtime.spark.growing import add_segment
from tests.runtime.spark.live.same import count, read_rows

SAID: list[captures.Message] = [("C", captures.OHAI), ("S", captures.OHAI_OK)]
ASKED = Asked(layers=("typed",))


class Killed(Exception):
    """Stands for the end of the process."""


class Death:
    """One death of a watch; a process that is dead removes nothing behind itself."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self._patched = patched
        self._came = False
        remove = shutil.rmtree
        patched.setattr(shutil, "rmtree", lambda path, **named: None if self._came else remove(path, **named))

    def come(self, *_: object) -> None:
        """Die."""
        self._came = True
        raise Killed

    def before_the_journal(self) -> None:
        """All is staged, and nothing counts."""
        self._patched.setattr(commit, "write_journal", self.come)

    def after_the_journal(self) -> None:
        """The run counts, and nothing is in place."""
        self._perform_as(self.come)

    def amid_the_moves(self) -> None:
        """One file is in place and others are not."""

        def perform_some(out: Path, journal: Journal) -> None:
            move, moved = os.replace, list[object]()

            def replace(source: Path, target: Path) -> None:
                if moved:
                    self.come()
                moved.append(move(source, target))

            self._patched.setattr(os, "replace", replace)
            perform(out, journal)

        self._perform_as(perform_some)

    def after_the_manifest(self) -> None:
        """All is in place, and Spark has not heard of it."""

        def perform_all(out: Path, journal: Journal) -> None:
            perform(out, journal)
            self.come()

        self._perform_as(perform_all)

    def _perform_as(self, act: Callable[[Path, Journal], None]) -> None:
        """Replace what follows the journal of this run; the journal of the run before is followed as usual."""

        def write(out: Path, journal: Journal) -> None:
            write_journal(out, journal)
            self._patched.setattr(commit, "perform", act)

        self._patched.setattr(commit, "write_journal", write)


def committed(out: Path) -> int:
    """Return the number of the next batch, as a watch has stored it; 0 if it has stored none."""
    try:
        return int(json.loads((out / "live" / ROUNDS_FILE).read_text())["number"])
    except FileNotFoundError:
        return 0


class Scene:
    """A capture that grows by a segment at a time, and the watches over it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.capture, self.out = folder / "capture", folder / "out"
        self.capture.mkdir()
        self.segments = 0
        self.request = Watch(Request(self.capture, ASKED), self.out, rules=None, once=True)
        Work(spark, self.request, Listener(), threading.Event()).begin()

    def grow(self) -> None:
        """Add a segment of two messages."""
        add_segment(self.capture, self.segments, SAID, first=2 * self.segments)
        self.segments += 1

    def watch(self) -> None:
        """Take in what is there, in a watch that goes on where the last one was."""
        watch(self.spark, self.request, threading.Event())

    def die(self, when: Callable[[Death], None]) -> None:
        """Begin a watch that dies; its batch was not noted then."""
        before = committed(self.out)
        with pytest.MonkeyPatch.context() as patched:
            when(Death(patched))
            with pytest.raises(Killed):
                self.watch()
        assert committed(self.out) == before

    def rows(self) -> int:
        """Return how many typed messages the manifest counts."""
        rows = Store(self.out).manifest.rows
        return sum(count for table, count in rows.items() if table.startswith(f"{TYPED}/"))


@pytest.mark.spark
def test_a_batch_is_worked_in_once_whenever_a_watch_dies(spark: SparkSession, tmp_path: Path) -> None:
    """Four deaths, and what the watch has stored of its position is lost, as a power cut does.

    That costs time alone: all segments are given again, and are known.
    """
    scene = Scene(spark, tmp_path)
    scene.grow()
    scene.die(Death.before_the_journal)
    assert scene.rows() == 0 and list(scene.out.glob(f"{STAGING}*"))
    scene.grow()
    scene.die(Death.after_the_journal)
    assert scene.rows() == 0 and (scene.out / JOURNAL).exists()
    scene.grow()
    scene.die(Death.amid_the_moves)
    assert scene.rows() == 4 and (scene.out / JOURNAL).exists(), (
        "the batch before, of two segments, was finished from its journal"
    )
    scene.grow()
    scene.die(Death.after_the_manifest)
    assert scene.rows() == 8 and not (scene.out / JOURNAL).exists()
    scene.grow()
    scene.watch()
    assert committed(scene.out) == 1, "one batch has taken what the deaths left, and what had come"

    batch = tmp_path / "batch"
    advance(spark, Store(batch), list_files(scene.capture), Request(scene.capture, ASKED, answers=False))
    assert count(read_rows(scene.out, TYPED)) == 2 * scene.segments
    assert read_rows(scene.out) == read_rows(batch)
    shutil.rmtree(scene.out / "live")
    scene.watch()
    assert committed(scene.out) == 1
    assert read_rows(scene.out) == read_rows(batch)
