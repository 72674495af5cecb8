"""A command that would end by itself is told to stop: it cleans up, and its status says what ended it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer

from specwire.runtime.cli.signals import ending_at_sigterm


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of a program that was just started, for the time of a test."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_sigterm_is_an_interrupt_with_a_status_of_its_own(handler: Callable[..., Any] | int) -> None:
    """Also where interrupts are ignored, as in the background of a shell without job control."""
    signal.signal(signal.SIGINT, handler)
    seen: list[type[BaseException]] = []
    with pytest.raises(typer.Exit) as ended, ending_at_sigterm():
        try:
            signal.raise_signal(signal.SIGTERM)
        except BaseException as error:
            seen.append(type(error))
            raise
    assert (seen, ended.value.exit_code) == ([KeyboardInterrupt], 128 + 15)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_interrupt_that_is_deferred_defers_sigterm() -> None:
    """What handles interrupts in its own way handles both."""
    noted: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    with ending_at_sigterm():
        signal.raise_signal(signal.SIGTERM)
        assert noted == [signal.SIGINT]


def test_an_interrupt_at_the_keyboard_stays_one() -> None:
    with pytest.raises(KeyboardInterrupt), ending_at_sigterm():
        signal.raise_signal(signal.SIGINT)
