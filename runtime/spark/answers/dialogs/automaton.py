"""Transitions of a reading, memoised as traffic asks for them.

A node is a set of configurations that a conversation may be in. It is a dictionary from symbols to
transitions that is filled on demand, so each message costs one look-up.

A message that no configuration allows is judged in this order:

1. No message of the conversation has been accepted yet, and some state of a dialog allows it: the
   beginning was not seen. After that, a message is a violation only if no possible past allows it.
2. The dialog has ended, and begins with this message: the identity is reused (a worker was
   restarted), and the dialog restarts.
3. It is a violation. The conversation stays where it was, as with ``machine.Session``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from specwire.generated.dialog import Dialog
from specwire.runtime.spark.answers.dialogs.readings import Configuration, Reading, TokenChange
from specwire.runtime.spark.answers.dialogs.symbols import Alphabet, Label

NODES_KEPT = 4096
"""Default for the largest number of nodes. Each number of open requests has its own node."""


class Verdict(IntEnum):
    """Judgement of a message; from `UNEXPECTED` on it is a violation."""

    ALLOWED = 0
    MIDDLE = 1
    RESTART = 2
    UNEXPECTED = 3
    SENDER = 4
    UNDECODABLE = 5


class Transition(NamedTuple):
    """Result of a symbol at a node: the next node, the verdict, and the change of the tokens."""

    node: Node
    verdict: Verdict
    change: TokenChange | None


class NodeSummary(NamedTuple):
    """A node in the terms of the answer; `waiting` counts requests that are not paired by key.

    `dialog` is None while several dialogs are possible. `waiting` is 0 while several configurations
    are.
    """

    dialog: str | None
    state: str
    ended: bool
    waiting: int


class Node(dict[int, Transition]):
    """Set of configurations, with its transitions by symbol."""

    def __init__(self, automaton: Automaton, configurations: tuple[Configuration, ...]) -> None:
        super().__init__()
        self.automaton = automaton
        self.configurations = configurations

    def __missing__(self, symbol: int) -> Transition:
        transition = self[symbol] = self.automaton.transition(self, symbol)
        return transition

    @cached_property
    def summary(self) -> NodeSummary:
        """Return the node in the terms of the answer."""
        reading, configurations = self.automaton.reading, self.configurations
        dialogs = self.automaton.dialogs(self)
        return NodeSummary(
            dialog=dialogs[0].name if len(dialogs) == 1 else None,
            state="|".join(dict.fromkeys(at.state for at in configurations)),
            ended=all(map(reading.is_closed, configurations)),
            waiting=sum(count for _, count in configurations[0].tokens) if len(configurations) == 1 else 0,
        )


class Automaton:
    """The nodes met so far of a reading.

    Attributes:
        start: the node where a conversation begins.
    """

    def __init__(self, alphabet: Alphabet, reading: Reading) -> None:
        self.alphabet = alphabet
        self.reading = reading
        self._nodes: dict[tuple[Configuration, ...], Node] = {}
        self.start = self.node(reading.begin())

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, configurations: Iterable[Configuration]) -> Node:
        """Return the node of a set of configurations."""
        distinct = tuple(dict.fromkeys(configurations))
        if distinct not in self._nodes:
            self._nodes[distinct] = Node(self, distinct)
        return self._nodes[distinct]

    def clear(self) -> None:
        """Remove all nodes. A node in use must be replaced by a new one of its configurations."""
        self._nodes.clear()
        self.start = self.node(self.reading.begin())

    def transition(self, node: Node, symbol: int) -> Transition:
        """Return the transition of a symbol at a node."""
        label = self.alphabet.labels[symbol]
        verdict, origins, found = self._judge(node, label)
        if found:
            return Transition(self.node(found), verdict, self._change(origins, label))
        return Transition(
            self.node(self.reading.blame(at, label) for at in node.configurations), verdict, None
        )

    def expected(self, node: Node, waiting: Sequence[int]) -> list[str]:
        """Return the labels that are allowed at a node, given the places in which keys wait."""
        return list(
            dict.fromkeys(name for at in node.configurations for name in self.reading.expected(at, waiting))
        )

    def dialogs(self, node: Node) -> list[Dialog]:
        """Return the dialogs that are possible at a node."""
        return [
            self.alphabet.dialogs[number] for number in dict.fromkeys(at.dialog for at in node.configurations)
        ]

    def _judge(
        self, node: Node, label: Label
    ) -> tuple[Verdict, Sequence[Configuration], list[Configuration]]:
        """Return the verdict, and the configurations before and after the message."""
        if label.message is None:
            return Verdict.UNDECODABLE, (), []
        if label.sender is None:
            return Verdict.SENDER, (), []
        tries: list[tuple[Verdict, Sequence[Configuration]]] = [(Verdict.ALLOWED, node.configurations)]
        if all(at.fresh and not at.middle for at in node.configurations):
            tries.append((Verdict.MIDDLE, self.reading.anywhere()))
        ended = {at.dialog for at in node.configurations if self.reading.is_closed(at)}
        tries.append((Verdict.RESTART, [at for at in self.reading.begin() if at.dialog in ended]))
        for verdict, origins in tries:
            found = [then for at in origins for then in self.reading.follow(at, label)]
            if found:
                return verdict, origins, found
        return Verdict.UNEXPECTED, (), []

    def _change(self, origins: Sequence[Configuration], label: Label) -> TokenChange | None:
        for at in origins:
            if any(self.reading.follow(at, label)) and (change := self.reading.change(at, label)):
                return change
        return None
