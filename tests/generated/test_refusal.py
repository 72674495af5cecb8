"""A refused message is refused with its place and one sentence, and nothing else is ever raised."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated import filemq, flux
from specwire.generated.errors import CodecError, DecodeError, EncodeError, Violation
from tests.examples import examples
from tests.generated import strategies
from tests.generated.agreement import assert_agreement, layout_of
from tests.generated.builds import package
from tests.generated.vectors import PACKAGES

# A request without parts: magic, version, type, flags, then four integers.
HEADER = b"\x8e\x01\x01\x00" + bytes(16)
NO_TOPIC = b"\x8e\x01\x01\x01" + bytes(16)
WITH_ROUTES = b"\x8e\x01\x01\x08" + bytes(16)
WITH_TOPIC = b"\x8e\x01\x01\x01" + bytes(16)
# CHEEZBURGER: signature and number 3 octets, sequence 8, operation 1, filename "/a" 3, offset 8, then headers.
BURGER = b"\xaa\xa3\x08" + bytes(8) + b"\x01" + b"\x02/a" + bytes(8)

SENTENCES: list[tuple[str, list[bytes], str]] = [
    ("filemq", [b"\xaa\xa3\x07\x00\x00\x01"], "NOM.credit at octet 3: expected 8 octets, found 3 [FILEMQ v2 credit]"),
    ("filemq", [b"\xaa\xa3\x07" + bytes(9)], "NOM at octet 11: expected the end of the frame, found 1 more octet [FILEMQ v2 NOM]"),
    # The second header begins at octet 28 (one of count, one of size, three of "a=b"), its value at 31.
    (
        "filemq", [BURGER + b"\x02" + b"\x03a=b" + b"\x04c=\xffd", b""],
        "CHEEZBURGER.headers[1].value at octet 31: 0xff is not UTF-8 [FILEMQ v2 key-value]",
    ),
    (
        "filemq", [BURGER + b"\x01" + b"\x03\xc3=b", b""],
        "CHEEZBURGER.headers[0].name at octet 25: 0xc3 is not UTF-8 [FILEMQ v2 key-value]",
    ),
    (
        "filemq", [BURGER + b"\x02" + b"\x03a=b" + b"\x02cd", b""],
        "CHEEZBURGER.headers[1] at octet 29: expected name=value, found 0x6364 [FILEMQ v2 key-value]",
    ),
    (
        "filemq", [BURGER + b"\x02" + b"\x03a=b" + b"\x09c=", b""],
        "CHEEZBURGER.headers[1] at octet 29: expected 9 octets, found 2 [FILEMQ v2 key-value]",
    ),
    (
        "filemq", [BURGER + b"\x09" + b"\x03a=b", b""],
        "CHEEZBURGER.headers at octet 23: expected at most 4 entries in 4 octets, found 9 [FILEMQ v2 headers]",
    ),
    ("filemq", [BURGER + b"\x00"], "CHEEZBURGER.chunk in frame 1: expected a frame with chunk, found 1 frame [FILEMQ v2 chunk]"),
    (
        "filemq", [b"\xaa\xa3\x08" + bytes(8) + b"\x03" + b"\x00" + bytes(9), b""],
        "CHEEZBURGER.operation at octet 11: expected 1 or 2, found 3 [FILEMQ v2 operation]",
    ),
    ("filemq", [b"\xaa\xa3\x01\x06FILEMQ\x03"], "OHAI.version at octet 10: expected 0x02, found 0x03 [FILEMQ v2 version]"),
    ("filemq", [b"\xaa\xa3\x01\x06FILEMX\x02"], "OHAI.protocol at octet 3: expected 'FILEMQ', found 'FILEMX' [FILEMQ v2 protocol]"),
    ("filemq", [b"\xaa\xa4\x01"], "filemq.signature at octet 0: expected 0xaaa3, found 0xaaa4 [FILEMQ v2 signature]"),
    ("filemq", [], "filemq.signature: expected a frame with signature, found 0 frames [FILEMQ v2 signature]"),
    ("flux", [NO_TOPIC], "request.topic: expected a frame with topic, found 1 frame [Flux v1 topic]"),
    (
        "flux", [b"a", b"b", WITH_ROUTES],
        "request.routes in frame 3: expected an empty frame that ends routes, found 3 frames [Flux v1 routing]",
    ),
    ("flux", [b"x", HEADER], "request: expected 1 frame, found 2 [Flux v1 request]"),
    ("flux", [b"a\0b", WITH_TOPIC], "request.topic at octet 1: expected text without NUL, found 0x00 [Flux v1 topic]"),
    ("flux", [b"u", b"\xe2\x82", b"", WITH_ROUTES], "request.routes[1] at octet 0 in frame 1: 0xe282 is not UTF-8 [Flux v1 routing]"),
    ("flux", [b"\0", b"", WITH_ROUTES], "request.routes[0] at octet 0: expected text before the NUL, found none [Flux v1 routing]"),
    ("flux", [b"t", WITH_TOPIC[:-1]], "request.matchtag at octet 16 in frame 1: expected 4 octets, found 3 [Flux v1 matchtag]"),
    ("flux", [b"\x8e\x01\x08\x02" + bytes(16)], "control.flags at octet 3: expected 0x00: the message has no such part, found 0x02 [Flux v1 flags]"),
    ("flux", [b"\x8e\x01\x04\x00" + bytes(15) + b"\x01"], "event.unused at octet 16: expected 0x00000000, found 0x00000001 [Flux v1 unused]"),
    ("flux", [b"\x8e\x01\x03\x00" + bytes(16)], "flux.id at octet 2: expected 0x01, 0x02, 0x04 or 0x08, found 0x03 [Flux v1 request]"),
    ("flux", [b"\x8e\x02\x01\x00" + bytes(16)], "flux.version at octet 1: expected 0x01, found 0x02 [Flux v1 version]"),
    ("cmb1", [HEADER], "request.flags at octet 3: expected 0x01, found 0x00 [CMB1 flags]"),
    ("norfab", [b"x", b"NFPW01", b"\x01", b"s"], "READY.empty at octet 0: expected nothing, found 0x78 [NORFAB empty]"),
    ("norfab", [b"", b"NFPX01", b"\x01", b"s"], "norfab.header at octet 0 in frame 1: expected 'NFPC01', 'NFPW01' or 'NFPB01', found 'NFPX01' [NORFAB header-open]"),
    ("norfab", [b"", b"NFPW01", b"\x01"], "READY.service in frame 3: expected a frame with service, found 3 frames [NORFAB service]"),
    (
        "norfab", [b"", b"NFPB01", b"\x04", b"", b"", b"u", b""],
        "POST-worker.client_address at octet 0 in frame 3: expected at least 1 octet, found 0 [NORFAB client-address]",
    ),
    ("norfab", [b"", b"NFPB01", b"\x04", b"c", b"x", b"u", b""], "POST-worker.delimiter at octet 0 in frame 4: expected nothing, found 0x78 [NORFAB delimiter]"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "frames", "sentence"), SENTENCES, ids=[s.split(":")[0] for _, _, s in SENTENCES]
)
def test_sentence(name: str, build: str, frames: list[bytes], sentence: str) -> None:
    module = package(name, build)
    with pytest.raises(DecodeError) as caught:
        module.decode(frames)
    assert str(caught.value) == sentence
    assert not assert_agreement(module, frames)


def test_attributes_of_an_error() -> None:
    with pytest.raises(DecodeError) as caught:
        filemq.decode([b"\xaa\xa3\x07\x00\x00\x01"])
    assert caught.value.attributes() == {
        "protocol": "filemq", "message_name": "NOM", "field": "credit", "frame": 0, "offset": 3,
        "kind": "length", "expected": "8 octets", "found": "3", "rule": "FILEMQ v2 credit",
    }  # fmt: skip
    assert isinstance(caught.value, CodecError)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def errors() -> list[CodecError]:
    """One error of each class, as raised."""
    found: list[CodecError] = []
    for act in (lambda: filemq.decode([b"\xaa\xa3\x07"]), lambda: filemq.Nom(-1).encode()):
        try:
            act()
        except CodecError as error:
            found.append(error)
    assert [type(error) for error in found] == [DecodeError, EncodeError]
    return found


def test_errors_pickle_and_copy() -> None:
    """Spark's workers send them to the driver; notes that others add go along."""
    for error in errors():
        error.add_note("seen in a test")
        for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(twin) is type(error)
            assert twin.attributes() == error.attributes()
            assert str(twin) == str(error)
            assert twin.__notes__ == ["seen in a test"]


