"""How a command that runs until it is told to stop is told so."""

from __future__ import annotations

import asyncio
import signal


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
