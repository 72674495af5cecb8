"""What is measured while a simulation runs, for the report."""

from __future__ import annotations

from array import array
from collections import Counter

from specwire.generated.flux import AnyMessage, Event, Request, Response
from specwire.runtime.flux.events import ChildLeft, Joined, ParentLost, StatusChanged
from specwire.runtime.flux.events import Event as Reported
from specwire.runtime.flux.simulate.agenda import Agenda
from specwire.runtime.flux.simulate.host import Host
from specwire.runtime.flux.simulate.loads import Loads
from specwire.runtime.flux.simulate.report import EventsReport, LevelReport, StartReport, quantiles
from specwire.runtime.flux.topology import Tree


class Publishing:
    """One event: when rank 0 sent it, when the latest broker got it, and how many have."""

    __slots__ = ("last_s", "reached", "sent_s", "topic")

    def __init__(self, topic: str, sent_s: float) -> None:
        self.topic, self.sent_s = topic, sent_s
        self.last_s = sent_s
        self.reached = 0


class Meter:
    """Looks on.

    Attributes:
        full: the times at which rank 0 found the tree full; `missing` those at which it found that it is not.
        complete: the times from which every broker was in the tree.
    """

    def __init__(self, agenda: Agenda, tree: Tree, loads: Loads) -> None:
        self._agenda, self._tree, self._loads = agenda, tree, loads
        self._received, self._sent = array("Q", bytes(8 * tree.size)), array("Q", bytes(8 * tree.size))
        self._online: set[int] = set()
        self._events: dict[int, Publishing] = {}
        self._past: list[Publishing] = []
        self._to_clients: Counter[str] = Counter()
        self.told_kinds: Counter[str] = Counter()
        self.full: list[float] = []
        self.missing: list[float] = []
        self.complete: list[float] = []

    # --- what a `Watcher` is told

    def sent(self, host: Host, message: AnyMessage) -> None:
        """See `Watcher`."""
        self._sent[host.rank] += 1
        if isinstance(message, Event):
            if not host.rank and message.sequence not in self._events:
                self._events[message.sequence] = Publishing(message.topic or "", self._agenda.now)
        elif isinstance(message, Request | Response) and message.routes:
            self._loads.hop(message)

    def received(self, host: Host, message: AnyMessage) -> None:
        """See `Watcher`."""
        self._received[host.rank] += 1
        if isinstance(message, Event) and message.sequence:
            event = self._events.get(message.sequence)
            if event is not None and host.engine.publisher.sequence == message.sequence:
                event.last_s = self._agenda.now
                event.reached += 1

    def for_client(self, host: Host, client: str, message: AnyMessage) -> None:
        """See `Watcher`."""
        if isinstance(message, Response):
            self._loads.answered(client, message)
        elif isinstance(message, Event):
            self._to_clients[message.topic or ""] += 1

    def told(self, host: Host, event: Reported) -> None:
        """See `Watcher`."""
        self.told_kinds[type(event).__name__] += 1
        if isinstance(event, Joined):
            self._online.add(host.rank)
            if len(self._online) == self._tree.size:
                self.complete.append(self._agenda.now)
            if self._tree.size == 1:
                self.full.append(self._agenda.now)
        elif isinstance(event, ParentLost):
            self._online.discard(host.rank)
        elif isinstance(event, StatusChanged) and not host.rank:
            (self.full if event.status == "full" else self.missing).append(self._agenda.now)
        elif isinstance(event, ChildLeft) and event.lost:
            self.told_kinds["ChildLost"] += 1

    def gone(self, host: Host) -> None:
        """A broker was killed."""
        self._online.discard(host.rank)
        if not host.rank:  # the next one begins with 1 again
            self._past.extend(self._events.values())
            self._events.clear()

    # --- what it comes to

    def start(self) -> StartReport:
        """Return when the tree was there first."""
        return StartReport(
            self.complete[0] if self.complete else None,
            self.full[0] if self.full else None,
        )

    def events(self) -> tuple[EventsReport, ...]:
        """Return what became of the events, by topic."""
        by_topic: dict[str, list[Publishing]] = {}
        for event in (*self._past, *self._events.values()):
            by_topic.setdefault(event.topic, []).append(event)
        others = self._tree.size - 1
        reports = []
        for topic, events in by_topic.items():
            spread = [event.last_s - event.sent_s for event in events if event.reached >= others]
            least = min(event.reached for event in events)
            reports.append(
                EventsReport(
                    topic, len(events), len(spread), least, quantiles(spread), self._to_clients[topic]
                )
            )
        return tuple(reports)

    def levels(self) -> tuple[LevelReport, ...]:
        """Return the messages by level."""
        tree, first, last = self._tree, 0, 0
        reports: list[LevelReport] = []
        while first < tree.size:
            ranks = slice(first, min(last + 1, tree.size))
            received, sent = self._received[ranks], self._sent[ranks]
            reports.append(
                LevelReport(len(reports), len(sent), sum(received), max(received), sum(sent), max(sent))
            )
            first, last = first * tree.arity + 1, (last + 1) * tree.arity
        return tuple(reports)
