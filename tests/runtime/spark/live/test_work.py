"""A watch beside a run in the same output folder: it waits, and is not ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import msgspec
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.errors import BusyError
from specwire.runtime.spark.live.work import Batch, Listener, Stopped, Watch, Work
from specwire.runtime.spark.pipeline.commit import begin
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.pipeline.summary import Summary

LIMIT_S = 60.0
"""For what takes milliseconds on a machine that has nothing else to do."""


class Heard(Listener):
    """Notes what it was told."""

    def __init__(self) -> None:
        self.waits = 0
        self.waiting = threading.Event()
        self.batches: list[int] = []

    def on_wait(self) -> None:
        self.waits += 1
        self.waiting.set()

    def on_batch(self, batch: Batch, summary: Summary | None) -> None:
        self.batches.append(batch.number)


class Place:
    """A watch's work, in a folder that has been made its own."""

    def __init__(self, folder: Path) -> None:
        (folder / "capture").mkdir()
        self.out = folder / "out"
        self.heard, self.stop = Heard(), threading.Event()
        request = Watch(Request(folder / "capture"), self.out)
        self.work = Work(cast(SparkSession, None), request, self.heard, self.stop)
        self.work.begin()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place whose work is stopped in the end, so that no thread stays."""
    found = Place(tmp_path)
    yield found
    found.stop.set()


def test_a_batch_waits_for_a_run(place: Place) -> None:
    """It tells so once, and is committed when the run has ended."""
    with ThreadPoolExecutor(1) as threads:
        with begin(place.out):
            running = threads.submit(place.work.run_batch, [], 0)
            assert place.heard.waiting.wait(LIMIT_S)
        running.result(LIMIT_S)
    assert (place.heard.waits, place.heard.batches) == (1, [0])


def test_a_stop_ends_the_wait(place: Place) -> None:
    """The batch runs next time, and nothing has failed."""
    with ThreadPoolExecutor(1) as threads, begin(place.out):
        running = threads.submit(place.work.run_batch, [], 0)
        assert place.heard.waiting.wait(LIMIT_S)
        place.stop.set()
        with pytest.raises(Stopped):
            running.result(LIMIT_S)
    assert place.heard.batches == []


def test_answers_after_a_stop_are_left_to_the_run(place: Place) -> None:
    """They are behind, and the watch ends without them rather than with an error."""
    with begin(place.out) as run:
        run.commit(msgspec.structs.replace(run.before, answered=run.before.run))
    manifest = Store(place.out).manifest
    assert manifest.answered < manifest.run
    place.stop.set()
    with begin(place.out):
        place.work.update_answers(idle_s=0.0)
    assert Store(place.out).manifest == manifest


def test_a_watch_does_not_begin_beside_a_run(place: Place) -> None:
    """Whoever starts one learns at once that something is at work there."""
    with begin(place.out), pytest.raises(BusyError, match="another run is at work there"):
        place.work.begin()
