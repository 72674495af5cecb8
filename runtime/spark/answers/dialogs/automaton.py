"""State machines of a protocol's dialogs, for conversations of a capture.

A dialog has two readings: *strict* is the rule as written, one message after another; *concurrent*
is the dialog of peers that do not wait for each other. In a reading, a message leads from one
configuration to others: none if the message is not allowed, several only for a conversation whose
beginning was not seen. If replies are paired by key, the keys are not in the configuration, because
there may be many: a `TokenChange` says which change.

An `Automaton` computes the steps of a reading when traffic first needs them, and keeps them. A
`Node` is a set of configurations that a conversation may be in. It is a dictionary from symbols to
transitions that is filled on demand, so each message costs one look-up.

A message that no configuration allows is judged in this order:

1. No message of the conversation has been accepted yet, and some state of a dialog allows it: the
   beginning was not seen. After that, a message is a violation only if no possible past allows it.
2. The dialog has ended, and begins with this message: the identity is reused (a worker was
   restarted), and the dialog restarts.
3. It is a violation. The conversation stays where it was, as with ``machine.Session``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import msgspec

from specwire.generated.dialog import Dialog, Phase
from specwire.runtime.spark.answers.dialogs.symbols import Alphabet, Label, Pairing

NOBODY = "?"
"""Placeholder for a sender that is not a role."""

Take = tuple[int, int | None]
"""A place to take a token from, and the place it goes to."""


class Configuration(NamedTuple):
    """Position of a conversation.

    Attributes:
        dialog: which of the protocol's dialogs.
        state: name of the state, or of the phase.
        middle: the beginning was not seen, so any request may have come before.
        fresh: no message has been accepted yet.
        tokens: number of waiting requests by place, if they are not paired by key.
        blamed: the side that broke the dialog last; the other side may answer with an error.
    """

    dialog: int
    state: str
    middle: bool = False
    fresh: bool = True
    tokens: tuple[tuple[str, int], ...] = ()
    blamed: str | None = None


class TokenChange(NamedTuple):
    """Change of the tokens with a message's key: put one, or take one from the first place."""

    put: int | None = None
    takes: tuple[Take, ...] = ()


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


SavedTokens = tuple[tuple[int, int, int], ...]
"""Place, key and count of tokens; within a place, the longest inactive key comes first."""


class Tokens:
    """The waiting requests of one conversation, by place and key.

    A place keeps at most `open_limit` keys and removes the one that has been inactive longest, like
    ``machine.Session``, so memory is bounded.

    Attributes:
        waiting: number of requests.
    """

    __slots__ = ("_open_limit", "_places", "waiting")

    def __init__(self, saved: SavedTokens, open_limit: int) -> None:
        self._open_limit = open_limit
        self._places: dict[int, OrderedDict[int, int]] = {}
        self.waiting = 0
        for place, key, count in saved:
            self._places.setdefault(place, OrderedDict())[key] = count
            self.waiting += count

    def apply(self, change: TokenChange, key: int) -> bool:
        """Put a token, or take one; return False if there is none to take."""
        if change.put is not None:
            self._put(change.put, key)
            return True
        for place, then in change.takes:
            keys = self._places.get(place)
            if keys is None or key not in keys:
                continue
            if then == place:
                keys.move_to_end(key)
                return True
            keys[key] -= 1
            if not keys[key]:
                del keys[key]
            self.waiting -= 1
            if then is not None:
                self._put(then, key)
            return True
        return False

    def clear(self) -> None:
        """Remove all tokens."""
        self._places.clear()
        self.waiting = 0

    def occupied(self) -> list[int]:
        """Return the places that have tokens."""
        return sorted(place for place, keys in self._places.items() if keys)

    def saved(self) -> SavedTokens:
        """Return the tokens as values."""
        return tuple(
            (place, key, count) for place, keys in self._places.items() for key, count in keys.items()
        )

    def _put(self, place: int, key: int) -> None:
        keys = self._places.setdefault(place, OrderedDict())
        keys[key] = keys.get(key, 0) + 1
        keys.move_to_end(key)
        self.waiting += 1
        if len(keys) > self._open_limit:
            self.waiting -= keys.popitem(last=False)[1]


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
    def dialogs(self) -> list[Dialog]:
        """The possible dialogs."""
        numbers = dict.fromkeys(at.dialog for at in self.configurations)
        return [self.automaton.alphabet.dialogs[number] for number in numbers]

    @cached_property
    def dialog(self) -> str | None:
        """Name of the dialog, None while several are possible."""
        return self.dialogs[0].name if len(self.dialogs) == 1 else None

    @cached_property
    def state(self) -> str:
        """The possible states."""
        return "|".join(dict.fromkeys(at.state for at in self.configurations))

    @cached_property
    def ended(self) -> bool:
        """Whether no message may follow."""
        return all(map(self.automaton.is_closed, self.configurations))

    @cached_property
    def waiting(self) -> int:
        """Number of requests without a key; 0 while several configurations are possible."""
        several = len(self.configurations) > 1
        return 0 if several else sum(count for _, count in self.configurations[0].tokens)


