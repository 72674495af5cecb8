"""Runs of fields inside a frame that form one value: records, and unions of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.syntax import Alternation, Concatenation, Element, Reference, Rule
from specwire.generator.ir.names import class_name, snake_case
from specwire.generator.passes.agreement import check_run
from specwire.generator.passes.counters import derive_fields
from specwire.generator.passes.field_names import distinct
from specwire.generator.passes.fields import FieldReader
from specwire.generator.passes.firsts import first_octets
from specwire.generator.passes.layouts import words_of
from specwire.generator.profile.tables import MessageTable

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader


def read_record(
    reader: TypeReader, name: str, items: tuple[Element, ...], rule: Rule | None
) -> ir.RecordType | None:
    """Return the record of a run; None after a diagnostic if it has no layout."""
    span = rule.name_span if rule else items[0].span
    context = rule or Rule(name, None, Concatenation(items, span), False, (), (), span, span)
    before = reader.diagnostics.faults
    run = tuple(map(_plain, FieldReader(reader, context, MessageTable()).run(items)))
    fields = derive_fields(reader, distinct(run, context, reader.diagnostics), context)
    check_run(fields, context, reader.diagnostics)
    if reader.diagnostics.faults > before:
        return None
    return ir.RecordType(
        snake_case(name),
        reader.class_for(class_name(name)),
        fields,
        rule.name if rule else None,
        words_of(rule.leading or rule.trailing) if rule else "",
    )


def _plain(field: ir.Field) -> ir.Field:
    """Return a field for a record: flags in a record announce no frames and become a plain integer."""
    if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
        return msgspec.structs.replace(field, type=ir.IntegerType(field.type.octets))
    return field


def read_union(reader: TypeReader, name: str, element: Alternation) -> ir.UnionType | None:
    """Return the union of alternatives; None after E419 if they cannot be distinguished."""
    options: list[ir.RecordType] = []
    for number, item in enumerate(element.items, start=1):
        target = reader.grammar.find(item) if isinstance(item, Reference) else None
        opened = reader.opened(item)
        items = opened.items if isinstance(opened, Concatenation) else (opened,)
        record = reader.record(target.name if target else f"{name}-{number}", items, target)
        if record is None:
            return None
        options.append(record)
    folded = any(_is_folded(option) for option in options)
    heads = [_head(option).lower() if folded else _head(option) for option in options]
    alike = _alike(options, heads)
    if alike is not None:
        one, other = options[alike[0]].name, options[alike[1]].name
        reader.diagnostics.error(
            "E419",
            element.span,
            f"alternatives '{one}' and '{other}' of '{name}' cannot be distinguished",
            "specwire can express alternatives only if each begins with a constant that no other can begin "
            "with",
        )
        return None
    shortest = min(map(len, heads))
    tags = [head[:shortest] for head in heads]
    tags = tags if len(set(tags)) == len(tags) else heads
    return ir.UnionType(snake_case(name), tuple(options), tuple(tag.hex() for tag in tags), folded)


def _leading(record: ir.RecordType) -> tuple[ir.ConstantType, ...]:
    """Return the constants at the start of a record."""
    found: list[ir.ConstantType] = []
    for field in record.fields:
        if not isinstance(field.type, ir.ConstantType) or field.option is not None:
            break
        found.append(field.type)
    return tuple(found)


def _is_folded(record: ir.RecordType) -> bool:
    return any(constant.folded for constant in _leading(record))


def _head(record: ir.RecordType) -> bytes:
    return b"".join(constant.octets for constant in _leading(record))


def _alike(options: list[ir.RecordType], heads: list[bytes]) -> tuple[int, int] | None:
    """Return the indices of the first two options of which one can begin like the other."""
    for n, one in enumerate(heads):
        for m, other in enumerate(heads[:n]):
            longer, shorter, option = (
                (one, other, options[m]) if len(one) > len(other) else (other, one, options[n])
            )
            if not longer.startswith(shorter):
                continue
            behind = option.fields[len(_leading(option)) :]
            if len(longer) == len(shorter) or not behind or longer[len(shorter)] in first_octets(behind):
                return m, n
    return None
