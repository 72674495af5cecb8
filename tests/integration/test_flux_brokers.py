"""Brokers in a tree over real sockets: what passes between them, who is let in, and who is let go."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from specwire.generated.flux import Control, Event, Request, frame
from specwire.runtime.flux.errors import EHOSTUNREACH, ENOSYS
from specwire.runtime.flux.events import (
    ChildJoined,
    ChildLeft,
    ChildRefused,
    ChildTorpid,
    ClientClosed,
    ParentLost,
    PeerRefused,
)
from specwire.runtime.flux.handle import FluxHandle
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.security import CurveClient
from tests.integration.flux_brokers import handles, instance, new_keys, play
from tests.integration.flux_desk import Desk, errnum_of

MALFORMED = Path(__file__).parents[1] / "vectors/flux-malformed.json"
EVENTS_EACH = 40

pytestmark = pytest.mark.peers


def test_requests_reach_every_rank_and_services_run_on_any() -> None:
    """Answers, streams and errors come back over any number of hops."""

    async def story() -> None:
        desk = Desk()
        async with (
            instance(5, 2, services={4: {"desk": desk}}) as brokers,
            handles(brokers, 0, 3) as (top, low),
        ):
            for handle in (top, low):
                for rank in range(5):
                    assert (await handle.rpc("broker.ping", {"seq": 1}, nodeid=rank)).json()["rank"] == rank
                assert (await handle.rpc("desk.double", {"n": 21}, nodeid=4)).json() == {"n": 42}
                told = [r.json()["n"] async for r in handle.stream("desk.count", {"n": 50}, nodeid=4)]
                assert told == list(range(50))
                assert await errnum_of(handle, "desk.double", 2) == ENOSYS
                assert await errnum_of(handle, "broker.ping", 5) == EHOSTUNREACH

    play(story())


def test_events_have_one_order_everywhere() -> None:
    """Publishers on all ranks of a tree of seven; every rank sees all events, in the same order, numbered upwards."""

    async def publish(handle: FluxHandle, rank: int) -> None:
        for n in range(EVENTS_EACH):
            if n % 2:
                await handle.announce("order.e", {"rank": rank, "n": n})
            else:
                assert await handle.publish("order.e", {"rank": rank, "n": n})

    async def story() -> None:
        async with instance(7, 2) as brokers, handles(brokers, *range(7)) as many:
            listeners = [await handle.subscribe("order.") for handle in many]
            await asyncio.gather(*(publish(handle, rank) for rank, handle in enumerate(many)))
            heard = [[await anext(events) for _ in range(7 * EVENTS_EACH)] for events in listeners]
            orders = [
                [(event.sequence, event.json()["rank"], event.json()["n"]) for event in some]
                for some in heard
            ]
            assert all(order == orders[0] for order in orders)
            assert [sequence for sequence, _, _ in orders[0]] == sorted(
                {sequence for sequence, _, _ in orders[0]}
            )
            for rank in range(7):
                assert [n for _, source, n in orders[0] if source == rank] == list(range(EVENTS_EACH))

    play(story())


def test_a_stranger_without_the_key_is_refused_and_told_of() -> None:
    """A broker with keys of its own gets no further than the handshake; the log has its key."""

    async def story() -> None:
        async with instance(2, 2) as brokers:
            stranger, context = new_keys(), TransportContext()
            assert brokers.keys is not None
            lost = asyncio.get_running_loop().create_future()
            dealer = Dealer(
                context,
                brokers.endpoint(0),
                on_message=lambda frames: None,
                on_sent=lambda frames: None,
                on_lost=lost.set_result,
                security=CurveClient(stranger, brokers.keys.public),
            )
            refusal = await brokers.news[0].until(PeerRefused)
            assert stranger.public in refusal.reason
            assert "handshake" in await lost
            dealer.close()
            await context.close()
            async with handles(brokers, 0) as (handle,):
                assert (await handle.rpc("broker.ping", {}, nodeid=1)).json()["rank"] == 1
                log = [reply.text async for reply in handle.stream("log.dmesg", {"follow": False})]
                assert any(stranger.public in line for line in log)

    play(story())


def test_malformed_octets_from_below_disturb_nobody_else() -> None:
    """A peer with the right key that sends no messages is told to disconnect; children go on."""

    async def story() -> None:
        async with instance(3, 2) as brokers, handles(brokers, 1) as (handle,):
            assert brokers.keys is not None
            context, answers = TransportContext(), asyncio.Queue[list[bytes]]()
            dealer = Dealer(
                context,
                brokers.endpoint(0),
                on_message=answers.put_nowait,
                on_sent=lambda frames: None,
                on_lost=lambda reason: None,
                security=CurveClient(brokers.keys, brokers.keys.public),
                identity=b"\xff\x00evil\n",
            )
            hostile = [[b""], [b"x"], [b"", b"", b"\x8e\x01"], [b"a"] * 300, Event(topic="a").encode()[:-1]]
            for frames in (*hostile, Request(topic="broker.ping", nodeid=2).encode()):
                dealer.send(frames)
                assert (await answers.get())[-1][:3] == b"\x8e\x01\x08"  # a control message
                assert (await brokers.news[0].until(ChildRefused)).child == "\xff\x00evil\n"
            dealer.close()
            await context.close()
            for rank in range(3):
                assert (await handle.rpc("broker.ping", {}, nodeid=rank)).json()["rank"] == rank
            assert brokers.watch.malformed == len(hostile)

    play(story())


def test_malformed_octets_of_a_client_disturb_nobody_else() -> None:
    """Whatever a client's octets are, its connection ends or is answered, and others are served."""

    async def hear_end(octets: bytes, path: str) -> bytes:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(octets)
        writer.write_eof()
        told = await reader.read()
        writer.close()
        return told

    async def story() -> None:
        bodies = [bytes.fromhex(vector["body_hex"]) for vector in json.loads(MALFORMED.read_text())]
        framed = [b"\x12\x00\xee\xff" + len(body).to_bytes(4, "big") + body for body in (*bodies, b"")]
        hostile = [
            b"\xde\xad\xbe\xef\0\0\0\1x",
            b"\x12\x00\xee\xff\xff\xff\xff\xff",
            *(octets[:-1] for octets in framed),
        ]
        shuffled = random.Random(1).randbytes(4096)
        async with instance(2, 2, strangers=True) as brokers, handles(brokers, 0) as (handle,):
            path = brokers.uri(0).removeprefix("local://")
            for octets in (*framed, *hostile, shuffled):
                assert (await hear_end(octets, path))[:1] == b"\0"  # let in, whatever comes then
            for rank in range(2):
                assert (await handle.rpc("broker.ping", {}, nodeid=rank)).json()["rank"] == rank

    play(story())


