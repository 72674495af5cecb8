"""Typed requests and responses of both clients, with the classes of the Flux package."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from specwire.generated.flux import ENODATA, payloads
from specwire.runtime.flux import blocking
from specwire.runtime.flux.blocking import BlockingHandle
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.flags import STREAMING
from specwire.runtime.flux.handle import FluxHandle, connect
from tests.runtime.flux.scripted import TIMEOUT_S, Conversation, broker

KILL = payloads.RexecKillRequest(pid=7, signum=15)
WAIT = payloads.RexecWaitRequest(pid=7, label="a")
EXEC = payloads.RexecExecRequest(
    cmd=payloads.CommandObject(cmdline=["ls"], env={}, opts={}, channels=[]), flags=3
)
STARTED, FINISHED = payloads.RexecExecResponseStarted, payloads.RexecExecResponseFinished


def play(
    script: Callable[[Conversation], None], story: Callable[[FluxHandle], Coroutine[Any, Any, None]]
) -> None:
    async def main(uri: str) -> None:
        async with asyncio.timeout(TIMEOUT_S), connect(uri) as handle:
            await story(handle)

    with broker(script) as uri:
        asyncio.run(main(uri))


def play_plainly(script: Callable[[Conversation], None], story: Callable[[BlockingHandle], None]) -> None:
    with broker(script) as uri, blocking.open(uri, timeout_s=TIMEOUT_S) as handle:
        story(handle)


def answer_wait(c: Conversation) -> None:
    request = c.hear_rpc("rexec.wait")
    assert request[2] == b'{"pid":7,"label":"a"}\0'  # keys that are not there are not written
    c.reply(request, payload=b'{"status":256}\0')


def answer_exec(c: Conversation) -> None:
    request = c.hear_rpc("rexec.exec")
    assert request[2] == b'{"cmd":{"cmdline":["ls"],"env":{},"opts":{},"channels":[]},"flags":3}\0'
    c.reply(request, payload=b'{"type":"started","pid":7}\0', flags=STREAMING)
    c.reply(request, payload=b'{"type":"finished","status":0}\0', flags=STREAMING)
    c.reply(request, errnum=ENODATA, flags=STREAMING)


def answer_wrongly(c: Conversation) -> None:
    c.reply(c.hear_rpc("rexec.wait"), payload=b'{"status":"none"}\0')


def test_response_has_the_type() -> None:
    async def story(handle: FluxHandle) -> None:
        reply = await handle.rpc("rexec.wait", WAIT, type=payloads.RexecWaitResponse)
        assert reply == payloads.RexecWaitResponse(status=256)

    play(answer_wait, story)


def test_responses_of_a_stream_have_one_of_the_types() -> None:
    async def story(handle: FluxHandle) -> None:
        replies = [r async for r in handle.stream("rexec.exec", EXEC, type=payloads.RexecExecResponse)]
        assert replies == [STARTED(pid=7), FINISHED(status=0)]

    play(answer_exec, story)


def test_response_of_another_type_is_eproto() -> None:
    async def story(handle: FluxHandle) -> None:
        with pytest.raises(FluxError) as caught:
            await handle.rpc("rexec.wait", WAIT, type=payloads.RexecWaitResponse)
        assert caught.value.name == "EPROTO"
        assert handle.pending == 0

    play(answer_wrongly, story)


def test_plain_response_has_the_type() -> None:
    def story(handle: BlockingHandle) -> None:
        reply = handle.rpc("rexec.wait", WAIT, type=payloads.RexecWaitResponse)
        assert reply.status == 256

    play_plainly(answer_wait, story)


def test_plain_stream_has_one_of_the_types() -> None:
    def story(handle: BlockingHandle) -> None:
        replies = list(handle.stream("rexec.exec", EXEC, type=payloads.RexecExecResponse))
        assert replies == [STARTED(pid=7), FINISHED(status=0)]

    play_plainly(answer_exec, story)


def test_plain_response_of_another_type_is_eproto() -> None:
    def story(handle: BlockingHandle) -> None:
        with pytest.raises(FluxError) as caught:
            handle.rpc("rexec.wait", WAIT, type=payloads.RexecWaitResponse)
        assert caught.value.name == "EPROTO"

    play_plainly(answer_wrongly, story)


def test_request_without_a_response_takes_a_class() -> None:
    def script(c: Conversation) -> None:
        assert c.hear_rpc("rexec.kill")[2] == b'{"pid":7,"signum":15}\0'

    async def story(handle: FluxHandle) -> None:
        await handle.tell("rexec.kill", KILL)

    play(script, story)
