"""What a server's process does with alerts, and how it learns that nobody watches any more."""

from __future__ import annotations

import pickle
import threading
import time
from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live import queries
from specwire.runtime.spark.live.queries import (
    ABANDONED_S,
    HEARTBEAT,
    AlertQuery,
    StoreAlerts,
    explain_missing_package,
    write_heartbeats,
)
from specwire.runtime.spark.live.watch import Rounds, run_rounds
from specwire.runtime.spark.live.work import Watch, Work
from specwire.runtime.spark.pipeline.request import Request

LIMIT_S = 60.0
"""For what takes milliseconds on a machine that has nothing else to do."""

NO_ALERTS = cast(DataFrame, None)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The stream and the number of each batch that was stored."""
    found: list[tuple[str, int]] = []

    def store(out: Path, stream: str, batch: int, alerts: DataFrame) -> None:
        found.append((stream, batch))

    monkeypatch.setattr(queries, "store_alerts", store)
    return found


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An output folder as it is once Spark has begun a query in it."""
    (tmp_path / "live" / "alerts").mkdir(parents=True)
    (tmp_path / "live" / "alerts" / "metadata").write_text('{"id":"4f7a"}')
    return tmp_path


def test_a_query_that_nobody_watches_ends(out: Path, stored: list[tuple[str, int]]) -> None:
    """A new word puts its end off; clocks of two machines are not compared."""
    now = [1000.0]
    store = StoreAlerts(out, clock=lambda: now[0])
    store(NO_ALERTS, 0)
    now[0] += ABANDONED_S
    store(NO_ALERTS, 1)
    (out / "live" / HEARTBEAT).write_text("still here")
    now[0] += 1.0
    store(NO_ALERTS, 2)
    now[0] += ABANDONED_S
    store(NO_ALERTS, 3)
    now[0] += 1.0
    with pytest.raises(JobError, match="no watch has run for 120 s"):
        store(NO_ALERTS, 4)
    assert stored == [("4f7a", number) for number in range(4)]


def test_it_travels_to_the_server(out: Path, stored: list[tuple[str, int]]) -> None:
    """As what imports it by name."""
    pickle.loads(pickle.dumps(StoreAlerts(out)))(NO_ALERTS, 5)
    assert stored == [("4f7a", 5)]


def test_a_watch_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its beginning, with another word each time."""
    monkeypatch.setattr(queries, "HEARTBEAT_S", 0.01)
    words: set[bytes] = set()
    deadline = time.monotonic() + LIMIT_S
    with write_heartbeats(tmp_path):
        while len(words) < 3 and time.monotonic() < deadline:
            if (tmp_path / HEARTBEAT).exists():
                words.add((tmp_path / HEARTBEAT).read_bytes())
            time.sleep(0.001)
    assert len(words) == 3 and all(len(word) == 16 for word in words)


def test_a_server_without_our_package_is_told() -> None:
    """In a sentence that says what to do; other failures are left as they are."""
    with (
        pytest.raises(JobError, match=r"server's Python lacks specwire, .* --no-alerts"),
        explain_missing_package(),
    ):
        raise AnalysisException("ModuleNotFoundError: No module named 'specwire'")
    with pytest.raises(AnalysisException, match="cannot be resolved"), explain_missing_package():
        raise AnalysisException("`a` cannot be resolved")


class Round:
    """Stands for rounds, alerts and work at once, and notes what is asked of it; `takes` says what each round finds."""

    def __init__(self, takes: list[bool], stop: threading.Event) -> None:
        self.said: list[str] = []
        self.active, self.busy = True, False
        self.running = self
        self.poll_s = 0.0
        self._takes = takes
        self._stop = stop

    def run(self, now_s: float) -> bool:
        self.said.append("run")
        taken = self._takes.pop(0)
        if not self._takes:
            self._stop.set()
        return taken

    def follow(self, stop: threading.Event, now_s: float) -> None:
        self.said.append("follow")
        self.active = len(self._takes) > 1

    def wait_idle(self) -> None:
        """No batch is being processed."""

    def raise_failure(self) -> None:
        """Nothing has failed."""

    def update_answers(self, *, idle_s: float) -> None:
        self.said.append(f"answers {idle_s:g}")


@pytest.mark.parametrize(("once", "rounds"), [(False, 4), (True, 3)])
def test_rounds_go_on_until_their_end(tmp_path: Path, once: bool, rounds: int) -> None:
    """That is a stop, or with `once` a round without segments after the end of the query."""
    stop = threading.Event()
    each = Round([True, False, False, False], stop)
    request = Watch(Request(tmp_path), tmp_path, answers_s=70.0, once=once)
    run_rounds(cast(Rounds, each), cast(AlertQuery, each), request, cast(Work, each), stop)
    assert each.said == (["run", "follow", "answers 7"] * rounds)[: 3 * rounds - once]
