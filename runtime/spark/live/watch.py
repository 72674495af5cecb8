"""Watch of a growing capture: tables, answers and alerts until a stop request.

    segments --Rounds--> advance --> OUT/typed, OUT/answers, OUT/late, OUT/segments
    segments --follow_alerts--> OUT/alerts

Each batch of segments is one run of the pipeline (`Rounds`). Alerts are found on another thread
(`specwire.runtime.spark.live.alerts`), so that none waits for a batch or the answers. Both read the
folder in the order of `specwire.runtime.spark.reading.stream`.

Typed tables are updated with every batch. Answers cost more and delay the next batch. They are
therefore updated every `Watch.answers_s`, when traffic pauses, and at the end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.live.alerts import follow_alerts
from specwire.runtime.spark.live.work import (
    FOLDER,
    PAUSE,
    Listener,
    Stopped,
    Watch,
    Work,
    read_state,
    replace_file,
)
from specwire.runtime.spark.pipeline.commit import begin, check_own
from specwire.runtime.spark.pipeline.manifest import read_manifest
from specwire.runtime.spark.pipeline.request import check_request, check_same
from specwire.runtime.spark.reading.paths import holds_packet_captures
from specwire.runtime.spark.reading.position import Position
from specwire.runtime.spark.reading.stream import FolderStream

LOCK = ".lock"

ROUNDS_FILE = "rounds.json"
"""File in `FOLDER`: the position of the rounds."""

POLL_S = 0.1
"""Seconds between two checks for a batch that is due."""

RETRIES = 5
"""Number of times that a capture folder may be unreadable in a row."""

RETRY_S = 2.0
"""Seconds before the first retry; twice that before the second, and so on."""


def watch(
    spark: SparkSession, request: Watch, stop: threading.Event, *, listener: Listener | None = None
) -> None:
    """Watch until `stop` is set, or with `Watch.once` until the existing segments are processed.

    After a stop request, the current batch is completed and the answers are updated. Raises
    InputError if the output folder is not a pipeline output or another watch uses it, CaptureError if
    the capture folder cannot be read, and JobError if a job of Spark fails or a file cannot be
    written.
    """
    check(request)
    listener = listener or Listener()
    work = Work(spark, request, listener, stop)
    # The first run creates the manifest of a new folder. Another watch may use an existing one, so
    # this is skipped there.
    if not (request.out / FOLDER).is_dir():
        work.begin()
    with _lock_watch(request.out):
        with _alerts(request, listener) as alerts:
            run_rounds(Rounds(request, work), alerts, request, work, stop)
        work.update_answers(idle_s=0.0)


@contextmanager
def _alerts(request: Watch, listener: Listener) -> Iterator[Future[None]]:
    """Find alerts on another thread during the block; raise the error with which that ends.

    The future is done when the thread has ended. Without rules it is done at once.
    """
    ended = threading.Event()
    with ThreadPoolExecutor(1, "specwire-alerts") as pool:
        finding = pool.submit(follow_alerts, request, listener, ended)
        try:
            yield finding
        finally:
            ended.set()
        finding.result()


def check(request: Watch) -> None:
    """Raise InputError, CaptureError or JobError for errors that can be found without Spark."""
    check_request(request.request, request.out)
    check_own(request.out)
    check_same(request.request.asked, read_manifest(request.out), request.out)
    if not request.capture.is_dir():
        raise CaptureError(f"{request.capture}: there is no such capture folder")
    if holds_packet_captures(request.capture):
        raise CaptureError(
            f"{request.capture}: a folder of packet captures cannot be watched; read the complete files with "
            "`specwire pipeline run`"
        )
    if request.alert_lines is not None:
        try:
            request.alert_lines.open("a").close()
        except OSError as error:
            raise InputError(
                f"{request.alert_lines}: alerts cannot be written there: {error.strerror}"
            ) from error
    if not (request.out / FOLDER).is_dir():
        with begin(request.out):
            pass  # Checks that the folder can be created and written.


@contextmanager
def _lock_watch(out: Path) -> Iterator[None]:
    """Lock the folder for the block; InputError if another watch uses it."""
    import fcntl  # Not on Windows.

    folder = out / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{folder}: a watch cannot write there: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{out}: another watch is at work there; end it or name another folder"
            ) from None
        yield
    finally:
        os.close(lock)


def run_rounds(
    rounds: Rounds, alerts: Future[None], request: Watch, work: Work, stop: threading.Event
) -> None:
    """Process batches until `stop` is set, or with `Watch.once` until there are no more batches or alerts.

    Raises the error with which `alerts` ended.
    """
    while not stop.is_set():
        found = rounds.run(time.monotonic())
        if alerts.done():
            alerts.result()
            if request.once and not found:
                break
        work.update_answers(idle_s=request.answers_s * PAUSE)
        if not found:
            stop.wait(POLL_S)


class RoundState(msgspec.Struct, frozen=True):
    """State of the rounds: the number of the next batch, and the processed segments."""

    number: int = 0
    read: Position = Position()


class Rounds:
    """Batches of segments from a capture folder, one after the other.

    Exactly-once processing needs no log besides the output folder, which identifies segments by
    their names and messages by tap and `seq`. The stored position only avoids a search of the whole
    capture folder. It is written after the commit of a batch. If a watch dies in between, the batch
    is repeated under its number, with the segments that have arrived since.
    """

    def __init__(self, request: Watch, work: Work) -> None:
        self._file = request.out / FOLDER / ROUNDS_FILE
        self._state = read_state(self._file, RoundState) or RoundState()
        self._every_s = 0.0 if request.once else request.every_s
        self._work = work
        # A run of the pipeline reads the files.
        self._folder = FolderStream(request.capture, request.stream, lambda path, part: iter(()))
        if request.once:
            self._folder.prepareForTriggerAvailableNow()
        self._due_s = 0.0
        self._once = request.once
        self._unreadable = 0

    def run(self, now_s: float) -> bool:
        """Process new segments, if the next batch is due; return whether there was a batch.

        `now_s` is a monotonic clock. Raises CaptureError if the capture folder cannot be read,
        JobError if the state cannot be written, and the errors of `Work.run_batch`, except Stopped.
        """
        if now_s < self._due_s:
            return False
        self._due_s = now_s + self._every_s
        state = self._state
        try:
            end = Position.from_json(self._folder.latestOffset(state.read.to_json(), ReadAllAvailable()))
        except CaptureError as error:
            self._unreadable += 1
            if self._once or self._unreadable > RETRIES:
                raise
            self._work.report_failure(str(error))
            self._due_s = now_s + self._unreadable * RETRY_S
            return False
        self._unreadable = 0
        names = end.names_since(state.read)
        if not names:
            return False
        with suppress(Stopped):
            self._work.run_batch(names, state.number)
            self._state = RoundState(state.number + 1, end)
            replace_file(self._file, msgspec.json.encode(self._state))
        return self._state is not state
