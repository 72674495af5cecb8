"""Names for the states of a dialog, so that tables and violations are readable.

The start is ``START``, a state without successors ``CLOSED``, and the state in which a dialog is
used ``USE``. Any other state is named after the first message that leads to it: after
``C:IcanhazOk`` it is ``C_ICANHAZ_OK``. A name that is taken gets a number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from specwire.generator.passes.automata import Automaton

START = "START"
USE = "USE"
CLOSED = "CLOSED"

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class StateNames:
    """Set of the names of states. A new name differs from those taken and from those reserved."""

    def __init__(self, taken: set[str] | None = None, reserved: Collection[str] = ()) -> None:
        self.taken = set() if taken is None else taken
        self._reserved = reserved
        self._numbers: dict[str, int] = {}
        """The last number of each name, so that the search for a free one does not start from 1."""

    def add(self, name: str) -> str:
        """Reserve and return the name, with a number appended if it is taken."""
        number = self._numbers.get(name, 1)
        unique = name if number == 1 else f"{name}_{number}"
        while unique in self.taken or unique in self._reserved:
            number += 1
            unique = f"{name}_{number}"
        self._numbers[name] = number
        self.taken.add(unique)
        return unique

    def after(self, label: str) -> str:
        """Reserve and return the name of the state that `label` leads to."""
        return self.add(_WORD_START.sub("_", label).replace(":", "_").upper())


def name_states(
    automaton: Automaton, known: Mapping[int, str], groups: Mapping[str, str | None] | None = None
) -> list[str]:
    """Return a name for each state of `automaton`.

    Args:
        automaton: the automaton; its states are numbered breadth-first.
        known: names that are already decided; they take precedence, and the first of equal ones is unchanged.
        groups: labels that are not messages, each with the message that names the state after it, or None.
    """
    arrivals: dict[int, str] = {}
    for row in automaton.transitions:
        for label, target in row.items():
            message = groups.get(label, label) if groups else label
            if message is not None:
                arrivals.setdefault(target, message)
    names: list[str] = []
    known_names = StateNames()
    others = StateNames(known_names.taken, frozenset(known.values()))
    for state, row in enumerate(automaton.transitions):
        if state in known:
            names.append(known_names.add(known[state]))
        elif state == 0 or not row:
            names.append(CLOSED if state else START)
            known_names.taken.add(names[-1])
        elif state in arrivals:
            names.append(others.after(arrivals[state]))
        else:
            names.append(others.add(USE))
    return names
