"""``heartbeat``: how the pulse of rank 0 comes in. The pulse itself is an event, ``heartbeat.pulse``."""

from __future__ import annotations

from specwire.runtime.flux.credentials import USER
from specwire.runtime.flux.services.service import Call, Service, serves


class HeartbeatService(Service):
    """What one broker knows of the pulse."""

    __slots__ = ()

    @serves("stats-get", USER)
    def stats(self, call: Call) -> None:
        """Tell the times that the tree lives by, in seconds, and the number of the latest event."""
        call.respond({**self.broker.settings.timers, "sequence": self.broker.publisher.sequence})
