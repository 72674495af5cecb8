"""``state-machine``: how far a broker is, for tools that wait until an instance runs.

Of the states that deployed brokers go through, one of ours has two: it joins, or it runs, from when its parent has
let it in until that is lost. ``state-machine.get`` tells the state by name, and since when it is so; ``wait`` is
answered as soon as the broker runs; ``monitor {"final"}`` streams the number of the state, and ends with `final`.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from specwire.runtime.flux.credentials import USER
from specwire.runtime.flux.services.service import Call, Service, serves


class State(IntEnum):
    """The numbers are those of deployed brokers."""

    JOIN = 1
    RUN = 5


class Monitor(msgspec.Struct):
    """What a monitor waits for; without it, for ever."""

    final: int | None = None


class StateMachineService(Service):
    """The state of one broker."""

    __slots__ = ()

    @serves("monitor", USER)
    def monitor(self, call: Call) -> None:
        """Tell the state, now and when it changes."""
        if self._tell(call):
            self.keep(call)

    @serves("wait", USER)
    def wait(self, call: Call) -> None:
        """Say when the broker runs."""
        if self._state is State.RUN:
            call.acknowledge()
        else:
            self.keep(call)

    @serves("get", USER)
    def get(self, call: Call) -> None:
        """Tell the state by name, and the seconds since it is so."""
        broker = self.broker
        call.respond({"state": self._state.name.lower(), "duration": broker.now - broker.overlay.moved})

    def state_changed(self) -> None:
        """Tell those who wait."""
        for call in [*self.kept()]:
            if call.request.topic == "state-machine.monitor":
                self._tell(call)
            elif self._state is State.RUN:
                call.acknowledge()

    @property
    def _state(self) -> State:
        return State.RUN if self.broker.is_online else State.JOIN

    def _tell(self, call: Call) -> bool:
        """Tell one monitor the state; False where it hears no more."""
        final = call.read(Monitor).final if call.request.payload else None
        if final is None or self._state <= final:
            call.respond({"state": int(self._state)})
        if final is not None and self._state >= final:
            call.end()
        return call.is_open
