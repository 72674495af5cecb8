"""Names of fields: each in a message or record is another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.names import attribute
from specwire.generator.syntax import Rule


def distinct(fields: Sequence[ir.Field], rule: Rule, diagnostics: Diagnostics) -> tuple[ir.Field, ...]:
    """Return the fields with names that differ: a rule's own where two rules have the same in them.

    What is the same even so has a number behind it, which is an assumption (W408).
    """
    short = Counter(field.name.rpartition("/")[2] for field in fields)
    seen: Counter[str] = Counter()
    found: list[ir.Field] = []
    for field in fields:
        parts = field.name.split("/")
        name = parts[-1] if short[parts[-1]] == 1 else "_".join(parts[-2:])
        seen[name] += 1
        if seen[name] > 1 and field.implied:
            # A constant that comes twice, a blank between words: nobody reads its name.
            name = f"{name}_{seen[name]}"
        elif seen[name] > 1:
            name = f"{name}_{seen[name]}"
            diagnostics.warning(
                "W408", rule.name_span, f"'{rule}' has several fields '{parts[-1]}'; one is called '{name}'",
                "give each a rule of its own, with the name that it should have, in an erratum",
            )  # fmt: skip
        found.append(msgspec.structs.replace(field, name=name, attribute=attribute(name)))
    return tuple(found)
