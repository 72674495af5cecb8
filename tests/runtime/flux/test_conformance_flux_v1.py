"""Sentences of Flux v1 that no playbook shows by itself: one sentence, one test. docs/reference/flux-conformance.md has them all."""

from __future__ import annotations

from inspect import signature

import pytest
from msgspec.structs import replace

from specwire.generated.errors import DecodeError
from specwire.generated.flux import NODEID_ANY, Control, Event, Request, Response, decode
from specwire.generated.stream import MessageStream
from specwire.runtime.flux.actions import ToChild, ToParent
from specwire.runtime.flux.answering import unpack_object
from specwire.runtime.flux.client import ClientEngine
from specwire.runtime.flux.control import ControlType
from specwire.runtime.flux.events import Dropped
from specwire.runtime.flux.flags import NORESPONSE, STREAMING, UPSTREAM
from specwire.runtime.flux.wire import FLUX, LETTER, LocalWire
from tests.runtime.flux.tree import CHAIN, Tree, member

BOTH = pytest.mark.parametrize("wire", [FLUX, LETTER], ids=["deployed", "letter"])

UUID = "c95b7aad-30ca-49ba-8821-9eca9ddcadb9"
OTHER = "6871592e-30ca-49ba-8821-9eca9ddcadb9"
NUMBERS = bytes(16)


def speaking(wire: LocalWire, size: int = 7) -> Tree:
    """Return a tree whose every connection has this wire format."""
    return Tree(size, settings=lambda given: replace(given, wire=wire))


# --- Common Message Format, Optional and Required Message Parts


@BOTH
@pytest.mark.parametrize(
    ("octets", "parts"),
    [(1024, 1024), (4096, 256), (16384, 64), (1048586, 1)],
    ids=["1 K", "4 K", "16 K", "1 M"],
)
def test_boundaries_of_parts_are_preserved(wire: LocalWire, octets: int, parts: int) -> None:
    """What is sent as an array of parts is received as one, whatever the parts are."""
    given = [bytes((n % 251 + 1,)) * octets for n in range(parts)]
    stream = MessageStream(wire.framing, list, 1 << 26)
    assert stream.feed(wire.framing.frame(given)) == [given]


@BOTH
def test_routes_need_a_delimiter(wire: LocalWire) -> None:
    """The delimiter is required where there are routes; flag 08 without one is no message."""
    for frames in ([UUID.encode(), b"a"], [b"a"]):
        with pytest.raises(DecodeError):
            wire.decode([*frames, b"\x8e\x01\x01\x09" + NUMBERS])


@BOTH
def test_routes_and_delimiter_come_first(wire: LocalWire) -> None:
    """In front of topic and payload; the same parts in another order say something else."""
    frames = wire.encode(Request((UUID, OTHER), "a.b", b"{}\0"))
    assert [frame.rstrip(b"\0") for frame in frames[:2]] == [UUID.encode(), OTHER.encode()]
    assert frames[2] == b""
    assert frames[3].rstrip(b"\0") == b"a.b"
    moved = [frames[3], frames[4], *frames[:3], frames[5]]
    with pytest.raises(DecodeError):
        wire.decode(moved)


@BOTH
@pytest.mark.parametrize("size", [0, 19, 21])
def test_header_has_a_fixed_length(wire: LocalWire, size: int) -> None:
    """Exactly 20 octets."""
    header = (b"\x8e\x01\x01\x09" + NUMBERS + b"\0")[:size]
    with pytest.raises(DecodeError):
        wire.decode([b"", b"a", header])


@BOTH
@pytest.mark.parametrize("first", ["8d0101", "8e0001", "8e0201", "8e0100", "8e0103", "8e0110"])
def test_header_begins_with_magic_version_and_type(wire: LocalWire, first: str) -> None:
    """8E 01, then one of 1, 2, 4 and 8."""
    with pytest.raises(DecodeError):
        wire.decode([b"", b"a", bytes.fromhex(first) + b"\x09" + NUMBERS])


@BOTH
def test_header_is_the_last_part(wire: LocalWire) -> None:
    """One that stands elsewhere makes no message."""
    header = b"\x8e\x01\x01\x09" + NUMBERS
    assert isinstance(wire.decode([b"", b"a", header]), Request)
    with pytest.raises(DecodeError):
        wire.decode([header, b"", b"a"])


