"""What waits for the disk in a worker: acknowledgements, beginnings and results.

As in the broker's engine nothing is said before the record of it is durable. What has to follow a record is put here
with it, as a function that runs when the store says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from specwire.runtime.norfab.worker.actions import Action, Store
from specwire.runtime.norfab.worker.records import Record


class _Awaited(msgspec.Struct, eq=False):
    ticket: int
    then: Callable[[], None] | None
    otherwise: Callable[[str], None] | None


class Ledger:
    """Tickets in order, and what each holds back."""

    __slots__ = ("_awaited", "_out", "ticket")

    def __init__(self, out: list[Action]) -> None:
        self._out = out
        self._awaited: deque[_Awaited] = deque()
        self.ticket = 0

    def __len__(self) -> int:
        return len(self._awaited)

    def store(
        self,
        *records: Record,
        then: Callable[[], None] | None = None,
        otherwise: Callable[[str], None] | None = None,
        patient: bool = False,
    ) -> None:
        """Have `records` kept; `then` runs when they are durable, `otherwise` where they cannot be kept."""
        self.ticket += 1
        self._out.append(Store(self.ticket, records, patient))
        self._awaited.append(_Awaited(self.ticket, then, otherwise))

    def committed(self, ticket: int) -> None:
        """Everything up to `ticket` is durable."""
        while self._awaited and self._awaited[0].ticket <= ticket:
            awaited = self._awaited.popleft()
            if awaited.then is not None:
                awaited.then()

    def failed(self, ticket: int, reason: str) -> None:
        """The records of `ticket` were not kept."""
        for awaited in self._awaited:
            if awaited.ticket == ticket:
                self._awaited.remove(awaited)
                if awaited.otherwise is not None:
                    awaited.otherwise(reason)
                return
