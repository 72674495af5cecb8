"""State machines of a protocol's dialogs, for conversations of a capture.

A dialog has two readings (`Reading`): *strict* is the rule as written, one message after another;
*concurrent* is the dialog of peers that do not wait for each other. A reading yields the
configurations that a message may lead to: none if the message is not allowed, several only for a
conversation whose beginning was not seen. If replies are paired by key, the keys are not in the
configuration, because there may be many: a `TokenChange` names what changes.

An `Automaton` memoises the transitions of a reading as traffic asks for them. A `Node` is a set of
configurations that a conversation may be in. It is a dictionary from symbols to transitions that is
filled on demand, so each message costs one look-up.

A message that no configuration allows is judged in this order:

1. No message of the conversation has been accepted yet, and some state of a dialog allows it: the
   beginning was not seen. After that, a message is a violation only if no possible past allows it.
2. The dialog has ended, and begins with this message: the identity is reused (a worker was
   restarted), and the dialog restarts.
3. It is a violation. The conversation stays where it was, as with ``machine.Session``.
"""

from __future__ import annotations

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


class Reading:
    """Steps of one reading.

    Attributes:
        name: as in the answer.
        places: places of tokens, each with the number of its dialog. A `TokenChange` has indices of
            it.
    """

    def __init__(self, name: str, dialogs: Sequence[Dialog]) -> None:
        self.name = name
        self._dialogs = dialogs
        self.places = tuple(
            dict.fromkeys(
                (number, place) for number, dialog in enumerate(dialogs) for place in _places(dialog)
            )
        )
        self._numbers = {place: number for number, place in enumerate(self.places)}

    def begin(self) -> list[Configuration]:
        """Return the configurations of a beginning."""
        return [
            Configuration(number, next(iter(dialog.phases))) for number, dialog in enumerate(self._dialogs)
        ]

    def anywhere(self) -> list[Configuration]:
        """Return the configurations of a conversation whose beginning was not seen."""
        return [
            Configuration(number, state, middle=True)
            for number, dialog in enumerate(self._dialogs)
            for state in dialog.phases
        ]

    def follow(self, at: Configuration, label: Label) -> Iterator[Configuration]:
        """Yield the configurations after a message; none if it is not allowed."""
        dialog, name = self._dialogs[at.dialog], str(label)
        phase, accepted = dialog.phases[at.state], at._replace(fresh=False)
        if not phase.closed and (then := self._reply(accepted, dialog, phase, label, at.fresh)) is not None:
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

    def change(self, at: Configuration, label: Label) -> TokenChange | None:
        """Return how an allowed message changes the tokens with its key; None if it does not."""
        dialog, name = self._dialogs[at.dialog], str(label)
        if not dialog.key or at.middle or label.pairing is Pairing.KEYLESS:
            return None
        phase = dialog.phases[at.state]
        if name in dialog.replies:
            takes = dialog.replies[name]
            number = self._numbers
            return TokenChange(
                takes=tuple(
                    (number[at.dialog, place], None if then is None else number[at.dialog, then])
                    for place, then in takes
                )
            )
        place = phase.starts[name][1] if name in phase.starts else None
        if place is None or label.pairing is Pairing.UNANSWERED:
            return None
        return TokenChange(put=self._numbers[at.dialog, place])

    def blame(self, at: Configuration, label: Label) -> Configuration:
        """Return the configuration after a violation."""
        return at._replace(blamed=label.sender or NOBODY) if self._dialogs[at.dialog].errors else at

    def is_closed(self, at: Configuration) -> bool:
        """Return whether no message may follow."""
        return self._dialogs[at.dialog].phases[at.state].closed

    def expected(self, at: Configuration, waiting: Sequence[int]) -> Iterator[str]:
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

    def _reply(
        self, accepted: Configuration, dialog: Dialog, phase: Phase, label: Label, fresh: bool
    ) -> Configuration | None:
        takes = dialog.replies.get(str(label))
        if takes is None:
            return None
        if label.pairing is Pairing.KEYLESS:
            return None if str(label) in phase.moves else accepted
        if accepted.middle:
            return accepted
        if dialog.key:  # the tokens are checked separately; at the beginning there are none
            return None if fresh else accepted
        for place, then in takes:
            if any(held == place for held, _ in accepted.tokens):
                taken = _add(accepted, place, -1)
                return taken if then is None else _add(taken, then, 1)
        return None


def both_readings(dialogs: Sequence[Dialog]) -> tuple[Reading, Reading]:
    """Return the strict and the concurrent reading of a protocol's dialogs.

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
        for dialog in dialogs
    ]
    return Reading("strict", strict), Reading("concurrent", dialogs)


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
