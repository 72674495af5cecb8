"""Flags that announce optional parts of a message.

A grammar writes an optional part as ``[topic]`` and, among the bits of its flags octet,
``flag-topic``: the part is present if that bit is set. The profile names the bits if the names do
not match (``routing`` belongs to ``flag-route``) or if two bits select one of two readings of a
frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.syntax import Alternation, Concatenation, Element, Option, Repetition, Rule
from specwire.generator.ir.names import constant_name, fold
from specwire.generator.passes.grammar import references
from specwire.generator.passes.types import TypeReader
from specwire.generator.profile.tables import PresenceTable

STEM = 4
"""Minimum number of first letters that the names of a flag and of its part share, if they differ."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The bits of the protocol's flags octet and the rule names of the parts that they announce."""

    bits: tuple[ir.FlagBit, ...]
    announced: dict[str, int]
    """The bits that are set if a part is present, by the part's rule name."""


def read_flags(reader: TypeReader) -> Flags:
    """Collect the flag bits of the grammar and what each announces."""
    values: dict[str, int] = {}
    rules: list[Rule] = []
    masks = {str(rule): rule for rule in reader.grammar.rules if str(rule) in reader.bits}
    for name, mask in masks.items():
        for rule in reader.bits[name]:
            octets = reader.octets.constant(rule.definition) or b""
            if len(octets) != reader.octets.count(mask.definition):
                reader.diagnostics.error(
                    "E417",
                    rule.name_span,
                    f"flag '{rule}' and '{mask}' differ in size: {len(octets)} and "
                    f"{reader.octets.count(mask.definition)} octets",
                    f"write the flag with as many octets as '{mask}'",
                )
            values[rule.name.lower()] = int.from_bytes(octets, "big")
            rules.append(rule)
    announced: dict[str, int] = {}
    for rule in reader.grammar.rules:
        names = _flag_names(rule, reader) or _alike(rule, reader, values)
        missing = [name for name in names if name not in values]
        if reader.hint(rule).presence and missing:
            reader.diagnostics.error(
                "E403",
                reader.profile.place("types", rule.name, "presence"),
                f"there is no flag rule '{missing[0]}'",
                f"the bits are {', '.join(values) or 'none'}",
            )
        elif names and not missing:
            announced[fold(rule.name)] = reduce(or_, (values[name] for name in names))
    bits = tuple(_bit(rule, values[rule.name.lower()], reader) for rule in rules)
    return Flags(bits, announced)


def name_announced(flags: Flags, messages: Sequence[ir.Message]) -> tuple[ir.FlagBit, ...]:
    """Return the bits, each with the part that it announces in some message, if any."""
    parts = [
        (part.name, part.presence.mask)
        for message in messages
        for part in message.parts
        if not isinstance(part, ir.Rest) and not isinstance(part.presence, ir.Counted)
    ]
    announced = flags.announced
    parts.sort(key=lambda part: list(announced).index(fold(part[0])) if fold(part[0]) in announced else -1)
    return tuple(
        msgspec.structs.replace(
            bit,
            announces=next((n for n, mask in parts if mask and announced.get(fold(n), 0) & bit.value), None),
        )
        for bit in flags.bits
    )


def _flag_names(rule: Rule, reader: TypeReader) -> list[str]:
    hint = reader.hint(rule)
    if (
        isinstance(hint.presence, PresenceTable)
        or {fold(name) for name in hint.flag_rules} & reader.bit_names
    ):
        return []
    if hint.flag_rules:
        return [name.lower() for name in hint.flag_rules]
    flag = f"flag-{rule.name.lower()}"
    return [flag] if reader.grammar.rule(flag) else []


def _alike(rule: Rule, reader: TypeReader, values: Mapping[str, int]) -> list[str]:
    """Return the flag with a name like that of an optional rule: ``flag-route`` for ``[routing]`` (W414)."""
    stem = rule.name.lower()[:STEM]
    found = [
        name
        for name in values
        if len(stem) == STEM
        and name.partition("-")[2].startswith(stem)
        and reader.grammar.rule(name.partition("-")[2]) is None
    ]
    if len(found) != 1 or not any(_has_option(r.definition, rule, reader) for r in reader.grammar.rules):
        return []
    reader.diagnostics.warning(
        "W414",
        rule.name_span,
        f"rule '{rule}' is assumed to be present if '{found[0]}' is set: their names begin with the same "
        "letters",
        f"declare it with 'presence = \"{found[0]}\"' under [types.{rule.name}] in "
        f"{reader.profile.source.path}",
    )
    return found


def _has_option(element: Element, rule: Rule, reader: TypeReader) -> bool:
    """Whether the rule is optional somewhere in an element."""
    match element:
        case Option(element=inner):
            return any(reader.grammar.find(use) is rule for use in references(inner))
        case Concatenation(items=items) | Alternation(items=items):
            return any(_has_option(item, rule, reader) for item in items)
        case Repetition(element=inner):
            return _has_option(inner, rule, reader)
    return False


def _bit(rule: Rule, value: int, reader: TypeReader) -> ir.FlagBit:
    return ir.FlagBit(constant_name(rule.name.partition("-")[2]), value, reader.comment(rule))
