"""Texts of the report: numbers, durations, times, names, and octets in hexadecimal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from specwire.generated.marks import Mark, mark_fields
from specwire.runtime.capture.identity import tap_name
from specwire.runtime.log.text import show
from specwire.runtime.spark.protocols import known_protocols, load_layout

THIN_SPACE = "\N{THIN SPACE}"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MINUTE, HOUR, DAY = 60, 3600, 86_400
TICK_STEPS_S = (
    30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR,
    12 * HOUR, *(DAY * days for days in (1, 2, 7, 14, 30, 90, 180, 365, 3650)),
)  # fmt: skip
"""Distances between two labels of a time axis."""

UNITS_S = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second"))

KINDS = {"rpc": "requests", "job": "jobs", "transfer": "files"}
"""Names of the kinds of calls whose duration is measured."""
SILENCES = {"again": "spoke again", "silent": "silent to the end", "gone": "given up"}
"""Descriptions of how a silence ended."""

LINE_OCTETS = 16
MARK_OCTETS = 256
"""Maximum number of octets shown of one field; the others are counted."""
FRAMES_SHOWN, FIELDS_SHOWN = 12, 40
"""Maximum number of frames of a message, and of fields of a frame."""


def count_text(number: int) -> str:
    """Return a count with its thousands separated."""
    return f"{number:,}".replace(",", THIN_SPACE)


def size_text(octets: float) -> str:
    """Return a number of octets with the largest binary unit that leaves at least 1."""
    size, power = float(octets), 0
    while size >= 1024 and power < 4:
        size, power = size / 1024, power + 1
    unit = ("B", "KiB", "MiB", "GiB", "TiB")[power]
    return f"{size:.1f} {unit}" if power else f"{round(octets)} B"


def span_text(seconds: float) -> str:
    """Return a duration in the units that suit its length."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def micros_text(micros: float) -> str:
    """Return a duration in microseconds: three digits up to two minutes, then as `span_text`."""
    if micros < 1000:
        return f"{micros:.3g} µs"
    if micros < 1e6:
        return f"{micros / 1000:.3g} ms"
    return f"{micros / 1e6:.3g} s" if micros < 120e6 else span_text(micros / 1e6)


def rate_text(width_s: float) -> str:
    """Return the label of an axis of message counts per bin, such as ``messages a minute``."""
    for unit_s, name in UNITS_S:
        if width_s >= unit_s and width_s % unit_s == 0:
            number = round(width_s / unit_s)
            if number == 1:
                return f"messages {'an' if name == 'hour' else 'a'} {name}"
            return f"messages in {number} {name}s"
    return f"messages in {width_s * 1000:g} ms"


def moment_text(moment: datetime, *, dated: bool, precise: bool = False) -> str:
    """Return the time of day in UTC, after the date if `dated`; `precise` adds milliseconds."""
    clock = moment.isoformat(sep=" ", timespec="milliseconds" if precise else "seconds")[:23].split("+")[0]
    return clock if dated else clock[11:]


def clock_text(text: str | None, *, dated: bool) -> str:
    """Return the time of day from an ISO 8601 text, after the date if `dated`; empty for None."""
    return "" if not text else text[:19].replace("T", " ") if dated else text[11:23]


def listed_text(shown: int, total: int, name: str, verb: str = "shown") -> str:
    """Return the sentence about a cut list: ``20 of 57 files are shown.``; empty if it is whole."""
    return f"{count_text(shown)} of {count_text(total)} {name} are {verb}." if shown < total else ""


def join_sentences(*sentences: str) -> str:
    """Return a note of several sentences, without the empty ones."""
    return " ".join(filter(None, sentences))


def short_text(text: str, length: int) -> str:
    """Escape unprintable characters, and cut the end of a text longer than `length`."""
    text = show(text[: 4 * length])
    return text if len(text) <= length else f"{text[: length - 1]}\N{HORIZONTAL ELLIPSIS}"


def distinct_texts(texts: list[str], length: int) -> list[str]:
    """Return texts of at most `length` characters that differ where the given ones do.

    Texts that look the same once cut get the number of their place.
    """
    cut = [short_text(text, length) for text in texts]
    full: dict[str, set[str]] = {}
    for text, short in zip(texts, cut, strict=True):
        full.setdefault(short, set()).add(text)
    return [
        f"{short_text(text, length - 5)} #{place}" if len(full[short]) > 1 else short
        for place, (text, short) in enumerate(zip(texts, cut, strict=True), 1)
    ]


