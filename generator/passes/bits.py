"""Bits of an integer, which the profile names: ``bits = { qr = 1, opcode = 4, … }``.

Each becomes a field. They are in the order of the integer, the most significant bits
first, and cover it. A declaration that does not fit the rule is E402.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.abnf.statements import is_little_endian, number_kinds
from specwire.generator.abnf.syntax import Rule
from specwire.generator.ir.names import constant_name
from specwire.generator.passes.hint_sources import BitSource
from specwire.generator.passes.layouts import LARGEST_INTEGER
from specwire.generator.profile.tables import BitTable, TypeHint


@dataclass(frozen=True, slots=True)
class NamedBits:
    """Some bits of an integer: their name in the profile, type, and declaration."""

    name: str
    type: ir.BitType
    table: BitTable


def read_bits(reader: BitSource, rule: Rule, hint: TypeHint) -> Iterator[NamedBits]:
    """Yield the bits of a rule that fit; E402 for the others, and if the total width is wrong."""
    octets = reader.octets.extent(rule.definition) or 0
    total = sum(table.width for _, _, table in hint.bit_tables())
    if not 1 <= octets <= LARGEST_INTEGER:
        _fault(reader, rule, (), f"bits need 1 to {LARGEST_INTEGER} octets")
        return
    if total != 8 * octets:
        _fault(reader, rule, (), f"the widths add up to {total} bits, but the rule has {8 * octets}")
        return
    little = is_little_endian(dict(number_kinds(reader.comment(rule))))
    order: ir.Order = hint.order or ("little" if little else "big")
    for name, shift, table in hint.bit_tables():
        found = _misfit(table)
        if found is not None:
            _fault(reader, rule, (name,), found)
            continue
        enum = reader.note_enum(name, rule, tuple(table.members.items())) if table.members else None
        type = ir.BitType(
            octets, shift, table.width, "big" if octets == 1 else order, boolean=_is_boolean(table),
            constant=table.constant, spare=table.spare, enum=enum, open=bool(enum) and not table.closed,
        )  # fmt: skip
        yield NamedBits(name, type, table)


def _is_boolean(table: BitTable) -> bool:
    if table.type is not None:
        return table.type == "boolean"
    is_number = table.constant is not None or table.members or table.counts or table.spare
    return table.width == 1 and not is_number


def _misfit(table: BitTable) -> str | None:
    """Return why a declaration cannot be right; None if it can."""
    numbers = [*table.members.values()] + ([table.constant] if table.constant is not None else [])
    if table.width < 1:
        return "it has no bit"
    if table.type == "boolean" and table.width != 1:
        return "a boolean has one bit"
    if any(not 0 <= number < 2**table.width for number in numbers):
        return f"a value does not fit {table.width} bits"
    if len({constant_name(name) for name in table.members}) < len(table.members):
        return "two members of the enumeration have the same name"
    kinds = [table.constant is not None, bool(table.members), bool(table.counts), table.spare]
    if sum(kinds) > 1:
        return "only one of `constant`, `members`, `counts` and `spare` can apply"
    return None


def _fault(reader: BitSource, rule: Rule, path: tuple[str, ...], reason: str) -> None:
    reader.fault(
        "E402",
        reader.profile.place("types", rule.name, "bits", *path),
        f"the declaration does not fit rule '{rule}': {reason}",
        f"correct it; the rule is defined at {rule.name_span}",
    )
