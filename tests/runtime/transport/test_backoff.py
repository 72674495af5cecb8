"""Delays between attempts, and which failures are logged."""

from __future__ import annotations

from specwire.runtime.transport.backoff import ReconnectPolicy


def test_delays_double_up_to_the_longest() -> None:
    """And begin with the first again when nothing has failed for a calm time after the last attempt, at 45 s."""
    policy = ReconnectPolicy(first_s=1.0, longest_s=5.0, calm_s=100.0)
    delays = [policy.fail("refused", now, answered=False)[0] - now for now in (0.0, 10.0, 20.0, 30.0, 40.0)]
    assert delays == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert policy.fail("refused", 145.0, answered=False)[0] == 146.0


def test_failures_1_2_4_and_8_are_logged() -> None:
    """Counted since the other side answered last."""
    policy = ReconnectPolicy()
    logged = [policy.fail("refused", 0.0, answered=False)[1] for _ in range(9)]
    assert logged == ["refused", "refused, try 2", "", "refused, try 4", "", "", "", "refused, try 8", ""]
    assert policy.fail("lost", 0.0, answered=True)[1] == "lost"
    assert policy.fail("refused", 0.0, answered=False)[1] == "refused, try 2"