@pytest.mark.parametrize(("flags", "frames"), [(b"\x09", [b""]), (b"\x0a", [b""]), (b"\x0b", [b"", b"a"])])
def test_announced_parts_are_there(flags: bytes, frames: list[bytes]) -> None:
    """A flag for topic or payload without its part is no message."""
    with pytest.raises(DecodeError):
        decode([*frames, b"\x8e\x01\x01" + flags + NUMBERS])


# --- Request Message Type


@BOTH
def test_request_has_a_delimiter_without_routes_too(wire: LocalWire) -> None:
    """Flag 08 and the empty part are there before the first hop."""
    frames = wire.encode(Request(topic="a.b"))
    assert frames[0] == b""
    assert frames[-1][3] & 0x08


@BOTH
def test_first_word_of_the_topic_is_the_service(wire: LocalWire) -> None:
    """Up to the first period; what follows may have more."""
    tree = speaking(wire, 1)
    tree.engines[0].add_service("work")
    tree.client().request("work.do.this.now", {})
    tree.client().request("work", {})
    assert [(service, request.topic) for _, service, request in tree.arrived] == [
        ("work", "work.do.this.now"),
        ("work", "work"),
    ]
    assert tree.client().ask("workshop.do", {}).errnum in (38, 39)


@BOTH
def test_nodeid_decides_where_a_request_goes(wire: LocalWire) -> None:
    """The same request, but for its nodeid, is answered by the rank that it names, or by the first that can."""
    client = speaking(wire).client(5)
    goals = {NODEID_ANY: "5", 0: "0", 3: "3", 6: "6"}
    for nodeid, rank in goals.items():
        answer = client.ask("attr.get", {"name": "rank"}, nodeid=nodeid)
        assert unpack_object(answer.payload)["value"] == rank


@BOTH
def test_matchtag_pairs_a_response_with_its_request(wire: LocalWire) -> None:
    """Many requests under way, answered in another order: each answer has the number of its request."""
    tree = speaking(wire)
    client = tree.client(5)
    asked = {client.request("broker.ping", {"seq": n}, nodeid=n % 7): n for n in range(21)}
    for turn in range(10_000):
        if not tree.step(turn * 7 + 3):
            break
    for matchtag, number in asked.items():
        (answer,) = client.answers(matchtag)
        assert unpack_object(answer.payload)["seq"] == number


# --- Request Routing


@BOTH
def test_destination_matches_its_own_service(wire: LocalWire) -> None:
    """At the destination the request is given to the service there, and to no other on the way."""
    tree = speaking(wire)
    for rank in (0, 1, 3):
        tree.engines[rank].add_service("work")
    tree.client(2).request("work.do", {}, nodeid=3)
    tree.settle()
    assert [rank for rank, _, _ in tree.arrived] == [3]


@BOTH
def test_upstream_is_relative_to_the_sender(wire: LocalWire) -> None:
    """With UPSTREAM the nodeid is the sender's rank: brokers above match the request, whatever their own rank."""
    tree = speaking(wire)
    tree.engines[5].add_service("work")
    tree.engines[0].add_service("work")
    tree.client(5).request("work.do", {}, nodeid=5, flags=UPSTREAM)
    tree.settle()
    assert [rank for rank, _, _ in tree.arrived] == [0]


def test_upstream_ends_in_an_error_where_nothing_matches() -> None:
    """As in the first case: 39 by the letter, from below and at the root itself."""
    tree = speaking(LETTER)
    assert tree.client(5).ask("work.do", {}, nodeid=5, flags=UPSTREAM).errnum == 39
    assert tree.client(0).ask("attr.get", {"name": "rank"}, nodeid=0, flags=UPSTREAM).errnum == 39


def test_noresponse_and_streaming_exclude_each_other() -> None:
    """In the client's interface: a stream is answered, and what nobody answers is no stream."""
    engine = ClientEngine()
    assert engine.call("a.b", None, 0.0, streaming=True).request.flags == STREAMING
    assert engine.tell("a.b", None).flags == NORESPONSE
    assert "streaming" not in signature(engine.tell).parameters
    assert not {"noresponse", "flags"} & {*signature(engine.call).parameters}


# --- Response Message Type


