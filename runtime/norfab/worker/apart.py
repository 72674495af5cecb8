"""A coroutine with context variables of its own, in whatever task of asyncio it is awaited."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextvars import copy_context
from functools import partial
from typing import Any


class Apart:
    """Await this in place of a coroutine: what that sets is not there afterwards.

    A task of asyncio has one context for all that it runs, and a new task for each coroutine takes a turn of the loop.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        """Return what the coroutine returns; raise what it raises."""
        context, coroutine = copy_context(), self._coroutine
        step = go_on = partial(coroutine.send, None)
        while True:
            try:
                awaited = context.run(step)
            except StopIteration as stop:
                return stop.value
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - the coroutine is to have it, as from any await
                step = partial(coroutine.throw, error)
            else:
                step = go_on
