"""Settings that all brokers of an instance share."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from specwire.generated.flux.machine import TIMERS
from specwire.runtime.flux.severity import Severity
from specwire.runtime.flux.topology import Tree
from specwire.runtime.flux.wire import FLUX, Wire

VERSION = 88 << 8
"""Version of the overlay's protocol that brokers exchange: that of flux-core 0.88.0."""


class Settings(msgspec.Struct, frozen=True):
    """One value, shared by every engine of an instance."""

    tree: Tree
    owner: int = 0
    """The userid of the instance's owner."""
    allow_guests: bool = False
    """Whether users other than the owner may connect. Each service decides what they may do."""
    hosts: tuple[str, ...] = ("localhost",)
    """Host names by rank; the last one is used for all further ranks."""
    version: int = VERSION
    timers: Mapping[str, float] = msgspec.field(default_factory=lambda: TIMERS)
    """Seconds: ``heartbeat``, ``idle``, ``torpid``, ``expiry``."""
    attributes: Mapping[str, str] = {}
    """Attributes for ``attr.get`` in addition to those of the engine."""
    instance_level: int = 0
    forward_level: int = Severity.DEBUG
    """Log lines of this severity or a higher one go to rank 0; see `journal` for the others."""
    clock_offset_s: float = 0.0
    """Seconds since 1970 when `now` is 0: engines work with a clock that does not go backwards, log lines tell
    the time of day."""
    process: int = 0
    """The process id that log lines carry."""
    wire: Wire = FLUX
    """The protocol in which brokers and clients speak."""
    message_octets: int = 8 << 20
    """Bound of the first message of a child's connection; later ones have that of the overlay."""
    undelivered_octets: int = 256 << 20
    """Bound of the unfinished messages of all children together."""

    def host(self, rank: int) -> str:
        """Return the host name of a rank."""
        return self.hosts[min(rank, len(self.hosts) - 1)]
