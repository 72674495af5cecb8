"""Lengths and counts that are too small for the values after them (E421).

``number-1 300*OCTET`` requires at least 300 octets, but its length has one octet, so it is at most 255.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from specwire.generator.abnf.syntax import Alternation, Concatenation, Element, Option, Repetition
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.passes.grammar import Grammar
from specwire.generator.passes.octets import Octets

WIDEST = 8
"""Octets of the longest length."""


def check_capacity(grammar: Grammar, diagnostics: Diagnostics) -> None:
    """Report each length or count that is too small for the shortest value after it."""
    octets = Octets(grammar)
    for rule in grammar.rules:
        for size, counted in _counted(rule.definition):
            width = octets.count(size) or 0
            if not 1 <= width <= WIDEST or counted.minimum < 256**width:
                continue
            diagnostics.error(
                "E421",
                counted.span,
                f"at least {counted.minimum} elements follow a size of {width} "
                f"octet{'s' if width > 1 else ''}, which is at most {256**width - 1}",
                "no message can be valid; if the document is wrong, correct it with an erratum in the "
                f"profile: {_fitting(counted.minimum)}OCTET can hold {counted.minimum}",
            )


def _counted(element: Element) -> Iterator[tuple[Element, Repetition]]:
    """Yield each element directly before a repetition with an open count, and the repetition."""
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
    """Return the octets of the narrowest integer that can hold `number`."""
    return next((width for width in (1, 2, 4) if number < 256**width), WIDEST)
