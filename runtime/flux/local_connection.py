"""A client's connection to the local connector, on an asyncio loop: octets there, messages here."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from specwire.generated.errors import DecodeError
from specwire.generated.flux import AnyMessage, StreamDecoder
from specwire.generated.flux.stream import FRAMING
from specwire.runtime.flux.client_limits import LINGER_S, READ_OCTETS, RETRY_S
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.outgoing import Outgoing
from specwire.runtime.flux.uri import explain_denial, explain_loss, explain_refusal

HOLD_BACK_OCTETS = 1 << 20
"""With more than this not taken by the broker, who sends is to wait for `room`."""


class LocalConnection(asyncio.BufferedProtocol):
    """Made by `open_local`.

    Attributes:
        has_room: whether the broker keeps up with what is sent.
    """

    def __init__(
        self,
        path: str,
        on_message: Callable[[AnyMessage], None],
        on_lost: Callable[[FluxError], None],
        max_octets: int,
    ) -> None:
        self._path = path
        self._on_message, self._on_lost = on_message, on_lost
        self._loop = asyncio.get_running_loop()
        self._authorised: asyncio.Future[None] = self._loop.create_future()
        self._is_let_in = False
        self._octets = memoryview(bytearray(READ_OCTETS))
        self._decoder = StreamDecoder(max_octets=max_octets)
        self._closed = asyncio.Event()
        self._room = asyncio.Event()
        self.has_room = True

    def send(self, message: AnyMessage) -> None:
        """Send, however much waits already; raises EncodeError."""
        self._outgoing.write(FRAMING.frame(message.encode()))

    def send_alone(self, message: AnyMessage) -> None:
        """Send as `send` does, for one who does not expect to send more at the same time."""
        self._outgoing.write_alone(FRAMING.frame(message.encode()))

    async def room(self) -> None:
        """Wait until there is room, or the connection is lost."""
        if not self.has_room:
            await self._room.wait()

    async def authorised(self) -> None:
        """Wait until the broker lets this client in; raises FluxError where it does not."""
        await self._authorised

    async def close(self) -> None:
        """Close when what was sent has been taken, or that takes too long."""
        self._outgoing.flush()
        self._transport.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await self._closed.wait()
        self._transport.abort()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=HOLD_BACK_OCTETS)
        self._outgoing = Outgoing(self._loop, self._transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next octets go."""
        return self._octets

    def buffer_updated(self, nbytes: int) -> None:
        """Take `nbytes` octets; the first of all is the authorisation."""
        octets = bytes(self._octets[:nbytes])
        if not self._is_let_in:
            if octets[0]:
                self._lose(explain_denial(self._path, octets[0]))
                return
            self._is_let_in = True
            self._authorised.set_result(None)
            octets = octets[1:]
        try:
            for message in self._decoder.feed(octets):
                self._on_message(message)
        except DecodeError as error:
            self._lose(explain_loss(self._path, f"what came is no message: {error}"))

    def eof_received(self) -> None:
        """The broker has closed."""
        try:
            self._decoder.eof()
        except DecodeError:
            self._lose(explain_loss(self._path, "the broker has closed it in the middle of a message"))

    def pause_writing(self) -> None:
        """The broker does not keep up."""
        self.has_room = False
        self._room.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._make_room()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is over."""
        self._closed.set()
        self._lose(explain_loss(self._path, str(error) if error else "the broker has closed it"))

    def _make_room(self) -> None:
        self.has_room = True
        self._room.set()

    def _lose(self, error: FluxError) -> None:
        self._make_room()
        self._transport.abort()
        if self._authorised.done():
            self._on_lost(error)
        else:
            self._authorised.set_exception(error)


async def open_local(
    path: str,
    on_message: Callable[[AnyMessage], None],
    on_lost: Callable[[FluxError], None],
    max_octets: int,
) -> LocalConnection:
    """Return a connection that the broker has authorised; raises FluxError."""
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_unix_connection(
            lambda: LocalConnection(path, on_message, on_lost, max_octets), sock=await _connect(path)
        )
    except OSError as error:
        raise explain_refusal(path, error) from error
    try:
        await connection.authorised()
    except BaseException:
        connection.abort()
        raise
    return connection


async def _connect(path: str) -> socket.socket:
    """Return a connected socket.

    A UNIX socket is connected at once or not at all: EAGAIN means that too many wait to be let in. The loop's own way
    takes it for the beginning of a connection that will come about.
    """
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connecting.setblocking(False)
    try:
        while True:
            try:
                connecting.connect(path)
            except BlockingIOError:
                await asyncio.sleep(RETRY_S)
            else:
                return connecting
    except BaseException:
        connecting.close()
        raise