def test_violation_is_a_value() -> None:
    found = Violation("C", "Nom", "START", ("C:Ohai",), "peering")
    assert found == pickle.loads(pickle.dumps(found))
    assert str(found) == "C:Nom in state START: expected C:Ohai [peering]"


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=examples(80), deadline=None)
@given(frames=strategies.frame_lists())
def test_any_frames(name: str, build: str, frames: list[bytes]) -> None:
    assert_agreement(package(name, build), frames)


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_any_content_behind_a_right_tag(name: str, build: str, data: st.DataObject) -> None:
    """Tags of a message, anything after them: most of the random frames above do not get so far."""
    module = package(name, build)
    entry = data.draw(st.sampled_from(layout_of(module).messages))
    heads = [(bytes.fromhex(pattern.replace("??", "00")),) for pattern in entry.patterns]
    tag = data.draw(st.sampled_from(entry.tags or heads))
    frames = data.draw(
        st.lists(st.binary(max_size=12), min_size=len(entry.parts), max_size=len(entry.parts) + 1)
    )
    for (index, octets), found in zip(layout_of(module).selectors, tag, strict=True):
        frames[index] = found if octets is None else found + data.draw(st.binary(max_size=40))
    if data.draw(st.booleans()):
        frames = [b"" if len(frame) > 6 and index % 2 else frame for index, frame in enumerate(frames)]
    assert_agreement(module, frames)


