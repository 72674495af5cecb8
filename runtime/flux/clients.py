"""The clients at the local socket: who they are, what they subscribed to, and what has to be given back.

The connector is a hop of its own in route stacks, as it is where it is a module of the broker: a request gets the
client's uuid and above it the connector's, and a response has both taken off.

Some requests are for the connector itself, since they are about the connection: ``event.subscribe`` and
``event.unsubscribe``, ``service.add`` and ``service.remove``.

When a client is gone, each service that it used hears of it by ``<service>.disconnect``, on the same way that the
client's requests took: once for each service, nodeid and use of the flag UPSTREAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from specwire.generated.flux import USERID_UNKNOWN, AnyMessage, Event, Request, Response
from specwire.runtime.flux import connection
from specwire.runtime.flux.actions import CloseClient, ToClient
from specwire.runtime.flux.credentials import OWNER, Credentials, at_ingress, stamp
from specwire.runtime.flux.errors import EAGAIN, EPERM, EPROTO, FluxError
from specwire.runtime.flux.events import ClientClosed, ClientOpened
from specwire.runtime.flux.flags import NORESPONSE, PRIVATE, UPSTREAM
from specwire.runtime.flux.tracking import Tracker

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine


MAX_CLIENTS = 4096
"""Connections to one broker: a program on each core of the largest machines, several times over."""
MAX_USED = 131_072
"""Different services and ranks that a client of the owner may use: more than all ranks of the largest instance."""
MAX_USED_BY_GUEST = 1024
"""The same for a guest: as many connections as there may be then cost at most 1 GB."""

Use = tuple[str, int, int]
"""A service, a nodeid, and the flag UPSTREAM."""


class Client:
    """One local connection.

    Attributes:
        routes: what is put on the route stack of each request: the connector, and the client.
        subscriptions: how often each prefix was subscribed to; `prefixes` is the same for matching.
        used: what is to be told when the client is gone, in the order of first use.
        services: what the client has registered; `tracker` is what is pending there.
    """

    __slots__ = ("credentials", "prefixes", "routes", "services", "subscriptions", "tracker", "used", "uuid")

    def __init__(self, uuid: str, connector: str, credentials: Credentials) -> None:
        self.uuid, self.credentials = uuid, credentials
        self.routes = (connector, uuid)
        self.subscriptions: dict[str, int] = {}
        self.prefixes: tuple[str, ...] = ()
        self.used: dict[Use, None] = {}
        self.services: dict[str, None] = {}
        self.tracker = Tracker()


class Clients:
    """All local clients of a broker.

    Attributes:
        connector: the name of the connector in route stacks; empty while there was no client.
        by_routes: the uuid of each client by the two routes that lead to it.
    """

    __slots__ = ("_broker", "_by_uuid", "by_routes", "connector")

    def __init__(self, broker: BrokerEngine) -> None:
        self._broker = broker
        self._by_uuid: dict[str, Client] = {}
        self.connector = ""
        self.by_routes: dict[tuple[str, ...], str] = {}

    def __len__(self) -> int:
        return len(self._by_uuid)

    def __iter__(self) -> Iterator[Client]:
        return iter(self._by_uuid.values())

    def get(self, uuid: str) -> Client | None:
        """Return a client that is there."""
        return self._by_uuid.get(uuid)

    def origin_of(self, request: Request) -> tuple[str, ...] | None:
        """Return the routes of a local client below which a request has only what the client wrote; None for others."""
        routes = request.routes
        return routes[:2] if routes and routes[0] == self.connector else None

    # --- coming and going

    def authorise(self, userid: int) -> int:
        """Return 0 where a user is let in, else an errno."""
        settings = self._broker.settings
        if userid != settings.owner and not settings.allow_guests:
            return EPERM
        return EAGAIN if len(self._by_uuid) >= MAX_CLIENTS or not self._broker.overlay.is_open else 0

    def accept(self, uuid: str, userid: int) -> None:
        """Let a client in."""
        broker = self._broker
        errnum = self.authorise(userid)
        if errnum or uuid in self._by_uuid:
            broker.emit(CloseClient(uuid, str(FluxError(errnum or EPROTO))))
            return
        self.connector = self.connector or broker.new_uuid()
        client = Client(uuid, self.connector, at_ingress(userid, broker.settings.owner))
        self._by_uuid[uuid] = client
        self.by_routes[client.routes] = uuid
        broker.report(ClientOpened(uuid, userid))

    def close(self, uuid: str, reason: str) -> None:
        """Close a connection from our side."""
        if uuid in self._by_uuid:
            self._broker.emit(CloseClient(uuid, reason))
            self.gone(uuid, reason)

    def close_all(self, reason: str) -> None:
        """Close every connection."""
        for uuid in [*self._by_uuid]:
            self.close(uuid, reason)

    def gone(self, uuid: str, reason: str) -> None:
        """Give back all that a client held."""
        broker, client = self._broker, self._by_uuid.pop(uuid, None)
        if client is None:
            return
        del self.by_routes[client.routes]
        for service in client.services:
            broker.registry.remove(service)
        for request in client.tracker.take_all():
            broker.registry.abandoned(request)
        userid, rolemask = client.credentials.userid, client.credentials.rolemask
        routes = client.routes
        for service, nodeid, upstream in client.used:
            topic, flags = f"{service}.disconnect", NORESPONSE | upstream
            broker.router.request(Request(routes, topic, None, flags, userid, rolemask, nodeid))
        broker.report(ClientClosed(uuid, reason))

    # --- messages

    def take(self, uuid: str, message: AnyMessage) -> None:
        """Take a message of a client."""
        client = self._by_uuid.get(uuid)
        if client is None:
            return
        if isinstance(message, Request):
            self._request(client, message)
        elif isinstance(message, Response):
            self._response(client, message)
        elif isinstance(message, Event):
            self._event(client, message)
        else:
            self._broker.drop("control", "client", "control messages are for neighbours in the tree")

    def _request(self, client: Client, message: Request) -> None:
        broker, topic, nodeid, flags = self._broker, message.topic, message.nodeid, message.flags
        if topic is None:
            broker.drop("request", "client", "it has no topic")
            return
        who, userid, rolemask = client.credentials, message.userid, message.rolemask
        if userid != USERID_UNKNOWN or rolemask:
            who = stamp(who, userid, rolemask)
        request = Request(
            (*client.routes, *message.routes) if message.routes else client.routes,
            topic,
            message.payload,
            flags,
            who.userid,
            who.rolemask,
            nodeid,
            message.matchtag,
        )
        method = connection.METHODS.get(topic)
        if method is not None:
            connection.carry_out(broker, client, request, method)
            return
        use = (topic.partition(".")[0], nodeid, flags & UPSTREAM)
        if use not in client.used:
            owns = client.credentials.rolemask & OWNER
            if len(client.used) >= (MAX_USED if owns else MAX_USED_BY_GUEST):
                broker.answer(request, None, EAGAIN)
                return
            client.used[use] = None
        broker.router.request(request, client)

    def _response(self, client: Client, message: Response) -> None:
        broker = self._broker
        if not message.routes or not client.tracker.finish(message):
            broker.drop("response", "client", "nobody awaits it")
            return
        who = stamp(client.credentials, message.userid, message.rolemask)
        broker.router.deliver(
            Response(
                message.routes,
                message.topic,
                message.payload,
                message.flags,
                who.userid,
                who.rolemask,
                message.errnum,
                message.matchtag,
            )
        )

    def _event(self, client: Client, message: Event) -> None:
        who = stamp(client.credentials, message.userid, message.rolemask)
        self._broker.publisher.submit(
            Event((), message.topic, message.payload, message.flags, who.userid, who.rolemask)
        )

    def deliver(self, response: Response) -> bool:
        """Send a response whose route begins with the connector; False where that client is gone."""
        routes = response.routes or ()
        uuid = self.by_routes.get(routes[:2])
        if uuid is None:
            return False
        self._broker.out.append(
            ToClient(
                uuid,
                Response(
                    routes[2:],
                    response.topic,
                    response.payload,
                    response.flags,
                    response.userid,
                    response.rolemask,
                    response.errnum,
                    response.matchtag,
                ),
            )
        )
        return True

    def subscribers(self, event: Event) -> Iterator[str]:
        """Yield the clients that an event is for."""
        topic = event.topic or ""
        private, owner = event.flags & PRIVATE, self._broker.settings.owner
        for client in self._by_uuid.values():
            if client.prefixes and topic.startswith(client.prefixes):
                userid = client.credentials.userid
                if not private or userid in (owner, event.userid):
                    yield client.uuid
