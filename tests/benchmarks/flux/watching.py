"""Whether a measurement gets on: where it does not, what it waited for, and how the processes are.

Nothing here waits longer than it says: a process that ends is told at once, one that does nothing after `STALL_S`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from tests.integration.filemq_process import PeerProcess

START_S = 60.0
"""How long all processes may take to start, and brokers to find each other, on a machine that has other work."""
STALL_S = 15.0
"""How long nothing may happen."""
LOOK_S = 0.5
SAID = 5
"""Last lines of each process that are shown."""


class Progress:
    """How much has been done.

    Attributes:
        done: messages so far; whoever gets one counts it.
    """

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = 0


class Watch:
    """The processes that a measurement depends on, by name."""

    def __init__(self, processes: Mapping[str, PeerProcess]) -> None:
        self._processes = processes

    async def see_through(self, what: str, work: Coroutine[Any, Any, None], progress: Progress) -> None:
        """Wait for `work`; raises SystemExit with the reason where it cannot come to its end."""
        task = asyncio.ensure_future(work)
        try:
            await self._look_after(what, task, progress)
        finally:
            task.cancel()
            await asyncio.wait((task,))
        try:
            task.result()
        except Exception as error:
            raise SystemExit(f"{what}: {error!r} after {progress.done:,} messages\n{self._tell()}") from error

    async def _look_after(self, what: str, task: asyncio.Future[None], progress: Progress) -> None:
        quiet_s, before = 0.0, progress.done
        while not (await asyncio.wait((task,), timeout=LOOK_S))[0]:
            quiet_s = quiet_s + LOOK_S if progress.done == before else 0.0
            before = progress.done
            if gone := [name for name, process in self._processes.items() if _state(process.pid) in "ZX"]:
                raise SystemExit(f"{what}: {', '.join(gone)} ended in the middle of it\n{self._tell()}")
            if quiet_s >= STALL_S:
                raise SystemExit(
                    f"{what}: nothing for {STALL_S:g} s after {before:,} messages\n{self._tell()}"
                )

    def _tell(self) -> str:
        """Say of each process how it is, and what it said last."""
        lines: list[str] = []
        for name, process in self._processes.items():
            lines.append(f"  {name}, process {process.pid}, state {_state(process.pid)}")
            lines += [f"    {line.rstrip()}" for line in process.lines[-SAID:]]
        return "\n".join(lines)


def _state(pid: int) -> str:
    """Return the letter of `proc_pid_stat(5)`: R, S, D, T, Z; X where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return "X"
