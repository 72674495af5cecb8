"""Flux messages on a byte stream: as the real broker frames them, however the octets are cut."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.builds import PURE, find_native
from specwire.generated.errors import DecodeError
from specwire.generated.flux.stream import FRAMING
from specwire.generated.messages import Message
from tests.cases import each_case
from tests.examples import examples
from tests.generated import strategies
from tests.generated.vectors import Vector, entries, recorded

FRAMED = [vector for vector in recorded("flux") if vector.framed and vector.class_name]
BIG, LITTLE = b"\xff\xee\x00\x12", b"\x12\x00\xee\xff"


def framed(body: bytes, magic: bytes = LITTLE) -> bytes:
    """Return `body` behind its framing header: magic, then its length in four octets."""
    return magic + len(body).to_bytes(4, "big") + body


def test_some_messages_were_recorded_framed() -> None:
    assert len(FRAMED) > 80


@pytest.mark.parametrize("size", [None, 1, 7], ids=["one piece", "octet by octet", "seven at once"])
def test_recorded_streams(size: int | None, flux: Any) -> None:
    for vector in FRAMED:
        decoder = flux.StreamDecoder()
        octets = vector.framed
        pieces = [octets[i : i + (size or len(octets))] for i in range(0, len(octets), size or len(octets))]
        found = [message for piece in pieces for message in decoder.feed(piece)]
        assert found == [flux.decode(vector.frames)]
        decoder.eof()


def test_all_recorded_messages_on_one_stream(flux: Any) -> None:
    octets = b"".join(vector.framed for vector in FRAMED)
    expected = [flux.decode(vector.frames) for vector in FRAMED]
    assert flux.StreamDecoder().feed(octets) == expected
    decoder = flux.StreamDecoder()
    assert [m for i in range(0, len(octets), 100) for m in decoder.feed(octets[i : i + 100])] == expected


@pytest.mark.skipif(sys.byteorder != "little", reason="recorded on a little-endian machine")
@each_case("vector", lambda: FRAMED)
def test_frames_as_the_broker_does(vector: Vector, flux: Any) -> None:
    """The magic in the order of the machine; a part of 255 octets or more has a long size."""
    assert flux.frame(flux.decode(vector.frames)) == vector.framed


def test_both_magics_are_read(flux: Any) -> None:
    message = flux.Request(topic="a")
    octets = flux.frame(message)
    for magic in (BIG, LITTLE):
        assert flux.StreamDecoder().feed(magic + octets[4:]) == [message]


def test_long_size_where_a_short_one_would_do(flux: Any) -> None:
    header = b"\x8e\x01\x01\x01" + bytes(16)
    body = b"\xff\x00\x00\x00\x01a" + b"\x14" + header
    assert flux.StreamDecoder().feed(framed(body)) == [flux.decode([b"a", header])]


# What the C decoder says, with the class and topic that it found, or the field that we name.
C_ACCEPTS: dict[str, tuple[str, str | None, tuple[str, ...] | None]] = {
    "proto only request, no flags": ("Request", None, None),
    "TOPIC flag zero length topic": ("Request", "", None),
    "noresponse|streaming both set": ("Request", "top", None),
}
C_REFUSES: dict[str, tuple[str | None, int | None, int | None]] = {
    "ROUTE flag, route then proto w/o delimiter": ("routes", 2, None),
    "TOPIC flag, topic missing": ("topic", 0, None),
    "type 3": ("id", 0, 2),
    "proto version 2": ("version", 0, 1),
    "part length overruns": ("framing", None, 0),
    "long length 0xffffffff": ("framing", None, 0),
    "single empty frame": ("magic", 0, 0),
}
WE_DIFFER = {
    # The C decoder drops them; we refuse what we could not give back.
    "extra frames before proto": "request in frame 1: expected 2 frames, found 4 [Flux v1 request]",
    # The C decoder does not look at the last four octets of an event, which the grammar fixes and every
    # recorded event keeps to; the delimiter itself is read, see below.
    "event w/ route flag": "event.unused at octet 16 in frame 2: expected 0x00000000, found 0x00000001 [Flux v1 unused]",
}
FOR_AN_ENGINE = {
    "stray RESPONSE from local client, empty route stack": "a good message at the wrong time: the broker's engine drops it",
}


def body_of(name: str) -> bytes:
    (entry,) = (entry for entry in entries("flux-malformed.json") if entry["name"] == name)
    return bytes.fromhex(entry["body_hex"])


def test_every_malformed_body_is_in_one_table() -> None:
    tables = (C_ACCEPTS, C_REFUSES, WE_DIFFER, FOR_AN_ENGINE)
    names = [name for table in tables for name in table]
    assert sorted(names) == sorted(entry["name"] for entry in entries("flux-malformed.json"))
    for entry in entries("flux-malformed.json"):
        assert (entry["errno"] in (22, 71)) == (entry["name"] in C_REFUSES)


@pytest.mark.parametrize("name", C_ACCEPTS)
def test_what_the_c_decoder_accepts(name: str, flux: Any) -> None:
    (message,) = flux.StreamDecoder().feed(framed(body_of(name)))
    class_name, topic, routes = C_ACCEPTS[name]
    assert type(message) is flux.MESSAGES[class_name]
    assert (message.topic, message.routes) == (topic, routes)
    assert flux.frame(message)[8:] == body_of(name)


@pytest.mark.parametrize("name", C_REFUSES)
def test_what_the_c_decoder_refuses(name: str, flux: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        flux.StreamDecoder().feed(framed(body_of(name)))
    error = caught.value
    assert (error.field, error.frame, error.offset) == C_REFUSES[name]


@pytest.mark.parametrize("name", WE_DIFFER)
def test_what_only_the_c_decoder_accepts(name: str, flux: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        flux.StreamDecoder().feed(framed(body_of(name)))
    assert str(caught.value) == WE_DIFFER[name]


def test_event_with_delimiter(flux: Any) -> None:
    """The body of the vector, with the last four octets as the grammar has them."""
    body = body_of("event w/ route flag")[:-4] + bytes(4)
    assert flux.StreamDecoder().feed(framed(body)) == [
        flux.Event(topic="top", routes=(), userid=0xFFFFFFFF, sequence=0xFFFFFFFF)
    ]


def test_stray_response_is_a_message(flux: Any) -> None:
    (name,) = FOR_AN_ENGINE
    (message,) = flux.StreamDecoder().feed(framed(body_of(name)))
    assert message == flux.Response(topic="h2.resp", userid=0xFFFFFFFF, matchtag=3)


def test_empty_body_is_refused(flux: Any) -> None:
    """It aborts the real broker."""
    with pytest.raises(DecodeError) as caught:
        flux.StreamDecoder().feed(framed(b""))
    assert caught.value.kind == "frames"


@pytest.mark.parametrize("octets", [b"\x00", b"\x12\x01", b"\xff\xee\x01", LITTLE[:3] + b"\x00"])
def test_foreign_magic_is_refused_at_once(octets: bytes, flux: Any) -> None:
    decoder = flux.StreamDecoder()
    with pytest.raises(DecodeError) as caught:
        decoder.feed(octets)
    assert caught.value.kind == "constant"
    assert caught.value.offset == 0
    assert str(caught.value).startswith(
        "flux.framing at octet 0: expected ff ee 00 12 or 12 00 ee ff, found "
    )


def test_length_beyond_the_limit_is_refused_before_the_message_comes(flux: Any) -> None:
    decoder = flux.StreamDecoder(max_octets=100)
    assert decoder.feed(LITTLE) == []
    tracemalloc.start()
    with pytest.raises(DecodeError) as caught:
        decoder.feed(b"\xff\xff\xff\xff")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
    assert (caught.value.kind, caught.value.found) == ("limit", "4294967295")
    assert flux.StreamDecoder(max_octets=22).feed(framed(b"\x14\x8e\x01\x01\x00" + bytes(16))) != []


def test_end_in_the_middle(flux: Any) -> None:
    octets = flux.frame(flux.Request(topic="a"))
    for size in range(1, len(octets)):
        decoder = flux.StreamDecoder()
        assert decoder.feed(octets[:size]) == []
        with pytest.raises(DecodeError) as caught:
            decoder.eof()
        assert (caught.value.kind, caught.value.offset) == ("length", size)
    flux.StreamDecoder().eof()


def outcome(flux: Any, octets: bytes, cuts: list[int]) -> tuple[list[Message], str | None]:
    """Feed `octets` in pieces that end at `cuts`; return the messages, and the error that ended the stream."""
    decoder = flux.StreamDecoder()
    messages: list[Message] = []
    places = [0, *sorted(cut % (len(octets) + 1) for cut in cuts), len(octets)]
    try:
        for start, end in itertools.pairwise(places):
            messages += decoder.feed(octets[start:end])
        decoder.eof()
    except DecodeError as error:
        with pytest.raises(DecodeError):
            decoder.feed(flux.frame(flux.Request(topic="late")))
        assert decoder.fault is None or decoder.fault is error
        return messages, str(error)
    return messages, None


@settings(max_examples=examples(60), deadline=None)
@given(
    data=st.data(),
    tail=st.sampled_from(
        [b"", b"x", framed(b""), framed(b"\x20ab"), framed(b"\x00"), LITTLE + b"\x7f\0\0\0"]
    ),
    cuts=st.lists(st.integers(0, 10_000), max_size=8),
)
def test_cuts_change_nothing(flux: Any, data: st.DataObject, tail: bytes, cuts: list[int]) -> None:
    """Whole messages in front of a fault come out, and the fault after them, wherever the octets are cut."""
    messages = data.draw(st.lists(strategies.messages(flux), max_size=3))
    octets = b"".join(flux.frame(message) for message in messages) + tail
    whole = outcome(flux, octets, [])
    assert whole[0] == messages
    assert (whole[1] is None) == (tail == b"")
    assert outcome(flux, octets, cuts) == whole


def test_fault_is_known_before_the_next_call(flux: Any) -> None:
    """A shell that has no more octets to feed learns that it can close the connection."""
    decoder = flux.StreamDecoder()
    message = flux.Request(topic="a")
    assert decoder.fault is None
    assert decoder.feed(flux.frame(message) + b"garbage") == [message]
    assert decoder.fault is not None
    assert decoder.fault.kind == "constant"
    with pytest.raises(DecodeError):
        decoder.feed(b"")


@pytest.mark.parametrize("size", [0, 1, 254, 255, 256, 65536, 1024 * 1024])
def test_sizes_of_parts(size: int, flux: Any) -> None:
    message = flux.Request(topic="a", payload=bytes(size))
    octets = flux.frame(message)
    payload_at = 8 + 1 + 2  # Header, empty delimiter, one octet of topic with its size.
    expected = bytes((size,)) if size < 255 else b"\xff" + size.to_bytes(4, "big")
    assert octets[payload_at : payload_at + len(expected)] == expected
    assert flux.StreamDecoder().feed(octets) == [message]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_no_message_fits_is_refused(limit: int, flux: Any) -> None:
    with pytest.raises(ValueError, match="max_octets must be at least 1"):
        flux.StreamDecoder(max_octets=limit)


PARTS = st.lists(
    st.one_of(st.binary(max_size=8), st.binary(min_size=250, max_size=300)), min_size=1, max_size=5
)


@given(st.lists(PARTS, min_size=1, max_size=3), st.booleans(), st.data())
def test_both_ways_to_cut_find_the_same(messages: list[list[bytes]], big: bool, data: st.DataObject) -> None:
    """What is compiled takes apart what Python does, message by message, and stops where that sees a fault or an end."""
    quick = FRAMING.quick_cut
    if quick is None:
        pytest.skip("not compiled")
    octets = bytearray(b"".join(map(FRAMING.frame, messages)))
    if big:
        octets[:4] = BIG
    if data.draw(st.booleans()):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    octets = octets[: data.draw(st.integers(0, len(octets)))]
    limit = data.draw(st.sampled_from([20, 300, 10_000]))
    at, found = 0, []
    with contextlib.suppress(DecodeError):
        while at < len(octets) and (cut := FRAMING.cut(octets, at, limit)):
            at = cut[0]
            found.append(cut[1])
    assert quick(bytes(octets), limit) == (at, found)


@given(PARTS)
def test_both_ways_to_frame_give_the_same(parts: list[bytes]) -> None:
    """What is compiled puts parts together as Python does; a list of other octets than bytes is left to Python."""
    slowly = dataclasses.replace(FRAMING)
    object.__setattr__(slowly, "_quick", None)
    others: list[Any] = [bytearray(part) for part in parts]
    assert FRAMING.frame(parts) == slowly.frame(parts) == FRAMING.frame(others)
    assert FRAMING.frame(tuple(parts)) == slowly.frame(parts)


def test_build_in_python_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """``SPECWIRE_PURE=1``, and a module of another source, leave it to Python."""
    assert find_native("specwire.generated.nosuch", "parts 3") is None
    assert find_native("specwire.generated.native_stream", "another") is None
    monkeypatch.setenv(PURE, "1")
    assert find_native("specwire.generated.native_stream", "parts 3") is None
