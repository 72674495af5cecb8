"""What all brokers of an instance have in common."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from specwire.generated.flux.machine import TIMERS
from specwire.runtime.flux.severity import Severity
from specwire.runtime.flux.topology import Tree
from specwire.runtime.flux.wire import FLUX, Wire

VERSION = 88 << 8
"""The version of the overlay's protocol that brokers tell each other: that of flux-core 0.88.0."""


class Settings(msgspec.Struct, frozen=True):
    """One value, shared by every engine of an instance."""

    tree: Tree
    owner: int = 0
    """The userid of the instance's owner."""
    allow_guests: bool = False
    """Whether users other than the owner may connect; what they may do then is each service's to say."""
    hosts: tuple[str, ...] = ("localhost",)
    """Host names by rank; the last one goes on for the ranks that are left."""
    version: int = VERSION
    timers: Mapping[str, float] = msgspec.field(default_factory=lambda: TIMERS)
    """Seconds: ``heartbeat``, ``idle``, ``torpid``, ``expiry``."""
    attributes: Mapping[str, str] = {}
    """What ``attr.get`` knows besides what the engine itself knows."""
    instance_level: int = 0
    forward_level: int = Severity.DEBUG
    """Lines of the log that are as grave as this, or more so, go up to rank 0; see `journal` for what stays."""
    clock_offset_s: float = 0.0
    """Seconds since 1970 when `now` is 0: engines work with a clock that does not go backwards, log lines tell
    the time of day."""
    process: int = 0
    """The process id that log lines carry."""
    wire: Wire = FLUX
    """The protocol in which brokers and clients speak."""
    message_octets: int = 8 << 20
    """The first message of a child's connection; later ones may have what the overlay allows."""
    undelivered_octets: int = 256 << 20
    """What all children together may have sent of messages that are not whole."""

    def host(self, rank: int) -> str:
        """Return the host name of a rank."""
        return self.hosts[min(rank, len(self.hosts) - 1)]
