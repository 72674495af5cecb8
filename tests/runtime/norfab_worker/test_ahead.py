"""Jobs that are lined up begin without the engine, in order, marked before they begin, and can be taken back until then."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from specwire.runtime.norfab.worker.ahead import Ahead
from specwire.runtime.norfab.worker.bodies import Outcome
from specwire.runtime.norfab.worker.events import JobEnded, JobsGivenBack, JobStarted
from specwire.runtime.norfab.worker.running import Runner
from specwire.runtime.norfab.worker.tasks import TaskTable
from tests.runtime.norfab_worker.ear import Ear, lined
from tests.runtime.norfab_worker.hostile import Hostile
from tests.runtime.norfab_worker.laboratory import Disk, Lab, job, value

# --- the engine


def busy(ahead: int = 2, jobs: int = 4, **given: Any) -> Lab:
    """Return a worker with `jobs` jobs, of which the first runs."""
    lab = Lab(ahead=ahead, **given)
    for number in range(1, jobs + 1):
        lab.post(f"j{number}")
    return lab


def test_the_next_jobs_are_lined_up_while_one_runs() -> None:
    lab = busy()
    assert lab.runs() == ["j1"]
    assert [(lined.number, lined.uuid) for lined in lab.lined] == [(2, "j2"), (3, "j3")]


def test_a_job_that_is_lined_up_waits_as_far_as_anybody_can_see() -> None:
    lab = busy()
    lab.get("j2")
    assert lab.told("j2")[-1] == (300, {"worker": "w1", "uuid": "j2", "status": "PENDING", "service": "svc"})
    assert lab.manage("show_worker")[1]["jobs waiting"] == 3


def test_what_begins_by_itself_leaves_no_place_for_another() -> None:
    """The end of the first is heard of before the beginning of the second, and nothing else is begun in between."""
    lab = busy()
    lab.begin_next(heard=False)
    lab.end("j1")
    assert lab.runs() == ["j1"]
    lab.hear_beginning("j2")
    assert set(lab.engine.execution.running) == {"j2"}
    assert [lined.uuid for lined in lab.lined] == ["j3", "j4"]
    assert lab.reported(JobStarted)[-1] == JobStarted("j2", "add")
    lab.end("j2")
    assert lab.ends("j2")[0]["task_started"] is not None


def test_what_is_over_when_its_beginning_is_heard_of_ends_like_any_other() -> None:
    lab = busy()
    lab.end("j1")
    begun = lab.now
    lab.begin_next(heard=False)
    lab.now += 2.0
    lab.perform(lab.engine.ended("j2", value(5), lab.now, begun))
    assert lab.reported(JobStarted)[-1] == JobStarted("j2", "add")
    assert lab.reported(JobEnded)[-1] == JobEnded("j2", "add", 2.0, "")
    assert lab.engine.execution.running == {}
    assert [lined.uuid for lined in lab.lined] == ["j3", "j4"]


def test_where_nobody_hears_of_beginnings_the_end_is_told_all_the_same() -> None:
    lab = busy()
    lab.engine.observed, lab.happened = False, []
    lab.end("j1")
    lab.post("j5")
    lab.begin_next()
    lab.end("j2")
    assert [type(happening) for happening in lab.happened] == [JobEnded, JobEnded]


def test_when_nothing_is_lined_up_any_more_jobs_begin_by_order() -> None:
    lab = busy(jobs=2)
    lab.begin_next()
    lab.end("j1")
    lab.end("j2")
    lab.post("j3")
    assert lab.runs() == ["j1", "j3"]


def test_a_job_that_is_lined_up_is_deleted_before_it_begins() -> None:
    lab = busy()
    lab.delete("j2")
    assert lab.statuses("j2")[-1] == 200
    assert [lined.uuid for lined in lab.lined] == ["j3", "j4"]
    assert "j2" not in lab.engine.execution.lined


def test_a_job_that_is_deleted_as_it_begins_is_cancelled_and_has_no_result() -> None:
    lab = busy()
    lab.begin_next(heard=False)
    lab.delete("j2")
    lab.end("j1")
    lab.hear_beginning("j2")
    lab.end("j2")
    assert lab.ends("j2") == []
    assert set(lab.engine.execution.running) == set()
    assert lab.begin_next() == "j3"


def test_a_job_whose_time_is_over_before_it_begins_has_failed_and_does_not_begin() -> None:
    lab = Lab(ahead=2)
    lab.post("j1")
    lab.post("j2", timeout=5)
    lab.wait(6)
    assert lab.ends("j2")[0]["errors"] == ["did not begin within 5 s"]
    assert lab.lined == []


def test_a_worker_that_stops_takes_back_what_has_not_begun() -> None:
    lab = busy()
    lab.begin_next(heard=False)  # j2 has begun, which the engine does not know
    lab.perform(lab.engine.stop(lab.now))
    assert lab.lined == []
    given = [uuid for happened in lab.reported(JobsGivenBack) for uuid in happened.uuids]
    assert sorted(given) == ["j3", "j4"]
    lab.end("j1")
    assert lab.stopped is None
    lab.hear_beginning("j2")
    lab.end("j2")
    assert lab.stopped is not None
    assert [lab.statuses(uuid)[-1] for uuid in ("j1", "j2")] == [200, 200]


def test_a_worker_that_is_killed_knows_what_had_begun() -> None:
    """That a job has begun is on disk, though the engine never heard of it; what was lined up has not."""
    disk = Disk()
    lab = busy(disk=disk)
    lab.begin_next(heard=False)
    after = lab.killed()
    after.get("j2")
    after.get("j3")
    assert "ended while it ran" in after.ends("j2")[0]["errors"][0]
    assert after.runs() == ["j3"]


def test_where_beginnings_are_commits_nothing_is_lined_up() -> None:
    lab = busy(commits_beginnings=True)
    assert lab.lined == []


# --- places


def test_a_place_goes_to_who_is_next_and_is_marked() -> None:
    marked: list[int] = []
    ahead = Ahead(1, marked.append)
    ahead.occupy("j1")
    assert ahead.line_up(lined(2)) is None
    assert ahead.line_up(lined(3)) is None
    assert marked == []
    assert ahead.leave("j1") == lined(2)
    assert marked == [2]
    assert ahead.withdraw("j2") is False
    assert ahead.withdraw("j3") is True
    assert ahead.leave("j2") is None
    assert ahead.line_up(lined(4)) == lined(4)
    assert marked == [2, 4]


def test_a_place_is_left_once() -> None:
    """A task that was given up has lost its place; when it ends after all it has none to give."""
    ahead = Ahead(1, lambda number: None)
    ahead.occupy("j1")
    ahead.line_up(lined(2))
    ahead.line_up(lined(3))
    assert ahead.leave("j1") == lined(2)
    assert ahead.leave("j1") is None
    assert ahead.leave("j2") == lined(3)


def test_nobody_begins_after_the_end() -> None:
    ahead = Ahead(1, lambda number: None)
    ahead.occupy("j1")
    ahead.line_up(lined(2))
    ahead.clear()
    assert ahead.leave("j1") is None


# --- tasks


def story(tell: Callable[[Runner, Ear, Hostile, list[int]], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        plugin, ear, marked = Hostile(), Ear(), list[int]()
        worker: Any = "the worker"
        runner = Runner(TaskTable(plugin), worker, ear, concurrency=1, mark=marked.append)
        try:
            await asyncio.wait_for(tell(runner, ear, plugin, marked), 60)
        finally:
            plugin.release.set()
            runner.close()

    asyncio.run(whole())


@pytest.mark.parametrize("tasks", [["add"] * 3, ["gentle"] * 3, ["add", "gentle", "add"], ["nothing"] * 3])
def test_tasks_of_all_kinds_follow_each_other(tasks: list[str]) -> None:
    """In the thread of the one before, on its loop, or from one to the other; also those that there are not."""

    async def tell(runner: Runner, ear: Ear, plugin: Hostile, marked: list[int]) -> None:
        arguments = {"add": [1, 2], "gentle": [4]}
        runner.start("j0", "block", job("block"), "c1")
        for number, name in enumerate(tasks, 1):
            runner.line_up(lined(number, name, args=arguments.get(name, [])))
        assert marked == []
        plugin.release.set()
        await ear.until(7)
        end = "failed" if tasks[0] == "nothing" else "ended"
        expected = [("ended", "j0")]
        for number in (1, 2, 3):
            expected += [("began", f"j{number}"), (end, f"j{number}")]
        assert ear.heard == expected
        assert marked == [1, 2, 3]

    story(tell)


def test_a_beginning_is_told_with_the_end_that_has_come_by_then() -> None:
    """The worker's loop has no turn until the second job is marked: by then the first one's end is on its way."""

    class Both(Ear):
        def on_ended(self, uuid: str, outcome: Outcome, began: float | None = None) -> None:
            """Note whether the beginning comes with the end."""
            self._hear("both" if began == 7.0 else "ended", uuid)

    async def whole() -> None:
        plugin, ear, second = Hostile(), Both(), threading.Event()
        worker: Any = "the worker"
        runner = Runner(
            TaskTable(plugin),
            worker,
            ear,
            concurrency=1,
            mark=lambda number: second.set() if number == 2 else None,
            clock=lambda: 7.0,
        )
        try:
            runner.start("j0", "block", job("block"), "c1")
            runner.line_up(lined(1, args=[1, 2]))
            runner.line_up(lined(2, args=[1, 2]))
            plugin.release.set()
            assert second.wait(60)
            await asyncio.wait_for(ear.until(3), 60)
            assert ear.heard[:2] == [("ended", "j0"), ("both", "j1")]
        finally:
            runner.close()

    asyncio.run(whole())


def test_what_is_taken_back_does_not_run() -> None:
    async def tell(runner: Runner, ear: Ear, plugin: Hostile, marked: list[int]) -> None:
        runner.start("j0", "block", job("block"), "c1")
        runner.line_up(lined(1, args=[1, 2]))
        runner.line_up(lined(2, args=[1, 2]))
        assert runner.withdraw("j1") is True
        plugin.release.set()
        await ear.until(3)
        assert ear.heard == [("ended", "j0"), ("began", "j2"), ("ended", "j2")]
        assert runner.withdraw("j2") is False

    story(tell)


@pytest.mark.parametrize("first", ["add", "gentle"])
def test_a_beginning_is_told_of_what_can_be_cancelled(first: str) -> None:
    """Whoever hears that a job begins may cancel it there and then: the clock, which is asked for the beginning, does."""

    async def whole() -> None:
        worker: Any = "the worker"
        ear = Ear()

        def cancelling() -> float:
            runner.cancel("j1", "gone")
            return 0.0

        runner = Runner(TaskTable(Hostile()), worker, ear, concurrency=1, clock=cancelling)
        try:
            runner.start("j0", first, job(first, args=[1, 2] if first == "add" else [4]), "c1")
            runner.line_up(lined(1, args=[1, 2]))
            await asyncio.wait_for(ear.until(3), 60)
            assert sorted(ear.heard) == [("began", "j1"), ("ended", "j0"), ("failed", "j1")]
        finally:
            runner.close()

    asyncio.run(whole())


def test_the_place_of_a_task_that_is_given_up_goes_to_the_next() -> None:
    async def tell(runner: Runner, ear: Ear, plugin: Hostile, marked: list[int]) -> None:
        runner.start("j0", "block", job("block"), "c1")
        runner.line_up(lined(1, args=[1, 2]))
        runner.abandon("j0")
        await ear.until(2)
        assert ear.heard == [("began", "j1"), ("ended", "j1")]
        plugin.release.set()
        await ear.until(3)
        runner.line_up(lined(2, args=[1, 2]))  # there is one place, and not two
        await ear.until(5)
        assert ear.heard[2:] == [("ended", "j0"), ("began", "j2"), ("ended", "j2")]

    story(tell)


def test_bodies_and_results_are_those_of_their_jobs() -> None:
    async def tell(runner: Runner, ear: Ear, plugin: Hostile, marked: list[int]) -> None:
        results: dict[str, Any] = {}
        ended = ear.on_ended

        def keep(uuid: str, outcome: Outcome, began: float | None = None) -> None:
            results[uuid] = outcome.result
            ended(uuid, outcome, began)

        ear.on_ended = keep  # type: ignore[method-assign]
        for number in range(1, 9):
            runner.line_up(lined(number, args=[number, 100]))
        await ear.until(16)
        assert results == {f"j{number}": msgspec.Raw(b"%d" % (number + 100)) for number in range(1, 9)}
        assert marked == [*range(1, 9)]

    story(tell)
