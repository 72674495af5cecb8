"""Commits of an engine without stories, and what it does once they are durable.

NORFAB's engines leave two continuations in `PendingCommits`: `then` for a durable record and
`otherwise` for a failed one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from specwire.runtime.kernel.commits import Commit


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
        """Emit a `Commit`; call `then` when it is durable, or `otherwise` with the reason of its failure."""
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
