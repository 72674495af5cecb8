"""When a folder is walked through: a playbook."""

from __future__ import annotations

from specwire.runtime.filemq.watcher import MISSING_S, PATIENCE, QUIET_S, WalkPace


def test_a_quiet_folder_is_walked_through_from_time_to_time() -> None:
    pace = WalkPace(30.0)
    pace.walked(100.0, 100.5, waiting=False)
    assert pace.due() == 130.5


def test_a_walk_follows_when_a_burst_is_over() -> None:
    """Each notification moves it, up to the time when it would be due anyway."""
    pace = WalkPace(30.0)
    pace.walked(100.0, 100.0, waiting=False)
    pace.notified(110.0)
    assert pace.due() == 110.0 + QUIET_S
    pace.notified(110.2)
    assert pace.due() == 110.2 + QUIET_S
    pace.notified(129.9)
    assert pace.due() == 130.0


def test_a_long_walk_takes_no_more_than_a_part_of_the_time() -> None:
    pace = WalkPace(60.0)
    pace.walked(100.0, 102.0, waiting=False)
    pace.notified(110.0)
    assert pace.due() == 110.0 + QUIET_S + PATIENCE * 2.0


def test_what_is_heard_during_a_walk_may_have_been_missed_by_it() -> None:
    pace = WalkPace(3600.0)
    pace.notified(99.0)
    pace.notified(101.0)
    pace.walked(100.0, 102.0, waiting=False)
    assert pace.due() == 101.0 + QUIET_S + PATIENCE * 2.0
    pace.walked(130.0, 131.0, waiting=False)
    assert pace.due() == 131.0 + 3600.0


def test_a_missing_folder_is_looked_for_often() -> None:
    pace = WalkPace(3600.0)
    pace.walked(100.0, 100.0, waiting=True)
    assert pace.due() == 100.0 + MISSING_S
    pace.walked(101.0, 101.0, waiting=False)
    assert pace.due() == 101.0 + 3600.0
