"""The client for plain programs, against the same scripted broker as the asyncio one."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from specwire.runtime.flux import blocking
from specwire.runtime.flux.blocking import BlockingHandle
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.unread import Unread
from tests.generated.vectors import frames_of
from tests.runtime.flux.scripted import TIMEOUT_S, Conversation, broker, framed, local


def play(script: Callable[[Conversation], None], story: Callable[[BlockingHandle], None]) -> None:
    """Run `story` with a handle to a broker that runs `script`."""
    with broker(script) as uri, blocking.open(uri, timeout_s=TIMEOUT_S) as handle:
        story(handle)


def error_of(call: Callable[[], object]) -> FluxError:
    """Return the error that comes instead of a result."""
    with pytest.raises(FluxError) as caught:
        call()
    return caught.value


def test_recorded_conversation_with_flux_core() -> None:
    def story(handle: BlockingHandle) -> None:
        assert handle.rpc("attr.get", {"name": "size"}).json() == {"value": "3", "flags": 1}
        reply = handle.rpc("broker.ping", {"seq": 0, "pad": "x"}, nodeid=2)
        assert reply.json()["route"] == "c5e78dd6!fb1d7153!74ba6a2a!8da81dad!70dfb1fc"
        error = error_of(lambda: handle.rpc("nosuch.method", {"a": 1}))
        assert (error.errnum, str(error)) == (38, "No service matching nosuch.method is registered")
        assert handle.rpc("attr.get", {"name": "rank"}, nodeid=1, upstream=True).json()["value"] == "0"
        assert [r.json() for r in handle.stream("state-machine.monitor", {"final": 5})] == [{"state": 5}]
        assert handle.publish("h2.json", {"hello": "world"}) == 6
        assert handle.pending == 0

    play(Conversation.repeat, story)


def test_events_come_by_prefix_also_while_something_else_is_waited_for() -> None:
    def script(c: Conversation) -> None:
        request = c.hear()
        assert request[:-1] == frames_of(local("event.subscribe.request"))[:-1]
        c.reply(request)
        c.say(framed(frames_of(local("event.delivered.rank0_client(event.publish)"))))
        c.reply(c.hear_rpc("a.b"))
        c.say(framed(frames_of(local("event.delivered.nopayload"))))
        c.hear_rpc("event.unsubscribe")

    def story(handle: BlockingHandle) -> None:
        with handle.events("h2.") as events:
            handle.rpc("a.b")
            first, second = next(events), next(events)
            assert (first.topic, first.sequence, first.json()) == ("h2.json", 6, {"hello": "world"})
            assert (second.sequence, events.lost) == (7, 0)
        assert list(events) == []

    play(script, story)


def test_events_end_where_none_comes_in_time_and_go_on_later() -> None:
    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("event.subscribe"))
        c.hear_rpc("ready.now")
        c.say(framed(frames_of(local("event.delivered.nopayload"))))
        c.hear_rpc("event.unsubscribe")

    def story(handle: BlockingHandle) -> None:
        with handle.events(timeout_s=0.01) as events:
            assert list(events) == []
            handle.tell("ready.now")
            got = next(events, None)
            while got is None:
                got = next(events, None)
            assert got.sequence == 7

    play(script, story)


def test_stream_and_requests_share_the_connection() -> None:
    def script(c: Conversation) -> None:
        stream = c.hear_rpc("log.dmesg")
        c.reply(stream, payload=b"one\0", flags=0x40)
        request = c.hear_rpc("a.b")
        c.reply(stream, payload=b"two\0", flags=0x40)
        c.reply(request, payload=b"{}\0")
        c.reply(stream, errnum=61, flags=0x40)

    def story(handle: BlockingHandle) -> None:
        lines = handle.stream("log.dmesg")
        assert next(lines).text == "one"
        assert handle.rpc("a.b").json() == {}
        assert [line.text for line in lines] == ["two"]

    play(script, story)


def test_stream_that_is_left_early_is_given_up() -> None:
    def script(c: Conversation) -> None:
        stream = c.hear_rpc("log.dmesg")
        for _ in range(2):
            c.reply(stream, payload=b"one\0", flags=0x40)
        c.hear_rpc("log.cancel")
        c.reply(c.hear_rpc("a.b"))

    def story(handle: BlockingHandle) -> None:
        for line in handle.stream("log.dmesg"):
            assert line.text == "one"
            break
        assert handle.pending == 0
        handle.rpc("a.b")

    play(script, story)


def test_request_that_is_not_answered_in_time_fails_though_others_are() -> None:
    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("event.subscribe"))
        c.hear_rpc("slow.one")
        for _ in range(20):
            c.say(framed(frames_of(local("event.delivered.nopayload"))))
        c.reply(c.hear_rpc("a.b"))

    def story(handle: BlockingHandle) -> None:
        events = handle.events()
        error = error_of(lambda: handle.rpc("slow.one", timeout_s=0.01))
        assert (error.name, str(error)) == ("ETIMEDOUT", "slow.one: no response in 0.01 s")
        handle.rpc("a.b")
        assert [next(events).sequence for _ in range(20)] == [7] * 20

    play(script, story)


def test_large_requests_and_large_responses_cross_without_a_standstill() -> None:
    """Neither side reads before it has written: what cannot be written waits while there is something to read."""
    octets = 8 << 20

    def script(c: Conversation) -> None:
        first = c.hear()
        c.reply(first, payload=bytes(octets))
        second = c.hear()
        assert len(second[2]) == octets
        c.reply(second, payload=b"{}\0")

    def story(handle: BlockingHandle) -> None:
        replies = handle.stream("a.b", timeout_s=TIMEOUT_S)
        assert len(next(replies).payload or b"") == octets
        assert handle.rpc("a.b", bytes(octets)).json() == {}

    play(script, story)


def test_request_goes_out_while_the_broker_waits_to_be_read() -> None:
    octets = 4 << 20
    written = threading.Event()

    def script(c: Conversation) -> None:
        c.hear_rpc("a.b")
        pusher = threading.Thread(target=push, args=(c,))
        pusher.start()  # the pipe to the client is full at once
        request = c.hear()
        assert len(request[2]) == octets
        pusher.join(TIMEOUT_S)
        c.reply(request)

    def push(c: Conversation) -> None:
        c.say(event)
        written.set()

    event = framed((b"", b"x.y", bytes(octets), bytes.fromhex("8e01040b00000000000000050000000100000000")))

    def story(handle: BlockingHandle) -> None:
        handle.tell("a.b")
        handle.rpc("c.d", bytes(octets), timeout_s=TIMEOUT_S)
        assert written.is_set()

    play(script, story)


def test_lost_connection_fails_all_that_follows_by_name() -> None:
    def script(c: Conversation) -> None:
        c.reply(c.hear_rpc("event.subscribe"))
        c.hear_rpc("a.b")

    def story(handle: BlockingHandle) -> None:
        events = handle.events()
        for call in (
            lambda: handle.rpc("a.b"),
            lambda: next(events),
            lambda: next(iter(handle.stream("c.d"))),
            lambda: handle.tell("e.f"),
        ):
            error = error_of(call)
            assert error.name == "ECONNRESET"
            assert str(error).endswith("is lost: the broker has closed it")
        events.unsubscribe()

    play(script, story)


def test_request_to_a_plain_program_is_refused() -> None:
    def script(c: Conversation) -> None:
        request = c.hear_rpc("a.b")
        proto = bytes.fromhex("8e01010b0000000000000005ffffffff00000007")
        c.say(framed((b"hop", b"", b"mine.do", b"{}\0", proto)))
        answer = c.hear()
        assert (answer[0], answer[3]) == (b"hop", b"No service matching mine.do is registered\0")
        c.reply(request)

    def story(handle: BlockingHandle) -> None:
        handle.rpc("a.b")

    play(script, story)


@pytest.mark.parametrize(
    ("authorisation", "text"),
    [(b"\x01", "denies access: Operation not permitted"), (b"", "is lost: the broker has closed it")],
)
def test_client_that_is_not_let_in_hears_why(authorisation: bytes, text: str) -> None:
    with broker(lambda c: None, authorisation=authorisation) as uri:
        with pytest.raises(FluxError) as caught, blocking.open(uri, timeout_s=TIMEOUT_S):
            raise AssertionError("let in")
        assert str(caught.value).endswith(text)


def test_broker_that_does_not_answer_in_time_is_given_up() -> None:
    def script(c: Conversation) -> None:
        with pytest.raises(EOFError):
            c.hear()

    with (
        broker(script, authorisation=b"") as uri,
        pytest.raises(FluxError, match=r"no answer from the broker in 0\.01 s"),
        blocking.open(uri, timeout_s=0.01),
    ):
        raise AssertionError("let in")


def test_broker_that_is_not_there_is_one_sentence() -> None:
    expected = "there is no broker at local:///no/such: no such socket"
    with pytest.raises(FluxError, match=expected), blocking.open("local:///no/such"):
        raise AssertionError("let in")


def test_unread_items_are_bounded_and_end_with_the_error() -> None:
    unread = Unread[int](max_unread=2)
    assert not unread
    assert [unread.put(n) for n in range(3)] == [True, True, False]
    unread.end(FluxError(104, "gone"))
    unread.end()
    assert [unread.take(), unread.take(), unread.lost] == [0, 1, 1]
    with pytest.raises(FluxError, match="gone"):
        unread.take()


def test_events_of_several_prefixes_are_one_sequence() -> None:
    """Each comes once and in order; a prefix that another one covers is not asked for."""

    def script(c: Conversation) -> None:
        for prefix in (b"a.", b"c"):
            request = c.hear_rpc("event.subscribe")
            assert request[2] == b'{"topic":"%s"}\0' % prefix
            c.reply(request)
        for number, topic in enumerate(("a.b", "c", "a.b.c", "c", "a."), 1):
            c.event(topic, None, number)
        c.hear_rpc("event.unsubscribe")
        c.hear_rpc("event.unsubscribe")

    def story(handle: BlockingHandle) -> None:
        with handle.events("a.", "a.b", "c") as events:
            assert [next(events).sequence for _ in range(5)] == [1, 2, 3, 4, 5]

    play(script, story)
