"""A streaming query that outlives a failure of Spark's: it is begun again, and goes on where its checkpoint says.

A machine that is too busy for a moment lets queries fail; Spark gives a Python process 10 s to start, for one. What is
to run for months must not end with that. What goes wrong in a batch of ours is another matter: that is raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from specwire.runtime.spark.session.failures import describe_failure

RETRIES = 5
"""Failures within `FORGIVEN_S` that a query outlives."""

RETRY_S = 2.0
"""Time before the first new beginning, in seconds; twice that before the second, and so on."""

FORGIVEN_S = 600.0
"""After so many seconds without a failure, those before do not count."""


class Running:
    """A query, and what begins it."""

    def __init__(self, begin: Callable[[], StreamingQuery], *, retry_s: float = RETRY_S) -> None:
        self.query = begin()
        self._begin = begin
        self._retry_s = retry_s
        self._failures = 0
        self._failed = 0.0

    def mend(self, tell: Callable[[str], None], stop: threading.Event, now_s: float) -> None:
        """Begin the query again where Spark let it fail, after telling why; raise the last failure of too many.

        `now_s` is a clock that only goes forward. Once `stop` is set, nothing is begun again.
        """
        error = None if self.query.isActive else self.query.exception()
        if error is None or stop.is_set():
            return
        if now_s - self._failed > FORGIVEN_S:
            self._failures = 0
        if self._failures == RETRIES:
            raise error
        self._failures += 1
        self._failed = now_s
        tell(describe_failure(error))
        if not stop.wait(self._retry_s * self._failures):
            self.query = self._begin()
