"""`strict` is the letter of the specification: character classes, the NUL of Flux texts, what prose demands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.messages import Message
from tests.generated.builds import package

UUID = "70dfb1fc-960e-4235-aba3-0dd9f851bc54"
# Header of a request with topic (01) and delimiter (08): magic, version, type, flags, then four integers.
REQUEST = b"\x8e\x01\x01\x09" + b"\xff\xff\xff\xff" + bytes(4) + b"\xff\xff\xff\xff" + bytes(4)


def test_flux_request_by_the_letter(flux: Any) -> None:
    """Topic and routes end with NUL; by default they do not."""
    message = flux.Request(topic="kvs.get", routes=(UUID,))
    assert message.encode() == [UUID.encode(), b"", b"kvs.get", REQUEST]
    letter = [UUID.encode() + b"\0", b"", b"kvs.get\0", REQUEST]
    assert message.encode(strict=True) == letter
    assert flux.decode(letter) == flux.decode(letter, strict=True) == message


@pytest.mark.parametrize("name", ["Event", "Control"])
def test_flux_event_and_control_have_no_delimiter_by_the_letter(name: str, flux: Any) -> None:
    class_ = flux.MESSAGES[name]
    message = class_(topic="hb", routes=()) if name == "Event" else class_(routes=())
    assert message.wire_flags & 0x08
    by_default, letter = message.encode(), message.encode(strict=True)
    assert by_default[0] == b""
    assert len(letter) == len(by_default) - 1
    assert letter[-1][3] & 0x08 == 0
    assert flux.decode(letter, strict=True) == message.replace(routes=None)
    with pytest.raises(DecodeError) as caught:
        flux.decode(by_default, strict=True)
    assert caught.value.field == "routes"


def test_flux_event_with_routes_is_not_the_letter(flux: Any) -> None:
    with pytest.raises(EncodeError) as caught:
        flux.Event(topic="hb", routes=(UUID,)).encode(strict=True)
    assert caught.value.field == "routes"
    assert flux.Event(topic="hb", routes=(UUID,)).encode()[0] == UUID.encode()


def test_default_event_encodes_by_the_letter(flux: Any) -> None:
    assert flux.Event(topic="hb").encode(strict=True)[0] == b"hb\0"


REFUSED: list[tuple[str, list[bytes], str | None, int | None, int | None]] = [
    # Flux: a text without its NUL; characters that the rule does not have; a part that prose demands.
    ("flux", [b"", b"kvs.get", REQUEST], "topic", 1, 7),
    ("flux", [b"", b"kvs get\0", REQUEST], "topic", 1, 3),
    ("flux", [b"", b"caf\xc3\xa9\0", REQUEST], "topic", 1, 3),
    ("flux", [b"not-a-uuid\0", b"", b"a\0", REQUEST], "routes[0]", 0, 0),
    ("flux", [b"a\0", REQUEST[:3] + b"\x01" + REQUEST[4:]], "routes", 0, None),
    ("flux", [b"", REQUEST[:3] + b"\x08" + REQUEST[4:]], "topic", 1, None),
    # CMB1: 1*(ALPHA / DIGIT / "."), so neither a hyphen nor nothing.
    ("cmb1", [b"state-machine.get", b"\x8e\x01\x01\x01" + bytes(16)], "topic", 0, 5),
    ("cmb1", [b"", b"\x8e\x01\x01\x01" + bytes(16)], "topic", 0, 0),
    # JSON that is none, and JSON that is no object.
    ("cmb1_json", [b"a", b"{", b"\x8e\x01\x01\x07" + bytes(16)], "json", 1, 1),
    ("cmb1_json", [b"a", b"[1]", b"\x8e\x01\x01\x07" + bytes(16)], "json", 1, 0),
    ("cmb1_json", [b"a", b"[" * 100_000, b"\x8e\x01\x01\x07" + bytes(16)], "json", 1, 0),
    # FILEMQ: VCHAR has no space and no UTF-8; signature and number are 3 octets, the length one.
    ("filemq", [b"\xaa\xa3\x80\x09bad thing"], "reason", 0, 7),
    ("filemq", [b"\xaa\xa3\x05\x03/\xc3\xa9\x00\x00"], "path", 0, 5),
    ("filemq", [b"\xaa\xa3\x05\x01/\x01\x04a=b c"[:-1] + b"\x00"], "options[0].value", 0, 10),
    ("filemq", [b"\xaa\xa3\x05\x01/\x01\x04\x7fa=b\x00"], "options[0].name", 0, 7),
    # NORFAB: three digits, then a space before words.
    ("norfab", [b"", b"NFPB01", b"\x05", b"s", b"u", b"2000", b""], "status", 5, 3),
    ("norfab", [b"", b"NFPB01", b"\x05", b"s", b"u", b"20", b""], "status", 5, 0),
    ("norfab", [b"", b"NFPW01", b"\x01", b"a b"], "service", 3, 1),
]


@pytest.mark.parametrize(("name", "frames", "field", "frame", "offset"), REFUSED)
def test_letter_refuses_what_is_read_by_default(
    name: str, build: str, frames: list[bytes], field: str, frame: int, offset: int
) -> None:
    module = package(name, build)
    message = module.decode(frames)
    with pytest.raises(DecodeError) as caught:
        module.decode(frames, strict=True)
    assert (caught.value.field, caught.value.frame, caught.value.offset) == (field, frame, offset)
    assert "disagreement" not in str(caught.value)
    assert module.decode(message.encode()) == message


@pytest.mark.parametrize(
    ("name", "make", "field"),
    [
        ("filemq", lambda p: p.Srsly("bad thing"), "reason"),
        ("filemq", lambda p: p.Icanhaz("/", options=(("a b", ""),)), "options[0].name"),
        ("cmb1", lambda p: p.Request(topic="a-b"), "topic"),
        ("cmb1_json", lambda p: p.Event(topic="a", json="[]"), "json"),
        ("norfab", lambda p: p.Ready(service="a b"), "service"),
        ("flux", lambda p: p.Request(), "topic"),
    ],
)
def test_letter_is_not_written_where_it_is_not_kept(
    name: str, build: str, make: Callable[[Any], Message], field: str
) -> None:
    message = make(package(name, build))
    assert message.encode()
    with pytest.raises(EncodeError) as caught:
        message.encode(strict=True)
    assert caught.value.field == field
    assert caught.value.message_name == message.NAME


def test_other_faults_are_found_under_strict_too(filemq: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        filemq.decode([b"\xaa\xa3\x07\x00"], strict=True)
    assert str(caught.value) == "NOM.credit at octet 3: expected 8 octets, found 1 [FILEMQ v2 credit]"
