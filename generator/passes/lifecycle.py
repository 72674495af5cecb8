"""The concurrent reading of a dialog, derived from the shape of its rule.

Peers do not wait for each other as a regular expression suggests: they send the next request before
the last reply, heartbeats cross each other, and a goodbye overtakes answers. The concurrent reading
keeps the meaning of the rule without the waiting:

- Each outermost repetition without bound, such as ``*use-peering``, is a *group*. Its alternatives are
  independent exchanges. Messages before a group open the dialog; messages after it close the dialog.
  The rule with every group shrunk to one symbol is again a regular expression: its minimal automaton is
  the lifecycle, and a phase is open for use where it has a transition on a group.
- An optional exchange before a group, such as ``[ C:OPEN B:OPEN ]``, is not waited for: the request can
  only come there, its reply may come later.
- An alternative of one message (``C:NOM``) is allowed whenever its group is. Any other alternative
  is an exchange; alternatives that start with the same message are one exchange. An exchange has a
  separate automaton, whose states after the start are *places*. Each message that starts the
  exchange adds a token. A reply moves a token to the next place, or removes it if the exchange is
  complete. Replies are allowed in every phase that is not closed, so they may come late, while the
  dialog is already closing.
- A message of the error rule is not a reply. It is allowed in every phase except the start and the
  closed one, and closes the dialog. (A start that is itself open for use counts as opened.)
- A dialog that repeats is one group: nothing opens it, and only errors close it.

A rule without a group is one run through its messages. The two readings then differ only in errors.

Tokens do not record the order of their requests, so replies of different exchanges may overtake each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from specwire.generator.ir.dialogs import Concurrent, Phase, Reply, Start, Transition
from specwire.generator.passes.ambiguity import ambiguous_replies
from specwire.generator.passes.automata import (
    EMPTY,
    NOTHING,
    Automaton,
    Chain,
    Choice,
    Many,
    Regex,
    Steps,
    Symbol,
    alternatives_of,
    build_automaton,
    map_labels,
)
from specwire.generator.passes.states import CLOSED, USE, StateNames, name_states


def read_concurrently(
    regex: Regex, *, errors: Sequence[str], mirror: Mapping[str, str], steps: Steps
) -> tuple[Concurrent, tuple[str, ...]]:
    """Return the concurrent reading of a dialog rule, and the labels whose meaning is ambiguous.

    In the rule, later messages define the meaning of an ambiguous message. The concurrent reading
    does not wait for them: it reads the message as a reply if one is expected, else as opening or
    closing the dialog, else as the start of the exchange that is named first.

    Args:
        regex: the rule; inside a repetition if the dialog repeats.
        errors: the labels of the error rule.
        mirror: for each label the one with the roles swapped, if the dialog is symmetric; else empty.
        steps: budget for automata.

    Raises:
        TooLarge: an automaton exceeds its bounds or the steps.
    """
    groups: dict[str, Regex] = {}
    shrunk = _shrink_groups(map_labels(regex, dict.fromkeys(errors, NOTHING)), groups, steps)
    lifecycle = build_automaton(shrunk, steps)
    exchanges = _Exchanges(steps)
    starts = {group: exchanges.add_group(_alternatives(body, mirror)) for group, body in groups.items()}
    ambiguous: dict[str, None] = {}
    phases = _phases(lifecycle, starts, ambiguous)
    ambiguous |= dict.fromkeys(
        ambiguous_replies(phases, exchanges.replies, owners=exchanges.owners, lingering=exchanges.lingering)
    )
    phases = _close_on_errors(phases, errors)
    concurrent = Concurrent(phases, tuple(exchanges.places), tuple(exchanges.replies), tuple(errors))
    return concurrent, tuple(ambiguous)


def has_group(regex: Regex) -> bool:
    """Return whether a rule has a repeated part, so that a part of it is for use."""
    match regex:
        case Symbol():
            return False
        case Many():
            return True
        case Chain(items) | Choice(items):
            return any(has_group(item) for item in items)


# In the lifecycle a group is one label, marked so that it differs from the labels of messages.
_REPEATED = "*"
_OPTIONAL = "?"


def _shrink_groups(regex: Regex, groups: dict[str, Regex], steps: Steps, *, opening: bool = False) -> Regex:
    """Return `regex` with each group as one symbol; add the groups' bodies to `groups`, by label.

    Args:
        opening: whether a repeated group follows.
    """
    match regex:
        case Symbol():
            return regex
        case Many(body):
            return Many(_add_group(_REPEATED, body, groups))
        case Chain(items):
            follows = [any(has_group(item) for item in items[n + 1 :]) for n in range(len(items))]
            return Chain(
                tuple(
                    _shrink_groups(item, groups, steps, opening=opening or follow)
                    for item, follow in zip(items, follows, strict=True)
                )
            )
        case Choice(items):
            if opening and EMPTY in items and not has_group(regex) and _is_exchange(regex, steps):
                return Choice((_add_group(_OPTIONAL, regex, groups), EMPTY))
            return Choice(tuple(_shrink_groups(item, groups, steps, opening=opening) for item in items))


def _add_group(mark: str, body: Regex, groups: dict[str, Regex]) -> Symbol:
    label = f"{mark}{len(groups)}"
    groups[label] = body
    return Symbol(label)


def _is_exchange(regex: Regex, steps: Steps) -> bool:
    """Return whether some word of `regex` has more than one message."""
    return any(row for row in build_automaton(regex, steps).transitions[1:])


def _alternatives(body: Regex, mirror: Mapping[str, str]) -> list[Regex]:
    """Return the alternatives of a group, each also with the roles swapped if there is a mirror."""
    written = alternatives_of(body)
    swapped = tuple(
        map_labels(regex, {a: Symbol(b) for a, b in mirror.items()}) for regex in written if mirror
    )
    return list(dict.fromkeys(written + swapped))


@dataclass(slots=True)
class _Exchanges:
    """The places and replies of all groups, in the order in which they are found."""

    steps: Steps
    places: list[str] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    owners: dict[str, int] = field(default_factory=dict)
    """For each place the number of its exchange."""
    lingering: set[str] = field(default_factory=set)
    """Places whose exchange is complete but allows further replies."""
    exchanges: int = 0
    names: StateNames = field(default_factory=StateNames)

    def add_group(self, alternatives: Iterable[Regex]) -> list[tuple[str, str | None]]:
        """Add the exchanges of a group; return the labels that start one, each with its token's place."""
        starts: list[tuple[str, str | None]] = []
        for exchange in _merge_alike(alternatives, self.steps):
            names = self._name_places(exchange)
            self.owners |= dict.fromkeys(names.values(), self.exchanges)
            self.lingering |= {name for state, name in names.items() if state in exchange.accepting}
            self.exchanges += 1
            # Most advanced first: the oldest request is answered in full before the next one.
            for state in sorted(names, reverse=True):
                for label, target in exchange.transitions[state].items():
                    self.replies.append(Reply(label, names[state], names.get(target)))
            starts += [(label, names.get(target)) for label, target in exchange.transitions[0].items()]
        return starts

    def _name_places(self, exchange: Automaton) -> dict[int, str]:
        """Name the states that have successors; the start and the end are not places."""
        named: dict[int, str] = {}
        for row in exchange.transitions:
            for label, target in row.items():
                if target and target not in named and exchange.transitions[target]:
                    named[target] = self.names.after(label)
                    self.places.append(named[target])
        return named


