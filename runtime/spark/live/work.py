"""Settings and events of a watch, and the processing of its batches."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.errors import BusyError, JobError
from specwire.runtime.spark.live.conversations import Rules
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.inspection import inspect
from specwire.runtime.spark.pipeline.manifest import Manifest
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.pipeline.summary import Summary
from specwire.runtime.spark.reading.stream import StreamOptions
from specwire.runtime.spark.report.page import draw_report

State = TypeVar("State", bound=msgspec.Struct)

FOLDER = "live"
"""Folder in the output folder for the state of a watch."""

PAUSE = 0.1
"""Fraction of `Watch.answers_s` without a batch after which the answers are updated at once."""

BUSY_S = 0.2
"""Seconds between two attempts while another run uses the output folder."""


class Watch(msgspec.Struct, frozen=True):
    """Settings of a watch.

    Attributes:
        request: request of every run; late messages wait in their table.
        out: the output folder.
        every_s: minimum seconds between the starts of two batches.
        answers_s: minimum seconds between two updates of the answers while messages arrive.
        stream: how long segments are held back, and how many make a batch.
        rules: rules for alerts; None for no alerts.
        alert_lines: file to which each alert is appended as a line of JSON; None for no such file.
        once: process the existing segments and end.
    """

    request: Request
    out: Path
    every_s: float = 1.0
    answers_s: float = 300.0
    stream: StreamOptions = StreamOptions()
    rules: Rules | None = Rules()
    alert_lines: Path | None = None
    once: bool = False

    @property
    def capture(self) -> Path:
        """The watched folder."""
        return self.request.capture


class Batch(msgspec.Struct, frozen=True):
    """A committed batch.

    Attributes:
        number: number in the stream of this output folder, from 0.
        segments: number of its files.
        took_s: seconds from its start to its commit.
        lag_s: seconds from its first message, by the tap's clock, to its commit, by this machine's
            clock; None without messages.
    """

    number: int
    segments: int
    took_s: float
    lag_s: float | None


class Listener:
    """Interface for events of a watch, called on other threads than the caller's.

    Methods that are not overridden do nothing.
    """

    def on_batch(self, batch: Batch, summary: Summary | None) -> None:
        """Handle the commit of a batch of segments; `summary` has the new totals."""

    def on_answers(self, summary: Summary | None) -> None:
        """Handle an update of the answers."""

    def on_alert(self, alert: Mapping[str, object]) -> None:
        """Handle a new alert in the table; the columns of `ALERTS` in JSON types."""

    def on_failure(self, text: str) -> None:
        """Handle a failure after which the watch retries."""

    def on_wait(self) -> None:
        """Handle the start of a wait for another run in the output folder."""


class Stopped(Exception):
    """A stop was requested before a run of the pipeline began."""


class Work:
    """Runs of the pipeline: one for each batch, and one for each update of the answers."""

    def __init__(self, spark: SparkSession, watch: Watch, listener: Listener, stop: threading.Event) -> None:
        self.report_failure = listener.on_failure
        """Reports a failure after which the watch retries."""
        self._spark = spark
        self._watch = watch
        self._listener = listener
        self._stop = stop
        self._store = Store(watch.out)
        self._answered_s = self._ran_s = time.monotonic()

    def begin(self) -> None:
        """Write the manifest of a new output folder, before any other file."""
        with self._store.begin() as run:
            if not run.before.run:
                run.commit(Manifest(asked=self._watch.request.asked, answered=run.number))

    def run_batch(self, names: Sequence[str], number: int) -> None:
        """Process one batch of segments; raise Stopped if the batch must not begin."""
        if self._stop.is_set():
            raise Stopped
        begun = time.monotonic()
        paths = [self._watch.capture / name for name in names]
        due = begun - self._answered_s >= self._watch.answers_s
        summary = self._advance(paths, answers=due)
        took_s = time.monotonic() - begun
        self._listener.on_batch(Batch(number, len(paths), took_s, _lag_s(paths)), summary)

    def update_answers(self, *, idle_s: float) -> None:
        """Update the answers, if they are outdated and there was no run for `idle_s` seconds.

        After a stop request this does not wait for another run in the folder, which updates them.
        """
        if time.monotonic() - self._ran_s < idle_s:
            return
        manifest = self._store.manifest
        if manifest.answered < manifest.run:
            with suppress(Stopped):
                self._listener.on_answers(self._advance([], answers=True))
        self._ran_s = time.monotonic()

    def _advance(self, paths: Sequence[Path], *, answers: bool) -> Summary | None:
        """Run the pipeline, after the end of another run in the folder; Stopped ends the wait."""
        request = msgspec.structs.replace(self._watch.request, answers=answers, late="keep")
        waits = False
        while True:
            try:
                found = advance(self._spark, self._store, paths, request, draw=draw_report)
                break
            except BusyError:
                if not waits:
                    self._listener.on_wait()
                waits = True
            if self._stop.wait(BUSY_S):
                raise Stopped
        self._ran_s = time.monotonic()
        if answers:
            self._answered_s = self._ran_s
        return found


def read_state(file: Path, type: type[State]) -> State | None:
    """Return what a file of JSON holds; None if it does not exist or is damaged.

    Raises JobError if it cannot be read.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=type)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    except OSError as error:
        raise JobError(f"{file}: it cannot be read: {error.strerror or error}") from error


def replace_file(file: Path, octets: bytes | pa.Buffer) -> None:
    """Replace a file atomically; JobError if it cannot be written."""
    aside = file.with_name(f".{file.name}.tmp")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with aside.open("wb") as opened:
            opened.write(octets)
            opened.flush()
            os.fsync(opened.fileno())
        aside.replace(file)
    except OSError as error:
        raise JobError(f"{file}: it cannot be written: {error.strerror or error}") from error


def _lag_s(paths: Sequence[Path]) -> float | None:
    """Return the age of the first message in segments; unreadable segments are ignored."""
    times: list[int] = []
    for path in paths:
        with suppress(CaptureError):
            first = inspect(path).first
            times += [] if first is None else [first]
    return time.time() - min(times) / 1e6 if times else None
