"""The links on real sockets over loopback: order, backpressure, peers that go, messages that are too much."""

from __future__ import annotations

import asyncio
import ctypes
import os
import select
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import zmq

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.freight import BUDGET_OCTETS, SHARE
from specwire.runtime.transport.link import DRAIN, DRAIN_OCTETS, MAX_FRAMES, OnMessages
from specwire.runtime.transport.router import Router

TIMEOUT_S = 60.0
FRAME_OCTETS = 512 * 1024


class Ends:
    """A router that collects what it hears, and dealers connected to it."""

    def __init__(
        self, *, high_water: int = 32, max_waiting: int = 1000, max_waiting_octets: int | None = None
    ) -> None:
        self.context = TransportContext()
        self.heard: asyncio.Queue[tuple[bytes, list[bytes]]] = asyncio.Queue()
        self.room: asyncio.Queue[bytes] = asyncio.Queue()
        self.gone: asyncio.Queue[tuple[bytes, str]] = asyncio.Queue()
        self.sent: list[Sequence[bytes]] = []
        self.lost: asyncio.Queue[str] = asyncio.Queue()
        self.router = Router(
            self.context,
            on_message=lambda peer, frames: self.heard.put_nowait((peer, frames)),
            on_sent=lambda peer, frames: self.sent.append(frames),
            on_room=self.room.put_nowait,
            on_gone=lambda peer, reason: self.gone.put_nowait((peer, reason)),
            high_water=high_water,
            max_waiting=max_waiting,
            max_waiting_octets=max_waiting_octets,
        )
        self.endpoint = self.router.bind("tcp://127.0.0.1:*")
        self.dealers: list[Dealer] = []

    def dealer(self, *, high_water: int = 1000) -> tuple[Dealer, asyncio.Queue[list[bytes]]]:
        got: asyncio.Queue[list[bytes]] = asyncio.Queue()
        dealer = Dealer(
            self.context,
            self.endpoint,
            on_message=got.put_nowait,
            on_sent=lambda frames: None,
            on_lost=self.lost.put_nowait,
            high_water=high_water,
        )
        self.dealers.append(dealer)
        return dealer, got

    async def met(self, *, high_water: int = 1000) -> tuple[Dealer, asyncio.Queue[list[bytes]], bytes]:
        """Return a dealer that the router has heard, what it gets, and how the router calls it."""
        dealer, got = self.dealer(high_water=high_water)
        dealer.send([b"hello"])
        peer, _ = await self.heard.get()
        return dealer, got, peer

    async def close(self) -> None:
        for dealer in self.dealers:
            dealer.close()
        self.router.close()
        await asyncio.wait_for(self.context.close(), TIMEOUT_S)


@asynccontextmanager
async def ends(**settings: int) -> AsyncIterator[Ends]:
    made = Ends(**settings)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield made
    finally:
        await made.close()


def test_bound_endpoint_names_the_port() -> None:
    async def story() -> None:
        async with ends() as e:
            assert e.endpoint.startswith("tcp://127.0.0.1:")
            assert int(e.endpoint.rpartition(":")[2]) > 0

    asyncio.run(story())


def test_messages_keep_their_order_in_both_directions() -> None:
    async def story() -> None:
        async with ends() as e:
            dealer, got = e.dealer()
            for i in range(3000):
                assert dealer.send([b"up", str(i).encode()])
            peer = b""
            for i in range(3000):
                peer, frames = await e.heard.get()
                assert frames == [b"up", str(i).encode()]
            for i in range(900):
                e.router.send(peer, [str(i).encode(), os.urandom(8)])
            for i in range(900):
                assert (await got.get())[0] == str(i).encode()
            assert len(e.sent) == 900

    asyncio.run(story())


