"""Distinct names for the fields of a message or record."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, count, pairwise

import msgspec

from specwire.generator import ir
from specwire.generator.abnf.syntax import Rule
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.ir.names import attribute, snake_case

_NUMBERED = re.compile(r"_\d+\Z")
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
    names = [_qualified(field, short) for field in fields]
    taken: set[str] = set()
    found: dict[int, str] = {}
    # Messages have no attribute for a constant, so values are named first.
    for at in sorted(range(len(fields)), key=lambda at: fields[at].implied):
        found[at] = _free(names[at], taken, fields[at].implied)
        taken.add(found[at])
        if found[at] != names[at] and not fields[at].implied:
            diagnostics.warning(
                "W408",
                rule.name_span,
                f"'{rule}' has several fields '{fields[at].name.rpartition('/')[2]}'; "
                f"one is named '{found[at]}'",
                "give each field a separate rule with the intended name in an erratum",
            )
    return tuple(
        msgspec.structs.replace(field, name=found[at], attribute=attribute(found[at]))
        for at, field in enumerate(fields)
    )


def _qualified(field: ir.Field, short: Counter[str]) -> str:
    """Return the name of a field, with that of its rule if `short` has its own name more than once."""
    parts = field.name.split("/")
    return parts[-1] if short[parts[-1]] == 1 else "_".join(parts[-2:])


def _free(name: str, taken: set[str], implied: bool) -> str:
    """Return a name that is not taken: with the lowest number, if necessary.

    A constant may get another number in place of its own.
    """
    stem = _NUMBERED.sub("", name) if implied else name
    numbered = (f"{stem}_{number}" for number in count(2))
    return next(other for other in chain([name], numbered) if other not in taken)


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
