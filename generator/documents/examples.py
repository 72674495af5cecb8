"""Hexadecimal examples of messages in a document.

An example is a run of lines that consist of octets only, apart from a label in front and a remark
behind: hex dumps with offsets, ``01 02 03``, ``0x01 0x02``, ``%x01.02``, or one line for each frame
(``Frame 1: 0x01``). A frame list with one line that is not octets describes a message in general, so
it is not an example. Neither are octets in the middle of a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from specwire.generator.documents.blocks import Block

LEAST_OCTETS = 3
"""Octets that bare pairs of digits must have to be an example: ``10 20`` may be two numbers."""
LARGEST_DUMP = 2**16
"""Octets of an example; a longer dump is data."""

_Kind = Literal["frame", "dump", "octets"]
_FRAME = re.compile(r"[ \t]*(?:[*-][ \t]+)?Frames?[ \t]+(\d+)[^:\n]{0,12}:[ \t]*(.*)", re.IGNORECASE)
_DUMP = re.compile(r"[ \t]*(?:0x)?([0-9A-Fa-f]{4,8}):?[ \t]+((?:[0-9A-Fa-f]{2}){1,8}(?:[ \t|].*)?)$")
_REMARK = re.compile(r"(?:^|[ \t]+)[;#(].*$")
_TEXT = re.compile(r"\|[^\n]*\|[ \t]*$")
_MARKED = re.compile(
    r"(?:(?:0x|%x|\\x)[0-9A-Fa-f]{2}(?:[\s,.:-]*))(?:(?:0x|%x|\\x)?[0-9A-Fa-f]{2}[\s,.:-]*)*"
)
_BARE = re.compile(r"[0-9A-Fa-f]{2}(?:(?:,? |[:,])[0-9A-Fa-f]{2})+")
"""Pairs of digits; wider gaps are in the rulers of drawings: ``20  21  22``."""
_PREFIX = re.compile(r"0x|%x|\\x")
_QUOTED = re.compile(r'"([\x20-\x7e]*)"$')


@dataclass(frozen=True, slots=True)
class Example:
    """Octets that a document shows, with the line at which they begin.

    `readings` are the lists of frames that the lines may mean, the most likely first.
    """

    line: int
    text: str
    readings: tuple[tuple[bytes, ...], ...]


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str
    kind: _Kind
    octets: bytes | None
    """None for a frame that is described in words."""
    position: int = 0
    """The number of the frame, or the offset in the dump."""


def find_examples(lines: Sequence[str], blocks: Iterable[Block]) -> Iterator[Example]:
    """Yield the examples in the lines of a document outside the grammar in `blocks`."""
    grammar = {n for b in blocks if b.kind == "grammar" for n in range(b.first_line, b.last_line + 1)}
    run: list[_Line] = []
    for number, text in enumerate([*lines, ""], start=1):
        line = None if number in grammar else _read(number, text)
        if run and (line is None or line.kind != run[0].kind or _restarts(run[-1], line)):
            yield from _example(run)
            run = []
        if line is not None:
            run.append(line)


def _restarts(last: _Line, line: _Line) -> bool:
    return line.kind == "frame" and line.position <= last.position


def _read(number: int, text: str) -> _Line | None:
    if found := _FRAME.match(text):
        return _Line(number, text, "frame", _frame(found[2]), int(found[1]))
    if found := _DUMP.match(text):
        octets = _dumped(found[2])
        if octets is not None:
            return _Line(number, text, "dump", octets, int(found[1], 16))
    octets = _octets(_REMARK.sub("", text).strip(), least=LEAST_OCTETS)
    return None if octets is None else _Line(number, text, "octets", octets)


def _frame(text: str) -> bytes | None:
    body = _REMARK.sub("", text).strip()
    if not body or body.lower() in ("empty", "''", '""'):
        return b"" if text.strip() else None
    if quoted := _QUOTED.match(body):
        return quoted[1].encode()
    return _octets(body, least=1)


def _octets(body: str, least: int) -> bytes | None:
    """Return the octets that a text consists of; None if it has other content."""
    marked = _MARKED.fullmatch(body)
    if not marked and not (_BARE.fullmatch(body) or (least == 1 and re.fullmatch("[0-9A-Fa-f]{2}", body))):
        return None
    octets = bytes.fromhex("".join(re.findall(r"[0-9A-Fa-f]{2}", _PREFIX.sub(" ", body))))
    return octets if marked or len(octets) >= least else None


def _dumped(text: str) -> bytes | None:
    """Return the octets behind an offset, without the octets as text behind them."""
    digits = _TEXT.sub("", text)
    if digits == text:
        digits = re.split(r"[ \t]{2,}", text, maxsplit=1)[0]
    joined = "".join(digits.split())
    return bytes.fromhex(joined) if re.fullmatch(r"(?:[0-9A-Fa-f]{2})+", joined) else None


def _example(run: Sequence[_Line]) -> Iterator[Example]:
    octets = [line.octets for line in run if line.octets is not None]
    if len(octets) < len(run) or not 1 < sum(map(len, octets)) <= LARGEST_DUMP:
        return
    text = "\n".join(line.text.strip() for line in run)
    if run[0].kind == "frame":
        yield Example(run[0].number, text, (tuple(octets),))
    elif run[0].kind == "dump":
        frames = _dumps(run)
        if frames:
            yield Example(run[0].number, text, (frames,))
    else:
        readings = ((b"".join(octets),), tuple(octets))
        yield Example(run[0].number, text, readings[: len(octets)])


def _dumps(run: Sequence[_Line]) -> tuple[bytes, ...]:
    """Return the frames of dumps below each other; nothing if the offsets do not fit the octets."""
    if run[0].position:
        return ()
    for above, line in pairwise(run):
        if line.position not in (0, above.position + len(above.octets or b"")):
            return ()
    frames: list[bytes] = []
    for line in run:
        if line.position == 0:
            frames.append(b"")
        frames[-1] += line.octets or b""
    return tuple(frames)
