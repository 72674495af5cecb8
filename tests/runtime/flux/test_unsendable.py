"""What a wire format has no room for: whoever waits hears so, once, and the broker goes on."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NoReturn

import pytest

from specwire.generated.errors import EncodeError
from specwire.generated.flux import AnyMessage, Event, Request, Response
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.errors import EPROTO, FluxError
from specwire.runtime.flux.handle import FluxHandle, connect
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.flux.topology import Tree
from specwire.runtime.flux.views import ServiceRequest
from specwire.runtime.flux.wire import FluxWire

TIMEOUT_S = 60.0
ROOMLESS = b"too wide"


class Narrow(FluxWire):
    """Flux v1, but for payloads with these octets in it: no message can carry them."""

    def encode(self, message: AnyMessage) -> list[bytes]:
        if isinstance(message, Request | Response | Event) and ROOMLESS in (message.payload or b""):
            self.refuse()
        return super().encode(message)

    def refuse(self) -> NoReturn:
        raise EncodeError(
            protocol="flux", message_name="Response", field="payload", frame=None, offset=None, kind="limit",
            expected="less", found="more", rule="narrow",
        )  # fmt: skip


class Desk:
    """A service whose answers have no room."""

    async def answer(self, request: ServiceRequest) -> str:
        return ROOMLESS.decode()

    async def complain(self, request: ServiceRequest) -> str:
        raise FluxError(99, ROOMLESS.decode())

    async def many(self, request: ServiceRequest) -> AsyncIterator[str]:
        for word in ("one", ROOMLESS.decode(), "three"):
            yield word


def settings(size: int) -> Settings:
    return Settings(tree=Tree(size, 1), owner=os.getuid(), wire=Narrow())


async def errnum_of(handle: FluxHandle, topic: str, content: str, nodeid: int) -> int:
    with pytest.raises(FluxError) as caught:
        await handle.rpc(topic, content, nodeid=nodeid)
    return caught.value.errnum


def test_response_without_room_becomes_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """EPROTO in place of an answer, and of an error whose text has no room; one log line for each.

    One in the middle of a stream is left out: an error would end the stream for its reader, not for the service.
    """

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with (
                asyncio.timeout(TIMEOUT_S),
                FluxBroker(settings(1), 0, local=f"{folder}/local-0", services={"desk": Desk()}) as broker,
                connect(broker.uri) as handle,
            ):
                assert await errnum_of(handle, "desk.answer", "", 0) == EPROTO
                assert await errnum_of(handle, "desk.complain", "", 0) == EPROTO
                assert [reply.text async for reply in handle.stream("desk.many")] == ["one", "three"]
                assert (await handle.rpc("broker.ping", {"seq": 7})).json()["seq"] == 7
                assert handle.pending == 0

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert len([line for line in caplog.messages if "could not be sent" in line]) == 3


def test_request_without_room_is_answered(tmp_path: Path) -> None:
    """Upwards, downwards and to a client that is the service: as if the one who did not get it had answered."""

    async def main() -> None:
        tree = f"ipc://{tmp_path}/tree"
        async with (
            asyncio.timeout(TIMEOUT_S),
            FluxBroker(settings(2), 0, local=f"{tmp_path}/local-0", bind=tree) as root,
            FluxBroker(settings(2), 1, local=f"{tmp_path}/local-1", parent=tree) as leaf,
            connect(root.uri) as above,
            connect(leaf.uri) as below,
            connect(leaf.uri) as served,
        ):
            async for reply in above.stream("overlay.health"):
                if reply.json()["status"] == "full":
                    break
            await above.rpc("broker.ping", {"seq": 1}, nodeid=1)  # behind the answer to its hello
            await served.serve("desk", Desk())
            text = ROOMLESS.decode()
            assert await errnum_of(below, "broker.ping", text, 0) == EPROTO
            assert await errnum_of(above, "broker.ping", text, 1) == EPROTO
            assert await errnum_of(below, "desk.answer", text, 1) == EPROTO
            for handle, nodeid in ((above, 1), (below, 0)):
                assert (await handle.rpc("broker.ping", {"seq": 7}, nodeid=nodeid)).json()["seq"] == 7
            assert (await above.rpc("broker.stats-get", {}, nodeid=0)).json()["pending"] == 0
            assert (await below.rpc("broker.stats-get", {}, nodeid=1)).json()["pending"] == 0

    asyncio.run(main())


def test_event_without_room_goes_to_nobody(tmp_path: Path) -> None:
    """The next one comes."""

    async def main() -> None:
        async with (
            asyncio.timeout(TIMEOUT_S),
            FluxBroker(settings(1), 0, local=f"{tmp_path}/local-0") as broker,
            connect(broker.uri) as handle,
        ):
            events = await handle.subscribe("news")
            await handle.announce("news.a", ROOMLESS.decode())
            await handle.announce("news.b", "fits")
            assert (await anext(events)).topic == "news.b"

    asyncio.run(main())
