"""Octets pass by: both peers see each other, and nothing of what is between them."""

from __future__ import annotations

import asyncio
from asyncio import selector_events
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.relay import WAITING_OCTETS, Passage, Relay

TIMEOUT_S = 60.0
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Seen:
    """A watcher that keeps what it is shown, and does to it what the test says."""

    def __init__(self, change: Callable[[bytes], bytes] = bytes) -> None:
        self.said: list[tuple[bool, bytes]] = []
        self.passages: list[Passage] = []
        self._change = change

    def __call__(self, passage: Passage) -> Seen:
        self.passages.append(passage)
        return self

    def pass_on(self, octets: bytes, *, from_opener: bool) -> bytes:
        """Note the octets."""
        self.said.append((from_opener, octets))
        return self._change(octets)


class Scene:
    """A server on loopback behind a relay; connections to it come out of `accepted`."""

    def __init__(self, watch: Seen, most: int) -> None:
        self.watch, self._most = watch, most
        self.accepted: asyncio.Queue[Stream] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        """Begin to listen."""
        self.server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.relay = Relay(
            "tcp://127.0.0.1:*", f"tcp://127.0.0.1:{port}", self.watch, max_connections=self._most
        )
        await self.relay.open()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self.accepted.put_nowait((reader, writer))

    async def connect(self) -> Stream:
        """Connect to the relay."""
        host, _, port = self.relay.endpoint.removeprefix("tcp://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        self._writers.append(writer)
        return reader, writer

    async def pair(self) -> tuple[Stream, Stream]:
        """Connect, and return both ends."""
        client = await self.connect()
        return client, await self.accepted.get()

    async def close(self) -> None:
        """End everything."""
        await self.relay.close()
        self.server.close()
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def scene(watch: Seen | None = None, *, most: int = 10) -> AsyncIterator[Scene]:
    made = Scene(watch or Seen(), most)
    async with asyncio.timeout(TIMEOUT_S):
        await made.open()
        try:
            yield made
        finally:
            await made.close()


def test_octets_pass_both_ways() -> None:
    """And are shown with the side that they came from."""

    async def story() -> None:
        async with scene() as at:
            (reader, writer), (server_reader, server_writer) = await at.pair()
            writer.write(b"question")
            assert await server_reader.readexactly(8) == b"question"
            server_writer.write(b"answer")
            assert await reader.readexactly(6) == b"answer"
            assert at.watch.said == [(True, b"question"), (False, b"answer")]
            assert at.watch.passages[0].address == "{}:{}".format(*writer.get_extra_info("sockname"))
            assert (at.relay.connections, at.relay.open_connections) == (1, 1)

    asyncio.run(story())


def test_a_server_that_speaks_first_is_heard() -> None:
    """What it says while the connection is being made is not lost."""

    async def story() -> None:
        async with scene(most=20) as at:
            for _ in range(20):
                (reader, _), (_, server_writer) = await at.pair()
                server_writer.write(b"hello")
                assert await reader.readexactly(5) == b"hello"

    asyncio.run(story())


@pytest.mark.parametrize("first", ["client", "server"])
def test_an_end_is_passed_on_after_the_last_octets(first: str) -> None:
    """From either side."""

    async def story() -> None:
        async with scene() as at:
            client, server = await at.pair()
            (_, writer), (reader, _) = (client, server) if first == "client" else (server, client)
            writer.write(b"x" * 300_000)
            writer.close()
            assert len(await reader.read(-1)) == 300_000

    asyncio.run(story())


def test_who_does_not_read_holds_back_who_writes() -> None:
    """What waits in between is bounded, and nothing of it is lost."""

    async def story() -> None:
        async with scene() as at:
            (_, writer), (server_reader, _) = await at.pair()
            total = 0

            async def write() -> None:
                nonlocal total
                while True:
                    writer.write(bytes(1 << 18))
                    total += 1 << 18
                    await writer.drain()

            writing = asyncio.create_task(write())
            seen = -1
            while seen != total or total < WAITING_OCTETS:  # until nothing goes any more
                seen = total
                await asyncio.wait({writing}, timeout=0.2)
            writing.cancel()
            shown = sum(len(octets) for _, octets in at.watch.said)
            assert shown <= total < 64 << 20
            got = 0
            while got < shown:
                got += len(await server_reader.read(1 << 20))

    asyncio.run(story())


def test_a_watcher_may_put_other_octets_in_their_place() -> None:
    """Or none."""

    async def story() -> None:
        async with scene(Seen(bytes.upper)) as at:
            (_, writer), (server_reader, _) = await at.pair()
            writer.write(b"abc")
            assert await server_reader.readexactly(3) == b"ABC"

    asyncio.run(story())


def test_a_watcher_may_answer_and_hold_back() -> None:
    """What it says comes to the side that it names; who is held back is read again later, and nothing is lost."""

    async def story() -> None:
        async with scene() as at:
            (reader, writer), (server_reader, server_writer) = await at.pair()
            (passage,) = at.watch.passages
            passage.send(b"to you", to_opener=True)
            assert await reader.readexactly(6) == b"to you"
            passage.send(b"to it", to_opener=False)
            assert await server_reader.readexactly(5) == b"to it"
            passage.hold(True, opener=True)
            writer.write(b"held")
            server_writer.write(b"through")
            assert await reader.readexactly(7) == b"through"
            assert at.watch.said == [(False, b"through")]
            passage.hold(False, opener=True)
            assert await server_reader.readexactly(4) == b"held"

    asyncio.run(story())


def test_a_watcher_that_fails_ends_its_connection_alone() -> None:
    """Octets that it should have changed are not passed on as they were."""

    def refuse(octets: bytes) -> bytes:
        if octets == b"bad":
            raise ValueError("no")
        return octets

    async def story() -> None:
        async with scene(Seen(refuse)) as at:
            (reader, writer), (server_reader, _) = await at.pair()
            (_, other), (other_reader, _) = await at.pair()
            writer.write(b"bad")
            assert await server_reader.read(-1) == b""
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            other.write(b"good")
            assert await other_reader.readexactly(4) == b"good"

    asyncio.run(story())


def test_too_many_are_closed_at_once() -> None:
    """And one more may come when one has gone."""

    async def story() -> None:
        async with scene(most=1) as at:
            (_, first), (server_reader, _) = await at.pair()
            reader, _ = await at.connect()
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            assert at.relay.refused == 1
            first.close()
            assert await server_reader.read(-1) == b""
            while at.relay.open_connections:
                await asyncio.sleep(0.01)
            await at.pair()

    asyncio.run(story())


def test_without_a_server_who_comes_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    """So that clients see what they would without a relay; it is told once."""

    async def story() -> None:
        async with scene() as at:
            at.server.close()
            await at.server.wait_closed()
            for _ in range(3):
                reader, _ = await at.connect()
                with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                    await reader.readexactly(1)

    asyncio.run(story())
    (entry,) = caplog.records
    assert "cannot be reached: " in entry.message


def test_what_is_said_first_is_kept_where_asyncio_reads_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Early releases of Python 3.11 begin to read a connection that was paused as it was made; made so here in any."""
    transport = vars(selector_events)["_SelectorSocketTransport"]

    def add_reader(self: Any, descriptor: int, callback: Callable[[], None]) -> None:
        if not self.is_closing():
            self._loop._add_reader(descriptor, callback)

    monkeypatch.setattr(transport, "_add_reader", add_reader)

    async def story() -> None:
        async with scene() as at:
            _, writer = await at.connect()
            writer.write(b"ping")
            reader, _ = await at.accepted.get()
            assert await reader.readexactly(4) == b"ping"

    asyncio.run(story())


def test_unix_sockets(tmp_path: Path) -> None:
    """On both sides; a socket that a dead process left is replaced, and ours goes with us."""

    async def story() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            back, front = tmp_path / "back", tmp_path / "front"

            async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(await reader.readexactly(4))
                writer.close()

            server = await asyncio.start_unix_server(echo, back)
            for _ in range(2):
                left = await asyncio.start_unix_server(echo, front)
                left.close()
                relay = Relay(f"ipc://{front}", f"ipc://{back}", Seen())
                await relay.open()
                reader, writer = await asyncio.open_unix_connection(front)
                writer.write(b"ping")
                assert await reader.read(-1) == b"ping"
                writer.close()
                await relay.close()
                assert not front.exists()
            server.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("endpoint", "target", "sentence"),
    [
        ("http://x", "tcp://127.0.0.1:1", "http://x is no endpoint"),
        ("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "tcp://127.0.0.1:\\* names no port to connect to"),
        ("tcp://127.0.0.1:*", "tcp://10.0.0.1:0;127.0.0.1:5", "names an address to connect from"),
    ],
)
def test_endpoints_are_looked_at_first(endpoint: str, target: str, sentence: str) -> None:
    """One sentence each."""
    with pytest.raises(TransportError, match=sentence):
        Relay(endpoint, target, Seen())


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """Is told as libzmq would."""

    async def story() -> None:
        async with scene() as at:
            relay = Relay(at.relay.endpoint, at.relay.target, Seen())
            with pytest.raises(TransportError, match=r"cannot listen on tcp://127\.0\.0\.1:.*in use"):
                await relay.open()

    asyncio.run(story())
