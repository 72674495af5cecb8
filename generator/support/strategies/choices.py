"""Hypothesis strategies for fields that are present together under a condition, and None otherwise.

What the caller passes decides first. A number that announces fields is drawn so that it agrees with
them; fields about which nothing is known are present as the number says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from specwire.generated import plan as ops


@dataclass(frozen=True, slots=True)
class Choice:
    """Values of `Optional` operations, in `slots`: all present, or all None."""

    slots: tuple[str, ...]
    when: ops.When
    boolean: bool = False
    """The value in the first slot is only whether they are present."""
    possible: bool = True
    """Whether they can be present: not if their records would contain too many others."""
    numbers: SearchStrategy[int] | None = None
    """Numbers in the slot of the condition for which they are present."""

    def known(self, found: Mapping[str, object]) -> bool | None:
        """Return whether they are present, from the values that are `found`; None if that is open."""
        values = [found[slot] for slot in self.slots if slot in found]
        if not values:
            return None if self.possible else False
        return bool(values[0]) if self.boolean else any(value is not None for value in values)

    def settle(self, present: bool, found: dict[str, Any]) -> None:
        """Add what follows from the presence to the values."""
        if self.boolean and found.get(self.slots[0]) is None:
            found[self.slots[0]] = present
        if not present:
            for slot in self.slots:
                found.setdefault(slot, None)


def known_presence(choices: Sequence[Choice], found: Mapping[str, object]) -> dict[str, object]:
    """Return, for the first slots of choices, whether they are present where that is known: None if not."""
    known = ((choice, choice.known(found)) for choice in choices if choice.when.kind == "left")
    return {choice.slots[0]: present or None for choice, present in known if present is not None}


def choose_presence(
    draw: st.DrawFn,
    choices: Sequence[Choice],
    fits: Mapping[str, SearchStrategy[Any]],
    found: dict[str, Any],
) -> None:
    """Draw which fields are present; those that a number announces are present as it says.

    Args:
        draw: function of hypothesis.
        choices: fields that are present together.
        fits: strategies of all fields.
        found: values so far; the number of a condition is added, and None for each absent field.
    """
    done: set[str] = set()
    for choice in choices:
        slot = choice.when.slot
        if choice.when.kind == "left":
            choice.settle(found.get(choice.slots[0], ...) is not None, found)
        elif choice.when.kind == "octets":
            known = choice.known(found)
            choice.settle(draw(st.booleans()) if known is None else known, found)
        elif slot not in done:
            done.add(slot)
            group = [other for other in choices if other.when.slot == slot]
            if slot in fits and slot not in found:
                found[slot] = draw(_agreeing(fits[slot], group, found))
            number = found[slot] if slot in found else draw(_agreeing(st.integers(0, 1), group, found))
            for other in group:
                other.settle(isinstance(number, int) and other.when.fits(number), found)


def _agreeing(
    number: SearchStrategy[int], group: Sequence[Choice], found: Mapping[str, object]
) -> SearchStrategy[int]:
    """Draw a number that announces what is present, and none of what is absent, as far as that is known."""
    known = [(choice.when, choice.known(found)) for choice in group]
    settled = (choice.numbers for choice in group if choice.numbers is not None and choice.possible)
    return st.one_of(number, *settled).filter(
        lambda drawn: all(present in (None, when.fits(drawn)) for when, present in known)
    )
