"""The requests of a client that are not answered yet, by matchtag.

A matchtag is the lowest number from 1 that no other call on this connection has, and is free again when its final
response has come. A call that was given up keeps its matchtag until then: what still comes for it is swallowed, and never
taken for the answer to another call.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING

import msgspec

from specwire.generated.flux import MATCHTAG_NONE, Request, Response
from specwire.runtime.flux.errors import EAGAIN, FluxError
from specwire.runtime.flux.flags import STREAMING

if TYPE_CHECKING:
    from asyncio import Future

    from specwire.runtime.flux.views import Reply
    from specwire.runtime.flux.waiting import Box

FIRST_MATCHTAG, MAX_MATCHTAG = 1, 0xFFFF_FFFF
STALE = 64
"""How many deadlines of calls that have ended are kept besides as many as there are calls."""


class PendingCall(msgspec.Struct, eq=False):
    """One request that waits for its response, or for the next of a stream.

    Attributes:
        request: to be sent.
        streaming: whether it takes more than one response.
        timeout_s: the longest time until the response; of a stream, until the first and from one to the next.
        deadline: when that is over.
        box: where whoever called looks for the replies; None where nobody does. It is the shell's, as is `waiter`.
        waiter: who waits for the only reply on an asyncio loop, which is the shortest way.
    """

    request: Request
    streaming: bool
    timeout_s: float
    deadline: float
    box: Box[Reply] | None = None
    waiter: Future[Reply] | None = None


class PendingCalls:
    """All of a connection.

    Attributes:
        abandoned: matchtags of calls that were given up and may still be answered.
    """

    def __init__(self) -> None:
        self.abandoned: set[int] = set()
        self._pending: dict[int, PendingCall] = {}
        self._free: list[int] = []
        self._highest = FIRST_MATCHTAG - 1
        self._deadlines: list[tuple[float, int, PendingCall]] = []

    def __len__(self) -> int:
        return len(self._pending)

    def free_matchtag(self) -> int:
        """Return a number that no call has; raises FluxError (EAGAIN) where there is none."""
        if self._free:
            return heappop(self._free)
        if self._highest == MAX_MATCHTAG:
            raise FluxError(EAGAIN, "every matchtag is in use")
        self._highest += 1
        return self._highest

    def add(self, call: PendingCall) -> None:
        """Wait for the responses to `call`."""
        self._pending[call.request.matchtag] = call
        if call.deadline != inf:
            self._watch(call)

    def match(self, response: Response) -> PendingCall | None:
        """Return the call that `response` answers, which is over unless the response is one of a stream."""
        matchtag = response.matchtag
        if response.routes or matchtag == MATCHTAG_NONE:
            return None  # it has hops to go, or is for nobody
        if not response.errnum and response.flags & STREAMING:
            call = self._pending.get(matchtag)
            if call is not None and not call.streaming:
                self.abandon(call)
            return call
        call = self._pending.pop(matchtag, None)
        if call is not None:
            heappush(self._free, matchtag)
            return call
        if matchtag in self.abandoned:
            self.abandoned.remove(matchtag)
            heappush(self._free, matchtag)
        return None

    def is_pending(self, call: PendingCall) -> bool:
        """Tell whether `call` waits."""
        return self._pending.get(call.request.matchtag) is call

    def abandon(self, call: PendingCall) -> None:
        """Wait no more."""
        if self.is_pending(call):
            del self._pending[call.request.matchtag]
            self.abandoned.add(call.request.matchtag)

    def clear(self) -> list[PendingCall]:
        """Forget and return all calls: the connection is lost."""
        calls = list(self._pending.values())
        self._pending.clear()
        self._deadlines.clear()
        return calls

    @property
    def deadline(self) -> float:
        """When `expire` has something to do, at the earliest."""
        return self._deadlines[0][0] if self._deadlines else inf

    def expire(self, now: float) -> list[PendingCall]:
        """Abandon and return the calls whose time is over."""
        expired: list[PendingCall] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, call = heappop(self._deadlines)
            if not self.is_pending(call):
                continue
            if call.deadline > now:
                self._watch(call)  # a response of its stream came meanwhile
            else:
                self.abandon(call)
                expired.append(call)
        return expired

    def _watch(self, call: PendingCall) -> None:
        if len(self._deadlines) > 2 * len(self._pending) + STALE:
            self._deadlines = [entry for entry in self._deadlines if self.is_pending(entry[2])]
            heapify(self._deadlines)
        heappush(self._deadlines, (call.deadline, id(call), call))
