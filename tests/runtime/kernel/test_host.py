"""The host: real sockets on loopback, a real store, and a stop in every state."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq
import zmq.asyncio

from specwire.generated import zre
from specwire.runtime.kernel import host as module
from specwire.runtime.kernel.commits import StoreSettings
from specwire.runtime.kernel.effects import (
    Connect,
    Fork,
    HostEffect,
    Log,
    Now,
    Return,
    Send,
    Stop,
    Story,
    Wait,
    ask,
    commit,
)
from specwire.runtime.kernel.engine import PackageCodec, StoryEngine, UnansweredError
from specwire.runtime.kernel.events import (
    Called,
    Event,
    MessageMalformed,
    MessageReceived,
    PeerConnected,
    PeerDisconnected,
    PeerId,
    Reloaded,
    Started,
    Stopping,
)
from specwire.runtime.kernel.host import Host
from specwire.runtime.kernel.log import HostNotice, LogEvent
from specwire.runtime.kernel.service import (
    ConnectionSettings,
    HandlerError,
    HostSettings,
    HostState,
    HostStoppedError,
    ListenerSettings,
)
from specwire.runtime.kernel.sockets import MessageTap, Sockets
from specwire.runtime.kernel.store import Execute, Schema, Statement
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import CurveClient, CurveServer
from tests.runtime.kernel.store.stores import run

pytestmark = pytest.mark.peers

FRONT = ListenerSettings(endpoint="tcp://127.0.0.1:*")
PING = bytes.fromhex("aaa1 06 02 0007")
"""ZRE PING with the number 7, written by hand after RFC 36."""


class Happened(LogEvent, frozen=True):
    """Any event of an engine, as the test's only event for the log."""

    what: Any
    text = "{0.what}"


class Query(msgspec.Struct, frozen=True):
    """Request for a handler."""

    word: str


class WordRecords:
    """Records that are words; one that is there already fails."""

    schema = Schema(1, ("CREATE TABLE word (word TEXT PRIMARY KEY)",))

    def statements(self, record: str) -> Sequence[Statement]:
        """Return one INSERT; one word is a fault of the records."""
        if record == "bug":
            raise RuntimeError("a fault of the records")
        return (Execute("INSERT INTO word VALUES (?)", (record,)),)

    def load(self, connection: sqlite3.Connection) -> list[str]:
        """Return the words in order."""
        return [word for (word,) in connection.execute("SELECT word FROM word ORDER BY word")]


def react(event: Event) -> Story:
    """Echo messages, perform calls, and log everything else."""
    match event:
        case MessageReceived(peer=peer, message=message) if peer.socket == "front":
            yield Send(peer, message)
        case Called(call=call, request=("commit", word)):
            failure = yield from commit(word)
            yield Return(call, failure or "durable")
        case Called(call=call, request=("ask", word)):
            answered = yield from ask(Query(word))
            yield Return(call, answered.value or answered.failure)
        case Called(call=call, request="unheard"):
            answered = yield from ask(call)
            yield Return(call, answered.failure)
        case Called(call=call, request=("sleep", seconds)):
            yield Wait(call, (yield Now()) + seconds)
            yield Return(call, "slept")
        case Called(call=call, request=("connect", endpoint)):
            yield Connect(PeerId("up"), endpoint, b"\x01me")
            yield Send(PeerId("up"), zre.Ping(sequence=7))
            yield Return(call)
        case Called(call=call, request=("many", number)):
            for item in range(number):
                yield Log(Happened(item))
            yield Return(call)
        case Called(call=call, request="never"):
            yield Wait("never")
        case Called(request="fault"):
            yield Fork(faulty())
            yield Fork(healthy())
            raise RuntimeError("a fault of the engine")
        case Called(request="silence"):
            yield Log(Happened("silence"))
        case Called(call=call, request="error"):
            yield Return(call, error=LookupError("no such thing"))
        case Called(request="stop"):
            yield Stop("the engine wants to")
        case Stopping(reason=reason):
            yield Log(Happened(event))
            yield Stop(reason)
        case _:
            yield Log(Happened(event))


def faulty() -> Story:
    """Have another fault."""
    yield Wait("a moment", (yield Now()))
    raise RuntimeError("another fault of the engine")


def healthy() -> Story:
    """Log something; this story and `faulty` are due at one time."""
    yield Wait("another moment", (yield Now()))
    yield Log(Happened("healthy"))


