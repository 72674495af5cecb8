"""The broker's engine: messages and events in, actions out; no socket, file, thread, clock or randomness.

It is put together from parts, each with one idea: the `Overlay` (who is above and below), the `Router` (where a
request and its response go), the `Publisher` (events), the `Clients` at the local socket, and the `Registry` of
services. What comes in goes to the part that it concerns; what is to be done gathers in `out` and is returned.

`now` is any clock in seconds that does not go backwards, one for all calls. No message, however odd, makes a
method raise: what cannot be delivered is dropped, counted and reported.
"""

from __future__ import annotations

from collections.abc import Callable

from specwire.generated.flux import AnyMessage, Event, Request, Response
from specwire.runtime.flux.actions import Action, Link, Report, ToChild, ToClient, ToParent
from specwire.runtime.flux.answering import pack_text
from specwire.runtime.flux.clients import Clients
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.counters import Counters
from specwire.runtime.flux.credentials import LOCAL, OWNER
from specwire.runtime.flux.errors import EHOSTUNREACH
from specwire.runtime.flux.events import Dropped, Kind, Source
from specwire.runtime.flux.events import Event as Happening
from specwire.runtime.flux.flags import NORESPONSE
from specwire.runtime.flux.journal import Journal
from specwire.runtime.flux.overlay import Overlay, Phase
from specwire.runtime.flux.publishing import Publisher
from specwire.runtime.flux.registry import Registry
from specwire.runtime.flux.routing import Router
from specwire.runtime.flux.severity import Severity

OWN_ROLES = OWNER | LOCAL
"""Of what a broker says itself."""

MAX_CLIENT_ROUTES = 64
"""Routes beyond those of the longest way in the tree: what a client may have on its side of the socket."""


