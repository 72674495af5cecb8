"""Tasks for workers in tests; this file is also a module that `specwire norfab worker` loads by its name."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specwire.runtime.norfab.worker import Job, Worker, task

WAIT_S = 60.0


class Fleet:
    """Does what a test wants; what it ran is written down in the file that RAN names, a line for each run."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def _note(self, what: str) -> None:
        ran = os.environ.get("RAN")
        if ran:
            with open(ran, "a", encoding="utf-8") as file:
                file.write(f"{what}\n")

    @task
    def add(self, a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @task
    def count(self, job: Job) -> str:
        """Note that it ran."""
        self._note(job.uuid)
        return job.uuid

    @task
    def wait_for(self, job: Job, file: str) -> str:
        """Wait until a file is there."""
        self._note(job.uuid)
        job.progress(f"waiting for {Path(file).name}")
        until = time.monotonic() + WAIT_S
        while not Path(file).exists() and time.monotonic() < until:
            job.check()
            time.sleep(0.005)
        return "it is there"

    @task
    def end_child(self, kind: str) -> int | None:
        """Start a child process, end it, and return its exit status."""
        context = multiprocessing.get_context("fork")
        if kind == "process":
            process = context.Process(target=time.sleep, args=(WAIT_S,))
            process.start()
            process.terminate()
            process.join()
            return process.exitcode
        if kind == "pool":
            with context.Pool(2) as pool:  # calls `terminate` at the end of the block
                pool.map(abs, [1, -1])
            pool.join()
            return 0
        child = os.fork()
        if child == 0:
            if kind == "exit":
                sys.exit(7)
            return None
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    @task
    def leave_child(self, file: str) -> None:
        """Fork a child that never ends, and write its process id to a file."""
        child = os.fork()
        if child == 0:
            time.sleep(WAIT_S)
            os._exit(0)
        Path(file).write_text(str(child))
        time.sleep(WAIT_S)

    @task
    async def wait_softly(self, job: Job, file: str) -> str:
        """Wait until a file is there, as a coroutine."""
        job.progress("waiting softly")
        while not Path(file).exists():
            await asyncio.sleep(0.005)
        return "it is there"

    @task
    def print_and_leave(self) -> None:
        """Print, and call sys.exit."""
        print("printed by a plugin")
        sys.exit(5)

    @task
    def die(self) -> None:
        """End the process at once."""
        os._exit(9)

    @task
    def large(self, octets: int) -> str:
        """Return so many octets."""
        return "x" * octets

    @task
    def manage(self, resources: list[str]) -> Sequence[str]:
        """Manage something else."""
        self.worker.set_resources(resources)
        return self.worker.resources

    @task
    def read(self, job: Job, url: str) -> str:
        """Return the text of a shared file."""
        return job.fetch(url).read_text(encoding="utf-8")

    @task
    def inventory(self, job: Job) -> Any:
        """Return what the broker has for this worker."""
        return job.worker.ask("sid.service.broker", "get_inventory", name=job.worker.name)
