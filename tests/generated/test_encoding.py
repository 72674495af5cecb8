"""Whatever encodes decodes to an equal message; what does not is refused by both paths with its field."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated import cmb1, cmb1_json, filemq, flux, libfilemq, norfab
from specwire.generated.errors import EncodeError
from specwire.generated.messages import Message
from specwire.generated.unfit import explain_encode
from tests.generated import strategies
from tests.generated.agreement import assert_agreement, layout_of
from tests.generated.vectors import PACKAGES, package


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
    if module is flux and type(message) in (flux.Event, flux.Control) and message.routes == ():  # type: ignore[attr-defined]
        # The letter forbids these two a delimiter, so an empty stack is not written.
        message = message.replace(routes=None)
    assert module.decode(frames, strict=True) == message
    assert module.decode(frames) == message


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_fitting_message_comes_back(name: str, data: st.DataObject) -> None:
    module = package(name)
    message = data.draw(strategies.messages(module))
    frames = message.encode()
    assert module.decode(frames) == message
    assert assert_agreement(module, frames)
    assert_letter(module, message)


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_values_encode_or_are_refused_by_both_paths(name: str, data: st.DataObject) -> None:
    module = package(name)
    message = data.draw(strategies.anything(module))
    assert_encodes_or_says_why(module, message)
    assert_letter(module, message)


def nom(credit: object) -> Message:
    return filemq.Nom(credit)  # type: ignore[arg-type]


def burger(**changes: object) -> Message:
    fine = filemq.Cheezburger(sequence=1, operation=1, filename="/a", offset=0, headers=(), chunk=b"")
    return fine.replace(**changes)


REFUSED: list[tuple[Message, str, str]] = [
    (nom(-1), "credit", "NOM.credit: expected 0 to 18446744073709551615, found -1 [FILEMQ v2 credit]"),
    (nom(2**64), "credit", "NOM.credit: expected 0 to 18446744073709551615, found 18446744073709551616 [FILEMQ v2 credit]"),
    (nom(10**5000), "credit", "NOM.credit: expected 0 to 18446744073709551615, found a number of 16610 bits [FILEMQ v2 credit]"),
    (nom("1"), "credit", "NOM.credit: expected an integer, found str '1' [FILEMQ v2 credit]"),
    (nom(1.5), "credit", "NOM.credit: expected an integer, found float 1.5 [FILEMQ v2 credit]"),
    (nom(None), "credit", "NOM.credit: expected an integer, found None [FILEMQ v2 credit]"),
    (burger(operation=3), "operation", "CHEEZBURGER.operation: expected 1 or 2, found 3 [FILEMQ v2 operation]"),
    (burger(operation=1.0), "operation", "CHEEZBURGER.operation: expected an integer, found float 1.0 [FILEMQ v2 operation]"),
    (burger(filename="x" * 256), "filename", "CHEEZBURGER.filename: expected at most 255 octets, found 256 [FILEMQ v2 filename]"),
    (burger(filename="\u00e9" * 128), "filename", "CHEEZBURGER.filename: expected at most 255 octets, found 256 [FILEMQ v2 filename]"),
    (burger(filename="\ud800"), "filename", r"CHEEZBURGER.filename: expected text that UTF-8 can write, found '\ud800' [FILEMQ v2 filename]"),
    (burger(filename=b"/a"), "filename", "CHEEZBURGER.filename: expected text, found bytes b'/a' [FILEMQ v2 filename]"),
    (burger(chunk="text"), "chunk", "CHEEZBURGER.chunk: expected octets, found str 'text' [FILEMQ v2 chunk]"),
    (burger(headers=[("a", "b")]), "headers", "CHEEZBURGER.headers: expected a tuple, found list [('a', 'b')] [FILEMQ v2 headers]"),
    (burger(headers={"ab": 1}), "headers", "CHEEZBURGER.headers: expected a tuple, found dict {'ab': 1} [FILEMQ v2 headers]"),
    (burger(headers=("ab",)), "headers[0]", "CHEEZBURGER.headers[0]: expected a pair of name and value, found str 'ab' [FILEMQ v2 key-value]"),
    (burger(headers=(("a", "b"), ("c=", "d"))), "headers[1].name", "CHEEZBURGER.headers[1].name: expected a name without '=', found 'c=' [FILEMQ v2 key-value]"),
    (burger(headers=(("a", 1),)), "headers[0].value", "CHEEZBURGER.headers[0].value: expected text, found int 1 [FILEMQ v2 key-value]"),
    (burger(headers=(("a", "x" * 254),)), "headers[0]", "CHEEZBURGER.headers[0]: expected at most 255 octets, found 256 [FILEMQ v2 key-value]"),
    (burger(headers=(("a", ""),) * 256), "headers", "CHEEZBURGER.headers: expected at most 255 entries, found 256 [FILEMQ v2 headers]"),
    (filemq.Icanhaz("/", cache=(("a", "="),)), "cache[0].value", "ICANHAZ.cache[0].value: expected a value without '=', found '=' [FILEMQ v2 key-value]"),
    (libfilemq.Icanhaz("/", options=(("x" * 256, ""),)), "options[0].name", "ICANHAZ.options[0].name: expected at most 255 octets, found 256 [libfilemq 2 options]"),
    (flux.Request(topic="a\0"), "topic", "request.topic: expected text without NUL, found 0x00 [Flux v1 topic]"),
    (flux.Request(topic="a", routes=("u", "")), "routes[1]", "request.routes[1]: expected at least 1 octet: an empty frame ends the stack, found 0 octets [Flux v1 routing]"),
    (flux.Request(topic="a", flags=flux.Flags.TOPIC | flux.Flags.STREAMING), "flags", "request.flags: expected no bit of 0x0b: they follow from the other fields, found 0x01 [Flux v1 flags]"),
    (flux.Request(topic="a", flags=256), "flags", "request.flags: expected 0 to 255, found 256 [Flux v1 flags]"),
    (flux.Request(topic="a", nodeid=2**32), "nodeid", "request.nodeid: expected 0 to 4294967295, found 4294967296 [Flux v1 nodeid]"),
    (flux.Control(type_=-1), "type", "control.type: expected 0 to 4294967295, found -1 [Flux v1 type]"),
    (cmb1.Request(topic="a", routes=(b"",)), "routes[0]", "request.routes[0]: expected at least 1 octet: an empty frame ends the stack, found 0 octets [CMB1 routing]"),
    (cmb1_json.Event(topic="a", payload=b"", json="{}"), "json", "event.json: expected None beside payload, found a value [CMB1 (JSON) json]"),
    (norfab.Open(header="NFPX01", body=b""), "header", "OPEN.header: expected NFPC01 or NFPW01 or NFPB01, found str 'NFPX01' [NORFAB header-open]"),
    (norfab.Disconnect(header="NFPB01", service=None, body=b""), "body", "DISCONNECT.body: expected None, as the field before it, found bytes b'' [NORFAB body]"),
    (norfab.GetWorker(client_address=b"", uuid="u", body=b""), "client_address", "GET-worker.client_address: expected at least 1 octet, found 0 [NORFAB client-address]"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "field", "sentence"), REFUSED, ids=[field for _, field, _ in REFUSED])
def test_error_names_the_field(message: Message, field: str, sentence: str) -> None:
    with pytest.raises(EncodeError) as caught:
        message.encode()
    assert caught.value.field == field
    assert str(caught.value) == sentence


def test_views_and_byte_arrays_are_octets() -> None:
    for chunk in (bytearray(b"ab"), memoryview(b"ab"), memoryview(bytearray(b"ab"))):
        assert burger(chunk=chunk).encode()[1] == b"ab"
        assert type(burger(chunk=chunk).encode()[1]) is bytes
    assert norfab.GetWorker(memoryview(b"c"), "u", b"").encode()[3] == b"c"  # type: ignore[arg-type]


def test_other_integers_are_integers() -> None:
    numpy = pytest.importorskip("numpy")
    assert nom(numpy.uint64(7)).encode() == nom(7).encode()
    assert burger(operation=filemq.Operation.DELETE).encode() == burger(operation=2).encode()
    with pytest.raises(EncodeError) as caught:
        burger(sequence=numpy.uint64(7), offset=-1).encode()
    assert caught.value.field == "offset"
