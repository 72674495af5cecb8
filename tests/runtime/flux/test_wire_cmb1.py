"""CMB1 behind the engine's interface: octets derived by hand from both texts, and Construct as a second reader.

PROTO is 20 octets: signature 8e, version 01, type 01, 02, 04 or 08, flags, then four integers of four octets in
network byte order: userid, rolemask, and two by the type.
"""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from specwire.generated import cmb1, cmb1_json
from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.flux import AnyMessage, Control, Event, Request, Response
from specwire.runtime.flux.control import DISCONNECT, HEARTBEAT, STATUSES, Status
from specwire.runtime.flux.flags import NORESPONSE, PRIVATE, STREAMING, UPSTREAM
from specwire.runtime.flux.wire import FLUX, LETTER, Wire
from specwire.runtime.flux.wires import WIRES, find_wire

LATER, EARLIER = WIRES["cmb1"], WIRES["cmb1_json"]
UNKNOWN = b"\xff\xff\xff\xff"  # userid-unknown, and nodeid-any
ZERO = bytes(4)
OWNER = b"\0\0\x03\xe8\0\0\0\5"  # userid 1000, rolemask 5

VECTORS = [
    # request = magic version %x01 flags userid rolemask nodeid matchtag; routing = *identity delimiter.
    # Flags: topic 01, payload 02, route 08. An identity is any octets: here 07 ff.
    pytest.param(
        LATER,
        Request(("\U0010ff07\U0010ffff", "b0"), "kvs.get", b'{"key":"a"}\0', 0, 1000, 5, 3, 42),
        [
            b"\x07\xff",
            b"b0",
            b"",
            b"kvs.get",
            b'{"key":"a"}\0',
            b"\x8e\x01\x01\x0b" + OWNER + b"\0\0\0\3\0\0\0\x2a",
        ],
        id="later request",
    ),
    # The later edition has noresponse 04, upstream 10 and streaming 40 beside topic 01 and route 08: 5d.
    pytest.param(
        LATER,
        Request(topic="a.b", flags=NORESPONSE | UPSTREAM | STREAMING),
        [b"", b"a.b", b"\x8e\x01\x01\x5d" + UNKNOWN + ZERO + UNKNOWN + ZERO],
        id="later request with all its flags",
    ),
    # response = magic version %x02 flags userid rolemask errnum matchtag; 38 is hex 26.
    pytest.param(
        LATER,
        Response(("b0",), "a.b", b"no\0", 0, 1000, 5, 38, 7),
        [b"b0", b"", b"a.b", b"no\0", b"\x8e\x01\x02\x0b" + OWNER + b"\0\0\0\x26\0\0\0\7"],
        id="later response",
    ),
    # event = magic version %x04 flags userid rolemask sequence unused: the topic is first; topic 01, private 20.
    pytest.param(
        LATER,
        Event((), "hb", None, PRIVATE, 1000, 5, 65536),
        [b"hb", b"\x8e\x01\x04\x21" + OWNER + b"\0\1\0\0" + ZERO],
        id="later event",
    ),
    # keepalive = magic version %x08 flags userid rolemask errnum status, and no other part.
    pytest.param(LATER, HEARTBEAT, [b"\x8e\x01\x08\0" + UNKNOWN + ZERO + ZERO + ZERO], id="later heartbeat"),
    # The status of a subtree stands in the slot `status`: degraded is 3.
    pytest.param(
        LATER,
        STATUSES[Status.DEGRADED],
        [b"\x8e\x01\x08\0" + UNKNOWN + ZERO + ZERO + b"\0\0\0\3"],
        id="later status",
    ),
    # An error number ends a connection: 113 is hex 71.
    pytest.param(
        LATER, DISCONNECT, [b"\x8e\x01\x08\0" + UNKNOWN + ZERO + b"\0\0\0\x71" + ZERO], id="later disconnect"
    ),
    # The earlier edition: flag-json 04 beside payload 02, topic 01 and route 08: 0f. JSON has no NUL there.
    pytest.param(
        EARLIER,
        Request((), "cmb.info", b'{"rank":0}\0', 0, 1000, 5, 2, 7),
        [b"", b"cmb.info", b'{"rank":0}', b"\x8e\x01\x01\x0f" + OWNER + b"\0\0\0\2\0\0\0\7"],
        id="earlier request with JSON",
    ),
    # Raw encoding: payload 02 without 04. An identity that is text in UTF-8, c3 a9, is that text to the engine. Text keeps its NUL, for the edition says nothing of text.
    pytest.param(
        EARLIER,
        Response(("\u00e9",), "a.b", b"no\0", 0, 1000, 5, 38, 7),
        [b"\xc3\xa9", b"", b"a.b", b"no\0", b"\x8e\x01\x02\x0b" + OWNER + b"\0\0\0\x26\0\0\0\7"],
        id="earlier response with octets",
    ),
    # What is no object is no JSON for this edition: octets.
    pytest.param(
        EARLIER,
        Event((), "hb", b"[1]\0", 0, 1000, 5, 1),
        [b"hb", b"[1]\0", b"\x8e\x01\x04\x03" + OWNER + b"\0\0\0\1" + ZERO],
        id="earlier event with an array",
    ),
    # upstream 10 is the one flag of routing in both editions.
    pytest.param(
        EARLIER,
        Request((), "a.b", None, UPSTREAM, 1000, 5, 2, 7),
        [b"", b"a.b", b"\x8e\x01\x01\x19" + OWNER + b"\0\0\0\2\0\0\0\7"],
        id="earlier upstream",
    ),
    # No flag says that no answer is wanted; matchtag-none and the name do.
    pytest.param(
        EARLIER,
        Request(("b0",), "kvs.disconnect", None, NORESPONSE, 1000, 5, 0, 0),
        [b"b0", b"", b"kvs.disconnect", b"\x8e\x01\x01\x09" + OWNER + ZERO + ZERO],
        id="earlier disconnect of a client",
    ),
    pytest.param(
        EARLIER, HEARTBEAT, [b"\x8e\x01\x08\0" + UNKNOWN + ZERO + ZERO + ZERO], id="earlier heartbeat"
    ),
]


