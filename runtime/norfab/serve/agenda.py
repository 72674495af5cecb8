"""What a broker has to do, in order, and no more of it before the event loop gets its turn than is bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from specwire.runtime.norfab.serve.order import Mail, Work

AT_A_TIME = 512
"""What is done in a turn; of a mail each command counts."""

FEW = 4
"""With so many what is sent leaves at once; with more it gathers."""


class Agenda:
    """The queue of what one broker has to do.

    It is done at once where nothing waits, which saves a turn of the loop for each message.

    Args:
        do: does one of it; it may add more.
        gather, settle: called before and after more than a `FEW` that are performed in a row.
    """

    def __init__(
        self,
        do: Callable[[Work], None],
        gather: Callable[[], None] = lambda: None,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self._do, self._gather, self._settle = do, gather, settle
        self._todo: deque[Work] = deque()
        self._at_work = self._closed = False
        self._turn: asyncio.Handle | None = None

    def add(self, works: Iterable[Work]) -> None:
        """Do these after what is there already; nothing once closed."""
        if self._closed:
            return
        self._todo.extend(works)
        if self._todo and not self._at_work and self._turn is None:
            self._take_turn()

    def add_one(self, work: Work) -> None:
        """Do this one after what is there already; nothing once closed."""
        if self._todo or self._at_work or self._closed:
            self.add((work,))
            return
        self._at_work = True
        try:
            self._do(work)
        finally:
            self._at_work = False
            if self._todo:
                self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def close(self) -> None:
        """Do nothing any more."""
        self._closed = True
        self._todo.clear()
        if self._turn is not None:
            self._turn.cancel()

    def _take_turn(self) -> None:
        self._turn, self._at_work = None, True
        todo, do = self._todo, self._do
        many = len(todo) > FEW
        try:
            if many:
                self._gather()
            left = AT_A_TIME
            while todo and left > 0:
                work = todo.popleft()
                left -= len(work.commands) if type(work) is Mail else 1
                do(work)
        finally:  # a fault of ours in one action is told by the loop, and costs no other peer
            try:
                if many:
                    self._settle()  # what comes of it is not sent before the rest of what has gathered
            finally:
                self._at_work = False
                if todo:
                    self._turn = asyncio.get_running_loop().call_soon(self._take_turn)
