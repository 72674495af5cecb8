"""Heads of frames: patterns of the first octets, and the place of the message's length.

A head consists of the constants at the start of a frame and a known number of variable octets
between them. A size in several forms gives several heads. `specwire.generator.passes.tags` uses the
patterns of heads to distinguish messages without a common slice of constants. A reader of a byte
stream uses heads to find the end of each message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, product, takewhile

from specwire.generator import ir
from specwire.generator.passes.layouts import least_octets

ANY = "??"
"""Any octet, in a pattern."""
_KNOWN = str.maketrans("?0123456789abcdef", "0" + 16 * "f")
MAX_HEADS = 64
"""Maximum number of heads of one message."""
MAX_LEAST = 64
"""Maximum octets of the least length of the values after a head."""
MAX_HEAD_OCTETS = 1_024
"""Maximum octets of one head; later octets are not used to distinguish messages."""


@dataclass(frozen=True, slots=True)
class Detail:
    """What heads contain besides constant octets: constant bits, and with `enums` permitted values.

    `enums` are the values of each enumeration, by its name.
    """

    enums: Mapping[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """One way in which a frame begins.

    `octets` are two characters each: hexadecimal digits, or ``?`` for any half octet. `unit` is the part
    of the head that a stream reader needs to compute the length of the message.
    """

    octets: tuple[str, ...] = ()
    unit: ir.UnitHead | None = None

    @property
    def pattern(self) -> str:
        """Return the head up to its last constant octet."""
        known = list(self.octets)
        while known and known[-1] == ANY:
            known.pop()
        return "".join(known)

    @property
    def whole(self) -> bool:
        """Whether the head is the whole frame."""
        return self.unit is not None and not self.unit.size_octets and self.unit.octets == len(self.octets)


def find_heads(fields: Sequence[ir.Field], detail: Detail | None = None) -> tuple[Head, ...]:
    """Return the heads of a frame with these fields, one for each form of a size in it.

    With `detail`, heads contain constant bits, one head for each of a few permitted values or tags
    of a union, and as many octets as the frame has at least.
    """
    heads = [_Growing([], 0)]
    inside = False  # in an integer of bits that the heads contain already
    for at, field in enumerate(fields):
        if inside:
            inside = _continues(field.type)
            continue
        if field.optional or field.option is not None:
            return tuple(head.head() for head in heads)
        spellings = () if detail is None else _spellings(fields[at:], detail)
        if spellings and len(heads) * len(spellings) <= MAX_HEADS:
            heads = [head.with_octets(octets) for head in heads for octets in spellings]
            inside = _continues(field.type)
            continue
        if isinstance(field.type, ir.SizeType):
            if len(heads) * len(field.type.forms) > MAX_HEADS:
                return tuple(head.head() for head in heads)
            heads = [head.sized(form) for head in heads for form in field.type.forms]
            continue
        octets = _fixed(field.type)
        if octets is None:
            return tuple(head.head() for head in (heads if detail is None else _longer(heads, fields[at:])))
        for head in heads:
            head.add(*octets)
    return tuple(head.ended() for head in heads)


def _longer(heads: list[_Growing], fields: Sequence[ir.Field]) -> list[_Growing]:
    """Return heads with the tags of the union that begins `fields`, and the least octets of `fields`."""
    type = fields[0].type
    tags = type.tags if isinstance(type, ir.UnionType) and len(heads) * len(type.tags) <= MAX_HEADS else ("",)
    found = [head.with_octets(tag) for head in heads for tag in tags]
    least = sum(least_octets(field.type) for field in fields if not field.optional and field.option is None)
    for number, head in enumerate(found):
        head.add((), max(0, min(least, MAX_LEAST) - len(tags[number % len(tags)]) // 2))
    return found


def _spellings(fields: Sequence[ir.Field], detail: Detail) -> tuple[str, ...]:
    """Return the patterns of the number that begins with the first field; empty if it has any value."""
    match _number(fields[0].type):
        case ir.BitType() as first if first.shift + first.width == 8 * first.octets:
            return _bit_patterns(first, fields, detail)
        case ir.IntegerType(octets=octets, order=order, signed=signed) as type:
            return tuple(
                number.to_bytes(octets, order, signed=signed).hex() for number in _values(type, detail)
            )
    return ()


def _continues(type: ir.Type) -> bool:
    """Whether the next field is a part of the same integer of bits."""
    number = _number(type)
    return isinstance(number, ir.BitType) and number.shift > 0


def _number(type: ir.Type) -> ir.Type:
    return type.number if isinstance(type, ir.CounterType) else type


def _values(type: ir.IntegerType | ir.BitType, detail: Detail) -> tuple[int, ...]:
    """Return the permitted values of a number; nothing if all are, or too many."""
    if isinstance(type, ir.BitType) and type.constant is not None:
        return (type.constant,)
    if detail.enums is None:
        return ()
    found = type.values or (() if type.open else detail.enums.get(type.enum or "", ()))
    return found if len(found) <= MAX_HEADS else ()


def _bit_patterns(first: ir.BitType, fields: Sequence[ir.Field], detail: Detail) -> tuple[str, ...]:
    """Return the patterns of an integer whose bits begin with these fields."""
    numbers, known = [0], 0
    for type in (_number(field.type) for field in fields):
        if not isinstance(type, ir.BitType):
            break
        values = _values(type, detail)
        if values and len(numbers) * len(values) <= MAX_HEADS:
            numbers = [number | value << type.shift for number in numbers for value in values]
            known |= (2**type.width - 1) << type.shift
        if not type.shift:
            break
    if not known:
        return ()
    halves = [_halves(number, known, 2 * first.octets) for number in numbers]
    patterns = ("".join(choice) for spelled in halves for choice in product(*spelled))
    found = tuple(dict.fromkeys(islice(patterns, MAX_HEADS + 1)))
    return tuple(map(_swapped, found)) if first.order == "little" else found


def _halves(number: int, known: int, count: int) -> list[list[str]]:
    """Return the digits that each half octet of an integer can have, given its known bits."""
    found: list[list[str]] = []
    for shift in range(4 * (count - 1), -1, -4):
        digit, mask = number >> shift & 15, known >> shift & 15
        found.append([f"{other:x}" for other in range(16) if other & mask == digit] if mask else ["?"])
    return found


def _swapped(pattern: str) -> str:
    return "".join(reversed(_pairs(pattern)))


def _fixed(type: ir.Type) -> tuple[tuple[str, ...], int] | None:
    """Return the constant octets of a value and the number of variable ones; None if its size varies."""
    match type:
        case ir.ConstantType(hex=octets):
            return _pairs(octets[: 2 * MAX_HEAD_OCTETS]), max(0, len(octets) // 2 - MAX_HEAD_OCTETS)
        case ir.IntegerType(octets=octets) | ir.PaddingType(octets=octets, multiple=0):
            return (), octets
        case ir.BitType(octets=octets, shift=shift):
            return (), 0 if shift else octets
        case ir.CounterType(number=number) | ir.ChecksumType(number=number):
            return _fixed(number)
        case ir.OctetsType(length=length) | ir.TextType(length=length) if length.kind == "fixed":
            return (), length.octets
    return None


@dataclass(slots=True)
class _Growing:
    """Head under construction. It keeps the first `MAX_HEAD_OCTETS` octets, and counts the others."""

    known: list[str]
    octets: int
    """Number of all octets, including those that are not kept."""
    unit: ir.UnitHead | None = None

    def add(self, constant: Sequence[str], any: int) -> None:
        """Add constant octets, then `any` variable ones."""
        left = MAX_HEAD_OCTETS - len(self.known)
        self.known += constant[:left]
        self.known += [ANY] * min(any, max(0, left - len(constant)))
        self.octets += len(constant) + any

    def with_octets(self, octets: str) -> _Growing:
        """Return a copy with the octets of a pattern added."""
        longer = _Growing(list(self.known), self.octets, self.unit)
        longer.add(_pairs(octets), 0)
        return longer

    def sized(self, form: ir.SizeForm) -> _Growing:
        """Return a copy with one form of a size added."""
        longer = _Growing(list(self.known), self.octets)
        longer.add(_pairs(form.tag), 0)
        prefix = _prefix(longer.known)
        longer.unit = ir.UnitHead(prefix, skip=longer.octets - len(prefix) // 2, size_octets=form.octets)
        longer.add((), form.octets)
        return longer

    def head(self) -> Head:
        """Return the head of a frame that may have more octets."""
        return Head(tuple(self.known), self.unit)

    def ended(self) -> Head:
        """Return the head of a frame that ends here."""
        unit = self.unit or ir.UnitHead(_prefix(self.known), octets=self.octets)
        return Head(tuple(self.known), unit)


def _prefix(octets: Sequence[str]) -> str:
    """Return the constant octets at the beginning."""
    return "".join(takewhile(lambda octet: "?" not in octet, octets))


def _pairs(hex: str) -> tuple[str, ...]:
    return tuple(hex[at : at + 2] for at in range(0, len(hex), 2))


def fits(pattern: str, other: str) -> bool:
    """Whether a frame can begin as both patterns say."""
    (octets, known), (others, also_known) = _bits(pattern), _bits(other)
    return not (octets ^ others) & known & also_known


@lru_cache(maxsize=10_000)
def _bits(pattern: str) -> tuple[int, int]:
    """Return the constant octets of a pattern and their mask, as little-endian numbers."""
    octets = bytes.fromhex(pattern.replace("?", "0"))
    known = bytes.fromhex(pattern.translate(_KNOWN))
    return int.from_bytes(octets, "little"), int.from_bytes(known, "little")


def find_units(messages: Sequence[ir.Message]) -> ir.UnitStream | None:
    """Return how messages follow each other on a byte stream; None if not all their heads define
    their length."""
    units: dict[ir.UnitHead, None] = {}
    for message in messages:
        match message.parts:
            case (ir.Frame(fields=fields),):
                heads = find_heads(fields)
            case _:
                return None
        for head in heads:
            if head.unit is None:
                return None
            units[head.unit] = None
    return ir.UnitStream(tuple(units)) if _apart(list(units)) else None


def _apart(units: Sequence[ir.UnitHead]) -> bool:
    return not any(after.startswith(one) for one, after in pairwise(sorted(unit.prefix for unit in units)))