@pytest.mark.parametrize(("wire", "message", "frames"), VECTORS)
def test_octets_are_those_of_the_text(wire: Wire, message: AnyMessage, frames: list[bytes]) -> None:
    """Written and read, octet for octet; and Construct reads what we write."""
    assert wire.encode(message) == frames
    assert wire.decode(frames) == message
    module = {"cmb1": cmb1, "cmb1_json": cmb1_json}[wire.name]
    name, _ = module.constructs.parse(frames)
    assert name == {"Control": "Keepalive"}.get(type(message).__name__, type(message).__name__)


@pytest.mark.parametrize("wire", [LATER, EARLIER], ids=["later", "earlier"])
@pytest.mark.parametrize(
    ("message", "field"),
    [
        # "SHALL NOT appear in the nodeid slot of an encoded CMB1 message".
        pytest.param(Request(topic="a", nodeid=0xFFFFFFFE), "nodeid", id="upstream as a rank"),
        pytest.param(Request(), "topic", id="no topic"),
        pytest.param(Request(("\ud800",), "a"), "routes", id="route that is no text"),
        pytest.param(Control((), type_=9), "errnum", id="unknown control"),
        pytest.param(Control((), type_=1, status=0), "errnum", id="status that would be a heartbeat"),
    ],
)
def test_what_neither_edition_can_say_is_refused(wire: Wire, message: AnyMessage, field: str) -> None:
    """The error names the field; nothing is written."""
    with pytest.raises(EncodeError) as caught:
        wire.encode(message)
    assert (caught.value.protocol, caught.value.field) == (wire.name, field)


@pytest.mark.parametrize(
    "message",
    [
        Request(topic="a.b", flags=STREAMING, matchtag=1),
        Event(topic="a.b", flags=PRIVATE),
    ],
)
def test_flags_that_the_earlier_edition_lacks_are_refused(message: Request | Event) -> None:
    """To leave one out would say something else: a private event would be public."""
    with pytest.raises(EncodeError, match="flags of this edition"):
        EARLIER.encode(message)