def test_who_wants_to_know_is_told_when_all_that_came_was_handed_over() -> None:
    """Also where the last of it could not be handled; and what is sent there arrives, as does what comes after it."""

    async def story() -> None:
        context = TransportContext()
        told: list[str] = []
        back: asyncio.Queue[list[bytes]] = asyncio.Queue()

        def take(peer: bytes, frames: list[bytes]) -> None:
            told.append(frames[0].decode())
            if frames[0] == b"bad":
                raise ValueError

        def rest() -> None:
            if told and told[-1] != "rest":
                told.append("rest")
                router.send(b"d", [b"answer"])

        asyncio.get_running_loop().set_exception_handler(lambda loop, told: None)
        router = Router(
            context,
            on_message=take,
            on_sent=lambda peer, frames: None,
            on_room=lambda peer: None,
            on_gone=lambda peer, reason: None,
            on_rest=rest,
        )
        dealer = Dealer(
            context,
            router.bind("tcp://127.0.0.1:*"),
            on_message=back.put_nowait,
            on_sent=lambda frames: None,
            on_lost=lambda reason: None,
            identity=b"d",
        )
        try:
            async with asyncio.timeout(TIMEOUT_S):
                for text in (b"1", b"bad", b"2", b"bad", b"3"):
                    dealer.send([text])
                    assert await back.get() == [b"answer"]
        finally:
            dealer.close()
            router.close()
            await asyncio.wait_for(context.close(), TIMEOUT_S)
        assert told == ["1", "rest", "bad", "rest", "2", "rest", "bad", "rest", "3", "rest"]

    asyncio.run(story())


@pytest.mark.parametrize("messages", [1, 2])
def test_what_is_sent_hides_nothing_that_came_before(messages: int) -> None:
    """libzmq takes back its signal that a message has come when something is sent before the loop has seen it."""

    async def story() -> None:
        async with ends() as e:
            dealer, got = e.dealer()
            dealer.send([b"first"])
            peer, _ = await e.heard.get()
            dealer.send([b"second"])
            wait_for_signal(e.router)
            for _ in range(messages):
                e.router.send(peer, [b"back"])
            assert await e.heard.get() == (peer, [b"second"])
            for _ in range(messages):
                assert await got.get() == [b"back"]

    asyncio.run(story())


def test_what_cannot_be_sent_hides_nothing_either() -> None:
    """The peer is gone, and to find that out has taken the signal back."""

    async def story() -> None:
        async with ends() as e:
            dealer, _, peer = await e.met()
            dealer.send([b"second"])
            wait_for_signal(e.router)
            e.router.send(b"nobody", [b"back"])
            assert e.gone.get_nowait() == (b"nobody", "has disconnected")
            assert await e.heard.get() == (peer, [b"second"])

    asyncio.run(story())


def wait_for_signal(router: Router) -> None:
    """Wait until a message has come of which the loop does not know, and for so long that libzmq looks when it sends."""
    ready, _, _ = select.select([router.link.socket.fileno()], [], [], TIMEOUT_S)
    assert ready
    time.sleep(0.02)


def test_full_peer_gets_everything_later_and_holds_back_nobody() -> None:
    """A peer that does not read is served when it reads; meanwhile another one is served at once."""

    async def story() -> None:
        async with ends(high_water=4) as e:
            slow, from_slow, slow_peer = await e.met(high_water=4)
            _, from_quick, quick_peer = await e.met()
            slow.pause()
            for i in range(40):
                e.router.send(slow_peer, [str(i).encode(), bytes(1 << 20)])
            e.router.send(quick_peer, [b"at once"])
            assert await from_quick.get() == [b"at once"]
            assert not e.router.ready(slow_peer)
            slow.resume()
            assert [(await from_slow.get())[0] for _ in range(40)] == [str(i).encode() for i in range(40)]
            assert slow_peer == await e.room.get()

    asyncio.run(story())


def test_gathered_messages_are_sent_as_others_are() -> None:
    """Each peer's in order, large ones among them; a full peer gets them later, of one that is gone is told."""

    async def story() -> None:
        async with ends(high_water=4) as e:
            slow, from_slow, slow_peer = await e.met(high_water=4)
            _, from_quick, quick_peer = await e.met()
            slow.pause()
            e.router.gather()
            e.router.send(quick_peer, [b"first"])
            for i in range(40):
                e.router.send(slow_peer, [str(i).encode(), bytes((1 << 20) if i % 3 else 10)])
            assert len(e.sent) > 1, "what is more than a few messages is sent before"
            e.router.send(b"never seen", [b"x"])
            e.router.send(quick_peer, [b"last"])
            e.router.settle()
            assert await e.gone.get() == (b"never seen", "has disconnected")
            assert [await from_quick.get() for _ in range(2)] == [[b"first"], [b"last"]]
            assert not e.router.ready(slow_peer)
            slow.resume()
            assert [(await from_slow.get())[0] for _ in range(40)] == [str(i).encode() for i in range(40)]
            e.router.send(quick_peer, [b"at once"])
            assert await from_quick.get() == [b"at once"]
            assert len(e.sent) == 43

    asyncio.run(story())


