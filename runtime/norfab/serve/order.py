"""In which order a broker does what its engine wants.

What happened is told first, then what is to be kept goes to the store, which makes nobody wait. Messages come after that: for workers
before those for clients, so that a worker has its job before its client is told so, and works meanwhile; and those
for one peer together, so that it takes them up together. What ends the broker, or begins something new, comes last.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.actions import Action, Ask, Fetch, Report, Send, Stopped
from specwire.runtime.norfab.commands import Command, Role
from specwire.runtime.norfab.events import Happening

MAIL_COMMANDS = 512
"""The most that is sent to one peer before another one has its turn."""


class Mail(msgspec.Struct, frozen=True, gc=False):
    """Commands for the peer with this routing id, as the `role` in which it is connected; in this order."""

    peer: bytes
    role: Role
    commands: list[Command]


Work = Mail | Ask | Fetch | Stopped


def sort_out(actions: Iterable[Action]) -> tuple[list[Happening], list[Commit], list[Work]]:
    """Return what is to be told, what is to be kept, and the rest in its order."""
    happenings: list[Happening] = []
    commits: list[Commit] = []
    others: list[Work] = []
    workers: dict[bytes, list[Command]] = {}
    clients: dict[bytes, list[Command]] = {}
    for action in actions:
        if type(action) is Send:
            commands = workers if action.role == "worker" else clients
            own = commands.get(action.peer)
            if own is None:
                commands[action.peer] = [action.command]
            else:
                own.append(action.command)
        elif type(action) is Commit:
            commits.append(action)
        elif type(action) is Report:
            happenings.append(action.happening)
        elif isinstance(action, Ask | Fetch | Stopped):
            others.append(action)
    works: list[Work] = []
    if workers:
        _post("worker", workers, works)
    if clients:
        _post("client", clients, works)
    return happenings, commits, works + others


def _post(role: Role, commands: dict[bytes, list[Command]], works: list[Work]) -> None:
    while commands:
        rest: dict[bytes, list[Command]] = {}
        for peer, own in commands.items():
            if len(own) > MAIL_COMMANDS:
                rest[peer] = own[MAIL_COMMANDS:]
                own = own[:MAIL_COMMANDS]
            works.append(Mail(peer, role, own))
        commands = rest
