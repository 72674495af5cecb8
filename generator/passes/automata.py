"""Minimal automata of regular expressions over labels.

A regular expression is a small tree over *labels*, opaque strings such as ``C:Icanhaz``. Thompson's
construction gives an automaton with silent steps, and subset construction removes them. States from
which no complete word can be reached are dropped, and Moore's refinement merges equivalent states.
States are numbered breadth-first, and the labels of a state are in the order of the expression.
Equal languages with the same order of labels therefore give equal automata, and the result never
depends on the order of a set.

The automaton is partial: a state has no transition for a label that it does not list. State 0 is
the start. The empty language has no states.

Subset construction can double the number of states with every label, so it has limits and raises `TooLarge`.
Expressions are walked recursively: the caller must limit their depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MAX_STATES = 2_000
"""States that subset construction may make."""
MAX_STEPS = 3_000_000
"""Maximum number of nodes visited to find all subsets, which limits the time."""
MAX_NODES = 100_000
"""Most nodes of the automaton with silent steps, in which an element repeated at least once occurs twice."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """One label."""

    label: str


@dataclass(frozen=True, slots=True)
class Chain:
    """The items in sequence; without items, the empty word."""

    items: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the items; without items, the empty language."""

    items: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """`minimum` or more times `body`."""

    body: Regex
    minimum: int = 0


Regex = Symbol | Chain | Choice | Many

EMPTY = Chain(())
NOTHING = Choice(())


class TooLarge(Exception):
    """The automaton of an expression exceeds `MAX_STATES`, `MAX_NODES` or its steps."""


@dataclass(slots=True)
class Steps:
    """Budget of steps that several automata share."""

    left: int = MAX_STEPS

    def take(self, steps: int) -> None:
        """Use up steps.

        Raises:
            TooLarge: fewer steps are left.
        """
        self.left -= steps
        if self.left < 0:
            raise TooLarge


@dataclass(frozen=True, slots=True)
class Automaton:
    """A deterministic automaton: for each state its transitions by label, in the order of `labels`."""

    labels: tuple[str, ...]
    transitions: tuple[Mapping[str, int], ...]
    accepting: frozenset[int]

    def accepts(self, word: Iterable[str]) -> bool:
        """Return whether `word` is in the language."""
        state: int | None = 0 if self.transitions else None
        for label in word:
            state = None if state is None else self.transitions[state].get(label)
        return state in self.accepting


def build_automaton(regex: Regex, steps: Steps | None = None) -> Automaton:
    """Return the minimal automaton of `regex`. Its construction uses up `steps`, by default `MAX_STEPS`.

    Raises:
        TooLarge: it exceeds `MAX_STATES`, `MAX_NODES` or the steps.
    """
    labels = labels_of(regex)
    transitions, accepting = _determinize(regex, labels, steps or Steps())
    transitions = _drop_dead(transitions, accepting)
    classes = _partition(transitions, accepting)
    return _number(labels, transitions, accepting, classes)


def labels_of(regex: Regex) -> tuple[str, ...]:
    """Return the labels of an expression in the order in which it first names them."""
    match regex:
        case Symbol(label):
            return (label,)
        case Many(body):
            return labels_of(body)
        case Chain(items) | Choice(items):
            return tuple(dict.fromkeys(label for item in items for label in labels_of(item)))


def alternatives_of(regex: Regex) -> tuple[Regex, ...]:
    """Return the alternatives of an expression, nested choices flattened.

    The expression if it is no choice.
    """
    if not isinstance(regex, Choice):
        return (regex,)
    return tuple(item for choice in regex.items for item in alternatives_of(choice))


def map_labels(regex: Regex, labels: Mapping[str, Regex]) -> Regex:
    """Return `regex` with each label that `labels` lists replaced by an expression."""
    match regex:
        case Symbol(label):
            return labels.get(label, regex)
        case Many(body, minimum):
            return Many(map_labels(body, labels), minimum)
        case Chain(items):
            return Chain(tuple(map_labels(item, labels) for item in items))
        case Choice(items):
            return Choice(tuple(map_labels(item, labels) for item in items))


