"""Senders of messages in documents without a dialog: stated in sentences, or shown by the name.

A sentence names its subject, a verb of sending, and messages behind the verb: ``The client MUST start
by sending a HELLO command``. A side with several sockets may name one: ``on its publisher socket``.
Messages that a side sends on different sockets get different roles, because a receiver knows on
which socket a message arrives. Names that no sentence has are read by their last word: the client
sends requests, the server replies. Every sender is an assumption and is reported (W718).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from specwire.generator.diagnostics import Diagnostics
from specwire.generator.documents.tables import Command

_SIDES = {"client": ("C", "DEALER"), "server": ("S", "ROUTER")}
"""Letter and socket type of each side; these sockets can send and receive in any order."""
_SUBJECT = re.compile(r"\b(?:the|an?|each|every)\s+(client|server)\b", re.IGNORECASE)
SENDING = re.compile(
    r"\b(?:(?:SHALL|MUST|SHOULD|MAY|CAN|will)\s+|by\s+|and\s+|then\s+)"
    r"(?:[a-z]+\s+by\s+)?(?:send(?:ing|s)?|broadcast(?:ing|s)?|(?:reply|respond)\s+with)\b",
    re.IGNORECASE,
)
_SOCKET = re.compile(r"\bits\s+([a-z]+)\s+(?:port|connection|socket)\b", re.IGNORECASE)
_DECLARED = re.compile(
    r"\b([A-Z]+)\s+(?:port|connection|socket)\s+\((?:0MQ|ZeroMQ|\u00d8MQ)\s+([A-Z]+)\s+socket\)"
)


@dataclass(frozen=True, slots=True)
class Role:
    """One side of the protocol, with its name and socket type."""

    letter: str
    name: str
    socket: str


@dataclass(slots=True)
class _Roles:
    """Roles by side and socket; the first socket of a side keeps the letter of the side."""

    sockets: Mapping[tuple[str, str], str]
    """Socket types by side and name of the socket."""
    known: dict[tuple[str, str], Role] = field(default_factory=dict)

    def role(self, side: str, socket: str) -> Role:
        """Return the role of a side on one of its sockets."""
        letter, type = _SIDES[side]
        if (side, socket) not in self.known:
            others = self.of(side)
            taken = {role.letter for role in self.known.values()} | {letter for letter, _ in _SIDES.values()}
            free = next((sign for sign in socket.upper() if sign not in taken), letter)
            name = f"{side}-{socket}" if others else side
            role = Role(free if others else letter, name, self.sockets.get((side, socket), type))
            self.known[side, socket] = role
        return self.known[side, socket]

    def of(self, side: str) -> tuple[Role, ...]:
        """Return the roles of a side so far."""
        return tuple(role for (known, _), role in self.known.items() if known == side)


def find_senders(
    commands: Sequence[Command], sentences: Iterable[str], diagnostics: Diagnostics
) -> dict[str, tuple[Role, ...]]:
    """Return the roles that send each command, as far as sentences or names show them; report each.

    A message whose socket no sentence names may come from all roles of its side.
    """
    sentences = list(sentences)
    names = [command.name for command in commands]
    roles = _Roles(_sockets(sentences))
    stated: dict[str, set[tuple[str, str]]] = {}
    for sentence in sentences:
        for side, socket, name in _sent(sentence, names):
            stated.setdefault(name, set()).add((side, socket))
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        sides = {side for side, _ in stated.get(name, ())} or _by_name(name)
        sockets = {socket for _, socket in stated.get(name, ()) if socket}
        if len(sides) == 1:
            found[name] = sides.pop(), sockets.pop() if len(sockets) == 1 else ""
    for side, socket in found.values():
        if socket or not roles.of(side):
            roles.role(side, socket)
    senders: dict[str, tuple[Role, ...]] = {}
    for command in commands:
        if command.name in found:
            side, socket = found[command.name]
            senders[command.name] = (roles.role(side, socket),) if socket else roles.of(side)
            why = "a sentence" if command.name in stated else "its name"
            message = f"no dialog defines the sender of '{command.name}'; the {side} is assumed from {why}"
            help = f"to change it, edit `senders` under [message.{command.name}] in the profile"
            diagnostics.warning("W718", command.table.span, message, help)
    return senders


def _by_name(name: str) -> set[str]:
    """Return the side that sends a message of this name, if its last word shows it."""
    word = re.split(r"[-_]", name.lower())[-1]
    return {"client"} if word == "request" else {"server"} if word in ("reply", "response") else set()


def _sent(sentence: str, names: Sequence[str]) -> Iterable[tuple[str, str, str]]:
    """Yield side, socket and name of each message that a sentence says a side sends."""
    subject = _SUBJECT.search(sentence)
    sending = SENDING.search(sentence, subject.end()) if subject else None
    if subject is None or sending is None:
        return
    behind = sentence[sending.end() :]
    socket = _SOCKET.search(behind)
    for name in names:
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", behind):
            yield subject[1].lower(), socket[1].lower() if socket else "", name


def _sockets(sentences: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return the socket types that lists below a sentence about a side declare."""
    found: dict[tuple[str, str], str] = {}
    side = ""
    for sentence in sentences:
        subject = _SUBJECT.search(sentence)
        side = subject[1].lower() if subject else side
        for name, type in _DECLARED.findall(sentence):
            found.setdefault((side, name.lower()), type)
    return found
