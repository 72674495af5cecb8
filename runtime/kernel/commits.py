"""Records on their way to a store, and what an engine does once they are durable.

Nothing is acknowledged, sent or passed on before its record is durable. An engine without I/O emits a `Commit` effect and leaves
here the two continuations of it: `then` for a record that is durable, `otherwise` for one that the store could not take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Effect: commit these records together or not at all.

    The host reports the outcome with the engine's `stored` and `not_stored`.

    Attributes:
        ticket: grows with each commit of an engine.
        records: in the order of writing; of the engine's own record types.
        refusable: fails at once while the disk fails, as somebody can be told; every other commit waits for the disk.
    """

    ticket: int
    records: tuple[Any, ...]
    refusable: bool = False


class StoreRecovered(msgspec.Struct, frozen=True, gc=False):
    """Event: the disk works again, and new records are accepted."""


class PendingCommits:
    """Commits that are not durable yet, in order.

    Args:
        effects: the list to which `commit` appends a `Commit`.

    Attributes:
        ticket: the last one used.
    """

    __slots__ = ("_effects", "_pending", "ticket")

    def __init__(self, effects: list[Any]) -> None:
        self._effects = effects
        self._pending: dict[int, tuple[Callable[[], None] | None, Callable[[str], None]]] = {}
        self.ticket = 0

    def __len__(self) -> int:
        return len(self._pending)

    def commit(
        self,
        *records: Any,
        then: Callable[[], None] | None = None,
        otherwise: Callable[[str], None],
        refusable: bool = False,
    ) -> None:
        """Emit a `Commit`; call `then` when it is durable, or `otherwise` with the reason when it has failed."""
        self.ticket += 1
        self._pending[self.ticket] = (then, otherwise)
        self._effects.append(Commit(self.ticket, records, refusable))

    def committed(self, ticket: int) -> None:
        """Handle that everything up to `ticket`, except what has failed, is durable."""
        pending = self._pending
        while pending and (first := next(iter(pending))) <= ticket:
            then, _ = pending.pop(first)
            if then is not None:
                then()

    def failed(self, ticket: int, reason: str) -> None:
        """Handle that the commit with this ticket has failed."""
        _, otherwise = self._pending.pop(ticket, (None, None))
        if otherwise is not None:
            otherwise(reason)
