"""How a command is told to stop: one that runs until then, and one that would come to an end by itself."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from specwire.runtime.cli.console import BY_SIGNAL


def stop_requested() -> asyncio.Future[None]:
    """Return what is done when SIGINT or SIGTERM comes; from then on a second one changes nothing."""
    loop = asyncio.get_running_loop()
    requested = loop.create_future()

    def request() -> None:
        if not requested.done():
            requested.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, request)
    return requested


@contextmanager
def ending_at_sigterm() -> Iterator[None]:
    """Have SIGTERM end the block as an interrupt at the keyboard does: what is to be cleaned up is.

    Raises:
        typer.Exit: with the status of what SIGTERM has ended, in place of KeyboardInterrupt.
    """
    told = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal told
        told = True
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells have it in the background
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
