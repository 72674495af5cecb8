"""Services inside the broker that its engine leaves to others: files, inventory, and parts of its management."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from specwire.runtime.norfab.actions import Ask
from specwire.runtime.norfab.management import SERVICE as MANAGEMENT

logger = logging.getLogger(__name__)

AT_ONCE = 16
"""Questions that are worked on at a time; others wait in order."""

PATIENCE_S = 60.0
LOG_LINES = 1000


class Handler(Protocol):
    """Does the tasks of a service."""

    async def perform(self, task: str, args: bytes, kwargs: bytes, user: str) -> tuple[int, bytes]:
        """Return status and body of the answer; `args` and `kwargs` are JSON. What touches files runs off the loop."""


class Handlers:
    """Answers the engine's questions, a bounded number at a time, each in bounded time.

    Args:
        services: who does the tasks of which service.
        on_answer: called on the event loop with the number of a question, status and body.
    """

    def __init__(self, services: Mapping[str, Handler], on_answer: Callable[[int, int, bytes], None]) -> None:
        self._services, self._on_answer = services, on_answer
        self._waiting: deque[Ask] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, question: Ask) -> None:
        """Have it answered."""
        self._waiting.append(question)
        if len(self._tasks) < AT_ONCE:
            task = asyncio.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Answer no more."""
        self._waiting.clear()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            question = self._waiting.popleft()
            status, body = await self._answer(question)
            self._on_answer(question.question, status, body)

    async def _answer(self, question: Ask) -> tuple[int, bytes]:
        handler = self._services.get(question.service)
        try:
            if handler is None:
                return _failed(f"no service {question.service[:80]!r} here")
            async with asyncio.timeout(PATIENCE_S):
                return await handler.perform(question.task, question.args, question.kwargs, question.user)
        except TimeoutError:
            return _failed(f"{question.task[:80]!r} took longer than {PATIENCE_S:g} s")
        except (
            Exception
        ) as error:  # a fault of ours in one answer, told with its trace; the client hears of it too
            logger.exception("%s of %s has failed", question.task[:80], question.service[:80])
            return _failed(f"{question.task[:80]!r} has failed: {type(error).__name__}")


def _failed(why: str) -> tuple[int, bytes]:
    return 500, msgspec.json.encode({"status": "FAILED", "error": why, "errors": [why]})


class Management:
    """The tasks of the broker's management that need what the engine does not have.

    Attributes:
        tasks: which they are.
    """

    def __init__(self, lines: Callable[[], list[str]], inventory: Handler | None) -> None:
        self._lines, self._inventory = lines, inventory
        self.tasks = frozenset({"get_logs"} | ({"show_broker_inventory"} if inventory is not None else set()))

    async def perform(self, task: str, args: bytes, kwargs: bytes, user: str) -> tuple[int, bytes]:
        """See `Handler.perform`."""
        if task == "get_logs":
            return 200, msgspec.json.encode(self._lines())
        assert self._inventory is not None, "the engine asks for no other task"
        return await self._inventory.perform(task, args, kwargs, user)


def shell_tasks(services: Mapping[str, Handler]) -> dict[str, frozenset[str] | None]:
    """Return which tasks of which service are not the engine's, as it wants to know it."""
    return {
        name: handler.tasks if isinstance(handler, Management) else None for name, handler in services.items()
    }


__all__ = ["LOG_LINES", "MANAGEMENT", "Handler", "Handlers", "Management", "shell_tasks"]
