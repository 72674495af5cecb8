"""Repetitions: ``L *X`` with a length or count before it, and ``*X`` up to the end of its run.

Depending on X, the value is octets, text, a dictionary (pairs of a name and a value, or texts
``name=value``), or a list of any other value. Each entry must define its end and have at least one
octet: otherwise a short message could contain a list of any length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import structs

from specwire.generator import ir
from specwire.generator.abnf.syntax import (
    Alternation,
    Concatenation,
    Element,
    Option,
    Reference,
    Repetition,
    Rule,
)
from specwire.generator.passes.delimited import end_element
from specwire.generator.passes.layouts import FieldsLayout, ValueLayout, is_open, least_octets
from specwire.generator.passes.runs import flat
from specwire.generator.profile.tables import TypeHint

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader

_NAME = re.compile(r"(?:^|[-_])(?:name|key)\Z", re.IGNORECASE)
_OCTETS = re.compile(r"(?:^|[-_])(?:byte|octet)s?(?:[-_]|\Z)", re.IGNORECASE)
"""Names of lengths that count octets."""
_PAIR = re.compile(r"(?:key|name|attribute|option|property)[-_](?:value|val)\Z", re.IGNORECASE)
_VALUE = re.compile(r"(?:^|[-_])(?:value|val|content)\Z", re.IGNORECASE)


def read_counted(
    reader: TypeReader, head: Element, repetition: Repetition, rule: Rule | None, hint: TypeHint
) -> ValueLayout | None:
    """Return the type of ``L *X``; None if L is not an integer."""
    prefix = reader.prefix(head)
    if prefix is None:
        return None
    reader.note_length(head, rule)
    width, number = prefix
    body, length = repetition.element, ir.Length("prefix", width, number=number)
    is_number = reader.is_number(body)
    if reader.octets.count(body) == 1 and not is_number:
        most = repetition.maximum
        bound = None if most is None or (number is None and most >= 256**width - 1) else most
        return ValueLayout(ir.OctetsType(length, repetition.minimum, bound))
    if reader.octets.is_class(body) and not is_number:
        return ValueLayout(ir.TextType(length, reader.octets.pattern(repetition)))
    found = read_collection(reader, width, repetition, rule, hint)
    named = isinstance(head, Reference) and _OCTETS.search(head.name)
    if found is not None and isinstance(head, Reference) and named and reader.hint(head).scope is None:
        reader.diagnostics.warning(
            "W402",
            head.span,
            f"'{head.name}' is read as the number of elements of '{_shown(repetition.element)}', not of their octets",
            f'write counts and counting = "octets" under [types.{head.name}], or scope = "next" for elements, in '
            f"{reader.profile.source.path}",
        )
    if found is None or number is None:
        return found
    return ValueLayout(structs.replace(found.type, number=number))


def read_collection(
    reader: TypeReader, width: int, repetition: Repetition, rule: Rule | None, hint: TypeHint
) -> ValueLayout | None:
    """Return the list or dictionary of a repetition, with a count of `width` octets (0 for no count)."""
    body = repetition.element
    found = _pairs(reader, width, body, hint) or _list(reader, width, body, rule)
    if found is None:
        return None
    if repetition.maximum is not None:
        reader.diagnostics.warning(
            "W404",
            repetition.span,
            f"the maximum of {repetition.maximum} elements is not checked",
            "any number of elements is accepted; remove the maximum from the rule in an erratum",
        )
    if repetition.minimum:
        found = structs.replace(found, minimum=repetition.minimum)
    return ValueLayout(found)


def is_structured(reader: TypeReader, body: Element) -> bool:
    """Whether each repetition is constants around one value, or around a name and a value.

    One value or both may be in an option with constants. ``*(SP key)`` and ``*(["!" flag] key SP)``
    are then lists, although all of it together is text.
    """
    opened = reader.opened(body)
    items = tuple(_outside_options(opened.items)) if isinstance(opened, Concatenation) else ()
    values = [item for item in items if reader.octets.constant(item) is None]
    named = all(isinstance(item, Reference) and reader.grammar.find(item) for item in values)
    return named and 1 <= len(values) <= 2 and len(values) < len(items)


def _outside_options(items: Iterable[Element]) -> Iterator[Element]:
    """Yield the elements of a concatenation, and those of the options in it."""
    for item in flat(tuple(items)):
        inside = item.element if isinstance(item, Option) else None
        if isinstance(inside, Concatenation):
            yield from flat(inside.items)
        else:
            yield item


def _pairs(reader: TypeReader, width: int, body: Element, hint: TypeHint) -> ir.PairsType | None:
    target = reader.grammar.find(body) if isinstance(body, Reference) else None
    entry = body.name if isinstance(body, Reference) else None
    layout = reader.layout(target) if target else None
    if isinstance(body, Concatenation):
        return _named_pairs(reader, width, body.items, entry)
    if isinstance(layout, FieldsLayout):
        return _named_pairs(reader, width, layout.items, entry)
    inner = layout if isinstance(layout, ValueLayout) else reader.value_type(body, None)
    own = reader.hint(target)
    split = hint.split or own.split or ("first" if _says_pairs(reader, target) else None)
    match inner.type if inner else None:
        case ir.TextType() as text if split and not is_open(text):
            return ir.PairsType(width, text, None, split, entry)
        case ir.TextType() if target and own.type is None and _PAIR.match(target.name):
            reader.diagnostics.warning(
                "W415",
                target.name_span,
                f"entry '{target}' is read as one text, although it is named like a pair",
                'write split = "first" or "last" to split it at that \'=\', or type = "text", under '
                f"[types.{target.name}] in {reader.profile.source.path}",
            )
    return None


def _named_pairs(
    reader: TypeReader, width: int, items: tuple[Element, ...], entry: str | None
) -> ir.PairsType | None:
    """Return the types of a name and a value: two texts in place, or rules with such names."""
    if any(reader.octets.constant(item) is not None for item in items):
        return _surrounded_pairs(reader, width, items, entry)
    if len(items) != 2:
        return None
    types = [found.type if (found := reader.value_type(item, None)) else None for item in items]
    named = all(
        isinstance(item, Reference) and word.search(item.name)
        for item, word in zip(items, (_NAME, _VALUE), strict=True)
    )
    match types:
        case [ir.TextType() as name, ir.TextType() as value] if not is_open(name) and not is_open(value):
            return ir.PairsType(width, name, value, rule=entry) if named or entry is None else None
        case [ir.TextType() as name, ir.OctetsType() as value] if not is_open(name) and not is_open(value):
            return ir.PairsType(width, name, value, rule=entry) if named else None
    return None


def _surrounded_pairs(
    reader: TypeReader, width: int, items: tuple[Element, ...], entry: str | None
) -> ir.PairsType | None:
    """Return the types of a name and a value, by their rules' names, with constants around them."""
    if [word for item in items for word in (_NAME, _VALUE) if _is_named(item, word)] != [_NAME, _VALUE]:
        return None
    record = reader.record(entry or "entry", items, None)
    found = record and _without_constants(record)
    match found:
        case ((ir.Field(type=ir.TextType() as name), ir.Field(type=value)), (before, between, after)):
            if isinstance(value, ir.TextType | ir.OctetsType) and not is_open(name) and not is_open(value):
                return ir.PairsType(
                    width, name, value, rule=entry, before=before, between=between, after=after
                )
    return None


