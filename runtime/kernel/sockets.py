"""The ZeroMQ sockets of a host: listeners (ROUTER) and connections (DEALER), by name.

Sockets are opened and closed in the order that libzmq requires: the guard and the monitor before
the socket is bound, the monitor closed before its socket, the guard before the context.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.kernel.effects import Connect
from specwire.runtime.kernel.events import PeerId
from specwire.runtime.kernel.service import ConnectionSettings, ListenerSettings
from specwire.runtime.transport.arrivals import Arrivals
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.guard import Guard
from specwire.runtime.transport.inflow import Inflow
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.messages import Frames, Traffic
from specwire.runtime.transport.rekeying import change_keys
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import (
    CurveClient,
    CurveServer,
    PlainServer,
    check_credentials,
    refuse_exposure,
)
from specwire.runtime.transport.serverkeys import ServerKeys


class SocketHandler(Protocol):
    """Receiver of what happens at the sockets."""

    def on_message(self, peer: PeerId, user: str, frames: Frames) -> None:
        """Handle a message."""

    def on_rest(self) -> None:
        """Handle that all messages of a wake-up of the event loop were passed to `on_message`."""

    def on_connected(self, peer: PeerId) -> None:
        """Handle a completed handshake."""

    def on_gone(self, peer: PeerId, reason: str) -> None:
        """Handle that a peer cannot be reached any more; a connection is closed already."""

    def on_room(self, listener: str, routing_id: bytes) -> None:
        """Handle that a peer of a listener may have room again."""

    def on_refused(self, reason: str) -> None:
        """Handle a client that was not admitted."""

    def on_cut(self, reason: str) -> None:
        """Handle a client that was cut off for an unfinished message."""


class MessageTap:
    """Recorder of all messages of a host.

    Args:
        received_as: role letter of the sender of received messages.
        sent_as: role letter of the sender of sent messages.
    """

    def __init__(self, recorder: Recorder, *, received_as: str, sent_as: str) -> None:
        self.recorder = recorder
        self._received_as, self._sent_as = received_as, sent_as
        self._session = os.urandom(4).hex()

    def received(self, peer: PeerId, frames: Sequence[bytes], connection: Connect | None = None) -> None:
        """Record a message from `peer`: from the endpoint of `connection`, or from a peer of a listener."""
        self._record(self._received_as, peer, frames, connection)

    def sent(self, peer: PeerId, frames: Sequence[bytes], connection: Connect | None = None) -> None:
        """Record a message that the socket has taken; see `received`."""
        self._record(self._sent_as, peer, frames, connection)

    def _record(self, sender: str, peer: PeerId, frames: Sequence[bytes], connection: Connect | None) -> None:
        label = peer.routing_id.hex() if connection is None else connection.endpoint
        conversation = f"{self._session}-{peer.socket}-{peer.routing_id.hex()}"
        if connection is not None and connection.identity:
            conversation = connection.identity.hex()
        self.recorder.record(sender=sender, peer=label, conversation=conversation, frames=frames)


class Sockets:
    """All sockets of one host.

    Args:
        connections: settings of each `connect`.
        tap: records every message.
    """

    def __init__(
        self, handler: SocketHandler, connections: ConnectionSettings, tap: MessageTap | None = None
    ) -> None:
        self._handler, self._settings, self._tap = handler, connections, tap
        self._context = TransportContext()
        self._guard: Guard | None = None
        self._listeners: dict[str, tuple[Router, Arrivals, str]] = {}
        self._dealers: dict[str, Dealer] = {}
        self._keys: dict[str, ServerKeys] = {}
        self._paused = False
        self._held: set[str] = set()
        self._traffic = Traffic()
        self.messages_in = self.octets_in = self.messages_out = self.octets_out = 0

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._dealers)

    def count(self) -> tuple[int, int, int, int]:
        """Return messages in, octets in, messages out and octets out, over all sockets."""
        traffic = self._traffic
        return (
            self.messages_in + traffic.messages_in,
            self.octets_in + traffic.octets_in,
            self.messages_out + traffic.messages_out,
            self.octets_out + traffic.octets_out,
        )

    def check_credentials(self) -> None:
        """Raise TransportError if connections cannot be made with their credentials."""
        check_credentials(self._context, self._settings.security)

    def listen(self, name: str, settings: ListenerSettings) -> str:
        """Bind a listener; return its endpoint as bound.

        Raises:
            TransportError: the endpoint cannot be bound, or requires CURVE (ExposureError).
        """
        refuse_exposure(settings.endpoint, settings.security, insecure=settings.insecure)
        self._start_guard(settings)
        on_gone = self._handler.on_gone
        router = Router(
            self._context,
            on_messages=partial(self._receive_all, name),
            on_sent=None if self._tap is None else partial(self._on_sent, self._tap, name),
            on_room=partial(self._handler.on_room, name),
            on_gone=lambda peer, reason: on_gone(PeerId(name, peer), reason),
            on_rest=self._handler.on_rest,
            high_water=settings.high_water,
            max_waiting=settings.max_waiting,
            max_waiting_octets=settings.max_waiting_octets,
            max_frame_octets=settings.frame_octets,
            max_frames=settings.max_frames + 1,
            security=settings.security,
            paced=True,
            give_up_s=settings.give_up_s,
            backlog=settings.backlog,
            copied=True,
            traffic=self._traffic,
            handover=settings.handover,
        )
        try:
            inflow = Inflow(router.link, settings.bounds, self._handler.on_cut)
            arrivals = Arrivals(self._context, router.link, self._handler.on_refused, inflow=inflow)
        except TransportError:
            router.close()
            raise
        self._listeners[name] = router, arrivals, ""
        bound = router.bind(settings.endpoint)
        self._listeners[name] = router, arrivals, bound
        return bound

    def connect(self, effect: Connect) -> None:
        """Open a connection; raises TransportError."""
        peer, name = effect.peer, effect.peer.socket
        assert name not in self._dealers and name not in self._listeners, f"{name} is open already"
        settings = self._settings
        keys = ServerKeys(settings.security)
        if isinstance(settings.security, CurveClient):  # the next connection may expect another key
            keys = self._keys.setdefault(effect.endpoint, keys)
        self._dealers[name] = Dealer(
            self._context,
            effect.endpoint,
            on_message=partial(self._receive, effect, keys),
            on_sent=partial(self._sent, effect),
            on_lost=partial(self._lose, peer, keys),
            on_open=partial(self._handler.on_connected, peer),
            on_rest=self._handler.on_rest,
            high_water=settings.high_water,
            security=keys.next(),
            identity=effect.identity,
            max_waiting=settings.max_waiting,
            paced=True,
            max_frames=settings.max_frames,
            max_frame_octets=settings.frame_octets,
            give_up_s=settings.give_up_s,
            connect_s=settings.connect_s,
        )
        if self._paused:
            self._dealers[name].pause()

    def send(self, peer: PeerId, frames: Sequence[bytes]) -> None:
        """Send, now or when there is room; `on_gone` reports where that is not possible."""
        dealer = self._dealers.get(peer.socket)
        if dealer is None:
            listener = self._listeners.get(peer.socket)
            if listener is not None:
                listener[0].send(peer.routing_id, frames)
        elif not dealer.send(frames):
            self.drop(peer)
            self._handler.on_gone(peer, "does not read its messages")

    def drop(self, peer: PeerId, *, linger_s: float = 0.5) -> None:
        """Close a connection, or forget what waits for a peer of a listener."""
        if (dealer := self._dealers.pop(peer.socket, None)) is not None:
            self._held.discard(peer.socket)
            dealer.close(linger_s=linger_s)
        elif peer.routing_id and (listener := self._listeners.get(peer.socket)) is not None:
            listener[0].forget(peer.routing_id)

    def reserve(self, peer: PeerId, octets: int) -> int | None:
        """Reserve room for a message to a peer of a listener, until the next message; see `AwaitRoom`.

        Returns:
            the octets for which there is room, at most `octets`; None if `on_room` will be called
            later.
        """
        router, _, _ = self._listeners[peer.socket]
        if not octets:
            return 0 if router.ready(peer.routing_id) else None
        return router.reserve(peer.routing_id, octets) or None

    def gather(self) -> None:
        """Let messages for peers of listeners wait for `settle`, and then leave together."""
        for router, _, _ in self._listeners.values():
            router.gather()

    def settle(self) -> None:
        """Send what has gathered."""
        for router, _, _ in self._listeners.values():
            router.settle()

    def pause(self, paused: bool) -> None:
        """Stop receiving, or start again; ZeroMQ then holds the peers back."""
        if paused != self._paused:
            self._paused = paused
            sockets: list[Dealer | Router] = [
                *(dealer for name, dealer in self._dealers.items() if name not in self._held),
                *(router for router, _, _ in self._listeners.values()),
            ]
            for socket in sockets:
                (socket.pause if paused else socket.resume)()

    def hold(self, peer: PeerId, held: bool) -> None:
        """Stop receiving from one connection, or start again unless all are paused."""
        dealer = self._dealers.get(peer.socket)
        if dealer is None or held == (peer.socket in self._held):
            return
        (self._held.add if held else self._held.discard)(peer.socket)
        if not self._paused:
            (dealer.pause if held else dealer.resume)()

    async def change_keys(self, keys: KeyPair) -> None:
        """Bind every CURVE listener again with other keys; raises TransportError."""
        for router, _, bound in tuple(self._listeners.values()):
            if router.link.encrypted:
                await change_keys(router.link, keys, (bound,), self._handler.on_refused)

    async def close(self, *, linger_s: float) -> None:
        """Close everything; queued messages are sent for at most `linger_s`."""
        for dealer in self._dealers.values():
            dealer.close(linger_s=linger_s)
        for router, arrivals, _ in self._listeners.values():
            arrivals.close()
            router.close(linger_s=linger_s)
        self._dealers.clear()
        self._listeners.clear()
        if self._guard is not None:
            self._guard.close()
        await self._context.close()

    def _start_guard(self, settings: ListenerSettings) -> None:
        if self._guard is None and isinstance(settings.security, PlainServer | CurveServer):
            self._guard = Guard(
                self._context,
                names=settings.names,
                any_key=settings.any_key,
                passwords=settings.passwords,
                on_refused=self._handler.on_refused,
            )
            self._guard.start()

    def _receive_all(self, name: str, messages: list[tuple[str, Frames]]) -> None:
        tap, on_message = self._tap, self._handler.on_message
        for user, frames in messages:
            peer = PeerId(name, frames.pop(0))
            if tap is not None:
                tap.received(peer, frames)
            on_message(peer, user, frames)

    def _receive(self, connection: Connect, keys: ServerKeys, frames: Frames) -> None:
        keys.heard()
        self.messages_in += 1
        self.octets_in += sum(map(len, frames))
        if self._tap is not None:
            self._tap.received(connection.peer, frames, connection)
        self._handler.on_message(connection.peer, "", frames)

    def _sent(self, connection: Connect, frames: Sequence[bytes]) -> None:
        self.messages_out += 1
        self.octets_out += sum(map(len, frames))
        if self._tap is not None:
            self._tap.sent(connection.peer, frames, connection)

    def _on_sent(self, tap: MessageTap, name: str, routing_id: bytes, frames: Sequence[bytes]) -> None:
        tap.sent(PeerId(name, routing_id), frames)

    def _lose(self, peer: PeerId, keys: ServerKeys, reason: str) -> None:
        keys.lost()
        self.drop(peer, linger_s=0.0)
        self._handler.on_gone(peer, reason)
