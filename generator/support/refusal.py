"""Explanation of a failed decode: the slow path that finds the first fault.

`explain_decode` checks the frames with the operations of the plan and returns the first fault:
message, field with list index, frame, octet. `check_letter` makes the same pass for ``strict``,
which also checks the character classes of the grammar and the requirements of the prose. Neither is
fast.

The order of the checks: flags, presence of each part, fields in the order of the octets, surplus
frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from specwire.generated import plan as ops
from specwire.generated.errors import DecodeError
from specwire.generated.layout import Integer, ProtocolLayout
from specwire.generated.named_plan import named_plan
from specwire.generated.octets import as_frames
from specwire.generated.reader import Reader
from specwire.generated.selection import find_message
from specwire.generated.words import either, frames_word, show


def explain_decode(
    layout: ProtocolLayout, frames: Sequence[bytes], strict: bool = False, sender: str | None = None
) -> DecodeError:
    """Return the error that describes the first fault of `frames`; `sender` is their alleged role."""
    try:
        check_letter(layout, frames, strict=strict, sender=sender)
    except DecodeError as error:
        return error
    # Tests prove that both paths agree; this error is for the case that they do not.
    return DecodeError(
        protocol=layout.protocol, message_name=None, field=None, frame=None, offset=None, kind="frames",
        expected="frames that both readings of the grammar accept", found="a disagreement between them; please report it",
        rule=layout.edition,
    )  # fmt: skip


def check_letter(
    layout: ProtocolLayout, frames: Sequence[bytes], *, strict: bool = True, sender: str | None = None
) -> None:
    """Check `frames`; with `strict`, to the letter of the specification.

    Raises:
        DecodeError: the first fault.
    """
    octets = as_frames(frames)
    plan = named_plan(layout)
    check_message(Reader(plan, find_message(plan, octets, sender), octets, strict))


def check_message(reader: Reader) -> None:
    """Check all frames of a message: every part, then that no frame is left.

    Raises:
        DecodeError: the first fault.
    """
    _Pass(reader).message()


class _Pass:
    """Pass over the frames of one message."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.parts = reader.message.parts
        self.frames = reader.frames
        self.selectors = reader.plan.layout.selectors
        self.announcing = reader.plan.layout.announcing

    def message(self) -> None:
        reader = self.reader
        flags = self._flags()
        for part, title, after in zip(
            self.parts, reader.message.titles, reader.message.required_after, strict=True
        ):
            reader.move(*title)
            if isinstance(part, ops.ManyFrames) and not part.delimited:
                for number in range(len(self.frames) - reader.index):
                    self._element(part, number)
            elif self._present(part, flags, after):
                self._part(part)
            elif reader.strict and part.letter == "required":
                reader.refuse("frames", f"the part {reader.path}", "no such part", None)
        if reader.index < len(self.frames):
            self._refuse_surplus(reader.index)

    def _part(self, part: ops.Part) -> None:
        reader = self.reader
        if reader.strict and part.letter == "forbidden":
            reader.refuse("frames", f"no {reader.path}", "one", None)
        # A header that is counted from the end stays the same part, however many frames there are.
        header = any(frame < 0 for frame, _ in self.selectors)
        last = part is self.parts[-1]
        if header and last and reader.index < len(self.frames) - 1:
            self._refuse_surplus(reader.index + 1)
        if reader.index >= len(self.frames) - (header and not last):
            self._refuse_missing(part)
        if isinstance(part, ops.OneFrame):
            self._frame(part)
        else:
            self._stack(part)
        reader.index += 1

    def _refuse_surplus(self, wanted: int) -> NoReturn:
        self.reader.move(None, "")
        self.reader.refuse("frames", frames_word(self.frames[:wanted]), str(len(self.frames)), None)

    def _refuse_missing(self, part: ops.Part) -> NoReturn:
        """Raise for a frame that is missing: the only one of a part, or the one that ends a stack."""
        what = "a frame with"
        if isinstance(part, ops.ManyFrames):
            what = (
                f"a frame {show(part.delimiter)} that ends" if part.delimiter else "an empty frame that ends"
            )
        self.reader.refuse("frames", f"{what} {self.reader.path}", frames_word(self.frames), None)

    def _stack(self, part: ops.ManyFrames) -> None:
        for number in range(self._stack_end(part) - self.reader.index):
            self._element(part, number)

    def _stack_end(self, part: ops.ManyFrames) -> int:
        """Return the index of the frame that ends a stack."""
        start = self.reader.index
        if part.delimiter not in self.frames[start:]:
            self.reader.index = len(self.frames)
            self._refuse_missing(part)
        return self.frames.index(part.delimiter, start)

    def _element(self, part: ops.ManyFrames, number: int) -> None:
        reader = self.reader
        field = reader.message.fields[part.slot]
        reader.open(field, f"{field.name}[{number}]")
        self._body(part.body)
        reader.ends()
        if ends_stack(part, reader.frame):
            # Without NUL, the frame would be the one that ends the stack.
            expected = f"text other than {show(part.delimiter)}" if part.delimiter else "text before the NUL"
            reader.refuse("length", expected, show(part.delimiter) if part.delimiter else "none", 0)
        reader.index += 1

    def _frame(self, part: ops.OneFrame) -> None:
        reader = self.reader
        reader.open(reader.field, reader.path)
        self._body(part.body)
        reader.move(None, "")
        reader.ends()

    def _body(self, body: ops.Body) -> None:
        match body:
            case (ops.Fixed(body=(ops.Expect() as only,)),):
                self.reader.whole(only)
            case _:
                self.reader.visit(body)

    def _present(self, part: ops.Part, flags: int | None, after: int) -> bool:
        match part.presence.kind:
            case "announced":
                return flags is not None and flags & part.presence.mask == part.presence.value
            case "counted":
                return self.reader.index < len(self.frames) - after
        return True

    def _flags(self) -> int | None:
        """Return the checked flags; None for a message without flags."""
        reader = self.reader
        if reader.message.flags is None:
            return None
        position, op, offset = reader.message.flags
        part = self.parts[position]
        reader.index = self._frame_of(position)
        field = reader.message.fields[op.slot]
        reader.move(field, field.name)
        if reader.index >= len(self.frames):
            self._refuse_missing(part)
        reader.open(field, field.name)
        if offset is None:
            flags, offset = reader.number_in(part.body, op.slot)
            reader.move(field, field.name)
        else:
            reader.at = offset
            assert isinstance(op.coding, Integer)
            flags = int.from_bytes(reader.take(op.coding.octets), op.coding.order)
        self._check_flags(flags, offset)
        reader.index = 0
        return flags

    def _frame_of(self, position: int) -> int:
        """Return the index of the frame with the flags, which is the last or always in one place."""
        # Flags at the end of a message are counted from its end: they determine how many frames
        # precede.
        if position == len(self.parts) - 1:
            return len(self.frames) - 1
        for part, title in zip(self.parts[:position], self.reader.message.titles, strict=False):
            self.reader.move(*title)
            if isinstance(part, ops.ManyFrames):
                self.reader.index = self._stack_end(part)
            self.reader.index += 1
        return self.reader.index

    def _check_flags(self, flags: int, offset: int) -> None:
        """Check for bits of parts that the message lacks, and for incomplete combinations of bits."""
        allowed, absent = ops.flag_values(self.parts, self.announcing)
        for mask, values in allowed.items():
            if flags & mask not in values:
                self._refuse_flags(flags & mask, either(f"0x{v:02x}" for v in sorted(values)), offset)
        if flags & absent:
            self._refuse_flags(flags & absent, "0x00: the message has no such part", offset)

    def _refuse_flags(self, found: int, expected: str, offset: int) -> NoReturn:
        self.reader.refuse("range", expected, f"0x{found:02x}", offset)


def ends_stack(part: ops.ManyFrames, frame: bytes) -> bool:
    """Return whether a frame is the delimiter of a stack, or would be without the NUL after a text."""
    if part.delimiter is None:
        return False
    terminated = any(isinstance(op, ops.TakeText) and op.terminated for op in part.body)
    return frame == part.delimiter or (terminated and frame == part.delimiter + b"\0")
