"""Check that a reader expects a part in exactly the messages that have it.

If flags announce parts, the answer is exact: for every value of the relevant bits that the writing
edition can write, either both editions find the part or neither does. An edition never sets a bit
for which it has no name. A reader rejects a bit that announces a part that the message lacks, and
an incomplete mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from specwire.generator import ir
from specwire.generator.compare.comparison import Judgement, depends, no, yes

MOST_BITS = 12
"""Maximum number of bits of a mask whose values are all checked."""


@dataclass(frozen=True, slots=True)
class Side:
    """A message in one edition, with the flags that the edition names."""

    message: ir.Message
    flags: tuple[ir.FlagBit, ...]

    def values(self, bits: int) -> Iterator[int]:
        """Yield the values that this edition can write in the bits `bits`."""
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
        """Return whether a reader of this edition accepts `value` in the bits `bits`."""
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
    """Return the presence of a part; None for the rest of the frames, which may be empty."""
    return None if isinstance(part, ir.Rest) else part.presence


def finds(writer: Side, written: ir.Part | None, reader: Side, read: ir.Part | None) -> Judgement:
    """Return whether a reader that expects `read` finds `written` in its place; None for no part."""
    if written is None and read is not None and _may_lack(read):
        return _finds_nothing(writer, read)
    if read is None and written is not None and _takes_surplus(reader):
        return no("the reader reads the frame as another part")
    of = [presence_of(part) for part in (written, read) if part is not None]
    if any(
        isinstance(presence, ir.Announced) or (presence and getattr(presence, "mask", 0)) for presence in of
    ):
        return _finds_announced(writer, written, reader, read)
    if None in of or any(isinstance(presence, ir.Counted) for presence in of):
        if written is not None and read is not None and isinstance(presence_of(written), ir.Always):
            return yes("the frame is always present")
        return depends("correct if the frame is present" if read else "correct if the frame is absent")
    if (written is None) == (read is None):
        return yes("the frame is always present")
    return no(
        "the reader rejects the message because a frame is missing"
        if read
        else "the reader rejects the message because of a surplus frame"
    )


def _may_lack(read: ir.Part) -> bool:
    return isinstance(presence_of(read), ir.Counted | None)


def _finds_nothing(writer: Side, read: ir.Part) -> Judgement:
    """Return how a reader with an optional last part reads data that never has it."""
    position = next(
        (number for number, part in enumerate(writer.message.parts) if _may_lack(part)),
        len(writer.message.parts),
    )
    if position < len(writer.message.parts):
        return depends("correct if there is no frame that the reader could read as this part")
    return yes(f"{read.name} may be absent")


def _takes_surplus(reader: Side) -> bool:
    """Whether the reader has a part that depends only on the number of frames."""
    return any(_may_lack(part) for part in reader.message.parts)


def _finds_announced(writer: Side, written: ir.Part | None, reader: Side, read: ir.Part | None) -> Judgement:
    bits = 0
    for part in (written, read):
        presence = presence_of(part) if part is not None else None
        bits |= getattr(presence, "mask", 0)
    if bits.bit_count() > MOST_BITS:
        return depends("there are too many bits to check all their values")
    alike = [
        value
        for value in writer.values(bits)
        if reader.accepts(value, bits) and _is_there(written, value) is _is_there(read, value)
    ]
    count = sum(1 for _ in writer.values(bits))
    if len(alike) == count:
        return yes("the flags announce it to the reader")
    if not alike:
        return no("the reader expects the frame where it is absent, or not where it is present")
    values = " or ".join(f"0x{value:02x}" for value in alike)
    return depends(f"correct if the bits 0x{bits:02x} of the flags are {values}")


def _is_there(part: ir.Part | None, flags: int) -> bool:
    if part is None:
        return False
    presence = presence_of(part)
    return not isinstance(presence, ir.Announced) or flags & presence.mask == presence.value
