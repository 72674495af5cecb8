"""The octets with which values can begin.

A value that ends where another begins (a text among certain octets, a list up to a constant, an
option) needs this: the end is certain only if the octets of the two differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from specwire.generator import ir
from specwire.generator.passes.layouts import least_octets

ANY = frozenset(range(256))
_NOT_ZERO = ANY - {0}
_OCTETS = re.compile(r"\\x([0-9a-f]{2})(?:-\\x([0-9a-f]{2}))?")


def first_octets(fields: Iterable[ir.Field]) -> frozenset[int]:
    """Return the octets with which a run of fields can begin; none if it is empty."""
    found: frozenset[int] = frozenset()
    for option, group in groupby(fields, key=lambda field: field.option):
        for field in group:
            found |= first_of(field.type)
            if not _may_be_empty(field.type) and not field.optional:
                if option is None:
                    return found
                break
    return found


def _may_be_empty(type: ir.Type) -> bool:
    if isinstance(type, ir.TextType) and type.length.kind in ("rest", "until"):
        return type.pattern is None or re.fullmatch(type.pattern, "") is not None
    return not least_octets(type)


def first_of(type: ir.Type) -> frozenset[int]:
    """Return the octets with which a value can begin, or all if they are not known."""
    match type:
        case ir.ConstantType(octets=octets, folded=folded):
            first = octets[:1]
            return frozenset(first.lower() + first.upper() if folded else first)
        case ir.IntegerType(octets=octets, values=(_, *_) as values, order=order, signed=signed):
            return frozenset(number.to_bytes(octets, order, signed=signed)[0] for number in values)
        case ir.DigitsType(base=base, signed=signed):
            digits = b"0123456789" if base == 10 else b"0123456789abcdefABCDEF"
            return frozenset(digits + b"-" * signed)
        case ir.CounterType(number=number) if isinstance(number, ir.DigitsType):
            return first_of(number)
        case ir.TextType(length=ir.Length(kind="prefix", octets=1, number=None), pattern=str(pattern)):
            return ANY if re.fullmatch(pattern, "") else _NOT_ZERO
        case ir.OctetsType(length=ir.Length(kind="prefix", octets=1, number=None), minimum=minimum):
            return _NOT_ZERO if minimum else ANY
        case ir.TextType():
            return among(type)
        case ir.RecordType(fields=fields):
            return first_octets(fields)
        case ir.UnionType(options=options):
            return frozenset[int]().union(*(first_of(option) for option in options))
        case ir.ListType(count_octets=0, counted=False, element=element, before=before):
            return frozenset(bytes.fromhex(before)[:1]) if before else first_of(element)
        case ir.PairsType(count_octets=0, counted=False, name=name, before=before):
            return frozenset(bytes.fromhex(before)[:1]) if before else first_of(name)
        case ir.PresentType():
            return frozenset()
    return ANY


def among(type: ir.TextType) -> frozenset[int]:
    """Return the octets of which a text consists, or all if they are not known."""
    if type.padding is not None:
        return ANY
    if type.length.kind == "run":
        return frozenset(bytes.fromhex(type.length.among))
    if type.length.kind in ("prefix", "counted") or type.pattern is None or type.terminated:
        return ANY
    ranges = [(int(first, 16), int(last or first, 16)) for first, last in _OCTETS.findall(type.pattern)]
    return frozenset(octet for first, last in ranges for octet in range(first, last + 1))


def last_octets(type: ir.Type) -> frozenset[int]:
    """Return the octets that a value would take as its own if they followed it."""
    match type:
        case ir.TextType(length=ir.Length(kind="run")):
            return among(type)
        case ir.DigitsType(minimum=minimum, maximum=maximum) if minimum != maximum:
            return first_of(type) - frozenset(b"-")
        case ir.CounterType(number=number) if isinstance(number, ir.DigitsType):
            return last_octets(number)
        case ir.ListType(element=element, after="") if not isinstance(element, ir.EnclosingType):
            return last_octets(element)
        case ir.PairsType(name=name, value=value, after=""):
            return last_octets(value or name)
        case ir.RecordType(fields=fields) if fields:
            return last_octets(fields[-1].type)
        case ir.UnionType(options=options):
            return frozenset[int]().union(*map(last_octets, options))
    return frozenset()
