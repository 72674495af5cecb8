"""Socket of a broker for its children: a ROUTER, with the uuid of a child as its routing id.

With CURVE, only peers with a key of the instance are admitted (ZAP domain ``flux``).
ROUTER_MANDATORY reports a child that has gone, but only when something is sent to it. So after
libzmq reports the end of a connection, whose peer it does not name, every child gets a heartbeat.
libzmq reports the end a moment before the ROUTER knows it, hence more than one heartbeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

from specwire.generated.flux import AnyMessage
from specwire.runtime.flux.backlog import MAX_MESSAGES, Backlog
from specwire.runtime.flux.control import HEARTBEAT
from specwire.runtime.flux.encoding import Encoder
from specwire.runtime.transport.arrivals import Arrivals
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.guard import Guard
from specwire.runtime.transport.inflow import Inflow, InflowBounds
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.rekeying import change_keys
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import CurveServer, Null, refuse_exposure

HIGH_WATER = 1000
MAX_FRAME_OCTETS = 16 << 20
MESSAGE_OCTETS = MAX_FRAME_OCTETS + (1 << 20)
"""Size of the largest message: a payload of the largest size, and the other frames."""

GIVE_UP_S = 20.0
"""A TCP connection on which nothing is acknowledged for so long is lost; the pulse sees to it that there is something."""

PROBES_S = (0.0, 0.05, 0.3)
"""When the children are sent a heartbeat after a connection has ended."""


class Downlink:
    """The ROUTER; `open` binds it, `close` ends it.

    Args:
        encoder: makes frames.
        security: the keys of this side; NULL on this machine alone.
        allowed: the name of each peer that is let in, by its public key.
        max_frames: frames of a message that are kept.
        bounds: bounds on unfinished messages of children.
        on_message: called with the uuid and the frames of each message.
        on_sent: called with the uuid and the frames when the socket has taken a message.
        on_gone: called with the uuid and the reason when a child is not there, or takes nothing.
        on_refused: called with the reason after a failed handshake.
        on_cut: called with the reason after a connection was cut off for an unfinished message.
        resume: called with a client that was held back because of a child.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        security: CurveServer | Null,
        allowed: Mapping[str, str],
        max_frames: int,
        bounds: InflowBounds,
        on_message: Callable[[str, list[bytes]], None],
        on_sent: Callable[[str, Sequence[bytes]], None],
        on_gone: Callable[[str, str], None],
        on_refused: Callable[[str], None],
        on_cut: Callable[[str], None],
        resume: Callable[[str], None],
    ) -> None:
        self._encoder, self._security, self._allowed = encoder, security, dict(allowed)
        self._max_frames, self._bounds = max_frames, bounds
        self._on_message, self._on_sent, self._on_gone = on_message, on_sent, on_gone
        self._on_refused, self._on_cut, self._resume = on_refused, on_cut, resume
        self._backlogs: dict[bytes, Backlog] = {}
        self._probes: list[asyncio.TimerHandle] = []

    def open(self, context: TransportContext, endpoint: str, children: Callable[[], Iterable[str]]) -> str:
        """Bind, and return the endpoint as it is.

        Args:
            children: returns the uuids of those who are there.

        Raises:
            TransportError: it cannot be listened on, or is not to be without CURVE (ExposureError).
        """
        refuse_exposure(endpoint, self._security, insecure=None)
        self._children = children
        with ExitStack() as opened:
            self._guard = self._post_guard(context)
            opened.callback(self._dismiss_guard)
            self._router = Router(
                context,
                on_message=lambda peer, frames: self._on_message(peer.decode("latin-1"), frames),
                on_sent=self._sent,
                on_room=lambda peer: None,
                on_gone=self._gone,
                high_water=HIGH_WATER,
                max_waiting=MAX_MESSAGES,
                max_frame_octets=MAX_FRAME_OCTETS,
                security=self._security,
                paced=True,
                max_frames=self._max_frames,
                give_up_s=GIVE_UP_S,
            )
            opened.callback(self._router.close)
            link = self._router.link
            inflow = Inflow(link, self._bounds, self._on_cut)
            self._arrivals = Arrivals(context, link, self._on_refused, self._probe_soon, inflow=inflow)
            opened.callback(self._arrivals.close)
            bound = self._router.bind(endpoint)
            opened.pop_all()
        return bound

    async def change_keys(self, keys: KeyPair, endpoint: str) -> None:
        """Prove to be of the instance by other keys, and let in who has them; raises TransportError."""
        await change_keys(self._router.link, keys, (endpoint,), self._on_refused)

    def allow(self, names: Mapping[str, str]) -> None:
        """Let in those with these public keys, and nobody else."""
        self._allowed.clear()
        self._allowed.update(names)

    def close(self, *, linger_s: float) -> None:
        """Close; what libzmq has queued is sent for at most `linger_s`."""
        self._cancel_probes()
        for backlog in self._backlogs.values():
            backlog.release()
        self._arrivals.close()
        self._router.close(linger_s=linger_s)
        self._dismiss_guard()

    def send(self, child: str, message: AnyMessage) -> Backlog | None:
        """Send to a child, and return what waits for it where that is too much already; raises EncodeError."""
        peer, frames = child.encode("latin-1"), self._encoder.frames_of(message)
        self._router.send(peer, frames)
        if self._router.ready(peer):
            return None
        backlog = self._backlogs.get(peer)
        if backlog is None:
            backlog = self._backlogs[peer] = Backlog(self._resume)
        backlog.add(frames)
        if backlog.is_full:
            self._gone(peer, f"left {backlog.messages:,} messages of {backlog.octets:,} octets unread")
            return None
        return backlog if backlog.is_long else None

    def forget(self, child: str) -> None:
        """Drop what waits for a child."""
        peer = child.encode("latin-1")
        self._router.forget(peer)
        if (backlog := self._backlogs.pop(peer, None)) is not None:
            backlog.release()

    def waiting(self, child: str) -> int:
        """Return how many messages wait for a child."""
        backlog = self._backlogs.get(child.encode("latin-1"))
        return 0 if backlog is None else backlog.messages

    def _sent(self, peer: bytes, frames: Sequence[bytes]) -> None:
        if self._backlogs and (backlog := self._backlogs.get(peer)) is not None:
            backlog.take(frames)
            if not backlog.messages:
                del self._backlogs[peer]
        self._on_sent(peer.decode("latin-1"), frames)

    def _gone(self, peer: bytes, reason: str) -> None:
        child = peer.decode("latin-1")
        self.forget(child)
        self._on_gone(child, reason)

    def _probe_soon(self) -> None:
        """Send heartbeats soon, to find out which child has gone."""
        self._cancel_probes()
        loop = asyncio.get_running_loop()
        self._probes = [loop.call_later(delay_s, self._probe) for delay_s in PROBES_S]

    def _cancel_probes(self) -> None:
        for probe in self._probes:
            probe.cancel()

    def _probe(self) -> None:
        for child in tuple(self._children()):
            self.send(child, HEARTBEAT)

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self._guard.close()

    def _post_guard(self, context: TransportContext) -> Guard | None:
        if not isinstance(self._security, CurveServer):
            return None
        guard = Guard(context, names=self._allowed, on_refused=self._on_refused)
        guard.start()
        return guard