@dataclass(slots=True)
class _Silent:
    """Thompson's automaton while it grows: per node its silent steps, and its one labelled step if any."""

    silent: list[list[int]] = field(default_factory=list)
    step: list[tuple[str, int] | None] = field(default_factory=list)

    def node(self) -> int:
        if len(self.silent) >= MAX_NODES:
            raise TooLarge
        self.silent.append([])
        self.step.append(None)
        return len(self.silent) - 1

    def add(self, regex: Regex, source: int) -> int:
        """Add the nodes of `regex` after the node `source`; return the node after it."""
        match regex:
            case Symbol(label):
                target = self.node()
                self.step[source] = (label, target)
                return target
            case Chain(items):
                return self._chain(items, source)
            case Choice(items):
                return self._choice(items, source)
            case Many(body, minimum):
                return self._many(body, self._chain((body,) * minimum, source))

    def _chain(self, items: Sequence[Regex], source: int) -> int:
        for item in items:
            link = self.node()
            self.silent[source].append(link)
            source = self.add(item, link)
        return source

    def _choice(self, items: Sequence[Regex], source: int) -> int:
        target = self.node()
        for item in items:
            entry = self.node()
            self.silent[source].append(entry)
            self.silent[self.add(item, entry)].append(target)
        return target

    def _many(self, body: Regex, source: int) -> int:
        hub, entry, target = self.node(), self.node(), self.node()
        self.silent[source].append(hub)
        self.silent[hub] += [entry, target]
        self.silent[self.add(body, entry)].append(hub)
        return target

    def closure(self, nodes: Iterable[int]) -> frozenset[int]:
        """Return `nodes` and all that silent steps reach from them."""
        found = set(nodes)
        waiting = list(found)
        while waiting:
            for node in self.silent[waiting.pop()]:
                if node not in found:
                    found.add(node)
                    waiting.append(node)
        return frozenset(found)


Table = list[dict[str, int]]


def _determinize(regex: Regex, labels: Sequence[str], left: Steps) -> tuple[Table, set[int]]:
    """Subset construction: a state is the set of nodes that the word so far may have reached."""
    nodes = _Silent()
    final = nodes.add(regex, nodes.node())
    left.take(len(nodes.silent))
    numbers = {nodes.closure([0]): 0}
    waiting = list(numbers)
    transitions: Table = []
    order = {label: index for index, label in enumerate(labels)}
    for subset in waiting:  # grows while we walk it: breadth-first
        targets: dict[str, list[int]] = {}
        for node in subset:
            if step := nodes.step[node]:
                targets.setdefault(step[0], []).append(step[1])
        row: dict[str, int] = {}
        for label in sorted(targets, key=order.__getitem__):
            target = nodes.closure(targets[label])
            left.take(len(target))
            row[label] = numbers.setdefault(target, len(numbers))
            if row[label] == len(waiting):
                waiting.append(target)
        transitions.append(row)
        if len(waiting) > MAX_STATES:
            raise TooLarge
    return transitions, {number for subset, number in numbers.items() if final in subset}


def _drop_dead(transitions: Table, accepting: set[int]) -> Table:
    """Return the transitions without those into states from which no accepting state can be reached."""
    sources: dict[int, list[int]] = {}
    for source, row in enumerate(transitions):
        for target in row.values():
            sources.setdefault(target, []).append(source)
    live = set(accepting)
    waiting = list(live)
    while waiting:
        for source in sources.get(waiting.pop(), ()):
            if source not in live:
                live.add(source)
                waiting.append(source)
    return [{label: target for label, target in row.items() if target in live} for row in transitions]


def _partition(transitions: Table, accepting: set[int]) -> list[int]:
    """Moore's refinement: return for each state the number of its class."""
    classes = [int(state in accepting) for state in range(len(transitions))]
    while True:
        seen: dict[tuple[object, ...], int] = {}
        refined: list[int] = []
        for state, row in enumerate(transitions):
            # Rows list their labels in one order, so equal rows give equal tuples.
            follow = ((label, classes[target]) for label, target in row.items())
            refined.append(seen.setdefault((classes[state], *follow), len(seen)))
        if len(seen) == len(set(classes)):
            return refined
        classes = refined


def _number(
    labels: tuple[str, ...], transitions: Table, accepting: set[int], classes: Sequence[int]
) -> Automaton:
    """Number the classes breadth-first from the start; unreachable and dead ones are omitted."""
    if not accepting:
        return Automaton(labels, (), frozenset())
    numbers = {classes[0]: 0}
    members = [0]
    rows: list[dict[str, int]] = []
    for member in members:  # grows while we walk it: breadth-first
        row: dict[str, int] = {}
        for label, target in transitions[member].items():
            number = numbers.setdefault(classes[target], len(numbers))
            if number == len(members):
                members.append(target)
            row[label] = number
        rows.append(row)
    return Automaton(labels, tuple(rows), frozenset(n for n, m in enumerate(members) if m in accepting))