def _is_named(item: Element, word: re.Pattern[str]) -> bool:
    return isinstance(item, Reference) and word.search(item.name) is not None


def _without_constants(record: ir.RecordType) -> tuple[tuple[ir.Field, ...], tuple[str, ...]] | None:
    """Return the values of a record, and the octets before, between and after them.

    None if it has other fields than values and constants.
    """
    values: list[ir.Field] = []
    octets = [""]
    for field in record.fields:
        if field.option or field.optional:
            return None
        match field.type:
            case ir.ConstantType(hex=hex, folded=False):
                octets[-1] += hex
            case _ if field.implied:
                return None
            case _:
                values.append(field)
                octets.append("")
    return tuple(values), tuple(octets)


def _says_pairs(reader: TypeReader, rule: Rule | None) -> bool:
    return rule is not None and "name=value" in reader.comment(rule)


def _list(reader: TypeReader, width: int, body: Element, rule: Rule | None) -> ir.ListType | None:
    element = _element(reader, body, rule)
    if element is None:
        return None
    before = after = ""
    if isinstance(element, ir.RecordType):
        element = structs.replace(element, fields=end_element(element.fields))
        found = _without_constants(element) if isinstance(body, Concatenation) else None
        if found is not None and len(found[0]) == 1:
            only = found[0][0].type
            if isinstance(only, ir.Element):
                element, (before, after) = only, found[1]
    if is_open(element):
        reader.diagnostics.error(
            "E409",
            body.span,
            f"list element '{_shown(body)}' has no end, but other elements follow it",
            "specwire cannot express list elements without a length before them or a constant at their end",
        )
        return None
    if not least_octets(element) and not before and not after:
        reader.diagnostics.error(
            "E409",
            body.span,
            f"list element '{_shown(body)}' may be empty",
            "specwire cannot express a list whose elements may be empty: it would have no end",
        )
        return None
    return ir.ListType(width, element, before=before, after=after)


def _element(reader: TypeReader, body: Element, rule: Rule | None) -> ir.Element | None:
    target = reader.grammar.find(body) if isinstance(body, Reference) else None
    name = target.name if target else f"{rule.name}-entry" if rule else "entry"
    if target is not None and (enclosing := reader.enclosing(target)):
        return enclosing
    inner = None if is_structured(reader, body) else reader.value_type(body, None)
    if reader.is_bits(body):
        return reader.record(name, (body,), target)
    if inner is not None:
        if isinstance(inner.type, ir.Element):
            return inner.type
        return reader.record(name, (body,), target)
    opened = reader.opened(body)
    match opened:
        case Concatenation(items=items):
            return reader.record(name, items, target)
        case Alternation():
            return reader.union(name, opened)
    return None


def _shown(body: Element) -> str:
    return str(body) if isinstance(body, Reference) else "in brackets"
