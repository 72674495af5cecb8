"""What a socket's monitor tells, and what dealers and servers make of it: on real sockets over loopback."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.transport import arrivals as arrivals_module
from specwire.runtime.transport.arrivals import Arrivals
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.guard import Guard
from specwire.runtime.transport.messages import watch
from specwire.runtime.transport.monitor import Monitor
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import (
    NULL,
    CurveClient,
    CurveServer,
    PlainClient,
    PlainServer,
    Security,
)
from tests.integration.tcp_proxy import TcpProxy
from tests.runtime.transport.test_security import new_pair

TIMEOUT_S = 60.0
OCTETS = 100_000


class Side:
    """A context with what was made in it, and what it told."""

    def __init__(self) -> None:
        self.context = TransportContext()
        self.heard: asyncio.Queue[tuple[bytes, list[bytes]]] = asyncio.Queue()
        self.got: asyncio.Queue[list[bytes] | str] = asyncio.Queue()
        self.refused: asyncio.Queue[str] = asyncio.Queue()
        self._close: list[Arrivals | Router | Dealer | Guard] = []

    def router(self, security: Security = NULL) -> tuple[Router, str]:
        """A server, and its endpoint."""
        if not isinstance(security, type(NULL)):
            guard = Guard(self.context, on_refused=self.refused.put_nowait)
            guard.start()
            self._close.append(guard)
        router = Router(
            self.context,
            on_message=lambda peer, frames: self.heard.put_nowait((peer, frames)),
            on_sent=lambda peer, frames: None,
            on_room=lambda peer: None,
            on_gone=lambda peer, reason: None,
            security=security,
        )
        self._close.append(router)
        self._close.append(Arrivals(self.context, router.link, self.refused.put_nowait))
        return router, router.bind("tcp://127.0.0.1:*")

    def dealer(self, endpoint: str, security: Security = NULL) -> Dealer:
        """A client; its messages are in `got`, and after them the reason of its end."""
        dealer = Dealer(
            self.context,
            endpoint,
            on_message=self.got.put_nowait,
            on_sent=lambda frames: None,
            on_lost=self.got.put_nowait,
            security=security,
        )
        self._close.append(dealer)
        return dealer

    async def close(self) -> None:
        for made in reversed(self._close):
            made.close()
        await asyncio.wait_for(self.context.close(), TIMEOUT_S)


@asynccontextmanager
async def side() -> AsyncIterator[Side]:
    made = Side()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield made
    finally:
        await made.close()


def test_a_lost_connection_is_told_after_all_that_came() -> None:
    """Also where nobody wanted to receive for a while: what libzmq holds is handed over first, then the loss, once."""

    async def story() -> None:
        async with side() as s:
            router, endpoint = s.router()
            async with TcpProxy(endpoint) as proxy:
                dealer = s.dealer(proxy.endpoint)
                dealer.send([b"hello"])
                peer, _ = await s.heard.get()
                dealer.pause()
                passed = asyncio.create_task(proxy.until_passed(20 * OCTETS))
                for i in range(20):
                    router.send(peer, [str(i).encode(), bytes(OCTETS)])
                await passed
                other = s.dealer(proxy.endpoint)
                other.send([b"hello"])
                await s.heard.get()
                proxy.cut()
                assert await s.got.get() == "the connection was lost", "the one that was not paused"
                other.close()
                dealer.resume()
                told: list[list[bytes] | str] = []
                while not told or not isinstance(told[-1], str):
                    told.append(await s.got.get())
                assert [part[0] for part in told[:-1]] == [str(i).encode() for i in range(len(told) - 1)]
                assert len(told) > 1, "what had come before the cut"
                assert told[-1] == "the connection was lost"
                assert s.got.empty()

    asyncio.run(story())


def test_a_connection_that_cannot_be_made_is_told_once(tmp_path: Path) -> None:
    async def story() -> None:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # not listening
            for endpoint in (f"tcp://127.0.0.1:{nobody.getsockname()[1]}", f"ipc://{tmp_path}/nobody"):
                async with side() as s:
                    s.dealer(endpoint)
                    assert await s.got.get() == "no connection is possible"
                    assert s.got.empty()

    asyncio.run(story())


def test_a_connection_for_which_there_is_no_way_is_told() -> None:
    """libzmq makes no attempt at all, as with a name that is not known: here an interface that is not there."""

    async def story() -> None:
        async with side() as s:
            s.dealer("tcp://nosuch0:*;127.0.0.1:5670")
            assert await s.got.get() == "there is no way to it, or its name is not known"

    asyncio.run(story())


SERVER_KEYS, CLIENT_KEYS, OTHER_KEYS = new_pair(), new_pair(), new_pair()


@pytest.mark.parametrize(
    ("server", "client", "told_client", "told_server"),
    [
        pytest.param(
            PlainServer(),
            PlainClient("ada", "byron"),
            "the handshake failed (the server knows no such client (400))",
            "'ada' with that password is not known",
            id="wrong-password",
        ),
        pytest.param(
            CurveServer(SERVER_KEYS),
            CurveClient(CLIENT_KEYS, SERVER_KEYS.public),
            "the server knows no such client (400)",
            f"the key {CLIENT_KEYS.public} is not in the list",
            id="unknown-key",
        ),
        pytest.param(
            CurveServer(SERVER_KEYS),
            CurveClient(CLIENT_KEYS, OTHER_KEYS.public),
            "it hung up during the handshake: keys or mechanisms may not fit",
            "the handshake failed: the keys of the two sides do not fit",
            id="another-server-expected",
        ),
        # Both sides look at the other's mechanism: one breaks off, and the other may see no more than that.
        pytest.param(CurveServer(SERVER_KEYS), NULL, "mechanisms", "handshake", id="NULL-to-CURVE"),
        pytest.param(NULL, PlainClient("a", "b"), "mechanisms", "handshake", id="PLAIN-to-NULL"),
    ],
)
def test_a_failed_handshake_is_told_on_both_sides(
    server: Security, client: Security, told_client: str, told_server: str
) -> None:
    async def story() -> None:
        async with side() as s:
            _, endpoint = s.router(server)
            s.dealer(endpoint, client)
            reason = await s.got.get()
            assert isinstance(reason, str) and told_client in reason
            assert told_server in await s.refused.get()
            assert s.refused.empty(), "told once"
            assert s.heard.empty()

    asyncio.run(story())


def test_who_does_not_speak_zmtp_is_told() -> None:
    async def story() -> None:
        async with side() as s:
            _, endpoint = s.router()
            with socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2]))) as stranger:
                stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert (await s.refused.get()).startswith("hung up during the handshake: ")

    asyncio.run(story())


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """Whoever opens a file or a socket fails meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_server_without_descriptors_says_so_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """libzmq tries thousands of times a second; one line is told at a time, and the socket lives on."""
    monkeypatch.setattr(arrivals_module, "PAUSE_S", 0.01)
    made: asyncio.Queue[bool] = asyncio.Queue()

    class Counted(Monitor):
        def __init__(self, *arguments: Any) -> None:
            try:
                super().__init__(*arguments)
            except TransportError:
                made.put_nowait(False)
                raise
            made.put_nowait(True)

    monkeypatch.setattr(arrivals_module, "Monitor", Counted)

    async def story() -> None:
        async with side() as s:
            _, endpoint = s.router()
            assert await made.get()
            with socket.socket() as stranger:
                with no_more_descriptors():
                    stranger.connect(("127.0.0.1", int(endpoint.rpartition(":")[2])))
                    assert await s.refused.get() == "its connection cannot be accepted: Too many open files"
                    for _ in range(3):
                        assert not await made.get()
                    assert s.refused.empty()
                while not await made.get():
                    pass
            assert (await s.refused.get()).startswith("hung up"), "watched again"
            dealer = s.dealer(endpoint)
            dealer.send([b"hello"])
            assert (await s.heard.get())[1] == [b"hello"]

    asyncio.run(story())


def test_monitors_leave_nothing_behind() -> None:
    """Many sockets, made and closed at any moment of their connection: no descriptor is left, the context ends."""

    async def story() -> None:
        watch(asyncio.get_running_loop())  # which opens a descriptor once in a process
        before = len(os.listdir("/proc/self/fd"))
        async with side() as s:
            _, endpoint = s.router()
            for _ in range(10):
                dealers = [s.dealer(endpoint) for _number in range(30)]
                dealers[0].send([b"x"])
                await s.heard.get()
                for dealer in dealers:
                    dealer.close()
                    dealer.close()
        assert s.got.empty(), "a dealer that was closed tells nothing"
        assert len(os.listdir("/proc/self/fd")) == before

    asyncio.run(story())
