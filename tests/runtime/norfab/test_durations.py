"""Durations in few numbers: bounded in names, and never negative."""

from __future__ import annotations

from specwire.runtime.norfab.durations import LIMITS_S, MAX_NAMES, Durations, copy_durations, note_duration


def test_each_is_counted_below_every_limit_that_it_keeps() -> None:
    durations = Durations()
    for seconds in (0.0, LIMITS_S[0], LIMITS_S[0] + 1e-9, LIMITS_S[-1] + 1):
        durations.note(seconds)
    at_most = durations.at_most()
    assert (at_most[0], at_most[1], at_most[-2], at_most[-1]) == (2, 3, 3, 4)


def test_names_invented_by_the_thousand_are_one() -> None:
    known: dict[str, Durations] = {}
    for number in range(5000):
        note_duration(known, f"s{number}", 1.0)
    assert len(known) == MAX_NAMES + 1
    assert known[""].at_most()[-1] == 5000 - MAX_NAMES
    note_duration(known, "s3", 1.0)
    assert known["s3"].at_most()[-1] == 2


def test_a_clock_that_was_set_back_takes_nothing_away() -> None:
    known: dict[str, Durations] = {}
    note_duration(known, "s", -5.0)
    assert known["s"].total_s == 0.0


def test_a_status_is_of_its_moment() -> None:
    known: dict[str, Durations] = {}
    note_duration(known, "s", 1.0)
    before = copy_durations(known)
    note_duration(known, "s", 1.0)
    assert (before["s"].at_most()[-1], before["s"].total_s) == (1, 1.0)
