"""Brokers that are killed, frozen and cut off: what becomes of requests, of the tree, and of those who did nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator

import msgspec
import pytest

from specwire.runtime.flux.errors import EHOSTUNREACH, FluxError
from specwire.runtime.flux.handle import connect
from specwire.runtime.flux.status import ROLE, BrokerStatus
from specwire.runtime.transport.status_folder import address_in, locate_status_folder
from specwire.runtime.transport.status_socket import ask_status
from tests.integration.flux_brokers import play
from tests.integration.flux_desk import WAITS, errnum_of
from tests.integration.flux_processes import DESK, full_tree, processes, until_full, until_running

SHORT = ("--timer=heartbeat=0.2", "--timer=idle=0.3", "--timer=torpid=0.8", "--timer=expiry=2")
FLOOD, PAD = 5_000, "x" * 16_000
"""More than a broker keeps for a neighbour: it would take it for lost if the client were not held back."""

EVENTS, EVENT_OCTETS = 74, 1 << 20
"""More than it keeps even so: then it takes the neighbour for lost."""

pytestmark = pytest.mark.peers


def test_killed_brokers_cost_what_went_through_them_and_no_more() -> None:
    """A leaf and then one in the middle: EHOSTUNREACH for what was pending and for what comes; the subtree joins anew."""

    async def story() -> None:
        async with full_tree(4, 1, DESK) as (instance, top), connect(instance.uri(2)) as low:
            pending = asyncio.create_task(errnum_of(top, "desk.wait", 3))
            await instance.brokers[3].line_with(WAITS)
            await instance.kill(3)
            assert await pending == EHOSTUNREACH
            assert await errnum_of(top, "broker.ping", 3) == EHOSTUNREACH
            assert "rank 3" in await instance.brokers[2].line_with("is lost")

            first = (await instance.brokers[1].line_with("rank 2")).split()[4]
            down = asyncio.create_task(errnum_of(top, "desk.wait", 2))
            up = asyncio.create_task(low.rpc("desk.wait", nodeid=0))
            await instance.brokers[2].line_with(WAITS)
            await instance.brokers[0].line_with(WAITS)
            await instance.kill(1)
            assert await down == EHOSTUNREACH
            with pytest.raises(FluxError, match="overlay disconnect") as caught:
                await up
            assert caught.value.errnum == EHOSTUNREACH
            for rank in (1, 2, 3):
                assert await errnum_of(top, "broker.ping", rank) == EHOSTUNREACH
            assert await errnum_of(low, "broker.ping", 0) == EHOSTUNREACH
            assert (await low.rpc("broker.ping", {}, nodeid=2)).json()["rank"] == 2

            await asyncio.gather(instance.start(1), instance.start(3))
            assert (await instance.brokers[1].line_with("rank 2")).split()[4] != first
            await until_full(top)
            await until_running(low)
            for rank in range(4):
                assert (await low.rpc("desk.double", {"n": rank}, nodeid=rank)).json() == {"n": 2 * rank}

    play(story())


def test_frozen_broker_is_torpid_and_then_lost() -> None:
    """It holds its connection and says nothing; when it goes on, it is told, and joins under another name."""

    async def story() -> None:
        async with full_tree(2, 2, DESK, *SHORT) as (instance, top):
            pending = asyncio.create_task(errnum_of(top, "desk.wait", 1))
            await instance.brokers[1].line_with(WAITS)
            instance.brokers[1].freeze()
            assert "rank 1" in await instance.brokers[0].line_with("is torpid")
            assert "silent" in await instance.brokers[0].line_with("is lost")
            assert await pending == EHOSTUNREACH
            assert await errnum_of(top, "broker.ping", 1) == EHOSTUNREACH
            instance.brokers[1].thaw()
            await instance.brokers[0].until_lines("has joined", 2)
            assert (await top.rpc("desk.double", {"n": 2}, nodeid=1)).json() == {"n": 4}

    play(story())


def test_who_floods_a_frozen_broker_waits_and_nobody_else() -> None:
    """The client is not read from while its messages cannot leave; others are served, and in the end all is answered."""

    async def story() -> None:
        async with full_tree(3, 2, DESK) as (instance, other), connect(instance.uri(0)) as flooding:
            instance.brokers[1].freeze()
            flood = [
                asyncio.create_task(flooding.rpc("desk.double", {"n": n, "pad": PAD}, nodeid=1))
                for n in range(FLOOD)
            ]
            for _ in range(200):
                for rank in (0, 2):
                    assert (await other.rpc("broker.ping", {}, nodeid=rank)).json()["rank"] == rank
            status = msgspec.json.decode(
                ask_status(
                    address_in(locate_status_folder(os.environ), ROLE, instance.brokers[0].pid).path,
                    timeout_s=20,
                ),
                type=BrokerStatus,
            )
            (frozen,) = (child for child in status.children if child.rank == 1)
            assert frozen.present
            assert 0 < frozen.pending < FLOOD
            instance.brokers[1].thaw()
            answers = [(await answer).json()["n"] for answer in flood]
            assert answers == [2 * n for n in range(FLOOD)]

    play(story())


def test_frozen_broker_does_not_hold_up_events() -> None:
    """Others hear each event; what it does not take has a bound, at which it is taken for lost, and finds the gap."""

    async def story() -> None:
        async with full_tree(3, 2) as (instance, publisher), connect(instance.uri(2)) as reader:
            events = await reader.subscribe("big")
            instance.brokers[1].freeze()
            for n in range(EVENTS):
                await publisher.announce(f"big.{n}", bytes(EVENT_OCTETS))
                assert (await anext(events)).topic == f"big.{n}"
            assert "unread" in await instance.brokers[0].line_with("is lost")
            instance.brokers[1].thaw()
            await instance.brokers[1].line_with("were lost")
            await until_full(publisher)

    play(story())


@pytest.fixture
def partition() -> Iterator[tuple[str, str]]:
    """A network of two machines: the name of the other one, and the address of this one."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("only root can make a network namespace")
    number = os.getpid() % 60_000
    name, near, far = f"sw{number}", f"sw{number}a", f"sw{number}b"
    address, other = (f"10.213.{number >> 8}.{host}" for host in (1, 2))
    steps = [
        f"link add {near} type veth peer name {far}",
        f"link set {far} netns {name}",
        f"addr add {address}/24 dev {near}",
        f"link set {near} up",
        f"-n {name} addr add {other}/24 dev {far}",
        f"-n {name} link set {far} up",
    ]
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no network namespace: {made.stderr.strip()}")
    try:
        for step in steps:
            done = subprocess.run(["ip", *step.split()], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"ip {step}: {done.stderr.strip()}")
        yield name, address
    finally:
        subprocess.run(["ip", "link", "del", near], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", name], check=True)


async def set_link(name: str, state: str) -> None:
    """Let octets pass, or not."""
    process = await asyncio.create_subprocess_exec("ip", "link", "set", name, state)
    assert await process.wait() == 0


def test_partitioned_network_splits_the_tree_and_it_grows_together(partition: tuple[str, str]) -> None:
    """No octet passes and nobody is told: both sides find out by themselves, and the tree is whole afterwards."""
    name, address = partition
    near = f"sw{os.getpid() % 60_000}a"

    async def story() -> None:
        async with processes(3, 1, DESK, *SHORT) as instance:
            await instance.start(0, bind=f"tcp://{address}:*")
            for rank in (1, 2):
                await instance.start(rank, within=("ip", "netns", "exec", name))
            async with connect(instance.uri(0)) as top, connect(instance.uri(2)) as low:
                await until_full(top)
                pending = asyncio.create_task(errnum_of(top, "desk.wait", 2))
                await instance.brokers[2].line_with(WAITS)
                await set_link(near, "down")
                assert await pending == EHOSTUNREACH
                await instance.brokers[1].line_with("the parent is lost")
                await instance.brokers[2].line_with("the parent is lost")
                assert await errnum_of(low, "broker.ping", 0) == EHOSTUNREACH
                await set_link(near, "up")
                await until_full(top)
                await until_running(low)
                assert (await low.rpc("desk.double", {"n": 3}, nodeid=0)).json() == {"n": 6}

    play(story())
