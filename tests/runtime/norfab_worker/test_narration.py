"""A worker's happenings, as lines of its log."""

from __future__ import annotations

import pytest

from specwire.runtime.norfab.worker.events import (
    Connected,
    Disconnected,
    Dropped,
    Happening,
    JobEnded,
    JobRefused,
    JobsGivenBack,
    JobStarted,
    JobTaken,
    StoreFailed,
)
from specwire.runtime.norfab.worker.narration import Narrator


@pytest.mark.parametrize(
    ("happening", "lines"),
    [
        (Connected("tcp://a:1", "svc"), ["registered for svc at tcp://a:1"]),
        (Disconnected("gone", "tcp://b:2", 0.1), ["not connected: gone; next: tcp://b:2"]),
        (JobTaken("j1", "add"), []),
        (JobStarted("j1", "add"), ["j1 add begins"]),
        (JobEnded("j1", "add", 0.25, ""), ["j1 add done in 0.250 s"]),
        (JobEnded("j1", "add", 0.25, "boom"), ["j1 add failed after 0.250 s: boom"]),
        (JobRefused("j1", "full"), ["j1 refused: full"]),
        (JobsGivenBack(("j1", "j2")), ["given back, not begun: 2 jobs"]),
        (Dropped("malformed", "no header"), ["dropped, malformed: no header"]),
        (StoreFailed("disk full"), ["the store: disk full"]),
    ],
)
def test_what_happened_is_a_line(happening: Happening, lines: list[str]) -> None:
    told: list[str] = []
    Narrator(told.append).tell(happening)
    assert told == lines


def test_a_quiet_log_tells_of_failures_and_of_no_job_that_goes_well() -> None:
    told: list[str] = []
    narrator = Narrator(told.append, jobs=False)
    for happening in (
        JobStarted("j1", "add"),
        JobEnded("j1", "add", 1.0, ""),
        JobEnded("j2", "add", 1.0, "boom"),
    ):
        narrator.tell(happening)
    assert told == ["j2 add failed after 1.000 s: boom"]


def test_many_attempts_that_fail_alike_are_one_line() -> None:
    told: list[str] = []
    narrator = Narrator(told.append)
    for _ in range(3):
        narrator.tell(Disconnected("refused", "a", 1.0))
    narrator.tell(Connected("a", "svc"))
    narrator.tell(Disconnected("refused", "a", 1.0))
    assert [line.partition(":")[0] for line in told] == [
        "not connected",
        "registered for svc at a",
        "not connected",
    ]


def test_what_comes_from_others_forges_no_line() -> None:
    told: list[str] = []
    Narrator(told.append).tell(JobEnded("j1\n12:00:00 all is well", "add\x1b[31m", 1.0, "x" * 5000))
    [line] = told
    assert "\n" not in line and "\x1b" not in line and len(line) <= 300
