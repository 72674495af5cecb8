"""The asyncio client against a broker that repeats recordings, and against scripts written by hand."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.flux import blocking
from specwire.runtime.flux.arrivals import Arrivals
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.handle import FluxHandle, connect
from specwire.runtime.flux.views import ServiceRequest
from tests.generated.vectors import frames_of
from tests.runtime.flux.scripted import Conversation, broker, framed, local

TIMEOUT_S = 60.0


def play(
    script: Callable[[Conversation], None],
    story: Callable[[FluxHandle], Coroutine[Any, Any, None]],
    *,
    authorisation: bytes = b"\0",
) -> None:
    """Run `story` with a handle to a broker that runs `script`."""

    async def main(uri: str) -> None:
        async with asyncio.timeout(TIMEOUT_S), connect(uri) as handle:
            await story(handle)

    with broker(script, authorisation=authorisation) as uri:
        asyncio.run(main(uri))


async def error_of(awaited: Awaitable[object]) -> FluxError:
    """Return the error that comes instead of a result."""
    with pytest.raises(FluxError) as caught:
        await awaited
    return caught.value


def test_recorded_conversation_with_flux_core() -> None:
    """What the `flux` command line and libflux ask, in the octets they asked it in, and what they were told."""

    async def story(handle: FluxHandle) -> None:
        assert (await handle.rpc("attr.get", {"name": "size"})).json() == {"value": "3", "flags": 1}
        reply = await handle.rpc("broker.ping", {"seq": 0, "pad": "x"}, nodeid=2)
        assert reply.json()["route"] == "c5e78dd6!fb1d7153!74ba6a2a!8da81dad!70dfb1fc"
        assert (await error_of(handle.rpc("attr.get", {"name": "nosuchattr"}))).errnum == 2
        assert (await error_of(handle.rpc("attr.get", {"nope": 1}))).name == "EPROTO"
        error = await error_of(handle.rpc("nosuch.method", {"a": 1}, nodeid=2))
        assert (error.errnum, str(error)) == (38, "No service matching nosuch.method is registered")
        error = await error_of(handle.rpc("broker.ping", {"seq": 0, "pad": ""}, nodeid=9))
        assert error.name == "EHOSTUNREACH"
        reply = await handle.rpc("attr.get", {"name": "rank"}, nodeid=2, upstream=True)
        assert reply.json()["value"] == "1"
        states = [r.json() async for r in handle.stream("state-machine.monitor", {"final": 5})]
        assert states == [{"state": 5}]
        assert await handle.publish("h2.json", {"hello": "world"}) == 6
        assert await handle.publish("h2.nopayload") == 7
        assert await handle.publish("h2.priv", private=True) == 8
        health = (await handle.rpc("overlay.health", nodeid=0)).json()
        assert (health["status"], len(health["children"])) == ("full", 1)

    play(Conversation.repeat, story)


def test_events_come_by_prefix_until_nobody_listens() -> None:
    def script(c: Conversation) -> None:
        request = c.hear()
        assert request[:-1] == frames_of(local("event.subscribe.request"))[:-1]
        c.say(framed(frames_of(local("event.delivered.rank0_client(event.publish)"))))
        c.reply(request)
        for name in ("nopayload", "private"):
            c.say(framed(frames_of(local(f"event.delivered.{name}"))))
        request = c.hear_rpc("event.unsubscribe")
        assert request[2] == b'{"topic":"h2."}\0'

    async def story(handle: FluxHandle) -> None:
        async with await handle.subscribe("h2.") as events:
            first = await anext(events)
            assert (first.topic, first.sequence, first.json()) == ("h2.json", 6, {"hello": "world"})
            assert (first.userid, first.rolemask) == (0, 5)
            second, third = await anext(events), await anext(events)
            assert (second.sequence, second.payload, third.topic) == (7, None, "h2.priv")
            assert events.lost == 0
        assert [event async for event in events] == []

    play(script, story)


@pytest.mark.parametrize("payload", [None, b"{}\0", b'{"seq":"x"}\0'])
def test_publication_that_is_answered_with_nonsense_is_eproto(payload: bytes | None) -> None:
    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("event.publish"), payload=payload)

    async def story(handle: FluxHandle) -> None:
        assert (await error_of(handle.publish("a.b"))).name == "EPROTO"

    play(script, story)


def test_refused_subscription_raises_the_brokers_reason() -> None:
    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("event.subscribe"), payload=b"not you\0", errnum=1)

    async def story(handle: FluxHandle) -> None:
        error = await error_of(handle.subscribe("a"))
        assert (error.name, str(error)) == ("EPERM", "not you")

    play(script, story)


def test_ten_thousand_requests_are_under_way_at_once_and_each_has_its_own_answer() -> None:
    """They are answered in reverse, after the last of them has come."""
    count = 10_000

    def script(c: Conversation) -> None:
        requests = [c.hear() for _ in range(count)]
        assert len({request[-1][-4:] for request in requests}) == count
        for request in reversed(requests):
            c.reply(request, payload=request[2])

    async def story(handle: FluxHandle) -> None:
        replies = await asyncio.gather(*(handle.rpc("a.b", {"n": n}) for n in range(count)))
        assert [reply.json()["n"] for reply in replies] == list(range(count))
        assert handle.pending == 0

    play(script, story)


def test_payloads_are_json_text_octets_or_none() -> None:
    def script(c: Conversation) -> None:
        for expected in (b'{"a":[1,"\xc3\xa4"]}\0', "tä\0".encode(), b"\0\1\2", b""):
            request = c.hear()
            assert request[2:-1] == (expected,)
            c.reply(request, payload=request[2])
        request = c.hear()
        assert len(request) == 3
        c.reply(request)

    async def story(handle: FluxHandle) -> None:
        reply = await handle.rpc("a.b", {"a": [1, "ä"]})
        assert (reply.json(), reply.text) == ({"a": [1, "ä"]}, '{"a":[1,"ä"]}')
        assert (await handle.rpc("a.b", "tä")).text == "tä"
        raw = await handle.rpc("a.b", b"\0\1\2")
        assert raw.payload == b"\0\1\2"
        for read in (raw.json, lambda: raw.text):
            with pytest.raises(FluxError, match="does not end with NUL"):
                read()
        await handle.rpc("a.b", b"")
        empty = await handle.rpc("a.b")
        assert empty.payload is None
        with pytest.raises(FluxError, match="there is no payload"):
            empty.json()

    play(script, story)


def test_what_is_no_payload_is_refused_before_it_is_sent() -> None:
    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("good.one"))

    async def story(handle: FluxHandle) -> None:
        with pytest.raises(TypeError):
            await handle.rpc("a.b", 7)  # type: ignore[call-overload]
        with pytest.raises(TypeError):
            await handle.rpc("a.b", {"a": object()})
        with pytest.raises(ValueError, match="NUL"):
            await handle.rpc("a.b", "a\0b")
        with pytest.raises(ValueError, match="topic"):
            await handle.rpc("a\0b")
        await handle.rpc("good.one")

    play(script, story)


def test_stream_that_is_left_early_is_swallowed_and_its_matchtag_not_used() -> None:
    def script(c: Conversation) -> None:
        stream = c.hear_rpc("log.dmesg")
        assert stream[-1][3] == 0x49
        for line in (b"one\0", b"two\0"):
            c.reply(stream, payload=line, flags=0x40)
        taken_back = c.hear_rpc("log.cancel")
        assert taken_back[2] == b'{"matchtag":%d}\0' % int.from_bytes(stream[-1][-4:], "big")
        other = c.hear_rpc("a.b")
        assert other[-1][-4:] != stream[-1][-4:]
        c.reply(stream, payload=b"three\0", flags=0x40)
        c.reply(stream, errnum=61, flags=0x40)
        c.reply(other)
        again = c.hear_rpc("a.b")
        assert again[-1][-4:] == stream[-1][-4:]
        c.reply(again)

    async def story(handle: FluxHandle) -> None:
        async with aclosing(handle.stream("log.dmesg")) as lines:
            async for line in lines:
                assert line.text == "one"
                break
        await handle.rpc("a.b")
        await handle.rpc("a.b")

    play(script, story)


def test_error_ends_a_stream_after_what_came_before_it() -> None:
    def script(c: Conversation) -> None:
        stream = c.hear()
        c.reply(stream, payload=b"{}\0", flags=0x40)
        c.reply(stream, payload=b"overlay disconnect\0", errnum=113, flags=0x40)

    async def story(handle: FluxHandle) -> None:
        replies = handle.stream("state-machine.monitor")
        assert (await anext(replies)).json() == {}
        error = await error_of(anext(replies))
        assert (error.name, str(error)) == ("EHOSTUNREACH", "overlay disconnect")

    play(script, story)


def test_caller_that_is_cancelled_gives_its_request_up() -> None:
    heard, answer = threading.Event(), threading.Event()

    def script(c: Conversation) -> None:
        request = c.hear_rpc("slow.one")
        heard.set()
        assert answer.wait(TIMEOUT_S)
        c.reply(request)
        c.reply(c.hear_rpc("a.b"))

    async def story(handle: FluxHandle) -> None:
        asking = asyncio.create_task(handle.rpc("slow.one"))
        await asyncio.to_thread(heard.wait, TIMEOUT_S)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert handle.pending == 0
        answer.set()
        await handle.rpc("a.b")

    play(script, story)


def test_request_that_is_not_answered_in_time_fails() -> None:
    def script(c: Conversation) -> None:
        c.hear_rpc("slow.one")
        c.hear_rpc("slow.stream")
        c.hear_rpc("slow.cancel")
        c.reply(c.hear_rpc("a.b"))

    async def story(handle: FluxHandle) -> None:
        error = await error_of(handle.rpc("slow.one", timeout_s=0.01))
        assert (error.name, str(error)) == ("ETIMEDOUT", "slow.one: no response in 0.01 s")
        error = await error_of(anext(handle.stream("slow.stream", timeout_s=0.01)))
        assert error.name == "ETIMEDOUT"
        await handle.rpc("a.b", timeout_s=TIMEOUT_S)

    play(script, story)


def test_request_that_nobody_answers_is_waited_for_by_nobody() -> None:
    def script(c: Conversation) -> None:
        assert c.hear() == frames_of(local("noresponse.request"))
        event = c.hear()
        assert (event[1], event[-1].hex()) == (b"my.topic", "8e01040bffffffff000000000000000000000000")

    async def story(handle: FluxHandle) -> None:
        await handle.tell("broker.ping", {"seq": 0, "pad": ""})
        await handle.announce("my.topic", {"a": 1})
        assert handle.pending == 0

    play(script, story)


def test_lost_connection_fails_all_that_waits_by_name() -> None:
    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("event.subscribe"))
        for _ in range(3):
            c.hear()

    async def story(handle: FluxHandle) -> None:
        events = await handle.subscribe("")
        streaming = asyncio.create_task(error_of(anext(handle.stream("c.d"))))
        errors = await asyncio.gather(*(error_of(handle.rpc("a.b")) for _ in range(2)))
        errors += [await streaming, await error_of(anext(events)), await error_of(handle.rpc("e.f"))]
        for error in errors:
            assert error.name == "ECONNRESET"
            assert str(error).endswith("is lost: the broker has closed it")

    play(script, story)


def test_connection_cut_in_the_middle_of_a_message_says_so() -> None:
    def script(c: Conversation) -> None:
        c.hear()
        c.say(framed((b"", b"a.b", bytes(20)))[:-3])

    async def story(handle: FluxHandle) -> None:
        assert "in the middle of a message" in str(await error_of(handle.rpc("a.b")))

    play(script, story)


def test_octets_that_are_no_message_lose_the_connection() -> None:
    def script(c: Conversation) -> None:
        c.hear()
        c.say(b"HTTP/1.1 200 OK")

    async def story(handle: FluxHandle) -> None:
        error = await error_of(handle.rpc("a.b"))
        assert "is lost: what came is no message: " in str(error)

    play(script, story)


@pytest.mark.parametrize(
    ("authorisation", "name", "text"),
    [
        (b"\x01", "EPERM", "denies access: Operation not permitted"),
        (b"\x0d", "13", "denies access: Permission denied"),
        (b"\xff", "255", "denies access: Unknown error 255"),
        (b"", "ECONNRESET", "is lost: the broker has closed it"),
    ],
)
def test_client_that_is_not_let_in_hears_why(authorisation: bytes, name: str, text: str) -> None:
    async def story(handle: FluxHandle) -> None:
        raise AssertionError("let in")

    with pytest.raises(FluxError) as caught:
        play(lambda c: None, story, authorisation=authorisation)
    assert caught.value.name == name
    assert str(caught.value).startswith(("the broker at local://", "the connection to local://"))
    assert str(caught.value).endswith(text)


def test_broker_that_does_not_answer_in_time_is_given_up() -> None:
    async def knock(uri: str) -> None:
        async with connect(uri, timeout_s=0.01):
            raise AssertionError("let in")

    def script(c: Conversation) -> None:
        with pytest.raises(EOFError):
            c.hear()

    with (
        broker(script, authorisation=b"") as uri,
        pytest.raises(FluxError, match="no answer from the broker"),
    ):
        asyncio.run(knock(uri))


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("tcp://127.0.0.1:1", "'tcp://127.0.0.1:1' is not of the form local://PATH"),
        ("/run/flux/local", "'/run/flux/local' is not of the form local://PATH"),
        ("local://", "'local://' is not of the form local://PATH"),
        ("ssh://host/run/local", "ssh://host/run/local is on another machine, and ssh:// is not spoken here"),
        ("local:///no/such/socket", "there is no broker at local:///no/such/socket: no such socket"),
        (f"local:///{'x' * 120}", "has a path of 121 octets, and a UNIX socket's has at most 107"),
        (None, "no broker was named, and FLUX_URI is not set"),
    ],
)
def test_broker_that_cannot_be_reached_is_one_sentence(
    uri: str | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FLUX_URI", raising=False)

    async def knock() -> None:
        async with connect(uri):
            raise AssertionError("let in")

    with pytest.raises(FluxError) as caught:
        asyncio.run(knock())
    assert str(caught.value).endswith(text)


def test_socket_that_nobody_listens_on_is_named_so(tmp_path: Path) -> None:
    async def knock() -> None:
        async with connect(f"local://{tmp_path}/left"):
            raise AssertionError("let in")

    with socket.socket(socket.AF_UNIX) as left:
        left.bind(os.fspath(tmp_path / "left"))
    with pytest.raises(FluxError, match="the socket is there, but nobody listens on it"):
        asyncio.run(knock())


@pytest.mark.parametrize("kind", ["asyncio", "plain"])
def test_client_waits_its_turn_where_too_many_connect_at_once(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue of a listening socket is full: EAGAIN, which is neither a connection nor a refusal."""
    path = os.fspath(tmp_path / "local-0")
    waiting: list[socket.socket] = []
    tried = threading.Event()
    sleep, sleep_plainly = asyncio.sleep, time.sleep

    async def after_a_try(delay_s: float) -> None:
        tried.set()
        await sleep(delay_s)

    def after_a_plain_try(delay_s: float) -> None:
        tried.set()
        sleep_plainly(delay_s)

    monkeypatch.setattr(asyncio, "sleep", after_a_try)
    monkeypatch.setattr(time, "sleep", after_a_plain_try)

    async def ask() -> str:
        async with connect(f"local://{path}", timeout_s=TIMEOUT_S) as handle:
            return (await handle.rpc("a.b")).text

    def ask_plainly() -> str:
        with blocking.open(f"local://{path}", timeout_s=TIMEOUT_S) as handle:
            return handle.rpc("a.b").text

    with socket.socket(socket.AF_UNIX) as listening, ThreadPoolExecutor(max_workers=1) as pool:
        listening.bind(path)
        listening.listen(0)
        with pytest.raises(BlockingIOError):
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(path)
        asked = pool.submit(ask_plainly if kind == "plain" else lambda: asyncio.run(ask()))
        assert tried.wait(TIMEOUT_S)
        for _ in waiting[:-1]:
            listening.accept()[0].close()
        with listening.accept()[0] as connection:
            conversation = Conversation(connection)
            conversation.say(b"\0")
            conversation.reply(conversation.hear(), payload=b"in\0")
            assert asked.result(TIMEOUT_S) == "in"
    for one in waiting:
        one.close()


