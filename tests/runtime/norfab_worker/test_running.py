"""Tasks of all kinds, and a worker that none of them hurts."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from specwire.runtime.norfab.worker.bodies import Outcome, Progress
from specwire.runtime.norfab.worker.running import MAX_WAITING, Runner
from specwire.runtime.norfab.worker.tasks import TaskTable
from tests.runtime.norfab_worker.hostile import WAIT_S, Hostile
from tests.runtime.norfab_worker.laboratory import job


class Ear:
    """Hears what tasks say."""

    def __init__(self) -> None:
        self.ended: dict[str, Outcome] = {}
        self.told: list[tuple[str, Progress]] = []
        self.poured: list[bytes] = []
        self.changed = asyncio.Event()

    def on_progress(self, uuid: str, progress: Progress) -> None:
        """Take progress."""
        self.told.append((uuid, progress))

    def on_stream(self, uuid: str, data: bytes) -> None:
        """Take a piece."""
        self.poured.append(data)

    def on_ended(self, uuid: str, outcome: Outcome) -> None:
        """Take an end."""
        assert uuid not in self.ended
        self.ended[uuid] = outcome
        self.changed.set()


class Desk:
    """A runner with a hostile plugin."""

    def __init__(self) -> None:
        self.plugin, self.ear = Hostile(), Ear()
        worker: Any = "the worker"
        self.runner = Runner(TaskTable(self.plugin), worker, self.ear, concurrency=1)

    def start(self, name: str, uuid: str = "j1", **fields: Any) -> None:
        """Start a task."""
        self.runner.start(uuid, name, job(name, **fields), "c1")

    async def end(self, uuid: str = "j1") -> Outcome:
        """Wait for an end."""
        while uuid not in self.ear.ended:
            await self.ear.changed.wait()
            self.ear.changed.clear()
        return self.ear.ended[uuid]

    async def run(self, name: str, **fields: Any) -> Outcome:
        """Run a task to its end."""
        self.ear.ended.pop("j1", None)
        self.start(name, **fields)
        return await self.end()


def story(tell: Callable[[Desk], Coroutine[Any, Any, None]]) -> None:
    """Run a story at a desk, which has a minute."""

    async def whole() -> None:
        desk = Desk()
        try:
            await asyncio.wait_for(tell(desk), 60)
            # Whatever it was, the next task runs, of both kinds.
            assert (await desk.run("add", args=[1, 2])).result == msgspec.Raw(b"3")
            assert (await desk.run("gentle", args=[4])).result == msgspec.Raw(b"4")
        finally:
            desk.plugin.release.set()
            desk.runner.close()

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fail", "ValueError: boom"),
        ("leave", "the task called sys.exit(3)"),
        ("leave_softly", "the task called sys.exit('bye')"),
        ("interrupt", "KeyboardInterrupt"),
        (
            "no_json",
            "what the task returned cannot be sent as JSON: NotImplementedError: a value of type object",
        ),
        ("circle", "what the task returned cannot be sent as JSON: RecursionError"),
        ("surrogate", "what the task returned cannot be sent as JSON: UnicodeEncodeError"),
        ("evil_error", "EvilError: (its text cannot be had)"),
        ("deep", "RecursionError"),
        ("async_error", "the task called sys.exit(None)"),
        ("add", "wrong arguments: argument 'a' is missing"),
        ("nothing", "there is no task 'nothing'; there are "),
    ],
)
def test_a_task_that_fails_is_an_outcome_that_says_why(name: str, reason: str) -> None:
    async def tell(desk: Desk) -> None:
        outcome = await desk.run(name)
        assert outcome.failed
        assert outcome.errors[0].startswith(reason), outcome.errors

    story(tell)


def test_a_failure_brings_its_trace() -> None:
    async def tell(desk: Desk) -> None:
        [trace] = (await desk.run("fail")).messages
        assert 'raise ValueError("boom")' in trace and trace.endswith("ValueError: boom\n")

    story(tell)


def test_sys_exit_beside_a_coroutine_does_not_end_the_loop() -> None:
    async def tell(desk: Desk) -> None:
        assert (await desk.run("leave_beside")).result == msgspec.Raw(b'"still here"')

    story(tell)


def test_what_is_printed_goes_where_the_process_says(capsys: pytest.CaptureFixture[str]) -> None:
    async def tell(desk: Desk) -> None:
        assert (await desk.run("speak")).result == msgspec.Raw(b'"said"')

    story(tell)
    assert capsys.readouterr().out == "x" * 10 + "\n"


@pytest.mark.parametrize("name", ["block", "block_loop"])
def test_a_task_that_blocks_does_not_block_the_worker(name: str) -> None:
    """The worker's loop goes on, and so do the tasks that take its place when it is abandoned."""

    async def tell(desk: Desk) -> None:
        desk.start(name)
        await asyncio.to_thread(desk.plugin.begun.wait, WAIT_S)
        await asyncio.sleep(0)
        assert desk.ear.ended == {}
        desk.runner.cancel("j1", "too long")
        desk.runner.abandon("j1")
        desk.start("add", "j2", args=[1, 1])
        desk.start("gentle", "j3", args=[7])
        assert (await desk.end("j2")).result == msgspec.Raw(b"2")
        assert (await desk.end("j3")).result == msgspec.Raw(b"7")
        desk.plugin.release.set()
        assert (await desk.end("j1")).result == msgspec.Raw(b'"at last"')

    story(tell)


