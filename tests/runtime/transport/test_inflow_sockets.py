"""Bounds on unfinished messages, on real sockets."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
import zmq

from specwire.runtime.transport.arrivals import Arrivals
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.guard import Guard
from specwire.runtime.transport.inflow import HANDSHAKE_OCTETS, Inflow, InflowBounds
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import NULL, CurveServer, Security
from specwire.runtime.transport.tcp_connections import find_connections, peer_address, read_octets, shut_down
from tests.integration.endless import RawPeer, command
from tests.runtime.transport.test_monitor import no_more_descriptors
from tests.runtime.transport.test_security import new_pair

T = TypeVar("T")
MIB = 1 << 20
TIMEOUT_S = 60.0
BOUNDS = InflowBounds(message_octets=2 * MIB, legal_octets=16 * MIB)
HONEST_MESSAGES = int(os.environ.get("SPECWIRE_ENDLESS_MESSAGES", "10000"))


class Server:
    """ROUTER with bounds; queues the messages and the reports of cut connections."""

    def __init__(
        self, bounds: InflowBounds = BOUNDS, security: Security = NULL, high_water: int = 32
    ) -> None:
        self.context = TransportContext()
        self.received: asyncio.Queue[list[bytes]] = asyncio.Queue()
        self.cuts: asyncio.Queue[str] = asyncio.Queue()
        self.refused: list[str] = []
        self.messages = 0
        self.guard: Guard | None = None
        if isinstance(security, CurveServer):
            self.guard = Guard(self.context, any_key=True)
            self.guard.start()
        self.router = Router(
            self.context,
            on_message=self._take,
            on_sent=None,
            on_room=lambda peer: None,
            on_gone=lambda peer, reason: None,
            security=security,
            max_frame_octets=32 * MIB,
            high_water=high_water,
        )
        self.inflow = Inflow(self.router.link, bounds, self.cuts.put_nowait)
        self.arrivals = Arrivals(self.context, self.router.link, self.refused.append, inflow=self.inflow)
        self.endpoint = self.router.bind("tcp://127.0.0.1:*")

    def _take(self, peer: bytes, frames: list[bytes]) -> None:
        self.messages += 1
        self.received.put_nowait(frames)
        if frames[0] == b"again":
            self.router.send(peer, [b"yes"])

    async def close(self) -> None:
        self.arrivals.close()
        self.router.close()
        if self.guard is not None:
            self.guard.close()
        await asyncio.wait_for(self.context.close(), TIMEOUT_S)


@asynccontextmanager
async def serving(
    bounds: InflowBounds = BOUNDS, security: Security = NULL, high_water: int = 32
) -> AsyncIterator[Server]:
    server = Server(bounds, security, high_water)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield server
    finally:
        await server.close()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def awaited() -> None:
        await story()

    asyncio.run(awaited())


async def aside(call: Callable[[], T]) -> T:
    return await asyncio.to_thread(call)


def test_a_connection_is_cut_and_reported_once() -> None:
    async def story() -> None:
        async with serving() as server:
            peer = await aside(lambda: RawPeer(server.endpoint))
            address = "{}:{}".format(*peer.socket.getsockname())
            with peer:
                sent = await aside(lambda: peer.pour(bytes(1000), 1 << 30))
            assert sent < 64 * MIB
            line = await server.cuts.get()
            assert line.startswith(f"{address} was disconnected: ")
            assert "the first message of a connection may have 2,1" in line
            await asyncio.sleep(0.1)
            assert server.cuts.empty()

    run(story)


def test_other_connections_are_served_meanwhile() -> None:
    async def story() -> None:
        async with serving() as server:
            with await aside(lambda: RawPeer(server.endpoint)) as honest:
                await aside(lambda: honest.send(b"a"))
                assert await server.received.get() == [b"a"]
                for _ in range(5):
                    with await aside(lambda: RawPeer(server.endpoint)) as peer:
                        await asyncio.to_thread(peer.pour, bytes(100), 1 << 30)
                    await server.cuts.get()
                    await aside(lambda: honest.send(b"b"))
                    assert await server.received.get() == [b"b"]

    run(story)


def test_a_large_message_is_received_only_after_a_small_one() -> None:
    async def story() -> None:
        async with serving() as server:
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                await aside(lambda: peer.send(b"hello"))
                assert await server.received.get() == [b"hello"]
                for _ in range(3):
                    await aside(lambda: peer.send(b"large", bytes(15 * MIB)))
                    assert [len(frame) for frame in await server.received.get()] == [5, 15 * MIB]
            assert server.cuts.empty()
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                half = b"\3" + (15 * MIB).to_bytes(8, "big") + bytes(3 * MIB)
                await aside(lambda: peer.socket.sendall(half))
                assert await aside(peer.is_cut)
            assert "raise message_octets" in await server.cuts.get()

    run(story)


def test_a_slow_message_of_the_largest_size_is_not_cut() -> None:
    async def story() -> None:
        async with serving() as server:
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                await aside(lambda: peer.send(b"hello"))
                await server.received.get()
                message = b"\2" + (16 * MIB).to_bytes(8, "big") + bytes(16 * MIB)
                for at in range(0, len(message), MIB):
                    await asyncio.to_thread(peer.socket.sendall, message[at : at + MIB])
                    await asyncio.sleep(0.03)
                assert [len(frame) for frame in await server.received.get()] == [16 * MIB]
            assert server.cuts.empty()

    run(story)


def test_small_frames_are_cut_for_the_memory_that_they_take() -> None:
    """Empty frames take 32 times their octets, so the memory bound is exceeded first."""

    async def story() -> None:
        async with serving(InflowBounds(legal_octets=64 * MIB)) as server:
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                await aside(lambda: peer.send(b"hello"))
                await aside(lambda: peer.pour(b"", 1 << 30))
            line = await server.cuts.get()
            assert "in small frames" in line
            assert int(re.findall(r"it sent ([\d,]+) octets", line)[0].replace(",", "")) < 4 * MIB

    run(story)


def test_heartbeats_on_an_idle_connection_do_not_count() -> None:
    """Reaching the bound of 2 MiB would take a day, so the test checks the count."""

    async def story() -> None:
        async with serving() as server:
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                for _ in range(50):
                    peer.socket.sendall(command(b"PING", b"\0\0"))
                    await asyncio.sleep(0.015)
                    assert b"PONG" in await aside(lambda: peer.socket.recv(100))
                await asyncio.sleep(0.05)
                assert server.inflow.undelivered == 0
                peer.socket.sendall(b"\1\0" * 1000)  # frames of an unfinished message
                await asyncio.sleep(0.1)
                assert 2000 - HANDSHAKE_OCTETS < server.inflow.undelivered < 2000
            assert server.cuts.empty()

    run(story)


def test_heartbeats_of_libzmq_do_not_count() -> None:
    async def story() -> None:
        async with serving() as server:
            context = zmq.Context()
            dealer = context.socket(zmq.DEALER)
            dealer.setsockopt(zmq.HEARTBEAT_IVL, 20)
            dealer.connect(server.endpoint)
            await asyncio.sleep(1.0)
            assert server.inflow.undelivered <= 64
            context.destroy(linger=0)

    run(story)


def test_nothing_is_cut_while_reading_is_paused() -> None:
    async def story() -> None:
        async with serving(high_water=100) as server:
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                peer.send(b"hello")
                await server.received.get()
                await asyncio.sleep(0.1)
                server.router.pause()
                for _ in range(60):  # beyond the largest message
                    await asyncio.to_thread(peer.send, bytes(MIB // 2))
                await asyncio.sleep(0.3)
                assert server.inflow.undelivered > 17 * MIB
                assert server.cuts.empty()
                server.router.resume()
                for _ in range(60):
                    await server.received.get()
                await asyncio.sleep(0.1)
                assert server.inflow.undelivered == 0
            assert server.cuts.empty()

    run(story)


def test_an_endless_message_is_cut_at_the_total_or_when_reading_resumes() -> None:
    async def story() -> None:
        bounds = InflowBounds(message_octets=2 * MIB, legal_octets=16 * MIB, undelivered_octets=40 * MIB)
        async with serving(bounds) as server:
            with (
                await aside(lambda: RawPeer(server.endpoint)) as waiting,
                await aside(lambda: RawPeer(server.endpoint)) as first,
                await aside(lambda: RawPeer(server.endpoint)) as second,
            ):
                server.router.pause()
                waiting.send(b"whole")
                await asyncio.sleep(0.1)
                await aside(lambda: first.pour(bytes(MIB), 20 * MIB))
                await asyncio.sleep(0.2)
                assert server.cuts.empty()
                await aside(lambda: second.pour(bytes(MIB), 100 * MIB))
                line = await server.cuts.get()
                assert "the most of all connections" in line
                assert await aside(second.is_cut)
                server.router.resume()
                assert await server.received.get() == [b"whole"]
                assert "the first message of a connection" in await server.cuts.get()
                assert await aside(first.is_cut)

    run(story)


def test_an_endless_message_is_cut_beside_a_peer_that_always_sends() -> None:
    """There is nearly always a message to receive, so the socket is hardly ever drained."""

    async def story() -> None:
        async with serving() as server:
            stop = False

            def always() -> None:
                with RawPeer(server.endpoint) as busy:
                    block = b"\0\1x" * 10_000
                    while not stop:
                        busy.socket.sendall(block)

            sending = asyncio.create_task(asyncio.to_thread(always))
            while server.messages < 10_000:
                await asyncio.sleep(0.01)
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                sent = await aside(lambda: peer.pour(bytes(1000), 1 << 30))
            stop = True
            await sending
            assert sent < 64 * MIB
            await server.cuts.get()

    run(story)


def test_bounds_apply_with_curve() -> None:
    """Messages of many frames, which take long enough to be noticed, below and above the bound."""
    keys, own = new_pair(), new_pair()

    async def story() -> None:
        async with serving(security=CurveServer(KeyPair(keys.public, keys.secret))) as server:
            context = zmq.Context()

            def dealer() -> zmq.Socket[bytes]:
                made = context.socket(zmq.DEALER)
                made.setsockopt_string(zmq.CURVE_SERVERKEY, keys.public)
                made.setsockopt_string(zmq.CURVE_PUBLICKEY, own.public)
                made.setsockopt_string(zmq.CURVE_SECRETKEY, own.secret)
                made.setsockopt(zmq.RECONNECT_IVL, -1)
                made.connect(server.endpoint)
                return made

            honest = dealer()
            await aside(lambda: honest.send_multipart([b"hello"]))
            await server.received.get()
            for _ in range(3):
                await aside(lambda: honest.send_multipart([bytes(MIB)] * 15))
                assert len(await server.received.get()) == 15
            assert server.cuts.empty()
            stranger = dealer()
            await aside(lambda: stranger.send_multipart([bytes(MIB)] * 500))
            assert "first message" in await server.cuts.get()
            await aside(lambda: context.destroy(linger=0))

    run(story)


def test_honest_messages_are_never_cut() -> None:
    """Messages of several sizes and numbers of frames, over several connections at once."""

    async def story() -> None:
        async with serving(InflowBounds(message_octets=4096, legal_octets=MIB), high_water=1000) as server:
            context = zmq.Context()

            def send(number: int) -> None:
                dealer = context.socket(zmq.DEALER)
                dealer.connect(server.endpoint)
                for i in range(HONEST_MESSAGES // 4):
                    size = (1, 40, 900, 1 << 20)[min(3, (i * 7 + number) % 50 // 16)] if i else 1
                    dealer.send_multipart([b"x"] * (i % 9) + [bytes(size)])
                dealer.close(linger=60_000)

            senders = [asyncio.create_task(asyncio.to_thread(send, number)) for number in range(4)]
            async with asyncio.timeout(600):
                while server.messages < HONEST_MESSAGES // 4 * 4 and server.cuts.empty():
                    await asyncio.sleep(0.01)
                    while not server.received.empty():
                        server.received.get_nowait()
            assert server.cuts.empty(), server.cuts.get_nowait()
            for sender in senders:
                await sender
            await aside(context.term)

    run(story)


def test_a_connection_that_has_ended_is_forgotten() -> None:
    """The kernel reuses its descriptor at once, for a connection that must not be cut off."""

    async def story() -> None:
        async with serving() as server:
            for _ in range(30):
                with await aside(lambda: RawPeer(server.endpoint)) as peer:
                    await aside(lambda: peer.socket.sendall(b"\1\0" * 1000))
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.2)
            assert server.inflow.undelivered == 0
            assert server.inflow.connections == 0
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                peer.send(b"hello")
                assert await server.received.get() == [b"hello"]
            assert server.cuts.empty()

    run(story)


def test_a_descriptor_is_shut_down_only_for_its_peer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = listener.accept()
            with accepted:
                peer = peer_address(accepted.fileno(), port)
                assert peer == f"127.0.0.1:{client.getsockname()[1]}"
                assert peer_address(accepted.fileno(), port + 1) is None
                assert peer_address(listener.fileno()) is None
                assert not shut_down(accepted.fileno(), "127.0.0.1:1")
                client.sendall(b"12345")
                time.sleep(0.05)
                octets = read_octets(accepted.fileno())
                assert octets is not None
                assert (octets.received, octets.unread, octets.sent) == (5, 5, 0)
                assert find_connections({port}) == {accepted.fileno(): peer}
                number = accepted.fileno()
                assert shut_down(number, peer)
                client.settimeout(TIMEOUT_S)
                assert client.recv(10) == b""
            assert read_octets(number) is None
            assert not shut_down(number, peer)


@pytest.mark.parametrize("kind", ["pipe", "file", "unix"])
def test_other_descriptors_have_no_octet_counts(kind: str) -> None:
    with open("/dev/null", "rb") as file, socket.socket(socket.AF_UNIX) as unix:
        pipe, other = os.pipe()
        number = {"pipe": pipe, "file": file.fileno(), "unix": unix.fileno()}[kind]
        assert read_octets(number) is None
        assert peer_address(number) is None
        os.close(pipe)
        os.close(other)


def test_connections_without_events_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without free descriptors, the monitor is closed for a while."""
    monkeypatch.setattr("specwire.runtime.transport.arrivals.PAUSE_S", 0.2)

    async def story() -> None:
        async with serving() as server:
            with socket.socket() as stranger, socket.socket() as other:
                with no_more_descriptors():
                    stranger.connect(("127.0.0.1", int(server.endpoint.rpartition(":")[2])))
                    while not server.refused:
                        await asyncio.sleep(0.01)
                del other
                while not server.inflow.connections:
                    await asyncio.sleep(0.01)

    run(story)


def test_no_descriptor_is_left_open_and_no_timer_runs_while_idle() -> None:
    async def story() -> None:
        async with serving() as server:  # opens the descriptors that a process opens once
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                peer.send(b"hello")
                await server.received.get()
        before = len(os.listdir("/proc/self/fd"))
        async with serving() as server:
            with await aside(lambda: RawPeer(server.endpoint)) as peer:
                peer.send(b"hello")
                await server.received.get()
                await asyncio.sleep(0.3)
                looks = server.inflow.looks
                await asyncio.sleep(0.2)
                assert server.inflow.looks == looks, "an idle connection is not examined"
                peer.send(b"again")
                await server.received.get()
                await asyncio.sleep(0.1)
                assert server.inflow.looks > looks
        assert len(os.listdir("/proc/self/fd")) == before

    run(story)
