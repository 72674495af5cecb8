"""The client's engine: a sentence of the specification or the facts, and the exact actions that follow from it."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.generated import flux
from specwire.generated.flux import Control, Event, Request, Response
from specwire.runtime.flux.calls import PendingCall
from specwire.runtime.flux.client import ClientEngine
from specwire.runtime.flux.client_actions import (
    Answered,
    Arrived,
    Ended,
    Failed,
    Finished,
    Requested,
    Send,
    Subscribed,
)
from specwire.runtime.flux.errors import FluxError
from tests.generated.vectors import frames_of
from tests.runtime.flux.scripted import local

STREAMING, PRIVATE = 0x40, 0x20


def answer(
    call: PendingCall, *, payload: bytes | None = b"{}\0", errnum: int = 0, flags: int = 0
) -> Response:
    return Response(
        topic=call.request.topic, payload=payload, flags=flags, rolemask=5, errnum=errnum,
        matchtag=call.request.matchtag,
    )  # fmt: skip


def failure(engine: ClientEngine, message: Response) -> FluxError:
    (action,) = engine.receive(message, 0.0)
    assert isinstance(action, Failed)
    return action.error


@pytest.mark.parametrize(
    ("name", "topic", "content", "options"),
    [
        ("attr.get.route_flag_empty_stack", "attr.get", {"name": "size"}, {}),
        ("broker.ping.rank2", "broker.ping", {"seq": 0, "pad": "x"}, {"nodeid": 2}),
        ("upstream_flag.from_rank1", "attr.get", {"name": "rank"}, {"nodeid": 1, "upstream": True}),
        ("streaming.state-machine.monitor", "state-machine.monitor", {"final": 5}, {"streaming": True}),
    ],
)
def test_requests_are_those_that_libflux_sends(
    name: str, topic: str, content: dict[str, object], options: dict[str, int]
) -> None:
    entry = local(f"{name}.request")
    request = ClientEngine().call(topic, content, 0.0, **options).request  # type: ignore[arg-type]
    assert tuple(request.replace(matchtag=entry["fields"]["aux2"]).encode()) == frames_of(entry)


def test_published_event_is_the_recorded_request() -> None:
    for name, content, private in (("json", {"hello": "world"}, False), ("nopayload", None, False)):
        entry = local("event.publish.request" if name == "json" else f"event.publish.{name}.request")
        request = ClientEngine().publish(f"h2.{name}", content, 0.0, private=private).request
        assert tuple(request.replace(matchtag=entry["fields"]["aux2"]).encode()) == frames_of(entry)
    entry = local("event.publish.private.request")
    request = ClientEngine().publish("h2.priv", None, 0.0, private=True).request
    assert tuple(request.replace(matchtag=entry["fields"]["aux2"]).encode()) == frames_of(entry)


def test_announced_event_is_what_the_command_line_sends() -> None:
    """`flux event pub`: a bare EVENT with sequence 0, of which nothing is heard again."""
    assert ClientEngine().announce("my.topic", {"a": 1}).encode() == [
        b"", b"my.topic", b'{"a":1}\0', bytes.fromhex("8e01040bffffffff000000000000000000000000"),
    ]  # fmt: skip
    assert ClientEngine().announce("my.topic", None, private=True).flags == PRIVATE


def test_matchtags_begin_at_1_and_are_used_again_when_free() -> None:
    engine = ClientEngine()
    first, second, third = (engine.call("a.b", None, 0.0) for _ in range(3))
    assert [call.request.matchtag for call in (first, second, third)] == [1, 2, 3]
    engine.receive(answer(second), 0.0)
    engine.receive(answer(first), 0.0)
    assert [engine.call("a.b", None, 0.0).request.matchtag for _ in range(3)] == [1, 2, 4]


def test_response_answers_its_call_whatever_the_order() -> None:
    engine = ClientEngine()
    calls = [engine.call("a.b", None, 0.0) for _ in range(3)]
    for call in reversed(calls):
        response = answer(call)
        assert engine.receive(response, 0.0) == [Answered(call, response, True)]
    assert engine.pending == 0


def test_error_has_the_number_and_the_brokers_text() -> None:
    engine = ClientEngine()
    entry = local("unknown.service.any.response")
    call = engine.call("nosuch.method", {"a": 1}, 0.0)
    response = flux.decode(list(frames_of(entry)))
    assert isinstance(response, Response)
    error = failure(engine, response.replace(matchtag=call.request.matchtag))
    assert (error.errnum, error.name, str(error)) == (
        38, "ENOSYS", "No service matching nosuch.method is registered",
    )  # fmt: skip


def test_error_without_text_says_what_the_number_means() -> None:
    engine = ClientEngine()
    error = failure(engine, answer(engine.call("a.b", None, 0.0), payload=None, errnum=113))
    assert (error.name, error.text, str(error)) == ("EHOSTUNREACH", "", "No route to host")


@pytest.mark.parametrize("errnum", [4095, 0xFFFF_FFFF])
def test_number_that_nobody_knows_is_an_error_all_the_same(errnum: int) -> None:
    engine = ClientEngine()
    error = failure(engine, answer(engine.call("a.b", None, 0.0), payload=b"\xff\0", errnum=errnum))
    assert (error.errnum, error.name, error.text) == (errnum, str(errnum), "�")


def test_stream_goes_on_until_enodata() -> None:
    """Each response of a stream has the flag 0x40; it ends with errnum 61, which is no fault."""
    engine = ClientEngine()
    call = engine.call("log.dmesg", None, 0.0, streaming=True)
    for _ in range(3):
        response = answer(call, flags=STREAMING)
        assert engine.receive(response, 0.0) == [Answered(call, response, False)]
    assert engine.receive(answer(call, errnum=61, flags=STREAMING), 0.0) == [Finished(call)]
    assert engine.call("a.b", None, 0.0).request.matchtag == call.request.matchtag


def test_any_other_error_ends_a_stream_too() -> None:
    engine = ClientEngine()
    call = engine.call("log.dmesg", None, 0.0, streaming=True)
    assert failure(engine, answer(call, errnum=113, flags=STREAMING)).errnum == 113
    assert engine.pending == 0


def test_enodata_is_an_error_to_a_call_that_is_no_stream() -> None:
    engine = ClientEngine()
    assert failure(engine, answer(engine.call("a.b", None, 0.0), errnum=61)).name == "ENODATA"


def test_stream_answered_without_the_flag_has_one_response() -> None:
    engine = ClientEngine()
    call = engine.call("a.b", None, 0.0, streaming=True)
    response = answer(call)
    assert engine.receive(response, 0.0) == [Answered(call, response, True)]


def test_call_answered_with_a_stream_takes_the_first_response() -> None:
    """What follows has the same matchtag, which nobody else gets before the end."""
    engine = ClientEngine()
    call = engine.call("a.b", None, 0.0)
    assert engine.receive(answer(call, flags=STREAMING), 0.0)
    assert engine.receive(answer(call, flags=STREAMING), 0.0) == []
    assert engine.call("a.b", None, 0.0).request.matchtag == 2
    assert engine.receive(answer(call, errnum=61, flags=STREAMING), 0.0) == []
    assert engine.call("a.b", None, 0.0).request.matchtag == 1


def test_what_is_for_nobody_is_dropped() -> None:
    """Matchtag 0, one that is not in use, one with hops to go; control messages are for brokers."""
    engine = ClientEngine()
    call = engine.call("a.b", None, 0.0)
    assert engine.receive(answer(call).replace(matchtag=0), 0.0) == []
    assert engine.receive(answer(call).replace(matchtag=7), 0.0) == []
    assert engine.receive(answer(call).replace(routes=("hop",)), 0.0) == []
    assert engine.receive(Control(), 0.0) == []
    assert engine.receive(answer(call), 0.0)
    assert engine.receive(answer(call), 0.0) == []


def test_cancelled_call_keeps_its_matchtag_until_the_answer_which_is_swallowed() -> None:
    engine = ClientEngine()
    call = engine.call("a.b", None, 0.0)
    assert engine.cancel(call) == []
    assert (engine.pending, engine.abandoned) == (0, 1)
    other = engine.call("a.b", None, 0.0)
    assert other.request.matchtag == 2
    assert engine.receive(answer(call), 0.0) == []
    assert engine.abandoned == 0
    assert engine.call("a.b", None, 0.0).request.matchtag == 1
    engine.cancel(call)
    assert engine.pending == 2, "a call that is over cancels no other"


def test_cancelled_stream_is_taken_back_and_swallowed_to_its_end() -> None:
    """`<service>.cancel` goes the same way as the request, and nobody answers it."""
    engine = ClientEngine()
    call = engine.call("a.b", None, 0.0, streaming=True, nodeid=3, upstream=True)
    taken_back = Request(topic="a.cancel", payload=b'{"matchtag":1}\0', flags=0x14, nodeid=3)
    assert engine.cancel(call) == [Send(taken_back)]
    assert engine.cancel(call) == []
    assert engine.receive(answer(call, flags=STREAMING), 0.0) == []
    assert engine.abandoned == 1
    assert engine.receive(answer(call, errnum=61, flags=STREAMING), 0.0) == []
    assert engine.abandoned == 0


def test_call_without_an_answer_fails_at_its_deadline() -> None:
    engine = ClientEngine()
    patient = engine.call("a.b", None, 10.0)
    assert engine.deadline == inf
    call = engine.call("a.c", None, 10.0, timeout_s=2.5)
    assert engine.deadline == 12.5
    assert engine.tick(12.4) == []
    (action,) = engine.tick(12.5)
    assert isinstance(action, Failed)
    assert action.call is call
    assert (action.error.name, str(action.error)) == ("ETIMEDOUT", "a.c: no response in 2.5 s")
    assert engine.deadline == inf
    assert engine.receive(answer(call), 13.0) == [], "late"
    assert engine.receive(answer(patient), 1e9)


def test_stream_may_take_its_time_from_each_response_to_the_next() -> None:
    engine = ClientEngine()
    call = engine.call("a.b", None, 0.0, streaming=True, timeout_s=1.0)
    for now in (0.9, 1.8, 2.7):
        assert engine.tick(now) == []
        assert engine.receive(answer(call, flags=STREAMING), now)
    assert engine.tick(3.6) == []
    failed, taken_back = engine.tick(3.8)
    assert isinstance(failed, Failed)
    assert isinstance(taken_back, Send)
    assert engine.cancel(call) == []


def test_deadlines_of_calls_that_are_over_are_forgotten() -> None:
    """A million quick calls with a long timeout are not kept until it has passed."""
    engine = ClientEngine()
    for _ in range(10_000):
        engine.receive(answer(engine.call("a.b", None, 0.0, timeout_s=1e6)), 0.0)
    assert len(engine._calls._deadlines) < 200


def test_request_that_nobody_answers_has_no_matchtag() -> None:
    request = ClientEngine().tell("broker.ping", {"seq": 0, "pad": ""})
    assert tuple(request.encode()) == frames_of(local("noresponse.request"))


@pytest.mark.parametrize("nodeid", [-1, 0xFFFF_FFFE, 0x1_0000_0000])
def test_nodeid_that_is_no_rank_is_refused(nodeid: int) -> None:
    """0xFFFFFFFE is never encoded; the highest rank is 2^32 - 3."""
    with pytest.raises(ValueError, match="nodeid"):
        ClientEngine().call("a.b", None, 0.0, nodeid=nodeid)
    assert ClientEngine().call("a.b", None, 0.0, nodeid=0xFFFF_FFFD).request.nodeid == 0xFFFF_FFFD


def asked(actions: list[object]) -> Request:
    (action,) = actions
    assert isinstance(action, Send)
    assert isinstance(action.message, Request)
    return action.message


def test_broker_is_asked_once_for_a_prefix_and_told_when_nobody_listens() -> None:
    engine = ClientEngine()
    first, actions = engine.subscribe("h2.", 0.0)
    request = asked([*actions])
    assert tuple(request.encode()) == frames_of(local("event.subscribe.request"))
    second, actions = engine.subscribe("h2.", 0.0)
    assert actions == [], "it is on its way"
    agreed = Response(topic=request.topic, rolemask=1, matchtag=request.matchtag)
    assert engine.receive(agreed, 0.0) == [Subscribed(first), Subscribed(second)]
    third, actions = engine.subscribe("h2.", 0.0)
    assert actions == [Subscribed(third)]
    assert engine.unsubscribe(first, 0.0) == engine.unsubscribe(third, 0.0) == []
    assert engine.unsubscribe(third, 0.0) == [], "once is enough"
    last = asked([*engine.unsubscribe(second, 0.0)])
    assert (last.topic, last.payload) == ("event.unsubscribe", b'{"topic":"h2."}\0')


def test_prefix_that_is_wanted_again_is_asked_for_anew() -> None:
    """The broker hears subscribe, unsubscribe, subscribe, and the first answer is not taken for the second."""
    engine = ClientEngine()
    first, actions = engine.subscribe("a", 0.0)
    one = asked([*actions])
    assert asked([*engine.unsubscribe(first, 0.0)]).topic == "event.unsubscribe"
    second, actions = engine.subscribe("a", 0.0)
    two = asked([*actions])
    assert engine.receive(Response(topic=one.topic, matchtag=one.matchtag), 0.0) == []
    assert engine.receive(Response(topic=two.topic, matchtag=two.matchtag), 0.0) == [Subscribed(second)]


def test_refusal_of_the_first_asking_leaves_the_second_alone() -> None:
    engine = ClientEngine()
    first, actions = engine.subscribe("a", 0.0)
    one = asked([*actions])
    engine.unsubscribe(first, 0.0)
    second, actions = engine.subscribe("a", 0.0)
    two = asked([*actions])
    assert engine.receive(Response(topic=one.topic, errnum=1, matchtag=one.matchtag), 0.0) == []
    assert engine.receive(Response(topic=two.topic, matchtag=two.matchtag), 0.0) == [Subscribed(second)]
    event = Event(topic="a.x", sequence=1)
    assert engine.receive(event, 0.0) == [Arrived(second, event)]


def test_refused_subscription_ends() -> None:
    engine = ClientEngine()
    subscription, actions = engine.subscribe("a", 0.0)
    request = asked([*actions])
    (ended,) = engine.receive(
        Response(topic=request.topic, payload=b"not you\0", errnum=1, matchtag=request.matchtag), 0.0
    )
    assert isinstance(ended, Ended)
    assert (ended.subscription, str(ended.error)) == (subscription, "not you")
    assert engine.unsubscribe(subscription, 0.0) == []
    assert asked([*engine.subscribe("a", 0.0)[1]]).topic == "event.subscribe"


def test_event_goes_once_to_each_listener_with_a_prefix_of_its_topic() -> None:
    engine = ClientEngine()
    all_, some, again, other = (engine.subscribe(prefix, 0.0)[0] for prefix in ("", "a.", "a.", "b"))
    event = Event(topic="a.x", sequence=6)
    assert engine.receive(event, 0.0) == [Arrived(s, event) for s in (all_, some, again)]
    engine.unsubscribe(some, 0.0)
    assert engine.receive(event, 0.0) == [Arrived(s, event) for s in (all_, again)]
    plain = Event(topic="a", sequence=7)
    assert engine.receive(plain, 0.0) == [Arrived(all_, plain)], "a prefix with a dot is no prefix of it"
    assert other.prefix == "b"


def test_request_to_a_service_of_this_client_is_handed_over() -> None:
    request = Request(("uuid",), "mine.do", None, rolemask=5, matchtag=9)
    assert ClientEngine().receive(request, 0.0) == [Requested(request)]


def test_lost_connection_fails_everything_that_waits_and_all_that_follows() -> None:
    engine = ClientEngine()
    calls = [engine.call("a.b", None, 0.0, timeout_s=5.0) for _ in range(2)]
    subscription, _ = engine.subscribe("a", 0.0)
    error = FluxError(104, "gone")
    assert engine.lose(error) == [*(Failed(call, error) for call in calls), Ended(subscription, error)]
    assert engine.lose(error) == []
    assert (engine.pending, engine.deadline, engine.tick(99.0)) == (0, inf, [])
    assert engine.unsubscribe(subscription, 0.0) == []
    for attempt in (
        lambda: engine.call("a.b", None, 0.0),
        lambda: engine.tell("a.b", None),
        lambda: engine.announce("a.b", None),
        lambda: engine.subscribe("a", 0.0),
    ):
        with pytest.raises(FluxError, match="gone"):
            attempt()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.booleans()),
        st.tuples(st.just("cancel"), st.integers(0, 30)),
        st.tuples(st.just("more"), st.integers(0, 30)),
        st.tuples(st.just("last"), st.integers(0, 30)),
        st.tuples(st.just("tick"), st.integers(0, 30)),
    ),
    max_size=80,
)


@given(STEPS)
def test_no_call_gets_the_answer_to_another(steps: list[tuple[str, int]]) -> None:
    """A broker that answers every request once, in any order, with calls given up and timed out in between."""
    engine, now = ClientEngine(), 0.0
    calls: list[PendingCall] = []
    unanswered: list[PendingCall] = []
    over: set[int] = set()
    for step, number in steps:
        if step == "call":
            call = engine.call("a.b", {"n": len(calls)}, now, streaming=bool(number), timeout_s=20.0)
            assert all(call.request.matchtag != other.request.matchtag for other in unanswered)
            calls.append(call)
            unanswered.append(call)
        elif step == "tick":
            now += number
            over |= {id(action.call) for action in engine.tick(now) if isinstance(action, Failed)}
        elif step == "cancel" and number < len(calls):
            engine.cancel(calls[number])
            over.add(id(calls[number]))
        elif step in ("more", "last") and number < len(unanswered):
            call = unanswered[number]
            if step == "last":
                del unanswered[number]
            elif not call.streaming:
                continue
            response = answer(call, payload=call.request.payload, flags=STREAMING if step == "more" else 0)
            expected = [] if id(call) in over else [Answered(call, response, step == "last")]
            assert engine.receive(response, now) == expected
    assert engine.pending + engine.abandoned == len(unanswered)
