"""Rates: how fast totals grow between two looks."""

from __future__ import annotations

from specwire.runtime.observe.view import REMEMBERED, Counted, Rate, Rates


def test_a_rate_is_what_was_added_over_the_time_that_passed() -> None:
    rates = Rates((Counted("files"), Counted("content", "octets")))
    assert [rate.per_s for rate in rates.describe()] == [0.0, 0.0]
    rates.look((10, 1000), now=5.0)
    assert [rate.per_s for rate in rates.describe()] == [0.0, 0.0], "one look says nothing of a rate"
    rates.look((12, 1000), now=6.0)
    rates.look((12, 4000), now=8.0)
    assert rates.describe() == (
        Rate("files", "count", 0.0, (2.0, 0.0)),
        Rate("content", "octets", 1500.0, (0.0, 1500.0)),
    )


def test_a_total_that_begins_anew_is_no_negative_rate() -> None:
    rates = Rates((Counted("jobs"),))
    rates.look((100,), now=0.0)
    rates.look((3,), now=1.0)
    assert rates.describe()[0].per_s == 3.0


def test_two_looks_at_one_moment_are_one() -> None:
    rates = Rates((Counted("jobs"),))
    for total in (1, 2):
        rates.look((total,), now=1.0)
    assert rates.describe()[0].history == ()


def test_two_minutes_are_remembered() -> None:
    rates = Rates((Counted("jobs"),))
    for second in range(500):
        rates.look((second * second,), now=float(second))
    history = rates.describe()[0].history
    assert (len(history), history[-1]) == (REMEMBERED, 499**2 - 498**2)
