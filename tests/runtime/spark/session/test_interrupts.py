"""Interrupts that somebody swallows are raised again."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from specwire.runtime.spark.session.interrupts import heeded_interrupts


def test_a_swallowed_interrupt_comes_at_the_next_step() -> None:
    """As py4j's clean-up swallows it."""
    with pytest.raises(KeyboardInterrupt), heeded_interrupts() as interrupts:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        interrupts.heed()
        pytest.fail("the step must not begin")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_swallowed_interrupt_comes_at_the_end_at_the_latest() -> None:
    """So the work cannot be taken for done."""
    with pytest.raises(KeyboardInterrupt), heeded_interrupts(), suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_handler_of_somebody_else_is_left_alone() -> None:
    """Nothing is raised, and the handler stays."""
    seen: list[int] = []

    def handler(number: int, frame: object) -> None:
        seen.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        with heeded_interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            interrupts.heed()
        assert seen == [signal.SIGINT] and signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
