"""Sizes that cover what follows them: ``command-size = %x04 short-size / %x06 long-size``.

A rule with the name of a size is a size in several forms if each alternative is an integer, alone
or after a constant. A plain integer with such a name at the head of a run is the size of the values
after it. If a single open value follows directly, the integer is the length of that value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from specwire.generator import ir
from specwire.generator.abnf.syntax import Alternation, Concatenation, Element, Reference
from specwire.generator.passes.alternatives import alternations_in
from specwire.generator.passes.grammar import references

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader

_SIZE_WORD = re.compile(r"(?:^|[-_])(?:size|length|len)(?:-\d+)?\Z", re.IGNORECASE)
"""A number at the end of a name distinguishes it from others, or states its octets."""


def is_size_name(name: str) -> bool:
    """Whether the name is that of a size or length."""
    return _SIZE_WORD.search(name) is not None


def read_forms(reader: TypeReader, element: Alternation, name: str | None) -> ir.SizeType | None:
    """Return the size whose forms the alternatives are; None if they are something else."""
    names = name is not None and is_size_name(name)
    return reader.forms_of(element) if names or reader.names_sizes(element) else None


def names_sizes(element: Element) -> bool:
    """Whether the element uses a rule with the name of a size; `TypeReader.names_sizes` caches the answer."""
    return any(is_size_name(use.name) for use in references(element))


def forms_of(reader: TypeReader, element: Alternation | Concatenation) -> ir.SizeType | None:
    """Return the size whose forms the alternatives are, whatever their names; None if they have another form.

    `TypeReader.forms_of` caches the result.
    """
    forms: list[ir.SizeForm] = []
    for item in element.items if isinstance(element, Alternation) else (element,):
        form = _form(reader, item)
        if form is None:
            return None
        forms.append(form)
    return ir.SizeType(tuple(forms)) if _apart(forms) else None


def shaped_forms(reader: TypeReader, element: Alternation) -> ir.SizeType | None:
    """Return the size of alternatives that are integers of several widths, each after a constant."""
    size = reader.forms_of(element)
    if size is None or not all(form.tag for form in size.forms):
        return None
    return size if len({form.octets for form in size.forms}) > 1 else None


def find_forms(reader: TypeReader) -> frozenset[str]:
    """Return the names of rules that are one form of a size: ``short`` in ``( short / long ) body``."""
    found: set[str] = set()
    for rule in reader.grammar.rules:
        for element in alternations_in(rule.definition):
            if shaped_forms(reader, element):
                uses = (reader.grammar.find(item) for item in element.items if isinstance(item, Reference))
                found |= {str(target) for target in uses if target is not None}
    return frozenset(found)


def _form(reader: TypeReader, item: Element) -> ir.SizeForm | None:
    """Return the form of one alternative: constants, then an integer; None for other elements."""
    item = reader.opened(item)
    parts = item.items if isinstance(item, Concatenation) else (item,)
    tags = [reader.octets.constant(part) for part in parts[:-1]]
    width = reader.width(parts[-1])
    known = [tag for tag in tags if tag is not None]
    if width is None or len(known) < len(tags):
        return None
    reader.note_length(parts[-1])
    return ir.SizeForm(b"".join(known).hex(), width)


def _apart(forms: Iterable[ir.SizeForm]) -> bool:
    """Whether all forms can be distinguished; a form without a tag is one that matches no other."""
    tags = sorted(form.tag for form in forms if form.tag)
    bare = sum(1 for form in forms if not form.tag)
    return bare <= 1 and not any(after.startswith(tag) for tag, after in pairwise(tags))
