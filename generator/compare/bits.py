"""Check whether some bits of an integer are read as the same number.

The fields of one integer share its octets. So bits that one edition added, or that a field gave up, are
compared with the field that has them in the other edition: bits without meaning are written as 0 and ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator import ir
from specwire.generator.compare.comparison import ALIKE, Judgement, Verdict, depends, no, yes
from specwire.generator.compare.numerals import number_in, reads_derived

Values = frozenset[int] | None
"""Allowed values; None if any is allowed."""

_IGNORED = yes("the reader ignores these bits")
_ELSEWHERE = no("the number is in other bits of the integer, or the integer has another layout")
_OTHER_FIELD = no("these bits are read as another field")
_NUMBERS = "correct if the number is "


def reads_bits(writer: ir.Type, reader: ir.Type, written: Values, known: Values) -> Judgement:
    """Return how some bits are read as others; each edition allows the values `written` or `known`."""
    one, other = number_in(writer), number_in(reader)
    if not isinstance(one, ir.BitType) or not isinstance(other, ir.BitType):
        return no("only in one edition the number is in some bits of an integer")
    if (one.octets, one.order) != (other.octets, other.order):
        return _ELSEWHERE
    if other.spare:
        return _IGNORED
    if (one.shift, one.width) != (other.shift, other.width):
        return _ELSEWHERE
    found = _reads_values(frozenset({0}) if one.spare else written, known)
    if other.announces and not one.announces:
        found = _worst(found, depends("correct if the bit says whether the fields are present"))
    derived = reads_derived(writer, reader)
    return found if derived is None else _worst(found, derived)


def _worst(*found: Judgement) -> Judgement:
    return max(found, key=lambda judgement: list(Verdict).index(judgement.verdict))


def _reads_values(written: Values, known: Values) -> Judgement:
    if known is None or (written is not None and written <= known):
        return yes("every number that is written can be read")
    accepted = known if written is None else written & known
    if not accepted:
        return no("no number that one edition writes can be read by the other")
    return depends(_NUMBERS + " or ".join(map(str, sorted(accepted))))


def reads_lone_bits(lone: ir.Field, others: Sequence[ir.Field], *, written: bool) -> Judgement | None:
    """Return how a field of bits is read that only one edition has.

    `others` are the fields of the other edition in the same frame or record, and `written` says whether the
    writer has the field. Returns None for another field, and if the other edition lacks the integer.
    """
    bits = number_in(lone.type)
    if not isinstance(bits, ir.BitType):
        return None
    there = [other for field in others if isinstance(other := number_in(field.type), ir.BitType)]
    overlapping = [other for other in there if _overlap(bits, other)]
    if not overlapping:
        return None
    if bits.spare and not written:
        return _IGNORED
    if not all(other.spare for other in overlapping):
        return ALIKE if bits.spare else _OTHER_FIELD
    if written:
        return _IGNORED
    allowed = {bits.constant} if bits.constant is not None else set(bits.values) or {0}
    if bits.announces or 0 in allowed:
        return yes("the bits are written as 0")
    return no("the bits are written as 0, which the reader rejects")


def _overlap(one: ir.BitType, other: ir.BitType) -> bool:
    same = (one.octets, one.order) == (other.octets, other.order)
    return same and one.shift < other.shift + other.width and other.shift < one.shift + one.width