class Automaton:
    """Steps of one reading, and the nodes met so far.

    Attributes:
        name: name of the reading.
        places: places of tokens, each with the number of its dialog. A `TokenChange` has indices of
            it.
        start: the node where a conversation begins.
    """

    def __init__(self, name: str, alphabet: Alphabet, dialogs: Sequence[Dialog]) -> None:
        self.name = name
        self.alphabet = alphabet
        self._dialogs = dialogs
        places = ((number, place) for number, dialog in enumerate(dialogs) for place in _places(dialog))
        self.places = tuple(dict.fromkeys(places))
        self._numbers = {place: number for number, place in enumerate(self.places)}
        self._begin = [
            Configuration(number, next(iter(dialog.phases))) for number, dialog in enumerate(dialogs)
        ]
        self._nodes: dict[tuple[Configuration, ...], Node] = {}
        self.start = self.node(self._begin)

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
        self.start = self.node(self._begin)

    def transition(self, node: Node, symbol: int) -> Transition:
        """Return the transition of a symbol at a node."""
        label = self.alphabet.labels[symbol]
        verdict, origins, found = self._judge(node, label)
        if found:
            changes = (self._change(at, label) for at in origins if any(self._follow(at, label)))
            change = next(filter(None, changes), None)
            return Transition(self.node(found), verdict, change)
        return Transition(self.node(self._blame(at, label) for at in node.configurations), verdict, None)

    def expected(self, node: Node, waiting: Sequence[int]) -> list[str]:
        """Return the labels that are allowed at a node, given the places in which keys wait."""
        return list(dict.fromkeys(name for at in node.configurations for name in self._expected(at, waiting)))

    def is_closed(self, at: Configuration) -> bool:
        """Return whether no message may follow."""
        return self._dialogs[at.dialog].phases[at.state].closed

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
            anywhere = [
                Configuration(number, state, middle=True)
                for number, dialog in enumerate(self._dialogs)
                for state in dialog.phases
            ]
            tries.append((Verdict.MIDDLE, anywhere))
        ended = {at.dialog for at in node.configurations if self.is_closed(at)}
        tries.append((Verdict.RESTART, [at for at in self._begin if at.dialog in ended]))
        for verdict, origins in tries:
            found = [then for at in origins for then in self._follow(at, label)]
            if found:
                return verdict, origins, found
        return Verdict.UNEXPECTED, (), []

    def _follow(self, at: Configuration, label: Label) -> Iterator[Configuration]:
        """Yield the configurations after a message; none if it is not allowed."""
        dialog, name = self._dialogs[at.dialog], str(label)
        phase, accepted = dialog.phases[at.state], at._replace(fresh=False)
        if not phase.closed and (then := self._reply(at, label)) is not None:
            yield then
            if not at.middle:  # else it is unknown whether a request waits for this
                return
        if name in phase.moves:
            yield accepted._replace(state=phase.moves[name])
        elif name in phase.starts:
            state, place = phase.starts[name]
            moved = accepted._replace(state=state)
            puts = place is not None and label.pairing is Pairing.KEYED and not (dialog.key or at.middle)
            yield _add(moved, place, 1) if puts and place is not None else moved
        elif name in dialog.errors and at.blamed not in (None, label.sender):
            closed = next(name for name, phase in dialog.phases.items() if phase.closed)
            yield accepted._replace(state=closed, blamed=None)

    def _change(self, at: Configuration, label: Label) -> TokenChange | None:
        """Return how an allowed message changes the tokens with its key; None if it does not."""
        dialog, name = self._dialogs[at.dialog], str(label)
        if not dialog.key or at.middle or label.pairing is Pairing.KEYLESS:
            return None
        phase = dialog.phases[at.state]
        if name in dialog.replies:
            number = self._numbers
            takes = (
                (number[at.dialog, place], None if then is None else number[at.dialog, then])
                for place, then in dialog.replies[name]
            )
            return TokenChange(takes=tuple(takes))
        place = phase.starts[name][1] if name in phase.starts else None
        if place is None or label.pairing is Pairing.UNANSWERED:
            return None
        return TokenChange(put=self._numbers[at.dialog, place])

    def _blame(self, at: Configuration, label: Label) -> Configuration:
        """Return the configuration after a violation."""
        return at._replace(blamed=label.sender or NOBODY) if self._dialogs[at.dialog].errors else at

    def _expected(self, at: Configuration, waiting: Sequence[int]) -> Iterator[str]:
        """Yield the allowed labels, given the places in which keys wait."""
        dialog = self._dialogs[at.dialog]
        phase = dialog.phases[at.state]
        yield from phase.moves
        if not phase.closed:
            held = {place for place, _ in at.tokens} | {
                self.places[number][1] for number in waiting if self.places[number][0] == at.dialog
            }
            for label, takes in dialog.replies.items():
                if at.middle or any(place in held for place, _ in takes):
                    yield label
        yield from phase.starts

    def _reply(self, at: Configuration, label: Label) -> Configuration | None:
        """Return the configuration after a reply; None if no request waits for it."""
        dialog, accepted = self._dialogs[at.dialog], at._replace(fresh=False)
        takes = dialog.replies.get(str(label))
        if takes is None:
            return None
        if label.pairing is Pairing.KEYLESS:
            return None if str(label) in dialog.phases[at.state].moves else accepted
        if at.middle:
            return accepted
        if dialog.key:  # the tokens are checked separately; at the beginning there are none
            return None if at.fresh else accepted
        for place, then in takes:
            if any(held == place for held, _ in at.tokens):
                taken = _add(accepted, place, -1)
                return taken if then is None else _add(taken, then, 1)
        return None


def both_readings(alphabet: Alphabet) -> tuple[Automaton, Automaton]:
    """Return the automata of the strict and the concurrent reading of a protocol's dialogs.

    The strict reading is a dialog in which each state is a phase, and no reply waits for a request.
    """
    strict = [
        msgspec.structs.replace(
            dialog,
            phases={state: Phase(moves, {}) for state, moves in dialog.strict.items()},
            replies={},
            errors=(),
            key=(),
        )
        for dialog in alphabet.dialogs
    ]
    return Automaton("strict", alphabet, strict), Automaton("concurrent", alphabet, alphabet.dialogs)


def _places(dialog: Dialog) -> Iterator[str]:
    for phase in dialog.phases.values():
        yield from (place for _, place in phase.starts.values() if place is not None)
    for takes in dialog.replies.values():
        for place, then in takes:
            yield from (place,) if then is None else (place, then)


def _add(at: Configuration, place: str, number: int) -> Configuration:
    tokens = dict(at.tokens)
    tokens[place] = tokens.get(place, 0) + number
    return at._replace(tokens=tuple((place, count) for place, count in sorted(tokens.items()) if count))
