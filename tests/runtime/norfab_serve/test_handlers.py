"""Services inside the broker that its engine leaves to others: each question gets one answer, in bounded time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from specwire.runtime.norfab.actions import Ask
from specwire.runtime.norfab.serve import handlers
from specwire.runtime.norfab.serve.handlers import AT_ONCE, Handler, Handlers, Management, shell_tasks


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story, which has a minute."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(bounded())


class Slow:
    """Answers when it is let."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.at_once = self.most = 0

    async def perform(self, task: str, args: bytes, kwargs: bytes, user: str) -> tuple[int, bytes]:
        """Wait, and say what was asked."""
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.gate.wait()
        self.at_once -= 1
        if task == "fail":
            raise RuntimeError("a secret of the inside")
        return 200, json.dumps([task, args.decode(), kwargs.decode(), user]).encode()


def ask(number: int, task: str = "t", service: str = "slow") -> Ask:
    """Return a question."""
    return Ask(number, service, task, b"[1]", b"{}", "ada")


class Answers:
    """What was answered."""

    def __init__(self) -> None:
        self.by_question: dict[int, tuple[int, Any]] = {}
        self._changed = asyncio.Event()

    def take(self, question: int, status: int, body: bytes) -> None:
        """Take one; there is only one to each question."""
        assert question not in self.by_question
        self.by_question[question] = status, json.loads(body)
        self._changed.set()

    async def until(self, number: int) -> None:
        """Wait for so many."""
        while len(self.by_question) < number:
            self._changed.clear()
            await self._changed.wait()


def test_questions_are_answered_a_bounded_number_at_a_time() -> None:
    """All are, and no more are worked on at once than is allowed."""

    async def story() -> None:
        slow, answers = Slow(), Answers()
        work = Handlers({"slow": slow}, answers.take)
        for number in range(100):
            work.ask(ask(number))
        await asyncio.sleep(0)
        slow.gate.set()
        await answers.until(100)
        assert answers.by_question[7] == (200, ["t", "[1]", "{}", "ada"])
        assert slow.most == AT_ONCE
        await work.close()

    run(story)


def test_fault_of_a_handler_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    """The client hears that it failed and not of what; the log has the trace, and the next question is answered."""

    async def story() -> None:
        slow, answers = Slow(), Answers()
        slow.gate.set()
        work = Handlers({"slow": slow}, answers.take)
        work.ask(ask(1, "fail"))
        work.ask(ask(2))
        work.ask(ask(3, service="none"))
        await answers.until(3)
        status, body = answers.by_question[1]
        assert status == 500
        assert "RuntimeError" in body["errors"][0]
        assert "secret" not in json.dumps(body)
        assert answers.by_question[2][0] == 200
        assert answers.by_question[3][0] == 500
        await work.close()

    run(story)
    assert "a secret of the inside" in caplog.text


def test_handler_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its question is answered with 500, and the place is free."""
    monkeypatch.setattr(handlers, "PATIENCE_S", 0.01)

    async def story() -> None:
        slow, answers = Slow(), Answers()
        work = Handlers({"slow": slow}, answers.take)
        for number in range(AT_ONCE + 1):
            work.ask(ask(number))
        await answers.until(AT_ONCE + 1)
        assert {status for status, _ in answers.by_question.values()} == {500}
        assert "longer" in answers.by_question[0][1]["errors"][0]
        await work.close()

    run(story)


def test_closing_ends_what_is_under_way() -> None:
    """Nothing is answered after it."""

    async def story() -> None:
        answers = Answers()
        work = Handlers({"slow": Slow()}, answers.take)
        for number in range(50):
            work.ask(ask(number))
        await asyncio.sleep(0)
        await work.close()
        assert answers.by_question == {}

    run(story)


def test_management_shows_log_and_inventory() -> None:
    """The log is the newest lines; the inventory is asked for only where there is one."""

    async def story() -> None:
        slow = Slow()
        slow.gate.set()
        with_inventory, without = Management(lambda: ["a", "b"], slow), Management(list, None)
        assert await without.perform("get_logs", b"[]", b"{}", "") == (200, b"[]")
        assert await with_inventory.perform("get_logs", b"[]", b"{}", "") == (200, b'["a","b"]')
        status, body = await with_inventory.perform("show_broker_inventory", b"[]", b'{"name":"w"}', "ada")
        assert (status, json.loads(body)[2]) == (200, '{"name":"w"}')
        assert without.tasks == {"get_logs"}

    run(story)


def test_engine_keeps_the_tasks_that_are_its_own() -> None:
    """Of management only some tasks are the shell's, of another service all."""

    class Other:
        async def perform(self, task: str, args: bytes, kwargs: bytes, user: str) -> tuple[int, bytes]:
            return 200, b"{}"

    other: Handler = Other()
    services = {"x": other, "mmi.service.broker": Management(list, other)}
    assert shell_tasks(services) == {
        "x": None,
        "mmi.service.broker": frozenset({"get_logs", "show_broker_inventory"}),
    }
