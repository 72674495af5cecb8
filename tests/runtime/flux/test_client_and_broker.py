"""The clients, the connector and Python services with the broker's engine behind them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from specwire.runtime.flux import blocking
from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.handle import FluxHandle, connect
from specwire.runtime.flux.service import allow
from specwire.runtime.flux.views import ServiceRequest
from tests.runtime.flux.solo import Solo, solo

TIMEOUT_S = 60.0


class Example:
    """A service."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def double(self, request: ServiceRequest) -> dict[str, int]:
        return {"n": 2 * request.json()["n"]}

    async def count(self, request: ServiceRequest) -> AsyncIterator[dict[str, int]]:
        for n in range(3):
            yield {"n": n}

    @allow(guests=True)
    async def wait(self, request: ServiceRequest) -> AsyncIterator[str]:
        yield "begun"
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.ended.set()


def with_broker(story: Callable[[Solo, FluxHandle], Awaitable[None]]) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with (
                asyncio.timeout(TIMEOUT_S),
                solo(f"{folder}/local-0") as broker,
                connect(broker.uri) as handle,
            ):
                await story(broker, handle)

    asyncio.run(main())


async def error_of(awaited: Awaitable[object]) -> FluxError:
    with pytest.raises(FluxError) as caught:
        await awaited
    return caught.value


def test_ping_repeats_what_was_asked_and_names_the_way() -> None:
    async def story(broker: Solo, handle: FluxHandle) -> None:
        pong = (await handle.rpc("broker.ping", {"seq": 3, "pad": "x"}, nodeid=0)).json()
        assert (pong["seq"], pong["pad"], pong["rank"], pong["rolemask"]) == (3, "x", 0, 5)
        assert pong["route"].startswith(broker.connector.clients[0][:8])

    with_broker(story)


def test_errors_have_their_numbers_and_texts() -> None:
    async def story(broker: Solo, handle: FluxHandle) -> None:
        error = await error_of(handle.rpc("nosuch.method"))
        assert (error.name, str(error)) == ("ENOSYS", "No service matching nosuch.method is registered")
        error = await error_of(handle.rpc("attr.nosuch"))
        assert (error.name, str(error)) == ("ENOSYS", "Unknown service method 'attr.nosuch'")
        assert (await error_of(handle.rpc("broker.ping", {}, nodeid=9))).name == "EHOSTUNREACH"
        assert (await error_of(handle.rpc("attr.get", "no JSON"))).name == "EPROTO"

    with_broker(story)


@pytest.mark.parametrize("hosted", ["in the broker", "by a client"])
def test_python_service_is_the_same_wherever_it_is_hosted(hosted: str) -> None:
    async def story(broker: Solo, handle: FluxHandle) -> None:
        async with connect(broker.uri) as host:
            if hosted == "in the broker":
                broker.serve("example", Example())
            else:
                await host.serve("example", Example())
            assert (await handle.rpc("example.double", {"n": 21})).json() == {"n": 42}
            assert [r.json()["n"] async for r in handle.stream("example.count")] == [0, 1, 2]
            assert (await error_of(handle.rpc("example.count"))).name == "EPROTO"
            error = await error_of(handle.rpc("example.nosuch"))
            assert str(error) == "Unknown service method 'example.nosuch'"
            assert (await error_of(handle.serve("example", Example()))).name == "EEXIST"

    with_broker(story)


@pytest.mark.parametrize("hosted", ["in the broker", "by a client"])
def test_service_is_told_when_a_client_is_gone(hosted: str) -> None:
    """`<service>.disconnect` ends what it asked for, and nothing is left to be answered."""

    async def story(broker: Solo, handle: FluxHandle) -> None:
        example = Example()
        if hosted == "in the broker":
            broker.serve("example", example)
        else:
            await handle.serve("example", example)
        async with connect(broker.uri) as visitor:
            begun = visitor.stream("example.wait")
            assert (await anext(begun)).text == "begun"
        await example.ended.wait()
        await begun.aclose()

    with_broker(story)


def test_service_that_is_withdrawn_or_whose_client_is_gone_is_no_more() -> None:
    async def story(broker: Solo, handle: FluxHandle) -> None:
        async with connect(broker.uri) as host:
            await host.serve("one", Example())
            await host.serve("two", Example())
            await host.withdraw("one")
            assert (await error_of(handle.rpc("one.double", {"n": 1}))).name == "ENOSYS"
            waiting = handle.stream("two.wait")
            assert (await anext(waiting)).text == "begun"
        assert (await error_of(anext(waiting))).name in ("ECANCELED", "EHOSTUNREACH", "ENOSYS")
        assert (await error_of(handle.rpc("two.double", {"n": 1}))).name == "ENOSYS"

    with_broker(story)


def test_events_are_numbered_and_come_in_order_to_whoever_subscribed() -> None:
    async def story(broker: Solo, handle: FluxHandle) -> None:
        async with connect(broker.uri) as other, await other.subscribe("a.") as events:
            assert await handle.publish("a.b", {"x": 1}) == 1
            await handle.announce("b.c")
            await handle.announce("a.d", "text")
            first, second = await anext(events), await anext(events)
            assert (first.topic, first.sequence, first.json()) == ("a.b", 1, {"x": 1})
            assert (second.topic, second.sequence, second.text) == ("a.d", 3, "text")

    with_broker(story)


def test_values_are_watched_as_a_stream() -> None:
    async def story(broker: Solo, handle: FluxHandle) -> None:
        await handle.rpc("kvs.put", {"key": "a", "value": 1})
        watch = handle.stream("kvs.watch", {"key": "a"})
        assert (await anext(watch)).json()["value"] == 1
        await handle.rpc("kvs.put", {"key": "a", "value": [2]})
        assert (await anext(watch)).json()["value"] == [2]
        await watch.aclose()
        assert (await handle.rpc("kvs.get", {"key": "a"})).json()["value"] == [2]

    with_broker(story)


def test_plain_program_has_the_same() -> None:
    def plain(uri: str) -> None:
        with blocking.open(uri, timeout_s=TIMEOUT_S) as handle, handle.events("a.") as events:
            assert handle.rpc("attr.get", {"name": "size"}).json()["value"] == "1"
            assert handle.publish("a.b", "text") == 1
            assert (next(events).text, events.lost) == ("text", 0)
            assert [r.json()["n"] for r in handle.stream("example.count")] == [0, 1, 2]

    async def story(broker: Solo, handle: FluxHandle) -> None:
        broker.serve("example", Example())
        await asyncio.to_thread(plain, broker.uri)

    with_broker(story)
