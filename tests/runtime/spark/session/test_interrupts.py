"""Interrupts that somebody swallows are raised again."""

from __future__ import annotations

import signal
import threading
import weakref
from contextlib import suppress
from typing import Any

import pytest

from specwire.runtime.spark.session.java import Interrupts


def test_a_swallowed_interrupt_comes_at_the_next_step() -> None:
    """As py4j's clean-up swallows it."""
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        interrupts.heed()
        pytest.fail("the step must not begin")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_swallowed_interrupt_comes_at_the_end_at_the_latest() -> None:
    """So the work cannot be taken for done."""
    with pytest.raises(KeyboardInterrupt), Interrupts(), suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_what_an_interrupt_made_fail_is_an_interrupt() -> None:
    """Spark's answer comes through a socket; where reading it is broken off, asking for the rest raises an error."""
    with pytest.raises(KeyboardInterrupt), Interrupts():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            raise ConnectionError("Broken pipe")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_failure_without_an_interrupt_is_raised_as_it_is() -> None:
    with pytest.raises(ConnectionError, match="of its own"), Interrupts():
        raise ConnectionError("of its own")


def test_an_interrupt_in_a_clean_up_of_py4j_comes_a_moment_later() -> None:
    """There Python would print its trace, and go on."""
    names: dict[str, Any] = {"interrupt": lambda: signal.raise_signal(signal.SIGINT)}
    code = "def _garbage_collect_object(reference):\n    interrupt()\n    done.append(1)\n"
    names["done"] = done = list[int]()
    exec(compile(code, "/somewhere/py4j/java_gateway.py", "exec"), names)  # noqa: S102
    with pytest.raises(KeyboardInterrupt), Interrupts():
        collected = {1}  # a plain set can be referred to weakly
        reference = weakref.ref(collected, names["_garbage_collect_object"])
        del collected
        assert reference() is None and done, "the clean-up came to its end"
        threading.Event().wait(60.0)
        pytest.fail("the interrupt must come by itself")


def test_a_handler_of_somebody_else_is_left_alone() -> None:
    """Nothing is raised, and the handler stays."""
    seen: list[int] = []

    def handler(number: int, frame: object) -> None:
        seen.append(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            interrupts.heed()
        assert seen == [signal.SIGINT] and signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
