"""Coroutines that follow each other in one task of asyncio are as apart as if each had its own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import msgspec
import pytest

from specwire.runtime.norfab.worker.bodies import Outcome
from specwire.runtime.norfab.worker.handle import Job
from specwire.runtime.norfab.worker.running import IN_A_ROW, Runner
from specwire.runtime.norfab.worker.tasks import TaskTable, task
from tests.runtime.norfab_worker.ear import Ear, lined
from tests.runtime.norfab_worker.laboratory import job

SEEN = ContextVar("SEEN", default="nothing")


class Row:
    """Coroutines of which several may run in one task of asyncio, one after the other."""

    def __init__(self) -> None:
        self.begun, self.release = threading.Event(), threading.Event()
        self.runner: Runner | None = None

    @task
    async def hold(self) -> None:
        """Let the loop have no turn until it is released."""
        self.begun.set()
        self.release.wait(60)

    @task
    async def instant(self) -> None:
        """Wait for nothing."""

    @task
    async def turn(self) -> int:
        """Wait for a turn of the loop; return how often the task that runs this was cancelled."""
        await asyncio.sleep(0)
        running = asyncio.current_task()
        return 0 if running is None else running.cancelling()

    @task
    async def remember(self, job: Job) -> list[str]:
        """Return what a context variable is at first, and what it is after it was set, and a turn of the loop later."""
        seen = [SEEN.get()]
        SEEN.set(job.uuid)
        seen.append(SEEN.get())
        await asyncio.sleep(0)
        return [*seen, SEEN.get(), await asyncio.create_task(self._see())]

    async def _see(self) -> str:
        return SEEN.get()

    @task
    async def hurry(self) -> str:
        """Wait longer than it allows itself."""
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "over"
        return "not over"

    @task
    async def late(self, job: Job) -> None:
        """Be cancelled and over before that is heard of."""
        assert self.runner is not None
        self.runner.cancel(job.uuid, "too late")

    @task
    async def stubborn(self, job: Job) -> None:
        """Be cancelled, and end as if nothing was."""
        assert self.runner is not None
        self.runner.cancel(job.uuid, "heed me")
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


def in_a_row(first: list[str], following: list[str]) -> dict[str, Outcome]:
    """Run coroutines, `hold` before them on the first place; return their ends, in order."""

    async def whole() -> dict[str, Outcome]:
        plugin, ear = Row(), Ear()
        ends: dict[str, Outcome] = {}
        worker: Any = "the worker"
        runner = plugin.runner = Runner(TaskTable(plugin), worker, ear, concurrency=1 + len(first))
        ended = ear.on_ended

        def keep(uuid: str, outcome: Outcome, began: float | None = None) -> None:
            ends[uuid] = outcome
            ended(uuid, outcome, began)

        ear.on_ended = keep  # type: ignore[method-assign]
        try:
            runner.start("hold", "hold", job("hold"), "c1")
            assert await asyncio.to_thread(plugin.begun.wait, 60)
            for name in first:
                runner.start(name, name, job(name), "c1")
            for number, name in enumerate(following, 1):
                runner.line_up(lined(number, name))
            plugin.release.set()
            await asyncio.wait_for(ear.until(1 + len(first) + 2 * len(following)), 60)
            return ends
        finally:
            plugin.release.set()
            runner.close()

    return asyncio.run(whole())


@pytest.mark.parametrize("before", ["late", "stubborn"])
def test_a_job_is_not_cancelled_for_the_one_before(before: str) -> None:
    ends = in_a_row([], [before, "turn", "turn"])
    assert [ends[f"j{number}"].failed for number in (1, 2, 3)] == [False, False, False]
    assert [ends[f"j{number}"].result for number in (2, 3)] == [msgspec.Raw(b"0"), msgspec.Raw(b"0")]


def test_coroutines_that_wait_for_nothing_leave_the_others_their_turn() -> None:
    ends = list(in_a_row(["turn"], ["instant"] * (10 * IN_A_ROW)))
    assert ends.index("turn") <= 4 * IN_A_ROW


def test_what_one_sets_is_not_there_for_the_next() -> None:
    ends = in_a_row([], ["remember", "instant", "remember", "hurry", "remember"])
    for uuid in ("j1", "j3", "j5"):
        assert ends[uuid].result == msgspec.Raw(msgspec.json.encode(["nothing", uuid, uuid, uuid]))
    assert ends["j4"].result == msgspec.Raw(b'"over"')
