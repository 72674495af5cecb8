"""Tickets that are durable by a redo log, and not committed yet.

A peer that does one thing at a time waits for each commit: five of them are on the way of one job. So a ticket that is put
alone is appended to the redo log, which makes it durable, and is committed a little later, with those that came after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from specwire.runtime.norfab.store.keeper import Ticket
from specwire.runtime.norfab.store.redo import RedoLog

logger = logging.getLogger(__name__)

SECURED_S = 0.1
"""How long such a ticket waits to be committed; so far a reader from outside is behind."""

AGAIN_S = 1.0
"""After so long it is tried again, where it could not be committed."""


class Secured:
    """The tickets, in order; to be used on one event loop.

    Args:
        bring_in: commits them, or has them committed; called when that is due.

    Attributes:
        tickets: what is to be committed before all else, by serial number; see `Keeper.bring_in`.
        octets, others: of all of them; see `Ticket`.
    """

    def __init__(self, bring_in: Callable[[], None]) -> None:
        self.tickets: list[Ticket] = []
        self.octets = self.others = 0
        self._bring_in = bring_in
        self._due: asyncio.TimerHandle | None = None
        self._log: RedoLog | None = None

    def open(self, file: Path, serial: int) -> None:
        """Take tickets from now on, where the file can be made; before that none is taken.

        Args:
            file: the redo log, of which nothing is needed any more.
            serial: what the first record has as its number.
        """
        try:
            self._log = RedoLog(file, serial)
        except OSError as error:
            logger.warning("%s cannot be made, so each commit is waited for: %s", file, error)

    def take(self, ticket: Ticket) -> bool:
        """Make a ticket durable; return whether that was done."""
        if self._log is None or not (serial := self._log.append(ticket.statements)):
            return False
        self.tickets.append(Ticket(serial, ticket.statements, ticket.octets, ticket.others))
        self.octets += ticket.octets
        self.others += ticket.others
        if self._due is None:
            self._remind(SECURED_S)
        return True

    def hand_out(self) -> list[Ticket]:
        """Return the tickets; who has them now commits them, and says so (`committed`) before another one is taken."""
        tickets, self.tickets = self.tickets, []
        self.octets = self.others = 0
        self._forget()
        return tickets

    def committed(self) -> None:
        """All that was taken is committed."""
        self.hand_out()
        if self._log is not None:
            self._log.clear()

    def try_again(self) -> None:
        """Those that were handed out could not be committed: call `bring_in` once more in a while."""
        self._forget()
        self._remind(AGAIN_S)

    def close(self, *, empty: bool) -> None:
        """Take no more; a log that is empty is removed."""
        self._forget()
        log, self._log = self._log, None
        if log is not None:
            log.close(remove=empty)

    def _remind(self, seconds: float) -> None:
        self._due = asyncio.get_running_loop().call_later(seconds, self._remember)

    def _remember(self) -> None:
        self._due = None
        self._bring_in()

    def _forget(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