def test_uri_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> str:
        async with connect() as handle:
            value: str = (await handle.rpc("attr.get", {"name": "size"})).json()["value"]
            return value

    with broker(Conversation.repeat) as uri:
        monkeypatch.setenv("FLUX_URI", uri)
        assert asyncio.run(ask()) == "3"


class Doubler:
    """A service."""

    async def twice(self, request: ServiceRequest) -> dict[str, int]:
        return {"n": 2 * request.json()["n"]}

    async def count(self, request: ServiceRequest) -> AsyncIterator[dict[str, int]]:
        for n in range(request.json()["n"]):
            yield {"n": n}


def service_request(matchtag: int, topic: bytes, payload: bytes, flags: int = 0) -> bytes:
    """A request as it reaches a service client: stamped, with the whole route stack, the latest hop first."""
    proto = b"\x8e\x01\x01" + bytes((flags | 0x0B,)) + bytes(4) + b"\0\0\0\5\xff\xff\xff\xff"
    return framed((b"hop", b"client", b"", topic, payload, proto + matchtag.to_bytes(4, "big")))


def response_of(
    matchtag: int, topic: bytes, payload: bytes | None, errnum: int = 0, flags: int = 0
) -> tuple[bytes, ...]:
    """The response to it: the stack is echoed."""
    flags |= 0x09 | (2 if payload is not None else 0)
    proto = b"\x8e\x01\x02" + bytes((flags,)) + b"\xff\xff\xff\xff\0\0\0\1" + errnum.to_bytes(4, "big")
    parts = () if payload is None else (payload,)
    return (b"hop", b"client", b"", topic, *parts, proto + matchtag.to_bytes(4, "big"))


