"""The wire format as deployed brokers write it, and by the letter of the specification."""

from __future__ import annotations

import sys

import pytest

from specwire.generated.errors import DecodeError
from specwire.generated.flux import AnyMessage, Control, Event, Request, Response
from specwire.generated.stream import MessageStream
from specwire.runtime.flux.wire import FLUX, LETTER

UUID = "c95b7aad-30ca-49ba-8821-9eca9ddcadb9"
REQUEST = Request(routes=(UUID,), topic="a.b", payload=b"{}\0")


def test_text_ends_with_nul_by_the_letter_only() -> None:
    """Topics and routes: NULL-terminated in the specification, never in deployed peers."""
    assert FLUX.encode(REQUEST)[:4] == [UUID.encode(), b"", b"a.b", b"{}\0"]
    assert LETTER.encode(REQUEST)[:4] == [UUID.encode() + b"\0", b"", b"a.b\0", b"{}\0"]


def test_events_and_control_have_no_delimiter_by_the_letter() -> None:
    """The message SHALL NOT include routes or a route delimiter; deployed peers always write it."""
    for message in (Event(topic="a", sequence=1), Control(routes=())):
        assert FLUX.encode(message)[0] == b""
        assert b"" not in LETTER.encode(message)


@pytest.mark.parametrize(
    "message", [REQUEST, Response(topic="a", errnum=38), Event(topic="a", sequence=2), Control()]
)
def test_both_read_both(message: AnyMessage) -> None:
    """Whichever is written, each reads the same from it, but for the delimiter that is left out."""
    for writer in (FLUX, LETTER):
        for reader in (FLUX, LETTER):
            read = reader.decode(writer.encode(message))
            assert read.replace(routes=read.routes or ()) == message.replace(routes=message.routes or ())


WIRES = [FLUX, LETTER]
PROTO = b"\x8e\x01"
UNKNOWN, NONE = b"\xff\xff\xff\xff", bytes(4)  # userid-unknown and nodeid-any; rolemask and matchtag-none

DEVIATIONS = [
    # A route or a topic: "a message part containing a NULL-terminated UUID string", "a NULL-terminated string".
    pytest.param(
        Request((UUID,), "a.b", b"{}\0"),
        [UUID.encode(), b"", b"a.b", b"{}\0", PROTO + b"\x01\x0b" + UNKNOWN + NONE + UNKNOWN + NONE],
        [
            UUID.encode() + b"\0",
            b"",
            b"a.b\0",
            b"{}\0",
            PROTO + b"\x01\x0b" + UNKNOWN + NONE + UNKNOWN + NONE,
        ],
        id="request",
    ),
    # 38 (hex 26) or 39 (hex 27) is the engine's to say (`Rules`); the octets differ in the text only.
    pytest.param(
        Response((), "a.b", None, 0, 0, 5, 39, 1),
        [b"", b"a.b", PROTO + b"\x02\x09" + NONE + b"\0\0\0\5\0\0\0\x27\0\0\0\1"],
        [b"", b"a.b\0", PROTO + b"\x02\x09" + NONE + b"\0\0\0\5\0\0\0\x27\0\0\0\1"],
        id="response",
    ),
    # "The message SHALL NOT include routes or a route delimiter": neither the part nor flag 08.
    pytest.param(
        Event((), "a.b", None, 0, 0, 5, 7),
        [b"", b"a.b", PROTO + b"\x04\x09" + NONE + b"\0\0\0\5\0\0\0\7" + NONE],
        [b"a.b\0", PROTO + b"\x04\x01" + NONE + b"\0\0\0\5\0\0\0\7" + NONE],
        id="event",
    ),
    pytest.param(
        Control((), 0, 0xFFFFFFFF, 0, 1, 3),
        [b"", PROTO + b"\x08\x08" + UNKNOWN + NONE + b"\0\0\0\1\0\0\0\3"],
        [PROTO + b"\x08\x00" + UNKNOWN + NONE + b"\0\0\0\1\0\0\0\3"],
        id="control",
    ),
]


@pytest.mark.parametrize(("message", "deployed", "letter"), DEVIATIONS)
def test_deviations_octet_for_octet(message: AnyMessage, deployed: list[bytes], letter: list[bytes]) -> None:
    """As deployed peers write a message, and as the specification does."""
    assert FLUX.encode(message) == deployed
    assert LETTER.encode(message) == letter


def test_magic_on_a_unix_socket() -> None:
    """Deployed peers write the magic as a number of the machine; the specification has FF EE 00 12. Both read both."""
    frames = [b"", b"a", PROTO + b"\x01\x09" + UNKNOWN + NONE + UNKNOWN + NONE]
    # Parts: 0 octets, 1 octet "a", 20 octets; 24 octets with their sizes, which is hex 18.
    body = b"\0\0\0\x18\0\x01a\x14" + frames[-1]
    native = b"\x12\x00\xee\xff" if sys.byteorder == "little" else b"\xff\xee\x00\x12"
    assert FLUX.framing.frame(frames) == native + body
    assert LETTER.framing.frame(frames) == b"\xff\xee\x00\x12" + body
    for reader in WIRES:
        stream = MessageStream(reader.framing, reader.decode, 1024)
        for magic in (b"\x12\x00\xee\xff", b"\xff\xee\x00\x12"):
            assert stream.feed(magic + body) == [Request((), "a")]


def test_letter_refuses_what_it_could_not_pass_on() -> None:
    """A topic with a blank is none, by the letter; it is malformed there, and passes where brokers are deployed."""
    frames = [b"", b"a b", PROTO + b"\x01\x09" + UNKNOWN + NONE + UNKNOWN + NONE]
    assert FLUX.decode(frames) == Request((), "a b")
    with pytest.raises(DecodeError, match=r"request\.topic"):
        LETTER.decode(frames)


def test_error_numbers() -> None:
    """ "Function not implemented" is 38 where it is measured, and 39 as the specification writes it."""
    assert (FLUX.rules.not_implemented, LETTER.rules.not_implemented) == (38, 39)
