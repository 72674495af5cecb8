"""One broker of a simulation and what a shell would keep for it; a broker that is started again is another `Host`."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.serve import CALM_S, FIRST_TRY_S, LONGEST_TRY_S
from specwire.runtime.transport.backoff import Backoff

if TYPE_CHECKING:
    from specwire.runtime.flux.simulate.link import Link


class Host:
    """Attributes:
    is_alive: until it is killed.
    is_silent: whether its machine died with it, so that nobody is told.
    is_hung: whether it stands still; `inbox` has what came meanwhile.
    uplink: the connection to the parent; `below` are those of the children, by uuid.
    timer_at: when the engine is woken.
    busy_until: when it has dealt with everything that came.
    """

    __slots__ = (
        "_backoff",
        "below",
        "busy_until",
        "engine",
        "inbox",
        "is_alive",
        "is_hung",
        "is_silent",
        "rank",
        "timer_at",
        "uplink",
    )

    def __init__(self, engine: BrokerEngine) -> None:
        self.engine, self.rank = engine, engine.rank
        self.is_alive, self.is_silent, self.is_hung = True, False, False
        self.inbox: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.uplink: Link | None = None
        self.below: dict[str, Link] = {}
        self.timer_at = inf
        self.busy_until = 0.0
        self._backoff: Backoff | None = None

    def next_try(self, now: float) -> float:
        """Return when to look for the parent again, as the real shell does."""
        if self._backoff is None:
            self._backoff = Backoff(first_s=FIRST_TRY_S, longest_s=LONGEST_TRY_S, calm_s=CALM_S)
        return self._backoff.next_try(now)
