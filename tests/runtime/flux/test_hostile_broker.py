"""Whatever a broker sends: nothing escapes the client, and nobody waits for ever on a connection that is over."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated import flux
from specwire.generated.flux import AnyMessage, Request, Response
from specwire.runtime.flux import blocking
from specwire.runtime.flux.client import ClientEngine
from specwire.runtime.flux.client_actions import Answered, Arrived, Failed, Finished, Requested
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.handle import FluxHandle, connect
from specwire.runtime.flux.service import ServiceHost
from specwire.runtime.flux.views import Notice, Reply, ServiceRequest
from tests.examples import examples
from tests.runtime.flux.scripted import NATIVE, Conversation, broker, framed

TIMEOUT_S = 60.0

MESSAGES = flux.strategies.messages()


@given(st.lists(MESSAGES, max_size=20))
def test_any_messages_leave_the_engine_in_order(messages: list[AnyMessage]) -> None:
    """Each call ends at most once; and what a program sees of a message is a value or a FluxError."""
    engine = ClientEngine()
    calls = [engine.call("a.b", None, 0.0, streaming=bool(n % 2), timeout_s=9.0) for n in range(6)]
    engine.subscribe("", 0.0)
    ended: list[int] = []
    for message in messages:
        if isinstance(message, Response):
            message = message.replace(matchtag=message.matchtag % 10)  # some of them are expected
        for action in engine.receive(message, 0.0):
            match action:
                case Answered(call=call, last=last):
                    look(Reply(action.response))
                    if last:
                        ended.append(call.request.matchtag)
                case Finished(call=call) | Failed(call=call):
                    ended.append(call.request.matchtag)
                case Arrived(event=event):
                    look(Notice(event))
                case Requested(request=request):
                    look(ServiceRequest(request))
    assert len(ended) == len(set(ended))
    assert engine.pending <= len(calls) + 1 - len(ended)
    engine.tick(10.0)
    assert engine.deadline == float("inf")


def look(view: Reply | Notice | ServiceRequest) -> None:
    """Read everything that a program might."""
    assert isinstance(view.topic, str)
    assert repr(view)
    for read in (view.json, lambda: view.text):
        try:
            read()
        except FluxError as error:
            assert error.errnum == 71


@given(st.lists(flux.strategies.request(), max_size=10))
def test_any_requests_leave_a_service_with_one_answer_each(messages: list[Request]) -> None:
    class Service:
        async def add(self, request: ServiceRequest) -> dict[str, int]:
            return {"n": request.json()["n"]}

    async def story() -> list[Response]:
        answers: list[Response] = []
        host = ServiceHost("any", Service(), answers.append)
        for message in messages:
            host.receive(message)
            host.receive(message.replace(topic="any.add"))
        while host.running:
            await asyncio.sleep(0)
        return answers

    answers = asyncio.run(story())
    final = [a for a in answers if a.errnum or not a.flags & 0x40]
    assert len(final) == 2 * sum(not message.flags & 0x04 for message in messages)
    for answer in answers:
        answer.encode()


GARBLE = st.one_of(
    st.binary(max_size=40),
    MESSAGES.map(lambda message: framed(message.encode())),
    st.just(NATIVE),
    st.binary(max_size=40).map(lambda body: NATIVE + len(body).to_bytes(4, "big") + body),
)


async def until_over(handle: FluxHandle) -> None:
    """Ask something that the broker will not live to answer."""
    try:
        await handle.rpc("a.b", timeout_s=TIMEOUT_S)
    except FluxError:
        return


@settings(max_examples=examples(40))
@given(st.lists(GARBLE, max_size=5).map(b"".join))
def test_any_octets_end_in_an_answer_or_a_flux_error(octets: bytes) -> None:
    async def story(uri: str) -> None:
        async with asyncio.timeout(TIMEOUT_S), connect(uri) as handle:
            await until_over(handle)

    def script(c: Conversation) -> None:
        c.hear()
        c.say(octets)

    with broker(script) as uri:
        asyncio.run(story(uri))
    with broker(script) as uri, blocking.open(uri, timeout_s=TIMEOUT_S) as handle:
        try:
            handle.rpc("a.b", timeout_s=TIMEOUT_S)
        except FluxError as error:
            assert error.errnum
