"""Texts of the report: numbers, names, ticks, and raw messages in which every octet is shown once."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from specwire.generated import filemq
from specwire.runtime.spark.report.text import (
    FIELDS_SHOWN,
    FRAMES_SHOWN,
    MARK_OCTETS,
    THIN_SPACE,
    count_text,
    distinct_texts,
    dump_frames,
    find_ticks,
    listed_text,
    rate_text,
    short_names,
    size_text,
    span_text,
)
from tests.runtime.spark.report.findings import BEGIN

SERVER, CLIENT = "server-10-5f0", "client-11-5f1"
CHUNK = bytes(range(256)) * 3


@pytest.mark.parametrize(
    ("octets", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (3 << 50, "3072.0 TiB")],
)
def test_sizes(octets: int, text: str) -> None:
    """Powers of 1024."""
    assert size_text(octets) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0125, "12 ms"),
        (1, "1.0 s"),
        (119.9, "119.9 s"),
        (125, "2 min 5 s"),
        (7290, "2 h 1 min"),
        (266_400, "3 d 2 h"),
    ],
)
def test_spans(seconds: float, text: str) -> None:
    """In the units that suit the length."""
    assert span_text(seconds) == text


def test_counts_have_their_thousands_apart() -> None:
    """By a thin space, which no reader takes for a decimal point."""
    assert count_text(1234567) == f"1{THIN_SPACE}234{THIN_SPACE}567"


def test_a_cut_list_says_how_much_it_shows() -> None:
    assert listed_text(20, 1140, "files") == f"20 of 1{THIN_SPACE}140 files are shown."
    assert listed_text(20, 20, "files") == ""


@pytest.mark.parametrize(
    ("width_s", "label"),
    [
        (0.02, "messages in 20 ms"),
        (1, "messages a second"),
        (60, "messages a minute"),
        (600, "messages in 10 minutes"),
        (3600, "messages an hour"),
        (604_800, "messages in 7 days"),
    ],
)
def test_axes_say_the_width_of_a_bar_in_words(width_s: float, label: str) -> None:
    assert rate_text(width_s) == label


def test_names_that_look_alike_once_cut_are_numbered() -> None:
    """Two names that differ only at their ends; a third that is short stays."""
    long = ["a" * 30 + "1", "a" * 30 + "2", "short"]
    assert distinct_texts(long, 12) == [
        "aaaaaa\N{HORIZONTAL ELLIPSIS} #1",
        "aaaaaa\N{HORIZONTAL ELLIPSIS} #2",
        "short",
    ]


def test_taps_of_one_name_show_their_ids() -> None:
    """A name is shown only where it is enough."""
    assert short_names([SERVER, CLIENT]) == {SERVER: "server", CLIENT: "client"}
    twins = ["peer-1-a", "peer-2-b", "odd"]
    assert short_names(twins) == {"peer-1-a": "peer-1-a", "peer-2-b": "peer-2-b", "odd": "odd"}


@pytest.mark.parametrize(
    ("begin", "span_s", "labels"),
    [
        ("2026-05-28T21:00:00", 6 * 3600, ["21:00", "22:00", "23:00", "05-29", "01:00", "02:00", "03:00"]),
        ("2026-05-28T21:59:50", 150, ["22:00:00", "22:00:30", "22:01:00", "22:01:30", "22:02:00"]),
        ("2026-05-28T21:00:00", 3 * 86_400, ["05-29", "12:00", "05-30", "12:00", "05-31", "12:00"]),
    ],
)
def test_ticks_are_round_moments(begin: str, span_s: float, labels: list[str]) -> None:
    moment = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    found = list(find_ticks(moment, span_s, 9))
    assert [text for _, text in found] == labels
    assert all(0 <= seconds <= span_s for seconds, _ in found)


def test_ticks_of_any_stretch_are_few() -> None:
    """A clock that was set wrong makes a capture fifty years long."""
    assert len(list(find_ticks(datetime(1970, 1, 1, tzinfo=UTC), 50 * 365 * 86_400, 9))) <= 10
    assert list(find_ticks(BEGIN, 0.0, 9)) == []


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
