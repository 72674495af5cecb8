"""A tree of broker engines in memory: no sockets, no clock of its own, every octet over the wire format.

Each connection is a queue. `Tree.step` delivers the oldest message of one of them, so a test chooses the order in
which different connections get their turn, and never the order within one. A killed broker's messages on their way
still arrive, and its neighbours hear of its end behind them, as with a socket that is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from math import inf
from typing import NamedTuple, TypeVar

from specwire.generated.flux import NODEID_ANY, AnyMessage, Event, Request, Response
from specwire.runtime.flux.actions import (
    Action,
    CloseClient,
    DropChild,
    LeaveParent,
    Report,
    Stopped,
    ToChild,
    ToClient,
    ToParent,
    ToService,
)
from specwire.runtime.flux.answering import is_last, pack
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.events import Event as Reported
from specwire.runtime.flux.flags import NORESPONSE
from specwire.runtime.flux.topology import Tree as Shape
from specwire.runtime.flux.wire import Wire

Kind = TypeVar("Kind", bound=Reported)

OWNER = 1000
GUEST = 2000


class Up(NamedTuple):
    """On the connection of the child that is called `child`, towards its parent."""

    parent: int
    child: str


class Down(NamedTuple):
    """The other direction."""

    rank: int
    child: str


Connection = Up | Down
Carried = tuple[bytes, ...] | str
"""The frames of a message; or, as the last of a connection, why it ended."""


class LocalClient:
    """A program at one broker, which keeps what it gets.

    Attributes:
        sent: the requests that want an answer, by matchtag.
        refused: why the connection was closed from the other side, if it was.
    """

    def __init__(self, tree: Tree, rank: int, uuid: str) -> None:
        self.tree, self.rank, self.uuid = tree, rank, uuid
        self.received: list[AnyMessage] = []
        self.sent: dict[int, Request] = {}
        self.refused: str | None = None
        self._matchtags = count(1)

    def send(self, message: AnyMessage) -> None:
        """Send a message as it stands."""
        engine = self.tree.engines.get(self.rank)
        if engine is not None:
            self.tree.perform(
                self.rank, engine.from_client(self.uuid, self.tree.through_wire(message), self.tree.now)
            )

    def request(self, topic: str, value: object = None, *, nodeid: int = NODEID_ANY, flags: int = 0) -> int:
        """Send a request; return its matchtag."""
        payload = None if value is None else pack(value)
        request = Request(
            topic=topic, payload=payload, flags=flags, nodeid=nodeid, matchtag=next(self._matchtags)
        )
        self.sent[request.matchtag] = request
        self.send(request)
        return request.matchtag

    def ask(self, topic: str, value: object = None, *, nodeid: int = NODEID_ANY, flags: int = 0) -> Response:
        """Send a request, let everything settle, and return its only answer."""
        matchtag = self.request(topic, value, nodeid=nodeid, flags=flags)
        self.tree.settle()
        (answer,) = self.answers(matchtag)
        return answer

    def answers(self, matchtag: int) -> list[Response]:
        """Return the responses with this matchtag."""
        return [
            message
            for message in self.received
            if isinstance(message, Response) and message.matchtag == matchtag
        ]

    def events(self, prefix: str = "") -> list[Event]:
        """Return the events whose topic begins so."""
        return [
            message
            for message in self.received
            if isinstance(message, Event) and (message.topic or "").startswith(prefix)
        ]

    def requests(self) -> list[Request]:
        """Return the requests that came to a service of this client."""
        return [message for message in self.received if isinstance(message, Request)]

    def close(self) -> None:
        """End the connection."""
        engine = self.tree.engines.get(self.rank)
        self.tree.clients.pop(self.uuid, None)
        if engine is not None:
            self.tree.perform(self.rank, engine.client_gone(self.uuid, self.tree.now))


class Tree:
    """N brokers.

    Attributes:
        engines: those that live, by rank.
        reports: what they told, with their ranks.
        asked: requests for services in Python that wait for their answer, by rank and service.
        arrived: all requests for services in Python, in order, but for those to disconnect.
        stopped: ranks that ended as they were told to.
        apart: ranks that left their parent and have not come back.
    """

    def __init__(
        self,
        size: int,
        fanout: int = 2,
        *,
        allow_guests: bool = False,
        rejoin: bool = False,
        settings: Callable[[Settings], Settings] = lambda given: given,
    ) -> None:
        self.shape = Shape(size, fanout)
        self.settings = settings(
            Settings(tree=self.shape, owner=OWNER, allow_guests=allow_guests, hosts=("vm",), process=11042)
        )
        self.now = 0.0
        self.engines: dict[int, BrokerEngine] = {}
        self.clients: dict[str, LocalClient] = {}
        self.reports: list[tuple[int, Reported]] = []
        self.asked: dict[tuple[int, str], deque[Request]] = {}
        self.arrived: list[tuple[int, str, Request]] = []
        self.stopped: set[int] = set()
        self.apart: set[int] = set()
        self._rejoin = rejoin
        self._uuids = count(1)
        self._connections: dict[Connection, deque[Carried]] = {}
        for rank in range(size):
            self.start(rank)
        self.settle()

    @property
    def wire(self) -> Wire:
        """The wire format between brokers."""
        return self.settings.wire

    def through_wire(self, message: AnyMessage) -> AnyMessage:
        """Return what the other side of a local socket reads of a message."""
        return self.wire.local.decode(self.wire.local.encode(message))

    def uuid(self) -> str:
        """Return a fresh uuid."""
        return f"{next(self._uuids):08x}-0000-4000-8000-000000000000"

    # --- brokers

    def start(self, rank: int) -> None:
        """Start a broker that is not there, or start it again."""
        self.engines[rank] = BrokerEngine(self.settings, rank, self.uuid(), self.uuid, now=self.now)
        self.stopped.discard(rank)
        self.apart.discard(rank)
        self.perform(rank, self.engines[rank].start(self.now))

    def kill(self, rank: int) -> None:
        """End a broker without a word; its clients and services are gone with it."""
        engine = self.engines[rank]
        self._remove(rank)
        self.clients = {uuid: client for uuid, client in self.clients.items() if client.rank != rank}
        self._close_upward(rank, engine.uuid)

    def _remove(self, rank: int) -> None:
        del self.engines[rank]
        self.asked = {key: asked for key, asked in self.asked.items() if key[0] != rank}
        for below in self.shape.children(rank):
            if below in self.engines and below not in self.apart:
                self._end(Down(below, self.engines[below].uuid), "the connection has ended")

    def rejoin(self, rank: int) -> None:
        """Let a broker that left its parent join again."""
        self.apart.discard(rank)
        self.perform(rank, self.engines[rank].rejoin(self.uuid(), self.now))

    # --- clients and services

    def client(self, rank: int = 0, userid: int = OWNER) -> LocalClient:
        """Connect a client."""
        client = LocalClient(self, rank, self.uuid())
        self.clients[client.uuid] = client
        self.perform(rank, self.engines[rank].accept_client(client.uuid, userid, self.now))
        return client

    def answer(self, rank: int, service: str, response: Response) -> None:
        """Let a service in Python answer."""
        self.perform(rank, self.engines[rank].from_service(service, response, self.now))

    # --- time and delivery

    def advance(self, seconds: float) -> None:
        """Let time pass, in all brokers, and everything that comes of it settle."""
        end = self.now + seconds
        self.settle()
        while True:
            due = min((engine.deadline for engine in self.engines.values()), default=inf)
            if due > end:
                break
            self.now = max(self.now, due)
            for rank, engine in [*self.engines.items()]:
                if engine.deadline <= self.now:
                    self.perform(rank, engine.tick(self.now))
            self.settle()
        self.now = end

    def step(self, choice: int = 0) -> bool:
        """Deliver the oldest message of one connection; False where nothing is on its way."""
        busy = [connection for connection, carried in self._connections.items() if carried]
        if not busy:
            return False
        connection = busy[choice % len(busy)]
        self._deliver(connection, self._connections[connection].popleft())
        return True

    def settle(self) -> None:
        """Deliver until nothing is on its way."""
        while self.step():
            pass

    def _deliver(self, connection: Connection, carried: Carried) -> None:
        rank = connection.parent if isinstance(connection, Up) else connection.rank
        engine = self.engines.get(rank)
        if engine is None:
            return
        if isinstance(connection, Up):
            if isinstance(carried, str):
                self.perform(rank, engine.child_gone(connection.child, carried, self.now))
            else:
                self.perform(rank, engine.from_child(connection.child, self.wire.decode(carried), self.now))
        elif engine.uuid == connection.child and rank not in self.apart:
            if isinstance(carried, str):
                self.perform(rank, engine.parent_gone(carried, self.now))
            else:
                self.perform(rank, engine.from_parent(self.wire.decode(carried), self.now))

    def perform(self, rank: int, actions: list[Action]) -> None:
        """Do what the engine of `rank` wants."""
        engine = self.engines[rank]
        for action in actions:
            match action:
                case ToParent(message):
                    parent = self.shape.parent(rank)
                    assert parent is not None, "rank 0 has no parent"
                    self._carry(Up(parent, engine.uuid), message)
                case ToChild(child, message):
                    self._to_child(rank, child, message)
                case ToClient(client, message):
                    assert client in self.clients, f"{client} is gone, and the engine knows it"
                    self.clients[client].received.append(self.through_wire(message))
                case ToService(service, request):
                    self._to_service(rank, service, request)
                case CloseClient(client, reason):
                    self.clients.pop(client).refused = reason
                case DropChild(child, _):
                    pass  # its connection takes what was sent before, and nothing more is sent
                case LeaveParent():
                    self._leave(rank, engine.uuid)
                case Stopped():
                    self.stopped.add(rank)
                    self._remove(rank)
                case Report(event):
                    self.reports.append((rank, event))
        if self._rejoin and rank in self.apart and rank in self.engines:
            self.rejoin(rank)

    def _to_child(self, rank: int, child: str, message: AnyMessage) -> None:
        for below, engine in self.engines.items():
            if engine.uuid == child and below not in self.apart:
                self._carry(Down(below, child), message)
                return
        # ROUTER_MANDATORY: there is no such peer.
        self._end(Up(rank, child), "No route to host")

    def _to_service(self, rank: int, service: str, request: Request) -> None:
        asked = self.asked.setdefault((rank, service), deque())
        if request.topic == f"{service}.disconnect":
            routes = request.routes or ()
            kept = [other for other in asked if (other.routes or ())[: len(routes)] != routes]
            self.asked[rank, service] = deque(kept)
        else:
            self.arrived.append((rank, service, request))
            if not request.flags & NORESPONSE:
                asked.append(request)

    def _leave(self, rank: int, uuid: str) -> None:
        self.apart.add(rank)
        self._connections.pop(Down(rank, uuid), None)
        self._close_upward(rank, uuid)

    def _close_upward(self, rank: int, uuid: str) -> None:
        parent = self.shape.parent(rank)
        if parent is not None:
            self._end(Up(parent, uuid), "the connection has ended")

    def _carry(self, connection: Connection, message: AnyMessage) -> None:
        self._connections.setdefault(connection, deque()).append(tuple(self.wire.encode(message)))

    def _end(self, connection: Connection, reason: str) -> None:
        self._connections.setdefault(connection, deque()).append(reason)

    # --- what is to be found out

    def endings(self) -> Iterator[tuple[LocalClient, Request, list[Response]]]:
        """Yield every request of every client that is there, with its final answers."""
        for client in self.clients.values():
            for matchtag, request in client.sent.items():
                answers = client.answers(matchtag)
                yield client, request, [answer for answer in answers if is_last(request.flags, answer)]

    def reported(self, kind: type[Kind]) -> list[Kind]:
        """Return the reports of a kind."""
        return [event for _, event in self.reports if isinstance(event, kind)]

    def pending(self) -> Mapping[str, int]:
        """Return how many requests each place of each broker waits for, where there are any."""
        found: dict[str, int] = {}
        for rank, engine in self.engines.items():
            places = {"parent": len(engine.overlay.tracker)}
            for child in engine.overlay.children.known.values():
                places[f"child {child.rank}"] = len(child.tracker)
            for client in engine.clients:
                places[f"client {client.uuid}"] = len(client.tracker)
            places |= engine.registry.pending()
            found |= {f"rank {rank}, {place}": number for place, number in places.items() if number}
        return found


CHAIN = Settings(tree=Shape(3, 1), owner=OWNER, hosts=("vm",), forward_level=-1)
"""Three brokers, each below the one before, whose log lines stay where they are."""


def alone(rank: int, settings: Settings = CHAIN, uuid: str = "") -> BrokerEngine:
    """Return one broker without neighbours, not started."""
    names = ("root", "middle", "leaf")
    return BrokerEngine(settings, rank, uuid or names[rank], lambda: "connector")


def join(child: BrokerEngine, parent: BrokerEngine) -> list[AnyMessage]:
    """Let a child join; return what the parent thereupon says to its own."""
    (hello,) = [action.message for action in child.start(0.0) if isinstance(action, ToParent)]
    done = parent.from_child(child.uuid, hello, 0.0)
    for action in done:
        if isinstance(action, ToChild):
            child.from_parent(action.message, 0.0)
    return [action.message for action in done if isinstance(action, ToParent)]


def member(settings: Settings = CHAIN) -> BrokerEngine:
    """Return rank 1 of a chain of three, joined, with rank 2 below it."""
    root, middle = alone(0, settings), alone(1, settings)
    root.start(0.0)
    join(middle, root)
    join(alone(2, settings), middle)
    return middle
