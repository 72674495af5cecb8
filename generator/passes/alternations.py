"""Alternatives that form one value: enumeration, words, numbers, integer with special values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specwire.generator import ir
from specwire.generator.abnf.syntax import Alternation, CharVal, Element, Reference, Rule
from specwire.generator.ir.names import constant_name
from specwire.generator.passes.layouts import LARGEST_INTEGER, ValueLayout

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader


def read_alternation(reader: TypeReader, element: Alternation, rule: Rule | None) -> ValueLayout | None:
    """Return the value that the alternatives form together; None if they do not form one."""
    found = [reader.octets.constant(item) for item in element.items]
    constants = [octets for octets in found if octets]
    if len(constants) == len(found):
        layout = _of_constants(reader, element.items, constants, rule)
        if layout is not None:
            return layout
    return _with_sentinels(reader, element, rule)


def _of_constants(
    reader: TypeReader, items: tuple[Element, ...], constants: list[bytes], rule: Rule | None
) -> ValueLayout | None:
    for item in items:
        reader.note_literals(item)
    if all(isinstance(item, CharVal) for item in items):
        words = dict.fromkeys(constants)
        folded = any(map(reader.octets.is_folded, items))
        options = tuple(octets.decode() for octets in words)
        return ValueLayout(ir.KeywordType(options, folded)) if rule else None
    width = len(constants[0])
    if {len(octets) for octets in constants} != {width} or width > LARGEST_INTEGER:
        return None
    numbers = [int.from_bytes(octets, "big") for octets in constants]
    names = [item.name for item in items if isinstance(item, Reference)]
    if rule is not None and len(names) == len(items):
        return ValueLayout(name_enum(reader, rule, tuple(zip(names, numbers, strict=True)), width))
    return ValueLayout(ir.IntegerType(width, values=tuple(dict.fromkeys(numbers))))


def _with_sentinels(reader: TypeReader, element: Alternation, owner: Rule | None) -> ValueLayout | None:
    """Return the value of ``4OCTET / name-const``: an integer with named constants of the package.

    If there are more octets than an integer has, the value is octets, and the constants are examples of it.
    """
    width = reader.width(element.items[0])
    octets = reader.octets.count(element.items[0])
    if width is None and octets is not None:
        constants = [reader.octets.constant(item) for item in element.items[1:]]
        alike = all(constant is not None and len(constant) == octets for constant in constants)
        return ValueLayout(ir.OctetsType(ir.Length("fixed", octets), octets)) if alike else None
    found: dict[str, ir.Constant] = {}
    for item in element.items[1:]:
        value = reader.octets.constant(item)
        if value is None or len(value) != width:
            return None
        if not isinstance(item, Reference):
            _report_nameless(reader, item, value, owner)
            continue
        rule = reader.grammar.find(item)
        name = constant_name(item.name)
        reader.note_literals(item)
        found[item.name] = ir.Constant(
            name, int.from_bytes(value, "big"), reader.comment(rule) if rule else ""
        )
    if width is None:
        return None
    reader.constants |= {constant.name: constant for constant in found.values()}
    return ValueLayout(ir.IntegerType(width), tuple(found))


def _report_nameless(reader: TypeReader, item: Element, value: bytes, owner: Rule | None) -> None:
    """Report a special value without a name; it is read as an ordinary value of the integer."""
    if owner is None or reader.hint(owner).type is None:
        reader.diagnostics.warning(
            "W416",
            item.span,
            f"the special value {int.from_bytes(value, 'big')} has no name and is read as an ordinary "
            "integer",
            f"name it under [constants] in {reader.profile.source.path} and declare the `type` of the "
            "rule, or give it a named rule in an erratum",
        )


def name_enum(
    reader: TypeReader, rule: Rule, members: tuple[tuple[str, int], ...], width: int
) -> ir.IntegerType:
    """Note an enumeration that is named as the rule, and return its type."""
    return ir.IntegerType(width, enum=reader.note_enum(rule.name, rule, members))
