"""Effects of a host that hold something back or take it back: room, pauses, dropped messages, cancelled requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
import zmq
import zmq.asyncio

from specwire.generated import zre
from specwire.generated.errors import DecodeError
from specwire.runtime.kernel.effects import (
    Ask,
    AwaitRoom,
    CancelAsk,
    Connect,
    DropPeer,
    HostEffect,
    Log,
    PauseReceiving,
    Return,
    Send,
    Stop,
)
from specwire.runtime.kernel.engine import PackageCodec
from specwire.runtime.kernel.events import (
    Answered,
    Called,
    Event,
    MessageMalformed,
    MessageReceived,
    Noticed,
    PeerId,
    RoomMade,
    Stopping,
)
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.log import HostNotice
from specwire.runtime.kernel.service import HandlerError, HostSettings, ListenerSettings
from specwire.runtime.kernel.sockets import MessageTap
from tests.runtime.kernel.store.stores import run

pytestmark = pytest.mark.peers

FRONT = ListenerSettings(endpoint="tcp://127.0.0.1:*")
SLOW, OTHER = PeerId("front", b"slow"), PeerId("front", b"other")
UP, UP_2 = PeerId("up"), PeerId("up-2")
MIB = 1 << 20
SHARE = 4 * MIB
"""What one peer may be offered: a sixteenth of 64 MiB."""


class Puppet:
    """Engine that keeps all events, and does what the program calls it with."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
        """Return the effects of a call, and then its end."""
        self.events.append(event)
        match event:
            case Called(call=call, request=effects):
                return (*effects, Return(call))
            case Stopping(reason=reason):
                return (Stop(reason),)
        return ()

    def deadline(self) -> float | None:
        """Return None."""
        return None


class Query(msgspec.Struct, frozen=True):
    """Request for a handler."""

    word: str


class Case:
    """A host with a puppet, and its raw clients."""

    def __init__(
        self,
        stack: AsyncExitStack,
        handler: Callable[[Query], Awaitable[Any]] | None = None,
        tap: MessageTap | None = None,
    ) -> None:
        self.puppet = Puppet()
        handlers: dict[type, Callable[[Any], Awaitable[Any]]] = {} if handler is None else {Query: handler}
        settings = HostSettings(listeners={"front": FRONT}, handlers=handlers)
        self.host = Host(self.puppet, PackageCodec(zre), settings, on_event=lambda event: None, tap=tap)
        self._stack = stack

    @property
    def endpoint(self) -> str:
        """Where the host listens."""
        return self.host.status().endpoints["front"]

    async def perform(self, *effects: HostEffect) -> None:
        """Let the engine have these effects; return when they have been performed."""
        await self.host.call(effects)

    async def client(self, peer: PeerId, *, high_water: int = 1000) -> zmq.asyncio.Socket:
        """Return a client with the routing id of `peer`, whose first message has arrived."""
        context = self._stack.enter_context(zmq.asyncio.Context())
        socket = self._stack.enter_context(context.socket(zmq.DEALER))
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVHWM, high_water)
        socket.setsockopt(zmq.ROUTING_ID, peer.routing_id)
        socket.connect(self.endpoint)
        await socket.send_multipart(ping(0).encode())
        await self.until(lambda: any(one.peer == peer for one in self.happened(MessageReceived)))
        return socket

    def happened(self, kind: type[Event]) -> list[Any]:
        """Return the events of this kind."""
        return [event for event in self.puppet.events if isinstance(event, kind)]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        while not condition():
            await asyncio.sleep(0.001)

    def numbers(self, peer: PeerId) -> list[int]:
        """Return the numbers of the messages from a peer."""
        return [one.message.sequence for one in self.happened(MessageReceived) if one.peer == peer]


def ping(number: int) -> zre.Ping:
    """Return a small message."""
    return zre.Ping(sequence=number)


def whisper(octets: int) -> zre.Whisper:
    """Return a large message."""
    return zre.Whisper(sequence=0, content=(bytes(octets),))


