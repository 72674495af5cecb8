"""Where a request goes, and the way of its response.

A request is routed by its nodeid and the flag UPSTREAM (Flux v1, "Request Routing"):

    any rank, or UPSTREAM with another's rank   a service of this broker; else the parent; else, at rank 0, ENOSYS
    UPSTREAM with this broker's rank            the parent: the sender is here, and this broker is passed over;
                                                at rank 0 EHOSTUNREACH
    this broker's rank                          a service of this broker; else ENOSYS
    another rank                                the next hop on the way through the tree
    2^32 - 2                                    EHOSTUNREACH: it is no rank, and no message may carry it on

A route is added for each socket that a request goes through. Upwards the parent's ROUTER adds the child's uuid.
Downwards a broker adds its own; the child's, which ROUTER takes as the routing id, never gets into the message.
So the top of the stack always names the neighbour, or the connector, that the response goes back to. A response
that is going up comes out of the ROUTER below this broker's own uuid, which is taken off.

A request that would go back to where it came from, which can only be where brokers disagree about the tree, is
unreachable: nothing goes in circles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from specwire.generated.flux import NODEID_ANY, Request, Response
from specwire.runtime.flux.actions import ToChild, ToClient, ToParent
from specwire.runtime.flux.answering import fail, pack_text
from specwire.runtime.flux.credentials import LOCAL
from specwire.runtime.flux.errors import EAGAIN, EPROTO
from specwire.runtime.flux.events import Source
from specwire.runtime.flux.flags import NORESPONSE, STREAMING, UPSTREAM
from specwire.runtime.flux.registry import stops
from specwire.runtime.flux.topology import NODEID_UPSTREAM
from specwire.runtime.flux.tracking import Tracker, service_of

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine
    from specwire.runtime.flux.children import Child
    from specwire.runtime.flux.clients import Client


class Router:
    """Requests and responses at one broker."""

    __slots__ = ("_broker",)

    def __init__(self, broker: BrokerEngine) -> None:
        self._broker = broker

    # --- requests

    def request(self, request: Request, sender: Client | None = None) -> None:
        """Route a request, whose topmost route says where it came from.

        Args:
            sender: the local client that it is from.
        """
        broker, nodeid, upstream = self._broker, request.nodeid, request.flags & UPSTREAM
        broker.counters.requests += 1
        rank = broker.rank
        if request.routes and len(request.routes) > broker.max_routes:
            broker.answer(request, None, EPROTO)
        elif nodeid == rank and not upstream:
            if not broker.registry.take(request):
                self._no_service(request)
        elif nodeid == NODEID_UPSTREAM:
            broker.unreachable(request)
        elif nodeid == rank:
            if rank or broker.settings.wire.rules.above_root_unreachable:
                self._up(request)
            else:
                self._no_service(request)
        elif upstream or nodeid == NODEID_ANY:
            skipped = sender if broker.settings.wire.rules.own_service_skipped else None
            if not broker.registry.take(request, skipped):
                if rank == 0:
                    self._no_service(request)
                else:
                    self._up(request)
        else:
            hop = broker.settings.tree.next_hop(rank, nodeid)
            if hop is None:
                self._up(request)
            else:
                self._down(request, hop)

    def request_from_parent(self, request: Request) -> None:
        """Route a request that comes down."""
        self._incoming(request, request.routes or (), "parent")

    def request_from_child(self, child: Child, request: Request) -> None:
        """Route a request that comes up."""
        self._incoming(request, (child.uuid, *(request.routes or ())), "child")

    def _incoming(self, request: Request, routes: tuple[str, ...], source: Source) -> None:
        if request.topic is None:
            self._broker.drop("request", source, "it has no topic")
            return
        self.request(
            Request(
                routes,
                request.topic,
                request.payload,
                request.flags,
                request.userid,
                request.rolemask & ~LOCAL,
                request.nodeid,
                request.matchtag,
            )
        )

    def _up(self, request: Request) -> None:
        overlay = self._broker.overlay
        parent = overlay.parent
        if parent is None or (request.routes and request.routes[0] == parent):
            self._broker.unreachable(request)
        elif self._track(overlay.tracker, request):
            overlay.send_up(request)

    def _down(self, request: Request, rank: int) -> None:
        broker = self._broker
        child = broker.overlay.children.at(rank)
        routes = request.routes or ()
        if child is None or (routes and routes[0] == child.uuid):
            broker.unreachable(request)
        elif self._track(child.tracker, request):
            broker.emit(
                ToChild(
                    child.uuid,
                    Request(
                        (broker.uuid, *routes),
                        request.topic,
                        request.payload,
                        request.flags,
                        request.userid,
                        request.rolemask,
                        request.nodeid,
                        request.matchtag,
                    ),
                )
            )

    def _track(self, tracker: Tracker, request: Request) -> bool:
        """Await the answer where there is to be one; False where the request must not go on."""
        broker = self._broker
        wire = broker.settings.wire
        if request.flags & STREAMING and not wire.rules.streams:
            broker.answer(request, pack_text(f"{wire.edition} has no streams"), EPROTO)
            return False
        if request.flags & NORESPONSE:
            if request.topic is not None and request.topic.endswith(".disconnect"):
                tracker.take_from(request.routes or (), service_of(request))
            return True
        if tracker.add(request, broker.clients.origin_of(request)):
            return True
        broker.answer(request, None, EAGAIN)
        return False

    def _no_service(self, request: Request) -> None:
        text = f"No service matching {request.topic} is registered"
        rules = self._broker.settings.wire.rules
        self._broker.answer(request, pack_text(text), rules.not_implemented)

    # --- responses

    def response_from_parent(self, response: Response) -> None:
        """Route a response that comes down; the parent's ROUTER has taken this broker's uuid off."""
        self._returning(response, response.routes or (), self._broker.overlay.tracker, "parent")

    def response_from_child(self, child: Child, response: Response) -> None:
        """Route a response that comes up; this broker added its own uuid when the request went down."""
        routes = response.routes or ()
        if routes and routes[0] == self._broker.uuid:
            self._returning(response, routes[1:], child.tracker, "child")
        else:
            self._broker.drop("response", "child", "its route does not lead through this broker")

    def _returning(
        self, response: Response, routes: tuple[str, ...], tracker: Tracker, source: Source
    ) -> None:
        response = Response(
            routes,
            response.topic,
            response.payload,
            response.flags,
            response.userid,
            response.rolemask & ~LOCAL,
            response.errnum,
            response.matchtag,
        )
        if tracker.finish(response):
            self.deliver(response)
        else:
            self._broker.drop("response", source, "nobody awaits it")

    def deliver(self, response: Response) -> None:
        """Send a response to where its topmost route says."""
        broker = self._broker
        routes = response.routes or ("",)
        top = routes[0]
        broker.counters.responses += 1
        if top == broker.clients.connector and top:
            if not broker.clients.deliver(response):
                broker.drop("response", "service", "whom it is for is gone")
        elif top == broker.overlay.parent:
            broker.overlay.send_up(response)
        elif top in broker.overlay.children.present:
            broker.emit(
                ToChild(
                    top,
                    Response(
                        routes[1:],
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
        else:
            broker.drop("response", "service", "whom it is for is gone")

    # --- what the wire has no room for

    def unsendable(self, action: ToParent | ToChild | ToClient, error: str) -> None:
        """Tell whoever waits for a message that it cannot be sent; see `BrokerEngine.unsendable`."""
        broker, message = self._broker, action.message
        if isinstance(message, Response):
            is_last = message.errnum or not message.flags & STREAMING  # others may follow: the stream goes on
            if is_last and (message.errnum != EPROTO or message.payload is not None):
                response = message.replace(payload=None, errnum=EPROTO)
                broker.emit(structs.replace(action, message=response))
        elif isinstance(message, Request) and not message.flags & NORESPONSE:
            response = fail(message, EPROTO, error)
            client = broker.clients.get(action.client) if isinstance(action, ToClient) else None
            child = broker.overlay.children.present.get(action.child) if isinstance(action, ToChild) else None
            if isinstance(action, ToParent):
                self.response_from_parent(response)
            elif child is not None:
                self.response_from_child(child, response)
            elif client is not None and client.tracker.finish(response):
                self.deliver(response)

    # --- the way back is lost

    def way_lost(self, routes: tuple[str, ...]) -> None:
        """Those whose requests came on the way that begins with `routes` are gone: who works for them is told."""
        broker = self._broker
        overlay = broker.overlay
        for request in stops(overlay.tracker.take_from(routes)):
            self._up(request)
        for child in [*overlay.children.present.values()]:
            for request in stops(child.tracker.take_from(routes)):
                self._down(request, child.rank)
        broker.registry.forget(routes)
        for client in broker.clients:
            client.tracker.take_from(routes)  # of services that it has taken back since
