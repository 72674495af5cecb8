"""All readings in one run: a node is a node of each automaton.

Running over messages is a dictionary look-up for each, in C; so it is done once for all readings, and what each of them
says is read off the numbers of the nodes with arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter, getitem

import numpy as np
import numpy.typing as npt

from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet
from specwire.runtime.spark.answers.dialogs.automaton import Automaton, Node
from specwire.runtime.spark.answers.dialogs.opened import Opened
from specwire.runtime.spark.answers.dialogs.readings import ConcurrentReading, StrictReading

NODES_KEPT = 4096
"""Above this many nodes the tables are made anew: conversations with many open requests have a node for each number."""


class JointNode(dict[int, "JointNode"]):
    """A node of each automaton, and the nodes that symbols lead to.

    Beside messages there are symbols for a message that begins a conversation (by the size of the alphabet above
    the message), and for going to a node whatever it is (`Joint.place`).
    """

    __slots__ = ("_joint", "number", "parts")

    def __init__(self, joint: Joint, number: int, parts: tuple[Node, ...]) -> None:
        super().__init__()
        self._joint = joint
        self.number = number
        self.parts = parts

    def __missing__(self, symbol: int) -> JointNode:
        if symbol < 0:
            return self._joint.nodes[~symbol]
        node = self._joint.lead(self, symbol)
        self[symbol] = node
        return node


class Joint:
    """The automata of a protocol's readings, strict and concurrent, run together."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        readings = (StrictReading(alphabet.dialogs), ConcurrentReading(alphabet.dialogs))
        self.automata = tuple(Automaton(alphabet, reading) for reading in readings)
        self.nodes: list[JointNode] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._start = self._node(tuple(automaton.start for automaton in self.automata))

    def renewed(self) -> Joint:
        """Return automata of bounded size: these, or empty ones in their place."""
        return self if len(self.nodes) <= NODES_KEPT else Joint(self.alphabet)

    def place(self, opened: Opened) -> int:
        """Return the symbol that leads to where an open conversation is."""
        pairs = zip(self.automata, opened.tracks, strict=True)
        return ~self._node(tuple(automaton.node(track.configurations) for automaton, track in pairs)).number

    def run(self, symbols: Sequence[int]) -> list[npt.NDArray[np.int32]]:
        """Return for each automaton the number of its node after each symbol."""
        nodes = accumulate(symbols, getitem, initial=self._start)
        numbers = np.fromiter(map(attrgetter("number"), nodes), np.int32, len(symbols) + 1)[1:]
        parts = np.array([[part.number for part in node.parts] for node in self.nodes], np.int32)
        return [parts[numbers, place] for place in range(len(self.automata))]

    def lead(self, node: JointNode, symbol: int) -> JointNode:
        """Return where a symbol leads."""
        if symbol >= len(self.alphabet):
            return self._start[symbol - len(self.alphabet)]
        return self._node(tuple(part[symbol] for part in node.parts))

    def _node(self, parts: tuple[Node, ...]) -> JointNode:
        number = self._numbers.setdefault(tuple(part.number for part in parts), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(JointNode(self, number, parts))
        return self.nodes[number]
