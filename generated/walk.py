# Written by specwire from generator/support/walk.py. Do not edit; change that file and run `make generate`.
"""Check of all frames of a message, for the slow path of decoding: flags, parts, then fields."""

from __future__ import annotations

from typing import NoReturn

from specwire.generated.layout import (
    Constant,
    Field,
    Frame,
    Integer,
    Keyword,
    MessageLayout,
    Octets,
    Padding,
    ProtocolLayout,
    Rest,
    Span,
    Stack,
    Text,
    Type,
)
from specwire.generated.place import Place
from specwire.generated.runs import check_frame, check_value
from specwire.generated.values import check_words
from specwire.generated.words import either, frames_word, number_of


class Walk:
    """Pass over the frames of one message."""

    def __init__(
        self, layout: ProtocolLayout, message: MessageLayout, frames: list[bytes], strict: bool
    ) -> None:
        self.layout = layout
        self.parts = message.parts
        self.frames = frames
        self.strict = strict
        self.place = Place(layout, message, frames, strict)

    def message(self) -> None:
        """Check every part, then that no frame is left.

        Raises:
            DecodeError: the first fault.
        """
        flags = self._flags()
        place = self.place
        for part, after in zip(self.parts, self._required_after(), strict=True):
            self._enter(part)
            if isinstance(part, Rest):
                for number in range(len(self.frames) - place.index):
                    self._element(part, number)
            elif self._present(part, flags, after):
                self._part(part)
            elif self.strict and part.letter == "required":
                place.refuse("frames", f"the part {place.path}", "no such part", None)
        if place.index < len(self.frames):
            self._refuse_surplus(place.index)

    def _enter(self, part: Frame | Stack | Rest) -> None:
        """Name a part after its field; a frame of several fields has its own name."""
        if isinstance(part, Frame) and len(part.fields) > 1:
            self.place.enter(None, part.name)
        else:
            field = next(iter(part.fields)) if isinstance(part, Frame) else part.field
            self.place.enter(field, field.name)

    def _part(self, part: Frame | Stack) -> None:
        place = self.place
        if self.strict and part.letter == "forbidden":
            place.refuse("frames", f"no {place.path}", "one", None)
        # A header that is counted from the end stays the same part, however many frames there are.
        header = any(frame < 0 for frame, _ in self.layout.selectors)
        last = part is self.parts[-1]
        if header and last and place.index < len(self.frames) - 1:
            self._refuse_surplus(place.index + 1)
        if place.index >= len(self.frames) - (header and not last):
            what = "a frame with" if isinstance(part, Frame) else "an empty frame that ends"
            place.refuse("frames", f"{what} {place.path}", frames_word(self.frames), None)
        if isinstance(part, Frame):
            self._frame(part)
        else:
            self._stack(part)
        place.index += 1

    def _refuse_surplus(self, wanted: int) -> NoReturn:
        self.place.enter(None, "")
        self.place.refuse("frames", frames_word(self.frames[:wanted]), str(len(self.frames)), None)

    def _stack(self, part: Stack) -> None:
        place = self.place
        if b"" not in self.frames[place.index :]:
            place.index = len(self.frames)
            place.refuse("frames", f"an empty frame that ends {place.path}", frames_word(self.frames), None)
        for number in range(self.frames.index(b"", place.index) - place.index):
            self._element(part, number)

    def _element(self, part: Stack | Rest, number: int) -> None:
        place = self.place
        place.open(part.field, f"{part.field.name}[{number}]")
        self._ends(self._value(part.field.type))
        if isinstance(part, Stack) and _is_nothing(part.field.type, place.frame):
            # Without NUL, the frame would be the empty one that ends the stack.
            place.refuse("length", "text before the NUL", "none", 0)
        place.index += 1

    def _frame(self, part: Frame) -> None:
        only = part.fields[0]
        self.place.open(only, only.name)
        if len(part.fields) == 1 and isinstance(only.type, Keyword | Constant):
            check_words(self.place, only.type)
            return
        at = check_frame(self.place, part.fields)
        self.place.enter(None, "")
        self._ends(at)

    def _value(self, type: Type) -> int:
        """Check a value that fills a frame; return where it ends."""
        if isinstance(type, Keyword | Constant):
            check_words(self.place, type)
            return self.place.end
        return check_value(self.place, type, 0)

    def _ends(self, at: int) -> None:
        left = self.place.end - at
        if left:
            self.place.refuse("trailing", "the end of the frame", number_of(left, "more octet"), at)

    def _required_after(self) -> list[int]:
        """Return, for each part, the minimum number of frames of the parts after it."""
        needs: list[int] = []
        total = 0
        for part in reversed(self.parts):
            needs.append(total)
            if not isinstance(part, Rest) and part.presence.kind == "always":
                total += 1
        return needs[::-1]

    def _present(self, part: Frame | Stack, flags: int | None, after: int) -> bool:
        match part.presence.kind:
            case "announced":
                return flags is not None and flags & part.presence.mask == part.presence.value
            case "counted":
                return self.place.index < len(self.frames) - after
        return True

    def _flags(self) -> int | None:
        """Return the checked flags octet; None for a protocol without flags."""
        for position, part in enumerate(self.parts):
            offset = 0
            for field in part.fields if isinstance(part, Frame) else ():
                if field.flags:
                    flags = self._peek(position, field, offset)
                    self._check_flags(flags, offset)
                    self.place.index = 0
                    return flags
                offset += _fixed_size(field.type) or 0
        return None

    def _peek(self, position: int, field: Field, offset: int) -> int:
        # Flags at the end of a message are counted from its end: they determine how many frames
        # precede.
        last = position == len(self.parts) - 1
        self.place.index = len(self.frames) - 1 if last else position
        self.place.open(field, field.name)
        return self.place.take(offset, 1)[0]

    def _check_flags(self, flags: int, offset: int) -> None:
        """Check for bits of parts that the message lacks, and for incomplete combinations of bits."""
        allowed: dict[int, set[int]] = {}
        for part in self.parts:
            if isinstance(part, Rest) or not part.presence.mask:
                continue
            values = allowed.setdefault(part.presence.mask, set())
            values.add(part.presence.value)
            if part.presence.kind == "announced":
                values.add(0)
        known = 0
        for mask, values in allowed.items():
            known |= mask
            if flags & mask not in values:
                self._refuse_flags(flags & mask, either(f"0x{v:02x}" for v in sorted(values)), offset)
        absent = flags & self.layout.announcing & ~known
        if absent:
            self._refuse_flags(absent, "0x00: the message has no such part", offset)

    def _refuse_flags(self, found: int, expected: str, offset: int) -> NoReturn:
        self.place.refuse("range", expected, f"0x{found:02x}", offset)


def _is_nothing(type: Type, frame: bytes) -> bool:
    """Return whether a frame of a stack holds at most the NUL that ends a text."""
    return isinstance(type, Text) and type.terminated and frame == b"\0"


def _fixed_size(type: Type) -> int | None:
    match type:
        case Constant(octets=octets):
            return len(octets)
        case Integer(octets=octets):
            return octets
        case Padding(octets=octets):
            return octets
        case Octets(span=Span(kind="fixed", octets=octets)) | Text(span=Span(kind="fixed", octets=octets)):
            return octets
    return None