@BOTH
@pytest.mark.parametrize("flags", [0, STREAMING])
def test_response_copies_routes_topic_and_matchtag(wire: LocalWire, flags: int) -> None:
    """Routes that a client put below its own come back to it as they were, and so do topic and matchtag."""
    tree = speaking(wire)
    client = tree.client(5)
    client.send(Request((UUID, OTHER), "nosuch.do", None, flags, matchtag=4711))
    tree.settle()
    (answer,) = client.received
    assert isinstance(answer, Response)
    assert (answer.routes, answer.topic, answer.matchtag) == ((UUID, OTHER), "nosuch.do", 4711)


def test_a_route_is_removed_at_each_socket() -> None:
    """Downwards the ROUTER takes off the child's uuid, which is no route; upwards this broker takes off its own."""
    engine = member()
    down = engine.from_parent(Request(("root", "x"), "broker.ping", b"{}\0", nodeid=2, matchtag=1), 0.0)
    (action,) = down
    assert isinstance(action, ToChild)
    assert isinstance(action.message, Request)
    assert action.message.routes == ("middle", "root", "x")
    up = engine.from_child("leaf", Response(action.message.routes, "broker.ping", matchtag=1), 0.0)
    (answer,) = up
    assert isinstance(answer, ToParent)
    assert isinstance(answer.message, Response)
    assert answer.message.routes == ("root", "x")


@BOTH
def test_response_has_an_error_number(wire: LocalWire) -> None:
    """0 where it went well."""
    client = speaking(wire, 1).client()
    assert client.ask("broker.ping", {}).errnum == 0
    assert client.ask("attr.get", {"name": "no such"}).errnum == 2


# --- Event and control messages


def test_event_without_a_topic_is_not_published() -> None:
    """Nobody could subscribe to it."""
    tree = Tree(1)
    client = tree.client()
    client.request("event.subscribe", {"topic": ""})
    client.send(Event(payload=b"x"))
    assert client.events() == []
    assert [event.reason for event in tree.reported(Dropped)] == ["it has no topic"]


@pytest.mark.parametrize(
    ("flags", "frames"),
    [(b"\x01", [b"a"]), (b"\x02", [b"x"]), (b"\x09", [b"", b"a"])],
    ids=["topic", "payload", "both"],
)
@BOTH
def test_control_has_neither_topic_nor_payload(wire: LocalWire, flags: bytes, frames: list[bytes]) -> None:
    """One that has is no message."""
    with pytest.raises(DecodeError):
        wire.decode([*frames, b"\x8e\x01\x08" + flags + NUMBERS])


def test_control_is_not_routed() -> None:
    """Whatever it says and whoever sends it, none goes on."""
    for kind in range(4):
        engine = member()
        engine.accept_client("client", CHAIN.owner, 0.0)
        done = [
            *engine.from_child("leaf", Control((), type_=kind, status=3), 0.0),
            *engine.from_client("client", Control((), type_=kind), 0.0),
        ]
        passed = [action for action in done if isinstance(action, ToParent | ToChild)]
        # The status of the subtree goes up as this broker's own word, of its own status.
        assert all(action.message == Control((), type_=1, status=3) for action in passed)
        assert len(passed) == (kind == ControlType.STATUS)


# --- Payload Conventions


@BOTH
@pytest.mark.parametrize("topic", ["nosuch.do", "attr.nosuch", "kvs.get"])
def test_text_and_json_end_with_nul(wire: LocalWire, topic: str) -> None:
    """What the broker itself says, be it text or an object."""
    client = speaking(wire, 1).client()
    client.request("kvs.put", {"key": "a", "value": {"b": "c"}})
    payload = client.ask(topic, {"key": "a"}).payload
    assert payload is not None
    assert payload.endswith(b"\0")
    assert payload.count(b"\0") == 1


# --- Message Framing


@BOTH
@pytest.mark.parametrize(
    ("size", "written"),
    [(0, "00"), (1, "01"), (254, "fe"), (255, "ff000000ff"), (256, "ff00000100"), (65536, "ff00010000")],
)
def test_size_of_a_part(wire: LocalWire, size: int, written: str) -> None:
    """To 254 octets in one octet, and no more; from 255 octets FF and four octets, in network byte order."""
    octets = wire.framing.frame([b"x" * size])
    body = bytes.fromhex(written) + b"x" * size
    assert octets[8:] == body
    # The length of all parts, their sizes included, without magic and length itself.
    assert octets[4:8] == len(body).to_bytes(4, "big")