@pytest.mark.parametrize("gathering", [False, True])
def test_messages_for_one_peer_are_sent_in_their_order(gathering: bool) -> None:
    """Before and after others for it, large ones among them; it is told of each, and of a peer that is gone."""

    async def story() -> None:
        async with ends(high_water=4) as e:
            _, got, peer = await e.met(high_water=4)
            if gathering:
                e.router.gather()
            e.router.send(peer, [b"first"])
            e.router.send_all(peer, [[b"%d" % i, bytes((1 << 20) if i % 3 else 10)] for i in range(40)])
            e.router.send_all(b"never seen", [[b"x"], [b"y"]])
            e.router.send_all(peer, [])
            e.router.send(peer, [b"last"])
            e.router.settle()
            said = [(await got.get())[0] for _ in range(42)]
            assert said == [b"first", *(b"%d" % i for i in range(40)), b"last"]
            assert [await e.gone.get() for _ in range(2)] == [(b"never seen", "has disconnected")] * 2
            assert len(e.sent) == 42

    asyncio.run(story())


def test_everything_arrives_at_a_peer_that_is_sent_only_what_it_has_room_for() -> None:
    """It has room again when the network has taken something; another peer has room all the while."""

    async def story() -> None:
        async with ends(high_water=1000) as e:
            dealer, got = e.dealer(high_water=2)
            dealer.send([b"here"])
            peer, _ = await e.heard.get()
            dealer.pause()
            sent: list[int] = []
            paused = True
            while sum(sent) < BUDGET_OCTETS * 2:
                while room := e.router.reserve(peer, FRAME_OCTETS):
                    assert e.router.ready(peer), "messages in libzmq's queue are far fewer than it takes"
                    e.router.send(peer, [b"", bytes(room)])
                    sent.append(room)
                if paused:  # so far the loop has not turned, and nothing is known to have left
                    assert FRAME_OCTETS < sum(sent) <= BUDGET_OCTETS // SHARE
                    assert e.router.reserve(b"another", FRAME_OCTETS) == FRAME_OCTETS
                    dealer.resume()
                    paused = False
                assert await e.room.get() == peer
            assert [len((await got.get())[1]) for _ in sent] == sent

    asyncio.run(story())


def test_peer_that_never_reads_is_given_up() -> None:
    async def story() -> None:
        async with ends(high_water=4, max_waiting=10) as e:
            slow, _ = e.dealer(high_water=4)
            slow.send([b"slow"])
            peer, _ = await e.heard.get()
            slow.pause()
            while e.gone.empty():
                e.router.send(peer, [bytes(1 << 20)])
            assert await e.gone.get() == (peer, "left 10 messages unread")
            assert e.router.ready(peer)

    asyncio.run(story())


def test_peer_that_asks_for_much_and_never_reads_is_given_up() -> None:
    """Half of what may wait for all is the most; what waited is let go of, and others go on."""

    async def story() -> None:
        async with ends(high_water=4, max_waiting_octets=20 << 20) as e:
            slow, _ = e.dealer(high_water=4)
            slow.send([b"slow"])
            peer, _ = await e.heard.get()
            slow.pause()
            while e.router.ready(peer):
                e.router.send(peer, [bytes(1 << 20)])
            for _ in range(9):
                e.router.send(peer, [bytes(1 << 20)])
            assert e.gone.empty()
            e.router.send(peer, [bytes(1 << 20)])
            assert await e.gone.get() == (peer, "left 10 messages unread")
            assert e.router.ready(peer)
            quick, got = e.dealer()
            quick.send([b"quick"])
            other, _ = await e.heard.get()
            e.router.send(other, [bytes(1 << 20)])
            assert len((await got.get())[0]) == 1 << 20

    asyncio.run(story())


def test_octets_that_were_sent_wait_no_longer() -> None:
    """A peer that reads gets any number of them."""

    async def story() -> None:
        async with ends(high_water=2, max_waiting_octets=8 << 20) as e:
            dealer, got = e.dealer(high_water=2)
            dealer.send([b"hello"])
            peer, _ = await e.heard.get()
            for _ in range(20):
                dealer.pause()
                while e.router.ready(peer):
                    e.router.send(peer, [bytes(1 << 20)])
                dealer.resume()
                assert await e.room.get() == peer
            while not got.empty():
                got.get_nowait()
            assert e.gone.empty()

    asyncio.run(story())


