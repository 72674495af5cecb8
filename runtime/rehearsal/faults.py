"""Broken messages: a message with something wrong in it that no decoder takes, and what it is.

Which octets are which field is read off the layout, so a command is made another one and a length an absurd one in any
protocol. Where a message has nothing of the kind (a protocol of frames has no lengths), another fault is tried.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from specwire.generated.errors import DecodeError
from specwire.generated.marks import mark_fields
from specwire.runtime.rehearsal.language import Language

TRIES = 8
FILL_OCTETS = (1, 2, 4, 8)
"""How many octets of a length are filled: the first makes any length absurd, the rest are for those behind a tag."""


class Broken(msgspec.Struct, frozen=True):
    """Frames that are no message.

    Attributes:
        kind: truncated, wrong command, absurd length, frames.
        detail: what was done.
        frames: to be sent.
        error: what our own decoder says of them.
    """

    kind: str
    detail: str
    frames: list[bytes]
    error: DecodeError


Change = tuple[str, list[bytes]]
Breaker = Callable[[Language, random.Random, list[bytes], str], Iterator[Change]]


def break_message(
    language: Language, dice: random.Random, frames: Sequence[bytes], sender: str, kind: str
) -> Broken | None:
    """Return the frames of a message with a fault of this kind; None where none of those tried made it unreadable."""
    for detail, changed in BREAKERS[kind](language, dice, list(frames), sender):
        error = language.fault_in(changed)
        if error is not None:
            return Broken(kind, detail, changed, error)
    return None


def _truncate(_: Language, dice: random.Random, frames: list[bytes], __: str) -> Iterator[Change]:
    long = [index for index, frame in enumerate(frames) if frame]
    for _try in range(TRIES if long else 0):
        index = dice.choice(long)
        octets = dice.randrange(len(frames[index]))
        changed = [*frames[:index], frames[index][:octets], *frames[index + 1 :]]
        yield f"frame {index} ends after {octets} of {len(frames[index])} octets", changed


def _change_command(
    language: Language, dice: random.Random, frames: list[bytes], sender: str
) -> Iterator[Change]:
    kind = type(language.decode(frames))
    constants = {name.rstrip("_") for name in dir(kind) if name not in kind.__match_args__}
    marks, _ = mark_fields(language.layout, frames, sender)
    fixed = [mark for mark in marks if mark.field in constants]
    for _try in range(TRIES if fixed else 0):
        mark = dice.choice(fixed)
        at = mark.offset + dice.randrange(mark.octets)
        octet = dice.randrange(256)
        yield f"{mark.field} has {octet:#04x} at octet {at}", _write(frames, mark.frame, at, bytes((octet,)))


def _announce_much(
    language: Language, dice: random.Random, frames: list[bytes], sender: str
) -> Iterator[Change]:
    marks, _ = mark_fields(language.layout, frames, sender)
    dice.shuffle(marks)
    for mark in marks:
        for octets in FILL_OCTETS:
            if octets > mark.octets:
                continue
            changed = _write(frames, mark.frame, mark.offset, b"\xff" * octets)
            error = language.fault_in(changed)
            if error is not None and error.kind in ("length", "count"):
                yield f"{mark.field} is said to have {octets} octets of ff", changed


def _spoil_frames(_: Language, dice: random.Random, frames: list[bytes], __: str) -> Iterator[Change]:
    for _try in range(TRIES):
        index = dice.randrange(len(frames))
        match dice.randrange(4):
            case 0 if len(frames) > 1:
                yield f"frame {index} of {len(frames)} is missing", [*frames[:index], *frames[index + 1 :]]
            case 1:
                more = dice.randbytes(dice.randrange(1, 40))
                yield f"a frame too many before frame {index}", [*frames[:index], more, *frames[index:]]
            case 2:
                more = dice.randbytes(dice.randrange(1, 20))
                changed = [*frames[:index], frames[index] + more, *frames[index + 1 :]]
                yield f"frame {index} has {len(more)} octets too many", changed
            case _:
                yield (
                    "noise instead of a message",
                    [dice.randbytes(dice.randrange(1, 60)) for _ in range(dice.randrange(1, 4))],
                )


BREAKERS: dict[str, Breaker] = {
    "truncated": _truncate,
    "wrong command": _change_command,
    "absurd length": _announce_much,
    "frames": _spoil_frames,
}


def _write(frames: list[bytes], index: int, at: int, octets: bytes) -> list[bytes]:
    frame = frames[index]
    return [*frames[:index], frame[:at] + octets + frame[at + len(octets) :], *frames[index + 1 :]]
