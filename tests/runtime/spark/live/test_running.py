"""A query that Spark lets fail is begun again, but not for ever."""

from __future__ import annotations

import threading
from typing import cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from specwire.runtime.spark.live.running import FORGIVEN_S, RETRIES, Running


class Failed:
    """A query that has failed, or one that runs."""

    def __init__(self, error: Exception | None) -> None:
        self.isActive = error is None
        self._error = error

    def exception(self) -> Exception | None:
        return self._error


def failing() -> Running:
    error = StreamingQueryException("Python worker failed to connect back.")
    return Running(lambda: cast(StreamingQuery, Failed(error)), retry_s=0.0)


def test_failures_are_told_and_outlived() -> None:
    """Until there were too many in a short time."""
    told: list[str] = []
    running = failing()
    for turn in range(RETRIES):
        before = running.query
        running.mend(told.append, threading.Event(), float(turn))
        assert running.query is not before
    assert told == ["Python worker failed to connect back"] * RETRIES
    with pytest.raises(StreamingQueryException, match="connect back"):
        running.mend(told.append, threading.Event(), float(RETRIES))
    running.mend(told.append, threading.Event(), RETRIES + FORGIVEN_S + 1)


def test_what_runs_or_shall_end_is_left_alone() -> None:
    """A query that failed while a stop was asked for is not begun again."""
    running = Running(lambda: cast(StreamingQuery, Failed(None)))
    before = running.query
    running.mend(pytest.fail, threading.Event(), 0.0)
    assert running.query is before
    stop = threading.Event()
    stop.set()
    stopped = failing()
    before = stopped.query
    stopped.mend(pytest.fail, stop, 0.0)
    assert stopped.query is before