async def handle_query(query: Query) -> str:
    """Answer a query; three words do not work."""
    match query.word:
        case "forever":
            await asyncio.Event().wait()
        case "refused":
            raise HandlerError("not that word")
        case "disk":
            raise OSError(28, "No space left on device")
        case "bug":
            raise RuntimeError("a fault of the handler")
    return query.word.upper()


class Case:
    """A host, what its engine logged, and raw clients of it."""

    def __init__(self, stack: AsyncExitStack, **settings: Any) -> None:
        self.events: list[LogEvent] = []
        settings.setdefault("listeners", {"front": FRONT})
        wanted = HostSettings(handlers={Query: handle_query}, **settings)
        self.host = Host(StoryEngine(react), PackageCodec(zre), wanted, on_event=self.events.append)
        self._stack = stack

    @property
    def endpoint(self) -> str:
        """Where the host listens."""
        return self.host.status().endpoints["front"]

    def client(self) -> zmq.asyncio.Socket:
        """Return a connected DEALER."""
        context = self._stack.enter_context(zmq.asyncio.Context())
        socket = self._stack.enter_context(context.socket(zmq.DEALER))
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(self.endpoint)
        return socket

    def happened(self, kind: type[Event]) -> list[Any]:
        """Return the events of this kind that the engine has logged."""
        logged = [event.what for event in self.events if isinstance(event, Happened)]
        return [what for what in logged if isinstance(what, kind)]

    async def until(self, kind: type[Event]) -> Any:
        """Return the first event of this kind, when it has come."""
        while not (found := self.happened(kind)):
            await asyncio.sleep(0.001)
        return found[0]


def with_case(story: Callable[[Case], Any], *, start: bool = True, **settings: Any) -> None:
    """Run a test with a host."""

    async def told() -> None:
        async with AsyncExitStack() as stack:
            case = Case(stack, **settings)
            if start:
                await stack.enter_async_context(case.host)
            await story(case)

    run(told)


def stored(path: Path) -> StoreSettings:
    """Return settings of a store of words."""
    return StoreSettings(path=path / "words.sqlite3", records=WordRecords())


def test_messages_are_decoded_and_answers_encoded() -> None:
    """Octets in, the same octets out; what is no message is reported and answered by nothing."""

    async def story(case: Case) -> None:
        client = case.client()
        await client.send_multipart([b"nonsense"])
        await client.send_multipart([PING])
        assert await client.recv_multipart() == [PING]
        (malformed,) = case.happened(MessageMalformed)
        assert malformed.peer.socket == "front" and "signature" in str(malformed.error)
        status = case.host.status()
        assert (status.messages_in, status.messages_out, status.octets_in) == (2, 1, 8 + 6)
        assert status.counters.malformed == 1

    with_case(story)


def test_messages_of_one_peer_are_answered_in_order() -> None:
    """More than one wake-up takes, and more than one turn performs."""

    async def story(case: Case) -> None:
        client = case.client()
        for number in range(1000):
            await client.send_multipart(zre.Ping(sequence=number).encode())
        answers = [zre.decode(await client.recv_multipart()) for _ in range(1000)]
        assert [answer.sequence for answer in answers] == list(range(1000))

    with_case(story)


def test_connections() -> None:
    """One host connects to another: handshake, message and answer are events, and so is the loss."""

    async def story(case: Case) -> None:
        async with AsyncExitStack() as stack:
            other = Case(stack)
            await other.host.start()
            await case.host.call(("connect", other.endpoint))
            assert (await case.until(PeerConnected)).peer == PeerId("up")
            assert (await case.until(MessageReceived)).message == zre.Ping(sequence=7)
            assert case.host.status().connections == 1
            await other.host.stop()
            lost = await case.until(PeerDisconnected)
            assert (lost.peer, lost.reason) == (PeerId("up"), "the connection was lost")
            assert case.host.status().connections == 0
            await case.host.call(("connect", other.endpoint))  # the name is free again

    with_case(story)


@pytest.mark.parametrize("endpoint", ["nonsense", "tcp://127.0.0.1:1"])
def test_failed_connections_are_events(endpoint: str) -> None:
    """Whether libzmq does not take the endpoint, or nobody listens there."""

    async def story(case: Case) -> None:
        await case.host.call(("connect", endpoint))
        assert (await case.until(PeerDisconnected)).peer == PeerId("up")

    with_case(story)


