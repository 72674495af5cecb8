"""Sentences of CMB1, both editions, by trees of engines that speak them: one sentence, one test.

docs/reference/flux-conformance.md has them all, with the numbers of the sentences.
"""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.flux import NODEID_ANY, Event, Request, Response
from specwire.runtime.flux.actions import ToParent
from specwire.runtime.flux.answering import respond, unpack_object
from specwire.runtime.flux.events import Dropped
from specwire.runtime.flux.flags import NORESPONSE, PRIVATE, STREAMING, UPSTREAM
from specwire.runtime.flux.topology import HIGHEST_RANK
from specwire.runtime.flux.topology import Tree as Shape
from specwire.runtime.flux.wire import FLUX, Wire
from specwire.runtime.flux.wires import WIRES
from tests.runtime.flux.tree import LocalClient, Tree, alone

LATER, EARLIER = WIRES["cmb1"], WIRES["cmb1_json"]
BOTH = pytest.mark.parametrize("wire", [LATER, EARLIER], ids=["later", "earlier"])
HEADER = b"\x8e\x01\x01"
NUMBERS = bytes(16)


def speaking(wire: Wire, size: int = 7) -> Tree:
    """Return a tree whose every connection has this wire format."""
    return Tree(size, settings=lambda given: replace(given, wire=wire))


def rank_asked(client: LocalClient, nodeid: int = NODEID_ANY, flags: int = 0) -> str:
    """Return the rank of the broker that answers."""
    answer = client.ask("attr.get", {"name": "rank"}, nodeid=nodeid, flags=flags)
    assert answer.errnum == 0, answer
    return str(unpack_object(answer.payload)["value"])


# --- Rank Assignment, Overlay Networks


@BOTH
def test_ranks_are_0_to_n_minus_1(wire: Wire) -> None:
    """Each broker has one, and says so."""
    tree = speaking(wire, 5)
    assert [rank_asked(tree.client(rank)) for rank in range(5)] == ["0", "1", "2", "3", "4"]
    for rank in (-1, 5):
        with pytest.raises(ValueError, match="is not in a tree of 5"):
            alone(rank, tree.settings, "x")


@BOTH
def test_ranks_are_32_bits_and_end_at_2_to_32_minus_3(wire: Wire) -> None:
    """The highest can be in the largest tree, and in a request."""
    assert HIGHEST_RANK == 4_294_967_293
    assert Shape(HIGHEST_RANK + 1).next_hop(0, HIGHEST_RANK) in (1, 2)
    with pytest.raises(ValueError, match="not 4294967295"):
        Shape(HIGHEST_RANK + 2)
    proto = wire.encode(Request(topic="a", nodeid=HIGHEST_RANK))[-1]
    assert proto[12:16] == b"\xff\xff\xff\xfd"


@BOTH
def test_all_ones_are_any_rank(wire: Wire) -> None:
    """2^32 - 1: the first broker that can."""
    assert wire.encode(Request(topic="a", nodeid=NODEID_ANY))[-1][12:16] == b"\xff\xff\xff\xff"
    assert rank_asked(speaking(wire).client(5), 0xFFFFFFFF) == "5"


@BOTH
@pytest.mark.parametrize("rank", [0, 1, 6])
@pytest.mark.parametrize("flags", [0, UPSTREAM])
def test_the_number_for_upstream_is_no_rank(wire: Wire, rank: int, flags: int) -> None:
    """2^32 - 2 is reserved: a broker that reads it answers, and sends it on to nobody."""
    tree = speaking(wire)
    engine = tree.engines[rank]
    client = tree.client(rank)
    request = Request(topic="attr.get", flags=flags, nodeid=0xFFFFFFFE, matchtag=1)
    done = engine.from_client(client.uuid, request, 0.0)
    assert [action for action in done if isinstance(action, ToParent)] == []
    tree.perform(rank, done)
    (answer,) = client.answers(1)
    assert answer.errnum == 113


@BOTH
def test_the_number_for_upstream_is_never_encoded(wire: Wire) -> None:
    """It SHALL NOT appear in the nodeid slot."""
    with pytest.raises(EncodeError, match="nodeid"):
        wire.encode(Request(topic="a", nodeid=0xFFFFFFFE))


@BOTH
def test_rank_stays_for_a_brokers_life(wire: Wire) -> None:
    """A broker that has lost its parent comes back under another uuid and the same rank."""
    tree = speaking(wire, 3)
    uuid = tree.engines[2].uuid
    tree.perform(2, tree.engines[2].parent_gone("cut", tree.now))
    tree.rejoin(2)
    tree.settle()
    assert tree.engines[2].uuid != uuid
    assert rank_asked(tree.client(0), 2) == "2"


