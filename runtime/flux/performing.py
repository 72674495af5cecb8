"""The actions of a broker's engine, performed in order, and the times that the engine waits for."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from specwire.generated.errors import EncodeError
from specwire.runtime.flux.actions import Action, ToClient
from specwire.runtime.flux.broker import BrokerEngine

logger = logging.getLogger(__name__)


class Performer:
    """Performs at once, and in order.

    Where an action makes something else happen, such as a child that turns out to be gone, the actions for it come
    after those that were decided before. A message that cannot be put on the wire is logged, and the engine told.

    Args:
        engine: is told when a time has come that it waits for.
        ways: what performs an action, by its class.
    """

    def __init__(self, engine: BrokerEngine, ways: Mapping[type[Action], Callable[[Any], None]]) -> None:
        self._engine, self._ways = engine, ways
        self._loop = asyncio.get_running_loop()
        self._todo: deque[Action] = deque()
        self._performing = False
        self._time_may_differ = True
        self._due = inf
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Handle | None = None

    def perform(self, actions: list[Action]) -> None:
        """Perform these, or where that is being done, let them follow."""
        self._time_may_differ = True
        self.perform_now(actions)
        if self._looking is None:  # once in a turn of the loop: many messages come together
            self._looking = self._loop.call_soon(self.look_at_time)

    def perform_now(self, actions: list[Action]) -> None:
        """Perform as `perform` does, for what a client has said: the caller sees to `look_at_time` when that is all done."""
        todo, ways = self._todo, self._ways
        todo.extend(actions)
        if self._performing:
            return
        self._performing = True
        try:
            while todo:
                action = todo.popleft()
                kind = type(action)
                if (
                    kind is not ToClient
                ):  # what only clients hear of has nothing to do with the tree, and its times
                    self._time_may_differ = True
                try:
                    ways[kind](action)
                except EncodeError as error:  # another edition may have no room for what the engine says
                    logger.error("a message could not be sent: %s", error)
                    todo.extend(self._engine.unsendable(action, str(error), self._loop.time()))
        finally:
            self._performing = False

    def close(self) -> None:
        """Wait for no time any more."""
        for handle in (self._timer, self._looking):
            if handle is not None:
                handle.cancel()

    def look_at_time(self) -> None:
        """See to it that the engine is told when the time has come that it waits for."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        if not self._time_may_differ:
            return
        self._time_may_differ = False
        if self._engine.deadline >= self._due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = self._engine.deadline
        self._timer = self._loop.call_at(self._due, self._on_time)

    def _on_time(self) -> None:
        self._due = inf
        self.perform(self._engine.tick(self._loop.time()))
