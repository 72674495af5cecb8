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

BUILD = "messages 1"
"""Changed with the compiled source, which has the same: no other is taken."""

COPY_LIMIT_OCTETS = 16 * 1024

NOW = int(zmq.NOBLOCK)
NOW_AND_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
POLLIN = int(zmq.POLLIN)

Frames = list[bytes]
"""The frames of a message; a large one that came in is a view of libzmq's memory, which lives as long as the view."""


class PureMessages:
    """The messages of one socket, through pyzmq.

    Args:
        socket: of this thread; it is closed by who made it.
        max_frames: frames of a message that are kept, one at least.
        guarded: whether a `Guard` answers for the socket, so that each message has a user.

    Attributes:
        user: who sent the message that was received last, by the name that the `Guard` knows; empty without one.
    """

    def __init__(self, socket: zmq.Socket[bytes], max_frames: int, guarded: bool) -> None:
        self.user = ""
        self._socket, self._max_frames, self._guarded = socket, max_frames, guarded
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
        return True

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
        frames = [_octets_of(frame)]
        while frame.more:
            frame = self._socket.recv(NOW, copy=False)
            if len(frames) < self._max_frames:
                frames.append(_octets_of(frame))
        return frames

    def readable(self) -> bool:
        """Tell whether a message can be received.

        Raises:
            zmq.ZMQError: the socket is closed, or its context has ended.
        """
        return int(self._socket.getsockopt(zmq.EVENTS)) & POLLIN != 0


def _octets_of(frame: zmq.Frame) -> bytes:
    """Return the octets of a small frame, and a read-only view of a large one."""
    if len(frame) < COPY_LIMIT_OCTETS:
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
else:
    from specwire.runtime.transport._native import Messages, take_back, watch

__all__ = [
    "BUILD",
    "COPY_LIMIT_OCTETS",
    "PACKAGE",
    "Frames",
    "Messages",
    "PureMessages",
    "take_back",
    "watch",
]