def test_a_slow_subscriber_is_let_go_and_others_hear_everything() -> None:
    """One who subscribes and does not read is disconnected, with a reason; the tree and the other go on."""
    size, count = 1 << 20, 24

    async def story() -> None:
        async with instance(2, 2) as brokers, handles(brokers, 0, 1) as (publisher, reader):
            events = await reader.subscribe("big")
            slow = socket.socket(socket.AF_UNIX)
            slow.setblocking(False)
            slow.connect(brokers.uri(1).removeprefix("local://"))
            slow.send(frame(Request(topic="event.subscribe", payload=b'{"topic":""}\0', matchtag=1)))
            await asyncio.get_running_loop().sock_recv(slow, 64)  # the octet, and the answer
            for n in range(count):
                await publisher.announce(f"big.{n}", bytes(size))
                event = await anext(events)
                assert event.topic == f"big.{n}"
            gone = await brokers.news[1].until(ClientClosed)
            assert gone.reason.startswith("slow subscriber")
            assert (await reader.rpc("broker.ping", {}, nodeid=0)).json()["rank"] == 0
            slow.close()

    play(story())


def test_a_client_that_dies_leaves_nothing_behind() -> None:
    """Its services are free again, those it used hear of it, and its requests are pending nowhere."""

    async def story() -> None:
        desk = Desk()
        async with instance(3, 1, services={2: {"desk": desk}}) as brokers, handles(brokers, 0) as (stays,):
            async with handles(brokers, 0) as (dies,):
                await dies.serve("mine", Desk())
                await dies.subscribe("any")
                waiting = asyncio.create_task(dies.rpc("desk.wait", {}, nodeid=2))
                await desk.waiting.wait()
            await asyncio.gather(waiting, return_exceptions=True)
            await desk.gone.get()
            await stays.serve("mine", Desk())
            await stays.rpc("broker.ping", {}, nodeid=2)
            for broker in brokers.brokers.values():
                assert not broker.engine.overlay.tracker
                assert not any(child.tracker for child in broker.engine.overlay.children.present.values())
            status = brokers.brokers[0].status()
            assert (status.local.clients, status.subtree) == (1, "full")

    play(story())


