"""Rules of RFC 36: a sentence of the specification in each test, with octets written by hand; and whole networks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from specwire.generated import zre
from specwire.runtime.kernel.effects import Connect, DropPeer, HostEffect, Log, Return, Send
from specwire.runtime.kernel.engine import PackageCodec, StoryEngine
from specwire.runtime.kernel.events import (
    Called,
    Event,
    MessageReceived,
    PeerDisconnected,
    PeerId,
    Reloaded,
    SendFailed,
    Started,
    Tick,
)
from specwire.runtime.kernel.log import LogEvent
from specwire.runtime.simulator import Disturbances, Simulator
from specwire.runtime.zre import ZreError, ZreSettings
from specwire.runtime.zre.events import (
    GroupJoined,
    GroupLeft,
    MessageIgnored,
    NotReached,
    PeerEntered,
    PeerExited,
    Shouted,
    Whispered,
)
from specwire.runtime.zre.rules import MAILBOX, react
from specwire.runtime.zre.state import LocalNode, SetMembership, ShoutTo, WhisperTo

OURS, THEIRS = bytes(range(16)), bytes(range(16, 32))
THEM = PeerId(MAILBOX, b"\x01" + THEIRS)
ENDPOINT, THEIR_ENDPOINT = "tcp://127.0.0.1:1", "tcp://127.0.0.1:2"
SETTINGS = ZreSettings(
    name="us",
    groups=("g",),
    headers={"k": "v"},
    endpoint=(THEIR_ENDPOINT,),
    evasive_after=5.0,
    expired_after=30.0,
)

OUR_HELLO = b"".join(
    (
        b"\xaa\xa1\x01\x02\x00\x01",
        b"\x11tcp://127.0.0.1:1",
        b"\x00\x00\x00\x01\x00\x00\x00\x01g",
        b"\x00\x02us",
        b"\x00\x00\x00\x01\x01k\x00\x00\x00\x01v",
    )
)
THEIR_HELLO = b"\xaa\xa1\x01\x02\x00\x01\x11tcp://127.0.0.1:2\x00\x00\x00\x01\x00\x00\x00\x01g\x00\x04them\x00\x00\x00\x00"


class Desk:
    """A node that is driven by hand."""

    def __init__(self, settings: ZreSettings = SETTINGS) -> None:
        self.node = LocalNode(OURS, settings)
        self.engine = StoryEngine(partial(react, self.node))
        self.now = 0.0
        self.first = self.handle(Started({MAILBOX: ENDPOINT}))

    def handle(self, event: Event) -> list[HostEffect]:
        """Handle an event."""
        return list(self.engine.handle(event, self.now))

    def receive(self, *frames: bytes, peer: PeerId = THEM) -> list[HostEffect]:
        """Handle a message, given as octets."""
        return self.handle(MessageReceived(peer, zre.decode(frames)))

    def wait(self, seconds: float) -> list[HostEffect]:
        """Let time pass."""
        self.now += seconds
        at = self.engine.deadline()
        return self.handle(Tick()) if at is not None and at <= self.now else []


def sent(effects: Iterable[HostEffect]) -> list[list[bytes]]:
    """Return the frames of all messages that are sent."""
    return [effect.message.encode() for effect in effects if isinstance(effect, Send)]


def logged(effects: Iterable[HostEffect]) -> list[LogEvent]:
    """Return all events for the log."""
    return [effect.event for effect in effects if isinstance(effect, Log)]


def greeted(settings: ZreSettings = SETTINGS) -> Desk:
    """Return a node that knows one peer."""
    desk = Desk(settings)
    desk.receive(THEIR_HELLO)
    return desk


def test_hello_is_first_and_has_number_1() -> None:
    """'Each node SHALL start a dialog by sending HELLO as the first command'; identity: 1 and the UUID."""
    connect, _ = effects = Desk().first
    assert connect == Connect(PeerId("peer-1"), THEIR_ENDPOINT, b"\x01" + OURS)
    assert sent(effects) == [[OUR_HELLO]]


def test_their_hello_answers_ours() -> None:
    """No second connection: 'if the recipient has not already connected to this peer'."""
    effects = Desk().receive(THEIR_HELLO)
    assert effects == [
        Log(PeerEntered(THEIRS.hex(), "them", THEIR_ENDPOINT)),
        Log(GroupJoined(THEIRS.hex(), "them", "g")),
    ]


def test_hello_of_a_stranger_is_answered() -> None:
    """'it SHALL create a ZeroMQ DEALER socket and connect it to the endpoint', and greet there."""
    desk = Desk(ZreSettings(name="us", groups=("g",), headers={"k": "v"}))
    assert desk.first == []
    connect, *effects = desk.receive(THEIR_HELLO)
    assert connect == Connect(PeerId("peer-1"), THEIR_ENDPOINT, b"\x01" + OURS)
    assert sent(effects) == [[OUR_HELLO]]
    assert isinstance(logged(effects)[0], PeerEntered)


def test_commands_before_hello_are_ignored() -> None:
    """'it SHALL silently ignore any commands that precede a HELLO command'."""
    assert Desk().receive(b"\xaa\xa1\x02\x02\x00\x01", b"early") == []


def test_routing_id_without_uuid_is_ignored() -> None:
    """'The identity SHALL be a binary 17-octet UUID value where the first byte is always 1'."""
    for routing_id in (b"\x02" + THEIRS, THEIRS, b"\x00abcd"):
        (event,) = logged(Desk().receive(THEIR_HELLO, peer=PeerId(MAILBOX, routing_id)))
        assert isinstance(event, MessageIgnored)


def test_messages_are_numbered_for_each_peer() -> None:
    """WHISPER with number 2, SHOUT with number 3, each with its frames."""
    desk = greeted()
    assert sent(desk.handle(Called(1, WhisperTo(THEIRS, (b"a", b"b"))))) == [
        [b"\xaa\xa1\x02\x02\x00\x02", b"a", b"b"]
    ]
    effects = desk.handle(Called(2, ShoutTo("g", (b"all",))))
    assert sent(effects) == [[b"\xaa\xa1\x03\x02\x00\x03\x01g", b"all"]]
    assert effects[-1] == Return(2, 1)
    assert desk.handle(Called(3, ShoutTo("other", (b"all",)))) == [Return(3, 0)]
    (returned,) = desk.handle(Called(4, WhisperTo(OURS, ())))
    assert isinstance(returned, Return) and isinstance(returned.error, ZreError)


def test_join_and_leave_are_told_to_every_peer() -> None:
    """With 'the group status sequence number after joining the group'."""
    desk = greeted()
    assert sent(desk.handle(Called(1, SetMembership("n", True)))) == [[b"\xaa\xa1\x04\x02\x00\x02\x01n\x01"]]
    assert desk.handle(Called(2, SetMembership("n", True))) == [Return(2)]
    assert sent(desk.handle(Called(3, SetMembership("g", False)))) == [[b"\xaa\xa1\x05\x02\x00\x03\x01g\x02"]]
    assert desk.handle(Called(4, SetMembership("g", False))) == [Return(4)]


def test_messages_of_a_peer() -> None:
    """WHISPER, SHOUT to a group of ours and to another, LEAVE, JOIN, PING, PING-OK, each after the one before."""
    desk = greeted()
    who = (THEIRS.hex(), "them")
    assert logged(desk.receive(b"\xaa\xa1\x02\x02\x00\x02", b"a", b"b")) == [Whispered(*who, (b"a", b"b"))]
    assert logged(desk.receive(b"\xaa\xa1\x03\x02\x00\x03\x01g", b"c")) == [Shouted(*who, "g", (b"c",))]
    assert desk.receive(b"\xaa\xa1\x03\x02\x00\x04\x01x", b"c") == []
    assert logged(desk.receive(b"\xaa\xa1\x05\x02\x00\x05\x01g\x01")) == [GroupLeft(*who, "g")]
    assert logged(desk.receive(b"\xaa\xa1\x04\x02\x00\x06\x01h\x02")) == [GroupJoined(*who, "h")]
    assert sent(desk.receive(b"\xaa\xa1\x06\x02\x00\x07")) == [[b"\xaa\xa1\x07\x02\x00\x02"]]
    assert desk.receive(b"\xaa\xa1\x07\x02\x00\x08") == []


def test_gap_makes_the_peer_invalid() -> None:
    """'it SHALL treat the peer as invalid, and disconnect the peer'; the endpoint is greeted again."""
    desk = greeted()
    effects = desk.receive(b"\xaa\xa1\x06\x02\x00\x03")
    assert effects == [
        Log(PeerExited(THEIRS.hex(), "them", "sent message 3 instead of 2")),
        DropPeer(PeerId("peer-1")),
    ]
    effects = desk.wait(0.1)
    assert effects[0] == Connect(PeerId("peer-2"), THEIR_ENDPOINT, b"\x01" + OURS)
    assert sent(effects) == [[OUR_HELLO]], "numbers begin with 1 again"


def test_numbers_wrap_around() -> None:
    """After 65535 comes 0; Pyre leaves 65535 out."""
    for before, after in ((65535, 0), (65534, 65535), (65534, 0)):
        desk = greeted()
        desk.node.peers[THEIRS].received = before
        assert sent(desk.receive(b"\xaa\xa1\x06\x02" + after.to_bytes(2))), (before, after)
    desk.node.peers[THEIRS].sent = 65535
    (frames,) = sent(desk.handle(Called(1, WhisperTo(THEIRS, ()))))
    assert frames == [b"\xaa\xa1\x02\x02\x00\x00"]


def test_silent_peers() -> None:
    """PING after 5 s, once; 'SHOULD treat that peer as dead' after 30 s; any message is a sign of life."""
    desk = greeted()
    assert desk.wait(4.9) == []
    assert sent(desk.wait(0.1)) == [[b"\xaa\xa1\x06\x02\x00\x02"]]
    assert desk.wait(10.0) == []
    desk.receive(b"\xaa\xa1\x07\x02\x00\x02")
    desk.wait(15.0)
    assert THEIRS in desk.node.peers, "30 s after the start, 15 s after PING-OK"
    assert logged(desk.wait(15.0)) == [PeerExited(THEIRS.hex(), "them", "was silent for 30.0 s")]


def test_idle_peer_is_pinged_again_after_its_answer() -> None:
    """It answers each PING at once: 5 s after each answer the next PING is due."""
    desk = greeted()
    for number in range(2, 6):
        assert desk.wait(4.9) == []
        assert sent(desk.wait(0.1)) == [[b"\xaa\xa1\x06\x02\x00" + bytes([number])]]
        assert desk.receive(b"\xaa\xa1\x07\x02\x00" + bytes([number])) == []


def test_reload_of_times_reaches_known_peers() -> None:
    """A shorter time holds from now on, and not after the old one."""
    desk = greeted()
    desk.wait(2.0)
    assert sent(desk.handle(Reloaded(msgspec.structs.replace(SETTINGS, evasive_after=1.0)))) == [
        [b"\xaa\xa1\x06\x02\x00\x02"]
    ]


def test_message_that_cannot_be_encoded() -> None:
    """Its number is used, so the next would be a gap: the peer is disconnected here, and greeted again."""
    desk = greeted()
    failed = SendFailed(PeerId("peer-1"), None, "too long")
    assert desk.handle(failed) == [
        DropPeer(PeerId("peer-1")),
        Log(PeerExited(THEIRS.hex(), "them", "too long")),
    ]
    assert sent(desk.wait(0.1)) == [[OUR_HELLO]]
    effects = desk.handle(SendFailed(PeerId("peer-2"), None, "too long"))
    assert effects == [DropPeer(PeerId("peer-2")), Log(NotReached(THEIR_ENDPOINT, "too long, try 2"))]
    assert sent(desk.wait(0.2)) == [[OUR_HELLO]], "on a third connection"


def test_endpoint_without_an_answer() -> None:
    """Greeted again at growing intervals; the failures 1, 2, 4 and 8 are logged."""
    desk = Desk()
    told = []
    for _ in range(400):
        told += logged(desk.handle(PeerDisconnected(PeerId(f"peer-{desk.node.connections}"), "refused")))
        at = desk.engine.deadline()
        assert at is not None and at - desk.now < 5.001
        desk.wait(at - desk.now)
    assert [event.reason for event in told if isinstance(event, NotReached)][:4] == [
        "refused",
        "refused, try 2",
        "refused, try 4",
        "refused, try 8",
    ]
    assert len(told) == 9  # 1, 2, 4, … 256


def test_nobody_greets_back() -> None:
    """A connection on which no HELLO comes is given up after `expired_after`."""
    effects = Desk().wait(30.0)
    assert effects == [
        DropPeer(PeerId("peer-1")),
        Log(NotReached(THEIR_ENDPOINT, "no HELLO within 30 s")),
    ]


def test_second_hello_of_a_peer() -> None:
    """It has started again: it is greeted on a new connection. At once it would be a loop, and is ignored."""
    desk = greeted()
    (event,) = logged(desk.receive(THEIR_HELLO))
    assert event == MessageIgnored(THEIRS.hex(), "another HELLO came just before")
    desk.wait(1.0)
    effects = desk.receive(THEIR_HELLO)
    assert effects[:2] == [
        Log(PeerExited(THEIRS.hex(), "them", "started again")),
        DropPeer(PeerId("peer-1")),
    ]
    assert sent(effects) == [[OUR_HELLO]]
    desk.wait(1.0)
    assert list(desk.node.peers) == [THEIRS] and desk.node.connections == 2


def test_hello_of_an_expelled_peer() -> None:
    """A wrong number between them does not make room for more HELLO, nor does another UUID."""
    desk = greeted()
    desk.receive(b"\xaa\xa1\x06\x02\x00\x03")
    assert THEIRS not in desk.node.peers
    assert logged(desk.receive(THEIR_HELLO)) == [
        MessageIgnored(THEIRS.hex(), "another HELLO came just before")
    ]
    desk.now += 1.0
    desk.receive(THEIR_HELLO)
    assert THEIRS in desk.node.peers

    desk = Desk(ZreSettings(max_peers=2))
    accepted = []
    for number in range(100):
        them = PeerId(MAILBOX, b"\x01" + bytes([number]) * 16)
        effects = [
            *desk.receive(THEIR_HELLO, peer=them),
            *desk.receive(b"\xaa\xa1\x06\x02\x00\x03", peer=them),
        ]
        accepted += [one for one in effects if isinstance(one, Connect)]
    assert len(accepted) == 2 and len(desk.node.greeted) == 2


def test_refused_hellos() -> None:
    """From this node, with another number, with an endpoint that is none, and one peer too many."""
    cases: list[tuple[bytes, PeerId, str]] = [
        (THEIR_HELLO, PeerId(MAILBOX, b"\x01" + OURS), "this peer"),
        (THEIR_HELLO.replace(b"\x00\x01\x11", b"\x00\x02\x11", 1), THEM, "number 2"),
        (THEIR_HELLO.replace(b"tcp://127", b"tcp.//127"), THEM, "endpoint"),
        (THEIR_HELLO.replace(b"\x11tcp://127", b"\x15tcp://1:0;127"), THEM, "source address"),
        (THEIR_HELLO.replace(b"tcp://127.0.0.1:2", b"ipc:///tmp/socket"), THEM, "another transport"),
    ]
    for octets, peer, reason in cases:
        (event,) = logged(Desk().receive(octets, peer=peer))
        assert isinstance(event, MessageIgnored) and reason in event.reason
    desk = greeted(ZreSettings(max_peers=1, endpoint=(THEIR_ENDPOINT,)))
    (event,) = logged(desk.receive(THEIR_HELLO, peer=PeerId(MAILBOX, b"\x01" + bytes(16))))
    assert isinstance(event, MessageIgnored) and "1 peers already" in event.reason


def test_reload() -> None:
    """Groups and further endpoints."""
    desk = greeted()
    other = "tcp://127.0.0.1:3"
    effects = desk.handle(Reloaded(ZreSettings(name="us", groups=("h",), endpoint=(THEIR_ENDPOINT, other))))
    leave, join, hello = sent(effects)
    assert (leave, join) == ([b"\xaa\xa1\x05\x02\x00\x02\x01g\x01"], [b"\xaa\xa1\x04\x02\x00\x03\x01h\x02"])
    assert hello[0].startswith(b"\xaa\xa1\x01")
    assert Connect(PeerId("peer-2"), other, b"\x01" + OURS) in effects


def test_reload_removes_and_adds_an_endpoint() -> None:
    """Removed: it is dialed no more. Added again: it is dialed once."""
    without = msgspec.structs.replace(SETTINGS, endpoint=())
    desk = Desk()
    assert desk.handle(Reloaded(without)) == [DropPeer(PeerId("peer-1"))]
    assert desk.wait(60.0) == [] and not desk.node.dialing
    assert sent(desk.handle(Reloaded(SETTINGS))) == [[OUR_HELLO]]

    desk = greeted()
    assert desk.handle(Reloaded(without)) == []
    assert THEIRS in desk.node.peers
    assert desk.handle(Reloaded(SETTINGS)) == []
    desk.handle(PeerDisconnected(PeerId("peer-1"), "gone"))
    assert sent(desk.wait(0.1)) == [[OUR_HELLO]]
    desk.handle(PeerDisconnected(PeerId("peer-2"), "gone"))
    desk.handle(Reloaded(without))
    assert desk.wait(60.0) == [], "not while it waits for the next attempt either"


# ---- whole networks under the simulator


def network(
    seed: int, disturbances: Disturbances, nodes: int = 4, *, is_chain: bool = True
) -> tuple[Simulator, list[LocalNode]]:
    """Return nodes of which each knows the endpoint of the one before, or none."""
    simulator, states = Simulator(seed, disturbances), []
    for number in range(nodes):
        before = (f"tcp://10.0.0.{number - 1}:1",) if number and is_chain else ()
        settings = ZreSettings(name=f"n{number}", groups=("g",), endpoint=before)
        state = LocalNode(bytes([number] * 16), settings)
        states.append(state)
        simulator.add(
            f"n{number}",
            StoryEngine(partial(react, state)),
            PackageCodec(zre),
            listeners={MAILBOX: f"tcp://10.0.0.{number}:1"},
        )
    return simulator, states


def neighbours(states: list[LocalNode]) -> dict[str, list[str]]:
    """Return the names that each node knows."""
    return {state.name: sorted(remote.name for remote in state.peers.values()) for state in states}


CHAIN = {"n0": ["n1"], "n1": ["n0", "n2"], "n2": ["n1", "n3"], "n3": ["n2"]}


@given(st.integers(0, 2**32))
def test_shouts_arrive_once_and_in_order(seed: int) -> None:
    """On a network that loses nothing."""
    simulator, states = network(seed, Disturbances(delay_s=(0.0, 0.05)))
    simulator.run(5.0)
    assert neighbours(states) == CHAIN
    for number in range(20):
        simulator.call("n1", ShoutTo("g", (b"%d" % number,)))
    simulator.run(10.0)
    for name in ("n0", "n2"):
        contents = [event.content for event in simulator.nodes[name].logged(Shouted)]
        assert contents == [(b"%d" % number,) for number in range(20)]
    assert not simulator.nodes["n3"].logged(Shouted)


@given(st.integers(0, 2**32), st.integers(1, 15))
def test_lost_connections_heal(seed: int, losses: int) -> None:
    """Whatever is lost, and although messages are lost with it: all neighbours know each other again."""
    simulator, states = network(seed, Disturbances(delay_s=(0.0, 0.05), lost_connections=0.1))
    for number in range(losses):
        one = number % 3
        simulator.at(number * 0.7, partial(simulator.lose_connections, f"n{one}", f"n{one + 1}"))
        simulator.at(number * 0.7, partial(simulator.call, "n1", ShoutTo("g", (b"x",))))
    simulator.run(30.0)
    simulator.disturbances = Disturbances()
    simulator.run(300.0)
    assert neighbours(states) == CHAIN
    for node in simulator.nodes.values():
        entered = sum(1 for _ in node.logged(PeerEntered))
        exited: list[Any] = node.logged(PeerExited)
        assert entered - len(exited) == len(CHAIN[node.name])
