"""Requests that went on to a neighbour, a client or a service, and are still to be answered.

A `Tracker` belongs to whoever got the requests. It makes three promises possible: when that one is lost, what it
owes is answered for it; a response that nobody awaits, such as a second one, goes no further; and when the way
*back* is lost, whoever works for a sender that is gone is told to stop.

A pending request is known by its whole route stack and its matchtag. Deployed brokers take the uuid of the
original sender instead of the stack, and leave out matchtag 0; but clients may write any routes below their own,
and a request with matchtag 0 wants its answer too. Several that are alike in both are answered in order.
"""

from __future__ import annotations

from specwire.generated.flux import Request, Response
from specwire.runtime.flux.answering import is_last

MAX_TRACKED = 65_536
"""Requests pending at one neighbour, client or service: about 40 MB, and more than two seconds of the traffic
that a broker can carry. More are refused with EAGAIN."""

Routes = tuple[str, ...] | None


class Tracker:
    """The pending requests at one place. A payload is not kept.

    They are held by sender, which is a route stack, so what a sender that is gone had asked for is found without
    looking at everything.
    """

    __slots__ = ("_count", "_senders")

    def __init__(self) -> None:
        self._senders: dict[Routes, dict[int, list[Request]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, request: Request) -> bool:
        """Await the answer to `request`; False where too much is pending."""
        if self._count >= MAX_TRACKED:
            return False
        if request.payload is not None:
            request = _without_payload(request)
        self._count += 1
        sender = self._senders.get(request.routes)
        if sender is None:
            self._senders[request.routes] = {request.matchtag: [request]}
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
            self._count -= 1
            del equal[0]
            if not equal:
                del sender[matchtag]
                if not sender:
                    del self._senders[routes]
        return True

    def take_all(self) -> list[Request]:
        """Forget everything, and return it; of each sender the oldest first."""
        taken = [
            request for sender in self._senders.values() for equal in sender.values() for request in equal
        ]
        self._senders, self._count = {}, 0
        return taken

    def take_from(self, routes: tuple[str, ...], service: str | None = None) -> list[Request]:
        """Forget, and return, what came on the way that begins with `routes`, of one service or of all."""
        if not self._senders or not routes:
            return []
        length = len(routes)
        taken: list[Request] = []
        for stack in [stack for stack in self._senders if stack is not None and stack[:length] == routes]:
            sender = self._senders.pop(stack)
            kept: dict[int, list[Request]] = {}
            for equal in sender.values():
                for request in equal:
                    if service is None or service_of(request) == service:
                        taken.append(request)
                    else:
                        kept.setdefault(request.matchtag, []).append(request)
            if kept:
                self._senders[stack] = kept
        self._count -= len(taken)
        return taken


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
