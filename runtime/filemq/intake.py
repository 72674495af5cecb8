"""Content on one connection: is it within the credit, is a command missing, and what becomes of it.

Our own server of FILEMQ v2 counts all its CHEEZBURGER commands from 0 (the specification does not say what `sequence` counts), so
a gap means that something was lost, and only a new connection with RESYNC mends that. A server is known to be
ours by the size in its headers.
"""

from __future__ import annotations

from collections.abc import Callable

from specwire.generated.filemq import Cheezburger
from specwire.runtime.filemq.actions import DiscardFile, WriteChunk
from specwire.runtime.filemq.credit import CreditWindow
from specwire.runtime.filemq.dialect import Habits
from specwire.runtime.filemq.incoming import Incoming, Step, read_headers
from specwire.runtime.filemq.progress import UnderWay
from specwire.runtime.filemq.resuming import Resuming


class OverrunError(Exception):
    """The server sent more than it had credit for."""


class GapError(Exception):
    """A command of the server is missing."""


class Intake:
    """The content side of one connection.

    Args:
        window_octets: content that may be under way or wait for the disk.
        screen: judges the name of a file; see `Incoming`.
        resuming: judges what is to be kept, and what goes on.
    """

    def __init__(
        self,
        connection: int,
        *,
        window_octets: int,
        habits: Habits,
        screen: Callable[[str], str | None],
        resuming: Resuming,
    ) -> None:
        self._credit = CreditWindow(habits.credit_octets or window_octets)
        self._incoming = Incoming(connection, screen, resuming=resuming)
        self._counts_commands = habits.counts_commands
        self._expected = 0
        self._missing: int | None = None
        self._counted = False

    @property
    def pending_octets(self) -> int:
        """Content that is received and not done with."""
        return self._credit.pending

    @property
    def under_way(self) -> UnderWay | None:
        """See `Incoming.under_way`."""
        return self._incoming.under_way

    def take(self, command: Cheezburger) -> list[Step]:
        """Return what is to be done because of one command; raises OverrunError or GapError."""
        octets = len(command.chunk)
        if not self._credit.receive(octets):
            raise OverrunError(f"the server sent {-self._credit.outstanding} octets beyond its credit")
        self._check_sequence(command)
        steps = self._incoming.take(command)
        if not any(isinstance(step, WriteChunk) for step in steps):
            self._credit.finish(octets)  # thrown away; content that is written comes back by `finish`
        return steps

    def finish(self, octets: int) -> None:
        """These octets are on the disk, or could not be written."""
        self._credit.finish(octets)

    def grant(self) -> int:
        """Return the credit to send now, 0 for none."""
        return self._credit.grant()

    def stop(self) -> list[DiscardFile]:
        """The connection ends: return what is to be done about the file under way."""
        return self._incoming.stop()

    def _check_sequence(self, command: Cheezburger) -> None:
        if not self._counts_commands:
            return
        if command.sequence != self._expected and self._missing is None:
            self._missing = self._expected
        self._expected = command.sequence + 1
        if self._missing is None and self._counted:
            return
        self._counted = self._counted or read_headers(command.headers).size is not None
        if self._counted and self._missing is not None:
            raise GapError(f"command {self._missing} of the server is missing")
