"""Distinct names for the fields of a message or record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.syntax import Rule
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.names import attribute


def distinct(fields: Sequence[ir.Field], rule: Rule, diagnostics: Diagnostics) -> tuple[ir.Field, ...]:
    """Return the fields with distinct names, qualified by the name of their rule if necessary.

    Names that are still equal get a number, which is an assumption (W408).
    """
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
