"""The rows of the generated dialog tables, and how to bring an engine to where a row applies.

A *row* is one place of a table: in the strict reading a state and a label that is allowed in it, in the concurrent
reading a phase and a label, or the place of a token and the reply that takes it. A row that a regenerated table has
anew is a test without anybody's doing, and fails until somebody has written down what the specification says of it.

A `Play` brings one engine along the shortest path of labels to the row's state. Both directions are shown to the
generated session in the row's reading, which may complain of nothing but the event that is presented as a fault.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from specwire.generated import filemq, libfilemq
from specwire.generated.dialog import Dialog, Reading
from specwire.generated.filemq import (
    Cheezburger,
    Hugz,
    HugzOk,
    Icanhaz,
    IcanhazOk,
    Kthxbai,
    Nom,
    Ohai,
    OhaiOk,
    Operation,
    Rtfm,
    Srsly,
    Wat,
)
from specwire.runtime.filemq.codec import DIALECTS, Command, Dialect, Role

Protocol = Literal["filemq", "libfilemq"]
PROTOCOLS: tuple[Protocol, ...] = ("filemq", "libfilemq")
TABLES: Mapping[Protocol, Dialog] = {
    "filemq": filemq.machine.PEERING,
    "libfilemq": libfilemq.machine.PEERING,
}
TIMES = {"heartbeat": 1.0, "expiry": 4.0, "reconnect": 0.5}

CONCRETE: Mapping[str, Command] = {
    type(command).__name__: command
    for command in (
        Ohai(),
        OhaiOk(),
        Icanhaz(path="/", options=(("RESYNC", "1"),), cache=()),
        IcanhazOk(),
        Nom(credit=1000),
        Cheezburger(
            sequence=0, operation=Operation.CREATE, filename="/a", offset=0, headers=(), chunk=b"octets"
        ),
        Hugz(),
        HugzOk(),
        Kthxbai(),
        Srsly(reason="not for you"),
        Rtfm(reason="read it"),
        Wat(reason="what"),
    )
}
"""A legal message of each class."""


class Row(NamedTuple):
    """One place of a table."""

    protocol: Protocol
    reading: Reading
    state: str
    label: str

    def __str__(self) -> str:
        return "-".join(self)

    @property
    def cell(self) -> tuple[str, str]:
        """State and label."""
        return self.state, self.label


def rows(protocol: Protocol) -> Iterator[Row]:
    """Yield every row of both readings."""
    dialog = TABLES[protocol]
    for state, labels in dialog.strict.items():
        for label in labels:
            yield Row(protocol, "strict", state, label)
    for name, phase in dialog.phases.items():
        for label in dict.fromkeys((*phase.moves, *phase.starts)):
            yield Row(protocol, "concurrent", name, label)
    for label, takes in dialog.replies.items():
        for place, _ in takes:
            yield Row(protocol, "concurrent", place, label)


def absent_rows(protocol: Protocol, sender: Role) -> Iterator[Row]:
    """Yield what is in no row: for each phase the messages, of either side, that `sender` may not send there."""
    dialog = TABLES[protocol]
    for name, phase in dialog.phases.items():
        for message in CONCRETE:
            label = f"{sender}:{message}"
            if label not in phase.moves and label not in phase.starts and knows(protocol, message):
                yield Row(protocol, "concurrent", name, label)


def knows(protocol: Protocol, message: str) -> bool:
    """Tell whether the protocol has such a message at all."""
    messages = filemq.MESSAGES if protocol == "filemq" else libfilemq.MESSAGES
    return any(known.__name__ == message for known in messages.values())


def path_to(row: Row) -> list[str]:
    """Return the shortest labels, none of them an error, from the start of the table to the row's state."""
    steps = _strict_steps if row.reading == "strict" else _concurrent_steps
    dialog = TABLES[row.protocol]
    start = next(iter(dialog.strict if row.reading == "strict" else dialog.phases))
    open_paths = deque([(start, list[str]())])
    seen = {start}
    while open_paths:
        state, path = open_paths.popleft()
        if state == row.state:
            return path
        for label, after in steps(dialog, state):
            if label not in dialog.errors and after not in seen:
                seen.add(after)
                open_paths.append((after, [*path, label]))
    raise AssertionError(f"{row.state} cannot be reached")


def _strict_steps(dialog: Dialog, state: str) -> Iterator[tuple[str, str]]:
    yield from dialog.strict[state].items()


def _concurrent_steps(dialog: Dialog, state: str) -> Iterator[tuple[str, str]]:
    """Yield the phases after a phase, and the places where a request leaves a token."""
    phase = dialog.phases.get(state)
    if phase is not None:
        yield from phase.moves.items()
        yield from ((label, place or after) for label, (after, place) in phase.starts.items())


class Play(ABC):
    """One engine, the session that watches it in a reading, and what came of it so far.

    Attributes:
        said: what the engine has sent since something was last presented to it.
        history: what it has sent altogether.
        faults: what broke the dialog by the engine's own doing.
    """

    own: Role

    def __init__(self, protocol: Protocol, reading: Reading) -> None:
        machine = filemq.machine if protocol == "filemq" else libfilemq.machine
        self.dialect: Dialect = DIALECTS[protocol]
        self.said: list[str] = []
        self.history: list[str] = []
        self.faults: list[str] = []
        self.session = machine.Session(self.own, reading)

    @property
    def peer(self) -> Role:
        """The letter of the side that is played by the test."""
        return "C" if self.own == "S" else "S"

    def walk(self, path: Sequence[str]) -> None:
        """Go along the labels: present what is the peer's, and bring about what is the engine's own."""
        for label in path:
            sender, name = label.split(":")
            if sender == self.peer:
                assert self.present(CONCRETE[name]) is None, f"{label} is in order here"
            elif name not in self.said:
                self.bring_about(name)
                assert name in self.said, f"nothing made the engine send {name}"
        assert not self.faults, self.faults

    def present(self, message: Command, frames: Sequence[bytes] | None = None) -> str | None:
        """Give the engine a message (as `frames`, where these are a faulty form of it); return its fault."""
        violation = self.session.observe(self.peer, message)
        self.said.clear()
        self.receive(self.dialect.encode(message) if frames is None else frames)
        return None if violation is None else str(violation)

    def malformed(self, frames: Sequence[bytes]) -> None:
        """Give the engine what is no message."""
        self.session.malformed(self.peer)
        self.said.clear()
        self.receive(frames)

    def note_sent(self, command: Command) -> None:
        """Take note of what the engine sends."""
        self.said.append(type(command).__name__)
        self.history.append(type(command).__name__)
        violation = self.session.observe(self.own, command)
        if violation is not None:
            self.faults.append(str(violation))

    @abstractmethod
    def receive(self, frames: Sequence[bytes]) -> None:
        """Give the engine a message."""

    @abstractmethod
    def bring_about(self, name: str) -> None:
        """Make the engine send a message of this class by itself."""
