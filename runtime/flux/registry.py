"""The services of a broker, by name: built in, in Python, or a client's.

A service that is built in is made when the first request for it comes: a broker that is only a stop on the way
costs no more than it uses. Its name cannot be taken by others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from specwire.generated.flux import Request, Response
from specwire.runtime.flux.actions import ToClient, ToService
from specwire.runtime.flux.answering import pack_text
from specwire.runtime.flux.credentials import LOCAL, OWNER
from specwire.runtime.flux.errors import EAGAIN, EEXIST, EINVAL, FluxError
from specwire.runtime.flux.flags import NORESPONSE, UPSTREAM
from specwire.runtime.flux.services import BUILT_IN
from specwire.runtime.flux.services.log import LogService
from specwire.runtime.flux.services.overlay import OverlayService
from specwire.runtime.flux.services.service import Call, Service
from specwire.runtime.flux.services.state_machine import StateMachineService
from specwire.runtime.flux.tracking import Tracker, service_of

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine
    from specwire.runtime.flux.children import Child
    from specwire.runtime.flux.clients import Client


class External:
    """A service in Python, which the shell runs, and what is pending there."""

    __slots__ = ("name", "tracker")

    def __init__(self, name: str) -> None:
        self.name = name
        self.tracker = Tracker()


class Registry:
    """All services of one broker."""

    __slots__ = ("_broker", "_built", "_others")

    def __init__(self, broker: BrokerEngine) -> None:
        self._broker = broker
        self._built: dict[str, Service] = {}
        self._others: dict[str, Client | External] | None = None

    def has(self, service: str) -> bool:
        """Tell whether a name is taken."""
        return self._is_built_in(service) or service in (self._others or ())

    def names(self) -> list[str]:
        """Return all names, in order."""
        built = (name for name in BUILT_IN if self._is_built_in(name))
        return sorted((*built, *(self._others or ())))

    def pending(self) -> dict[str, int]:
        """Return how many requests each service here has still to answer; a client's are its tracker's."""
        counts = {name: len(service.kept()) for name, service in self._built.items()}
        for name, other in (self._others or {}).items():
            if isinstance(other, External):
                counts[name] = len(other.tracker)
        return counts

    def add_client(self, service: str, client: Client) -> None:
        """Register a name, which is free, for a client."""
        self._register(service, client)

    def add_external(self, service: str) -> None:
        """Register a service in Python; raises FluxError."""
        if not service or "." in service:
            raise FluxError(EINVAL, "a service is named by one word")
        if self.has(service):
            raise FluxError(EEXIST, f"{service} is registered already")
        self._register(service, External(service))

    def remove(self, service: str) -> None:
        """Free a name."""
        if self._others:
            self._others.pop(service, None)

    def remove_external(self, service: str) -> None:
        """Free the name of a service in Python, and answer what it owes."""
        external = (self._others or {}).get(service)
        if isinstance(external, External):
            self.remove(service)
            for request in external.tracker.take_all():
                self.abandoned(request)

    def abandoned(self, request: Request) -> None:
        """Answer a request in place of a service that is gone."""
        text = pack_text(f"The service {service_of(request)} has ended")
        self._broker.answer(request, text, self._broker.settings.wire.rules.not_implemented)

    # --- messages

    def take(self, request: Request, sender: Client | None = None) -> bool:
        """Give a request to its service; False where there is none.

        Args:
            sender: the client whose own service is not to get the request.
        """
        name, _, word = (request.topic or "").partition(".")
        service = self._built.get(name) or self._find_built_in(name)
        if service is not None:
            call = Call(request, self._broker.answer)
            service.handle(call, word)
            if call.is_open and not call.is_kept:
                # A fault of ours: the method has neither answered nor kept the call.
                error = service.unknown(request)
                call.fail(error.errnum, error.text)
            return True
        other = self._others.get(name) if self._others else None
        if other is None or (sender is not None and other is sender):
            return False
        if request.flags & NORESPONSE:
            if word == "disconnect":
                other.tracker.take_from(request.routes or (), name)
        elif not other.tracker.add(request, self._broker.clients.origin_of(request)):
            self._broker.answer(request, None, EAGAIN)
            return True
        if isinstance(other, External):
            self._broker.emit(ToService(name, request))
        else:
            self._broker.emit(ToClient(other.uuid, request))
        return True

    def response(self, service: str, response: Response) -> None:
        """Take a response of a service in Python."""
        broker, external = self._broker, (self._others or {}).get(service)
        if not isinstance(external, External) or not external.tracker.finish(response):
            broker.drop("response", "service", "nobody awaits it")
            return
        broker.router.deliver(
            Response(
                response.routes,
                response.topic,
                response.payload,
                response.flags,
                broker.settings.owner,
                OWNER | LOCAL,
                response.errnum,
                response.matchtag,
            )
        )

    def forget(self, routes: tuple[str, ...]) -> None:
        """Stop what is done, here, for senders on the way that begins with `routes`."""
        for service in self._built.values():
            service.forget(routes)
        for name, other in (self._others or {}).items():
            for request in stops(other.tracker.take_from(routes, name)):
                self.take(request)

    # --- what built-in services watch

    def logged(self, line: Callable[[], str]) -> None:
        """Tell those who follow the log of a line."""
        service = self._built.get("log")
        if isinstance(service, LogService):
            service.logged(line)

    def state_changed(self) -> None:
        """Tell those who wait for it that this broker is in the tree, or is not any more."""
        service = self._built.get("state-machine")
        if isinstance(service, StateMachineService):
            service.state_changed()

    def child_changed(self, child: Child) -> None:
        """Tell those who watch the overlay that a child is not what it was."""
        service = self._built.get("overlay")
        if isinstance(service, OverlayService):
            service.child_changed(child)

    # --- inside

    def _is_built_in(self, name: str) -> bool:
        kind = BUILT_IN.get(name)
        return kind is not None and (self._broker.rank == 0 or not kind.ROOT_ONLY)

    def _find_built_in(self, name: str) -> Service | None:
        if not self._is_built_in(name):
            return None
        service = self._built[name] = BUILT_IN[name](self._broker)
        return service

    def _register(self, service: str, owner: Client | External) -> None:
        if self._others is None:
            self._others = {}
        self._others[service] = owner


def stops(requests: list[Request]) -> Iterator[Request]:
    """Yield the requests that tell the services of `requests`, whose senders are gone, to stop: one for each sender."""
    told = set()
    for request in requests:
        service, upstream = service_of(request), request.flags & UPSTREAM
        key = (request.routes, service, request.nodeid, upstream)
        if key not in told:
            told.add(key)
            userid, rolemask, nodeid = request.userid, request.rolemask, request.nodeid
            topic, flags = f"{service}.disconnect", NORESPONSE | upstream
            yield Request(request.routes, topic, None, flags, userid, rolemask, nodeid)
