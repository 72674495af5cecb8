"""Raw messages in hexadecimal, each octet beside its field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from specwire.generated.marks import Mark, mark_fields
from specwire.runtime.spark.protocols import known_protocols, load_layout
from specwire.runtime.spark.report.text import count_text

LINE_OCTETS = 16
MARK_OCTETS = 256
"""Maximum number of octets shown of one field; the others are counted."""
FRAMES_SHOWN = 12
FIELDS_SHOWN = 40
"""Maximum number of frames of a message, and of fields of a frame."""


class Piece(msgspec.Struct, frozen=True):
    """Octets of one field of one frame, as texts.

    Offset, hexadecimal in lines, the same as ASCII, and the rest.

    `shade` alternates between 0 and 1; `fault` is the error at this place.
    """

    offset: str
    field: str
    octets: str
    printable: str
    shade: int
    more: str = ""
    fault: str = ""


class RawFrame(msgspec.Struct, frozen=True):
    """One ZeroMQ frame."""

    title: str
    pieces: tuple[Piece, ...]


def dump_frames(
    protocol: str, frames: Sequence[bytes], sizes: Sequence[int], sender: str | None
) -> tuple[RawFrame, ...]:
    """Return the first frames of a message with their fields.

    `sizes` are the full sizes of frames that were cut.
    """
    marks, fault = _mark(protocol, frames, sender)
    whole = list(sizes) if len(sizes) == len(frames) else [len(frame) for frame in frames]
    at = None
    if (
        fault is not None
        and fault[0] is not None
        and frames[fault[0]][:1]
        and whole[fault[0]] == len(frames[fault[0]])
    ):
        at = fault
    dumped = []
    for number, frame in enumerate(frames[:FRAMES_SHOWN]):
        mine = [mark for mark in marks if mark.frame == number]
        title = f"frame {number}, {count_text(whole[number])} octets"
        if (hidden := len(mine) - FIELDS_SHOWN) > 0:
            title += f"; {count_text(hidden)} more fields are omitted"
            mine = mine[:FIELDS_SHOWN]
        dumped.append(RawFrame(title, tuple(_pieces(frame, mine, at if at and at[0] == number else None))))
    return tuple(dumped)


Fault = tuple[int | None, int, str]
"""Frame, octet and sentence."""


def _mark(protocol: str, frames: Sequence[bytes], sender: str | None) -> tuple[list[Mark], Fault | None]:
    if protocol not in known_protocols():
        return [Mark(number, 0, len(frame), "") for number, frame in enumerate(frames)], None
    marks, error = mark_fields(load_layout(protocol), frames, sender)
    if error is None:
        return marks, None
    frame = error.frame if error.frame is not None and error.frame < len(frames) else None
    return marks, (frame, error.offset or 0, str(error))


def _pieces(frame: bytes, marks: Sequence[Mark], fault: Fault | None) -> Iterator[Piece]:
    for number, mark in enumerate(marks):
        content = frame[mark.offset : mark.offset + mark.octets]
        shown = content[:MARK_OCTETS]
        wrong = fault is not None and (
            mark.offset <= fault[1] < mark.offset + mark.octets
            or (number == len(marks) - 1 and fault[1] >= len(frame))
        )
        hidden = len(content) - len(shown)
        yield Piece(
            offset=str(mark.offset),
            field=mark.field,
            octets="\n".join(
                shown[at : at + LINE_OCTETS].hex(" ") for at in range(0, len(shown), LINE_OCTETS)
            ),
            printable="\n".join(
                _printable(shown[at : at + LINE_OCTETS]) for at in range(0, len(shown), LINE_OCTETS)
            ),
            shade=number % 2,
            more=f"and {count_text(hidden)} more octets" if hidden else "",
            fault=fault[2] if wrong and fault is not None else "",
        )


def _printable(octets: bytes) -> str:
    return "".join(chr(octet) if 0x20 <= octet < 0x7F else "·" for octet in octets)