def test_peer_that_is_gone_is_told() -> None:
    async def story() -> None:
        async with ends() as e:
            dealer, _ = e.dealer()
            dealer.send([b"hello"])
            peer, _ = await e.heard.get()
            e.router.send(b"never seen", [b"x"])
            assert await e.gone.get() == (b"never seen", "has disconnected")
            dealer.close()
            while e.gone.empty():
                e.router.send(peer, [b"x"])
                await asyncio.sleep(0)
            assert (await e.gone.get())[0] == peer

    asyncio.run(story())


@asynccontextmanager
async def taking(
    on_messages: OnMessages, on_rest: Callable[[], None] | None = None
) -> AsyncIterator[tuple[Router, Dealer]]:
    """A router that hands messages over together, and a dealer that it has not heard of; what is sent has come at once."""
    context = TransportContext()
    router = Router(
        context,
        on_messages=on_messages,
        on_sent=None,
        on_room=lambda peer: None,
        on_gone=lambda peer, reason: None,
        on_rest=on_rest,
        high_water=1000,
    )
    dealer = Dealer(
        context,
        router.bind("inproc://taking"),
        on_message=lambda frames: None,
        on_sent=lambda frames: None,
        on_lost=lambda reason: None,
        identity=b"d",
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield router, dealer
    finally:
        dealer.close()
        router.close()
        await asyncio.wait_for(context.close(), TIMEOUT_S)


def test_messages_that_came_together_are_handed_over_together() -> None:
    """In their order, no more than a wake-up takes; none after a pause, all of them when it is over."""
    batches: list[list[tuple[str, list[bytes]]]] = []
    rests: list[int] = []

    async def story() -> None:
        async with taking(batches.append, lambda: rests.append(len(batches))) as (router, dealer):
            router.pause()
            for number in range(2 * DRAIN + 3):
                assert dealer.send([b"%d" % number])
            router.link._wake()  # as the descriptor does
            assert batches == [], "nothing is taken while the link pauses"
            router.link.resume()
            while sum(map(len, batches)) < 2 * DRAIN + 3:
                await asyncio.sleep(0)

    asyncio.run(story())
    assert [len(messages) for messages in batches] == [DRAIN, DRAIN, 3]
    assert [message for messages in batches for message in messages] == [
        ("", [b"d", b"%d" % number]) for number in range(2 * DRAIN + 3)
    ]
    assert {1, 2, 3} <= {*rests} and rests == sorted(rests), "each wake-up is told to be over"


@pytest.mark.parametrize("where", ["while they are handled", "while they are received"])
def test_fault_in_messages_that_came_together_does_not_silence_the_link(where: str) -> None:
    """What was received before it is handed over, and what comes after it without a signal of its own."""
    faults: list[str] = []
    told: list[bytes] = []

    def take(messages: list[tuple[str, list[bytes]]]) -> None:
        told.extend(frames[1] for _, frames in messages)
        if where == "while they are handled" and len(told) <= 2 * DRAIN:
            raise RuntimeError(where)

    class Faulty:
        """Receives, and says once that it could not go on."""

        def __init__(self, real: Any) -> None:
            self._real = real
            self.readable, self.send_all, self.send = real.readable, real.send_all, real.send

        def receive_all(self, messages: list[tuple[str, list[bytes]]], most: int, octets: int) -> None:
            self._real.receive_all(messages, min(most, 3), octets)
            if where == "while they are received" and messages and len(faults) < 2:
                raise RuntimeError(where)

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: faults.append(str(context["exception"]))
        )
        async with taking(take) as (router, dealer):
            if where == "while they are received":
                router.link._messages = Faulty(router.link._messages)  # type: ignore[assignment]
            said = [b"%d" % number for number in range(200)]
            for text in said:
                assert dealer.send([text])
            while len(told) < 200:
                await asyncio.sleep(0)
            assert told == said

    asyncio.run(story())
    assert faults and {*faults} == {where}


