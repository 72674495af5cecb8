"""Matching of a text against rules that contain themselves.

Each such rule has a separate automaton, which calls recursive rules by name. The algorithm is that
of Earley ("An Efficient Context-Free Parsing Algorithm", 1970), with automata instead of dotted
rules. For each position of the text it keeps all states (rule, node, start of the rule) that the
text so far allows. A call starts its rule at the position, and the waiting states continue wherever
the rule ends. Left recursion and ambiguity need no special case, and there is neither backtracking
nor recursion in Python.

Most grammars take time proportional to the text, nested ones a little more, and the worst ones its cube:
`TooManyReadings` ends those. As in `specwire.generator.abnf.text_automaton`, every state can still reach the end,
because the expressions hold only rules that end: where the walk stops, no continuation can make a match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from specwire.generator.abnf.text_automaton import Automaton, Edge, Match

MAX_STEPS = 3_000_000
"""States and runs that are looked at for one text: some seconds."""

State = tuple[str, int, int]
"""A rule, a node of its automaton, and the position where the rule was begun."""
RunState = tuple[str, int, int]
"""A rule, the number of a run in its automaton, and the position where the rule was begun."""


class TooManyReadings(Exception):
    """Raised if matching takes more than `MAX_STEPS`."""


def match_recursive(automata: Mapping[str, Automaton], root: str, text: str) -> Match:
    """Match the whole of `text` against the rule called `root`.

    Raises:
        TooManyReadings: after `MAX_STEPS`.
    """
    walk = _Walk(automata, root)
    offset = next((n for n, character in enumerate(text) if not walk.advance(character)), len(text))
    whole = offset == len(text)
    return Match(whole and walk.may_end, offset, walk.expected(), walk.may_end)


class _Walk:
    """All states after the characters taken so far."""

    def __init__(self, automata: Mapping[str, Automaton], root: str) -> None:
        self._automata = automata
        self._root = root
        self._position = 0
        self._waiting: list[dict[str, dict[State, None]]] = []
        """For each position, the states that wait for a rule that was started there."""
        self._begun: dict[RunState, list[int]] = {}
        """The runs under way, each with the positions where it was entered, oldest first."""
        self._left = MAX_STEPS
        self.may_end = False
        self._enter([(root, 0, 0)])

    def advance(self, character: str) -> bool:
        """Take a character; return False, without a change, if no state allows it."""
        code = ord(character)
        taking = [state for state in self._open() if self._edge(state).characters.holds(code)]
        if not taking:
            return False
        self._spend(len(self._begun))
        self._position += 1
        self._begun = {state: self._begun[state] for state in taking}
        self._enter(list(self._ending(taking)))
        return True

    def expected(self) -> tuple[str, ...]:
        """Return what may come next, as the grammar writes it."""
        names = (self._edge(state).characters.names for state in self._open())
        return tuple(dict.fromkeys(name for some in names for name in some))

    def _edge(self, state: RunState) -> Edge:
        return self._automata[state[0]].edges[state[1]]

    def _open(self) -> Iterator[RunState]:
        """Yield the runs that can take one more character."""
        for state, begins in self._begun.items():
            maximum = self._edge(state).maximum
            if maximum is None or self._position - begins[-1] < maximum:
                yield state

    def _ending(self, taking: Iterable[RunState]) -> Iterator[State]:
        """Yield the states behind the runs that have taken enough characters."""
        for state in taking:
            rule, _, origin = state
            edge, begins = self._edge(state), self._begun[state]
            while edge.maximum is not None and self._position - begins[0] > edge.maximum:
                begins.pop(0)
            if self._position - begins[0] >= edge.minimum:
                yield rule, edge.target, origin

    def _enter(self, states: list[State]) -> None:
        """Stand on `states` and on all that follows without a character."""
        here = self._position
        waiting: dict[str, dict[State, None]] = {}
        self._waiting.append(waiting)
        empty: set[str] = set()
        """Rules that were begun here and that end here."""
        found = dict.fromkeys(states)
        pending = list(found)
        while pending:
            state = pending.pop()
            rule, node, origin = state
            automaton = self._automata[rule]
            for number in automaton.runs[node]:
                self._begin((rule, number, origin), automaton.edges[number].maximum is None)
            following: list[State] = [(rule, target, origin) for target in automaton.silent[node]]
            for called, target in automaton.calls[node]:
                waiting.setdefault(called, {})[rule, target, origin] = None
                following.append((called, 0, here))
                if called in empty:
                    following.append((rule, target, origin))
            if node == automaton.final:
                if origin == here:
                    empty.add(rule)
                following.extend(self._waiting[origin].get(rule, ()))
            self._spend(1 + len(following))
            fresh = [state for state in following if state not in found]
            found.update(dict.fromkeys(fresh))
            pending.extend(fresh)
        self.may_end = (self._root, self._automata[self._root].final, 0) in found

    def _begin(self, state: RunState, is_open: bool) -> None:
        begins = self._begun.setdefault(state, [])
        # Without a bound, who began first may do all that the others may.
        if not begins or (not is_open and begins[-1] != self._position):
            begins.append(self._position)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooManyReadings
