"""Beacons: octets written by hand, settings, and what the rules do with beacons."""

from __future__ import annotations

import msgspec
import pytest

from specwire.runtime.kernel.effects import Connect, DropPeer, HostEffect, Log
from specwire.runtime.kernel.events import Noticed, PeerDisconnected, PeerId, Reloaded
from specwire.runtime.simulator import Disturbances
from specwire.runtime.zre import ZreSettings
from specwire.runtime.zre.beacon import decode_beacon, encode_beacon
from specwire.runtime.zre.events import NotReached, PeerEntered, PeerExited
from specwire.runtime.zre.rules import MAX_STRANGERS
from specwire.runtime.zre.state import BeaconReceived
from tests.runtime.zre.test_rules import (
    OUR_HELLO,
    OURS,
    SETTINGS,
    THEIR_ENDPOINT,
    THEIR_HELLO,
    THEIRS,
    Desk,
    logged,
    network,
    sent,
)

LONELY = msgspec.structs.replace(SETTINGS, endpoint=())
THEIR_BEACON = BeaconReceived(THEIRS, "127.0.0.1", 2)
GOODBYE = BeaconReceived(THEIRS, "127.0.0.1", 0)
OCTETS = b"ZRE\x01\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\xc0\x01"


def hear(desk: Desk, *beacons: BeaconReceived) -> list[HostEffect]:
    """Handle beacons."""
    return [effect for beacon in beacons for effect in desk.handle(Noticed(beacon))]


def test_octets() -> None:
    """'ZRE', %x01, 'the sender's 16-octet UUID', 'a two-byte mailbox port number in network order'."""
    assert encode_beacon(bytes(range(16)), 0xC001) == OCTETS
    assert decode_beacon(OCTETS) == (bytes(range(16)), 0xC001)
    assert decode_beacon(OCTETS[:20] + b"\x00\x00") == (bytes(range(16)), 0)


@pytest.mark.parametrize("octets", [b"", OCTETS[:21], OCTETS + b"\x00"])
def test_wrong_size(octets: bytes) -> None:
    """'A valid beacon SHALL use … a body of the correct size'."""
    with pytest.raises(ValueError, match=f"a beacon has 22 octets, not {len(octets)}"):
        decode_beacon(octets)


@pytest.mark.parametrize("header", [b"ZRE\x02", b"ZRE\x00", b"zre\x01", b"\xaa\xa1\x01\x02"])
def test_wrong_header(header: bytes) -> None:
    """'A valid beacon SHALL use a recognized header'."""
    with pytest.raises(ValueError, match="a beacon begins with"):
        decode_beacon(header + OCTETS[4:])


def test_settings() -> None:
    """The mailbox listens where the beacon comes from."""
    ZreSettings(beacon="10.7.0.1", bind="tcp://10.7.0.1:*")
    for bind in ("tcp://127.0.0.1:*", "tcp://10.7.0.11:*", "tcp://*:5670", "ipc:///tmp/mailbox"):
        with pytest.raises(ValueError, match=r"does not listen: set bind to tcp://10\.7\.0\.1:\*"):
            ZreSettings(beacon="10.7.0.1", bind=bind)
    for address in ("lan0", "::1", "10.7.0.1/24", ""):
        with pytest.raises(ValueError, match="is no IPv4 address"):
            ZreSettings(beacon=address)


def test_new_peer() -> None:
    """'from a node that it does not already know about … it SHALL consider this to be a new peer'."""
    desk = Desk(LONELY)
    connect, *effects = hear(desk, THEIR_BEACON)
    assert connect == Connect(PeerId("peer-1"), THEIR_ENDPOINT, b"\x01" + OURS)
    assert sent(effects) == [[OUR_HELLO]]
    assert hear(desk, THEIR_BEACON, THEIR_BEACON) == [], "it is dialed already"
    assert isinstance(logged(desk.receive(THEIR_HELLO))[0], PeerEntered)
    assert hear(desk, THEIR_BEACON) == [] and not desk.node.beacons


def test_own_and_configured() -> None:
    """'A node SHALL discard beacons that it receives from itself'; a configured endpoint is dialed once."""
    assert (
        hear(Desk(LONELY), BeaconReceived(OURS, "127.0.0.1", 1), BeaconReceived(OURS, "127.0.0.1", 0)) == []
    )
    assert hear(Desk(), THEIR_BEACON) == []


def test_goodbye() -> None:
    """'with a zero port number, it SHALL disconnect from this peer'; its next beacon is that of a new peer."""
    desk = Desk(LONELY)
    assert hear(desk, GOODBYE) == [], "it is unknown"
    hear(desk, THEIR_BEACON)
    desk.receive(THEIR_HELLO)
    assert hear(desk, BeaconReceived(THEIRS, "127.0.0.2", 0)) == [], "its own host did not send it"
    assert hear(desk, GOODBYE) == [
        Log(PeerExited(THEIRS.hex(), "them", "left")),
        DropPeer(PeerId("peer-1")),
    ]
    assert sent(hear(desk, THEIR_BEACON)) == [[OUR_HELLO]]
    desk.wait(0.1)
    assert desk.node.connections == 2


def test_peer_that_is_lost() -> None:
    """It is not dialed again before its next beacon, and then once."""
    desk = Desk(LONELY)
    hear(desk, THEIR_BEACON)
    desk.receive(THEIR_HELLO)
    desk.handle(PeerDisconnected(PeerId("peer-1"), "gone"))
    assert desk.wait(5.0) == []
    assert sent(hear(desk, THEIR_BEACON)) == [[OUR_HELLO]]


def test_endpoint_is_given_up_when_its_beacons_stop() -> None:
    """30 s after the last beacon at the latest, with few attempts and lines."""
    desk = Desk(LONELY)
    effects = hear(desk, THEIR_BEACON)
    while desk.node.beacons:
        effects += desk.handle(PeerDisconnected(PeerId(f"peer-{desk.node.connections}"), "refused"))
        desk.now = desk.engine.deadline() or 0.0
        effects += desk.wait(0.0)
    assert 30.0 <= desk.now < 36.0
    assert len([one for one in effects if isinstance(one, Connect)]) < 15
    assert [event.describe() for event in logged(effects)] == [
        f"no peer at {THEIR_ENDPOINT}: refused{words}" for words in ("", ", try 2", ", try 4", ", try 8")
    ]
    assert all(isinstance(event, NotReached) and event.limit for event in logged(effects))


def test_flood() -> None:
    """Random UUIDs at random ports open a bounded number of connections, and log nothing."""
    desk = Desk(LONELY)
    flood = [
        BeaconReceived(bytes(12) + bytes([0, 1, *divmod(n, 256)]), "127.0.0.9", n) for n in range(1, 5000)
    ]
    effects = hear(desk, *flood)
    assert len([one for one in effects if isinstance(one, Connect)]) == MAX_STRANGERS
    assert not logged(effects)
    same = [BeaconReceived(one.uuid, "127.0.0.1", 2) for one in flood]
    desk = Desk(LONELY)
    assert len(sent(hear(desk, *same))) == 1, "one endpoint is one peer"
    desk.receive(THEIR_HELLO)
    assert hear(desk, *same) == []


def test_beacons_are_signs_of_life() -> None:
    """'SHOULD send a PING … to any peer that it has not received a UDP beacon from within a certain time'."""
    desk = Desk(LONELY)
    hear(desk, THEIR_BEACON)
    desk.receive(THEIR_HELLO)
    for _ in range(20):
        assert desk.wait(4.0) == []
        hear(desk, THEIR_BEACON)
    hear(desk, BeaconReceived(THEIRS, "127.0.0.2", 2))
    assert sent(desk.wait(5.0)) == [[b"\xaa\xa1\x06\x02\x00\x02"]]


def test_reload_adds_an_endpoint_that_was_heard() -> None:
    """It is dialed again, on one connection."""
    desk = Desk(LONELY)
    hear(desk, THEIR_BEACON)
    effects = desk.handle(Reloaded(SETTINGS))
    assert effects[0] == DropPeer(PeerId("peer-1"))
    assert sent(effects) == [[OUR_HELLO]]
    assert not desk.node.beacons and list(desk.node.dialing) == [THEIR_ENDPOINT]


def test_two_nodes_hear_each_other() -> None:
    """Both greet at once, over any delays, and know each other afterwards with one connection each."""
    for seed in range(20):
        simulator, states = network(seed, Disturbances(delay_s=(0.0, 0.05)), nodes=2, is_chain=False)
        simulator.notice("n0", BeaconReceived(states[1].uuid, "10.0.0.1", 1))
        simulator.notice("n1", BeaconReceived(states[0].uuid, "10.0.0.0", 1))
        simulator.run(2.0)
        assert [[one.name for one in state.peers.values()] for state in states] == [["n1"], ["n0"]]
        assert [state.connections for state in states] == [1, 1]
