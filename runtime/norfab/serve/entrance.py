"""Where peers come in: a broker's ROUTERs, their guard, and a watch on who does not get in.

There is one ROUTER for everybody, or one for clients and one for workers, each bound to one endpoint or several. They are
opened and closed in the order that libzmq wants: guard and watch are at their posts before a socket is bound, the watch
ends before its socket, and the guard's own socket is closed before the context, which would wait for it without end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from specwire.runtime.norfab.commands import Role
from specwire.runtime.transport.arrivals import Arrivals
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.guard import Guard
from specwire.runtime.transport.inflow import Inflow, InflowBounds
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.messages import Traffic
from specwire.runtime.transport.rekeying import change_keys
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import CurveServer, Null, refuse_exposure

HIGH_WATER = 1000
MAX_WAITING = 50_000
"""Messages that wait for a peer that takes none."""

WAITING_OCTETS = 1 << 30
"""What these and those of all other peers may have. It is more than the bodies of all jobs, so that workers that are slow to
take large ones are not lost for it."""

BACKLOG = 4096
"""Peers that may come at the same moment, as all do when a broker begins anew."""

MAX_FRAMES = 32
"""Frames of a message that are looked at, the routing id among them: no command has more than nine."""

GIVE_UP_S = 15.0
"""A connection that acknowledges nothing for so long is lost: its name is free for who comes back."""

ServerSecurity = Null | CurveServer

Door = tuple[Role, ...]
"""A socket, by the roles of the peers that come in there."""

OnMessages = Callable[[Door, list[tuple[str, list[bytes]]]], None]
"""Called with the socket, and what has come: of each message the user that the guard knows, and the frames, a routing id first."""


class Entrance:
    """The sockets of one broker.

    Args:
        security: what peers have to prove.
        names: the name of each peer by its public key; with CURVE nobody else is let in.
        insecure: listen beyond this machine even without CURVE.
        frame_octets: a peer that sends a larger frame is disconnected.
        bounds: bounds on unfinished messages.
        on_messages: see `OnMessages`.
        on_sent: called with the socket, the routing id, and the frames that were taken, if anybody wants to know.
        on_gone: called with the socket, the routing id, and the reason when a message had to be dropped.
        on_turned_away: called with the reason after a failed handshake.
        on_cut: called with the reason after a connection was cut off for an unfinished message.
        on_rest: called when the messages that had come were handed over.
        traffic: counts what passes.

    Attributes:
        routers: where those of each role come in.
    """

    def __init__(
        self,
        security: ServerSecurity,
        names: Mapping[str, str] | None,
        *,
        insecure: bool,
        frame_octets: int,
        bounds: InflowBounds,
        on_messages: OnMessages,
        on_sent: Callable[[Door, bytes, Sequence[bytes]], None] | None,
        on_gone: Callable[[Door, bytes, str], None],
        on_turned_away: Callable[[str], None],
        on_cut: Callable[[str], None],
        on_rest: Callable[[], None],
        traffic: Traffic,
    ) -> None:
        self._traffic = traffic
        self._security, self._names, self._insecure = security, names, insecure
        self._frame_octets, self._bounds, self._on_cut = frame_octets, bounds, on_cut
        self._on_messages, self._on_sent, self._on_gone = on_messages, on_sent, on_gone
        self._on_turned_away, self._on_rest = on_turned_away, on_rest
        self.routers: dict[Role, Router] = {}
        self._open: list[tuple[Router, Arrivals]] = []
        self._bound: list[tuple[Router, tuple[str, ...]]] = []
        self._context: TransportContext | None = None
        self._guard: Guard | None = None

    def open(self, front: Sequence[str], back: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Listen, and return the endpoints as bound; workers come in at the front where there is no back.

        Raises:
            TransportError: an endpoint cannot be listened on, or is not to be without CURVE (ExposureError).
        """
        for endpoint in (*front, *back):
            refuse_exposure(endpoint, self._security, insecure=self._insecure)
        context = self._context = TransportContext()
        self._guard = self._post_guard(context)
        if not back:
            return self._listen(context, front, ("worker", "client")), ()
        return self._listen(context, front, ("client",)), self._listen(context, back, ("worker",))

    def gather(self) -> None:
        """Send nothing until `settle`, but what is more than a few messages."""
        for router, _ in self._open:
            router.gather()

    def settle(self) -> None:
        """Send what has gathered."""
        for router, _ in self._open:
            router.settle()

    def pause(self) -> None:
        """Receive nothing until `resume`."""
        for router, _ in self._open:
            router.pause()

    def resume(self) -> None:
        """Receive again after `pause`."""
        for router, _ in self._open:
            router.resume()

    async def change_keys(self, keys: KeyPair, say: Callable[[str], None]) -> None:
        """Prove to be the broker by other keys; see `rekeying`. Raises TransportError."""
        for router, endpoints in self._bound:
            await change_keys(router.link, keys, endpoints, say)

    async def close(self, *, linger_s: float) -> None:
        """Close; messages that libzmq has queued are sent for at most `linger_s`."""
        for router, arrivals in self._open:
            arrivals.close()
            router.close(linger_s=linger_s)
        self._open.clear()
        if self._guard is not None:
            self._guard.close()
        if self._context is not None:
            await self._context.close()

    def _listen(self, context: TransportContext, endpoints: Sequence[str], door: Door) -> tuple[str, ...]:
        router = Router(
            context,
            on_messages=partial(self._on_messages, door),
            on_sent=None if self._on_sent is None else partial(self._on_sent, door),
            on_room=_nothing_held_back,
            on_gone=partial(self._on_gone, door),
            high_water=HIGH_WATER,
            max_waiting=MAX_WAITING,
            max_waiting_octets=WAITING_OCTETS,
            max_frame_octets=self._frame_octets,
            security=self._security,
            paced=True,
            max_frames=MAX_FRAMES,
            give_up_s=GIVE_UP_S,
            backlog=BACKLOG,
            on_rest=self._on_rest,
            copied=True,  # what is kept, and read again later, is our own
            traffic=self._traffic,
        )
        link = router.link
        try:
            inflow = Inflow(link, self._bounds, self._on_cut)
            arrivals = Arrivals(context, link, self._on_turned_away, inflow=inflow)
        except TransportError:
            router.close()
            raise
        self._open.append((router, arrivals))
        for role in door:
            self.routers[role] = router
        bound = tuple(router.bind(endpoint) for endpoint in endpoints)
        self._bound.append((router, bound))
        return bound

    def _post_guard(self, context: TransportContext) -> Guard | None:
        if not isinstance(self._security, CurveServer):
            return None
        guard = Guard(context, names=self._names or {}, on_refused=self._on_turned_away)
        guard.start()
        return guard


def _nothing_held_back(peer: bytes) -> None:
    """Nothing waits here for a peer to have room: the router has it all."""
