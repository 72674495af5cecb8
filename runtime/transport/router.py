"""The ROUTER of a server: many peers, each with its own queue of what could not be sent yet.

ROUTER_MANDATORY makes libzmq say when a peer is gone or full, where it would otherwise drop without a word.
A full peer gets its messages later, in order, and holds back no other peer; a peer that lets more than
`max_waiting` messages gather does not read what it asked for and is given up. `reserve` says how large a frame
a peer should be sent, so that all together cost bounded memory (`freight`).

Between `gather` and `settle` messages only gather, and are then sent together: that costs the sender less, and wakes
libzmq's thread once and not for each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import zmq

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.freight import Freight, view_largest
from specwire.runtime.transport.link import MAX_FRAMES, Link, OnMessages
from specwire.runtime.transport.messages import Frames, Traffic
from specwire.runtime.transport.security import NULL, Security
from specwire.runtime.transport.waitingoctets import WaitingOctets

HIGH_WATER = 32
MAX_WAITING = 1000
BACKLOG = 100
MAX_FRAME_OCTETS = 1 << 20
TOGETHER = 32
"""With so many gathered they are sent: who gets the first one begins to work on it while more gather."""


class Router:
    """A bound socket.

    Args:
        on_message: called with the routing id and the frames of each message.
        on_messages: see `Link`; the first of the frames is the routing id.
        on_sent: called with the routing id and the frames when the socket has taken a message, if anybody wants to know.
        on_room: called with the routing id when everything that waited for this peer has been taken, or it has
            room for more.
        on_gone: called with the routing id and the reason when a message for this peer had to be dropped.
        high_water: messages that libzmq queues for each peer.
        security: what clients have to prove; with more than NULL the context needs a `Guard`.
        paced: a large frame waits here while its peer has no room, for a caller that does not `reserve`.
        max_frames: frames of a message that are kept, the routing id among them.
        give_up_s: a TCP connection on which nothing is acknowledged for so long is lost.
        backlog: connections that the system holds until they are accepted; more have to knock again.
        on_rest: called when what has come in a wake-up was handed over.
        max_waiting_octets: what may wait here for all peers together; one may have half of what the others leave, and
            is given up beyond it. One message waits for anybody, however large.
        copied, traffic: see `messages`.
        handover: a new connection with the routing id of an older one replaces it.
    """

    def __init__(
        self,
        context: TransportContext,
        *,
        on_message: Callable[[bytes, Frames], None] | None = None,
        on_messages: OnMessages | None = None,
        on_sent: Callable[[bytes, Sequence[bytes]], None] | None,
        on_room: Callable[[bytes], None],
        on_gone: Callable[[bytes, str], None],
        high_water: int = HIGH_WATER,
        max_waiting: int = MAX_WAITING,
        max_frame_octets: int = MAX_FRAME_OCTETS,
        security: Security = NULL,
        paced: bool = False,
        max_frames: int = MAX_FRAMES,
        give_up_s: float | None = None,
        backlog: int = BACKLOG,
        max_waiting_octets: int | None = None,
        on_rest: Callable[[], None] | None = None,
        copied: bool = False,
        traffic: Traffic | None = None,
        handover: bool = False,
    ) -> None:
        self._on_sent, self._on_room, self._on_gone = on_sent, on_room, on_gone
        self._waiting: dict[bytes, deque[Sequence[bytes]]] = {}
        self._octets = WaitingOctets(max_waiting_octets)
        self._gathering = False
        self._gathered: list[Sequence[bytes]] = []
        self._max_waiting = max_waiting
        self._paced = paced
        self._freight = Freight(self._tell_room)
        self._reserved: dict[bytes, int] = {}
        self._link = Link(
            context,
            zmq.ROUTER,
            on_message=None if on_message is None else lambda frames: on_message(frames[0], frames[1:]),
            on_messages=on_messages,
            on_room=self._flush,
            high_water=high_water,
            max_frame_octets=max_frame_octets,
            security=security,
            max_frames=max_frames,
            give_up_s=give_up_s,
            on_rest=on_rest,
            copied=copied,
            traffic=traffic,
        )
        self._link.socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._link.socket.setsockopt(zmq.BACKLOG, backlog)
        self._link.socket.setsockopt(zmq.ROUTER_HANDOVER, handover)

    @property
    def link(self) -> Link:
        """The socket, for whoever watches its connections."""
        return self._link

    @property
    def user(self) -> str:
        """See `Link.user`."""
        return self._link.user

    def bind(self, endpoint: str) -> str:
        """Bind and return the endpoint as it is; raises TransportError."""
        return self._link.bind(endpoint)

    def ready(self, peer: bytes) -> bool:
        """Return whether nothing waits for this peer."""
        self._send_gathered()
        return peer not in self._waiting

    def reserve(self, peer: bytes, wanted: int) -> int:
        """Return how many of `wanted` octets may be prepared for `peer` in a frame.

        They count until the next message for this peer, or the next reservation. The result is 0
        where `on_room` will be called when it may be asked again.
        """
        self._freight.redeem(peer, self._reserved.pop(peer, 0))
        room = self._freight.room(peer, wanted) if self.ready(peer) else 0
        if room:
            self._freight.promise(peer, room)
            self._reserved[peer] = room
        return room

    def gather(self) -> None:
        """Send nothing until `settle`, but what is more than a few messages."""
        self._gathering = True

    def settle(self) -> None:
        """Send what has gathered."""
        self._gathering = False
        self._send_gathered()

    def send(self, peer: bytes, frames: Sequence[bytes]) -> None:
        """Send to `peer` now, or when it has room again; `on_gone` tells where neither is possible."""
        if peer in self._reserved:
            self._freight.redeem(peer, self._reserved.pop(peer))
        if self._gathering:
            self._gathered.append([peer, *frames])
            if len(self._gathered) >= TOGETHER:
                self._send_gathered()
        else:
            self._send(peer, frames)

    def send_all(self, peer: bytes, messages: Iterable[Sequence[bytes]]) -> None:
        """Send several messages, in their order, as `send` does one."""
        self._gathered += [[peer, *frames] for frames in messages]
        if not self._gathering or len(self._gathered) >= TOGETHER:
            self._send_gathered()

    def _send_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        at = 0
        while at < len(gathered):
            begun = at
            if not self._waiting:  # else it might overtake what waits for its peer
                at = self._link.send_all(gathered, at)
            if self._on_sent is not None:
                for peer, *frames in gathered[begun:at]:
                    self._on_sent(peer, frames)
            if at < len(gathered):
                peer, *frames = gathered[at]
                self._send(peer, frames)
                at += 1

    def _send(self, peer: bytes, frames: Sequence[bytes]) -> None:
        waiting = self._waiting.get(peer)
        if waiting is None:
            if not self._offer(peer, frames):
                self._waiting[peer] = deque([frames])
                self._octets.add(peer, frames)
        elif len(waiting) < self._max_waiting and self._octets.has_room(peer, frames):
            waiting.append(frames)
            self._octets.add(peer, frames)
        else:
            self.forget(peer)
            self._on_gone(peer, f"left {len(waiting)} messages unread")

    def forget(self, peer: bytes) -> None:
        """Drop what waits for `peer`, and what is reserved; what has gathered is sent before."""
        self._freight.redeem(peer, self._reserved.pop(peer, 0))
        self._send_gathered()
        self._waiting.pop(peer, None)
        self._octets.forget(peer)

    def pause(self) -> None:
        """Stop receiving."""
        self._link.pause()

    def resume(self) -> None:
        """Receive again after `pause`."""
        self._link.resume()

    def close(self, *, linger_s: float = 0.0) -> None:
        """Close; what libzmq has queued is sent for at most `linger_s`, what waits here is dropped."""
        self._link.close(linger_s=linger_s)

    def _offer(self, peer: bytes, frames: Sequence[bytes]) -> bool:
        """Return False where the peer has no room; a peer that is gone counts as served."""
        viewed, view = view_largest(frames)
        if view is not None and self._paced and not self._freight.room(peer, view.nbytes):
            return False
        try:
            if not self._link.send([peer, *viewed]):
                return False
        except ConnectionResetError:
            self.forget(peer)
            self._on_gone(peer, "has disconnected")
            return True
        if view is not None:
            self._freight.add(peer, view)
        if self._on_sent is not None:
            self._on_sent(peer, frames)
        return True

    def _tell_room(self, peer: bytes) -> None:
        if self._link.socket.closed:  # then libzmq lets go of what it has not sent
            return
        if self._paced:
            self._flush_peer(peer)
        if self.ready(peer):
            self._on_room(peer)

    def _flush(self) -> None:
        for peer in list(self._waiting):
            self._flush_peer(peer)

    def _flush_peer(self, peer: bytes) -> None:
        waiting = self._waiting.get(peer)
        while waiting and self._waiting.get(peer) is waiting:
            if not self._offer(peer, waiting[0]):
                return
            self._octets.take(peer, waiting.popleft())
        if self._waiting.get(peer) is waiting:
            self.forget(peer)
            self._on_room(peer)
