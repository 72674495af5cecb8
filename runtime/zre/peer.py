"""ZRE peer as an asyncio service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated
from uuid import uuid4

import msgspec

from specwire.generated import zre
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.kernel.engine import PackageCodec, StoryEngine
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.log import EventStreams, LogEvent
from specwire.runtime.kernel.service import ConnectionSettings, HostSettings, ListenerSettings, Service
from specwire.runtime.kernel.sockets import MessageTap
from specwire.runtime.kernel.status import HostStatus, Measure
from specwire.runtime.transport.inflow import InflowBounds
from specwire.runtime.zre.beacon import Beacons
from specwire.runtime.zre.rules import MAILBOX, react
from specwire.runtime.zre.settings import (
    LONGEST_TEXT_OCTETS,
    ZreSettings,
    check_settings,
    resolve_endpoints,
)
from specwire.runtime.zre.state import LocalNode, SetMembership, ShoutTo, WhisperTo, ZreError

MAX_FRAMES = 64
"""Most frames of a message. The content of WHISPER or SHOUT has one less."""

HIGH_WATER = 3000


class RemoteStatus(msgspec.Struct, frozen=True):
    """A peer; `silent_s` is the time since its last message."""

    name: str
    uuid: str
    endpoint: str
    groups: tuple[str, ...]
    headers: Mapping[str, str]
    silent_s: float


class ZreStatus(msgspec.Struct, frozen=True):
    """A running ZRE peer; `dialing` has the endpoints that do not answer."""

    name: str
    uuid: str
    endpoint: str
    groups: tuple[str, ...]
    dialing: Annotated[tuple[str, ...], Measure("gauge", "Endpoints that do not answer.", "dialed_endpoints")]
    peers: Annotated[tuple[RemoteStatus, ...], Measure("gauge", "Known peers.")]
    host: HostStatus


class ZrePeer(Service):
    """One node; ``async with`` starts and stops it.

    Args:
        settings: where to listen, and which peers to greet.
        on_event: called with each event.
        tap: records every message.

    Attributes:
        uuid: of this node, in hexadecimal; other peers know it by this.

    Raises:
        ValueError: see `check_settings`.
    """

    def __init__(
        self,
        settings: ZreSettings,
        *,
        on_event: Callable[[LogEvent], None] = lambda event: None,
        tap: Recorder | None = None,
    ) -> None:
        check_settings(settings)
        self._settings, self._on_event = settings, on_event
        self._node = LocalNode(uuid4().bytes, settings)
        self.uuid = self._node.uuid.hex()
        self._streams = EventStreams()
        self._beacons: Beacons | None = None
        bounds = InflowBounds(
            message_octets=settings.frame_octets, legal_octets=MAX_FRAMES * settings.frame_octets
        )
        mailbox = ListenerSettings(
            endpoint=settings.bind,
            insecure=True,  # ZRE has no authentication; the default is loopback
            bounds=bounds,
            frame_octets=settings.frame_octets,
            max_frames=MAX_FRAMES + 1,  # one more, which the codec refuses
            handover=True,
        )
        self._host = Host(
            StoryEngine(partial(react, self._node)),
            PackageCodec(zre, max_frames=MAX_FRAMES),
            HostSettings(listeners={MAILBOX: mailbox}, connections=ConnectionSettings(high_water=HIGH_WATER)),
            on_event=self._emit,
            tap=None if tap is None else MessageTap(tap, received_as="P", sent_as="P"),
        )

    async def start(self) -> None:
        """Listen, greet the peers at the endpoints, and send beacons.

        Raises:
            TransportError: a host name is unknown, or it cannot listen for messages or beacons.
            HostStoppedError: the peer was started or stopped before.
        """
        try:
            self._node.settings = await resolve_endpoints(self._settings)
            await self._host.start()
            if self._settings.beacon is not None:
                await self._start_beacons(self._settings.beacon)
        except BaseException:
            self._streams.end()
            raise

    async def _start_beacons(self, address: str) -> None:
        mailbox = (address, int(self._node.endpoint.rpartition(":")[2]))
        beacons = Beacons(
            self._node.uuid,
            mailbox,
            self._settings.beacon_port,
            on_beacon=self._host.notice,
            on_event=self._emit,
        )
        try:
            await beacons.start()
        except BaseException:
            await self._host.stop()
            raise
        self._beacons = beacons

    async def stop(self) -> None:
        """Disconnect from every peer."""
        try:
            if self._beacons is not None:
                await self._beacons.stop()
                self._beacons = None
            await self._host.stop()
        finally:
            self._streams.end()

    async def join(self, group: str) -> None:
        """Join a group; raises ZreError for a name that is too long."""
        await self._host.call(SetMembership(checked_group(group), True))

    async def leave(self, group: str) -> None:
        """Leave a group."""
        await self._host.call(SetMembership(group, False))

    async def whisper(self, peer: str, content: Sequence[bytes]) -> None:
        """Send frames to a peer, by its UUID in hexadecimal.

        Raises:
            ZreError: the peer is unknown, or there are too many frames.
        """
        try:
            uuid = bytes.fromhex(peer)
        except ValueError:
            raise ZreError(f"{peer!r} is no UUID in hexadecimal") from None
        await self._host.call(WhisperTo(uuid, checked_content(content)))

    async def shout(self, group: str, content: Sequence[bytes]) -> int:
        """Send frames to the peers in a group; return the number of peers.

        Raises:
            ZreError: the name of the group is too long, or there are too many frames.
        """
        count: int = await self._host.call(ShoutTo(checked_group(group), checked_content(content)))
        return count

    def events(self) -> AsyncIterator[LogEvent]:
        """Return an iterator over the events from now on, which ends when this node stops or cannot start."""
        return self._streams.read()

    async def reload(self, settings: ZreSettings) -> None:
        """Apply other groups, further endpoints and times. Other settings need a restart.

        Raises:
            ValueError, TransportError: as for the first settings; nothing is changed.
        """
        check_settings(settings)
        self._host.reload(await resolve_endpoints(settings))

    def status(self) -> ZreStatus:
        """Return the status, from `start` on."""
        node, now = self._node, self._host.now()
        return ZreStatus(
            name=node.name,
            uuid=self.uuid,
            endpoint=node.endpoint,
            groups=tuple(node.groups),
            dialing=tuple(node.dialing),
            peers=tuple(
                RemoteStatus(
                    one.name,
                    one.label,
                    one.endpoint,
                    tuple(sorted(one.groups)),
                    one.headers,
                    round(now - one.received_at, 3),
                )
                for one in node.peers.values()
            ),
            host=self._host.status(),
        )

    def _emit(self, event: LogEvent) -> None:
        self._on_event(event)
        self._streams.add(event)


def checked_group(group: str) -> str:
    """Return the name of a group; raises ZreError if it is too long."""
    if len(group.encode()) > LONGEST_TEXT_OCTETS:
        raise ZreError(f"the name of a group has at most {LONGEST_TEXT_OCTETS} octets")
    return group


def checked_content(content: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the frames of a message; raises ZreError if there are too many."""
    if len(content) >= MAX_FRAMES:
        raise ZreError(f"a message has at most {MAX_FRAMES - 1} frames")
    return tuple(content)
