"""Matching of a text against an expression in one pass over the text.

`build_automaton` makes Thompson's automaton: nodes, silent steps between them, and runs, each of
which takes characters of one class and leads to a node. A `Walk` follows all paths through it at
once, so ambiguity costs nothing: each character visits each node and each run at most once, without
backtracking.

A run counts (``4*8DIGIT`` is one run), and several walkers may be inside it with different counts. They
all take the next character or all fall out, so it is enough to keep where each began; the oldest has the
highest count. That is the counting-set automaton of Turoňová, Holík, Lengál, Saarikivi, Veanes and
Vojnar ("Regex Matching with Counting-Set Automata", 2020): begins are added at one end and dropped at the
other, each once.

Every expression matches some text, so every node can still reach the end. The longest prefix that
the walk accepts is therefore the longest prefix that some continuation can complete to a match.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specwire.generator.abnf.text_expressions import (
    Call,
    Chain,
    Characters,
    Choice,
    Expression,
    Many,
    Maybe,
    Run,
)


@dataclass(frozen=True, slots=True)
class Edge:
    """A run of `minimum` to `maximum` (None: no bound) characters, and the node it leads to."""

    characters: Characters
    minimum: int
    maximum: int | None
    target: int


@dataclass(frozen=True, slots=True)
class Automaton:
    """For each node the nodes that a silent step reaches and the numbers of its runs; node 0 is the start.

    Runs are numbered in the order in which the expression names them.
    """

    silent: tuple[tuple[int, ...], ...]
    runs: tuple[tuple[int, ...], ...]
    edges: tuple[Edge, ...]
    final: int
    calls: tuple[tuple[tuple[str, int], ...], ...]
    """For each node the rules that are called there, each with the node it leads to.

    No `Walk` makes calls.
    """


@dataclass(frozen=True, slots=True)
class Match:
    """Whether a whole text matches, and how far it got.

    `offset` counts the characters of the longest prefix that can still become a match; `expected` is what
    the grammar allows after it, and `may_end` whether that prefix is a match itself.
    """

    matches: bool
    offset: int
    expected: tuple[str, ...]
    may_end: bool


def match_text(automaton: Automaton, text: str) -> Match:
    """Match the whole of `text`."""
    walk = Walk(automaton)
    offset = next((n for n, character in enumerate(text) if not walk.advance(character)), len(text))
    whole = offset == len(text)
    return Match(whole and walk.may_end, offset, walk.expected(), walk.may_end)


class Walk:
    """All ways through an automaton at once, after the characters taken so far.

    `steps` counts the nodes and runs looked at; each character adds at most as many as the automaton has,
    twice.
    """

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._position = 0
        self._begun: dict[int, deque[int]] = {}
        """The runs that are under way: for each the positions where walkers entered it, oldest first."""
        self.may_end = False
        self.steps = 0
        self._enter([0])

    def advance(self, character: str) -> bool:
        """Take a character; return False, without a change, if no path allows it."""
        edges, code = self._automaton.edges, ord(character)
        taking = [number for number in self._open() if edges[number].characters.holds(code)]
        if not taking:
            return False
        self._position += 1
        begun = self._begun
        self._begun = {number: begun[number] for number in taking}
        self._enter([edges[number].target for number in taking if self._is_long_enough(number)])
        return True

    def expected(self) -> tuple[str, ...]:
        """Return what may come next, as the grammar writes it, in the order of the grammar."""
        names = (self._automaton.edges[n].characters.names for n in sorted(self._open()))
        return tuple(dict.fromkeys(name for some in names for name in some))

    def _open(self) -> Iterator[int]:
        """Yield the runs that can take one more character: by the count of the youngest walker."""
        for number, begins in self._begun.items():
            self.steps += 1
            maximum = self._automaton.edges[number].maximum
            if maximum is None or self._position - begins[-1] < maximum:
                yield number

    def _is_long_enough(self, number: int) -> bool:
        """Drop the walkers that took too many characters.

        Return whether the oldest remaining one may continue.
        """
        edge, begins = self._automaton.edges[number], self._begun[number]
        while edge.maximum is not None and self._position - begins[0] > edge.maximum:
            begins.popleft()
        return self._position - begins[0] >= edge.minimum

    def _enter(self, nodes: Iterable[int]) -> None:
        """Stand on `nodes` and on all that silent steps reach, and begin their runs."""
        found = set(nodes)
        waiting = list(found)
        while waiting:
            node = waiting.pop()
            self.steps += 1
            for number in self._automaton.runs[node]:
                begins = self._begun.setdefault(number, deque())
                # Without a bound, who began first may do all that the others may.
                if not begins or self._automaton.edges[number].maximum is not None:
                    begins.append(self._position)
            fresh = [target for target in self._automaton.silent[node] if target not in found]
            found.update(fresh)
            waiting.extend(fresh)
        self.may_end = self._automaton.final in found


def build_automaton(expression: Expression) -> Automaton:
    """Return an automaton of at most about twice as many nodes as `expression.size`."""
    builder = _Builder()
    builder.build(expression)
    return Automaton(
        tuple(map(tuple, builder.silent)),
        tuple(map(tuple, builder.runs)),
        tuple(builder.edges),
        final=1,
        calls=tuple(map(tuple, builder.calls)),
    )


class _Builder:
    """Builder of an automaton, without recursion, so that the nesting of rules is not limited.

    Parts may share their first and last nodes; only a loop needs separate nodes.
    """

    def __init__(self) -> None:
        self.silent: list[list[int]] = []
        self.runs: list[list[int]] = []
        self.calls: list[list[tuple[str, int]]] = []
        self.edges: list[Edge] = []
        self._pending: list[tuple[Expression, int, int]] = []

    def build(self, expression: Expression) -> None:
        """Put `expression` between nodes 0 and 1."""
        self._pending.append((expression, self._node(), self._node()))
        while self._pending:
            part, source, target = self._pending.pop()
            match part:
                case Run(characters, minimum, maximum):
                    self.runs[source].append(len(self.edges))
                    self.edges.append(Edge(characters, minimum, maximum, target))
                case Call(rule):
                    self.calls[source].append((rule, target))
                case Chain(items):
                    self._chain(items, source, target)
                case Choice(items):
                    self._pending.extend((item, source, target) for item in reversed(items))
                case Maybe(body):
                    self.silent[source].append(target)
                    self._pending.append((body, source, target))
                case Many(body, minimum, None):
                    first, last = self._node(), self._node()
                    self._pending.append((body, first, last))
                    self.silent[last] += [first, target]
                    self._chain((body,) * (minimum - 1), source, first)
                case Many(body, minimum, int(maximum)):
                    places = self._chain((body,) * maximum, source, target)
                    for place in places[minimum:-1]:
                        self.silent[place].append(target)

    def _node(self) -> int:
        self.silent.append([])
        self.runs.append([])
        self.calls.append([])
        return len(self.silent) - 1

    def _chain(self, items: tuple[Expression, ...], source: int, target: int) -> list[int]:
        """Put the items one after another; return the nodes between which they stand, both ends included."""
        if not items:
            self.silent[source].append(target)
            return [source, target]
        places = [source, *(self._node() for _ in items[1:]), target]
        links = list(zip(items, places, places[1:], strict=False))
        self._pending.extend(reversed(links))
        return places