def test_client_that_is_a_service_answers_along_the_route_stack() -> None:
    done = threading.Event()

    def script(c: Conversation) -> None:
        request = c.hear()
        assert request[1:-1] == (b"service.add", b'{"service":"double"}\0')
        c.say(service_request(8, b"double.twice", b'{"n":1}\0'))  # may come before the answer
        c.reply(request)
        assert c.hear() == response_of(8, b"double.twice", b'{"n":2}\0')
        c.say(service_request(9, b"double.count", b'{"n":2}\0', flags=0x40))
        assert c.hear() == response_of(9, b"double.count", b'{"n":0}\0', flags=0x40)
        assert c.hear() == response_of(9, b"double.count", b'{"n":1}\0', flags=0x40)
        assert c.hear() == response_of(9, b"double.count", None, errnum=61, flags=0x40)
        c.say(service_request(10, b"double.nosuch", b"{}\0"))
        text = b"Unknown service method 'double.nosuch'\0"
        assert c.hear() == response_of(10, b"double.nosuch", text, errnum=38)
        c.say(service_request(11, b"other.method", b"{}\0"))
        text = b"No service matching other.method is registered\0"
        assert c.hear() == response_of(11, b"other.method", text, errnum=38)
        done.set()
        c.reply(c.hear_rpc("service.remove"))

    async def story(handle: FluxHandle) -> None:
        await handle.serve("double", Doubler())
        assert (await error_of(handle.serve("double", Doubler()))).name == "EEXIST"
        await asyncio.to_thread(done.wait, TIMEOUT_S)
        await handle.withdraw("double")

    play(script, story)


