"""Reload of `specwire norfab worker` at SIGHUP: it starts again with its configuration, if that has no fault.

The worker finishes the jobs that run and gives back those that have not begun. It stays the same process, so no
job is lost, and every setting applies afterwards.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable

from specwire.runtime.forking import handle_signal
from specwire.runtime.log.text import show


def reload_requested(file: str, say: Callable[[str], None]) -> asyncio.Future[None]:
    """Return what is done when SIGHUP has come and `file` has no fault; a fault is told, and changes nothing."""
    loop = asyncio.get_running_loop()
    requested: asyncio.Future[None] = loop.create_future()
    checking: set[asyncio.Task[None]] = set()

    async def check() -> None:
        # A process of its own: what the check needs in memory is more than an idle worker has.
        words = ["config", "show", "norfab.worker", "--config", file, "--json"]
        nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "specwire", *words), stdin=nothing, stdout=nothing, stderr=pipe
        )
        _, told = await process.communicate()
        if process.returncode:
            say(f"the configuration stays as it was: {show(told.decode(errors='replace').strip())}")
        elif not requested.done():
            say(f"beginning anew by {file}")
            requested.set_result(None)

    def look() -> None:
        if not checking:
            task = asyncio.create_task(check())
            checking.add(task)
            task.add_done_callback(checking.discard)

    handle_signal(signal.SIGHUP, look)
    return requested