def play(story: Callable[[AsyncExitStack], Coroutine[Any, Any, None]]) -> None:
    """Run a test, and release everything."""

    async def with_stack() -> None:
        async with AsyncExitStack() as stack:
            await story(stack)

    run(with_stack)


def with_case(story: Callable[[Case], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Run a test with a host."""

    async def with_host(stack: AsyncExitStack) -> None:
        case = Case(stack, **options)
        await stack.enter_async_context(case.host)
        await story(case)

    play(with_host)


# ---- room


def test_room_for_a_client_that_reads() -> None:
    """There is room for a small message, and for a large one up to a peer's share."""

    async def story(case: Case) -> None:
        await case.client(SLOW)
        await case.perform(AwaitRoom(SLOW), AwaitRoom(SLOW, 1000), AwaitRoom(SLOW, 100 * MIB))
        offers = [RoomMade(SLOW, octets) for octets in (0, 1000, SHARE)]
        await case.until(lambda: case.happened(RoomMade) == offers)

    with_case(story)


@pytest.mark.parametrize("octets", [0, MIB])
def test_client_that_does_not_read_has_no_room(octets: int) -> None:
    """`RoomMade` comes when it has read what waits for it."""

    async def story(case: Case) -> None:
        client = await case.client(SLOW, high_water=1)
        await case.perform(*(Send(SLOW, whisper(MIB)) for _ in range(64)), AwaitRoom(SLOW, octets))
        await case.client(OTHER)
        await case.perform(AwaitRoom(OTHER, MIB))
        await case.until(lambda: case.happened(RoomMade) == [RoomMade(OTHER, MIB)])
        for _ in range(64):
            assert len((await client.recv_multipart())[-1]) == MIB
        await case.until(lambda: case.happened(RoomMade)[1:] == [RoomMade(SLOW, octets)])

    with_case(story)


@pytest.mark.parametrize("end", [Send(SLOW, ping(1)), DropPeer(SLOW), None])
def test_offer_counts_as_used_until_the_next_message(end: HostEffect | None) -> None:
    """Or until the peer is dropped. Meanwhile others have a sixteenth of what it leaves."""

    async def story(case: Case) -> None:
        await case.client(SLOW)
        await case.client(OTHER)
        await case.perform(AwaitRoom(SLOW, SHARE))
        await case.until(lambda: case.happened(RoomMade) == [RoomMade(SLOW, SHARE)])
        await case.perform(*(() if end is None else (end,)), AwaitRoom(OTHER, SHARE))
        offer = SHARE if end is not None else SHARE - SHARE // 16
        await case.until(lambda: case.happened(RoomMade)[1:] == [RoomMade(OTHER, offer)])

    with_case(story)


def test_second_offer_replaces_the_first() -> None:
    """An engine may ask again for another size."""

    async def story(case: Case) -> None:
        await case.client(SLOW)
        for octets in (SHARE, SHARE, 10):
            await case.perform(AwaitRoom(SLOW, octets))
        offers = [RoomMade(SLOW, octets) for octets in (SHARE, SHARE, 10)]
        await case.until(lambda: case.happened(RoomMade) == offers)

    with_case(story)


def test_dropped_peer_gets_no_room() -> None:
    """Nor what waits for it. A new request of the same peer is answered."""

    async def story(case: Case) -> None:
        client = await case.client(SLOW, high_water=1)
        await case.perform(*(Send(SLOW, whisper(MIB)) for _ in range(64)), AwaitRoom(SLOW, MIB))
        assert case.happened(RoomMade) == []
        await case.perform(DropPeer(SLOW), Send(SLOW, ping(7)), AwaitRoom(SLOW))
        received = []
        while (frames := await client.recv_multipart()) != ping(7).encode():
            received.append(frames)
        assert len(received) < 64
        await case.until(lambda: case.happened(RoomMade) == [RoomMade(SLOW, 0)])

    with_case(story)


# ---- turns


def test_messages_of_a_wake_up_are_handled_before_their_effects() -> None:
    """So a goodbye takes back answers that have not left."""
    steps: list[str] = []

    class Engine(Puppet):
        def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
            if not isinstance(event, MessageReceived):
                return super().handle(event, now)
            steps.append(f"handle {event.message.sequence}")
            return (Log(HostNotice(f"perform {event.message.sequence}")),)

    async def story() -> None:
        settings = HostSettings(listeners={"front": FRONT})
        host = Host(
            Engine(), PackageCodec(zre), settings, on_event=lambda event: steps.append(event.describe())
        )
        async with host:
            for number in (1, 2):
                host.on_message(SLOW, "", ping(number).encode())
            assert steps == []
            host.on_rest()
            assert steps == ["handle 1", "handle 2", "perform 1", "perform 2"]

    run(story)


# ---- what is dropped, paused and noticed


@pytest.mark.parametrize("discard", [False, True])
def test_drop_discards_messages_on_request(discard: bool) -> None:
    """Those to this peer that the host has not sent yet; later ones are sent."""

    async def story(case: Case) -> None:
        slow, other = await case.client(SLOW), await case.client(OTHER)
        await case.perform(
            Send(SLOW, ping(1)),
            Send(OTHER, ping(2)),
            DropPeer(SLOW, discard=discard),
            Send(SLOW, ping(3)),
        )
        assert await other.recv_multipart() == ping(2).encode()
        numbers = [3] if discard else [1, 3]
        assert [await slow.recv_multipart() for _ in numbers] == [ping(number).encode() for number in numbers]

    with_case(story)


def test_paused_connection_receives_nothing() -> None:
    """Until it is resumed, also after the whole host was paused; other connections go on."""

    async def story(stack: AsyncExitStack) -> None:
        far, near = (Case(stack) for _ in range(2))
        for case in (far, near):
            await stack.enter_async_context(case.host)
        for peer, routing_id in ((UP, b"one"), (UP_2, b"two")):
            await near.perform(Connect(peer, far.endpoint, routing_id), Send(peer, ping(0)))
        await far.until(lambda: len(far.happened(MessageReceived)) == 2)
        to_up, to_up_2 = (PeerId("front", routing_id) for routing_id in (b"one", b"two"))

        async def exchange(number: int) -> None:
            """Send to the first connection, and then to the second, which receives it."""
            await far.perform(Send(to_up, ping(number)), Send(to_up_2, ping(number)))
            await near.until(lambda: near.numbers(UP_2)[-1:] == [number])

        await near.perform(
            PauseReceiving(UP, True), PauseReceiving(UP, True), PauseReceiving(PeerId("no"), True)
        )
        await exchange(1)
        await near.perform(*(Log(HostNotice("")) for _ in range(10_000)))
        await near.until(lambda: not near.host.status().paused)
        await exchange(2)
        assert near.numbers(UP) == []
        await near.perform(PauseReceiving(UP, False))
        await near.until(lambda: near.numbers(UP) == [1, 2])
        # A connection that was dropped while it was paused is not paused when it is opened again.
        await near.perform(PauseReceiving(UP, True), DropPeer(UP))
        await near.perform(Connect(UP, far.endpoint, b"three"), Send(UP, ping(0)))
        await far.until(lambda: len(far.happened(MessageReceived)) == 3)
        await far.perform(Send(PeerId("front", b"three"), ping(3)))
        await near.until(lambda: near.numbers(UP) == [1, 2, 3])

    play(story)


def test_outside_changes_are_events() -> None:
    """In their order, with whatever value."""

    async def story(case: Case) -> None:
        case.host.notice("first")
        case.host.notice({"second": 2})
        assert case.happened(Noticed) == [Noticed("first"), Noticed({"second": 2})]

    with_case(story)


def test_malformed_message_has_the_error_of_the_codec() -> None:
    """From which a peer may derive its answer."""

    async def story(case: Case) -> None:
        client = await case.client(SLOW)
        await client.send_multipart([b"\xaa\xa1\x06\x02"])
        await case.until(lambda: bool(case.happened(MessageMalformed)))
        [malformed] = case.happened(MessageMalformed)
        assert (malformed.peer, malformed.user) == (SLOW, "")
        assert isinstance(malformed.error, DecodeError) and malformed.error.message_name == zre.Ping.NAME

    with_case(story)


def test_tap_tells_connections_apart_by_their_routing_id() -> None:
    """The conversation of a connection is the routing id that it has chosen, in both directions."""
    rows: list[dict[str, Any]] = []

    class Recorder:
        def record(self, **row: Any) -> None:
            rows.append(row)

    async def story(stack: AsyncExitStack) -> None:
        far = Case(stack)
        near = Case(stack, tap=MessageTap(Recorder(), received_as="S", sent_as="C"))
        for case in (far, near):
            await stack.enter_async_context(case.host)
        await near.perform(Connect(UP, far.endpoint, b"\x01me"), Send(UP, ping(1)))
        await far.until(lambda: bool(far.happened(MessageReceived)))
        await far.perform(Send(PeerId("front", b"\x01me"), ping(2)))
        await near.until(lambda: near.numbers(UP) == [2])

    play(story)
    conversation = b"\x01me".hex()
    assert [(row["sender"], row["conversation"]) for row in rows] == [
        ("C", conversation),
        ("S", conversation),
    ]


# ---- handlers


def test_cancelled_request_ends_its_handler() -> None:
    """No answer follows. Other requests go on, and tickets that are unknown or answered are ignored."""
    began, cancelled = [], []

    async def handle(query: Query) -> str:
        began.append(query.word)
        try:
            if query.word == "waits":
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(query.word)
            raise
        return query.word

    async def story(case: Case) -> None:
        await case.perform(Ask(Query("waits"), 1), Ask(Query("short"), 2))
        await case.until(lambda: case.happened(Answered) == [Answered(2, "short")])
        await case.perform(CancelAsk(1), CancelAsk(2), CancelAsk(3))
        await case.until(lambda: cancelled == ["waits"])
        await case.perform(Ask(Query("last"), 4))
        await case.until(lambda: case.happened(Answered)[1:] == [Answered(4, "last")])
        assert began == ["waits", "short", "last"]
        assert case.host.status().counters.faults == 0

    with_case(story, handler=handle)


def test_handler_that_was_cancelled_before_it_began() -> None:
    """It never does."""
    began: list[Query] = []

    async def handle(query: Query) -> None:
        began.append(query)

    async def story(case: Case) -> None:
        await case.perform(Ask(Query("never"), 1), CancelAsk(1), Ask(Query("then"), 2))
        await case.until(lambda: case.happened(Answered) == [Answered(2)])
        assert began == [Query("then")]

    with_case(story, handler=handle)


def test_handler_may_return_a_future() -> None:
    """Such as that of an executor; it may fail, and it is cancelled like a coroutine."""
    futures: dict[str, asyncio.Future[str]] = {}

    def handle(query: Query) -> asyncio.Future[str]:
        future = futures[query.word] = asyncio.get_running_loop().create_future()
        return future

    async def story(case: Case) -> None:
        await case.perform(*(Ask(Query(word), ticket) for ticket, word in enumerate("abc", start=1)))
        await case.until(lambda: len(futures) == 3)
        futures["b"].set_result("done")
        futures["a"].set_exception(HandlerError("failed"))
        await case.until(lambda: len(case.happened(Answered)) == 2)
        assert case.happened(Answered) == [Answered(2, "done"), Answered(1, failure="failed")]
        await case.perform(CancelAsk(3))
        assert futures["c"].cancelled()

    with_case(story, handler=handle)


@pytest.mark.parametrize("waits", [AwaitRoom(SLOW, MIB), Ask(Query("waits"), 1)], ids=["room", "answer"])
def test_stop_while_something_waits(waits: HostEffect) -> None:
    """The host stops, and ends handlers."""
    ended: list[str] = []

    async def handle(query: Query) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(query.word)

    async def story(case: Case) -> None:
        await case.client(SLOW, high_water=1)
        await case.perform(*(Send(SLOW, whisper(MIB)) for _ in range(64)), waits)
        await asyncio.sleep(0)  # the handler begins
        await case.host.stop("enough")
        assert case.happened(Answered) == case.happened(RoomMade) == []
        assert ended == (["waits"] if isinstance(waits, Ask) else [])

    with_case(story, handler=handle)
