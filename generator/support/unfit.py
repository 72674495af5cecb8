"""Explanation of a failed encode: the slow path that finds the fault.

Besides values that do not fit their fields (see `specwire.generated.writer`) it finds contradictions:

- two readings of one frame are both present
- a route is empty
- a flag bit announces a frame that is absent
- the octets match the pattern or shape of another message
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import NoReturn, SupportsIndex

from specwire.generated.codings import describe
from specwire.generated.errors import DecodeError, EncodeError
from specwire.generated.layout import Field, Frame, ProtocolLayout, Rest, Shape, Stack
from specwire.generated.messages import Message
from specwire.generated.named_plan import NamedMessage, NamedPlan, named_plan, values
from specwire.generated.octets import pattern_octets
from specwire.generated.plan import ManyFrames, Number, OneFrame
from specwire.generated.refusal import check_letter, ends_stack
from specwire.generated.selection import match_pattern
from specwire.generated.shapes import class_of, fits
from specwire.generated.words import show
from specwire.generated.writer import Pieces, Writer


def explain_encode(layout: ProtocolLayout, message: Message, strict: bool = False) -> EncodeError:
    """Return the error that names the field of `message` that does not fit, and the reason."""
    plan = named_plan(layout)
    found = next(named for named in plan.messages.values() if named.layout.name == message.NAME)
    try:
        _Check(plan, found, message, strict).message()
    except EncodeError as error:
        return error
    return EncodeError(
        protocol=layout.protocol, message_name=found.layout.name, field=None, frame=None, offset=None, kind="frames",
        expected="fields that both paths can write", found="a disagreement between them; please report it",
        rule=layout.edition,
    )  # fmt: skip


def check_encoded(layout: ProtocolLayout, frames: list[bytes], sender: str | None = None) -> list[bytes]:
    """Return `frames` after checking them to the letter of the specification.

    `sender` is needed if only the sender identifies the message.

    Raises:
        EncodeError: a field violates the letter of the specification.
    """
    try:
        check_letter(layout, frames, sender=sender)
    except DecodeError as error:
        raise EncodeError(**error.attributes()) from None
    return frames


class _Check:
    """Check of the parts of one message."""

    def __init__(self, plan: NamedPlan, named: NamedMessage, message: Message, strict: bool) -> None:
        self.layout = plan.layout
        self.named = named
        self.instance = message
        self.writer = Writer(plan, named, type(message).__module__, strict)
        self.frames: list[Pieces] = []

    def message(self) -> None:
        """Check every field; raise EncodeError at the first that does not fit."""
        self._one_reading()
        absent = False
        for part, laid in zip(self.named.parts, self.named.layout.parts, strict=True):
            field = _first(laid)
            value = getattr(self.instance, field.attribute) if field else None
            if field and part.presence.kind != "always" and value is None:
                absent = absent or part.presence.kind == "counted"
                continue
            if field and absent:
                self.writer.move(field, field.name)
                self.writer.refuse("frames", "None, as the field before it", describe(value))
            if isinstance(part, OneFrame):
                self._frame(part)
            else:
                self._elements(part)
        if self.named.layout.patterns:
            self._own_pattern()
        if self.layout.shapes:
            self._own_shape()

    def _one_reading(self) -> None:
        """Raise if two parts that are readings of one frame are both present."""
        groups: dict[int, list[Field]] = {}
        for part in self.named.layout.parts:
            if isinstance(part, Frame) and part.presence.kind == "announced":
                field = _first(part)
                if field and getattr(self.instance, field.attribute) is not None:
                    groups.setdefault(part.presence.mask, []).append(field)
        for fields in groups.values():
            if len(fields) > 1:
                self.writer.move(fields[1], fields[1].name)
                self.writer.refuse("frames", f"None beside {fields[0].name}", "a value")

    def _frame(self, part: OneFrame) -> None:
        for op in values(part.body):
            if isinstance(op, Number) and op.flags:
                self._flags(self.named.fields[op.slot])
        self.frames.append(self.writer.run(part.body, self.instance))

    def _flags(self, field: Field) -> None:
        announcing, value = self.layout.announcing, getattr(self.instance, field.attribute)
        if isinstance(value, SupportsIndex) and index(value) & announcing:
            self.writer.move(field, field.name)
            expected = f"no bit of 0x{announcing:02x}: they follow from the other fields"
            self.writer.refuse("range", expected, f"0x{index(value) & announcing:02x}")

    def _elements(self, part: ManyFrames) -> None:
        field, writer = self.named.fields[part.slot], self.writer
        writer.move(field, field.name)
        for number, element in enumerate(writer.sequence(getattr(self.instance, field.attribute))):
            writer.move(field, f"{field.name}[{number}]")
            if part.delimiter == b"" and isinstance(element, str | bytes) and not element:
                writer.refuse("length", "at least 1 octet: an empty frame ends the stack", "0 octets")
            octets = writer.item(part.body, element)
            if part.delimiter and ends_stack(part, octets):
                writer.move(field, f"{field.name}[{number}]")
                expected = f"octets other than {show(part.delimiter)}, which end the stack"
                writer.refuse("text", expected, show(part.delimiter))
            self.frames.append([(field, octets)])
        if part.delimiter is not None:
            self.frames.append([(field, part.delimiter)])

    def _own_pattern(self) -> None:
        """Raise if the octets match a longer pattern of another message."""
        found = match_pattern(self.layout, _octets(self.frames[0]))
        if found is None or found[0] is self.named.layout:
            return
        self._refuse_claimed(found[1], self.frames[0], found[0].name)

    def _own_shape(self) -> None:
        """Raise if the frames match a more specific shape of another message with a sender in common."""
        own = next(shape for name, shape in self.layout.shapes if name == self.named.layout.class_name)
        for sender in own.senders or (None,):
            self._own_shape_from(sender)

    def _own_shape_from(self, sender: str | None) -> None:
        frames = [_octets(pieces) for pieces in self.frames]
        try:
            found = class_of(self.layout, frames, sender)
        except LookupError:
            found = next((name for name, shape in self._fitting(frames)), "")
        heads = next((shape.frames for name, shape in self._fitting(frames) if name == found), ())
        if found == self.named.layout.class_name:
            return
        for (octets, _), pieces in zip(heads, self.frames, strict=False):
            self._refuse_claimed(octets, pieces, found)
        for (octets, whole), pieces in zip(heads, self.frames, strict=False):
            for field, piece in pieces:
                if not field.implied and (octets or whole):
                    self._refuse_look(field, piece, found)

    def _fitting(self, frames: list[bytes]) -> Iterator[tuple[str, Shape]]:
        """Yield the shapes that frames match, and their classes."""
        for name, shape in self.layout.shapes:
            if fits(shape, frames, folded=self.layout.folded):
                yield name, shape

    def _refuse_claimed(self, pattern: str, pieces: Pieces, other: str) -> None:
        """Raise for the first field with octets that a pattern of another message fixes."""
        claimed = {at for at, (_, mask) in enumerate(pattern_octets(pattern)) if mask}
        start = 0
        for field, piece in pieces:
            if not field.implied and claimed & set(range(start, start + len(piece))):
                self._refuse_look(field, piece, other)
            start += len(piece)

    def _refuse_look(self, field: Field, piece: bytes, other: str) -> NoReturn:
        self.writer.move(field, field.name)
        self.writer.refuse("tag", f"what does not make it {other}", show(piece))


def _first(part: Frame | Stack | Rest) -> Field | None:
    """Return the first field of a part that has an attribute."""
    fields = part.fields if isinstance(part, Frame) else (part.field,)
    return next((field for field in fields if not field.implied), None)


def _octets(pieces: Pieces) -> bytes:
    return b"".join(octets for _, octets in pieces)
