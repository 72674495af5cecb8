"""A plugin that a worker has to live with."""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
from pathlib import Path
from typing import Any

from specwire.runtime.norfab.worker.handle import Job, Result
from specwire.runtime.norfab.worker.tasks import task

WAIT_S = 30.0


class Hostile:
    """Tasks that a worker has to live with."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = threading.Event()
        self.release = threading.Event()

    @task
    def add(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    @task
    def fail(self) -> None:
        """Raise."""
        raise ValueError("boom")

    @task
    def leave(self) -> None:
        """Call sys.exit."""
        sys.exit(3)

    @task
    async def leave_softly(self) -> None:
        """Call sys.exit in a coroutine."""
        sys.exit("bye")

    @task
    async def leave_beside(self) -> str:
        """Have something else call sys.exit on the loop of coroutines."""
        asyncio.get_running_loop().call_soon(sys.exit, 4)
        await asyncio.sleep(0)
        return "still here"

    @task
    def interrupt(self) -> None:
        """Raise what the keyboard does."""
        raise KeyboardInterrupt

    @task
    def no_json(self) -> object:
        """Return what is no JSON."""
        return object()

    @task
    def circle(self) -> list[Any]:
        """Return what has no end."""
        endless: list[Any] = []
        endless.append(endless)
        return endless

    @task
    def surrogate(self) -> str:
        """Return text that is no Unicode."""
        return "\ud800"

    @task
    def evil_error(self) -> None:
        """Raise what cannot be shown."""

        class EvilError(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no text")

        raise EvilError

    @task
    def speak(self) -> str:
        """Print."""
        print("x" * 10)
        return "said"

    @task
    def block(self, job: Job) -> str:
        """Heed nothing until it is let go."""
        self.begun.set()
        self.release.wait(WAIT_S)
        return "at last"

    @task
    async def block_loop(self) -> str:
        """Block the loop of coroutines."""
        self.begun.set()
        self.release.wait(WAIT_S)
        return "at last"

    @task
    async def innocent(self) -> str:
        """Share the loop with others."""
        await asyncio.sleep(0.01)
        return "me too"

    @task
    async def gentle(self, value: int) -> int:
        """Wait a little."""
        await asyncio.sleep(0)
        return value

    @task
    async def forever(self) -> None:
        """Wait for something that never comes."""
        self.begun.set()
        await asyncio.Event().wait()

    @task
    def heed(self, job: Job) -> None:
        """Look whether anybody wants it."""
        self.begun.set()
        job.wait(WAIT_S)
        job.check()

    @task
    def chat(self, job: Job, times: int) -> None:
        """Tell a lot."""
        for number in range(times):
            job.progress(f"step {number}", severity="WARNING", resources=["r1"])
        self.begun.set()

    @task
    def pour(self, job: Job) -> None:
        """Send much."""
        for number in range(40):
            job.stream(bytes([number]) * (2 << 20))

    @task
    def ask(self, job: Job) -> str:
        """Take input."""
        self.begun.set()
        return (job.input(WAIT_S) or b"nothing").decode()

    @task
    def rich(self, job: Job) -> Result:
        """Say more than a value."""
        return Result(
            result={"a": 1}, failed=True, errors=["partly"], messages=["m"], diff={"-": 1}, dry_run=True
        )

    @task
    def about(self, job: Job) -> list[Any]:
        """Tell what the job says of itself."""
        return [job.uuid, job.task, job.client, job.resources, job.worker]

    @task
    def path(self) -> Path:
        """Return a path."""
        return Path("/x")

    @task
    def deep(self) -> Any:
        """Recurse."""
        return self.deep()

    @task
    def async_error(self) -> None:
        """Be told to end by another thread, as a debugger does."""
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(threading.get_ident()), ctypes.py_object(SystemExit)
        )
        for _ in range(1000):
            pass
