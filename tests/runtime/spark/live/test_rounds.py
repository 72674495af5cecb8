"""Batches that this program begins itself: which segments make up which, and what becomes of one that fails."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import cast

import pytest

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live import watch as watching
from specwire.runtime.spark.live.watch import RETRIES, RETRY_S, ROUNDS_FILE, Rounds, run_rounds
from specwire.runtime.spark.live.work import Stopped, Watch, Work
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.reading.stream import StreamOptions
from tests.runtime.spark import captures
from tests.runtime.spark.growing import add_segment

LIMIT = 2
"""Segments that make a batch, at most."""

LATER_S = 1e6
"""A moment at which every batch is due."""


class Noted:
    """Notes batches in place of working them in; fails as it is told to."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[str]]] = []
        self.failure: Exception | None = None
        self.failures: list[str] = []

    def run_batch(self, names: Sequence[str], number: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.batches.append((number, list(names)))

    def report_failure(self, text: str) -> None:
        self.failures.append(text)


class Place:
    """A capture, and the folder of the watches over it."""

    def __init__(self, folder: Path) -> None:
        self.capture, self.kept = folder / "capture", folder / "out" / "live"
        self.capture.mkdir()
        self.kept.mkdir(parents=True)
        self.noted = Noted()

    def begin(self, *, once: bool = False) -> Rounds:
        """Begin as a process does that knows nothing but what was kept."""
        request = Watch(
            Request(self.capture),
            self.kept.parent,
            every_s=10.0,
            stream=StreamOptions(segments=LIMIT),
            once=once,
        )
        return Rounds(request, cast(Work, self.noted))

    def add(self, number: int) -> str:
        return add_segment(self.capture, number, [("C", captures.NOM)], first=number).name


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place without segments."""
    return Place(tmp_path)


def test_a_batch_is_what_has_come(place: Place) -> None:
    """The folder is looked at every `every_s`; there is no batch where nothing has come."""
    rounds = place.begin()
    assert not rounds.run(0.0)
    first = place.add(0)
    assert not rounds.run(9.9) and rounds.run(10.0)
    second = place.add(1)
    assert not rounds.run(19.9) and rounds.run(20.0) and not rounds.run(LATER_S)
    assert place.noted.batches == [(0, [first]), (1, [second])]


def test_the_next_watch_goes_on(place: Place) -> None:
    """With the next number."""
    names = [place.add(0)]
    place.begin().run(LATER_S)
    names.append(place.add(1))
    place.begin().run(LATER_S)
    assert place.noted.batches == [(0, names[:1]), (1, names[1:])]


@pytest.mark.parametrize("failure", [Stopped(), RuntimeError("no disk")])
def test_what_was_not_worked_in_comes_again(place: Place, failure: Exception) -> None:
    """Under its number, with what has come meanwhile; a stop is no failure."""
    names = [place.add(0)]
    place.noted.failure = failure
    rounds = place.begin()
    if isinstance(failure, Stopped):
        assert not rounds.run(LATER_S)
    else:
        with pytest.raises(RuntimeError, match="no disk"):
            rounds.run(LATER_S)
    place.noted.failure = None
    names.append(place.add(1))
    assert place.begin().run(LATER_S)
    assert place.noted.batches == [(0, names)]


@pytest.mark.parametrize("octets", [b"", b"\0" * 64, b'{"number": 1', b'{"number": "one"}'])
def test_what_was_kept_and_lost_costs_time_alone(place: Place, octets: bytes) -> None:
    """All segments are given again: the output folder knows them."""
    name = place.add(0)
    place.begin().run(LATER_S)
    (place.kept / ROUNDS_FILE).write_bytes(octets)
    place.begin().run(LATER_S)
    assert place.noted.batches == [(0, [name])] * 2


def test_once_is_what_is_there(place: Place) -> None:
    """Without waiting for a segment that is missing or between two batches, and nothing that comes later."""
    names = [place.add(number) for number in range(LIMIT)] + [place.add(LIMIT + 1)]
    rounds = place.begin(once=True)
    place.add(LIMIT + 2)
    assert rounds.run(0.0) and rounds.run(0.0) and not rounds.run(0.0)
    assert [batch[1] for batch in place.noted.batches] == [names[:LIMIT], names[LIMIT:]]


def test_a_folder_that_cannot_be_written_is_told(place: Place) -> None:
    """By the name of the file."""
    place.add(0)
    rounds = place.begin()
    (place.kept / f".{ROUNDS_FILE}.tmp").mkdir()
    with pytest.raises(JobError, match=rf"{ROUNDS_FILE}: it cannot be written: Is a directory"):
        rounds.run(LATER_S)


def test_a_folder_that_cannot_be_read_for_a_moment_is_tried_again(place: Place) -> None:
    """A few times, each after a longer pause."""
    name = place.add(0)
    rounds = place.begin()
    aside = place.capture.rename(place.capture.with_name("aside"))
    assert not rounds.run(0.0) and not rounds.run(RETRY_S / 2) and len(place.noted.failures) == 1
    aside.rename(place.capture)
    assert rounds.run(RETRY_S) and place.noted.batches[0][1] == [name]
    place.capture.rename(aside)
    for number in range(RETRIES):
        assert not rounds.run((number + 1) * LATER_S)
    with pytest.raises(CaptureError, match="cannot be read"):
        rounds.run((RETRIES + 1) * LATER_S)


class Round:
    """Stands for rounds and work at once; `takes` says which of the rounds find segments."""

    def __init__(self, takes: list[bool], stop: threading.Event, alerts: Future[None]) -> None:
        self.said: list[str] = []
        self._takes = takes
        self._stop = stop
        self._alerts = alerts

    def run(self, now_s: float) -> bool:
        self.said.append("run")
        taken = self._takes.pop(0)
        if len(self._takes) == 1:
            self._alerts.set_result(None)
        if not self._takes:
            self._stop.set()
        return taken

    def update_answers(self, *, idle_s: float) -> None:
        self.said.append(f"answers {idle_s:g}")


@pytest.mark.parametrize(("once", "rounds"), [(False, 4), (True, 3)])
def test_rounds_go_on_until_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: bool, rounds: int
) -> None:
    """That is a stop, or with `once` a round without segments after the end of the alerts."""
    monkeypatch.setattr(watching, "POLL_S", 0.0)
    stop, alerts = threading.Event(), Future[None]()
    each = Round([True, False, False, False], stop, alerts)
    request = Watch(Request(tmp_path), tmp_path, answers_s=70.0, once=once)
    run_rounds(cast(Rounds, each), alerts, request, cast(Work, each), stop)
    assert each.said == (["run", "answers 7"] * rounds)[: 2 * rounds - once]


def test_a_failure_of_alerts_ends_the_rounds(place: Place) -> None:
    """With its error."""
    alerts = Future[None]()
    alerts.set_exception(JobError("no disk"))
    request = Watch(Request(place.capture), place.kept.parent)
    with pytest.raises(JobError, match="no disk"):
        run_rounds(place.begin(), alerts, request, cast(Work, place.noted), threading.Event())