def test_service_name_that_is_taken_is_refused() -> None:
    def script(c: Conversation) -> None:
        for _ in range(2):
            c.reply(c.hear_rpc("service.add"), errnum=17)

    async def story(handle: FluxHandle) -> None:
        for _ in range(2):
            assert (await error_of(handle.serve("taken", Doubler()))).name == "EEXIST"

    play(script, story)


def test_sender_waits_for_a_broker_that_does_not_read() -> None:
    """Backpressure: what is sent is bounded by the buffers, however many want to send."""
    read_now = threading.Event()
    count, octets = 400, 1 << 16

    def script(c: Conversation) -> None:
        assert read_now.wait(TIMEOUT_S)
        for _ in range(count):
            c.reply(c.hear())

    async def story(handle: FluxHandle) -> None:
        asking = [asyncio.create_task(handle.rpc("a.b", bytes(octets))) for _ in range(count)]
        while handle._connection.has_room:
            await asyncio.sleep(0)
        late = asyncio.create_task(handle.tell("a.c"))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not late.done(), "there is no room"
        late.cancel()
        read_now.set()
        await asyncio.gather(*asking)

    play(script, story)


def test_arrivals_are_bounded_and_count_what_is_lost() -> None:
    async def story() -> None:
        arrivals = Arrivals[int](max_unread=3)
        assert [arrivals.put(n) for n in range(5)] == [True, True, True, False, False]
        assert arrivals.lost == 2
        arrivals.end()
        assert [n async for n in arrivals] == [0, 1, 2]

    asyncio.run(story())


def test_reader_of_a_stream_that_keeps_up_with_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets what there was room for, then ENOBUFS; other requests go on."""
    monkeypatch.setattr(Arrivals.__init__, "__defaults__", (3,))

    def script(c: Conversation) -> None:
        stream = c.hear()
        for n in range(6):
            c.reply(stream, payload=b"%d\0" % n, flags=0x40)
        heard = {request[1]: request for request in (c.hear(), c.hear())}  # whichever comes first
        assert heard.keys() == {b"log.cancel", b"a.b"}
        c.reply(heard[b"a.b"])

    async def story(handle: FluxHandle) -> None:
        replies = handle.stream("log.dmesg")
        got = [(await anext(replies)).text]
        await handle.rpc("a.b")
        with pytest.raises(FluxError, match="too many responses are unread") as caught:
            got += [reply.text async for reply in replies]
        assert caught.value.name == "ENOBUFS"
        assert handle.pending == 0

    play(script, story)
