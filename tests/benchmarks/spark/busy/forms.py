"""Messages of a large capture: forms that are encoded once, and numbers that are put into their copies.

A form is a message with up to two numbers left open (a tag, an offset, a job's id). Arrow copies the forms of a
segment in one go, and numpy writes the numbers into the copies, so no Python runs for a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from specwire.generated.messages import Message

FIRST, SECOND = 0x5A3C6978, 0x4B2D7A69
"""What stands for the two open numbers while a form is made; all octets differ, and are found once."""

FRAMES = pa.list_(pa.binary())
Ints = NDArray[np.int64]
Octets = NDArray[np.uint8]
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


class Form(NamedTuple):
    """A message, and where its open numbers are: octets from its beginning, -1 for none; `text`: in hexadecimal."""

    frames: Sequence[bytes]
    first: int
    second: int
    text: bool


def make_form(frames: Sequence[bytes]) -> Form:
    """Return the form of a message in which `FIRST` and `SECOND` stand for numbers."""
    octets = b"".join(frames)
    spelled = octets.find(f"{FIRST:08x}".encode())
    first, second = (octets.find(number.to_bytes(4, "big")) for number in (FIRST, SECOND))
    return Form(frames, spelled if spelled >= 0 else first, second, spelled >= 0)


class Forms:
    """The forms of one tap, each once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[bytes, ...], int] = {}

    def number(self, message: Message | Sequence[bytes]) -> int:
        """Return the number of the form of a message, which may be given as frames."""
        frames = tuple(message if isinstance(message, Sequence) else message.encode())
        return self._numbers.setdefault(frames, len(self._numbers))

    def copy(self, numbers: Ints, first: Ints, second: Ints) -> pa.Array[Any]:
        """Return the frames of messages: of each the number of its form, and the numbers that are put in."""
        forms = [make_form(frames) for frames in self._numbers]
        once: Any = pa.array([form.frames for form in forms], FRAMES)
        copies = once.take(pa.array(numbers))
        lists = np.frombuffer(copies.buffers()[1], np.int32)[: len(copies)]
        ends = np.frombuffer(copies.values.buffers()[1], np.int32)
        octets = np.frombuffer(copies.values.buffers()[2], np.uint8).copy()
        begins = ends[lists].astype(np.int64)
        text = np.array([form.text for form in forms])[numbers]
        for values, places in (
            (first, [form.first for form in forms]),
            (second, [form.second for form in forms]),
        ):
            at = np.array(places)[numbers]
            for wanted, write in ((~text, _put), (text, _spell)):
                rows = (at >= 0) & wanted
                write(octets, (begins + at)[rows], values[rows])
        buffers = [None, copies.values.buffers()[1], pa.py_buffer(octets.data)]
        frames = pa.Array.from_buffers(pa.binary(), len(copies.values), buffers)
        return pa.ListArray.from_arrays(copies.offsets, frames)


def _put(octets: Octets, places: Ints, values: Ints) -> None:
    for octet in range(4):
        octets[places + octet] = (values >> (8 * (3 - octet))) & 0xFF


def _spell(octets: Octets, places: Ints, values: Ints) -> None:
    for digit in range(8):
        octets[places + digit] = HEX[(values >> (4 * (7 - digit))) & 0xF]
