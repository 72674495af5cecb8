"""Which elements of a run belong together: a length and what it counts, a word and its length.

In comes a row of elements, groups in brackets opened; out come `Group`s, each of which is a field or
several. A length may stand in the same rule as its value (``topic-size *VCHAR``), before a rule that has no end
of its own (``size body``), or at the head of all that it covers (``length flags body``). What a plain
integer with such a name counts is an assumption (W402) unless the profile says ``scope``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from specwire.generator import ir
from specwire.generator.passes.grammar import references
from specwire.generator.passes.layouts import FieldsLayout, ValueLayout, is_open
from specwire.generator.passes.sizes import is_size_name, read_forms, shaped_forms
from specwire.generator.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumVal,
    Option,
    Reference,
    Repetition,
)

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader

_WHOLE = re.compile(
    r"(?:(?:message|frame|body|packet|total|payload|command|record|short|long)[-_])?(?:size|length|len)(?:-\d+)?\Z",
    re.IGNORECASE,
)
"""Names of sizes that cover more than the next value."""
_LENGTH = re.compile(r"number-\d{1,3}\Z|(?:.*[-_])?(?:size|length|len)(?:-\d+)?\Z", re.IGNORECASE)
"""Names of integers that are the length of the quoted string after them."""
_COUNT = re.compile(r"number\b|\A[a-z]\Z|(?:^|[-_])(?:count|n)(?:-\d+)?\Z", re.IGNORECASE)

Kind = Literal["value", "word", "counted", "length", "size", "optional"]


@dataclass(frozen=True, slots=True)
class Group:
    """Elements that make one field: two for a word, a counted value and a length with its value, else one."""

    kind: Kind
    elements: tuple[Element, ...]


def flat(items: Sequence[Element]) -> Iterator[Element]:
    """Yield the elements of a run; a group in brackets is part of it."""
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
        if _said(reader, element) is None:
            _assume(reader, element, "the number of octets that follow it, behind a constant")
        return "size"
    if after is None or reader.octets.constant(element) is not None or reader.width(element) is None:
        return "value"
    hint = reader.hint(element if isinstance(element, Reference) else None)
    if hint.scope == "none":
        return "value"
    if isinstance(after, Repetition) and counts(reader, element, after):
        return "counted"
    kind = _scope(reader, element, after, rest, head) if hint.scope is None else hint.scope
    return {"next": "length", "rest": "size"}.get(kind or "", "value")  # type: ignore[return-value]


def counts(reader: TypeReader, head: Element, repetition: Repetition) -> bool:
    """Whether an integer is the length or the number of what repeats behind it; W402 where its name does not say so."""
    if repetition.minimum == repetition.maximum or reader.octets.constant(head) is not None:
        return False
    hint = reader.hint(head if isinstance(head, Reference) else None)
    if hint.scope is None and reader.width(head) is not None and not _says_count(head):
        _assume(reader, head, f"the number of what follows it: '{_shown(repetition)}'")
    return hint.scope in (None, "next")


def _scope(
    reader: TypeReader, element: Element, after: Element, rest: Iterable[Element], head: bool
) -> Literal["next", "rest"] | None:
    """What an integer with the name of a size counts, where the profile does not say."""
    if not isinstance(element, Reference) or not is_size_name(element.name):
        return None
    if open_value := _open_value(reader, after):
        many = isinstance(open_value, ir.ListType | ir.PairsType)
        _assume(reader, element, f"the {'number of entries' if many else 'length'} of '{after}' behind it")
        return "next"
    if head and _WHOLE.match(element.name) and any(reader.varies(item) for item in rest):
        _assume(reader, element, "the number of octets that follow it")
        return "rest"
    return None


def _is_unnamed_size(reader: TypeReader, element: Element, after: Element) -> bool:
    """``more body`` where ``more`` is a short or a long integer, each behind a constant: a size by its shape only."""
    opened = reader.opened(element)
    if _said(reader, element) == "none" or _open_value(reader, after) is None:
        return False
    match element, opened:
        case Reference() | Alternation(), Alternation():
            name = element.name if isinstance(element, Reference) else None
            return not read_forms(reader, opened, name) and shaped_forms(reader, opened) is not None
        case Reference(), Concatenation():
            return str(reader.grammar.find(element)) in reader.forms
    return False


def _said(reader: TypeReader, element: Element) -> str | None:
    """What the profile says that an element counts."""
    return reader.hint(_name(reader, element)).scope


def _name(reader: TypeReader, element: Element) -> Reference | None:
    """The name by which the profile speaks of an element: of alternatives in place that of the first with a rule."""
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
    if reader.octets.constant(element) is not None or reader.hint(element).scope == "none":
        return False
    if reader.hint(element).scope is None:
        _assume(reader, element, f'the length of "{after.text}" behind it')
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
    help = "give it a rule of its own in an erratum"
    if name is not None:
        help = f'say what it counts with scope = "next", "rest" or "none" under [types.{name.name}] in {reader.profile.source.path}'
    reader.diagnostics.warning(
        "W402", element.span, f"'{name.name if name else 'size'}' is taken for {what}", help
    )


def _shown(repetition: Repetition) -> str:
    low = str(repetition.minimum) if repetition.minimum else ""
    high = "" if repetition.maximum is None else str(repetition.maximum)
    inner = str(repetition.element) if isinstance(repetition.element, Reference) else "( … )"
    return f"{low}*{high}{inner}"
