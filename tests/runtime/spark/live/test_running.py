"""A query that Spark lets fail is begun again, but not for ever."""

from __future__ import annotations

import threading
from typing import cast

import pytest
from pyspark.errors import AnalysisException, SparkRuntimeException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from specwire.runtime.spark.live.queries import FORGIVEN_S, RETRIES, RestartingQuery


class Failed:
    """A query that has failed, or one that runs."""

    def __init__(self, error: Exception | None) -> None:
        self.isActive = error is None
        self._error = error

    def exception(self) -> Exception | None:
        return self._error


def failing() -> RestartingQuery:
    error = StreamingQueryException("Python worker failed to connect back.")
    return RestartingQuery(lambda: cast(StreamingQuery, Failed(error)), retry_s=0.0)


def test_failures_are_told_and_outlived() -> None:
    """Until there were too many in a short time."""
    told: list[str] = []
    running = failing()
    for turn in range(RETRIES):
        before = running.query
        running.restart(told.append, threading.Event(), float(turn))
        assert running.query is not before
    assert told == ["Python worker failed to connect back"] * RETRIES
    with pytest.raises(StreamingQueryException, match="connect back"):
        running.restart(told.append, threading.Event(), float(RETRIES))
    running.restart(told.append, threading.Event(), RETRIES + FORGIVEN_S + 1)


def test_what_runs_or_shall_end_is_left_alone() -> None:
    """A query that failed while a stop was asked for is not begun again."""
    running = RestartingQuery(lambda: cast(StreamingQuery, Failed(None)))
    before = running.query
    running.restart(pytest.fail, threading.Event(), 0.0)
    assert running.query is before
    stop = threading.Event()
    stop.set()
    stopped = failing()
    before = stopped.query
    stopped.restart(pytest.fail, stop, 0.0)
    assert stopped.query is before


@pytest.mark.parametrize("ends", [False, True])
def test_a_query_that_somebody_stopped_is_begun_again(ends: bool) -> None:
    """Without an error, and only if it must not end."""
    told: list[str] = []
    stopped = Failed(None)
    stopped.isActive = False
    running = RestartingQuery(lambda: cast(StreamingQuery, stopped), ends=ends, retry_s=0.0)
    running.restart(told.append, threading.Event(), 0.0)
    assert told == ([] if ends else ["the query was stopped"])


@pytest.mark.parametrize("first", ["failed", "refused"])
def test_a_query_that_cannot_be_begun_is_tried_again(first: str) -> None:
    """A machine that is too busy for one is too busy for its beginning as well; this counts as a failure."""
    begun: list[StreamingQuery | Exception] = [
        cast(StreamingQuery, Failed(StreamingQueryException("failed"))),
        SparkRuntimeException("refused"),
        cast(StreamingQuery, Failed(None)),
    ]
    if first == "refused":
        begun = begun[1:]

    def begin() -> StreamingQuery:
        found = begun.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    told: list[str] = []
    running = RestartingQuery(begin, retry_s=0.0)
    assert running.active == (first == "refused") and not running.busy
    for turn in range(4):
        running.restart(told.append, threading.Event(), float(turn))
    assert told == ["failed", "refused"][-len(told) :] and len(told) == 2 - (first == "refused")
    assert running.active


def test_what_spark_cannot_analyse_is_raised() -> None:
    """It would fail for ever."""

    def begin() -> StreamingQuery:
        raise AnalysisException("no such column")

    with pytest.raises(AnalysisException, match="no such column"):
        RestartingQuery(begin)
