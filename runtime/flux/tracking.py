"""Requests that went on to a neighbour, a client or a service, and are still to be answered.

A `Tracker` belongs to whoever got the requests. It makes three promises possible: when that one is lost, what it
owes is answered for it; a response that nobody awaits, such as a second one, goes no further; and when the way
*back* is lost, whoever works for a sender that is gone is told to stop.

A pending request is known by its whole route stack and its matchtag. Deployed brokers take the uuid of the
original sender instead of the stack, and leave out matchtag 0; but clients may write any routes below their own,
and a request with matchtag 0 wants its answer too. Several that are alike in both are answered in order.

What may be pending is shared out by origin: a client of this broker, whatever routes it writes below its own, or what came
over a neighbour with one route stack. No origin may have more than there is room left for all others. So one that asks
for more than is answered gets half of the room, two get a third each, and whoever asks for little always finds some.
"""

from __future__ import annotations

from specwire.generated.flux import Request, Response
from specwire.runtime.flux.answering import is_last

MAX_TRACKED = 131_072
"""Requests pending at one neighbour, client or service: about 80 MB, and several seconds of the traffic that a broker
can carry. More, or more of one origin than there is room left, are refused with EAGAIN."""

Routes = tuple[str, ...] | None


class Tracker:
    """The pending requests at one place. A payload is not kept.

    They are held by sender, which is a route stack, so what a sender that is gone had asked for is found without
    looking at everything.
    """

    __slots__ = ("_count", "_origins", "_pending", "_senders")

    def __init__(self) -> None:
        self._senders: dict[Routes, dict[int, list[Request]]] = {}
        self._count = 0
        self._pending: dict[Routes, int] = {}
        """How many each origin has."""
        self._origins: dict[Routes, Routes] = {}
        """The origin of a sender, where that is not the whole stack."""

    def __len__(self) -> int:
        return self._count

    def add(self, request: Request, origin: Routes = None) -> bool:
        """Await the answer to `request`; False where too much is pending, of this origin or of all.

        Args:
            origin: the part of the route stack that its sender cannot choose; default: all of it.
        """
        routes = request.routes
        key = origin or routes
        own = self._pending.get(key, 0)
        if own >= MAX_TRACKED - self._count:
            return False
        self._pending[key] = own + 1
        if key is not routes and key != routes:
            self._origins[routes] = key
        if request.payload is not None:
            request = _without_payload(request)
        self._count += 1
        sender = self._senders.get(routes)
        if sender is None:
            self._senders[routes] = {request.matchtag: [request]}
        else:
            sender.setdefault(request.matchtag, []).append(request)
        return True

    def finish(self, response: Response) -> bool:
        """Take an answer; False where it is not awaited."""
        routes, matchtag = response.routes, response.matchtag
        sender = self._senders.get(routes)
        equal = sender.get(matchtag) if sender is not None else None
        if sender is None or equal is None:
            return False
        if is_last(equal[0].flags, response):
            del equal[0]
            if not equal:
                del sender[matchtag]
                if not sender:
                    del self._senders[routes]
            self._release(routes, 1)
        return True

    def take_all(self) -> list[Request]:
        """Forget everything, and return it; of each sender the oldest first."""
        taken = [
            request for sender in self._senders.values() for equal in sender.values() for request in equal
        ]
        self._senders, self._count = {}, 0
        self._pending, self._origins = {}, {}
        return taken

    def take_from(self, routes: tuple[str, ...], service: str | None = None) -> list[Request]:
        """Forget, and return, what came on the way that begins with `routes`, of one service or of all."""
        if not self._senders or not routes:
            return []
        length = len(routes)
        taken: list[Request] = []
        for stack in [stack for stack in self._senders if stack is not None and stack[:length] == routes]:
            sender, before = self._senders.pop(stack), len(taken)
            kept: dict[int, list[Request]] = {}
            for equal in sender.values():
                for request in equal:
                    if service is None or service_of(request) == service:
                        taken.append(request)
                    else:
                        kept.setdefault(request.matchtag, []).append(request)
            if kept:
                self._senders[stack] = kept
            self._release(stack, len(taken) - before)
        return taken

    def _release(self, routes: Routes, requests: int) -> None:
        """So many of a sender are pending no more."""
        self._count -= requests
        key = self._origins.get(routes, routes) if self._origins else routes
        left = self._pending[key] - requests
        if left:
            self._pending[key] = left
        else:
            del self._pending[key]
        if self._origins and routes not in self._senders:
            self._origins.pop(routes, None)


def service_of(request: Request) -> str:
    """Return the service that a request is for: its topic up to the first period."""
    return (request.topic or "").partition(".")[0]


def _without_payload(request: Request) -> Request:
    return Request(
        request.routes,
        request.topic,
        None,
        request.flags,
        request.userid,
        request.rolemask,
        request.nodeid,
        request.matchtag,
    )
