"""Stories of peers that find each other by beacons: ``python -m tests.integration.zre_beacons STORY``.

`test_zre_beacons.py` runs each in a network of its own, where an interface has the addresses `FIRST` and `SECOND`.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from importlib import import_module
from typing import Any

import pytest

from specwire.runtime.kernel.log import LogEvent
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.zre import ZrePeer, ZreSettings
from specwire.runtime.zre.beacon import Beacons, find_network
from specwire.runtime.zre.events import PeerEntered, PeerExited, Whispered
from specwire.runtime.zre.state import BeaconReceived
from tests.integration.test_zre import next_of, received
from tests.runtime.kernel.store.stores import run

FIRST, SECOND, BROADCAST = "10.7.0.1", "10.7.0.2", "10.7.0.255"
SET_UP = (
    "ip link set lo up && ip link add lan0 type veth peer name lan1 && "
    "ip link set lan0 up && ip link set lan1 up && "
    f"ip address add {FIRST}/24 dev lan0 && ip address add {SECOND}/24 dev lan0 && "
    "ip address add 10.8.0.1/32 dev lan0"
)


def peer(name: str, address: str) -> ZrePeer:
    """Return a peer that knows nobody."""
    return ZrePeer(ZreSettings(name=name, groups=("chat",), bind=f"tcp://{address}:*", beacon=address))


def udp_socket(address: str, port: int) -> socket.socket:
    """Return a socket that sends and receives beacons as another program would."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in (socket.SO_BROADCAST, socket.SO_REUSEADDR):
        made.setsockopt(socket.SOL_SOCKET, option, 1)
    made.bind((address, port))
    made.settimeout(20)
    return made


async def two_peers() -> None:
    """They meet and whisper. A goodbye from another address is ignored, one from the peer's own is not."""
    async with peer("alice", FIRST) as alice:
        at_alice = alice.events()
        async with peer("bob", SECOND) as bob:
            at_bob = bob.events()
            found = await next_of(at_bob, PeerEntered)
            assert (found.peer, found.endpoint) == (alice.uuid, alice.status().endpoint)
            assert (await next_of(at_alice, PeerEntered)).endpoint == bob.status().endpoint
            for address in ("10.8.0.1", FIRST):
                with udp_socket(address, 0) as stranger:
                    stranger.sendto(b"ZRE\x01" + bytes.fromhex(bob.uuid) + bytes(2), (BROADCAST, 5670))
            await bob.whisper(alice.uuid, [b"hello"])
            assert (await next_of(at_alice, Whispered)).content == (b"hello",)
            with udp_socket(SECOND, 0) as own:
                own.sendto(b"ZRE\x01" + bytes.fromhex(bob.uuid) + bytes(2), (BROADCAST, 5670))
            assert await next_of(at_alice, PeerExited) == PeerExited(bob.uuid, "bob", "left")
        assert bob.status().host.counters.faults == alice.status().host.counters.faults == 0


async def one_leaves() -> None:
    """The peer that stays logs that the other one has left."""
    async with peer("alice", FIRST) as alice:
        events = alice.events()
        async with peer("bob", FIRST):
            assert (await next_of(events, PeerEntered)).name == "bob"
        assert (await next_of(events, PeerExited)).name == "bob"


async def octets() -> None:
    """Beacons come from the address of the mailbox, at intervals; the last one has the port 0."""
    heard: list[BeaconReceived] = []
    logged: list[LogEvent] = []
    uuid = bytes(range(16))
    beacons = Beacons(
        uuid, (SECOND, 0xC001), 5671, on_beacon=heard.append, on_event=logged.append, interval_s=0.02
    )
    with udp_socket(BROADCAST, 5671) as listening, udp_socket(FIRST, 0) as sending:
        async with beacons:
            for _ in range(3):
                octets, source = await asyncio.to_thread(listening.recvfrom, 100)
                assert (octets, source[0]) == (b"ZRE\x01" + uuid + b"\xc0\x01", SECOND)
            sending.sendto(b"ZRE\x02" + bytes(18), (BROADCAST, 5671))
            sending.sendto(b"ZRE\x01" + bytes(16) + b"\x00\x07", (BROADCAST, 5671))
            while BeaconReceived(bytes(16), FIRST, 7) not in heard:
                await asyncio.sleep(0.01)
        while listening.recv(100) != b"ZRE\x01" + uuid + b"\x00\x00":
            pass  # what was sent before
    assert {(one.uuid, one.host) for one in heard} == {(uuid, SECOND), (bytes(16), FIRST)}
    assert not logged


async def addresses() -> None:
    """The network of each address; errors for an address that is nobody's, or has no broadcast."""
    assert [str(find_network(one)) for one in (FIRST, SECOND, "127.0.0.1")] == [
        "10.7.0.1/24",
        "10.7.0.2/24",
        "127.0.0.1/8",
    ]
    with pytest.raises(TransportError, match=r"no interface of this machine has the address 10\.9\.9\.9"):
        find_network("10.9.9.9")
    unable = peer("unable", "10.8.0.1")
    with pytest.raises(TransportError, match=r"10\.8\.0\.1/32 has no broadcast address"):
        await unable.start()
    assert [event async for event in unable.events()] == []
    with udp_socket(BROADCAST, 5670) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        with pytest.raises(TransportError, match=r"cannot listen for beacons on 10\.7\.0\.255:5670: Address"):
            await peer("late", FIRST).start()


async def pyre() -> None:
    """zeromq-pyre finds our peer, is found by it, and leaves."""
    node: Any = import_module("pyre").Pyre("theirs")
    node.join("chat")
    node.start()
    async with peer("ours", SECOND if node.endpoint().startswith(f"tcp://{SECOND}:") else FIRST) as ours:
        events = ours.events()
        found = await next_of(events, PeerEntered)
        assert (found.name, found.peer) == ("theirs", node.uuid().hex)
        assert (await asyncio.to_thread(received, node, "ENTER"))[0] == b"ours"
        await ours.whisper(found.peer, [b"hello"])
        assert await asyncio.to_thread(received, node, "WHISPER") == [b"ours", b"hello"]
        node.whisper(node.uuid().__class__(ours.uuid), b"back")
        assert (await next_of(events, Whispered)).content == (b"back",)
        await asyncio.to_thread(node.stop)
        assert (await next_of(events, PeerExited)).name == "theirs"


STORIES = {story.__name__: story for story in (two_peers, one_leaves, octets, addresses, pyre)}

if __name__ == "__main__":
    run(STORIES[sys.argv[1]])
