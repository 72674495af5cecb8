"""What waits for the disk: acknowledgements, jobs on their way to a worker, results on their way to a client.

Nothing is acknowledged or passed on before the record of it is durable. Whatever has to follow a record is put here
with it, as a function; it runs when the store says that the record's ticket is committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from specwire.runtime.norfab.actions import Action, Store
from specwire.runtime.norfab.records import Record


class _Held(msgspec.Struct, eq=False):
    ticket: int
    then: Callable[[], None] | None
    otherwise: Callable[[str], None] | None


class Ledger:
    """Tickets in order, and what each holds back."""

    __slots__ = ("_held", "_out", "ticket")

    def __init__(self, out: list[Action]) -> None:
        self._out = out
        self._held: deque[_Held] = deque()
        self.ticket = 0

    def __len__(self) -> int:
        return len(self._held)

    def store(
        self,
        *records: Record,
        then: Callable[[], None] | None = None,
        otherwise: Callable[[str], None] | None = None,
    ) -> None:
        """Have `records` kept; `then` runs when they are durable, `otherwise` where they cannot be kept."""
        self.ticket += 1
        self._out.append(Store(self.ticket, records))
        self._held.append(_Held(self.ticket, then, otherwise))

    def committed(self, ticket: int) -> None:
        """Everything up to `ticket` is durable."""
        while self._held and self._held[0].ticket <= ticket:
            held = self._held.popleft()
            if held.then is not None:
                held.then()

    def failed(self, ticket: int, reason: str) -> bool:
        """The records of `ticket` were not kept; return whether it was open."""
        for held in self._held:
            if held.ticket == ticket:
                self._held.remove(held)
                if held.otherwise is not None:
                    held.otherwise(reason)
                elif held.then is not None:
                    held.then()
                return True
        return False