def test_coroutines_beside_one_that_blocks_end_when_it_does() -> None:
    async def tell(desk: Desk) -> None:
        desk.start("innocent")
        desk.start("block_loop", "j2")
        await asyncio.to_thread(desk.plugin.begun.wait, WAIT_S)
        desk.runner.cancel("j2", "too long")
        desk.runner.abandon("j2")
        desk.plugin.release.set()
        assert (await desk.end()).result == msgspec.Raw(b'"me too"')

    story(tell)


@pytest.mark.parametrize("name", ["heed", "forever"])
def test_a_task_that_heeds_its_cancelling_ends(name: str) -> None:
    async def tell(desk: Desk) -> None:
        desk.start(name)
        await asyncio.to_thread(desk.plugin.begun.wait, WAIT_S)
        desk.runner.cancel("j1", "nobody wants it")
        outcome = await desk.end()
        assert outcome.failed and outcome.errors[0].startswith("cancelled")

    story(tell)


def test_a_task_that_is_cancelled_before_its_turn_never_begins() -> None:
    async def tell(desk: Desk) -> None:
        desk.start("heed")
        desk.runner.cancel("j1", "gone")
        assert (await desk.end()).failed

    story(tell)


def test_progress_comes_in_order_before_the_end() -> None:
    async def tell(desk: Desk) -> None:
        await desk.run("chat", args=[5])
        assert [progress.message for _, progress in desk.ear.told] == [f"step {n}" for n in range(5)]
        assert desk.ear.told[0][1].severity == "WARNING"
        assert desk.ear.told[0][1].resources == ("r1",)

    story(tell)


def test_a_flood_of_progress_is_bounded_and_the_end_is_not_lost() -> None:
    async def tell(desk: Desk) -> None:
        desk.start("chat", args=[3 * MAX_WAITING])
        assert desk.plugin.begun.wait(WAIT_S)  # all the while the loop hears nothing
        assert not (await desk.end()).failed
        assert len(desk.ear.told) == MAX_WAITING

    story(tell)


def test_a_stream_waits_for_room() -> None:
    async def tell(desk: Desk) -> None:
        await desk.run("pour")
        assert [piece[0] for piece in desk.ear.poured] == list(range(40))

    story(tell)


def test_input_reaches_the_task() -> None:
    async def tell(desk: Desk) -> None:
        desk.start("ask")
        await asyncio.to_thread(desk.plugin.begun.wait, WAIT_S)
        desk.runner.give("j1", b"yes")
        desk.runner.give("no such job", b"?")
        assert (await desk.end()).result == msgspec.Raw(b'"yes"')

    story(tell)


def test_a_result_may_say_more_than_a_value() -> None:
    async def tell(desk: Desk) -> None:
        outcome = await desk.run("rich", resources=["r1"])
        assert outcome == Outcome(
            result=msgspec.Raw(b'{"a":1}'),
            failed=True,
            errors=("partly",),
            messages=("m",),
            resources=("r1",),
            diff=msgspec.Raw(b'{"-":1}'),
            dry_run=True,
        )

    story(tell)


def test_a_task_knows_its_job() -> None:
    async def tell(desk: Desk) -> None:
        outcome = await desk.run("about", resources=["r1", "r2"])
        assert json.loads(bytes(outcome.result)) == ["j1", "about", "c1", ["r1", "r2"], "the worker"]

    story(tell)


def test_values_of_the_standard_library_are_json() -> None:
    async def tell(desk: Desk) -> None:
        assert (await desk.run("path")).result == msgspec.Raw(b'"/x"')

    story(tell)


def test_a_thread_is_kept_for_the_next_task_and_not_more_than_that() -> None:
    """As many as tasks may run at a time, which is one here; a moment after the tasks have ended."""
    others = set(threading.enumerate())

    def own_threads() -> int:
        return sum(thread.name == "norfab task" for thread in {*threading.enumerate()} - others)

    async def tell(desk: Desk) -> None:
        for round_number in range(2):
            for number in range(20):
                desk.start("add", f"n{round_number}.{number}", args=[1, 1])
            for number in range(20):
                await desk.end(f"n{round_number}.{number}")
            while own_threads() > 1:
                await asyncio.sleep(0.001)
            assert own_threads() == 1

    story(tell)
