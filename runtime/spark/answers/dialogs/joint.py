"""All readings in one run: a node is a node of each automaton.

What each reading says is read off the numbers of the nodes with arrays, so one run is enough for all. Most conversations
are short and a batch has thousands of them: they go side by side, the second messages of all at once in a table,
then the third ones. The few that are longer go by themselves after that, a dictionary look-up for each message.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from operator import attrgetter, getitem

import numpy as np
import numpy.typing as npt

from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet
from specwire.runtime.spark.answers.dialogs.automaton import Automaton, Node
from specwire.runtime.spark.answers.dialogs.opened import Opened
from specwire.runtime.spark.answers.dialogs.readings import ConcurrentReading, StrictReading
from specwire.runtime.spark.answers.dialogs.texts import Longs

NODES_KEPT = 4096
"""Above this many nodes the tables are made anew: conversations with many open requests have a node for each number."""


SIDE_BY_SIDE = 128
"""Where fewer conversations than this go on, a step with arrays takes longer than one look-up after another."""

UNKNOWN = -1
"""In the table: nobody has asked yet."""

Numbers = npt.NDArray[np.int32]


class JointNode(dict[int, "JointNode"]):
    """A node of each automaton, and the nodes that symbols lead to."""

    __slots__ = ("_joint", "number", "parts")

    def __init__(self, joint: Joint, number: int, parts: tuple[Node, ...]) -> None:
        super().__init__()
        self._joint = joint
        self.number = number
        self.parts = parts

    def __missing__(self, symbol: int) -> JointNode:
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
        self._table = np.full((64, len(alphabet)), UNKNOWN, np.int32)
        self._start = self._node(tuple(automaton.start for automaton in self.automata))

    def renewed(self) -> Joint:
        """Return automata of bounded size: these, or empty ones in their place."""
        return self if len(self.nodes) <= NODES_KEPT else Joint(self.alphabet)

    def place(self, opened: Opened) -> int:
        """Return the number of the node where an open conversation is."""
        pairs = zip(self.automata, opened.tracks, strict=True)
        return self._node(tuple(automaton.node(track.configurations) for automaton, track in pairs)).number

    def run(self, symbols: Longs, starts: Longs, places: Mapping[int, int]) -> list[Numbers]:
        """Return for each automaton the number of its node after each row.

        `starts` are the rows with which conversations begin, or go on: those are at the nodes in `places`, by row.
        """
        numbers = self._run(symbols, starts, places)
        parts = np.array([[part.number for part in node.parts] for node in self.nodes], np.int32)
        return [parts[numbers, place] for place in range(len(self.automata))]

    def lead(self, node: JointNode, symbol: int) -> JointNode:
        """Return where a symbol leads."""
        return self._node(tuple(part[symbol] for part in node.parts))

    def _run(self, symbols: Longs, starts: Longs, places: Mapping[int, int]) -> Numbers:
        numbers = np.empty(len(symbols), np.int32)
        numbers[starts] = self._follow(np.full(len(starts), self._start.number, np.int32), symbols[starts])
        numbers[list(places)] = list(places.values())
        lengths = np.diff(starts, append=len(symbols))
        longest_first = np.argsort(-lengths, kind="stable")
        starts, lengths = starts[longest_first], lengths[longest_first]
        at, step, shortness = numbers[starts], 1, -lengths
        while (going := int(np.searchsorted(shortness, -step))) >= SIDE_BY_SIDE:
            rows = starts[:going] + step
            at = self._follow(at[:going], symbols[rows])
            numbers[rows] = at
            step += 1
        for start, length in zip(starts[:going].tolist(), lengths[:going].tolist(), strict=True):
            self._go_on(numbers, symbols, start + step, start + length)
        return numbers

    def _go_on(self, numbers: Numbers, symbols: Longs, begin: int, end: int) -> None:
        """Go from the node after the row before `begin` through the rows of one conversation up to `end`."""
        nodes = accumulate(symbols[begin:end].tolist(), getitem, initial=self.nodes[numbers[begin - 1]])
        numbers[begin - 1 : end] = np.fromiter(map(attrgetter("number"), nodes), np.int32, end - begin + 1)

    def _follow(self, before: Numbers, symbols: Longs) -> Numbers:
        """Return where symbols lead from nodes, one from each."""
        found: Numbers = self._table[before, symbols]
        unknown = np.flatnonzero(found == UNKNOWN)
        if not len(unknown):
            return found
        for number, symbol in dict.fromkeys(
            zip(before[unknown].tolist(), symbols[unknown].tolist(), strict=True)
        ):
            then = self.nodes[number][symbol].number  # which may make the table larger
            self._table[number, symbol] = then
        known: Numbers = self._table[before, symbols]
        return known

    def _node(self, parts: tuple[Node, ...]) -> JointNode:
        number = self._numbers.setdefault(tuple(part.number for part in parts), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(JointNode(self, number, parts))
            if number == len(self._table):
                self._table = np.pad(self._table, ((0, number), (0, 0)), constant_values=UNKNOWN)
        return self.nodes[number]
