"""Which flag says that a part of a message is there.

A grammar writes an optional part as ``[topic]`` and, among the bits of its flags octet, ``flag-topic``:
the part is present when that bit is set. The profile names the bits where the names do not match
(``routing`` goes with ``flag-route``) or where two bits select one of two readings of a frame.
"""

from __future__ import annotations

from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.names import constant_name
from specwire.generator.passes.octets import constant_of
from specwire.generator.passes.types import TypeReader
from specwire.generator.syntax import Rule


@dataclass(frozen=True, slots=True)
class Flags:
    """The bits of the protocol's flags octet and the rule names of the parts that they announce."""

    bits: tuple[ir.FlagBit, ...]
    announced: dict[str, int]
    """For a part's rule name, the bits that are set when it is there."""

    @property
    def announcing(self) -> int:
        """All bits that announce a part: they are derived, never a field of a message."""
        mask = 0
        for bits in self.announced.values():
            mask |= bits
        return mask


def read_flags(reader: TypeReader) -> Flags:
    """Collect the flag bits of the grammar and what each announces."""
    values: dict[str, int] = {}
    rules: list[Rule] = []
    for found in reader.flag_rules().values():
        rules.extend(found)
    for rule in rules:
        octets = constant_of(rule.definition, reader.grammar)
        values[rule.name.lower()] = int.from_bytes(octets or b"", "big")
    announced: dict[str, int] = {}
    for rule in reader.grammar.rules:
        names = _flag_names(rule, reader)
        missing = [name for name in names if name not in values]
        if reader.hint(rule).presence and missing:
            reader.diagnostics.error(
                "E403", reader.profile.span_of("presence", *missing), f"there is no flag rule '{missing[0]}'",
                f"the bits are {', '.join(values) or 'none'}",
            )  # fmt: skip
        elif names and not missing:
            announced[rule.name] = sum(values[name] for name in names)
    bits = tuple(_bit(rule, values[rule.name.lower()], announced, reader) for rule in rules)
    return Flags(bits, announced)


def _flag_names(rule: Rule, reader: TypeReader) -> list[str]:
    declared = reader.hint(rule).presence
    if declared:
        return [declared] if isinstance(declared, str) else list(declared)
    flag = f"flag-{rule.name.lower()}"
    return [flag] if reader.grammar.rule(flag) else []


def _bit(rule: Rule, value: int, announced: dict[str, int], reader: TypeReader) -> ir.FlagBit:
    part = next((name for name, bits in announced.items() if bits & value), None)
    name = constant_name(rule.name.partition("-")[2])
    return ir.FlagBit(name, value, reader.comment(rule), part)
