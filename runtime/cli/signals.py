"""Signals that end a command: SIGINT and SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from specwire.runtime.cli.console import BY_SIGNAL
from specwire.runtime.forking import handle_signal


def stop_requested() -> asyncio.Future[None]:
    """Return a future that is done at the first SIGINT or SIGTERM; further ones have no effect."""
    requested = asyncio.get_running_loop().create_future()

    def request() -> None:
        if not requested.done():
            requested.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        handle_signal(number, request)
    return requested


@contextmanager
def ending_at_sigterm() -> Iterator[None]:
    """Make SIGTERM end the block like a keyboard interrupt, so that clean-up code runs.

    Raises:
        typer.Exit: after SIGTERM, with its exit status, in place of KeyboardInterrupt.
    """
    told = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal told
        told = True
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in background jobs of a shell
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if told:
            raise typer.Exit(BY_SIGNAL + signal.SIGTERM) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
