"""Grouping of the elements of a run: a length with its value, a word with its length.

The input is a sequence of elements, with groups in brackets expanded. The output is `Group`s, each
of which becomes one or more fields. A length may be in the same rule as its value (``topic-size
*VCHAR``), before a rule of open length (``size body``), or before everything that it covers
(``length flags body``). The extent of a plain integer with such a name is an assumption (W402)
unless the profile declares its ``scope``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from specwire.generator import ir
from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumVal,
    Option,
    Reference,
    Repetition,
)
from specwire.generator.ir.names import fold
from specwire.generator.passes.grammar import references
from specwire.generator.passes.layouts import FieldsLayout, ValueLayout, is_open
from specwire.generator.passes.sizes import is_size_name, read_forms, shaped_forms

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader

_WHOLE = re.compile(
    r"(?:(?:message|frame|body|packet|total|payload|command|record|short|long)[-_])?"
    r"(?:size|length|len)(?:-\d+)?\Z",
    re.IGNORECASE,
)
"""Names of sizes that cover more than the next value."""
_LENGTH = re.compile(r"number-\d{1,3}\Z|(?:.*[-_])?(?:size|length|len)(?:-\d+)?\Z", re.IGNORECASE)
"""Names of integers that are the length of the quoted string after them."""
_COUNT = re.compile(r"number\b|\A[a-z]\Z|(?:^|[-_])(?:count|n)(?:-\d+)?\Z", re.IGNORECASE)

Kind = Literal["value", "word", "counted", "length", "size", "optional"]


@dataclass(frozen=True, slots=True)
class Group:
    """Elements of one field: two for a word, a counted value, or a length with its value; otherwise one."""

    kind: Kind
    elements: tuple[Element, ...]


def flat(items: Sequence[Element]) -> Iterator[Element]:
    """Yield the elements of a run, with groups in brackets expanded."""
    for item in items:
        if isinstance(item, Concatenation):
            yield from flat(item.items)
        else:
            yield item


def group_elements(reader: TypeReader, items: Sequence[Element]) -> Iterator[Group]:
    """Yield the groups of a run in order."""
    row = list(flat(items))
    index = 0
    head = True
    while index < len(row):
        element = row[index]
        after = row[index + 1] if index + 1 < len(row) else None
        kind = _kind(reader, element, after, islice(row, index + 1, None), head)
        size = 2 if kind in ("word", "counted", "length") else 1
        yield Group(kind, tuple(row[index : index + size]))
        head = head and reader.octets.constant(element) is not None
        index += size


def _kind(
    reader: TypeReader, element: Element, after: Element | None, rest: Iterable[Element], head: bool
) -> Kind:
    if isinstance(element, Option):
        return "optional"
    if _is_word(reader, element, after):
        return "word"
    if after is not None and _is_unnamed_size(reader, element, after):
        if _scope_of(reader, element) is None:
            _assume(reader, element, "the number of octets after it, because a constant is before it")
        return "size"
    if reader.octets.constant(element) is not None or reader.prefix(element) is None:
        return "value"
    if after is None:
        hint = reader.hint(element if isinstance(element, Reference) else None)
        return "size" if hint.scope == "rest" else "value"
    hint = reader.hint(element if isinstance(element, Reference) else None)
    if hint.scope == "none" or hint.counts or hint.checksum:
        return "value"
    if isinstance(after, Repetition) and counts(reader, element, after):
        return "counted"
    kind = _scope(reader, element, after, rest, head) if hint.scope is None else hint.scope
    return {"next": "length", "rest": "size"}.get(kind or "", "value")  # type: ignore[return-value]


def counts(reader: TypeReader, head: Element, repetition: Repetition) -> bool:
    """Whether an integer is the length or the count of the repetition after it.

    W402 if its name does not say so.
    """
    if repetition.minimum == repetition.maximum or reader.octets.constant(head) is not None:
        return False
    hint = reader.hint(head if isinstance(head, Reference) else None)
    body = repetition.element
    if (
        hint.bits
        or hint.counts
        or hint.checksum
        or (isinstance(body, Reference) and fold(body.name) in reader.counted_names)
    ):
        return False
    if hint.scope is None and reader.width(head) is not None and not _says_count(head):
        _assume(reader, head, f"the number of what follows it: '{_shown(repetition)}'")
    return hint.scope in (None, "next")


def _scope(
    reader: TypeReader, element: Element, after: Element, rest: Iterable[Element], head: bool
) -> Literal["next", "rest"] | None:
    """Return what an integer with the name of a size counts, if the profile does not declare it."""
    if not isinstance(element, Reference) or not is_size_name(element.name):
        return None
    if open_value := _open_value(reader, after):
        many = isinstance(open_value, ir.ListType | ir.PairsType)
        _assume(reader, element, f"the {'number of entries' if many else 'length'} of '{after}' after it")
        return "next"
    if head and _WHOLE.match(element.name) and any(reader.varies(item) for item in rest):
        _assume(reader, element, "the number of octets after it")
        return "rest"
    return None


def _is_unnamed_size(reader: TypeReader, element: Element, after: Element) -> bool:
    """Whether an element is a size by its shape only: a short or a long integer, each after a constant."""
    opened = reader.opened(element)
    if _scope_of(reader, element) == "none" or _open_value(reader, after) is None:
        return False
    match element, opened:
        case Reference() | Alternation(), Alternation():
            name = element.name if isinstance(element, Reference) else None
            return not read_forms(reader, opened, name) and shaped_forms(reader, opened) is not None
        case Reference(), Concatenation():
            return str(reader.grammar.find(element)) in reader.forms
    return False


def _scope_of(reader: TypeReader, element: Element) -> str | None:
    """Return the `scope` that the profile declares for an element."""
    return reader.hint(_name(reader, element)).scope


def _name(reader: TypeReader, element: Element) -> Reference | None:
    """Return the name of an element in the profile; for alternatives in place, the first name among them."""
    if isinstance(element, Reference):
        return element
    return next((use for use in references(element) if reader.grammar.find(use)), None)


def _is_word(reader: TypeReader, element: Element, after: Element | None) -> bool:
    """Whether two elements are a word after its length: ``%d5 "READY"`` or ``number-1 "READY"``."""
    if not isinstance(after, CharVal):
        return False
    if isinstance(element, NumVal):
        return reader.octets.constant(element) == bytes((min(len(after.text), 0xFF),))
    if not isinstance(element, Reference) or not _LENGTH.match(element.name) or not reader.width(element):
        return False
    hint = reader.hint(element)
    if reader.octets.constant(element) is not None or hint.scope == "none" or hint.counts or hint.checksum:
        return False
    if reader.prefix(element) is None:
        return False
    if hint.scope is None:
        _assume(reader, element, f'the length of "{after.text}" after it')
    return True


def _says_count(element: Element) -> bool:
    if not isinstance(element, Reference):
        return True
    return is_size_name(element.name) or _COUNT.search(element.name) is not None


def _open_value(reader: TypeReader, element: Element) -> ir.Type | None:
    rule = reader.grammar.find(element) if isinstance(element, Reference) else None
    layout = reader.layout(rule) if rule else None
    return layout.type if isinstance(layout, ValueLayout) and is_open(layout.type) else None


def varies(reader: TypeReader, element: Element) -> bool:
    """Whether the number of octets of an element varies; `TypeReader.varies` caches the answer."""
    opened = reader.opened(element)
    if isinstance(opened, Option):
        return True
    rule = reader.grammar.find(element) if isinstance(element, Reference) else None
    layout = reader.layout(rule) if rule else None
    if isinstance(layout, FieldsLayout):
        return any(map(reader.varies, layout.items))
    return reader.octets.extent(opened) is None


def _assume(reader: TypeReader, element: Element, what: str) -> None:
    name = _name(reader, element)
    help = "give it a separate rule in an erratum"
    if name is not None:
        help = (
            f'declare what it counts with scope = "next", "rest" or "none" under [types.{name.name}] '
            f"in {reader.profile.source.path}"
        )
    reader.diagnostics.warning(
        "W402", element.span, f"'{name.name if name else 'size'}' is read as {what}", help
    )


def _shown(repetition: Repetition) -> str:
    low = str(repetition.minimum) if repetition.minimum else ""
    high = "" if repetition.maximum is None else str(repetition.maximum)
    inner = str(repetition.element) if isinstance(repetition.element, Reference) else "( … )"
    return f"{low}*{high}{inner}"
