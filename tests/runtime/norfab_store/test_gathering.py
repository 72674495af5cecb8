"""When what has gathered is committed; the clock and the loop's turns are told by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from specwire.runtime.norfab.store import gathering
from specwire.runtime.norfab.store.gathering import MANY, Gathering


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Have the module read a clock of our own."""
    made = Clock()
    monkeypatch.setattr(gathering, "monotonic", made)
    return made


def run(story: Callable[[Gathering, list[int]], Coroutine[Any, Any, None]]) -> None:
    """Run a story, with what counts the commits so far at each of them."""

    async def whole() -> None:
        commits: list[int] = []
        async with asyncio.timeout(60):
            await story(Gathering(lambda: commits.append(len(commits) + 1)), commits)

    asyncio.run(whole())


async def turn() -> None:
    """Let the loop have its turn, with all that was to come in it."""
    await asyncio.sleep(0)


def test_what_comes_in_a_turn_is_committed_in_the_next(clock: Clock) -> None:
    async def story(gathered: Gathering, commits: list[int]) -> None:
        gathered.add()
        gathered.add()
        assert commits == []
        await turn()
        assert commits == [1]
        await turn()
        assert commits == [1]

    run(story)


def test_one_that_comes_alone_after_a_pause_is_committed_when_all_is_handled(clock: Clock) -> None:
    async def story(gathered: Gathering, commits: list[int]) -> None:
        gathered.hold()
        gathered.add()
        assert commits == []
        gathered.settle()
        assert commits == [1]
        gathered.settle()
        await turn()
        assert commits == [1]
        clock.now += 0.001
        gathered.hold()
        gathered.add(patient=True)
        gathered.add()
        gathered.settle()
        assert commits == [1, 2]

    run(story)


@pytest.mark.parametrize(("count", "pause_s"), [(2, 0.001), (1, 0.00001)], ids=["two", "no pause"])
def test_where_there_is_more_to_do_a_turn_is_waited_for(clock: Clock, count: int, pause_s: float) -> None:
    async def story(gathered: Gathering, commits: list[int]) -> None:
        gathered.finish()
        clock.now += pause_s
        gathered.hold()
        for _ in range(count):
            gathered.add()
        gathered.settle()
        assert commits == [1]
        await turn()
        assert commits == [1, 2]

    run(story)


def test_after_many_at_once_some_have_to_come_alone(clock: Clock) -> None:
    """Until then each waits for a turn of the loop."""

    async def story(gathered: Gathering, commits: list[int]) -> None:
        gathered.add()
        gathered.add()
        await turn()
        for number in range(2, 2 + gathering.SINGLES):
            clock.now += 0.001
            gathered.hold()
            gathered.add()
            gathered.settle()
            assert len(commits) == number - 1
            await turn()
            assert len(commits) == number
        clock.now += 0.001
        gathered.hold()
        gathered.add()
        gathered.settle()
        assert len(commits) == 2 + gathering.SINGLES

    run(story)


def test_what_is_patient_is_not_pressed(clock: Clock) -> None:
    """Its own time commits it, or whatever is not patient."""

    async def whole() -> None:
        commits: list[str] = []
        slow = Gathering(lambda: commits.append("slow"), patience_s=1000.0)
        slow.hold()
        slow.add(patient=True)
        slow.settle()
        for _ in range(5):
            await turn()
        assert commits == []
        slow.add()
        await turn()
        assert commits == ["slow"]
        quick = Gathering(lambda: commits.append("quick"), patience_s=0.0)
        quick.add(patient=True)
        async with asyncio.timeout(60):
            while commits == ["slow"]:
                await turn()
        assert commits == ["slow", "quick"]

    asyncio.run(whole())


def test_what_goes_on_coming_is_waited_for_no_longer_than_a_while(clock: Clock) -> None:
    async def story(gathered: Gathering, commits: list[int]) -> None:
        for _ in range(3):
            for _ in range(MANY):
                gathered.add()
            await turn()
        assert commits == []
        clock.now += gathering.BUSY_S
        for _ in range(MANY):
            gathered.add()
        await turn()
        assert commits == [1]

    run(story)


def test_what_was_taken_elsewhere_is_not_committed(clock: Clock) -> None:
    async def story(gathered: Gathering, commits: list[int]) -> None:
        gathered.add()
        gathered.clear()
        gathered.hold()
        gathered.add()
        gathered.clear()
        gathered.settle()
        await turn()
        assert commits == []
        gathered.add()
        await turn()
        assert commits == [1]

    run(story)
