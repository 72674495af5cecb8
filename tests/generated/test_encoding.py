"""Whatever encodes decodes to an equal message; what does not is refused by both paths with its field."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.errors import EncodeError
from specwire.generated.messages import Message
from specwire.generated.unfit import explain_encode
from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import assert_agreement, layout_of
from tests.generated.builds import package
from tests.generated.vectors import PACKAGES


def assert_encodes_or_says_why(module: ModuleType, message: Message) -> None:
    """Check one message, whatever is in it; the walk over the layout must find what the fast path found."""
    slow = explain_encode(layout_of(module), message)
    agreed = "disagreement" in slow.found
    try:
        frames = message.encode()
    except EncodeError as error:
        assert not agreed, f"the fast path alone refuses {message}"
        assert error.attributes() == slow.attributes()
        assert error.field
        assert (error.message_name, error.frame, error.offset) == (message.NAME, None, None)
        assert len(str(error)) < 500
        return
    assert agreed, f"the fast path takes what it must not: {slow}"
    assert all(type(frame) is bytes for frame in frames)
    assert module.decode(frames) == message


def assert_letter(module: ModuleType, message: Message) -> None:
    """Check that what the letter allows decodes by the letter to the same message."""
    try:
        frames = message.encode(strict=True)
    except EncodeError as error:
        assert "disagreement" not in error.found
        assert error.message_name == message.NAME
        return
    assert_agreement(module, frames)
    if message.PROTOCOL == "flux" and message.NAME in ("event", "control") and message.routes == ():  # type: ignore[attr-defined]
        # The letter forbids these two a delimiter, so an empty stack is not written.
        message = message.replace(routes=None)
    assert module.decode(frames, strict=True) == message
    assert module.decode(frames) == message


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_fitting_message_comes_back(name: str, build: str, data: st.DataObject) -> None:
    module = package(name, build)
    message = data.draw(strategies.messages(module))
    frames = message.encode()
    assert module.decode(frames) == message
    assert assert_agreement(module, frames)
    assert_letter(module, message)


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_values_encode_or_are_refused_by_both_paths(name: str, build: str, data: st.DataObject) -> None:
    module = package(name, build)
    message = data.draw(strategies.anything(module))
    assert_encodes_or_says_why(module, message)
    assert_letter(module, message)


def nom(package: Any, credit: object) -> Message:
    message: Message = package.Nom(credit)
    return message


def burger(package: Any, **changes: object) -> Message:
    fine: Message = package.Cheezburger(
        sequence=1, operation=1, filename="/a", offset=0, headers=(), chunk=b""
    )
    return fine.replace(**changes)


def hello(package: Any, **changes: object) -> Message:
    fine: Message = package.Hello(sequence=1, endpoint="", groups=(), status=1, name="")
    return fine.replace(**changes)


REFUSED: list[tuple[str, Callable[[Any], Message], str, str]] = [
    ("filemq", lambda p: nom(p, -1), "credit", "NOM.credit: expected 0 to 18446744073709551615, found -1 [FILEMQ v2 credit]"),
    ("filemq", lambda p: nom(p, 2**64), "credit", "NOM.credit: expected 0 to 18446744073709551615, found 18446744073709551616 [FILEMQ v2 credit]"),
    ("filemq", lambda p: nom(p, 10**5000), "credit", "NOM.credit: expected 0 to 18446744073709551615, found a number of 16610 bits [FILEMQ v2 credit]"),
    ("filemq", lambda p: nom(p, "1"), "credit", "NOM.credit: expected an integer, found str '1' [FILEMQ v2 credit]"),
    ("filemq", lambda p: nom(p, 1.5), "credit", "NOM.credit: expected an integer, found float 1.5 [FILEMQ v2 credit]"),
    ("filemq", lambda p: nom(p, None), "credit", "NOM.credit: expected an integer, found None [FILEMQ v2 credit]"),
    ("filemq", lambda p: burger(p, operation=3), "operation", "CHEEZBURGER.operation: expected 1 or 2, found 3 [FILEMQ v2 operation]"),
    ("filemq", lambda p: burger(p, operation=1.0), "operation", "CHEEZBURGER.operation: expected an integer, found float 1.0 [FILEMQ v2 operation]"),
    ("filemq", lambda p: burger(p, filename="x" * 256), "filename", "CHEEZBURGER.filename: expected at most 255 octets, found 256 [FILEMQ v2 filename]"),
    ("filemq", lambda p: burger(p, filename="\u00e9" * 128), "filename", "CHEEZBURGER.filename: expected at most 255 octets, found 256 [FILEMQ v2 filename]"),
    ("filemq", lambda p: burger(p, filename="\ud800"), "filename", r"CHEEZBURGER.filename: expected text that UTF-8 can write, found '\ud800' [FILEMQ v2 filename]"),
    ("filemq", lambda p: burger(p, filename=b"/a"), "filename", "CHEEZBURGER.filename: expected text, found bytes b'/a' [FILEMQ v2 filename]"),
    ("filemq", lambda p: burger(p, chunk="text"), "chunk", "CHEEZBURGER.chunk: expected octets, found str 'text' [FILEMQ v2 chunk]"),
    ("filemq", lambda p: burger(p, headers=[("a", "b")]), "headers", "CHEEZBURGER.headers: expected a tuple, found list [('a', 'b')] [FILEMQ v2 headers]"),
    ("filemq", lambda p: burger(p, headers={"ab": 1}), "headers", "CHEEZBURGER.headers: expected a tuple, found dict {'ab': 1} [FILEMQ v2 headers]"),
    ("filemq", lambda p: burger(p, headers=("ab",)), "headers[0]", "CHEEZBURGER.headers[0]: expected a pair of name and value, found str 'ab' [FILEMQ v2 key-value]"),
    ("filemq", lambda p: burger(p, headers=(("a", "b"), ("c=", "d"))), "headers[1].name", "CHEEZBURGER.headers[1].name: expected a name without '=', found 'c=' [FILEMQ v2 key-value]"),
    ("filemq", lambda p: burger(p, headers=(("a", 1),)), "headers[0].value", "CHEEZBURGER.headers[0].value: expected text, found int 1 [FILEMQ v2 key-value]"),
    ("filemq", lambda p: burger(p, headers=(("a", "x" * 254),)), "headers[0]", "CHEEZBURGER.headers[0]: expected at most 255 octets, found 256 [FILEMQ v2 key-value]"),
    ("filemq", lambda p: burger(p, headers=(("a", ""),) * 256), "headers", "CHEEZBURGER.headers: expected at most 255 entries, found 256 [FILEMQ v2 headers]"),
    ("filemq", lambda p: p.Icanhaz("/", cache=(("a", "="),)), "cache[0].value", "ICANHAZ.cache[0].value: expected a value without '=', found '=' [FILEMQ v2 key-value]"),
    ("libfilemq", lambda p: p.Icanhaz("/", options=(("x" * 256, ""),)), "options[0].name", "ICANHAZ.options[0].name: expected at most 255 octets, found 256 [libfilemq 2 options]"),
    ("flux", lambda p: p.Request(topic="a\0"), "topic", "request.topic: expected text without NUL, found 0x00 [Flux v1 topic]"),
    ("flux", lambda p: p.Request(topic="a", routes=("u", "")), "routes[1]", "request.routes[1]: expected at least 1 octet: an empty frame ends the stack, found 0 octets [Flux v1 routing]"),
    ("flux", lambda p: p.Request(topic="a", flags=p.Flags.TOPIC | p.Flags.STREAMING), "flags", "request.flags: expected no bit of 0x0b: they follow from the other fields, found 0x01 [Flux v1 flags]"),
    ("flux", lambda p: p.Request(topic="a", flags=256), "flags", "request.flags: expected 0 to 255, found 256 [Flux v1 flags]"),
    ("flux", lambda p: p.Request(topic="a", nodeid=2**32), "nodeid", "request.nodeid: expected 0 to 4294967295, found 4294967296 [Flux v1 nodeid]"),
    ("flux", lambda p: p.Control(type_=-1), "type", "control.type: expected 0 to 4294967295, found -1 [Flux v1 type]"),
    ("cmb1", lambda p: p.Request(topic="a", routes=(b"",)), "routes[0]", "request.routes[0]: expected at least 1 octet: an empty frame ends the stack, found 0 octets [CMB1 routing]"),
    ("cmb1_json", lambda p: p.Event(topic="a", payload=b"", json="{}"), "json", "event.json: expected None beside payload, found a value [CMB1 (JSON) json]"),
    ("norfab", lambda p: p.Open(header="NFPX01", body=b""), "header", "OPEN.header: expected NFPC01, NFPW01 or NFPB01, found str 'NFPX01' [NORFAB header-open]"),
    ("norfab", lambda p: p.Disconnect(header="NFPB01", service=None, body=b""), "body", "DISCONNECT.body: expected None, as the field before it, found bytes b'' [NORFAB body]"),
    ("norfab", lambda p: p.GetWorker(client_address=b"", uuid="u", body=b""), "client_address", "GET-worker.client_address: expected at least 1 octet, found 0 [NORFAB client-address]"),
    # Integers: what only looks like one, and both ends of the range.
    ("filemq", lambda p: burger(p, operation=b"\x01"), "operation", "CHEEZBURGER.operation: expected an integer, found bytes b'\\x01' [FILEMQ v2 operation]"),
    ("filemq", lambda p: burger(p, sequence=-1), "sequence", "CHEEZBURGER.sequence: expected 0 to 18446744073709551615, found -1 [FILEMQ v2 sequence]"),
    ("zre", lambda p: p.Ping(sequence=65536), "sequence", "ping.sequence: expected 0 to 65535, found 65536 [ZRE v2 sequence]"),
    # Texts: nothing that merely has an `encode` is one, surrogates are no UTF-8, NUL ends a topic.
    ("norfab", lambda p: p.Ready(p.Ready("x")), "service", "READY.service: expected text, found Ready Ready(service='x') [NORFAB service]"),
    ("norfab", lambda p: p.Ready(b"x"), "service", "READY.service: expected text, found bytes b'x' [NORFAB service]"),
    ("norfab", lambda p: p.Ready("a\udc80"), "service", r"READY.service: expected text that UTF-8 can write, found '\udc80' [NORFAB service]"),
    ("flux", lambda p: p.Request(topic="a", routes=("u", "a\0b")), "routes[1]", "request.routes[1]: expected text without NUL, found 0x00 [Flux v1 routing]"),
    ("flux", lambda p: p.Request(topic="\0"), "topic", "request.topic: expected text without NUL, found 0x00 [Flux v1 topic]"),
    ("flux", lambda p: p.Request(topic=b"a"), "topic", "request.topic: expected text, found bytes b'a' [Flux v1 topic]"),
    ("flux", lambda p: p.Request(routes="uv"), "routes", "request.routes: expected a tuple, found str 'uv' [Flux v1 routing]"),
    ("flux", lambda p: p.Request(payload=7), "payload", "request.payload: expected octets, found int 7 [Flux v1 payload]"),
    ("zmtp", lambda p: p.Greeting("x" * 21), "mechanism", "greeting.mechanism: expected at most 20 octets, found 21 [ZMTP v3.1 mechanism]"),
    ("zmtp", lambda p: p.Greeting("x\0"), "mechanism", "greeting.mechanism: expected text that does not end with 0x00, which fills it up, found str 'x\\x00' [ZMTP v3.1 mechanism]"),
    # Lists and dictionaries: lengths, counts, and items of the wrong kind.
    ("zre", lambda p: hello(p, groups=("ok", 1)), "groups[1]", "hello.groups[1]: expected text, found int 1 [ZRE v2 groups]"),
    ("zre", lambda p: hello(p, groups="ok"), "groups", "hello.groups: expected a tuple, found str 'ok' [ZRE v2 groups]"),
    ("zre", lambda p: hello(p, headers=(("n" * 256, ""),)), "headers[0].name", "hello.headers[0].name: expected at most 255 octets, found 256 [ZRE v2 headers]"),
    ("zmtp", lambda p: p.Ready((("n", "text"),)), "metadata[0].value", "ready.metadata[0].value: expected octets, found str 'text' [ZMTP v3.1 property]"),
    ("filemq", lambda p: p.Icanhaz("/", cache=(("a", "1"),) * 256), "cache", "ICANHAZ.cache: expected at most 255 entries, found 256 [FILEMQ v2 cache]"),
    # Octets: a view's octets count, not its items.
    ("zmtp", lambda p: p.Ping(0, memoryview(bytes(20)).cast("I")), "ping_context", "ping.ping_context: expected at most 16 octets, found 20 [ZMTP v3.1 ping-context]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "make", "field", "sentence"), REFUSED, ids=[f"{row[0]}-{row[2]}" for row in REFUSED]
)
def test_error_names_the_field(
    name: str, make: Callable[[Any], Message], field: str, sentence: str, build: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        make(package(name, build)).encode()
    assert caught.value.field == field
    assert str(caught.value) == sentence


# What just fits, with its octets put together by hand from the grammars.
FITTING: list[tuple[str, Callable[[Any], Message], list[bytes]]] = [
    ("filemq", lambda p: nom(p, 2**64 - 1), [b"\xaa\xa3\x07" + b"\xff" * 8]),
    ("filemq", lambda p: nom(p, True), [b"\xaa\xa3\x07" + bytes(7) + b"\x01"]),
    (
        "filemq",
        lambda p: burger(p, filename="\u00e9" * 127 + "x"),
        [b"\xaa\xa3\x08" + bytes(7) + b"\x01\x01\xff" + b"\xc3\xa9" * 127 + b"x" + bytes(9), b""],
    ),
    # A name without "=", a value with some; the same name twice is two entries.
    (
        "filemq",
        lambda p: burger(p, headers=(("a", "=b="), ("a", ""), ("", ""))),
        [b"\xaa\xa3\x08" + bytes(7) + b"\x01\x01\x02/a" + bytes(8) + b"\x03\x05a==b=\x02a=\x01=", b""],
    ),
    ("filemq", lambda p: p.Icanhaz("/", cache=(("a=b", "1"),)), [b"\xaa\xa3\x05\x01/\x00\x01\x05a=b=1"]),
    ("zre", lambda p: p.Ping(sequence=65535), [b"\xaa\xa1\x06\x02\xff\xff"]),
    (
        "zre",
        lambda p: hello(p, groups=("", "g"), headers=(("n" * 255, "v"), ("k", ""))),
        [
            b"\xaa\xa1\x01\x02\x00\x01\x00" + b"\x00\x00\x00\x02" + b"\x00\x00\x00\x00" + b"\x00\x00\x00\x01g"
            b"\x01\x00" + b"\x00\x00\x00\x02" + b"\xff" + b"n" * 255 + b"\x00\x00\x00\x01v" + b"\x01k" + bytes(4)
        ],
    ),
    ("flux", lambda p: p.Request(topic="", routes=None, userid=0, nodeid=0), [b"", b"\x8e\x01\x01\x01" + bytes(16)]),
    # 255 octets of body have a size of one octet, one more a size of eight.
    ("zmtp", lambda p: p.MessageLast(bytes(255)), [b"\x00\xff" + bytes(255)]),
    ("zmtp", lambda p: p.MessageLast(bytes(256)), [b"\x02\x00\x00\x00\x00\x00\x00\x01\x00" + bytes(256)]),
    ("zmtp", lambda p: p.Greeting("x" * 20), [b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"x" * 20 + bytes(32)]),
    ("zmtp", lambda p: p.Ping(0, memoryview(bytes(16)).cast("I")), [b"\x04\x17\x04PING\x00\x00" + bytes(16)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "frames"), FITTING, ids=[str(n) for n in range(len(FITTING))])
def test_what_just_fits_is_written(
    name: str, make: Callable[[Any], Message], frames: list[bytes], build: str
) -> None:
    assert make(package(name, build)).encode() == frames


class Subclass(bytes):
    """Octets with a type of their own."""


def test_views_byte_arrays_and_subclasses_are_octets(filemq: Any, norfab: Any) -> None:
    for chunk in (
        bytearray(b"ab"),
        memoryview(b"ab"),
        memoryview(bytearray(b"ab")),
        memoryview(b"a-b-")[::2],
        Subclass(b"ab"),
    ):
        assert burger(filemq, chunk=chunk).encode()[1] == b"ab"
        assert type(burger(filemq, chunk=chunk).encode()[1]) is bytes
    wide = array("I", [1, 2])
    assert burger(filemq, chunk=memoryview(wide)).encode()[1] == wide.tobytes()
    assert norfab.GetWorker(memoryview(b"c"), "u", b"").encode()[3] == b"c"


def test_other_integers_are_integers(filemq: Any) -> None:
    numpy = pytest.importorskip("numpy")
    assert nom(filemq, numpy.uint64(7)).encode() == nom(filemq, 7).encode()
    assert burger(filemq, operation=filemq.Operation.DELETE).encode() == burger(filemq, operation=2).encode()
    with pytest.raises(EncodeError) as caught:
        burger(filemq, sequence=numpy.uint64(7), offset=-1).encode()
    assert caught.value.field == "offset"