def _merge_alike(alternatives: Iterable[Regex], steps: Steps) -> list[Automaton]:
    """Return an automaton for each set of alternatives that share a first message, in order."""
    sets: list[list[Regex]] = []
    owner: dict[str, int] = {}
    for regex in alternatives:
        first = _first(regex, steps)
        if not first:
            continue
        joined = sorted({owner[label] for label in first if label in owner})
        number = joined[0] if joined else len(sets)
        if not joined:
            sets.append([])
        for other in joined[1:]:
            sets[number] += sets[other]
            sets[other] = []
            owner |= {label: number for label, index in owner.items() if index == other}
        sets[number].append(regex)
        owner |= dict.fromkeys(first, number)
    return [build_automaton(Choice(tuple(items)), steps) for items in sets if items]


def _first(regex: Regex, steps: Steps) -> tuple[str, ...]:
    transitions = build_automaton(regex, steps).transitions
    return tuple(transitions[0]) if transitions else ()


def _phases(
    lifecycle: Automaton,
    groups: Mapping[str, Sequence[tuple[str, str | None]]],
    ambiguous: dict[str, None],
) -> tuple[Phase, ...]:
    """Return the phases; add to `ambiguous` each label with two possible transitions in one phase."""
    names = _name_phases(lifecycle, groups)
    phases: list[Phase] = []
    for state, row in enumerate(lifecycle.transitions):
        moves = {label: names[target] for label, target in row.items() if label not in groups}
        starts: dict[str, Start] = {}
        for group, target in row.items():
            for label, place in groups.get(group, ()):
                start = Start(label, names[target], place)
                if label in moves or starts.setdefault(label, start) != start:
                    ambiguous[label] = None
        transitions = tuple(Transition(label, target) for label, target in moves.items())
        used = tuple(start for start in starts.values() if start.label not in moves)
        phases.append(Phase(names[state], not row, transitions, used))
    return tuple(phases)


def _name_phases(lifecycle: Automaton, groups: Mapping[str, Sequence[tuple[str, str | None]]]) -> list[str]:
    """Name the one phase that is for use; the start is that phase only if nothing else is."""
    rows = lifecycle.transitions
    used = {target for row in rows for label, target in row.items() if label.startswith(_REPEATED)}
    if len(used) > 1:
        used.discard(0)
    opened_by = {
        label: starts[0][0] if starts and label.startswith(_OPTIONAL) else None
        for label, starts in groups.items()
    }
    return name_states(lifecycle, dict.fromkeys(used, USE) if len(used) == 1 else {}, opened_by)


def _close_on_errors(phases: tuple[Phase, ...], errors: Sequence[str]) -> tuple[Phase, ...]:
    """Let every error close every open phase; add a closed phase if only errors close the dialog."""
    if not errors or not phases:
        return phases
    closed = next((phase.name for phase in phases if phase.closed), CLOSED)
    closing = tuple(Transition(error, closed) for error in errors)
    result = [
        Phase(phase.name, False, phase.moves + closing, phase.starts)
        if not phase.closed and (number or phase.starts)
        else phase
        for number, phase in enumerate(phases)
    ]
    if not any(phase.closed for phase in phases):
        result.append(Phase(CLOSED, True, (), ()))
    return tuple(result)