def test_calls() -> None:
    """A value, an error, a wait for the clock, and a handler that works, fails and has a fault."""

    async def story(case: Case) -> None:
        call = case.host.call
        with pytest.raises(LookupError, match="no such thing"):
            await call("error")
        assert await call(("sleep", 0.01)) == "slept"
        assert await call(("ask", "word")) == "WORD"
        assert await call(("ask", "refused")) == "not that word"
        assert await call(("ask", "disk")) == "[Errno 28] No space left on device"
        assert case.host.status().counters.faults == 0
        assert await call(("ask", "bug")) == "a fault of the handler"
        assert case.host.status().counters.faults == 1
        unheard = "AssertionError('the engine asks for int, and the host has no handler for it')"
        assert await call("unheard") == f"a fault of specwire: {unheard}"
        assert case.host.status().counters.faults == 2

    with_case(story)


def test_fault_of_the_engine_costs_one_story(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its trace, the stories after it run, and the host goes on."""

    async def story(case: Case) -> None:
        with pytest.raises(UnansweredError, match="a fault of the engine"):
            await case.host.call("fault")
        while Happened("healthy") not in case.events:
            await asyncio.sleep(0.001)
        assert await case.host.call(("ask", "word")) == "WORD"
        assert case.host.status().counters.faults == 2

    with_case(story)
    traces = [str(one.exc_text) for one in caplog.records if one.name == module.__name__]
    assert [trace.rpartition("RuntimeError: ")[2] for trace in traces] == [
        "a fault of the engine",
        "another fault of the engine",
    ]


def test_call_without_an_answer_ends() -> None:
    """At once, and not when the host stops."""

    async def story(case: Case) -> None:
        with pytest.raises(UnansweredError, match="the engine has no answer"):
            await case.host.call("silence")
        assert case.host.status().counters.faults == 0

    with_case(story)


def test_fault_of_a_codec_costs_one_message() -> None:
    """The others of the same wake-up are handled."""

    class Faulty(PackageCodec):
        def decode(self, peer: PeerId, frames: list[bytes]) -> Iterable[Any]:
            if frames == [b"fault"]:
                raise RuntimeError("a fault of the codec")
            return super().decode(peer, frames)

    async def story(case: Case) -> None:
        settings = HostSettings(listeners={"front": FRONT})
        case.host = Host(StoryEngine(react), Faulty(zre), settings, on_event=case.events.append)
        async with case.host:
            client = case.client()
            for frame in (PING, b"fault", PING):
                await client.send_multipart([frame])
            assert [await client.recv_multipart() for _ in range(2)] == [[PING], [PING]]
            assert case.host.status().counters.faults == 1

    with_case(story, start=False)


def test_turns_are_bounded() -> None:
    """Others get their turn on the event loop every 256 effects."""

    async def story(case: Case) -> None:
        iterations = 0

        def count() -> None:
            nonlocal iterations
            iterations += 1
            asyncio.get_running_loop().call_soon(count)

        count()
        await case.host.call(("many", 256 * 20))
        assert iterations >= 20

    with_case(story)


def test_too_many_effects_pause_receiving() -> None:
    """Callers wait, too; all goes on when half of them are performed."""

    async def story(case: Case) -> None:
        many = asyncio.create_task(case.host.call(("many", 10_000)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert case.host.status().paused
        client = case.client()
        await client.send_multipart([PING])
        assert await case.host.call(("ask", "word")) == "WORD"
        assert await client.recv_multipart() == [PING]
        await many
        status = case.host.status()
        assert not status.paused and status.pending_effects == 0

    with_case(story)


def test_commits_are_durable_before_they_are_answered(tmp_path: Path) -> None:
    """A record that the database refuses fails alone; the next host finds the others."""

    async def story(case: Case) -> None:
        words = [case.host.call(("commit", word)) for word in ("b", "a", "b")]
        first, second, third = await asyncio.gather(*words)
        assert (first, second) == ("durable", "durable") and "UNIQUE" in third
        store = case.host.status().store
        assert store is not None and (store.commits, store.failed, store.pending) == (2, 1, 0)
        assert sum(store.commit_s.counts) == 2
        with sqlite3.connect(tmp_path / "words.sqlite3") as database:
            assert database.execute("SELECT count(*) FROM word").fetchall() == [(2,)]

    with_case(story, store=stored(tmp_path))

    async def again(case: Case) -> None:
        (started,) = case.happened(Started)
        assert started.restored == ["a", "b"]
        assert started.endpoints == {"front": case.endpoint}

    with_case(again, store=stored(tmp_path))


def test_fault_of_the_records_is_not_acknowledged(tmp_path: Path) -> None:
    """The record fails, although later ones are durable."""

    async def story(case: Case) -> None:
        outcomes = await asyncio.gather(*[case.host.call(("commit", word)) for word in ("a", "bug", "c")])
        fault = "a fault of specwire: RuntimeError('a fault of the records')"
        assert outcomes == ["durable", fault, "durable"]
        status = case.host.status()
        assert status.store is not None and (status.store.commits, status.store.failed) == (2, 0)
        assert status.counters.faults == 1

    with_case(story, store=stored(tmp_path))


def test_faults_of_effects_and_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """An effect that the host does not know, and sockets that raise, do not end the turns."""

    class Strange:
        def handle(self, event: Event, now: float) -> Iterable[Any]:
            match event:
                case Called(call=call):
                    return ("no effect", Return(call, "done"))
                case Stopping(reason=reason):
                    return (Stop(reason),)
            return ()

        def deadline(self) -> float | None:
            return None

    async def story() -> None:
        settings = HostSettings(listeners={"front": FRONT})
        async with Host(Strange(), PackageCodec(zre), settings, on_event=print) as host:
            assert await host.call("first") == "done"
            with monkeypatch.context() as patch:
                patch.setattr(Router, "settle", lambda router: 1 / 0)
                assert await host.call("second") == "done"
            assert await host.call("third") == "done"
            assert host.status().counters.faults == 4

    run(story)


def test_reload_reaches_the_engine() -> None:
    """As an event, with whatever the peer's settings are."""

    async def story(case: Case) -> None:
        case.host.reload({"groups": ["a"]})
        assert case.happened(Reloaded) == [Reloaded({"groups": ["a"]})]

    with_case(story)


@pytest.mark.parametrize("handover", [False, True])
def test_handover(handover: bool) -> None:
    """A second connection with the same routing id is ignored, or replaces the first."""

    async def story(case: Case) -> None:
        context = zmq.asyncio.Context()
        clients = [context.socket(zmq.DEALER) for _ in range(2)]
        for client in clients:
            client.setsockopt(zmq.ROUTING_ID, b"one name")
            client.setsockopt(zmq.LINGER, 0)
            client.connect(case.endpoint)
            await client.send_multipart([PING])
            if client is clients[0] or handover:
                assert await client.recv_multipart() == [PING]
        await (clients[1] if handover else clients[0]).send_multipart([PING])
        assert await (clients[1] if handover else clients[0]).recv_multipart() == [PING]
        assert case.host.status().messages_in == (3 if handover else 2)
        context.destroy(linger=0)

    listener = msgspec.structs.replace(FRONT, handover=handover)
    with_case(story, listeners={"front": listener})


def new_keys() -> KeyPair:
    """Return a key pair."""
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def test_curve_and_other_keys() -> None:
    """A host proves a key, and changes it while it runs; a client that expects both connects to both."""
    old, new, ours = new_keys(), new_keys(), new_keys()
    server = ListenerSettings(endpoint=FRONT.endpoint, security=CurveServer(old), names={ours.public: "ours"})
    client = ConnectionSettings(security=CurveClient(ours, old.public, (new.public,)))

    async def story(case: Case) -> None:
        async with AsyncExitStack() as stack:
            other = await stack.enter_async_context(Case(stack, listeners={"front": server}).host)
            endpoint = other.status().endpoints["front"]
            await case.host.call(("connect", endpoint))
            await case.until(MessageReceived)
            await other.change_keys(new)
            await case.until(PeerDisconnected)
            for _ in range(2):  # the first attempt expects the old key
                case.events.clear()
                await case.host.call(("connect", endpoint))
                while not (case.happened(MessageReceived) or case.happened(PeerDisconnected)):
                    await asyncio.sleep(0.001)
            assert case.happened(MessageReceived)

    with_case(story, connections=client)


def test_tap_records_both_directions() -> None:
    """With one conversation for one peer."""
    rows: list[dict[str, Any]] = []

    class Recorder:
        def record(self, **row: Any) -> None:
            rows.append(row)

    async def story(case: Case) -> None:
        case.host = Host(
            StoryEngine(react),
            PackageCodec(zre),
            HostSettings(listeners={"front": FRONT}),
            on_event=case.events.append,
            tap=MessageTap(Recorder(), received_as="C", sent_as="S"),
        )
        async with case.host:
            client = case.client()
            await client.send_multipart([PING])
            await client.recv_multipart()

    with_case(story, start=False)
    assert [(row["sender"], row["frames"]) for row in rows] == [("C", [PING]), ("S", [PING])]
    assert len({row["conversation"] for row in rows}) == 1


def test_tap_names_a_connection_by_its_endpoint_and_routing_id() -> None:
    """The name of the socket means nothing outside this engine."""
    rows: list[dict[str, Any]] = []

    class Recorder:
        def record(self, **row: Any) -> None:
            rows.append(row)

    tap = MessageTap(Recorder(), received_as="S", sent_as="C")
    connection = Connect(PeerId("up-1"), "tcp://server:1", b"\x01id")
    tap.sent(connection.peer, [PING], connection)
    tap.received(connection.peer, [PING], connection)
    assert [(row["sender"], row["peer"], row["conversation"]) for row in rows] == [
        ("C", "tcp://server:1", "016964"), ("S", "tcp://server:1", "016964")
    ]  # fmt: skip


def test_credentials_that_cannot_work_are_an_error_of_the_start() -> None:
    """No later attempt of a connection could succeed."""
    broken = CurveClient(KeyPair("short", "short"), "short")

    async def story(case: Case) -> None:
        with pytest.raises(TransportError, match="CURVE keys, each of 40 characters"):
            await case.host.start()
        await stopped(case)

    with_case(story, start=False, connections=ConnectionSettings(security=broken))


# ---- the end


async def stopped(case: Case) -> None:
    """Stop the host twice at a time, and once more; nothing of it is left."""
    await asyncio.gather(case.host.stop("first"), case.host.stop("second"))
    await case.host.stop()
    assert case.host.state is HostState.STOPPED
    with pytest.raises(HostStoppedError, match="the host is stopped"):
        await case.host.call("error")


def test_stop_before_the_start() -> None:
    """Nothing was opened."""

    async def story(case: Case) -> None:
        await stopped(case)

    with_case(story, start=False)


def test_stop_while_starting(tmp_path: Path) -> None:
    """The store is open already; the start fails, and the store is free again."""

    async def story(case: Case) -> None:
        starting = asyncio.create_task(case.host.start())
        await asyncio.sleep(0)
        assert case.host.state is HostState.STARTING
        await stopped(case)
        with pytest.raises(HostStoppedError, match="while it started"):
            await starting

    with_case(story, start=False, store=stored(tmp_path))
    with_case(lambda case: asyncio.sleep(0), store=stored(tmp_path))


def test_start_that_fails_releases_everything(tmp_path: Path) -> None:
    """Here a port is taken; the next host takes the store."""

    async def story(case: Case) -> None:
        async with AsyncExitStack() as stack:
            taken = ListenerSettings(endpoint=case.endpoint)
            other = Case(stack, listeners={"front": taken}, store=stored(tmp_path))
            with pytest.raises(TransportError, match="cannot listen on"):
                await other.host.start()
            assert other.host.state is HostState.STOPPED
            await other.host.stop()

    with_case(story)
    with_case(lambda case: asyncio.sleep(0), store=stored(tmp_path))


@pytest.mark.parametrize(
    "request_",
    ["never", ("sleep", 60.0), ("ask", "forever"), ("many", 5000)],
    ids=["wait", "sleep", "ask", "effects"],
)
def test_stop_ends_pending_calls(request_: object) -> None:
    """However their stories are suspended; the engine heard of the end first."""

    async def story(case: Case) -> None:
        pending = asyncio.create_task(case.host.call(request_))
        await asyncio.sleep(0)
        await stopped(case)
        if request_ == ("many", 5000):
            assert await pending is None
        else:
            with pytest.raises(HostStoppedError, match="the host has stopped: first"):
                await pending
        assert case.happened(Stopping) == [Stopping("first")]

    with_case(story)


def test_stop_ends_calls_that_wait_for_room() -> None:
    """They have not reached the engine."""

    async def story(case: Case) -> None:
        many = asyncio.create_task(case.host.call(("many", 10_000)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert case.host.status().paused
        waiting = asyncio.create_task(case.host.call("error"))
        await asyncio.sleep(0)
        case.host.post(Called(0, "stop"))
        await stopped(case)
        with pytest.raises(HostStoppedError, match="the host is stopp"):
            await waiting
        await many

    with_case(story)


def test_stop_completes_commits(tmp_path: Path) -> None:
    """What was begun is durable, although the engine is not told any more."""

    async def story(case: Case) -> None:
        pending = asyncio.create_task(case.host.call(("commit", "word")))
        await asyncio.sleep(0)
        await stopped(case)
        with pytest.raises(HostStoppedError):
            await pending
        with sqlite3.connect(tmp_path / "words.sqlite3") as database:
            assert database.execute("SELECT word FROM word").fetchall() == [("word",)]

    with_case(story, store=stored(tmp_path))


def test_engine_stops_the_host() -> None:
    """`stopped` has its reason."""

    async def story(case: Case) -> None:
        with pytest.raises(HostStoppedError, match="the engine wants to"):
            await case.host.call("stop")
        assert await case.host.stopped == "the engine wants to"
        await stopped(case)

    with_case(story)


def test_engine_that_does_not_end_is_ended() -> None:
    """After `stop_s`, with a line in the log."""

    class Stubborn:
        def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
            return ()

        def deadline(self) -> float | None:
            return None

    async def story() -> None:
        events: list[LogEvent] = []
        settings = HostSettings(listeners={"front": FRONT}, stop_s=0.05)
        host = Host(Stubborn(), PackageCodec(zre), settings, on_event=events.append)
        await host.start()
        await host.stop("enough")
        assert events == [HostNotice("did not end within 0.05 s")]
        assert await host.stopped == "enough"

    run(story)


def test_cancelled_stop_still_ends_the_host() -> None:
    """A second `stop` returns when the host was ended by force."""

    class Stubborn:
        def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
            return ()

        def deadline(self) -> float | None:
            return None

    async def story() -> None:
        settings = HostSettings(listeners={"front": FRONT}, stop_s=0.05)
        host = Host(Stubborn(), PackageCodec(zre), settings, on_event=print)
        await host.start()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(host.stop("first"), 0.001)
        await host.stop("second")
        assert await host.stopped == "first"
        with pytest.raises(HostStoppedError, match="the host is stopped; it runs once"):
            await host.start()

    run(story)


def test_sockets_that_cannot_be_closed_do_not_keep_stop_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """`stop` returns, and the loop reports the error of the task."""

    async def story(case: Case) -> None:
        errors: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, about: errors.append(about["exception"]))
        close = Sockets.close

        async def faulty(self: Sockets, *, linger_s: float) -> None:
            await close(self, linger_s=linger_s)
            raise RuntimeError("a fault in closing")

        monkeypatch.setattr(Sockets, "close", faulty)
        await stopped(case)
        del case.host
        gc.collect()
        assert [str(error) for error in errors] == ["a fault in closing"]

    async def start_and_stop() -> None:
        async with AsyncExitStack() as stack:
            case = Case(stack)
            await case.host.start()
            await story(case)

    run(start_and_stop)


def test_secure_listeners_admit_the_same_clients() -> None:
    """There is one guard for all of them; a listener without security has no part in it."""
    one = ListenerSettings(endpoint=FRONT.endpoint, security=CurveServer(new_keys()), names={"key": "one"})
    HostSettings(listeners={"front": FRONT, "one": one, "two": one})
    for change in ({"names": {"key": "two"}}, {"any_key": True}, {"passwords": {"one": "secret"}}):
        other = msgspec.structs.replace(one, **change)
        with pytest.raises(ValueError, match="need equal `names`"):
            HostSettings(listeners={"front": FRONT, "one": one, "two": other})


def test_last_messages_leave() -> None:
    """What an engine sends before `Stop` arrives."""

    class Polite:
        peers: list[PeerId]

        def __init__(self) -> None:
            self.peers = []

        def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
            match event:
                case MessageReceived(peer=peer, message=message):
                    self.peers.append(peer)
                    return (Send(peer, message),)
                case Stopping(reason=reason):
                    goodbye = [Send(peer, zre.PingOk(sequence=8)) for peer in self.peers]
                    return (*goodbye, Stop(reason))
            return ()

        def deadline(self) -> float | None:
            return None

    async def story(case: Case) -> None:
        settings = HostSettings(listeners={"front": FRONT})
        case.host = Host(Polite(), PackageCodec(zre), settings, on_event=case.events.append)
        async with case.host:
            client = case.client()
            await client.send_multipart([PING])
            assert await client.recv_multipart() == [PING]
        assert await client.recv_multipart() == [bytes.fromhex("aaa1 07 02 0008")]

    with_case(story, start=False)
