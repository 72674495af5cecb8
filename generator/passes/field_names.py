"""Distinct names for the fields of a message or record."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.syntax import Rule
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.names import attribute, snake_case

_LABEL = re.compile(r"(?P<name>[A-Za-z][\w-]*)=\Z", re.ASCII)
_CORE = frozenset({"CR", "CRLF", "DQUOTE", "HTAB", "LF", "SP"})
"""Rules of RFC 5234 that are constants."""


def distinct(fields: Sequence[ir.Field], rule: Rule, diagnostics: Diagnostics) -> tuple[ir.Field, ...]:
    """Return the fields with distinct names, qualified by the name of their rule if necessary.

    A value after a constant such as ``"rc="`` is called ``rc``. Names that are still equal get a number,
    which is an assumption (W408).
    """
    fields = [_labelled(field, before) for before, field in pairwise([None, *fields]) if field]
    short = Counter(field.name.rpartition("/")[2] for field in fields)
    seen: Counter[str] = Counter()
    found: list[ir.Field] = []
    for field in fields:
        parts = field.name.split("/")
        name = parts[-1] if short[parts[-1]] == 1 else "_".join(parts[-2:])
        seen[name] += 1
        if seen[name] > 1 and field.implied:
            # A repeated constant, such as a blank between words: its name is never used.
            name = f"{name}_{seen[name]}"
        elif seen[name] > 1:
            name = f"{name}_{seen[name]}"
            diagnostics.warning(
                "W408",
                rule.name_span,
                f"'{rule}' has several fields '{parts[-1]}'; one is named '{name}'",
                "give each field a separate rule with the intended name in an erratum",
            )
        found.append(msgspec.structs.replace(field, name=name, attribute=attribute(name)))
    return tuple(found)


def shown(field: ir.Field) -> str:
    """Return a field as a diagnostic names it: a constant without a rule as the grammar may write it."""
    core = re.sub(r"_\d+\Z", "", field.name).upper()
    if not isinstance(field.type, ir.ConstantType) or field.rule is not None:
        return f"'{field.name}'"
    if core in _CORE:
        return core
    return f"%x{field.type.hex.upper()}" if field.type.text is None else f'"{field.type.text}"'


def _labelled(field: ir.Field, before: ir.Field | None) -> ir.Field:
    """Return a field named after the constant before it, unless the profile names the field."""
    text = before.type.text if before and isinstance(before.type, ir.ConstantType) else None
    label = _LABEL.match(text or "")
    own = field.rule is not None and field.name.rpartition("/")[2] == snake_case(field.rule)
    if label is None or field.implied or not own:
        return field
    return msgspec.structs.replace(field, name=snake_case(label["name"]))
