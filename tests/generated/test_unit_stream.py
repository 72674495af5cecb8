"""Messages that follow each other on a byte stream and say themselves how long they are, however they are cut.

The framing is that of ZMTP commands (RFC 37): 04 and a size of one octet, or 06 and a size of eight; and one
unit of fixed length, as a greeting is.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError
from specwire.generated.stream import Head, MessageStream, UnitFraming
from tests.examples import examples

FRAMING = UnitFraming(
    protocol="demo",
    edition="Demo v1",
    heads=(Head(b"\x04", size_octets=1), Head(b"\x06", size_octets=8), Head(b"\xff\x00", octets=5),
           Head(b"\xff\x01", skip=2, size_octets=2)),
)  # fmt: skip
SHORT = b"\x04\x02ab"
LONG = b"\x06\x00\x00\x00\x00\x00\x00\x00\x03abc"
GREETING = b"\xff\x00xyz"
SKIPPING = b"\xff\x01..\x00\x01z"


def decoder(max_octets: int = 100) -> MessageStream[bytes]:
    """A stream whose messages are their own octets; one with ``!`` is refused by the codec."""

    def decode(parts: list[bytes]) -> bytes:
        (part,) = parts
        if b"!" in part:
            raise FRAMING.error("text", "no '!'", "'!'", part.index(b"!"))
        return part

    return MessageStream(FRAMING, decode, max_octets)


units = st.lists(st.sampled_from((SHORT, LONG, GREETING, SKIPPING, b"\x04\x00")), max_size=6)


@settings(max_examples=examples(40), deadline=None)
@given(units, st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_cut_anywhere(messages: list[bytes], sizes: list[int]) -> None:
    octets = b"".join(messages)
    stream, found, at = decoder(), [], 0
    for size in itertools.cycle(sizes):
        if at >= len(octets):
            break
        found += stream.feed(octets[at : at + size])
        at += size
    assert found == messages
    stream.eof()


@pytest.mark.parametrize(
    ("octets", "kind", "offset", "expected", "found"),
    [
        (b"\x05\x00", "tag", 0, "0x04, 0x06, 0xff00 or 0xff01", "0x05"),
        (b"\xff\x02", "tag", 1, "0x00 or 0x01", "0x02"),
        (b"\x04\xff", "limit", 1, "at most 100 octets", "257"),
        (b"\x06" + b"\xff" * 8, "limit", 1, "at most 100 octets", str(2**64 - 1 + 9)),
        (b"\xff\x01..\xff\xff", "limit", 4, "at most 100 octets", str(65535 + 6)),
    ],
)
def test_faults(octets: bytes, kind: str, offset: int, expected: str, found: str) -> None:
    """At its octet, and before anybody waits for what an absurd size promises."""
    for size in (1, len(octets)):
        stream = decoder()
        with pytest.raises(DecodeError) as caught:
            for at in range(0, len(octets), size):
                assert stream.feed(octets[at : at + size]) == []
        error = caught.value
        assert (error.kind, error.offset, error.expected) == (kind, offset, expected)
        assert error.found == found or size == 1
        assert stream.fault is error


def test_a_foreign_first_octet_where_all_begin_alike_is_no_unknown_tag() -> None:
    framing = UnitFraming("demo", "Demo v1", (Head(b"\xaa\x01", octets=2), Head(b"\xaa\x02", octets=2)))
    for octets, kind, offset in ((b"\xab", "constant", 0), (b"\xaa\x03", "tag", 1)):
        with pytest.raises(DecodeError) as caught:
            MessageStream(framing, lambda parts: parts, 10).feed(octets)
        assert (caught.value.kind, caught.value.offset) == (kind, offset)


def test_what_was_whole_before_a_fault_is_given_out() -> None:
    for fault in (b"\x05", b"\x04\x01!"):
        stream = decoder()
        assert stream.feed(SHORT + LONG + fault + SHORT) == [SHORT, LONG]
        for again in (b"", SHORT):
            with pytest.raises(DecodeError):
                stream.feed(again)
        with pytest.raises(DecodeError):
            stream.eof()


@pytest.mark.parametrize("held", [b"\x04", b"\x04\x02a", b"\xff", b"\x06\x00", GREETING[:4]])
def test_an_end_inside_a_message(held: bytes) -> None:
    stream = decoder()
    assert stream.feed(SHORT + held) == [SHORT]
    with pytest.raises(DecodeError) as caught:
        stream.eof()
    assert (caught.value.kind, caught.value.offset) == ("length", len(held))


def test_the_longest_message_is_accepted() -> None:
    assert decoder(4).feed(SHORT) == [SHORT]
    with pytest.raises(DecodeError):
        decoder(3).feed(SHORT[:2])
    with pytest.raises(DecodeError):
        decoder(4).feed(GREETING[:2])


def test_a_unit_is_its_own_frame() -> None:
    assert FRAMING.frame([SHORT]) == SHORT