@BOTH
def test_size_is_determined_at_startup(wire: Wire) -> None:
    """It is part of the settings, which are frozen; a killed broker does not make the session smaller."""
    tree = speaking(wire, 3)
    tree.kill(2)
    tree.settle()
    answer = tree.client(0).ask("attr.get", {"name": "size"})
    assert unpack_object(answer.payload)["value"] == "3"
    field = "size"
    with pytest.raises(AttributeError):
        setattr(tree.settings.tree, field, 2)


@BOTH
def test_brokers_are_a_tree_with_rank_0_at_the_root(wire: Wire) -> None:
    """Each is known to its parent alone."""
    tree = speaking(wire)
    assert tree.engines[0].overlay.parent is None
    for rank in range(1, 7):
        parent = tree.engines[(rank - 1) // 2]
        assert tree.engines[rank].overlay.parent == parent.uuid
        assert [child.rank for child in parent.overlay.children.present.values()].count(rank) == 1


# --- Service Addressing, Default Request Routing


@BOTH
def test_first_word_is_the_service_and_the_rest_its_method(wire: Wire) -> None:
    """Words are delimited by periods."""
    tree = speaking(wire, 1)
    tree.engines[0].add_service("work")
    client = tree.client()
    client.request("work.a.b", {})
    client.request("works.a", {})
    assert [(service, request.topic) for _, service, request in tree.arrived] == [("work", "work.a.b")]


@BOTH
def test_any_rank_is_the_local_broker_first(wire: Wire) -> None:
    """Such messages are routed to the local broker."""
    tree = speaking(wire)
    assert [rank_asked(tree.client(rank)) for rank in range(7)] == [str(rank) for rank in range(7)]


@BOTH
def test_module_that_matches_gets_it_unless_it_has_sent_it(wire: Wire) -> None:
    """The same module on another rank, and another sender on this one, do not hinder it."""
    tree = speaking(wire, 3)
    server, other, above = tree.client(2), tree.client(2), tree.client(0)
    for module in (server, above):
        module.ask("service.add", {"service": "mine"})
    server.request("mine.do", {"by": "itself"})
    other.request("mine.do", {"by": "other"})
    tree.settle()
    assert [request.payload for request in server.requests()] == [b'{"by":"other"}\0']
    assert [request.payload for request in above.requests()] == [b'{"by":"itself"}\0']


@BOTH
def test_parent_applies_the_same(wire: Wire) -> None:
    """Where the broker is not the root, the request goes to the parent, which re-applies the algorithm."""
    tree = speaking(wire)
    tree.engines[1].add_service("work")
    tree.engines[0].add_service("work")
    tree.client(3).request("work.do", {})
    tree.settle()
    assert [rank for rank, _, _ in tree.arrived] == [1]


@BOTH
def test_unknown_method_is_38_by_the_module(wire: Wire) -> None:
    """Of the broker that has the service, though others above have it, too."""
    answer = speaking(wire).client(5).ask("attr.nosuch", {})
    assert (answer.errnum, answer.payload) == (38, b"Unknown service method 'attr.nosuch'\0")


@BOTH
def test_nothing_up_to_the_root_is_38_by_the_root(wire: Wire) -> None:
    """None of the conditions is met anywhere."""
    tree = speaking(wire)
    assert tree.client(5).ask("nosuch.do", {}).errnum == 38
    assert tree.client(0).ask("nosuch.do", {}).errnum == 38


@BOTH
def test_upstream_is_any_rank_but_the_sender(wire: Wire) -> None:
    """As if addressed to any rank, except that it is not delivered on the sending node; at the root, 38."""
    tree = speaking(wire)
    assert rank_asked(tree.client(5), 5, UPSTREAM) == "2"
    assert tree.client(0).ask("attr.get", {"name": "rank"}, nodeid=0, flags=UPSTREAM).errnum == 38


# --- Rank Request Routing


@BOTH
def test_rank_is_the_target(wire: Wire) -> None:
    """From everywhere to everywhere."""
    tree = speaking(wire)
    for start in range(7):
        client = tree.client(start)
        assert [rank_asked(client, goal) for goal in range(7)] == [str(goal) for goal in range(7)]


@BOTH
def test_module_of_the_target_gets_it(wire: Wire) -> None:
    """And no other on the way, though it matches."""
    tree = speaking(wire)
    for rank in (0, 1, 3):
        tree.engines[rank].add_service("work")
    tree.client(5).request("work.do", {}, nodeid=3)
    tree.settle()
    assert [rank for rank, _, _ in tree.arrived] == [3]


@BOTH
def test_unknown_method_of_the_target_is_38(wire: Wire) -> None:
    """By the module there."""
    answer = speaking(wire).client(5).ask("attr.nosuch", {}, nodeid=3)
    assert (answer.errnum, answer.payload) == (38, b"Unknown service method 'attr.nosuch'\0")


@BOTH
def test_no_module_at_the_target_is_38(wire: Wire) -> None:
    """By the broker there; one on the way up does not help."""
    tree = speaking(wire)
    tree.engines[0].add_service("work")
    assert tree.client(5).ask("work.do", {}, nodeid=3).errnum == 38
    assert tree.arrived == []


@BOTH
def test_no_way_to_the_target_is_113(wire: Wire) -> None:
    """A rank that is none, and one that is gone: answered by the broker that finds out."""
    tree = speaking(wire)
    client = tree.client(5)
    assert client.ask("attr.get", {}, nodeid=7).errnum == 113
    tree.kill(1)
    tree.settle()
    assert client.ask("attr.get", {}, nodeid=3).errnum == 113


# --- Suppression of Responses, Event Routing


def test_noresponse_is_silent() -> None:
    """The later edition's flag 4: whoever would respond does not, be it with a result or an error."""
    tree = speaking(LATER)
    client = tree.client(5)
    for topic, nodeid in [
        ("broker.ping", 3),
        ("attr.nosuch", 3),
        ("nosuch.do", NODEID_ANY),
        ("broker.ping", 99),
    ]:
        client.request(topic, {}, nodeid=nodeid, flags=NORESPONSE)
    tree.settle()
    assert client.received == []
    assert tree.pending() == {}


@BOTH
def test_only_rank_0_publishes(wire: Wire) -> None:
    """An event of another rank travels to rank 0 unnumbered, and from there to everybody."""
    tree = speaking(wire)
    clients = [tree.client(rank) for rank in range(7)]
    for client in clients:
        client.ask("event.subscribe", {"topic": "news"})
    clients[5].send(Event(topic="news.a", payload=b"x"))
    clients[6].send(Event(topic="news.b", payload=b"y"))
    tree.settle()
    numbers = [[event.sequence for event in client.events("news")] for client in clients]
    assert numbers == [[numbers[0][0], numbers[0][0] + 1]] * 7


# --- Payloads


@BOTH
@pytest.mark.parametrize("payload", [b"[]\0", b"7\0", b"{\0"])
def test_payload_that_is_no_object_is_eproto(wire: Wire, payload: bytes) -> None:
    """JSON payloads conform to RFC 7159 and are objects."""
    tree = speaking(wire, 1)
    client = tree.client()
    client.send(Request(topic="attr.get", payload=payload, matchtag=1))
    assert [answer.errnum for answer in client.answers(1)] == [71]


def test_strings_and_json_end_with_nul() -> None:
    """The later edition's conventions 1 and 5: what the broker says, as it stands on the wire."""
    tree = speaking(LATER, 1)
    client = tree.client()
    for topic in ("nosuch.do", "broker.ping"):
        frames = LATER.encode(client.ask(topic, {"a": 1}))
        assert frames[-2].endswith(b"\0")


def test_json_is_announced_and_has_no_nul() -> None:
    """The earlier edition: flags 06 for JSON, 02 for octets, in what the broker says."""
    tree = speaking(EARLIER, 1)
    client = tree.client()
    frames = EARLIER.encode(client.ask("broker.ping", {"a": 1}))
    assert frames[-1][3] & 0x06 == 0x06
    assert msgspec.json.decode(frames[-2])["a"] == 1
    frames = EARLIER.encode(client.ask("nosuch.do", {}))
    assert (frames[-1][3] & 0x06, frames[-2][-1:]) == (0x02, b"\0")


@pytest.mark.parametrize("json", [b"[1]", b"{", b"7"])
def test_json_that_is_no_object_is_malformed(json: bytes) -> None:
    """The earlier edition: the outermost type SHALL be an object; whoever sends another is let go."""
    with pytest.raises(DecodeError, match="a JSON object"):
        EARLIER.decode([b"", b"a.b", json, HEADER + b"\x0f" + NUMBERS])


# --- General Message Format


@BOTH
def test_proto_is_there_and_last(wire: Wire) -> None:
    """Without it, or with it in another place, there is no message."""
    proto = HEADER + b"\x09" + NUMBERS
    assert isinstance(wire.decode([b"", b"a", proto]), Request)
    for frames in ([b"", b"a"], [proto, b"", b"a"], [b"", b"a", proto[:-1]], []):
        with pytest.raises(DecodeError):
            wire.decode(frames)


@BOTH
def test_identities_are_followed_by_a_delimiter(wire: Wire) -> None:
    """Of zero octets, and next to them."""
    assert wire.encode(Response(("x", "y"), "a"))[:4] == [b"x", b"y", b"", b"a"]
    with pytest.raises(DecodeError):
        wire.decode([b"x", b"y", b"a", HEADER + b"\x09" + NUMBERS])


# --- What an edition has no word for


def test_private_event_is_refused_where_there_is_no_word_for_it() -> None:
    """The earlier edition: told to the publisher, and nobody gets it; the later one has the flag."""
    wanted = {"topic": "news.secret", "flags": PRIVATE}
    for wire, errnum in ((EARLIER, 71), (LATER, 0)):
        tree = speaking(wire, 3)
        client = tree.client(2)
        client.ask("event.subscribe", {"topic": "news"})
        answer = client.ask("event.publish", wanted, nodeid=0)
        assert answer.errnum == errnum
        assert len(client.events("news")) == (errnum == 0)
        if errnum:
            assert answer.payload == b"CMB1 (JSON) has no private events\0"


def test_stream_is_not_asked_for_where_there_is_no_word_for_it() -> None:
    """The earlier edition: for another broker it is refused, with the reason; a client's own broker needs no word."""
    tree = speaking(EARLIER, 3)
    client = tree.client(2)
    for nodeid in (0, 1):
        answer = client.ask("log.dmesg", {}, nodeid=nodeid, flags=STREAMING)
        assert (answer.errnum, answer.payload) == (71, b"CMB1 (JSON) has no streams\0")
    matchtag = client.request("log.dmesg", {}, nodeid=2, flags=STREAMING)
    assert client.answers(matchtag)[-1].errnum == 61
    assert tree.pending() == {}


def test_bare_private_event_goes_nowhere_where_there_is_no_word_for_it() -> None:
    """The earlier edition: nobody awaits an answer, so it is dropped and reported."""
    tree = speaking(EARLIER, 3)
    client = tree.client(2)
    client.ask("event.subscribe", {"topic": "news"})
    client.send(Event(topic="news.secret", flags=PRIVATE))
    tree.settle()
    assert client.events("news") == []
    assert [event.reason for event in tree.reported(Dropped)] == ["its like would not be kept private"]


def test_noresponse_is_silent_where_there_is_no_word_for_it() -> None:
    """The earlier edition: the request gets there without the flag, and its answer is dropped on the way back."""
    tree = speaking(EARLIER)
    tree.engines[3].add_service("work")
    client = tree.client(5)
    client.request("work.do", {}, nodeid=3, flags=NORESPONSE)
    for topic, nodeid in [("broker.ping", 3), ("nosuch.do", NODEID_ANY), ("broker.ping", 99)]:
        client.request(topic, {}, nodeid=nodeid, flags=NORESPONSE)
    tree.settle()
    ((rank, _, request),) = tree.arrived
    tree.answer(rank, "work", respond(request))
    tree.settle()
    assert client.received == []
    assert tree.pending() == {}


@BOTH
def test_clients_speak_flux_v1(wire: Wire) -> None:
    """CMB1 is encapsulated in ZMTP; at the UNIX socket a client says and hears what it does at any broker."""
    assert wire.local is FLUX
    tree = speaking(wire, 3)
    client = tree.client(2)
    answer = client.ask("broker.ping", {"a": 1}, nodeid=0)
    assert unpack_object(answer.payload)["a"] == 1
    assert (answer.payload or b"").endswith(b"\0")


@BOTH
def test_work_for_a_client_that_is_gone_is_ended(wire: Wire) -> None:
    """``<service>.disconnect`` gets there in both editions, and is answered by nobody."""
    tree = speaking(wire)
    tree.engines[3].add_service("work")
    client = tree.client(5)
    client.request("work.slow", {}, nodeid=3)
    tree.settle()
    assert len(tree.asked[3, "work"]) == 1
    client.close()
    tree.settle()
    assert not tree.asked[3, "work"]
    assert tree.pending() == {}


@BOTH
def test_status_of_subtrees_travels_as_keepalive(wire: Wire) -> None:
    """CMB1 has no word for it, but a slot: rank 0 knows that a broker two levels below was lost, and is back."""
    tree = speaking(wire)
    client = tree.client(0)

    def status() -> str:
        return str(unpack_object(client.ask("overlay.health").payload)["status"])

    assert status() == "full"
    tree.kill(5)
    tree.settle()
    assert status() == "degraded"
    tree.start(5)
    tree.settle()
    assert status() == "full"


@BOTH
def test_peer_that_did_not_say_hello_is_told_by_keepalive(wire: Wire) -> None:
    """An error number, 113; the child that reads it leaves."""
    tree = speaking(wire, 3)
    engine = tree.engines[2]
    tree.perform(0, tree.engines[0].child_gone(engine.uuid, "in doubt", tree.now))
    tree.advance(6.0)  # a heartbeat of the child that was given up
    assert 2 in tree.apart
