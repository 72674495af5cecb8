"""Railroad diagrams of rules: every path along the rails is a text that the rule matches.

Drawn by the optional library `railroad-diagrams`, which is imported for the first diagram. Rounded
boxes are octets and quoted words. Square boxes are other rules and link to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, assert_never

from markupsafe import Markup

from specwire.generator.abnf.syntax import (
    Alternation,
    CharVal,
    Concatenation,
    Element,
    NumRange,
    NumVal,
    Option,
    ProseVal,
    Reference,
    Repetition,
    write_element,
)
from specwire.generator.emit.reference.drawing import least_width

if TYPE_CHECKING:
    from railroad import DiagramItem

Link = Callable[[Reference], str | None]
"""Function that returns the address of a referenced rule, None if the page lacks it."""

WIDEST = 820.0
"""A wider sequence continues on a new line."""


def draw_rule(definition: Element, name: str, link: Link) -> Markup:
    """Return the diagram of a rule's definition; `name` is its accessible name."""
    from railroad import Diagram

    diagram = Diagram(_item(definition, link), type="complex")
    diagram.format(6)
    diagram.attrs |= {
        "role": "group",
        "aria-label": name,
        "style": least_width(float(diagram.attrs["width"])),
    }
    written: list[str] = []
    diagram.writeSvg(written.append)
    return Markup("".join(written).replace("\n", ""))


def _item(element: Element, link: Link) -> DiagramItem:
    from railroad import Choice, Optional, Terminal

    match element:
        case Alternation(items=items):
            return Choice(0, *(_item(item, link) for item in items))
        case Concatenation(items=items):
            return _sequence([_item(item, link) for item in items])
        case Option(element=inner):
            return Optional(_item(inner, link))
        case Repetition():
            return _repetition(element, link)
        case Reference():
            return _reference(element, link)
        case CharVal() | NumVal() | NumRange() | ProseVal():
            return Terminal(_cut(write_element(element)))
        case _:
            assert_never(element)


def _sequence(items: Sequence[DiagramItem]) -> DiagramItem:
    """Return the items in a row, or in several rows if they are too wide for one."""
    from railroad import Sequence as Row
    from railroad import Stack

    rows: list[list[DiagramItem]] = [[]]
    width = 0.0
    for item in items:
        if rows[-1] and width + item.width > WIDEST:
            rows.append([])
            width = 0
        rows[-1].append(item)
        width += item.width + 20
    drawn = [Row(*row) for row in rows]
    return drawn[0] if len(drawn) == 1 else Stack(*drawn)


def _repetition(element: Repetition, link: Link) -> DiagramItem:
    from railroad import Comment, OneOrMore, Optional, Skip

    least, most = element.minimum, element.maximum
    if most == 0:
        return Comment(f"nothing ({write_element(element)})")
    item = _item(element.element, link)
    if (least, most) == (1, 1):
        return item
    if most == 1:
        return Optional(item)
    times = _times(least, most)
    drawn = OneOrMore(item, Comment(times) if times else Skip())
    return drawn if least else Optional(drawn)


def _times(least: int, most: int | None) -> str:
    """Return how often an element occurs; empty if the rails show it."""
    if most is None:
        return f"{least} or more" if least > 1 else ""
    if least == most:
        return f"{least} times"
    return f"{least} to {most} times" if least > 1 else f"up to {most} times"


def _reference(reference: Reference, link: Link) -> DiagramItem:
    from railroad import NonTerminal

    text = str(reference)
    address = link(reference)
    item = NonTerminal(text)
    if address is None:
        return item
    return _linked(item, address)


def _linked(item: DiagramItem, address: str) -> DiagramItem:
    """Return the item as a link; links of the library itself draw their text twice."""
    item.name = "a"
    item.attrs["href"] = address
    return item


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
