"""Simulator: a host for many engines, under one virtual clock and without sockets.

It performs the effects of `specwire.runtime.kernel.host` and calls the engines with the same
events, so an engine cannot notice the difference. One seed gives one run. It does what networks and
disks may do within what ZeroMQ and the store allow:

- Messages of one connection arrive in order, each after a random delay. Messages of different
  connections overtake each other.
- A message is lost only with its connection: everything on the way is lost, and the side that
  connected gets `PeerDisconnected`. The listener gets it after its next message to this peer.
- A commit fails, or takes its time. Tickets become durable in order, in a database in memory.

Every message is encoded and decoded on its way. A peer that awaits room gets some part of it,
later. `Commit.refusable` and `StoreFailing` are not simulated (every commit waits for the disk),
nor is `PauseReceiving`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

import msgspec

from specwire.generated.errors import CodecError
from specwire.runtime.kernel.commits import Commit, Records
from specwire.runtime.kernel.effects import (
    Ask,
    AwaitRoom,
    CancelAsk,
    Connect,
    DropPeer,
    HostEffect,
    Log,
    Return,
    Send,
    Stop,
)
from specwire.runtime.kernel.engine import Engine, MessageCodec
from specwire.runtime.kernel.events import (
    Answered,
    Called,
    Committed,
    Event,
    MessageMalformed,
    MessageReceived,
    Noticed,
    PeerConnected,
    PeerDisconnected,
    PeerId,
    Reloaded,
    RoomMade,
    SendFailed,
    Started,
    Stopping,
    Tick,
)
from specwire.runtime.kernel.log import LogEvent
from specwire.runtime.kernel.service import HandlerError
from specwire.runtime.kernel.store import Failure, Statement
from specwire.runtime.kernel.store.database import transaction, write

Span = tuple[float, float]
"""Least and most seconds."""


class Disturbances(msgspec.Struct, frozen=True, kw_only=True):
    """Faults and durations. Rates are probabilities."""

    delay_s: Span = (0.0001, 0.001)
    commit_s: Span = (0.0005, 0.005)
    answer_s: Span = (0.0005, 0.005)
    lost_connections: float = 0.0
    """Share of messages with which the connection is lost."""
    failed_commits: float = 0.0


class SimulatedStore:
    """Database in memory for one engine. A restarted engine gets that of the engine before."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        for statement in records.schema.statements:
            self._connection.execute(statement)

    def load(self) -> Any:
        """Return what is stored, for `Started.restored`."""
        return self._records.load(self._connection)

    def prepare(self, records: Sequence[Any]) -> Sequence[Statement]:
        """Return the statements of a commit."""
        return [one for record in records for one in self._records.statements(record)]

    def commit(self, statements: Sequence[Statement]) -> str:
        """Execute statements together; return why that failed, "" where it did not."""
        try:
            with transaction(self._connection):
                write(self._connection, statements)
        except sqlite3.Error as error:
            return str(error)
        return ""


@dataclass(eq=False)
class _Link:
    """A connection: the node and socket of each side, and when the last message of each direction arrives."""

    near: SimulatedNode
    near_peer: PeerId
    far: SimulatedNode
    far_peer: PeerId
    is_open: bool = True
    closed_by: str = ""
    """Node that closed it; what this node sent before still arrives."""
    arrives: dict[str, float] = field(default_factory=dict)

    def other(self, node: str) -> tuple[SimulatedNode, PeerId]:
        """Return the other side of `node`, and its name for this one."""
        return (self.far, self.far_peer) if node == self.near.name else (self.near, self.near_peer)


@dataclass(eq=False)
class SimulatedNode:
    """One engine of a simulation.

    Attributes:
        events: what it logged, with the time.
        returned: results of `Simulator.call`, by the number of the call.
        records: what it committed, in order.
        store: None for an engine that emits no `Commit`.
        stopped: the reason of its `Stop`; empty while it runs.
        killed: it ended without a `Stop`, and what was not durable then is lost.
        cancelled: tickets of the `Ask` effects that were cancelled.
    """

    name: str
    engine: Engine
    codec: MessageCodec
    listeners: Mapping[str, str]
    handlers: Mapping[type, Callable[[Any], Any]]
    store: SimulatedStore | None = None
    links: dict[PeerId, _Link] = field(default_factory=dict)
    events: list[tuple[float, LogEvent]] = field(default_factory=list)
    returned: dict[int, Return] = field(default_factory=dict)
    records: list[Any] = field(default_factory=list)
    stopped: str = ""
    killed: bool = False
    cancelled: set[int] = field(default_factory=set)
    durable_at: float = 0.0
    timer_at: float | None = None

    def logged(self, kind: type[LogEvent]) -> list[Any]:
        """Return the events of this kind."""
        return [event for _, event in self.events if isinstance(event, kind)]


