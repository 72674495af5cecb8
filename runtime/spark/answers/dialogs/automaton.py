"""The steps of a reading as tables, made as traffic asks for them.

A node is a set of configurations that a conversation may be in. It is a dictionary from symbols to nodes that fills
itself, so following a million messages is a million dictionary look-ups, whatever the conversations
are like: one that has a third of all messages costs no more than a hundred thousand short ones.

Of a message that no configuration allows, in this order:

1. No message of the conversation has been accepted yet, and some state of a dialog allows it: the beginning was not
   seen. From here on only what no possible past allows is a violation.
2. The dialog has ended, and begins with this message: the identity is used anew (a worker that was restarted), and
   so is the dialog.
3. It is a violation. The conversation stays where it was, as with ``machine.Session``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from specwire.generated.dialog import Dialog
from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet, Label
from specwire.runtime.spark.answers.dialogs.readings import Configuration, Pair, Reading


class Verdict(IntEnum):
    """What is said of a message; from `UNEXPECTED` on it is a violation."""

    ALLOWED = 0
    MIDDLE = 1
    RESTART = 2
    UNEXPECTED = 3
    SENDER = 4
    UNDECODABLE = 5


class Node(dict[int, "Node"]):
    """A set of configurations, and the nodes that symbols lead to."""

    __slots__ = ("_automaton", "configurations", "number")

    def __init__(self, automaton: Automaton, number: int, configurations: tuple[Configuration, ...]) -> None:
        super().__init__()
        self._automaton = automaton
        self.number = number
        self.configurations = configurations

    def __missing__(self, symbol: int) -> Node:
        node = self._automaton.lead(self, symbol)
        self[symbol] = node
        return node


class Automaton:
    """The nodes met so far, and what is said of each symbol at each of them.

    Attributes:
        nodes: by their numbers; the first is the beginning.
        pairs: what messages do to the tokens with their key.
    """

    def __init__(self, alphabet: Alphabet, reading: Reading) -> None:
        self.alphabet = alphabet
        self.reading = reading
        self.nodes: list[Node] = []
        self.pairs: list[Pair] = []
        self._numbers: dict[tuple[Configuration, ...], int] = {}
        self._verdicts = np.zeros((64, len(alphabet)), np.uint8)
        self._paired = np.full((64, len(alphabet)), -1, np.int16)
        self.start = self.node(reading.begin())

    def node(self, configurations: Iterable[Configuration]) -> Node:
        """Return the node of a set of configurations."""
        distinct = tuple(dict.fromkeys(configurations))
        number = self._numbers.setdefault(distinct, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(Node(self, number, distinct))
        return self.nodes[number]

    def verdicts(
        self, before: npt.NDArray[np.int32], symbols: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint8]:
        """Return what is said of each symbol at the node before it; they must have been run over."""
        found: npt.NDArray[np.uint8] = self._verdicts[before, symbols]
        return found

    def paired(self, before: npt.NDArray[np.int32], symbols: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
        """Return for each symbol the number in `pairs` of what it does to the tokens, -1 for nothing."""
        found: npt.NDArray[np.int16] = self._paired[before, symbols]
        return found

    def lead(self, node: Node, symbol: int) -> Node:
        """Return where a symbol leads, and note what is said of it."""
        label = self.alphabet.labels[symbol]
        verdict, origins, found = self._judge(node, label)
        self._note(node.number, symbol, verdict, self._pair(origins, label) if found else None)
        if found:
            return self.node(found)
        return self.node(self.reading.blame(at, label) for at in node.configurations)

    def expected(self, node: Node, waiting: Sequence[int]) -> list[str]:
        """Return what would have been allowed at a node, given the places in which keys wait."""
        configurations = node.configurations
        return list(
            dict.fromkeys(name for at in configurations for name in self.reading.expected(at, waiting))
        )

    def dialogs(self, node: Node) -> list[Dialog]:
        """Return the dialogs that a conversation at this node may be one of."""
        return [
            self.alphabet.dialogs[number] for number in dict.fromkeys(at.dialog for at in node.configurations)
        ]

    def state(self, node: Node) -> str:
        """Return the names of the states that a conversation at this node may be in."""
        return "|".join(dict.fromkeys(at.state for at in node.configurations))

    def is_closed(self, node: Node) -> bool:
        """Return whether nothing more may come."""
        return all(map(self.reading.is_closed, node.configurations))

    def _judge(
        self, node: Node, label: Label
    ) -> tuple[Verdict, Sequence[Configuration], list[Configuration]]:
        """Return the verdict, the configurations that the message was judged in, and those that it leads to."""
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

    def _pair(self, origins: Sequence[Configuration], label: Label) -> Pair | None:
        for at in origins:
            if any(self.reading.follow(at, label)) and (pair := self.reading.pair(at, label)):
                return pair
        return None

    def _note(self, number: int, symbol: int, verdict: Verdict, pair: Pair | None) -> None:
        if number >= len(self._verdicts):
            more = max(number + 1, 2 * len(self._verdicts)) - len(self._verdicts)
            self._verdicts = np.pad(self._verdicts, ((0, more), (0, 0)))
            self._paired = np.pad(self._paired, ((0, more), (0, 0)), constant_values=-1)
        self._verdicts[number, symbol] = verdict
        if pair is not None:
            if pair not in self.pairs:
                self.pairs.append(pair)
            self._paired[number, symbol] = self.pairs.index(pair)
