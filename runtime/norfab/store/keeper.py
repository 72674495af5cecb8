"""A database as the thread that writes it has it: opened when it is needed, and mended where it has failed.

A commit of many tickets that fails is tried again in halves, so that a ticket that cannot be kept costs no other one.
After an error that leaves in doubt what the system has of the file, the next attempt has a new connection; a
damaged file is moved aside, and the next attempt finds a new one.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from specwire.runtime.norfab.store.batch import Statement, carry_out, weigh
from specwire.runtime.norfab.store.database import (
    BRING_IN,
    BUSY_S,
    Durability,
    brought_in,
    is_damage,
    is_faulty,
    is_locked,
    move_aside,
    open_database,
    spoils_connection,
)
from specwire.runtime.norfab.store.errors import StoreError

logger = logging.getLogger(__name__)

_UNFIT = (sqlite3.Error, OverflowError, UnicodeError, ValueError)
"""What SQLite and its module raise for a statement that cannot be carried out."""

Rows = list[tuple[Any, ...]]

QUICK_PAGES = 3000
"""About so many pages are written quickly; then it is time that the log is worked off, which waits for the disk."""

PAGES_A_COMMIT = 5
ROWS_A_PAGE = 2
"""Rows in no order, as by uuid, change a page each, or several; those that are added at the end far fewer."""

PAGE_OCTETS = 4096


class Ticket(msgspec.Struct, frozen=True, gc=False):
    """Statements that are kept together or not at all.

    `octets` is about what they weigh, `others` how many are no INSERT.
    """

    number: int
    statements: Sequence[Statement]
    octets: int
    others: int

    @classmethod
    def of(cls, number: int, statements: Sequence[Statement]) -> Ticket:
        """Return a ticket that is weighed here."""
        octets = others = 0
        for sql, row in statements:
            octets += weigh(row)
            if not sql.startswith("INSERT"):
                others += 1
        return cls(number, statements, octets, others)


def as_one(tickets: Sequence[Ticket]) -> Ticket:
    """Return tickets of a redo log as one, with which it is noted that the database has them."""
    last = tickets[-1].number
    statements = [statement for ticket in tickets for statement in ticket.statements]
    octets = sum([ticket.octets for ticket in tickets])
    others = sum([ticket.others for ticket in tickets])
    return Ticket(last, [*statements, (BRING_IN, (1, last))], octets, others)


class Keeper:
    """Keeps tickets in one file; for one thread at a time.

    Args:
        path, schema, version, durability: see `open_database`.
        on_damaged: called, in the thread, with a sentence when a damaged file was moved aside.

    Attributes:
        commits: how many there were.
        moved_aside: where the file is that was found damaged last, None where none was.
    """

    def __init__(
        self,
        path: Path,
        schema: Sequence[str],
        version: int,
        durability: Durability,
        on_damaged: Callable[[str], None],
    ) -> None:
        self._path, self._schema, self._version, self._durability = path, schema, version, durability
        self._on_damaged = on_damaged
        self._connection: sqlite3.Connection | None = None
        self._quick_pages = 0
        self._patient = True
        self.commits = 0
        self.moved_aside: Path | None = None

    def open(self) -> None:
        """Open the file and check all of it.

        Raises:
            StoreError: it cannot be used.
        """
        try:
            self._connection = self._connect(check=True)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self._path} cannot be used: {error}") from None

    def keep(self, tickets: Sequence[Ticket]) -> Iterator[tuple[int, str]]:
        """Commit the tickets, as many at a time as is possible; yield those that cannot be kept, and why."""
        self._take_time()
        error = self._attempt(tickets)
        if error is None:
            return
        if len(tickets) == 1 or is_locked(error):
            yield from ((ticket.number, str(error)) for ticket in tickets)
            return
        # One of them is at fault, or there is no room for all.
        middle = len(tickets) // 2
        yield from self.keep(tickets[:middle])
        yield from self.keep(tickets[middle:])

    def brought_in(self) -> int:
        """Return up to which serial number the database has the records of its redo log; raises StoreError."""
        before = self.moved_aside
        try:
            [(serial,)] = self.ask(lambda connection: [(brought_in(connection),)])
        except StoreError:
            if self.moved_aside == before:
                raise
            [(serial,)] = self.ask(lambda connection: [(brought_in(connection),)])  # of the new one
        return int(serial)

    def bring_in(self, tickets: Sequence[Ticket]) -> tuple[Sequence[Ticket], str]:
        """Commit tickets of a redo log, whose numbers are serial numbers, in order; return which are left, and why.

        Those that the database has are passed over: an attempt that has failed may have done its work. One that could
        not be carried out whatever became of the disk is left out, and the log tells.
        """
        self._take_time()
        try:
            has = self.brought_in()
        except StoreError as trouble:
            return tickets, str(trouble)
        tickets = [ticket for ticket in tickets if ticket.number > has]
        if not tickets:
            return (), ""
        whole = [as_one(tickets)]
        error = self._attempt(whole)
        if error is not None and spoils_connection(error):
            error = self._attempt(whole)  # the file may be a new one now
        if error is None:
            return (), ""
        if not is_faulty(error):
            return tickets, str(error)
        if len(tickets) == 1:
            logger.error("%s: what was to be kept is left out: %s", self._path, error)
            return (), ""
        while tickets:
            left, why = self.bring_in(tickets[:1])
            if left:
                return tickets, why
            tickets = tickets[1:]
        return (), ""

    def keep_quickly(self, tickets: Sequence[Ticket], octets: int) -> bool:
        """Commit a few tickets of so many octets where that takes no time to speak of; return whether it was done.

        It is not where the file is locked or at fault, or where SQLite would have its log worked off.
        """
        connection = self._connection
        if connection is None or self._quick_pages >= QUICK_PAGES:
            return False
        if self._patient:
            try:
                self._be_patient(connection, patient=False)
            except sqlite3.Error:
                return False
        rows = len(tickets[0].statements)
        if len(tickets) > 1:
            rows = sum([len(ticket.statements) for ticket in tickets])
        self._quick_pages += PAGES_A_COMMIT + octets // PAGE_OCTETS + rows // ROWS_A_PAGE
        return self._attempt(tickets) is None

    def work_off(self) -> None:
        """Bring what was written quickly from the log into the file; a fault in this is told by the next commit."""
        if self._connection is not None and self._quick_pages >= QUICK_PAGES:
            with suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._quick_pages = 0

    def _take_time(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):  # the attempt meets the same fault
                self._be_patient(self._connection, patient=True)

    def _be_patient(self, connection: sqlite3.Connection, *, patient: bool) -> None:
        """Wait for others who have the file locked, or do not."""
        if patient is not self._patient:
            connection.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000) if patient else 0}")
            self._patient = patient

    def ask(self, question: Callable[[sqlite3.Connection], Rows]) -> Rows:
        """Return what the question finds; raises StoreError."""
        try:
            connection = self._connection = self._connection or self._connect()
            return question(connection)
        except (*_UNFIT, OSError, StoreError) as error:
            self._mend(error)
            raise StoreError(f"{self._path} cannot be read: {error}") from None

    def _attempt(self, tickets: Sequence[Ticket]) -> Exception | None:
        """Commit the tickets, all or none; return why not."""
        try:
            connection = self._connection
            if connection is None:
                connection = self._connection = self._connect()
            if len(tickets) == 1 and len(statements := tickets[0].statements) == 1:
                # A transaction of its own, in a third of the calls.
                sql, row = statements[0]
                connection.execute(sql, row)
            else:
                self._commit(connection, tickets)
        except (*_UNFIT, OSError, StoreError) as error:
            self._mend(error)
            return error
        self.commits += 1
        return None

    @staticmethod
    def _commit(connection: sqlite3.Connection, tickets: Sequence[Ticket]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            carry_out(connection, [statement for ticket in tickets for statement in ticket.statements])
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise

    def _mend(self, error: Exception) -> None:
        """See to it that the next attempt has a connection that can be trusted, to a file that is whole."""
        if not spoils_connection(error):
            return
        self.close()
        if is_damage(error):
            with suppress(StoreError, OSError, sqlite3.Error):  # else the next attempt says so
                self._begin_anew(str(error))

    def _connect(self, *, check: bool = False) -> sqlite3.Connection:
        try:
            return open_database(self._path, self._schema, self._version, self._durability, check=check)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            self._begin_anew(str(error))
        return open_database(self._path, self._schema, self._version, self._durability)

    def _begin_anew(self, fault: str) -> None:
        self.moved_aside = aside = move_aside(self._path)
        self._on_damaged(
            f"{self._path} is damaged ({fault}): it was moved to {aside}, and a new one is begun"
        )

    def close(self) -> None:
        """Close the connection, if there is one; the next attempt makes another."""
        connection, self._connection = self._connection, None
        self._patient = True
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
