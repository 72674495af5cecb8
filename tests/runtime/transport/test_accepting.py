"""Accept loop of stream listeners, with and without free descriptors."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest

from specwire.runtime.transport.accepting import Acceptor
from tests.runtime.transport.test_monitor import no_more_descriptors

TIMEOUT_S = 60.0


class Greeting(asyncio.Protocol):
    """Protocol that sends one octet."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"!")


@contextmanager
def listening(kind: type[socket.socket] = socket.socket) -> Iterator[tuple[socket.socket, tuple[str, int]]]:
    """Yield a listener at a free port, and its address."""
    with kind() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        listener.setblocking(False)
        yield listener, listener.getsockname()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds; raises TimeoutError."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.005)


def test_a_shortage_logs_two_lines_and_loses_no_client(caplog: pytest.LogCaptureFixture) -> None:
    """A shortage does not end when descriptors are free for a moment."""
    caplog.set_level(logging.WARNING)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        with listening() as (listener, address), socket.socket() as first, socket.socket() as second:
            acceptor = Acceptor(listener, Greeting, "here", retry_s=0.01, calm_s=0.3)
            for stranger in (first, second):
                with no_more_descriptors():
                    stranger.connect(address)
                    stranger.setblocking(False)
                    with pytest.raises(TimeoutError):  # many times `retry_s`
                        await asyncio.wait_for(loop.sock_recv(stranger, 1), 0.1)
                async with asyncio.timeout(TIMEOUT_S):
                    assert await loop.sock_recv(stranger, 1) == b"!"
            assert caplog.messages == ["no connections are accepted on here: Too many open files"]
            await until(lambda: len(caplog.messages) > 1)
            acceptor.close()
            acceptor.close()
        assert caplog.messages[1:] == ["connections are accepted again on here"]

    asyncio.run(story())


class FaultyListener(socket.socket):
    """Listener whose first calls of `accept` fail."""

    faults: ClassVar[list[int]] = []

    def accept(self) -> tuple[socket.socket, object]:
        if self.faults:
            raise OSError(self.faults.pop(0), "fault")
        return super().accept()


@pytest.mark.parametrize(
    ("number", "lines"),
    [
        (errno.EMFILE, 2),
        (errno.ENFILE, 2),
        (errno.ENOBUFS, 2),
        (errno.ENOMEM, 2),
        (errno.EIO, 2),  # unknown errors must not cause a busy loop
        (errno.ECONNABORTED, 0),
        (errno.EPROTO, 0),
    ],
)
def test_faults_of_accept(
    number: int, lines: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of a connection loses that connection; every other error pauses the listener."""
    monkeypatch.setattr(FaultyListener, "faults", [number, number])
    caplog.set_level(logging.WARNING)

    async def story() -> None:
        with listening(FaultyListener) as (listener, address):
            acceptor = Acceptor(listener, Greeting, "here", retry_s=0.005, calm_s=0.02)
            async with asyncio.timeout(TIMEOUT_S):
                reader, writer = await asyncio.open_connection(*address)
                assert await reader.readexactly(1) == b"!"
                writer.close()
            await until(lambda: len(caplog.messages) >= lines)
            acceptor.close()

    asyncio.run(story())
    assert len(caplog.messages) == lines


def test_an_error_of_the_protocol_factory_closes_the_connection() -> None:
    """The next connection is accepted."""
    calls: list[int] = []

    def make() -> Greeting:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not this one")
        return Greeting()

    async def story() -> None:
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        with listening() as (listener, address):
            acceptor = Acceptor(listener, make, "here")
            async with asyncio.timeout(TIMEOUT_S):
                for said in (b"", b"!"):
                    reader, writer = await asyncio.open_connection(*address)
                    assert await reader.read(1) == said
                    writer.close()
            acceptor.close()

    asyncio.run(story())


def test_a_connection_that_was_accepted_just_before_close_is_closed() -> None:
    """Its task was never run, so nothing else closes the socket."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        with listening() as (listener, address), socket.socket() as client:
            acceptor = Acceptor(listener, Greeting, "here")
            client.connect(address)
            client.setblocking(False)
            loop.remove_reader(listener)
            acceptor._accept()
            acceptor.close()
            assert await asyncio.wait_for(loop.sock_recv(client, 1), TIMEOUT_S) == b""

    asyncio.run(story())
