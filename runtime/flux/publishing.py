"""Events: numbered by rank 0, and given in that order to everybody below and to the clients who want them.

An event of a client, or of another rank, travels up with the number 0. Rank 0 numbers it from 1 (Flux v1, "Event
Message Type": only rank 0 publishes); from there it goes to all children, which pass it on. Nobody reorders, so
each link's order is the order.

A number that is not the next one is a gap: the events between were lost with a connection, or were dropped where a
queue was full. They cannot be had again, since nobody keeps events. The broker reports the gap, logs it, counts it
and goes on with the event that came: that is what deployed brokers do, and leaving the tree would lose more. The
last number is kept over `rejoin`, so what was missed meanwhile is found too. An event that came already is dropped.

Rank 0 may be started again, and then begins with 1. So the first event after a broker was welcomed is taken with any
number: the parent has passed on all that this broker has, so a lower number can only be of a new count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specwire.generated.flux import Event
from specwire.runtime.flux.actions import ToChild, ToClient
from specwire.runtime.flux.credentials import LOCAL, OWNER
from specwire.runtime.flux.events import EventGap
from specwire.runtime.flux.flags import PRIVATE
from specwire.runtime.flux.overlay import PULSE
from specwire.runtime.flux.severity import Severity

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine

LAST_SEQUENCE = 2**32 - 1
"""After it comes 1 again: at 25,000 events a second this is reached in two days."""


def following(sequence: int) -> int:
    """Return the number after `sequence`."""
    return sequence + 1 if sequence < LAST_SEQUENCE else 1


class Publisher:
    """The events of one broker.

    Attributes:
        sequence: the number of the latest event; 0 before the first.
    """

    __slots__ = ("_awaits_first", "_broker", "sequence")

    def __init__(self, broker: BrokerEngine) -> None:
        self._broker = broker
        self.sequence = 0
        self._awaits_first = True

    def welcomed(self) -> None:
        """The parent has let this broker in."""
        self._awaits_first = True

    def publish_own(self, topic: str, payload: bytes | None, *, private: bool = False) -> None:
        """Publish in the name of the instance's owner."""
        flags = PRIVATE if private else 0
        self.submit(Event((), topic, payload, flags, self._broker.settings.owner, OWNER | LOCAL))

    def submit(self, event: Event) -> None:
        """Take an event that has no number yet: number it here, or send it on to where it gets one."""
        broker = self._broker
        if event.topic is None:
            broker.drop("event", "client", "it has no topic")
        elif event.flags & PRIVATE and not broker.settings.wire.rules.private_events:
            broker.drop("event", "client", "its like would not be kept private")
        elif broker.rank == 0:
            self._publish(event)
        elif broker.overlay.parent is not None:
            broker.overlay.send_up(event)
        else:
            broker.drop("event", "client", "there is no way to rank 0")

    def from_child(self, event: Event) -> None:
        """Take an event that is on its way up."""
        self.submit(Event((), event.topic, event.payload, event.flags, event.userid, event.rolemask & ~LOCAL))

    def from_parent(self, event: Event) -> None:
        """Take an event that rank 0 has published."""
        broker, sequence = self._broker, event.sequence
        if event.topic is None or not sequence:
            broker.drop("event", "parent", "it has no topic, or no number")
            return
        if not self._is_next(sequence):
            return
        self.sequence, self._awaits_first = sequence, False
        if event.topic == PULSE:
            broker.overlay.pulsed()
        rolemask = event.rolemask & ~LOCAL
        self._distribute(Event((), event.topic, event.payload, event.flags, event.userid, rolemask, sequence))

    def _is_next(self, sequence: int) -> bool:
        """Tell whether an event is new, and report what is missing before it."""
        broker = self._broker
        expected = following(self.sequence)
        if self.sequence == 0 or sequence == expected:
            return True
        if sequence < expected and self._awaits_first:
            broker.journal.add(f"events are numbered anew, from {sequence} on", Severity.WARNING)
            return True
        if sequence < expected:
            broker.drop("event", "parent", f"number {sequence} came already")
            return False
        broker.counters.event_gaps += sequence - expected
        broker.report(EventGap(expected, sequence - 1))
        return True

    def _publish(self, event: Event) -> None:
        sequence = self.sequence = following(self.sequence)
        self._distribute(
            Event((), event.topic, event.payload, event.flags, event.userid, event.rolemask, sequence)
        )

    def _distribute(self, event: Event) -> None:
        """Send to the children first, who have the longer way, then to the clients."""
        broker = self._broker
        broker.counters.events += 1
        for child in broker.overlay.children.present:
            broker.emit(ToChild(child, event))
        for client in broker.clients.subscribers(event):
            broker.emit(ToClient(client, event))
