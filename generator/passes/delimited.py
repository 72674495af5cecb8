"""Values that end where the next one begins: ``"SET" SP key SP value CRLF``.

A text of open length ends before the constant that follows it, if the text cannot contain the first
octet of the constant. If something else follows, the text is the longest run of its octets, if
nothing that follows can begin with one of them. A list without a count ends before the first octet
of the constant that follows it, if no element begins with this octet. Otherwise the end is
ambiguous, and the value has no end (E409).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import structs

from specwire.generator import ir
from specwire.generator.passes.firsts import ANY, among, first_octets, first_of, last_octets


def end_values(fields: Iterable[ir.Field]) -> Iterator[ir.Field]:
    """Yield the fields of a run; open texts and lists before others end where these begin."""
    row = list(fields)
    for position, field in enumerate(row):
        behind = row[position + 1 :]
        match field.type:
            case ir.TextType(length=ir.Length(kind="rest"), terminated=False) as text if behind:
                field = structs.replace(field, type=_ended_text(text, behind))
            case (ir.ListType(count_octets=0) | ir.PairsType(count_octets=0)) as many if behind:
                field = structs.replace(field, type=_ended_list(many, behind))
        yield field


def end_element(fields: Sequence[ir.Field]) -> tuple[ir.Field, ...]:
    """Return the fields of a list element; an open text at its end ends where the next element
    begins."""
    if not fields:
        return ()
    *others, last = fields
    if not isinstance(last.type, ir.TextType) or last.type.length.kind != "rest" or last.type.terminated:
        return tuple(fields)
    return (*others, structs.replace(last, type=_run(last.type, first_octets(fields))))


def _ended_text(type: ir.TextType, behind: Sequence[ir.Field]) -> ir.TextType:
    after = behind[0]
    if isinstance(after.type, ir.ConstantType) and after.option is None and after.type.octets:
        if first_of(after.type) & among(type):
            return type
        if not after.type.folded:
            return structs.replace(type, length=ir.Length("until", until=after.type.hex))
    return _run(type, first_octets(behind))


def _run(type: ir.TextType, firsts: frozenset[int]) -> ir.TextType:
    """Return a text as a run of its octets, unchanged if one of `firsts`, which may follow it, is
    among them."""
    own = among(type)
    if own == ANY or not firsts or own & firsts:
        return type
    least = int(re.fullmatch(type.pattern or "", "") is None)
    return structs.replace(type, length=ir.Length("run", least, among=bytes(sorted(own)).hex()))


def _ended_list(type: ir.ListType | ir.PairsType, behind: Sequence[ir.Field]) -> ir.ListType | ir.PairsType:
    after = behind[0]
    if not isinstance(after.type, ir.ConstantType) or after.option is not None or after.type.folded:
        return type
    if first_of(after.type) & (first_of(type) | last_octets(type)):
        return type
    # One octet: an item that is shorter than the constant cannot form it with the items after it.
    return structs.replace(type, until=after.type.hex[:2])
