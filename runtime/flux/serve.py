"""A Flux broker as an asyncio service: sockets, services in Python and the clock around `BrokerEngine`.

Whatever happens (a message, a connection that comes or goes, a time that has come) is told to the engine, whose
actions are performed at once and in order (see `performing`).

A turn of the event loop is bounded by what a socket gives at a time: 64 messages of a neighbour, 64 KiB of a client.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import msgspec

from specwire.generated.errors import DecodeError
from specwire.generated.flux import AnyMessage, Request, Response
from specwire.runtime.capture.counts import count_taps
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.flux.actions import (
    PARENT,
    Action,
    CloseClient,
    DropChild,
    LeaveParent,
    Link,
    Report,
    Stopped,
    ToChild,
    ToClient,
    ToParent,
    ToService,
)
from specwire.runtime.flux.backlog import Backlog
from specwire.runtime.flux.broker import MAX_CLIENT_ROUTES, BrokerEngine
from specwire.runtime.flux.capturing import Capturing
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.connector import Connector
from specwire.runtime.flux.downlink import MESSAGE_OCTETS, Downlink
from specwire.runtime.flux.encoding import Encoder
from specwire.runtime.flux.events import Event, ParentUnreachable, PeerRefused
from specwire.runtime.flux.performing import Performer
from specwire.runtime.flux.service import ServiceHost
from specwire.runtime.flux.status import BrokerStatus, describe_broker
from specwire.runtime.flux.uplink import Uplink
from specwire.runtime.transport.backoff import Backoff
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.inflow import InflowBounds
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.security import NULL, CurveClient, CurveServer

ZAP_DOMAIN = "flux"
LINGER_S = 0.5
"""How long a neighbour that does not read delays the end of this broker."""

FIRST_TRY_S, LONGEST_TRY_S, CALM_S = 0.05, 5.0, 30.0
"""How the delays grow after which a broker that lost its parent says hello again."""

FRAMES_BESIDES_ROUTES = 8
"""Routing id, delimiter, topic, payload and the last frame, with some to spare."""


class FluxBroker:
    """One broker; ``async with FluxBroker(...)`` starts and stops it.

    Args:
        settings: what all brokers of the instance have in common; clock and process are filled in here.
        rank: its place in the tree.
        local: path of the socket for clients.
        bind: endpoint for the children; needed where the tree has any below this rank.
        parent: endpoint of the parent; needed below rank 0.
        keys: those of the instance; None leaves the overlay without CURVE, which is for this machine alone.
        services: objects whose methods are services in Python, by name (see `specwire.runtime.flux.service`).
        tap: gets every message at every socket.
        on_event: called with each event.

    Attributes:
        endpoint: what the children connect to, once started; empty where there are none.
        engine: the broker itself.

    Raises:
        ValueError: an endpoint is missing.
        FluxError: a service cannot have its name.
    """

    def __init__(
        self,
        settings: Settings,
        rank: int,
        *,
        local: str,
        bind: str | None = None,
        parent: str | None = None,
        keys: KeyPair | None = None,
        services: Mapping[str, object] | None = None,
        tap: Recorder | None = None,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._clock = time.monotonic  # which is the event loop's
        settings = msgspec.structs.replace(
            settings, clock_offset_s=time.time() - self._clock(), process=os.getpid()
        )
        self.engine = BrokerEngine(settings, rank, _new_uuid(), _new_uuid, now=self._clock())
        self.endpoint = ""
        self._bind, self._on_event = bind, on_event
        self._tap = tap
        self._capturing = None if tap is None else Capturing(tap, settings.wire)
        self._decode = settings.wire.decode
        self._client = ""
        self._rejoining: asyncio.TimerHandle | None = None
        self._stopping = False
        self._changing = asyncio.Lock()
        self._backoff = Backoff(first_s=FIRST_TRY_S, longest_s=LONGEST_TRY_S, calm_s=CALM_S)
        self._connector = Connector(
            local,
            on_accept=self._accept,
            on_message=self._on_client,
            on_gone=self._client_gone,
            wire=settings.wire.local,
        )
        self._downlink, self._uplink = self._make_links(parent, keys)
        self._services = self._host(services or {})

    @property
    def uri(self) -> str:
        """How clients find this broker."""
        return f"local://{self._connector.path}"

    def status(self) -> BrokerStatus:
        """Tell how this broker is."""
        return describe_broker(
            self.engine,
            self.uri,
            self.endpoint,
            self._connector.counts,
            self._clock(),
            count_taps(self._tap),
        )

    def allow_guests(self, allowed: bool) -> None:
        """Let other users connect from now on, or no more of them."""
        self.engine.settings = msgspec.structs.replace(self.engine.settings, allow_guests=allowed)

    async def change_keys(self, keys: KeyPair) -> None:
        """Prove to be of the instance by other CURVE keys; returns when this broker listens by them.

        The children are disconnected, and come in again when they have the same keys; so does this broker at its
        parent, when that has disconnected it.

        Raises:
            TransportError: the keys are none; those before stay.
        """
        async with self._changing:
            if self._downlink is not None:
                await self._downlink.change_keys(keys, self.endpoint)
                self._downlink.allow({keys.public: ZAP_DOMAIN})
            if self._uplink is not None:
                self._uplink.change_security(CurveClient(keys, keys.public))

    async def start(self) -> None:
        """Listen, and say hello to the parent.

        Raises:
            TransportError: a socket cannot be listened on, or is not to be without CURVE (ExposureError).
        """
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._performer = Performer(self.engine, self._ways())
        self._perform, self._perform_now = self._performer.perform, self._performer.perform_now
        self._connector.on_handed = self._performer.look_at_time
        async with AsyncExitStack() as opened:
            context = TransportContext()
            opened.push_async_callback(context.close)
            if self._downlink is not None and self._bind is not None:
                children = self.engine.overlay.children
                self.endpoint = self._downlink.open(context, self._bind, lambda: children.present)
                opened.callback(self._downlink.close, linger_s=LINGER_S)
            await self._connector.start()
            opened.push_async_callback(self._connector.stop)
            if self._uplink is not None:
                self._uplink.open(context, self.engine.uuid)
                opened.callback(self._uplink.close, linger_s=LINGER_S)
            opened.callback(self._performer.close)
            self._opened = opened.pop_all()
        self._perform(self.engine.start(self._clock()))

    async def stop(self) -> None:
        """Leave the tree, let children and clients go, and release everything."""
        self._stopping = True
        if self._rejoining is not None:
            self._rejoining.cancel()
        self._perform(self.engine.stop(self._clock()))
        await self._gone  # a goodbye is answered, or waited for a little
        for host in self._services.values():
            await host.close()
        await self._opened.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # --- what it is made of

    def _make_links(self, parent: str | None, keys: KeyPair | None) -> tuple[Downlink | None, Uplink | None]:
        """Return the sockets of the overlay, as far as this rank has neighbours."""
        engine, tree = self.engine, self.engine.settings.tree
        encoder = Encoder(engine.settings.wire)
        max_frames = 2 * tree.height + MAX_CLIENT_ROUTES + FRAMES_BESIDES_ROUTES
        downlink = uplink = None
        if tree.children(engine.rank):
            if self._bind is None:
                raise ValueError(f"rank {engine.rank} has children, so it needs an endpoint for them")
            downlink = Downlink(
                encoder,
                security=NULL if keys is None else CurveServer(keys, ZAP_DOMAIN),
                allowed={} if keys is None else {keys.public: ZAP_DOMAIN},
                max_frames=max_frames,
                bounds=InflowBounds(
                    message_octets=engine.settings.message_octets,
                    legal_octets=MESSAGE_OCTETS,
                    undelivered_octets=engine.settings.undelivered_octets,
                ),
                on_message=self._on_child,
                on_sent=self._sent_down,
                on_gone=self._child_gone,
                on_refused=self._refused,
                on_cut=self._cut_off,
                resume=self._resume,
            )
        if engine.rank:
            if parent is None:
                raise ValueError(f"rank {engine.rank} has a parent, so it needs the endpoint of it")
            uplink = Uplink(
                encoder,
                parent,
                security=NULL if keys is None else CurveClient(keys, keys.public),
                max_frames=max_frames,
                backoff=self._backoff,
                on_message=self._on_parent,
                on_sent=self._sent_up,
                on_unreachable=self._parent_unreachable,
                on_lost=self._parent_gone,
                resume=self._resume,
            )
        return downlink, uplink

    def _host(self, services: Mapping[str, object]) -> dict[str, ServiceHost]:
        hosts = {}
        for name, service in services.items():
            self.engine.add_service(name)

            def respond(response: Response, name: str = name) -> None:
                self._perform(self.engine.from_service(name, response, self._clock()))

            hosts[name] = ServiceHost(name, service, respond)
        return hosts

    def _ways(self) -> Mapping[type[Action], Callable[[Any], None]]:
        """Return what performs each kind of action."""
        return {
            ToParent: self._to_parent,
            ToChild: self._to_child,
            ToClient: self._to_client,
            ToService: self._to_service,
            CloseClient: self._close_client,
            DropChild: self._drop_child,
            LeaveParent: self._leave_parent,
            Report: self._report,
            Stopped: self._ended,
        }

    # --- what happens

    def _on_child(self, child: str, frames: list[bytes]) -> None:
        if self._capturing is not None:
            self._capturing.take("C", child, frames)
        try:
            message = self._decode(frames)
        except DecodeError as error:
            self._perform(self.engine.malformed(Link("child", child), f"malformed: {error}", self._clock()))
        else:
            self._perform(self.engine.from_child(child, message, self._clock()))

    def _on_parent(self, frames: list[bytes]) -> None:
        if self._capturing is not None:
            self._capturing.take("S", self.engine.uuid, frames)
        try:
            message = self._decode(frames)
        except DecodeError as error:
            self._perform(self.engine.malformed(PARENT, f"malformed: {error}", self._clock()))
        else:
            self._perform(self.engine.from_parent(message, self._clock()))

    def _on_client(self, client: str, message: AnyMessage) -> None:
        if self._capturing is not None:
            self._capturing.take_local("C", client, message)
        self._client = client
        self._perform_now(self.engine.from_client(client, message, self._clock()))
        self._client = ""

    def _accept(self, client: str, uid: int, pid: int) -> int:
        errnum = self.engine.authorise(uid)
        if not errnum:
            self._perform(self.engine.accept_client(client, uid, self._clock()))
        return errnum

    def _client_gone(self, client: str, reason: str) -> None:
        self._perform(self.engine.client_gone(client, self._clock(), reason))

    def _child_gone(self, child: str, reason: str) -> None:
        self._perform(self.engine.child_gone(child, reason, self._clock()))

    def _parent_gone(self, reason: str) -> None:
        self._perform(self.engine.parent_gone(reason, self._clock()))

    def _parent_unreachable(self, reason: str) -> None:
        self._perform(self.engine.happened(ParentUnreachable(reason), self._clock()))

    def _refused(self, reason: str) -> None:
        self._perform(self.engine.happened(PeerRefused(reason), self._clock()))

    def _cut_off(self, reason: str) -> None:
        self.engine.counters.cut_off += 1
        self._refused(reason)

    def _sent_down(self, child: str, frames: Sequence[bytes]) -> None:
        if self._capturing is not None:
            self._capturing.take("S", child, frames)

    def _sent_up(self, frames: Sequence[bytes]) -> None:
        if self._capturing is not None:
            self._capturing.take("C", self.engine.uuid, frames)

    # --- what is done about it

    def _to_parent(self, action: ToParent) -> None:
        if self._uplink is not None:
            self._hold(self._uplink.send(action.message))

    def _to_child(self, action: ToChild) -> None:
        if self._downlink is None:
            return
        backlog = self._downlink.send(action.child, action.message)
        if type(action.message) is Request:  # an event is for others, too, and does not wait for one of them
            self._hold(backlog)

    def _hold(self, backlog: Backlog | None) -> None:
        """Where a link does not keep up, the client whose message this is waits; the tree does not."""
        if backlog is not None and self._client:
            backlog.hold(self._client)
            self._connector.hold(self._client)

    def _resume(self, client: str) -> None:
        self._loop.call_soon(self._connector.resume, client)

    def _to_client(self, action: ToClient) -> None:
        if self._capturing is not None:
            self._capturing.take_local("S", action.client, action.message)
        self._connector.send(action.client, action.message)

    def _to_service(self, action: ToService) -> None:
        self._services[action.service].receive(action.request)

    def _close_client(self, action: CloseClient) -> None:
        self._connector.close(action.client, action.reason)

    def _drop_child(self, action: DropChild) -> None:
        if self._downlink is not None:
            self._downlink.forget(action.child)

    def _leave_parent(self, action: LeaveParent) -> None:
        if self._uplink is None:
            return
        self._uplink.close()
        if not self._stopping:
            at = self._backoff.next_try(self._clock())
            self._rejoining = self._loop.call_at(at, self._rejoin)

    def _rejoin(self) -> None:
        uuid = _new_uuid()
        if self._uplink is not None:
            self._uplink.reopen(uuid)
        self._perform(self.engine.rejoin(uuid, self._clock()))

    def _report(self, action: Report) -> None:
        self._on_event(action.event)

    def _ended(self, action: Stopped) -> None:
        if not self._gone.done():
            self._gone.set_result(None)


def _new_uuid() -> str:
    return str(uuid4())
