"""How a message of one frame begins: patterns of octets, and how long the message says it is.

A head is the constants at the start of a frame with what stands between them: octets of any value, but of a
known number. A size in several forms gives several heads. From the heads come the patterns that tell
messages apart where no slice of the frames does (`specwire.generator.passes.tags`), and what a reader of a
byte stream has to look at to find the end of each message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from specwire.generator import ir

ANY = "??"
"""Any octet, in a pattern."""
MAX_HEADS = 64
"""Different beginnings of one message."""


@dataclass(frozen=True, slots=True)
class Head:
    """One way in which a frame begins.

    `octets` are two characters each: hexadecimal digits, or `ANY`. `unit` is what a stream's reader sees
    as soon as the head tells it how long the message is.
    """

    octets: tuple[str, ...] = ()
    unit: ir.UnitHead | None = None

    @property
    def pattern(self) -> str:
        """The head up to its last constant octet."""
        known = list(self.octets)
        while known and known[-1] == ANY:
            known.pop()
        return "".join(known)

    @property
    def prefix(self) -> str:
        """The constant octets that the head begins with."""
        known: list[str] = []
        for octet in self.octets:
            if octet == ANY:
                break
            known.append(octet)
        return "".join(known)


def find_heads(fields: Sequence[ir.Field]) -> tuple[Head, ...]:
    """Return the heads of a frame with these fields, one for each form of a size in it."""
    heads = [Head()]
    for field in fields:
        if field.optional:
            return tuple(heads)
        longer = [after for head in heads for after in _continued(head, field.type)]
        if not longer or len(longer) > MAX_HEADS:
            return tuple(heads)
        heads = longer
    return tuple(_ended(head) for head in heads)


def _continued(head: Head, type: ir.Type) -> Iterable[Head]:
    """The head with a value behind it; none where the value has no fixed size."""
    match type:
        case ir.ConstantType(hex=octets):
            yield replace(head, octets=head.octets + _pairs(octets))
        case ir.IntegerType(octets=octets) | ir.PaddingType(octets=octets):
            yield replace(head, octets=head.octets + (ANY,) * octets)
        case ir.OctetsType(length=length) | ir.TextType(length=length) if length.kind == "fixed":
            yield replace(head, octets=head.octets + (ANY,) * length.octets)
        case ir.SizeType(forms=forms):
            for form in forms:
                yield _sized(head, form)


def _sized(head: Head, form: ir.SizeForm) -> Head:
    known = replace(head, octets=head.octets + _pairs(form.tag))
    prefix = known.prefix
    skip = len(known.octets) - len(prefix) // 2
    unit = ir.UnitHead(prefix, skip=skip, size_octets=form.octets)
    return Head(known.octets + (ANY,) * form.octets, unit)


def _ended(head: Head) -> Head:
    """A frame of a fixed size: its head is all of it."""
    if head.unit is not None:
        return head
    return replace(head, unit=ir.UnitHead(head.prefix, octets=len(head.octets)))


def _pairs(hex: str) -> tuple[str, ...]:
    return tuple(hex[at : at + 2] for at in range(0, len(hex), 2))


def fits(pattern: str, other: str) -> bool:
    """Whether a frame can begin as both patterns say."""
    return all(a == b or ANY in (a, b) for a, b in zip(_pairs(pattern), _pairs(other), strict=False))


def find_units(messages: Sequence[ir.Message]) -> ir.UnitStream | None:
    """Return how the messages follow each other on a byte stream; None where they do not say how long they are."""
    units: dict[ir.UnitHead, None] = {}
    sized = False
    for message in messages:
        match message.parts:
            case (ir.Frame(fields=fields),):
                heads = find_heads(fields)
            case _:
                return None
        for head in heads:
            if head.unit is None:
                return None
            sized = sized or head.unit.size_octets > 0
            units[head.unit] = None
    return ir.UnitStream(tuple(units)) if sized and _apart(list(units)) else None


def _apart(units: Sequence[ir.UnitHead]) -> bool:
    prefixes = [unit.prefix for unit in units]
    return not any(
        one.startswith(other) for n, one in enumerate(prefixes) for m, other in enumerate(prefixes) if n != m
    )