def test_octets_of_messages_that_are_handed_over_together_are_bounded() -> None:
    """No message is taken after that with which they have so many."""
    sizes: list[int] = []

    async def story() -> None:
        async with taking(lambda messages: sizes.append(sum(len(frames[1]) for _, frames in messages))) as (
            _,
            dealer,
        ):
            for _ in range(10):
                assert dealer.send([bytes(DRAIN_OCTETS // 2 - 1)])
            while sum(sizes) < 10 * (DRAIN_OCTETS // 2 - 1):
                await asyncio.sleep(0)
            assert sizes == [DRAIN_OCTETS - 2] * 5  # what is missing is the routing id, which counts

    asyncio.run(story())


def test_octets_of_messages_of_one_wake_up_are_bounded() -> None:
    """Of those that are handed over one by one, too; the rest comes without a signal."""
    bursts: list[int] = [0]

    def take(frames: list[bytes]) -> None:
        bursts[-1] += len(frames[0])

    async def story() -> None:
        context = TransportContext()
        router = context.zmq.socket(zmq.ROUTER)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        router.bind("inproc://bursts")
        dealer = Dealer(
            context,
            "inproc://bursts",
            on_message=take,
            on_sent=lambda frames: None,
            on_lost=lambda reason: None,
            on_rest=lambda: bursts.append(0),
            identity=b"d",
        )
        dealer.pause()
        try:
            for _ in range(6):
                router.send_multipart([b"d", bytes(DRAIN_OCTETS // 2)])
            dealer.resume()
            async with asyncio.timeout(TIMEOUT_S):
                while sum(bursts) < 3 * DRAIN_OCTETS:
                    await asyncio.sleep(0)
        finally:
            dealer.close()
            router.close(linger=0)
            await context.close()

    asyncio.run(story())
    assert [octets for octets in bursts if octets] == [DRAIN_OCTETS] * 3


def test_message_with_too_many_frames_is_cut() -> None:
    """What no protocol of ours contains costs no memory, and is malformed when it arrives."""

    async def story() -> None:
        async with ends() as e:
            dealer, _ = e.dealer()
            dealer.send([b"x"] * 1000)
            dealer.send([b"next"])
            _, frames = await e.heard.get()
            assert len(frames) == MAX_FRAMES - 1
            assert (await e.heard.get())[1] == [b"next"]

    asyncio.run(story())


def test_fault_of_the_receiver_is_told_and_the_link_goes_on() -> None:
    async def story() -> None:
        faults: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
        got: asyncio.Queue[list[bytes]] = asyncio.Queue()

        def receive(peer: bytes, frames: list[bytes]) -> None:
            if frames == [b"bad"]:
                raise RuntimeError("cannot take this")
            got.put_nowait(frames)

        async with ends() as e:
            e.router.link._on_message = lambda frames: receive(frames[0], frames[1:])
            dealer, _ = e.dealer()
            for frames in ([b"bad"], [b"good"], [b"bad"], [b"better"]):
                dealer.send(frames)
            assert [await got.get(), await got.get()] == [[b"good"], [b"better"]]
        assert [str(fault["exception"]) for fault in faults] == ["cannot take this"] * 2

    asyncio.run(story())


@pytest.mark.parametrize("endpoint", ["tcp://nowhere", "nonsense", "tcp://127.0.0.1:99999", "foo://x"])
def test_bad_endpoints_are_told_in_one_sentence(endpoint: str) -> None:
    async def story() -> None:
        async with ends() as e:
            with pytest.raises(TransportError, match=f"(cannot listen on|no port).*{endpoint}"):
                e.router.bind(endpoint)

    asyncio.run(story())


def test_port_in_use_is_told() -> None:
    async def story() -> None:
        async with ends() as e, ends() as other:
            with pytest.raises(
                TransportError, match="Address already in use; end what listens there, or choose"
            ):
                other.router.bind(e.endpoint)

    asyncio.run(story())


def test_nobody_can_know_the_routing_ids_that_libzmq_gives() -> None:
    """It counts from what the C library draws, which is the same in every process unless somebody seeds it."""

    async def first_id() -> bytes:
        ctypes.CDLL(None).srand(1)  # as in a process that has just begun
        async with ends() as e:
            dealer, _ = e.dealer()
            dealer.send([b"hello"])
            peer, _ = await e.heard.get()
            return peer

    first, second = asyncio.run(first_id()), asyncio.run(first_id())
    assert first[0] == second[0] == 0, "given by libzmq"
    assert first != second
