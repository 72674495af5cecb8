"""Whether a reader looks for a part in just the messages that have it.

Where flags announce parts, the question has an exact answer: we go through every value of the bits that
matter, as far as the writing edition can write it, and see whether both find the part or both do not. A bit
that an edition has no name for is never set by it; a bit that announces a part that the message lacks is
refused by a reader, as is half of a mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from specwire.generator import ir
from specwire.generator.compare.comparison import Judgement, depends, no, yes

MOST_BITS = 12
"""Masks of more bits are not gone through."""


@dataclass(frozen=True, slots=True)
class Side:
    """A message in one edition, with the flags that the edition names."""

    message: ir.Message
    flags: tuple[ir.FlagBit, ...]

    def values(self, bits: int) -> Iterator[int]:
        """Yield what this edition can write in the bits `bits`."""
        single = [1 << number for number in range(bits.bit_length()) if bits >> number & 1]
        for chosen in product((False, True), repeat=len(single)):
            value = sum(bit for bit, is_set in zip(single, chosen, strict=True) if is_set)
            if not value & ~self._named and self.accepts(value, bits):
                yield value

    @property
    def _named(self) -> int:
        masks = [presence.mask for presence in self._presences()]
        return _union([bit.value for bit in self.flags]) | _union(masks)

    def accepts(self, value: int, bits: int) -> bool:
        """Return whether a reader of this edition takes `value` in the bits `bits`."""
        allowed: dict[int, set[int]] = {}
        for presence in self._presences():
            allowed.setdefault(presence.mask, set()).add(presence.value)
            if isinstance(presence, ir.Announced):
                allowed[presence.mask].add(0)
        announcing = _union([bit.value for bit in self.flags if bit.announces is not None])
        fits = all(
            value & mask & bits in {one & bits for one in values}
            for mask, values in allowed.items()
            if mask & bits
        )
        return fits and not value & announcing & ~_union(list(allowed))

    def _presences(self) -> Iterator[ir.Always | ir.Announced]:
        for part in self.message.parts:
            presence = presence_of(part)
            if isinstance(presence, ir.Always | ir.Announced) and presence.mask:
                yield presence


def _union(values: list[int]) -> int:
    bits = 0
    for value in values:
        bits |= value
    return bits


def presence_of(part: ir.Part) -> ir.Presence | None:
    """Return when the part is there; None for the rest of the frames, which may be none."""
    return None if isinstance(part, ir.Rest) else part.presence


def finds(writer: Side, written: ir.Part | None, reader: Side, read: ir.Part | None) -> Judgement:
    """Return whether a reader that looks for `read` finds what a writer of `written` puts there; None is no part."""
    if written is None and read is not None and _may_lack(read):
        return _finds_nothing(writer, read)
    if read is None and written is not None and _takes_surplus(reader):
        return no("the reader takes the frame for another part")
    of = [presence_of(part) for part in (written, read) if part is not None]
    if any(
        isinstance(presence, ir.Announced) or (presence and getattr(presence, "mask", 0)) for presence in of
    ):
        return _finds_announced(writer, written, reader, read)
    if None in of or any(isinstance(presence, ir.Counted) for presence in of):
        if written is not None and read is not None and isinstance(presence_of(written), ir.Always):
            return yes("the frame is always there")
        return depends(
            "read as meant where the frame is there" if read else "read as meant where the frame is left out"
        )
    if (written is None) == (read is None):
        return yes("the frame is always there")
    return no(
        "a frame is missing, which the reader refuses"
        if read
        else "a frame is left over, which the reader refuses"
    )


def _may_lack(read: ir.Part) -> bool:
    return isinstance(presence_of(read), ir.Counted | None)


def _finds_nothing(writer: Side, read: ir.Part) -> Judgement:
    """A part that may be left out at the end, in data that never has it."""
    position = next(
        (number for number, part in enumerate(writer.message.parts) if _may_lack(part)),
        len(writer.message.parts),
    )
    if position < len(writer.message.parts):
        return depends("read as meant where no frame is there that the reader could take for it")
    return yes(f"{read.name} may be left out")


def _takes_surplus(reader: Side) -> bool:
    """Whether the reader has a part that takes frames by their number alone."""
    return any(_may_lack(part) for part in reader.message.parts)


def _finds_announced(writer: Side, written: ir.Part | None, reader: Side, read: ir.Part | None) -> Judgement:
    bits = 0
    for part in (written, read):
        presence = presence_of(part) if part is not None else None
        bits |= getattr(presence, "mask", 0)
    if bits.bit_count() > MOST_BITS:
        return depends("the bits are too many to go through all their values")
    alike = [
        value
        for value in writer.values(bits)
        if reader.accepts(value, bits) and _is_there(written, value) is _is_there(read, value)
    ]
    count = sum(1 for _ in writer.values(bits))
    if len(alike) == count:
        return yes("the flags tell the reader so")
    if not alike:
        return no("the reader looks for the frame where it is not, or not where it is")
    values = " or ".join(f"0x{value:02x}" for value in alike)
    return depends(f"read as meant where the bits 0x{bits:02x} of the flags are {values}")


def _is_there(part: ir.Part | None, flags: int) -> bool:
    if part is None:
        return False
    presence = presence_of(part)
    return not isinstance(presence, ir.Announced) or flags & presence.mask == presence.value
