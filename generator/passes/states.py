"""Name the states of a dialog, so that a table and a violation read without a legend.

The start is ``START``, a state that nothing can follow ``CLOSED``, the state in which a dialog is used
``USE``. Any other is named after the first message that leads to it: after ``C:IcanhazOk`` the state is
``C_ICANHAZ_OK``. A name that is taken gets a number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from specwire.generator.passes.automata import Automaton

START = "START"
USE = "USE"
CLOSED = "CLOSED"

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def name_after(label: str, *, taken: Collection[str]) -> str:
    """Return the name of the state that `label` leads to, other than those `taken`."""
    return _number_apart(_WORD_START.sub("_", label).replace(":", "_").upper(), taken)


def name_states(
    automaton: Automaton, known: Mapping[int, str], groups: Mapping[str, str | None] | None = None
) -> list[str]:
    """Return a name for each state of `automaton`.

    Args:
        automaton: the automaton; its states are numbered breadth-first.
        known: names already decided; they go before any other, the first of equal ones as it is.
        groups: labels that are not messages, each with the message that names the state after it, or None.
    """
    arrivals: dict[int, str] = {}
    for row in automaton.transitions:
        for label, target in row.items():
            message = groups.get(label, label) if groups else label
            if message is not None:
                arrivals.setdefault(target, message)
    names: list[str] = []
    for state, row in enumerate(automaton.transitions):
        if state in known:
            names.append(_number_apart(known[state], names))
        elif state == 0:
            names.append(START)
        elif not row:
            names.append(CLOSED)
        else:
            taken = {*names, *known.values()}
            names.append(
                name_after(arrivals[state], taken=taken) if state in arrivals else _number_apart(USE, taken)
            )
    return names


def _number_apart(name: str, taken: Collection[str]) -> str:
    number = 2
    unique = name
    while unique in taken:
        unique = f"{name}_{number}"
        number += 1
    return unique
