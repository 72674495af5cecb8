"""What is to be shown of a server; `specwire.runtime.observe.subjects` makes one for each kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from specwire.runtime.observe.families import Family
from specwire.runtime.observe.rates import Counted
from specwire.runtime.observe.view import Health, View


async def nothing_to_close() -> None:
    """Nothing was begun for those who look."""


@dataclass(frozen=True)
class Subject:
    """One server that runs.

    Attributes:
        counted: what `totals` count.
        totals: returns running totals; called once a second, so it must cost next to nothing.
        measure: returns all measures.
        view: returns what the page shows now.
        health: returns how the server is; for probes, whether anybody looks at the page or not.
        close: ends what was begun for those who look.
    """

    counted: tuple[Counted, ...]
    totals: Callable[[], Sequence[float]]
    measure: Callable[[], list[Family]]
    view: Callable[[], View]
    health: Callable[[], Health]
    close: Callable[[], Awaitable[None]] = nothing_to_close
