"""`decode` takes frames of every kind, keeps octets where they are when asked to, and never more than its limits."""

from __future__ import annotations

import mmap
import pickle
from array import array
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError
from specwire.generated.limits import MAX_FRAMES, MAX_OCTETS
from tests.examples import examples
from tests.generated import strategies
from tests.generated.builds import package
from tests.generated.vectors import PACKAGES

Kind = Callable[[bytes], Any]
KINDS: dict[str, Kind] = {
    "bytearray": bytearray,
    "view": memoryview,
    "view on a bytearray": lambda octets: memoryview(bytearray(octets)),
    "zmq.Frame": zmq.Frame,
}
ALL_KINDS: dict[str, Kind] = {"bytes": bytes, **KINDS}
# A Flux request with a topic and a payload: flags 0x03, then four numbers of zero.
HEADER = b"\x8e\x01\x01\x03" + bytes(16)
# libfilemq's CHEEZBURGER: sequence, operation 1, file name "a", offset, eof, no headers, a chunk of four octets.
BURGER = (
    b"\xaa\xa3\x08"
    + bytes(8)
    + b"\x01"
    + b"\x00\x00\x00\x01a"
    + bytes(9)
    + bytes(4)
    + b"\x00\x00\x00\x04data"
)


def lent(value: Any, octets: bytes, given: Any) -> bool:
    """Whether a value is a read-only view on what was given, and has these octets."""
    if not (isinstance(value, memoryview) and value.readonly and value == octets):
        return False
    start, begin = (np.frombuffer(memory, np.uint8).ctypes.data for memory in (memoryview(given), value))
    return not octets or start <= begin <= begin + len(octets) <= start + memoryview(given).nbytes


@pytest.mark.parametrize("kind", KINDS)
def test_whole_frame_is_lent(flux: Any, kind: str) -> None:
    payload = KINDS[kind](b"payload")
    message = flux.decode([b"topic", payload, KINDS[kind](HEADER)], copy=False)
    assert lent(message.payload, b"payload", payload)
    assert message.topic == "topic"


def test_whole_frame_of_bytes_is_kept_in_either_mode(flux: Any) -> None:
    payload = bytes(bytearray(b"payload"))
    for copy in (True, False):
        assert flux.decode([b"topic", payload, HEADER], copy=copy).payload is payload


@pytest.mark.parametrize("kind", KINDS)
def test_octets_are_copied_unless_the_caller_says_otherwise(flux: Any, libfilemq: Any, kind: str) -> None:
    payload = KINDS[kind](b"payload")
    message = flux.decode([b"topic", payload, HEADER])
    assert (type(message.payload), message.payload) == (bytes, b"payload")
    chunk = libfilemq.decode([KINDS[kind](BURGER)]).chunk
    assert (type(chunk), chunk) == (bytes, b"data")


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_slice_of_a_frame_is_lent(libfilemq: Any, zmtp: Any, kind: str) -> None:
    convert = ALL_KINDS[kind]
    frame = convert(BURGER)
    assert lent(libfilemq.decode([frame], copy=False).chunk, b"data", frame)
    # ZMTP's last frame of a message: flags 00, one octet of size, the body.
    frame = convert(b"\x00\x04body")
    assert lent(zmtp.decode([frame], copy=False).message_body, b"body", frame)


def test_values_of_pairs_are_lent(zmtp: Any) -> None:
    # READY: flags 04, 22 octets: the command's name, a property "A" with a value of four octets, and "B" without.
    frame = b"\x04\x16\x05READY" + b"\x01A\x00\x00\x00\x04data" + b"\x01B\x00\x00\x00\x00"
    (first, second) = zmtp.decode([frame], copy=False).metadata
    assert first[0] == "A" and lent(first[1], b"data", frame)
    assert second[0] == "B" and lent(second[1], b"", frame)


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_a_tuple_are_lent(cmb1: Any, zre: Any, kind: str) -> None:
    # WHISPER: signature, number 2, version 2, sequence 1; the frames behind it are the content.
    one, two = KINDS[kind](b"one"), b"two"
    content = zre.decode([b"\xaa\xa1\x02\x02\x00\x01", one, two], copy=False).content
    assert lent(content[0], b"one", one)
    assert content[1] is two
    # A CMB1 request with routes, a topic and no payload: flags 0x09.
    route = KINDS[kind](b"\xff\xfe")
    header = b"\x8e\x01\x01\x09" + bytes(16)
    (found,) = cmb1.decode([route, b"", b"topic", header], copy=False).routes
    assert lent(found, b"\xff\xfe", route)


def test_a_lent_view_follows_its_memory_and_cannot_change_it(flux: Any) -> None:
    payload = bytearray(b"payload")
    message = flux.decode([b"topic", payload, HEADER], copy=False)
    payload[0] = ord("P")
    assert message.payload == b"Payload"
    with pytest.raises(TypeError):
        message.payload[0] = 0


