"""A connection to a peer as a rehearsal uses it: frames out, frames in by callback, and a word when it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Protocol

from specwire.generated.errors import DecodeError
from specwire.generated.stream import Framing
from specwire.runtime.rehearsal.errors import RehearsalError
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.security import Security

LOCAL = "local://"
READ_OCTETS = 1 << 16
MAX_OCTETS = 16 << 20
HELD_OCTETS = 64 << 20
"""A peer that leaves so much unread has the connection closed."""

LINGER_S = 1.0

OnMessage = Callable[[Sequence[bytes]], None]
OnLost = Callable[[str], None]


class Line(Protocol):
    """One connection."""

    def send(self, frames: Sequence[bytes]) -> None:
        """Send a message; what cannot be sent is dropped, and the loss told where there is one."""

    def close(self) -> None:
        """Hang up, when what was sent has left or a second later."""


class DealerLine:
    """A ZeroMQ connection; raises TransportError."""

    def __init__(
        self,
        context: TransportContext,
        endpoint: str,
        *,
        identity: bytes,
        security: Security,
        on_message: OnMessage,
        on_lost: OnLost,
    ) -> None:
        self._on_lost = on_lost
        self._dealer = Dealer(
            context,
            endpoint,
            on_message=on_message,
            on_sent=_take_no_note,
            on_lost=on_lost,
            security=security,
            identity=identity,
        )

    def send(self, frames: Sequence[bytes]) -> None:
        """Send a message; ZeroMQ has none without a frame."""
        if not self._dealer.send(list(frames) or [b""]):
            self._on_lost("it reads nothing of what is sent")

    def close(self) -> None:
        """Hang up."""
        self._dealer.close(linger_s=LINGER_S)


class LocalLine:
    """A connection to the local socket of a Flux broker, where messages stand on a stream; made by `open_local`."""

    def __init__(self, writer: asyncio.StreamWriter, framing: Framing, on_lost: OnLost) -> None:
        self._writer, self._framing, self._on_lost = writer, framing, on_lost
        self.reading: asyncio.Task[None] | None = None

    def send(self, frames: Sequence[bytes]) -> None:
        """Send a message."""
        if self._writer.transport.get_write_buffer_size() > HELD_OCTETS:
            self._writer.transport.abort()
            self._on_lost("it reads nothing of what is sent")
        elif not self._writer.is_closing():
            self._writer.write(self._framing.frame(frames))

    def close(self) -> None:
        """Hang up."""
        if self.reading is not None:
            self.reading.cancel()
        self._writer.close()


async def open_local(
    package: ModuleType, endpoint: str, *, on_message: OnMessage, on_lost: OnLost
) -> LocalLine:
    """Return a connection to ``local://PATH``; where none comes about, `on_lost` says why.

    Raises:
        RehearsalError: the protocol does not frame messages on a stream.
        OSError: nobody listens there.
    """
    framing = getattr(getattr(package, "stream", None), "FRAMING", None)
    if framing is None:
        raise RehearsalError(f"{endpoint}: only flux is spoken on a local socket")
    reader, writer = await asyncio.open_unix_connection(endpoint.removeprefix(LOCAL))
    line = LocalLine(writer, framing, on_lost)
    line.reading = asyncio.create_task(_read(reader, framing, on_message, on_lost))
    return line


async def _read(
    reader: asyncio.StreamReader, framing: Framing, on_message: OnMessage, on_lost: OnLost
) -> None:
    """Hand over what comes until the other side closes; the first octet of all says whether we are let in."""
    buffer = bytearray()
    try:
        let_in = await reader.read(1)
        if let_in != b"\0":
            on_lost(f"it denies access (error {let_in[0]})" if let_in else "it hung up")
            return
        while octets := await reader.read(READ_OCTETS):
            buffer += octets
            at = 0
            while at < len(buffer) and (found := framing.cut(buffer, at, MAX_OCTETS)) is not None:
                at, parts = found
                on_message(parts)
            del buffer[:at]
        on_lost("it hung up")
    except DecodeError as error:
        on_lost(f"what it says is no message: {error}")
    except OSError as error:
        on_lost(f"the connection was lost ({error.strerror or error})")


def _take_no_note(frames: Sequence[bytes]) -> None:
    """What was sent is counted where it is made up."""
