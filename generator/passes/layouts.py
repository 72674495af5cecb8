"""Kinds of layout of a rule: one value, a run of fields, or a choice among rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.abnf.syntax import Alternation, Comment, Element, Rule

REST = ir.Length("rest")
LARGEST_INTEGER = 8
"""Octets of the widest integer."""


@dataclass(frozen=True, slots=True)
class ValueLayout:
    """The rule is one value."""

    type: ir.Type
    sentinels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldsLayout:
    """The rule is a run of elements, each a field."""

    items: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class ChoiceLayout:
    """The rule is one of several elements; `rules` are those that are references to rules."""

    element: Alternation
    rules: tuple[Rule, ...]


RuleLayout = ValueLayout | FieldsLayout | ChoiceLayout


def words_of(comments: Iterable[Comment]) -> str:
    """Return comments as one text for generated modules, without control characters and repetitions."""
    texts = [re.sub(r"[\x00-\x1f\x7f]+", " ", comment.text) for comment in comments if comment.text]
    return " ".join(dict.fromkeys(texts)).strip()


def is_open(type: ir.Type) -> bool:
    """Whether a value extends to the end of its run."""
    match type:
        case ir.TextType(length=length) | ir.OctetsType(length=length):
            return length.kind == "rest" and not length.octets
        case ir.ListType(count_octets=count) | ir.PairsType(count_octets=count):
            return count == 0 and not type.counted and not type.until
        case ir.RecordType(fields=fields):
            return not ends(fields)
        case ir.UnionType(options=options):
            return any(map(is_open, options))
    return isinstance(type, ir.JsonType | ir.KeywordType)


def ends(fields: Iterable[ir.Field]) -> bool:
    """Whether a run of fields defines its end: no field is open, or a size covers the open one."""
    counted: set[str] = set()
    """Fields that a number counts, alone or with others."""
    row = tuple(fields)
    for field in row:
        match field.type:
            case ir.SizeType():
                return True
            case ir.CounterType(counts=counts):
                counted |= set(counts)
            case ir.TextType(length=length) | ir.OctetsType(length=length) if length.kind == "rest":
                if field.name not in counted:
                    return False
            case ir.DigitsType(minimum=minimum, maximum=maximum) if minimum != maximum:
                # Another digit may follow the run.
                if field is row[-1] and field.name not in counted:
                    return False
        if (is_open(field.type) and field.name not in counted) or field.optional:
            return False
        if field.option is not None and field.option.kind == "left":
            return False
    return True


def least_octets(type: ir.Type) -> int:
    """Return the minimum number of octets of a value."""
    match type:
        case ir.ConstantType() as constant:
            return len(constant.octets)
        case ir.IntegerType(octets=octets) | ir.PaddingType(octets=octets):
            return octets
        case ir.BitType(octets=octets, shift=shift):
            return 0 if shift else octets
        case ir.EnclosingType():
            return 1
        case ir.FloatType(octets=octets) | ir.BooleanType(octets=octets):
            return octets
        case ir.VarintType():
            return 1
        case ir.DigitsType(minimum=minimum):
            return minimum
        case ir.UuidType():
            return 16
        case ir.CounterType(number=number) | ir.ChecksumType(number=number):
            return least_octets(number)
        case ir.TextType(length=length):
            return length.octets if length.kind != "rest" else 0
        case ir.OctetsType(length=length, minimum=minimum):
            return minimum + (length.octets if length.kind == "prefix" else 0)
        case ir.ListType(count_octets=count, element=element, minimum=minimum):
            around = (len(type.before) + len(type.after)) // 2
            return count + minimum * (least_octets(element) + around)
        case ir.PairsType(count_octets=count):
            return count
        case ir.SizeType(forms=forms):
            return min(len(form.tag) // 2 + form.octets for form in forms)
        case ir.RecordType(fields=fields):
            return sum(
                least_octets(field.type) for field in fields if not field.optional and not field.option
            )
        case ir.UnionType(options=options):
            return min(map(least_octets, options))
    return 0


def fixed_octets(type: ir.Type) -> int | None:
    """Return the number of octets of a value if it is always the same; those of bits with the lowest."""
    match type:
        case ir.ConstantType():
            return len(type.octets)
        case ir.IntegerType(octets=octets) | ir.FloatType(octets=octets) | ir.BooleanType(octets=octets):
            return octets
        case ir.BitType(octets=octets, shift=shift):
            return 0 if shift else octets
        case ir.PaddingType(octets=octets, multiple=0):
            return octets
        case ir.CounterType(number=number) | ir.ChecksumType(number=number):
            return fixed_octets(number)
        case ir.DigitsType(minimum=minimum, maximum=maximum, signed=False) if minimum == maximum:
            return minimum
        case ir.UuidType():
            return 16
        case ir.TextType(length=length) | ir.OctetsType(length=length):
            return length.octets if length.kind == "fixed" else None
    return None
