"""In which order a broker does what its engine wants.

What happened is told first, then what is to be kept goes to the store, which makes nobody wait. Messages come after that: for workers
before those for clients, so that a worker has its job before its client is told so, and works meanwhile; and those
for one peer together, so that it takes them up together. What ends the broker, or begins something new, comes last.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from specwire.runtime.norfab.actions import Action, Report, Send, Store
from specwire.runtime.norfab.events import Happening


def sort_out(actions: Iterable[Action]) -> tuple[list[Happening], list[Store], list[Action]]:
    """Return what is to be told, what is to be kept, and the rest in its order."""
    happenings: list[Happening] = []
    stores: list[Store] = []
    others: list[Action] = []
    workers: dict[bytes, list[Action]] = {}
    clients: dict[bytes, list[Action]] = {}
    for action in actions:
        if type(action) is Send:
            sends = workers if action.role == "worker" else clients
            own = sends.get(action.peer)
            if own is None:
                sends[action.peer] = [action]
            else:
                own.append(action)
        elif type(action) is Store:
            stores.append(action)
        elif type(action) is Report:
            happenings.append(action.happening)
        else:
            others.append(action)
    return happenings, stores, [*chain(*workers.values(), *clients.values(), others)]
