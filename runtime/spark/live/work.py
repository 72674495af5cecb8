"""What the batches of a watch do, on the threads that Spark calls them on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.errors import BusyError
from specwire.runtime.spark.live.alert_table import Line, store_alerts
from specwire.runtime.spark.live.conversing import Rules
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.inspection import inspect
from specwire.runtime.spark.pipeline.manifest import Manifest
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.pipeline.summary import Summary
from specwire.runtime.spark.reading.stream import Patience

PAUSE = 0.1
"""The part of `Watch.answers_s` without a batch after which the answers follow at once."""

BUSY_S = 0.2
"""Time between two tries while another run is at work in the output folder."""


class Watch(msgspec.Struct, frozen=True):
    """What to watch, and how.

    Attributes:
        request: what every run does, as in batch; late messages wait in their table.
        out: the output folder.
        every_s: seconds between the beginnings of two batches, at least.
        answers_s: seconds between two times that the answers follow, at least.
        patience: how long segments are held back, and how many make a batch.
        rules: when to alert; None for no alerts.
        once: take in what is there and end.
    """

    request: Request
    out: Path
    every_s: float = 1.0
    answers_s: float = 300.0
    patience: Patience = Patience()
    rules: Rules | None = Rules()
    once: bool = False

    @property
    def capture(self) -> Path:
        """The folder that is watched."""
        return self.request.capture


class Batch(msgspec.Struct, frozen=True):
    """A batch that was committed.

    Attributes:
        number: from 0, of this output folder's stream.
        segments: files that it was made of.
        took_s: seconds from its beginning to its commit.
        lag_s: seconds from the first of its messages to its commit, by this machine's clock and the tap's; None
            without messages.
    """

    number: int
    segments: int
    took_s: float
    lag_s: float | None


class Listener:
    """Told what happens, on threads that are not the caller's; methods that are not overridden do nothing."""

    def on_batch(self, batch: Batch, summary: Summary | None) -> None:
        """Take note of a batch of segments that was committed, and of the totals since then."""

    def on_answers(self, summary: Summary | None) -> None:
        """Take note of answers that have followed."""

    def on_alerts(self, found: int) -> None:
        """Take note of alerts that are in their table."""

    def on_failure(self, text: str) -> None:
        """Take note of a failure of Spark, after which a query is begun again."""

    def on_wait(self) -> None:
        """Take note that another run is at work in the output folder, and is waited for."""


class Stopped(Exception):
    """A stop was asked for: the batch that would begin runs next time."""


class Work:
    """What the queries' threads share: one run at a time in the output folder, and the first failure."""

    def __init__(self, spark: SparkSession, watch: Watch, listener: Listener, stop: threading.Event) -> None:
        self._failure: Exception | None = None
        self._spark = spark
        self._watch = watch
        self._listener = listener
        self._stop = stop
        self._store = Store(watch.out)
        self._lock = threading.Lock()
        self._streams: dict[str, str] = {}
        self._named = threading.Condition()
        self._answered = self._moved = time.monotonic()

    def begin(self) -> None:
        """Make the output folder ours, before there is anything else in it."""
        with self._store.begin() as run:
            if not run.before.run:
                run.commit(Manifest(asked=self._watch.request.asked, answered=run.number))

    def name_stream(self, name: str, stream: str) -> None:
        """Say what id a query has, which its batches wait for."""
        with self._named:
            self._streams[name] = stream
            self._named.notify_all()

    def raise_failure(self) -> None:
        """Raise what went wrong in a batch, as it was; a stop is not a failure."""
        if self._failure is not None and not isinstance(self._failure, Stopped):
            raise self._failure

    def tell_failure(self, text: str) -> None:
        """Tell of a failure of Spark's that is not the end."""
        self._listener.on_failure(text)

    def take_names(self, names: Sequence[str], number: int) -> None:
        """Work in one batch of segments; Stopped where it shall not begin."""
        with self._noting_failure():
            self._take(names, number)

    def _take(self, names: Sequence[str], number: int) -> None:
        stream = self._stream("tables")
        begun = time.monotonic()
        paths = [self._watch.capture / name for name in names]
        due = begun - self._answered >= self._watch.answers_s
        summary = self._advance(paths, answers=due, batch=(stream, number))
        took_s = time.monotonic() - begun
        self._listener.on_batch(Batch(number, len(paths), took_s, _lag_s(paths)), summary)

    def take_alerts(self, found: DataFrame, number: int, line: Line | None) -> None:
        """Store one batch of alerts."""
        with self._noting_failure():
            self.tell_alerts(store_alerts(self._watch.out, self._stream("alerts"), number, found, line))

    def tell_alerts(self, count: int) -> None:
        """Tell of alerts that are in their table, if there are any."""
        if count:
            self._listener.on_alerts(count)

    def catch_up(self, *, idle_s: float) -> None:
        """Let the answers follow, if they are behind and nothing has happened for a time.

        Once a stop is asked for, a run that is at work in the folder is left to it: it answers as well.
        """
        if time.monotonic() - self._moved < idle_s:
            return
        manifest = self._store.manifest
        if manifest.answered < manifest.run:
            with suppress(Stopped):
                self._listener.on_answers(self._advance([], answers=True))
        self._moved = time.monotonic()

    def _stream(self, name: str) -> str:
        with self._named:
            self._named.wait_for(lambda: name in self._streams)
            return self._streams[name]

    def _advance(
        self, paths: Sequence[Path], *, answers: bool, batch: tuple[str, int] | None = None
    ) -> Summary | None:
        with self._lock:
            request = msgspec.structs.replace(self._watch.request, answers=answers, late="keep")
            summary = self._when_free(lambda: advance(self._spark, self._store, paths, request, batch=batch))
            self._moved = time.monotonic()
            if answers:
                self._answered = self._moved
            return summary

    def _when_free(self, work: Callable[[], Summary | None]) -> Summary | None:
        """Do the work once no other run is at work in the folder; Stopped where a stop is asked for meanwhile."""
        told = False
        while True:
            try:
                return work()
            except BusyError:
                if not told:
                    self._listener.on_wait()
                told = True
            if self._stop.wait(BUSY_S):
                raise Stopped

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        """Keep what goes wrong as it is: Spark makes a text of it. A stop is heeded at the beginning."""
        try:
            if self._stop.is_set():
                raise Stopped
            yield
        except Exception as error:
            self._failure = self._failure or error
            raise


def _lag_s(paths: Sequence[Path]) -> float | None:
    """The age of the first message in segments; those that cannot be read are passed over."""
    times: list[int] = []
    for path in paths:
        with suppress(CaptureError):
            first = inspect(path).first
            times += [] if first is None else [first]
    return time.time() - min(times) / 1e6 if times else None
