"""What waits for the disk: acknowledgements, jobs on their way to a worker, results on their way to a client.

Nothing is acknowledged or passed on before the record of it is durable. Whatever has to follow a record is put here
with it, as a function; it runs when the store says that the record's ticket is committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from specwire.runtime.norfab.actions import Action, Store
from specwire.runtime.norfab.records import Record

_Held = tuple[int, Callable[[], None] | None, Callable[[str], None] | None]
"""A ticket, what runs when it is durable, and what where it cannot be kept."""


class Ledger:
    """Tickets in order, and what each holds back.

    Attributes:
        held: those that are not durable yet.
        ticket: the last one.
    """

    __slots__ = ("_out", "held", "ticket")

    def __init__(self, out: list[Action]) -> None:
        self._out = out
        self.held: deque[_Held] = deque()
        self.ticket = 0

    def store(
        self,
        *records: Record,
        then: Callable[[], None] | None = None,
        otherwise: Callable[[str], None] | None = None,
    ) -> None:
        """Have `records` kept; `then` runs when they are durable, `otherwise` where they cannot be kept."""
        self.ticket = ticket = self.ticket + 1
        self._out.append(Store(ticket, records))
        self.held.append((ticket, then, otherwise))

    def committed(self, ticket: int) -> None:
        """Everything up to `ticket` is durable."""
        held = self.held
        while held and held[0][0] <= ticket:
            _, then, _ = held.popleft()
            if then is not None:
                then()

    def failed(self, ticket: int, reason: str) -> bool:
        """The records of `ticket` were not kept; return whether it was open."""
        for held in self.held:
            number, then, otherwise = held
            if number == ticket:
                self.held.remove(held)
                if otherwise is not None:
                    otherwise(reason)
                elif then is not None:
                    then()
                return True
        return False
