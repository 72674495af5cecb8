"""Whole messages in and out of a ZeroMQ socket, without waiting: in C where that was compiled, else through pyzmq.

A message of eight frames costs pyzmq eight calls each way, each of which takes options, gives the lock of the
interpreter away and looks for signals. The compiled `_native` makes one call of it, on the same libzmq and the same
socket. It is chosen as a generated package chooses its codec (`specwire.generated.builds`), by the name of this
package; `specwire show builds` tells. What holds of both:

- A multipart message is taken whole, but only its first `max_frames` frames are kept: no message of ours
  has so many, so what is cut is malformed anyway, and its memory is bounded.
- From `COPY_LIMIT_OCTETS` on a frame is handed to libzmq by reference, and libzmq's own is looked at: none is copied.
  A view that was sent is let go of when libzmq has let go of it, which `freight` counts on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import zmq

from specwire.generated.builds import is_native

PACKAGE = "specwire.runtime.transport"
"""By what name `specwire.generated.builds` knows which build is in use."""

BUILD = "messages 6"
"""Changed with the compiled source, which has the same: no other is taken."""

COPY_LIMIT_OCTETS = 16 * 1024

NOW = int(zmq.NOBLOCK)
NOW_AND_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
POLLIN = int(zmq.POLLIN)

Frames = list[bytes]
"""The frames of a message; a large one that came in is a view of libzmq's memory, which lives as long as the view, where
the socket's `Messages` were not asked for copies."""


class PureTraffic:
    """What has passed through sockets, in messages and in octets of their frames without routing ids; it only grows."""

    __slots__ = ("messages_in", "messages_out", "octets_in", "octets_out")

    def __init__(self) -> None:
        self.messages_in = self.octets_in = self.messages_out = self.octets_out = 0


class PureMessages:
    """The messages of one socket, through pyzmq.

    Args:
        socket: of this thread; it is closed by who made it.
        max_frames: frames of a message that are kept, one at least.
        guarded: whether a `Guard` answers for the socket, so that each message has a user.
        copied: large frames that come in are octets of our own, as small ones are, and not views.
        traffic: counts what passes; of other sockets as well, if it is theirs too.
        addressed: the first frame of each message is a routing id.
        origins: set to which `receive` adds the descriptor of each message's connection.

    Attributes:
        user: who sent the message that was received last, by the name that the `Guard` knows; empty without one.
        received: number of received messages; counted only with `origins`.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        max_frames: int,
        guarded: bool,
        *,
        copied: bool = False,
        traffic: PureTraffic | None = None,
        addressed: bool = False,
        origins: set[int] | None = None,
    ) -> None:
        self.user = ""
        self.received = 0
        self._origins = origins
        self._socket, self._max_frames, self._guarded = socket, max_frames, guarded
        self._copied, self._traffic, self._addressed = copied, traffic, addressed
        socket.copy_threshold = COPY_LIMIT_OCTETS
        # pyzmq's own `send` asks for options that only other kinds of sockets have, which takes longer than sending.
        self._put = super(zmq.Socket, socket).send

    def send(self, frames: Sequence[bytes | memoryview]) -> bool:
        """Send a message; False where there is no room for it.

        Raises:
            zmq.ZMQError: the peer is not known, or the socket is closed.
        """
        last = frames[-1]
        try:
            for frame in frames[:-1]:
                if len(frame) < COPY_LIMIT_OCTETS:
                    self._put(frame, NOW_AND_MORE)
                else:
                    self._put(frame, NOW_AND_MORE, copy=False)
            if len(last) < COPY_LIMIT_OCTETS:
                self._put(last, NOW)
            else:
                self._put(last, NOW, copy=False)
        except zmq.Again:
            return False
        if self._traffic is not None:
            self._traffic.messages_out += 1
            self._traffic.octets_out += sum(map(len, frames[self._addressed :]))
        return True

    def send_all(self, messages: Sequence[Sequence[bytes]], at: int) -> int:
        """Send messages from number `at` on; return the number of the first that was not sent, of all where all were.

        It is one for which there is no room or that has a large frame, or whose peer is not known; what to do with it
        is for `send` to say.
        """
        while at < len(messages) and max(map(len, messages[at]), default=0) < COPY_LIMIT_OCTETS:
            try:
                if not self.send(messages[at]):
                    break
            except zmq.ZMQError:
                break
            at += 1
        return at

    def receive(self) -> Frames:
        """Return the frames of the next message; none where there is none.

        Raises:
            zmq.ZMQError: the socket is closed, or its context has ended.
        """
        try:
            frame = self._socket.recv(NOW, copy=False)
        except zmq.Again:
            return []
        if self._guarded:
            self.user = str(frame.get("User-Id"))
        frames = [self._octets_of(frame)]
        octets = 0 if self._addressed else len(frame)
        while frame.more:
            frame = self._socket.recv(NOW, copy=False)
            octets += len(frame)
            if len(frames) < self._max_frames:
                frames.append(self._octets_of(frame))
        if self._origins is not None:
            self.received += 1
            self._origins.add(int(frame.get(zmq.SRCFD)))
        if self._traffic is not None:
            self._traffic.messages_in += 1
            self._traffic.octets_in += octets
        return frames

    def receive_all(self, messages: list[tuple[str, Frames]], most: int, octets: int) -> None:
        """Append what can be received to `messages`: of each its user, and its frames.

        Args:
            messages: what is in it already counts for `most`.
            most: with so many nothing more is received.
            octets: when the frames that were received and kept have so many, nothing more is.

        Raises:
            zmq.ZMQError: as `receive`; what came before is in the list.
        """
        while len(messages) < most and octets > 0 and (frames := self.receive()):
            messages.append((self.user, frames))
            octets -= sum(map(len, frames))

    def readable(self) -> bool:
        """Tell whether a message can be received.

        Raises:
            zmq.ZMQError: the socket is closed, or its context has ended.
        """
        return int(self._socket.getsockopt(zmq.EVENTS)) & POLLIN != 0

    def _octets_of(self, frame: zmq.Frame) -> bytes:
        """Return the octets of a small frame, and a read-only view of a large one."""
        if self._copied or len(frame) < COPY_LIMIT_OCTETS:
            return frame.bytes
        return cast("bytes", frame.buffer.toreadonly())


def _watch(loop: asyncio.AbstractEventLoop) -> None:
    """Have `loop` let go of views that libzmq has let go of; raises OSError where there are no descriptors left.

    pyzmq has a thread of its own for that.
    """


def _take_back() -> None:
    """Let go now of all views that libzmq has let go of."""


if TYPE_CHECKING or not is_native(PACKAGE, BUILD):
    Messages, watch, take_back = PureMessages, _watch, _take_back
    Traffic = PureTraffic
else:
    from specwire.runtime.transport._native import Messages, Traffic, take_back, watch

__all__ = [
    "BUILD",
    "COPY_LIMIT_OCTETS",
    "PACKAGE",
    "Frames",
    "Messages",
    "PureMessages",
    "PureTraffic",
    "Traffic",
    "take_back",
    "watch",
]