def short_names(taps: Sequence[str]) -> dict[str, str]:
    """Return each tap's name, or its id if two taps share a name."""
    taps = list(dict.fromkeys(taps))
    names = [tap_name(tap) for tap in taps]
    return {tap: name if names.count(name) == 1 else tap for tap, name in zip(taps, names, strict=True)}


def conversation_name(peer: str | None, conversation: str, tap: str, names: Mapping[str, str]) -> str:
    """Return the peer, or the conversation if it is unknown, after the tap if `names` has it."""
    where = f"{names[tap]}: " if tap in names else ""
    return f"{where}{peer or conversation}"


def find_ticks(begin: datetime, span_s: float, most: int) -> Iterator[tuple[float, str]]:
    """Yield about `most` round moments of a time range: seconds from `begin`, and a label."""
    step = next((step for step in TICK_STEPS_S if span_s / step <= most), TICK_STEPS_S[-1])
    since = (begin - EPOCH).total_seconds()
    at = -(-since // step) * step
    while at <= since + span_s:
        yield at - since, _tick_text(EPOCH + timedelta(seconds=at), step)
        at += step


def _tick_text(moment: datetime, step: int) -> str:
    """Return the date where a day begins, else the time of day."""
    if step >= 30 * DAY:
        return f"{moment:%Y-%m-%d}"
    if moment.timestamp() % DAY == 0:
        return f"{moment:%m-%d}"
    return f"{moment:%H:%M}" if step >= MINUTE else f"{moment:%H:%M:%S}"


class Piece(msgspec.Struct, frozen=True):
    """Octets of one field of one frame, as texts.

    Attributes:
        octets: hexadecimal, in lines.
        printable: the same octets in ASCII.
        more: how many octets of the field are not shown.
        fault: the error at this place.
    """

    offset: str
    field: str
    octets: str
    printable: str
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
    marks = [Mark(number, 0, len(frame), "") for number, frame in enumerate(frames)]
    error = None
    if protocol in known_protocols():
        marks, error = mark_fields(load_layout(protocol), frames, sender)
    whole = sizes if len(sizes) == len(frames) else [len(frame) for frame in frames]
    dumped = []
    for number, frame in enumerate(frames[:FRAMES_SHOWN]):
        fields = [mark for mark in marks if mark.frame == number]
        title = f"frame {number}, {count_text(whole[number])} octets"
        if (hidden := len(fields) - FIELDS_SHOWN) > 0:
            title += f"; {count_text(hidden)} more fields are omitted"
        # Where a frame was cut, the decoder's error is about the cut.
        is_faulty = error is not None and error.frame == number and 0 < len(frame) == whole[number]
        fault = (error.offset or 0, str(error)) if error is not None and is_faulty else None
        dumped.append(RawFrame(title, tuple(_pieces(frame, fields[:FIELDS_SHOWN], fault))))
    return tuple(dumped)


def _pieces(frame: bytes, marks: Sequence[Mark], fault: tuple[int, str] | None) -> Iterator[Piece]:
    """Yield the fields of a frame; `fault` is the octet and the sentence of the error in it."""
    for number, mark in enumerate(marks):
        end = mark.offset + mark.octets
        content = frame[mark.offset : end]
        starts = range(0, min(len(content), MARK_OCTETS), LINE_OCTETS)
        lines = [content[start : min(start + LINE_OCTETS, MARK_OCTETS)] for start in starts]
        hidden = len(content) - sum(map(len, lines))
        is_last = number == len(marks) - 1
        is_wrong = fault and (mark.offset <= fault[0] < end or (is_last and fault[0] >= len(frame)))
        yield Piece(
            offset=str(mark.offset),
            field=mark.field,
            octets="\n".join(line.hex(" ") for line in lines),
            printable="\n".join(map(_printable, lines)),
            more=f"and {count_text(hidden)} more octets" if hidden else "",
            fault=fault[1] if fault and is_wrong else "",
        )


def _printable(octets: bytes) -> str:
    return "".join(chr(octet) if 0x20 <= octet < 0x7F else "·" for octet in octets)