class BrokerEngine:
    """One broker of an instance.

    Args:
        settings: what all brokers of the instance have in common.
        rank: this broker's place in the tree.
        uuid: its name in the overlay, fresh at each start: the identity of its DEALER.
        new_uuid: gives a fresh uuid; called at most once, for the name of the connector in route stacks.
        hostname: default: what the settings say for the rank.

    Attributes:
        now: the time of the call that is being handled.
        out: the actions of that call so far.
    """

    __slots__ = (
        "clients",
        "counters",
        "hostname",
        "journal",
        "max_routes",
        "new_uuid",
        "now",
        "out",
        "overlay",
        "publisher",
        "rank",
        "registry",
        "router",
        "settings",
        "started",
        "uuid",
    )

    def __init__(
        self,
        settings: Settings,
        rank: int,
        uuid: str,
        new_uuid: Callable[[], str],
        *,
        now: float = 0.0,
        hostname: str = "",
    ) -> None:
        if not 0 <= rank < settings.tree.size:
            raise ValueError(f"rank {rank} is not in a tree of {settings.tree.size}")
        self.settings, self.rank, self.uuid, self.new_uuid = settings, rank, uuid, new_uuid
        self.hostname = hostname or settings.host(rank)
        self.max_routes = 2 * settings.tree.height + 2 + MAX_CLIENT_ROUTES
        self.now = self.started = now
        self.out: list[Action] = []
        self.counters = Counters()
        self.journal = Journal(self)
        self.overlay = Overlay(self)
        self.registry = Registry(self)
        self.clients = Clients(self)
        self.publisher = Publisher(self)
        self.router = Router(self)

    # --- what the shell asks

    @property
    def deadline(self) -> float:
        """When `tick` has work next; infinity where it has none."""
        return self.overlay.deadline

    @property
    def is_online(self) -> bool:
        """Whether the way to rank 0 is open."""
        return self.overlay.phase is Phase.ONLINE

    def authorise(self, userid: int) -> int:
        """Return the octet that a new connection of `userid` is sent first: 0 where it is let in, else an errno."""
        return self.clients.authorise(userid)

    # --- life

    def start(self, now: float) -> list[Action]:
        """Begin: rank 0 is the tree, every other rank says hello to its parent."""
        out = self._begin(now)
        self.overlay.start()
        return out

    def rejoin(self, uuid: str, now: float) -> list[Action]:
        """Say hello again, under a fresh uuid and over a fresh connection, after `LeaveParent`."""
        out = self._begin(now)
        if self.overlay.phase is Phase.APART:
            self.uuid = uuid
            self.overlay.start()
        return out

    def stop(self, now: float) -> list[Action]:
        """Leave: children and clients are let go, the parent is told goodbye; `Stopped` comes at once or later."""
        out = self._begin(now)
        self.clients.close_all("the broker stops")
        self.overlay.stop("the broker stops")
        return out

    def tick(self, now: float) -> list[Action]:
        """Do what is due at `now`."""
        out = self._begin(now)
        self.overlay.tick()
        return out

    # --- messages

    def from_parent(self, message: AnyMessage, now: float) -> list[Action]:
        """Take a message from the DEALER."""
        out = self._begin(now)
        if not self.overlay.admit(message):
            return out
        if isinstance(message, Response):
            self.router.response_from_parent(message)
        elif isinstance(message, Request):
            self.router.request_from_parent(message)
        elif isinstance(message, Event):
            self.publisher.from_parent(message)
        return out

    def from_child(self, child: str, message: AnyMessage, now: float) -> list[Action]:
        """Take a message from the ROUTER, without the routing id, which is `child`."""
        out = self._begin(now)
        peer = self.overlay.children.admit(child, message)
        if peer is None:
            return out
        if isinstance(message, Request):
            self.router.request_from_child(peer, message)
        elif isinstance(message, Response):
            self.router.response_from_child(peer, message)
        elif isinstance(message, Event):
            self.publisher.from_child(message)
        return out

    def from_client(self, client: str, message: AnyMessage, now: float) -> list[Action]:
        """Take a message from a local client."""
        self.now = now
        out = self.out = []
        self.clients.take(client, message)
        return out

    def from_service(self, service: str, response: Response, now: float) -> list[Action]:
        """Take a response of a service in Python. One that nobody awaits (any more) is dropped."""
        out = self._begin(now)
        self.registry.response(service, response)
        return out

    def malformed(self, link: Link, error: str, now: float) -> list[Action]:
        """Octets came that are no message: that peer is let go, and nobody else is concerned."""
        out = self._begin(now)
        self.counters.malformed += 1
        if link.kind == "client":
            self.clients.close(link.peer, error)
        elif link.kind == "child":
            self.overlay.children.expel(link.peer, error)
        else:
            self.overlay.lose_parent(error)
        return out

    # --- neighbours and clients that come and go

    def accept_client(self, client: str, userid: int, now: float) -> list[Action]:
        """A connection of `userid` was let in; `client` is a fresh uuid for it."""
        out = self._begin(now)
        self.clients.accept(client, userid)
        return out

    def client_gone(self, client: str, now: float, reason: str = "it closed the connection") -> list[Action]:
        """The connection of a client has ended, or is ended by the shell: a slow one, for instance."""
        out = self._begin(now)
        self.clients.gone(client, reason)
        return out

    def child_gone(self, child: str, reason: str, now: float) -> list[Action]:
        """A child cannot be reached: its connection ended, or the ROUTER takes nothing for it."""
        out = self._begin(now)
        self.overlay.children.gone(child, reason)
        return out

    def parent_gone(self, reason: str, now: float) -> list[Action]:
        """The connection to the parent has ended."""
        out = self._begin(now)
        self.overlay.lose_parent(reason)
        return out

    def unsendable(self, action: Action, error: str, now: float) -> list[Action]:
        """What was to be sent cannot be put on the wire: whoever waits for it hears so, by EPROTO.

        In place of a response goes one without a payload, but for one in the middle of a stream, which is left out. A
        request is answered as if by the one who did not get it.
        """
        out = self._begin(now)
        if isinstance(action, ToParent | ToChild | ToClient):
            self.router.unsendable(action, error)
        return out

    # --- services in Python

    def add_service(self, service: str) -> None:
        """Register a service that the shell runs; raises FluxError EEXIST or EINVAL."""
        self.registry.add_external(service)

    def service_gone(self, service: str, now: float) -> list[Action]:
        """A service in Python has ended: what it owes is answered for it."""
        out = self._begin(now)
        self.registry.remove_external(service)
        return out

    def publish(
        self, topic: str, payload: bytes | None, now: float, *, private: bool = False
    ) -> list[Action]:
        """Publish an event in the name of the instance's owner; from another rank than 0 it goes there first."""
        out = self._begin(now)
        self.publisher.publish_own(topic, payload, private=private)
        return out

    def log(self, text: str, now: float, severity: int = Severity.DEBUG, app: str = "broker") -> list[Action]:
        """Add a line to the log, which ``log.dmesg`` gives out."""
        out = self._begin(now)
        self.journal.add(text, severity, app)
        return out

    def happened(self, event: Happening, now: float) -> list[Action]:
        """Take notice of what only the shell sees; it comes back as a `Report`, and is in the log."""
        out = self._begin(now)
        self.report(event)
        return out

    # --- for the parts and the services

    def _begin(self, now: float) -> list[Action]:
        self.now = now
        out = self.out = []
        return out

    def emit(self, action: Action) -> None:
        """Want something done."""
        self.out.append(action)

    def report(self, event: Happening) -> None:
        """Tell whoever runs this broker, and the log."""
        self.emit(Report(event))
        self.journal.tell(event)

    def drop(self, kind: Kind, source: Source, reason: str) -> None:
        """Note that a message went to nobody."""
        self.counters.dropped += 1
        self.report(Dropped(kind, source, reason))

    def answer(self, request: Request, payload: bytes | None = None, errnum: int = 0) -> None:
        """Send a response of the broker itself to where `request` came from; nothing where none is wanted."""
        flags = request.flags
        if flags & NORESPONSE:
            return
        routes = request.routes or ()
        client = self.clients.by_routes.get(routes[:2])
        response = Response(
            routes if client is None else routes[2:],
            request.topic,
            payload,
            flags,
            self.settings.owner,
            OWN_ROLES,
            errnum,
            request.matchtag,
        )
        if client is None:
            self.router.deliver(response)
        else:
            self.counters.responses += 1
            self.out.append(ToClient(client, response))

    def unreachable(self, request: Request, text: str = "") -> None:
        """Answer a request that cannot get further, or whose answer cannot come any more."""
        self.counters.unreachable += 1
        self.answer(request, pack_text(text) if text else None, EHOSTUNREACH)
