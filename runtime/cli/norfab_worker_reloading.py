"""Reload of `specwire norfab worker` at SIGHUP: it restarts if its configuration has no fault.

The worker finishes the jobs that run and gives back those that have not begun. It keeps its process
id, loses no job, and applies every setting of the new configuration.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable

from specwire.runtime.forking import handle_signal
from specwire.runtime.log.text import show


def reload_requested(file: str, say: Callable[[str], None]) -> asyncio.Future[None]:
    """Return a future that is done after a SIGHUP with a `file` without faults.

    A fault in the file is logged, and the future stays pending.
    """
    loop = asyncio.get_running_loop()
    requested: asyncio.Future[None] = loop.create_future()
    checking: set[asyncio.Task[None]] = set()

    async def check() -> None:
        # In a separate process: the check needs more memory than an idle worker.
        words = ["config", "show", "norfab.worker", "--config", file, "--json"]
        nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "specwire", *words), stdin=nothing, stdout=nothing, stderr=pipe
        )
        _, faults = await process.communicate()
        if process.returncode:
            say(f"the configuration stays as it was: {show(faults.decode(errors='replace').strip())}")
        elif not requested.done():
            say(f"restarting with {file}")
            requested.set_result(None)

    def look() -> None:
        if not checking:
            task = asyncio.create_task(check())
            checking.add(task)
            task.add_done_callback(checking.discard)

    handle_signal(signal.SIGHUP, look)
    return requested
