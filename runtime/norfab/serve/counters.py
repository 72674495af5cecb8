"""What a broker has done so far, in numbers."""

from __future__ import annotations

from copy import copy

import msgspec

from specwire.runtime.norfab.events import (
    Dropped,
    JobAccepted,
    JobEnded,
    JobRedispatched,
    Refused,
    StoreFailed,
    StoreRefuses,
    WorkerGone,
    WorkerReady,
)
from specwire.runtime.norfab.serve.events import BrokerEvent, CutOff, TurnedAway
from specwire.runtime.transport.messages import Traffic


class Counters(msgspec.Struct):
    """Counts since the start of the process. They are kept when management restarts the broker.

    Attributes:
        messages_in, messages_out: counted by the sockets, and set here only in a `snapshot`.
        octets_in, octets_out: the same, of all frames but routing ids.
        turned_away: failed handshakes.
        cut_off: connections that were cut off because an unfinished message exceeded its bound.
        undelivered: messages whose peer had gone.
        dropped: messages that were dropped, by kind.
    """

    messages_in: int = 0
    messages_out: int = 0
    octets_in: int = 0
    octets_out: int = 0
    jobs_accepted: int = 0
    parts_ended: int = 0
    parts_failed: int = 0
    redispatched: int = 0
    workers_ready: int = 0
    workers_gone: int = 0
    refusals: int = 0
    turned_away: int = 0
    cut_off: int = 0
    store_failures: int = 0
    undelivered: int = 0
    dropped: dict[str, int] = {}

    def count_event(self, event: BrokerEvent) -> None:
        """Count what an event stands for."""
        if type(event) is JobEnded:
            self.parts_ended += 1
            self.parts_failed += bool(event.failure)
        elif type(event) is JobAccepted:
            self.jobs_accepted += 1
        else:
            self._count_rare(event)

    def _count_rare(self, event: BrokerEvent) -> None:
        match event:
            case JobRedispatched():
                self.redispatched += 1
            case Dropped(kind=kind):
                self.dropped[kind] = self.dropped.get(kind, 0) + 1
            case Refused():
                self.refusals += 1
            case WorkerReady():
                self.workers_ready += 1
            case WorkerGone():
                self.workers_gone += 1
            case StoreFailed() | StoreRefuses():
                self.store_failures += 1
            case TurnedAway():
                self.turned_away += 1
            case CutOff():
                self.cut_off += 1

    def snapshot(self, traffic: Traffic) -> Counters:
        """Return the counts of this moment, with what has passed through the sockets."""
        now = copy(self)
        now.dropped = dict(self.dropped)
        now.messages_in, now.octets_in = traffic.messages_in, traffic.octets_in
        now.messages_out, now.octets_out = traffic.messages_out, traffic.octets_out
        return now