class Simulator:
    """A network of engines.

    Attributes:
        now: the virtual time.
        nodes: by name.
        trace: every event in order, with time and node; two runs with one seed have equal traces.
    """

    def __init__(self, seed: int, disturbances: Disturbances | None = None) -> None:
        self.now = 0.0
        self.nodes: dict[str, SimulatedNode] = {}
        self.trace: list[tuple[float, str, Event]] = []
        self.disturbances = disturbances or Disturbances()
        self._random = Random(seed)
        self._plans: list[tuple[float, int, Callable[[], object]]] = []
        self._order = count()
        self._calls = count(1)

    def add(
        self,
        name: str,
        engine: Engine,
        codec: MessageCodec,
        *,
        listeners: Mapping[str, str] | None = None,
        handlers: Mapping[type, Callable[[Any], Any]] | None = None,
        store: SimulatedStore | None = None,
    ) -> SimulatedNode:
        """Start an engine; one that was killed starts again under its name.

        Args:
            listeners: endpoint of each listener, by the name of the socket.
            handlers: perform an `Ask`, by the type of the request; HandlerError and OSError are
                failures.
            store: where it commits; that of the engine before for one that starts again.
        """
        node = SimulatedNode(name, engine, codec, listeners or {}, handlers or {}, store)
        self.nodes[name] = node
        self.post(node, Started(node.listeners, None if store is None else store.load()))
        return node

    def kill(self, name: str) -> SimulatedNode:
        """End an engine without a word, and return what is left of it."""
        node = self.nodes.pop(name)
        node.killed = True
        self._release(node, "killed")
        return node

    def call(self, name: str, request: Any) -> int:
        """Call an engine now; return the number of the call, the key of `SimulatedNode.returned`."""
        number = next(self._calls)
        self.post(self.nodes[name], Called(number, request))
        return number

    def notice(self, name: str, value: Any) -> None:
        """Pass something that has changed outside to an engine."""
        self.post(self.nodes[name], Noticed(value))

    def reload(self, name: str, settings: Any) -> None:
        """Give an engine other settings."""
        self.post(self.nodes[name], Reloaded(settings))

    def stop(self, name: str, reason: str = "stopped") -> None:
        """Ask an engine to end."""
        self.post(self.nodes[name], Stopping(reason))

    def lose_connections(self, one: str, other: str) -> None:
        """Lose every connection between two nodes."""
        node = self.nodes[one]
        for link in tuple(node.links.values()):
            if link.other(one)[0].name == other:
                self._lose(link, "the connection was lost")

    def at(self, when: float, do: Callable[[], object]) -> None:
        """Call `do` at a time that is not in the past."""
        heappush(self._plans, (when, next(self._order), do))

    def run(self, until: float) -> None:
        """Let everything up to `until` happen."""
        while self._plans and self._plans[0][0] <= until:
            self.now, _, do = heappop(self._plans)
            do()
        self.now = until

    def post(self, node: SimulatedNode, event: Event) -> None:
        """Let an engine handle an event now, and perform the effects."""
        if node.stopped:
            return
        self.trace.append((self.now, node.name, event))
        for effect in [*node.engine.handle(event, self.now)]:
            if not node.stopped:
                self._perform(node, effect)
        self._set_timer(node)

    # ---- effects

    def _perform(self, node: SimulatedNode, effect: HostEffect) -> None:
        match effect:
            case Send():
                self._send(node, effect)
            case Connect():
                self._connect(node, effect)
            case DropPeer(peer=peer):
                if not peer.routing_id and (link := node.links.get(peer)) is not None:
                    self._lose(link, "the connection was closed", closed_by=node.name)
            case AwaitRoom(peer=peer, octets=octets):
                room = RoomMade(peer, self._random.randint(min(1, octets), octets))
                self._later(node, self.disturbances.delay_s, lambda: self._offer_room(node, room))
            case Commit():
                self._commit(node, effect)
            case Ask():
                self._later(node, self.disturbances.answer_s, lambda: self._answer(node, effect))
            case CancelAsk(ticket=ticket):
                node.cancelled.add(ticket)
            case Return(call=call):
                node.returned[call] = effect
            case Log(event=event):
                node.events.append((self.now, event))
            case Stop(reason=reason):
                self._release(node, reason)

    def _send(self, node: SimulatedNode, effect: Send) -> None:
        link = node.links.get(effect.peer)
        if link is None or not link.is_open:
            if effect.peer.routing_id:  # ROUTER_MANDATORY: the socket knows no such peer
                gone = PeerDisconnected(effect.peer, "has disconnected")
                self.at(self.now, lambda: self.post(node, gone))
            return
        try:
            frames = node.codec.encode(effect.peer, effect.message)
        except CodecError as error:
            failed = SendFailed(effect.peer, effect.message, str(error))
            self.at(self.now, lambda: self.post(node, failed))
            return
        if self._random.random() < self.disturbances.lost_connections:
            self._lose(link, "the connection was lost")
            return
        at = max(self.now + self._draw(self.disturbances.delay_s), link.arrives.get(node.name, 0.0))
        link.arrives[node.name] = at
        octets = [bytes(frame) for frame in frames]
        self.at(at, lambda: self._arrive(link, node.name, octets))

    def _offer_room(self, node: SimulatedNode, room: RoomMade) -> None:
        if room.peer in node.links:
            self.post(node, room)

    def _arrive(self, link: _Link, sender: str, frames: list[bytes]) -> None:
        if not link.is_open and sender != link.closed_by:
            return
        node, peer = link.other(sender)
        try:
            for message in node.codec.decode(peer, frames):
                self.post(node, MessageReceived(peer, message))
        except CodecError as error:
            self.post(node, MessageMalformed(peer, error))

    def _connect(self, node: SimulatedNode, effect: Connect) -> None:
        assert effect.peer not in node.links, f"{effect.peer} is open already"
        found = next(
            (
                (other, socket)
                for other in self.nodes.values()
                for socket, endpoint in other.listeners.items()
                if endpoint == effect.endpoint and not other.stopped
            ),
            None,
        )
        if found is None:
            refused = PeerDisconnected(effect.peer, "no connection is possible")
            self._later(node, self.disturbances.delay_s, lambda: self.post(node, refused))
            return
        far, socket = found
        identity = effect.identity or self._random.randbytes(5)
        link = _Link(node, effect.peer, far, PeerId(socket, identity))
        node.links[effect.peer] = link
        older = far.links.get(link.far_peer)
        if older is not None and older.is_open:
            self._lose(older, "another connection has its routing id")
        far.links[link.far_peer] = link

        def open_() -> None:
            if link.is_open:
                self.post(node, PeerConnected(effect.peer))

        self._later(node, self.disturbances.delay_s, open_)

    def _lose(self, link: _Link, reason: str, *, closed_by: str = "") -> None:
        """End a connection; the side that connected is notified, unless it closed the connection."""
        link.is_open, link.closed_by = False, closed_by
        for node, peer in ((link.near, link.near_peer), (link.far, link.far_peer)):
            if node.links.get(peer) is link:
                del node.links[peer]
        if closed_by != link.near.name:
            lost = PeerDisconnected(link.near_peer, reason)
            told_at = max(self.now + self._draw(self.disturbances.delay_s), link.arrives.get(closed_by, 0.0))
            self.at(told_at, lambda: self.post(link.near, lost))

    def _commit(self, node: SimulatedNode, effect: Commit) -> None:
        store = node.store
        assert store is not None, f"{node.name} commits, and has no store"
        statements = store.prepare(effect.records)
        node.durable_at = max(self.now, node.durable_at) + self._draw(self.disturbances.commit_s)
        fails = self._random.random() < self.disturbances.failed_commits

        def settle() -> None:
            if node.killed:
                return
            failure = "the disk is full" if fails else store.commit(statements)
            if not failure:
                node.records += effect.records
            failures = (Failure(effect.ticket, failure),) if failure else ()
            self.post(node, Committed(effect.ticket, failures))

        self.at(node.durable_at, settle)

    def _answer(self, node: SimulatedNode, effect: Ask) -> None:
        if effect.ticket in node.cancelled:
            return
        try:
            answered = Answered(effect.ticket, node.handlers[type(effect.request)](effect.request))
        except (HandlerError, OSError) as error:
            answered = Answered(effect.ticket, failure=str(error) or type(error).__name__)
        self.post(node, answered)

    def _release(self, node: SimulatedNode, reason: str) -> None:
        node.stopped = reason or "stopped"
        for link in tuple(node.links.values()):
            self._lose(link, "the connection was lost", closed_by=node.name)

    # ---- time

    def _set_timer(self, node: SimulatedNode) -> None:
        at = node.engine.deadline()
        if at is not None and not node.stopped and (node.timer_at is None or at < node.timer_at):
            node.timer_at = max(at, self.now)
            self.at(node.timer_at, lambda: self._on_time(node))

    def _on_time(self, node: SimulatedNode) -> None:
        if node.timer_at != self.now:
            return  # another one was set for an earlier time
        node.timer_at = None
        at = node.engine.deadline()
        if at is not None and at <= self.now:
            self.post(node, Tick())
        self._set_timer(node)

    def _later(self, node: SimulatedNode, span: Span, do: Callable[[], None]) -> None:
        self.at(self.now + self._draw(span), lambda: None if node.stopped else do())

    def _draw(self, span: Span) -> float:
        return self._random.uniform(*span)