def test_messages_with_views_are_like_those_with_bytes(flux: Any) -> None:
    frames = [b"topic", b"payload", HEADER]
    copied = flux.decode(frames)
    message = flux.decode([b"topic", zmq.Frame(b"payload"), HEADER], copy=False)
    assert message == copied and copied == message
    assert hash(message) == hash(copied)
    assert message.encode() == frames
    assert message.replace(topic="other") == copied.replace(topic="other")
    assert message.to_dict() == copied.to_dict()
    again = pickle.loads(pickle.dumps(message))
    assert again == copied and type(again.payload) is bytes


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_every_message_is_the_same_from_frames_of_any_kind(
    name: str, build: str, data: st.DataObject
) -> None:
    module = package(name, build)
    frames = data.draw(strategies.messages(module).map(lambda message: message.encode()))
    kinds = st.sampled_from(list(ALL_KINDS.values()))
    given_frames = [data.draw(kinds)(frame) for frame in frames]
    message = module.decode(frames)
    for copy in (True, False):
        assert module.decode(given_frames, copy=copy) == message
        assert module.decode(tuple(given_frames), copy=copy).encode() == frames


@pytest.mark.parametrize("copy", [True, False])
def test_views_of_other_shapes_are_their_octets(flux: Any, copy: bool) -> None:
    """Wide items, several dimensions and gaps: what counts is the octets in their order."""
    wide = array("I", [0x04030201])
    octets = wide.tobytes()
    square = memoryview(b"abcd").cast("B", (2, 2))
    gaps = memoryview(b"a-b-c-")[::2]
    for payload, wanted in ((memoryview(wide), octets), (wide, octets), (square, b"abcd"), (gaps, b"abc")):
        assert flux.decode([b"t", payload, HEADER], copy=copy).payload == wanted
        assert flux.decode([b"t", b"", memoryview(HEADER).cast("I")], copy=copy).topic == "t"


def refused(module: ModuleType, frames: Any, **limits: int) -> DecodeError:
    """Return the error for frames over a limit."""
    with pytest.raises(DecodeError) as caught:
        module.decode(frames, **limits)
    assert caught.value.kind == "limit"
    assert (caught.value.message_name, caught.value.field, caught.value.offset) == (None, None, None)
    return caught.value


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_octets_of_all_frames_together_have_a_limit(flux: Any, filemq: Any, kind: str) -> None:
    convert = ALL_KINDS[kind]
    frames = [convert(frame) for frame in (b"topic", b"payload", HEADER)]
    for copy in (True, False):
        assert flux.decode(frames, max_octets=32, copy=copy).topic == "topic"
        error = refused(flux, frames, max_octets=31, copy=copy)
        assert error.frame == 2
        assert refused(flux, frames, max_octets=11, copy=copy).frame == 1
    assert (
        str(error)
        == "flux in frame 2: expected at most 31 octets in all frames, found 32 up to the end of this one [Flux v1]"
    )
    assert filemq.decode([convert(b"\xaa\xa3\x09")], max_octets=3).NAME == "HUGZ"
    assert refused(filemq, [convert(b"\xaa\xa3\x09")], max_octets=2).frame == 0


def test_octets_are_counted_not_items(flux: Any) -> None:
    payload = memoryview(array("Q", [0] * 10))
    assert flux.decode([b"t", payload, HEADER], max_octets=101).payload == bytes(80)
    assert refused(flux, [b"t", payload, HEADER], max_octets=100).frame == 2


def test_frames_have_a_limit(flux: Any, filemq: Any) -> None:
    frames = [b"topic", b"payload", HEADER]
    assert flux.decode(frames, max_frames=3).topic == "topic"
    error = refused(flux, frames, max_frames=2)
    assert str(error) == "flux: expected at most 2 frames, found 3 [Flux v1]"
    assert error.frame is None
    assert refused(filemq, [b"\xaa\xa3\x09"], max_frames=0).frame is None
    # Both are too many: the frames are counted first.
    assert refused(flux, frames, max_frames=2, max_octets=1).frame is None


def test_limits_hold_by_default(zre: Any) -> None:
    assert (MAX_FRAMES, MAX_OCTETS) == (65_536, 2_147_483_648)
    whisper = b"\xaa\xa1\x02\x02\x00\x01"
    assert len(zre.decode([whisper, *[b""] * 65_535]).content) == 65_535
    assert refused(zre, [whisper, *[b""] * 65_536]).frame is None
    # A gigabyte of addresses that nobody touches, given three times.
    much = mmap.mmap(-1, 2**30, prot=mmap.PROT_READ)
    assert refused(zre, [whisper, much, much, much]).frame == 2


def test_limits_come_before_everything_else(flux: Any) -> None:
    """Frames that are nothing at all are over the limit first."""
    assert refused(flux, [b"", b"\xff", b"x"], max_frames=1).frame is None
    with pytest.raises(DecodeError) as caught:
        flux.decode([b"", b"\xff", b"x"], max_frames=3, max_octets=2)
    assert caught.value.kind != "limit"


@pytest.mark.parametrize("copy", [True, False])
def test_what_is_not_octets_is_the_callers_mistake(filemq: Any, copy: bool) -> None:
    for frames in (["text"], [1], [None], b"\xaa\xa3\x04", "text", {0: b"\xaa\xa3\x04"}, {b"\xaa\xa3\x04"}):
        with pytest.raises(TypeError):
            filemq.decode(frames, copy=copy)