@pytest.mark.parametrize(
    "message",
    [
        Request(topic="a.b", flags=NORESPONSE | PRIVATE | UPSTREAM, matchtag=1),
        Response(topic="a.b", flags=STREAMING | UPSTREAM, matchtag=1),
        Event(topic="a.b", flags=STREAMING | UPSTREAM),
    ],
)
def test_flags_that_can_be_left_out_are(message: Request | Response | Event) -> None:
    """An answer that nobody wants is dropped where it comes; the others mean nothing in such a message."""
    assert EARLIER.decode(EARLIER.encode(message)) == message.replace(flags=UPSTREAM)


def test_bits_without_a_meaning_are_not_read() -> None:
    """The earlier edition has 01, 02, 04, 08 and 10: here 20, 40 and 80 are set, too."""
    proto = b"\x8e\x01\x01\xe9" + OWNER + UNKNOWN + ZERO
    assert EARLIER.decode([b"", b"a.b", proto]) == Request((), "a.b", None, 0, 1000, 5)


@pytest.mark.parametrize("json", [b"[1]", b"1", b"{", b"", b'{"a":1}\0'])
def test_json_that_is_no_object_is_malformed(json: bytes) -> None:
    """JSON payloads conform to RFC 7159, and the outermost is an object."""
    with pytest.raises(DecodeError, match="JSON object"):
        EARLIER.decode([b"", b"a.b", json, b"\x8e\x01\x01\x0f" + OWNER + UNKNOWN + ZERO])


def test_any_error_number_of_a_keepalive_ends_the_connection() -> None:
    """Whatever the number, and whatever the status beside it."""
    for errnum in (b"\0\0\0\1", b"\0\0\0\x71", UNKNOWN):
        for wire in (LATER, EARLIER):
            read = wire.decode([b"\x8e\x01\x08\0" + UNKNOWN + ZERO + errnum + b"\0\0\0\7"])
            assert read == DISCONNECT


@given(st.data(), st.sampled_from([cmb1, cmb1_json]))
def test_what_can_be_read_means_the_same_when_it_is_passed_on(
    data: st.DataObject, module: ModuleType
) -> None:
    """Any message of either edition, written anew after it was read, is read as before."""
    wire = WIRES[module.__name__.rpartition(".")[2]]
    message = data.draw(module.strategies.messages(strict=True))
    assume(getattr(message, "nodeid", 0) != 0xFFFFFFFE)
    read = wire.decode(message.encode(strict=True))
    again = wire.encode(read)
    assert wire.decode(again) == read
    assert module.constructs.parse(again)[0] == type(message).__name__


PRIVATE_USE = st.text(st.characters(min_codepoint=0x10FF00), min_size=1, max_size=5)
ROUTES = PRIVATE_USE | st.text(
    st.characters(min_codepoint=1, exclude_categories=["Cs"]), min_size=1, max_size=5
)


@given(st.lists(ROUTES, max_size=4).map(tuple))
def test_routes_of_clients_are_kept(routes: tuple[str, ...]) -> None:
    """Whatever text a client has for a route, it comes back to it."""
    for wire in (LATER, EARLIER):
        read = wire.decode(wire.encode(Response(routes, "a")))
        assert isinstance(read, Response)
        assert read.routes == routes


@given(st.lists(st.binary(min_size=1, max_size=8) | PRIVATE_USE.map(str.encode), max_size=4))
def test_identities_are_octets(identities: list[bytes]) -> None:
    """Whatever the octets of an identity, they go out as they came in; and Flux v1 can write them to a client."""
    frames = [*identities, b"", b"a", b"\x8e\x01\x02\x09" + OWNER + ZERO + ZERO]
    for wire in (LATER, EARLIER):
        read = wire.decode(frames)
        assert wire.encode(read) == frames
        assert FLUX.decode(FLUX.encode(read)) == read


def test_wires_are_found_by_name() -> None:
    """And what nobody speaks is told with what is known."""
    assert [find_wire(name).name for name in ("flux", "cmb1", "cmb1_json")] == ["flux", "cmb1", "cmb1_json"]
    assert find_wire("flux", letter=True) is LETTER
    with pytest.raises(ValueError, match="no broker speaks 'zre'; known: cmb1, cmb1_json, flux"):
        find_wire("zre")
    with pytest.raises(ValueError, match="--letter is for flux"):
        find_wire("cmb1", letter=True)
