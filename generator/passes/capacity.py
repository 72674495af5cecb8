"""Lengths and counts that can never hold what they stand in front of (E421).

``number-1 300*OCTET`` wants at least 300 octets and has one octet to say how many: up to 255.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.grammar import Grammar
from specwire.generator.passes.octets import Octets
from specwire.generator.syntax import Alternation, Concatenation, Element, Option, Repetition

WIDEST = 8
"""Octets of the longest length."""


def check_capacity(grammar: Grammar, diagnostics: Diagnostics) -> None:
    """Report each length or count that is too small for the least that follows it."""
    octets = Octets(grammar)
    for rule in grammar.rules:
        for size, counted in _counted(rule.definition):
            width = octets.count(size) or 0
            if not 1 <= width <= WIDEST or counted.minimum < 256**width:
                continue
            diagnostics.error(
                "E421", counted.span, f"at least {counted.minimum} elements follow a size of {width} octet{'s' if width > 1 else ''}, which goes to {256**width - 1}",
                f"no message can be valid; correct an error of the document with an erratum in the profile: {_fitting(counted.minimum)}OCTET holds {counted.minimum}",
            )  # fmt: skip


def _counted(element: Element) -> Iterator[tuple[Element, Repetition]]:
    """Yield each element that stands in front of a repetition whose count is open, with the repetition."""
    match element:
        case Concatenation(items=items):
            for before, after in pairwise(items):
                if isinstance(after, Repetition) and after.minimum != after.maximum:
                    yield before, after
            for item in items:
                yield from _counted(item)
        case Alternation(items=items):
            for item in items:
                yield from _counted(item)
        case Repetition(element=inner) | Option(element=inner):
            yield from _counted(inner)


def _fitting(number: int) -> int:
    """The octets of the narrowest integer that holds `number`."""
    return next((width for width in (1, 2, 4) if number < 256**width), WIDEST)
