"""A message rule as a sequence of slots: its elements in order, with options expanded.

``[routing] topic [payload / json] PROTO`` is four slots; the first and the third may be absent, and the
third has two readings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from specwire.generator.abnf.syntax import Alternation, Concatenation, Element, Option


@dataclass(frozen=True, slots=True)
class Slot:
    """One element of a message rule, and whether it may be absent."""

    element: Element
    optional: bool = False
    alternatives: tuple[Element, ...] = ()
    """The other readings of the same frame (``[payload / json]``)."""
    tied: bool = False
    """The slot is present whenever the one before it is: both are in one option."""
    apart: bool = False
    """A separate option directly after another, not inside it: each may be present without the other."""


def open_slots(element: Element) -> Iterator[Slot]:
    """Yield the slots of a message rule's definition."""
    match element:
        case Concatenation(items=items):
            after_option = False
            for item in items:
                for number, slot in enumerate(open_slots(item)):
                    yield replace(slot, apart=True) if after_option and slot.optional and not number else slot
                after_option = isinstance(item, Option)
        case Option(element=Alternation(items=(first, *others))):
            yield Slot(first, True, tuple(others))
        case Option(element=inner):
            for number, slot in enumerate(open_slots(inner)):
                yield replace(slot, optional=True, tied=slot.tied or (number > 0 and not slot.optional))
        case _:
            yield Slot(element)