def test_a_parent_that_stops_lets_go_and_its_subtree_comes_again() -> None:
    """Pending requests get EHOSTUNREACH; the children join the next parent under other names, and events go on."""

    async def story() -> None:
        desk = Desk()
        services: dict[int, dict[str, Any]] = {2: {"desk": desk}}
        async with instance(3, 1, services=services) as brokers, handles(brokers, 0, 2) as (top, low):
            before = brokers.brokers[2].engine.uuid
            events = await low.subscribe("after")
            pending = [
                asyncio.create_task(errnum_of(top, "desk.wait", 2)),
                asyncio.create_task(errnum_of(low, "nosuch.thing", 0)),
            ]
            await desk.waiting.wait()
            assert await pending[1] == ENOSYS
            await brokers.stop(1)
            assert await pending[0] == EHOSTUNREACH
            assert await errnum_of(top, "broker.ping", 2) == EHOSTUNREACH
            await brokers.news[2].until(ParentLost)
            assert await errnum_of(low, "broker.ping", 0) == EHOSTUNREACH
            await brokers.start(1)
            joined = await brokers.news[1].until(ChildJoined)
            assert joined.rank == 2
            assert joined.child == brokers.brokers[2].engine.uuid != before
            await brokers.until_status(top, "full")
            assert (await top.rpc("broker.ping", {}, nodeid=2)).json()["rank"] == 2
            await top.publish("after.all")
            assert (await anext(events)).topic == "after.all"

    play(story())


def test_a_connection_that_is_cut_is_made_anew() -> None:
    """Both sides notice at once: pending requests get EHOSTUNREACH, and the child joins under another name."""

    async def story() -> None:
        desk = Desk()
        async with (
            instance(2, 2, services={1: {"desk": desk}}, cut=True) as brokers,
            handles(brokers, 0) as (top,),
        ):
            assert brokers.proxy is not None
            for _ in range(3):
                desk.waiting.clear()
                pending = asyncio.create_task(errnum_of(top, "desk.wait", 1))
                await desk.waiting.wait()
                before = brokers.brokers[1].engine.uuid
                brokers.proxy.cut()
                assert await pending == EHOSTUNREACH
                await brokers.news[1].until(ParentLost)
                await brokers.until_status(top, "full")
                assert brokers.brokers[1].engine.uuid != before
                assert (await top.rpc("desk.double", {"n": 4}, nodeid=1)).json() == {"n": 8}

    play(story())


def test_a_parent_that_falls_silent_is_left() -> None:
    """The connection stands and nothing comes: without a pulse the child leaves, and comes back when it can."""

    async def story() -> None:
        timers = {"heartbeat": 0.1, "idle": 0.2, "torpid": 0.8, "expiry": 2.0}
        async with instance(2, 2, cut=True, timers=timers) as brokers, handles(brokers, 0, 1) as (top, low):
            assert brokers.proxy is not None
            brokers.proxy.hold()
            lost = await brokers.news[1].until(ParentLost)
            assert "heartbeat.pulse" in lost.reason
            assert await errnum_of(low, "broker.ping", 0) == EHOSTUNREACH
            await brokers.news[0].until(ChildTorpid)
            left = await brokers.news[0].until(ChildLeft)
            assert left.lost
            assert await errnum_of(top, "broker.ping", 1) == EHOSTUNREACH
            brokers.proxy.release()
            await brokers.until_status(top, "full")
            assert (await top.rpc("broker.ping", {}, nodeid=1)).json()["rank"] == 1

    play(story())


def test_control_messages_of_children_go_no_further() -> None:
    """A client's control message, and a control of an unknown type from below, are dropped."""

    async def story() -> None:
        async with instance(2, 2) as brokers, handles(brokers, 0) as (handle,):
            reader, writer = await asyncio.open_unix_connection(brokers.uri(0).removeprefix("local://"))
            writer.write(frame(Control(type_=2, status=0)))
            writer.write_eof()
            assert await reader.read() == b"\0"
            writer.close()
            assert (await handle.rpc("broker.ping", {}, nodeid=1)).json()["rank"] == 1

    play(story())
