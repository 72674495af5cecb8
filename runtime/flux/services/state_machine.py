"""``state-machine``: how far a broker has come with its start, for tools that wait until an instance runs.

``state-machine.monitor {"final"}`` streams the state, and ends when it is at `final` or beyond.
"""

from __future__ import annotations

import msgspec

from specwire.runtime.flux.credentials import USER
from specwire.runtime.flux.services.service import Call, Service, serves

RUN = 5
"""The number by which deployed brokers say that they run; a broker that can be asked here runs."""


class Monitor(msgspec.Struct):
    """What a monitor waits for."""

    final: int = RUN


class StateMachineService(Service):
    """The state of one broker."""

    __slots__ = ()

    @serves("monitor", USER)
    def monitor(self, call: Call) -> None:
        """Tell the state, now and when it changes."""
        final = call.read(Monitor).final
        call.respond({"state": RUN})
        if final <= RUN:
            call.end()
        else:
            self.keep(call)

    @serves("get", USER)
    def get(self, call: Call) -> None:
        """Tell the state by name, and since when it is so."""
        call.respond({"state": "run", "duration": self.broker.now - self.broker.started})
