"""Which octets are which field: against offsets counted by hand in the specifications, and for every vector of ours."""

from __future__ import annotations

import pytest

from specwire.generated import filemq, flux
from specwire.generated.filemq.layout import LAYOUT as FILEMQ
from specwire.generated.flux.layout import LAYOUT as FLUX
from specwire.generated.marks import Mark, mark_fields


def test_fields_of_several_frames_and_lists_are_marked_where_they_stand() -> None:
    """Frame 0: signature 2, id 1, sequence 8, operation 1, filename 1 + 6, offset 8, count 1, "size=3" 1 + 6."""
    frames = filemq.Cheezburger(1, 1, "/a.txt", 0, (("size", "3"),), b"abc").encode()
    marks, fault = mark_fields(FILEMQ, frames)
    assert fault is None
    assert marks == [
        Mark(0, 0, 2, "signature"),
        Mark(0, 2, 1, "id"),
        Mark(0, 3, 8, "sequence"),
        Mark(0, 11, 1, "operation"),
        Mark(0, 12, 7, "filename"),
        Mark(0, 19, 8, "offset"),
        Mark(0, 27, 1, "headers"),
        Mark(0, 28, 7, "headers[0]"),
        Mark(1, 0, 3, "chunk"),
    ]


def test_frames_that_flags_announce_are_marked_and_empty_ones_have_nothing_to_mark() -> None:
    """Frames: two routes, the empty delimiter (2), topic (3), payload (4), header (5) of 20 octets."""
    frames = flux.Request(topic="kvs.get", payload=b"{}\0", routes=("a", "b"), matchtag=7).encode()
    marks, fault = mark_fields(FLUX, frames)
    assert fault is None
    assert [(mark.frame, mark.field) for mark in marks[:4]] == [
        (0, "routes[0]"),
        (1, "routes[1]"),
        (3, "topic"),
        (4, "payload"),
    ]
    assert marks[-1] == Mark(5, 16, 4, "matchtag")


@pytest.mark.parametrize(
    ("octets", "last", "kind"),
    [
        ("aaa307000001", Mark(0, 3, 3, "credit"), "length"),
        ("aaa307" + "00" * 9, Mark(0, 11, 1, ""), "trailing"),
        ("aaa377", Mark(0, 0, 3, ""), "tag"),
    ],
)
def test_faulty_messages_are_marked_up_to_the_fault(octets: str, last: Mark, kind: str) -> None:
    marks, fault = mark_fields(FILEMQ, [bytes.fromhex(octets)])
    assert fault is not None and fault.kind == kind
    assert marks[-1] == last


def test_a_length_that_lies_marks_no_more_than_there_is() -> None:
    """The name of a header says 255 octets where one follows."""
    frames = [bytes.fromhex("aaa308" + "00" * 8 + "01" + "ff61")]
    marks, fault = mark_fields(FILEMQ, frames)
    assert fault is not None and fault.field == "filename"
    assert sum(mark.octets for mark in marks) == len(frames[0])
    assert marks[-1].field == "filename"