@pytest.mark.parametrize("name", PACKAGES)
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_views_and_byte_arrays_are_frames_too(name: str, build: str, data: st.DataObject) -> None:
    """Whatever holds the octets, the message holds octets of its own, or the refusal is the same."""
    module = package(name, build)
    frames = data.draw(strategies.frame_lists() | strategies.messages(module).map(lambda m: m.encode()))
    kinds = (bytes, bytearray, memoryview, lambda frame: memoryview(bytearray(frame)))
    others = [data.draw(st.sampled_from(kinds))(frame) for frame in frames]
    try:
        message = module.decode(frames)
    except DecodeError as error:
        with pytest.raises(DecodeError) as caught:
            module.decode(others)
        assert caught.value.attributes() == error.attributes()
        return
    twin = module.decode(tuple(others))
    assert twin == message
    assert pickle.loads(pickle.dumps(twin)) == message
    assert hash(twin) == hash(message)
    module.decode(others, strict=False)


def test_what_is_not_octets_is_the_callers_mistake() -> None:
    mistakes: list[Any] = [["text"], [1], [None], b"\xaa\xa3\x04"]
    for frames in mistakes:
        with pytest.raises(TypeError):
            filemq.decode(frames)


def test_one_refusal_of_many_frames_is_bounded() -> None:
    """A hundred thousand frames are one sentence."""
    frames = [b"x"] * 100_000 + [b"\x8e\x01\x01\x00" + bytes(16)]
    limits: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "flux: expected at most 65536 frames, found 100001 [Flux v1]"),
        ({"max_frames": 200_000}, "request: expected 1 frame, found 100001 [Flux v1 request]"),
    )
    for limit, sentence in limits:
        with pytest.raises(DecodeError) as caught:
            flux.decode(frames, **limit)
        assert str(caught.value) == sentence
