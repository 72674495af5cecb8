"""The thread of a store: it commits what it is given, and answers questions, in the order in which they come.

What was secured in a redo log comes before all else: as long as the disk does not take it, nothing else is committed or read. What
the thread has to tell it tells on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.store.keeper import Keeper, Rows, Ticket

logger = logging.getLogger(__name__)

BATCH = 4096
BATCH_OCTETS = 8 << 20
"""Of one commit at most, but for its last ticket: who waits for the first ticket also waits for the last."""


class Question(NamedTuple):
    """What `ask` finds is the answer; StoreError where the database cannot be read."""

    ask: Callable[[sqlite3.Connection], Rows]
    answer: asyncio.Future[Rows]


class Labour:
    """The thread; `start` before anything else.

    Args:
        path: the database, for what is said of it.
        keeper: is used by the thread alone, unless it rests; closed at the end.
        call: has a function called on the event loop.
        on_kept: called there when so many tickets were committed but for some; with what has failed and why, the last ticket up to which
            everything else is durable (None: nothing is), and the octets of all of them.
        on_brought_in: called there when what was secured is committed; with a text, where it cannot be yet.

    Attributes:
        queue: what the thread has not taken yet.
        resting: it waits to be given something. Who finds `queue` empty and then this, on the loop that gives, may use the keeper
            until it gives something.
    """

    def __init__(
        self,
        path: Path,
        keeper: Keeper,
        call: Callable[[Callable[[], object]], None],
        on_kept: Callable[[int, Sequence[tuple[int, str]], int | None, int], None],
        on_brought_in: Callable[[str], None],
    ) -> None:
        self.queue: deque[Ticket | Question] = deque()
        self.resting = False
        self._path, self._keeper, self._call = path, keeper, call
        self._on_kept, self._on_brought_in = on_kept, on_brought_in
        self._secured: Sequence[Ticket] = ()
        self._due = self._closing = False
        self._wanted = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=f"store {path.name}", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def give(self, tickets: Sequence[Ticket], secured: Sequence[Ticket]) -> None:
        """Have tickets committed, before them those that are `secured`, of which the thread has none then."""
        with self._wanted:
            if secured:
                self._secured, self._due = secured, True
            self.queue.extend(tickets)
            if self.resting:
                self._wanted.notify()

    def ask(self, question: Question) -> None:
        """Have a question answered when everything that was given before is done."""
        with self._wanted:
            self.queue.append(question)
            self._wanted.notify()

    def try_again(self) -> None:
        """Have what is secured committed, though nothing else is to be done."""
        with self._wanted:
            self._due = True
            self._wanted.notify()

    def finish(self) -> None:
        """End when everything is done that was given."""
        with self._wanted:
            self._closing = True
            self._wanted.notify()

    async def join(self, seconds: float) -> bool:
        """Wait so long at most until the thread has ended; return whether it has."""
        await asyncio.to_thread(self._thread.join, seconds)
        return not self._thread.is_alive()

    # --- in the thread

    def _work(self) -> None:
        while True:
            with self._wanted:
                while not (self.queue or self._due or self._closing):
                    self.resting = True
                    self._wanted.wait()
                self.resting = False
                if not (self.queue or self._due):
                    break
                tickets, question = self._take()
                self._due = False
            try:
                trouble = self._bring_in() if self._secured else ""
                if tickets:
                    self._commit(tickets, trouble)
                if question is not None:
                    self._answer(question, trouble)
            except Exception as error:  # our own fault: nobody is left waiting for it
                logger.exception("what a store was to write could not be handled")
                reason = f"a fault of the store: {error!r}"
                self._tell(tickets, [(ticket.number, reason) for ticket in tickets], None)
                if question is not None:
                    self._call(partial(_refuse, question.answer, StoreError(reason)))
                if self._secured:
                    self._call(partial(self._on_brought_in, reason))
        self._keeper.close()

    def _take(self) -> tuple[list[Ticket], Question | None]:
        """Return the tickets of the next commit, and the question that comes after them."""
        tickets: list[Ticket] = []
        octets = 0
        while self.queue and len(tickets) < BATCH and octets < BATCH_OCTETS:
            next_one = self.queue.popleft()
            if isinstance(next_one, Question):
                return tickets, next_one
            tickets.append(next_one)
            octets += next_one.octets
        return tickets, None

    def _bring_in(self) -> str:
        self._secured, trouble = self._keeper.bring_in(self._secured)
        self._call(partial(self._on_brought_in, trouble))
        return trouble

    def _commit(self, tickets: list[Ticket], trouble: str) -> None:
        failures = [(ticket.number, trouble) for ticket in tickets] if trouble else self._keeper.keep(tickets)
        self._tell(tickets, [*failures], tickets[-1].number)
        self._keeper.work_off()

    def _answer(self, question: Question, trouble: str) -> None:
        try:
            if trouble:
                raise StoreError(f"{self._path} does not take what is to be kept: {trouble}")
            rows = self._keeper.ask(question.ask)
        except StoreError as error:
            self._call(partial(_refuse, question.answer, error))
        else:
            self._call(partial(_give, question.answer, rows))

    def _tell(self, tickets: Sequence[Ticket], failures: Sequence[tuple[int, str]], last: int | None) -> None:
        octets = sum(ticket.octets for ticket in tickets)
        self._call(partial(self._on_kept, len(tickets), failures, last, octets))


def _give(answer: asyncio.Future[Rows], rows: Rows) -> None:
    if not answer.done():
        answer.set_result(rows)


def _refuse(answer: asyncio.Future[Rows], error: StoreError) -> None:
    if not answer.done():
        answer.set_exception(error)
