"""Writes a database, in a thread: what gathers while it commits is the next commit.

Where a commit does not wait for the disk, and there is not much to commit and nothing before it, the event loop does it itself:
for a few tickets that takes some 20 µs and for hundreds a millisecond, and to wake the thread and to be woken by it takes
several times the former, as both want the interpreter. A ticket that is put alone is only appended to a redo log there, and is
committed with others soon after (see `Secured`); a question, and whatever else is committed, comes after it.

A ticket is a number and the statements that belong together: all of them are committed or none. The owner of a `Writer`
puts tickets on its event loop and hears there what became of them, in this order: each ticket that could not be kept,
with the reason, then the last ticket of the commit, up to which everything else is durable.

A ticket that fails costs no other one. On a full disk each ticket fails by itself, and the next one that finds room is
kept; nothing has to be started again. A file that turns out to be damaged is moved aside and begun anew, which is told.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from specwire.runtime.norfab.store.batch import Parameters
from specwire.runtime.norfab.store.database import Durability
from specwire.runtime.norfab.store.errors import StoreError
from specwire.runtime.norfab.store.gathering import Gathering
from specwire.runtime.norfab.store.keeper import Keeper, Rows, Ticket, as_one
from specwire.runtime.norfab.store.labour import Labour, Question
from specwire.runtime.norfab.store.lock import StoreLock
from specwire.runtime.norfab.store.opening import Salvage, open_store
from specwire.runtime.norfab.store.redo import redo_file
from specwire.runtime.norfab.store.secured import Secured

logger = logging.getLogger(__name__)

MAX_WAITING = 200_000
MAX_OCTETS = 256 << 20

QUICK_TICKETS = 512
QUICK_OCTETS = 512 * 1024
QUICK_OTHERS = 8
"""What is committed on the event loop, where a commit does not wait for the disk: rows that are added, within a millisecond or
two, and few other statements, as a deletion may be of many rows."""

CLOSE_S = 30.0
"""How long a disk that answers nothing may keep a peer from ending."""


class Writer:
    """Writes one database; `open` before anything else, `close` at the end.

    Args:
        path: the file; its folder is made where there is none.
        schema: statements that make the tables of a new file.
        durability: ``process`` is safe against the end of the process, ``full`` against the loss of power as well.
        on_committed: called on the event loop with a ticket: it and all before it that did not fail are durable.
        on_failed: called on the event loop with a ticket that was not kept, and the reason.
        on_damaged: called with a sentence when a damaged file was moved aside; without it the log tells.
        salvage: what becomes of a file that was found damaged when it was opened; without it nothing.
        version: of the schema; a file of another version is refused.
        max_waiting, max_octets: what may wait for the disk; beyond it tickets fail.

    Attributes:
        gathering: when what was put is committed.
    """

    def __init__(
        self,
        path: Path,
        schema: Sequence[str],
        durability: Durability = "process",
        on_committed: Callable[[int], None] = lambda ticket: None,
        on_failed: Callable[[int, str], None] = lambda ticket, reason: None,
        *,
        on_damaged: Callable[[str], None] | None = None,
        salvage: Salvage | None = None,
        version: int = 1,
        max_waiting: int = MAX_WAITING,
        max_octets: int = MAX_OCTETS,
    ) -> None:
        self.path = path
        self._quick = durability == "process"
        self._keeper = Keeper(path, schema, version, durability, self._tell_damage)
        self._on_committed, self._on_failed = on_committed, on_failed
        self._on_damaged, self._salvage = on_damaged or logger.warning, salvage
        self._max_waiting, self._max_octets = max_waiting, max_octets
        self._gathered: list[Ticket] = []
        self._weight = self._others = 0  # of what has gathered
        self.gathering = Gathering(self._commit_gathered)
        self._labour = Labour(path, self._keeper, self._call, self._hear_thread, self._hear_of_secured)
        self._octets = 0
        self._refused: list[tuple[int, str]] = []
        self._handed_over = 0  # tickets that the thread has, or of which it has not told yet
        self._secured = Secured(self._bring_in)
        self._in_debt = False  # the same of tickets that were secured
        self._running = False

    @property
    def commits(self) -> int:
        """How many there were."""
        return self._keeper.commits

    @property
    def moved_aside(self) -> Path | None:
        """Where the file is that was found damaged last, None where none was."""
        return self._keeper.moved_aside

    @property
    def waiting(self) -> int:
        """Tickets and questions that wait for the thread."""
        return len(self._gathered) + len(self._labour.queue)

    async def open(self) -> None:
        """Open the database, checking all of it, and begin to write.

        Raises:
            StoreInUseError: another process has it open.
            StoreVersionError: the file is of another version.
            StoreError: it cannot be used for another reason.
        """
        self._loop = asyncio.get_running_loop()
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path.parent} cannot be made: {error.strerror}") from None
        self._file_lock = StoreLock(self.path)
        try:
            await asyncio.to_thread(self._open)
        except BaseException:
            self._file_lock.release()
            raise
        self._labour.start()
        self._running = True

    def _open(self) -> None:
        last = open_store(self._keeper, self.path, self._salvage)
        if self._quick:
            self._secured.open(redo_file(self.path), last + 1)

    def put(self, tickets: Sequence[Ticket], *, patient: bool = False) -> None:
        """Have each of the tickets committed, whose numbers count up. Returns at once.

        Args:
            patient: more is about to come, and this may wait for it a moment; see `Gathering`.
        """
        count, octets, others = len(tickets), 0, 0
        for ticket in tickets:
            octets += ticket.octets
            others += ticket.others
        gathered = self._gathered
        if (
            not self._running
            or self._octets + octets > self._max_octets
            or len(gathered) + len(self._labour.queue) + count > self._max_waiting
        ) and (full := self._full(count, octets)):
            if count == 1:
                self.refuse(tickets[0].number, full)
                return
            for ticket in tickets:  # for some of them there may be room
                self.put([ticket], patient=patient)
            return
        gathered += tickets
        self._octets += octets
        self._weight += octets
        self._others += others
        self.gathering.add(count, patient=patient)

    def refuse(self, ticket: int, reason: str) -> None:
        """Tell that a ticket cannot be kept: in the next turn of the loop, or before a later one is told to be."""
        if not self._refused:
            self._loop.call_soon(self._tell_refused)
        self._refused.append((ticket, reason))

    async def read(self, sql: str, parameters: Parameters = ()) -> Rows:
        """Return the rows of a question, asked when everything that was put before is done.

        Raises:
            StoreError: the database cannot be read.
        """
        return await self._ask(lambda connection: connection.execute(sql, parameters).fetchall())

    async def shrink(self, pages: int) -> None:
        """Give up to so many pages that are free back to the system.

        Raises:
            StoreError: the database cannot be written.
        """
        # A statement that has rows without columns: of the module's methods only this one takes all of them.
        await self._ask(lambda connection: [*connection.executescript(f"PRAGMA incremental_vacuum({pages})")])

    async def close(self) -> None:
        """Write what waits, and close. What comes of it is still told. May be called twice."""
        self._hand_over()
        running, self._running = self._running, False
        if running:
            self._labour.finish()
            stuck = not await self._labour.join(CLOSE_S)
            await asyncio.sleep(0)  # what the thread said last is heard
            self._secured.close(empty=not (stuck or self._in_debt))
            if stuck:  # and it may commit still: until this process ends nobody else has the file
                logger.error("%s: the disk has not taken what waits within %g s", self.path, CLOSE_S)
            else:
                self._file_lock.release()

    def _commit_gathered(self) -> None:
        """Commit what has gathered: here where it is not much and does not wait, else in the thread."""
        gathered, octets = self._gathered, self._weight
        if (
            gathered
            and self._is_free
            and (
                (len(gathered) == 1 and self._secured.take(gathered[0]))
                or (len(gathered) <= QUICK_TICKETS and self._commit_here(gathered, octets))
            )
        ):
            self._gathered = []
            self._weight = self._others = 0
            self._hear((), gathered[-1].number, octets)
        else:
            self._hand_over()

    @property
    def _is_free(self) -> bool:
        """Whether everything that was put before what has gathered is durable, and no commit waits for the disk."""
        return (
            self._quick and self._running and not (self._handed_over or self._in_debt or self._labour.queue)
        )

    def _commit_here(self, gathered: Sequence[Ticket], octets: int) -> bool:
        """Commit what is secured and what has gathered, where that does not wait; return whether it was done."""
        secured = self._secured
        tickets = [as_one(secured.tickets), *gathered] if secured.tickets else gathered
        octets += secured.octets
        if (
            # The thread was found to have nothing to take, and so it rests until this loop gives it something.
            not self._labour.resting
            or octets > QUICK_OCTETS
            or self._others + secured.others > QUICK_OTHERS
            or not self._keeper.keep_quickly(tickets, octets)
        ):
            return False
        if secured.tickets:
            secured.committed()
        return True

    def _bring_in(self) -> None:
        """Commit what is secured, or have the thread try again to."""
        if self._in_debt:
            self._labour.try_again()
        elif not (self._is_free and self._commit_here((), 0)):
            self._hand_over()

    def _hand_over(self) -> None:
        """Give the thread what is secured, and what has gathered."""
        self.gathering.clear()
        gathered, self._gathered = self._gathered, []
        self._weight = self._others = 0
        secured = self._secured.hand_out()
        if gathered or secured:
            self._handed_over += len(gathered)
            self._in_debt = self._in_debt or bool(secured)  # while it is, no other ticket is secured
            self._labour.give(gathered, secured)

    async def _ask(self, ask: Callable[[sqlite3.Connection], Rows]) -> Rows:
        answer: asyncio.Future[Rows] = self._loop.create_future()
        self._hand_over()
        if not self._running:
            raise StoreError(f"{self.path} is closed")
        self._labour.ask(Question(ask, answer))
        return await answer

    def _full(self, tickets: int, octets: int) -> str:
        """Return why so many tickets of so many octets are not taken, empty where they are."""
        if not self._running:
            return "the store is closed"
        waiting = len(self._gathered) + len(self._labour.queue)
        # One ticket by itself is taken, however large.
        too_large = self._octets + octets > self._max_octets and (self._octets or tickets > 1)
        if waiting + tickets > self._max_waiting or too_large:
            return "the disk is too slow for what comes"
        return ""

    # --- what the thread says

    def _tell_damage(self, sentence: str) -> None:
        self._call(partial(self._on_damaged, sentence))

    def _call(self, callback: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(callback)

    def _hear_thread(
        self, tickets: int, failures: Sequence[tuple[int, str]], last: int | None, octets: int
    ) -> None:
        self._handed_over -= tickets
        self._hear(failures, last, octets)

    def _hear_of_secured(self, trouble: str) -> None:
        if not trouble:
            self._in_debt = False
            self._secured.committed()
            return
        logger.warning(
            "%s does not take what is kept in %s meanwhile: %s", self.path, redo_file(self.path), trouble
        )
        if self._running:
            self._secured.try_again()

    def _tell_refused(self) -> None:
        refused, self._refused = self._refused, []
        for ticket, reason in refused:
            self._on_failed(ticket, reason)

    def _hear(self, failures: Sequence[tuple[int, str]], last: int | None, octets: int) -> None:
        if self._refused:
            self._tell_refused()
        for ticket, reason in failures:
            self._on_failed(ticket, reason)
        self._octets -= octets
        if last is not None:
            self._on_committed(last)
