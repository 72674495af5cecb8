"""Raw messages: every octet is there once, beside its field, whatever the octets are."""

from __future__ import annotations

import random

from specwire.generated import filemq
from specwire.runtime.spark.report.raw import FIELDS_SHOWN, FRAMES_SHOWN, MARK_OCTETS, dump_frames

CHUNK = bytes(range(256)) * 3


def test_long_fields_are_cut_and_the_rest_is_counted() -> None:
    """The chunk has 768 octets: 16 lines of 16 are shown."""
    frames = filemq.Cheezburger(1, 1, "/a", 0, (), CHUNK).encode()
    _, second = dump_frames("filemq", frames, [len(frame) for frame in frames], "S")
    [piece] = second.pieces
    assert len(piece.octets.splitlines()) == MARK_OCTETS // 16
    assert piece.octets.startswith("00 01 02 03")
    assert piece.more == "and 512 more octets"
    assert piece.printable.splitlines()[2] == " !\"#$%&'()*+,-./"


def test_of_a_frame_that_was_cut_the_whole_size_is_said_and_no_fault_is_found() -> None:
    frames = filemq.Cheezburger(1, 1, "/a", 0, (("size", "768"),), CHUNK).encode()
    cut = [frames[0][:20], frames[1]]
    first, _ = dump_frames("filemq", cut, [len(frame) for frame in frames], "S")
    assert first.title == f"frame 0, {len(frames[0])} octets"
    assert not any(piece.fault for piece in first.pieces)


def test_frames_of_a_protocol_that_nobody_knows_are_shown_as_they_are() -> None:
    [frame] = dump_frames("nosuch", [b"ab"], [2], None)
    assert [(piece.octets, piece.printable, piece.field) for piece in frame.pieces] == [("61 62", "ab", "")]


def test_random_octets_are_all_there() -> None:
    rng = random.Random(5)
    for _ in range(300):
        frames = [b"\xaa\xa3" + rng.randbytes(rng.randrange(40)) for _ in range(rng.randrange(1, 4))]
        frames.append(b"")
        dumped = dump_frames("filemq", frames, [], None)
        shown = [bytes.fromhex("".join(piece.octets for piece in frame.pieces)) for frame in dumped]
        assert shown == frames


def test_many_frames_and_fields_are_bounded() -> None:
    """A peer may send a thousand frames, or a message with 255 options."""
    assert len(dump_frames("nosuch", [b""] * 1000, [], None)) == FRAMES_SHOWN
    options = tuple((f"o{number}", "1") for number in range(255))
    first, _ = dump_frames("filemq", filemq.Cheezburger(1, 1, "/a", 0, options, b"").encode(), [], "S")
    assert len(first.pieces) == FIELDS_SHOWN
    assert first.title.endswith("more fields are omitted")
