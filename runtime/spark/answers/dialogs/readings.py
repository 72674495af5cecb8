"""The two readings of a dialog: steps from one configuration of a conversation to the next.

A configuration is the state of a conversation in one reading. A step yields the configurations that
a message may lead to: none if the message is not allowed, several only for a conversation whose
beginning was not seen.

If replies are paired by key, the keys are not in the configuration, because there may be many. The
tokens in `specwire.runtime.spark.answers.dialogs.state` have them, and refuse a reply without a
request.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from specwire.generated.dialog import Dialog, Phase
from specwire.runtime.spark.answers.dialogs.symbols import Label, Pairing

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


class Reading(ABC):
    """Steps of one reading.

    Attributes:
        name: as in the answer.
        places: places of tokens, each with the number of its dialog. A `TokenChange` has indices of
            it.
    """

    name: str
    places: tuple[tuple[int, str], ...] = ()

    def __init__(self, dialogs: Sequence[Dialog]) -> None:
        self._dialogs = dialogs

    def begin(self) -> list[Configuration]:
        """Return the configurations of a beginning."""
        return [
            Configuration(number, next(iter(self.states(dialog))))
            for number, dialog in enumerate(self._dialogs)
        ]

    def anywhere(self) -> list[Configuration]:
        """Return the configurations of a conversation whose beginning was not seen."""
        return [
            Configuration(number, state, middle=True)
            for number, dialog in enumerate(self._dialogs)
            for state in self.states(dialog)
        ]

    @abstractmethod
    def states(self, dialog: Dialog) -> Iterable[str]:
        """Return the states of a dialog; the first is the initial one."""

    @abstractmethod
    def follow(self, at: Configuration, label: Label) -> Iterator[Configuration]:
        """Yield the configurations after a message; none if it is not allowed."""

    @abstractmethod
    def is_closed(self, at: Configuration) -> bool:
        """Return whether no message may follow."""

    @abstractmethod
    def expected(self, at: Configuration, waiting: Sequence[int]) -> Iterator[str]:
        """Yield the allowed labels, given the places in which keys wait."""

    def change(self, at: Configuration, label: Label) -> TokenChange | None:
        """Return how an allowed message changes the tokens with its key; None if it does not."""
        return None

    def blame(self, at: Configuration, label: Label) -> Configuration:
        """Return the configuration after a violation."""
        return at


class StrictReading(Reading):
    """The rule as written."""

    name = "strict"

    def states(self, dialog: Dialog) -> Iterable[str]:
        """See `Reading`."""
        return dialog.strict

    def follow(self, at: Configuration, label: Label) -> Iterator[Configuration]:
        """See `Reading`."""
        state = self._dialogs[at.dialog].strict[at.state].get(str(label))
        if state is not None:
            yield at._replace(state=state, fresh=False)

    def is_closed(self, at: Configuration) -> bool:
        """See `Reading`."""
        return not self._dialogs[at.dialog].strict[at.state]

    def expected(self, at: Configuration, waiting: Sequence[int]) -> Iterator[str]:
        """See `Reading`."""
        yield from self._dialogs[at.dialog].strict[at.state]


class ConcurrentReading(Reading):
    """The dialog of peers that do not wait for each other."""

    name = "concurrent"

    def __init__(self, dialogs: Sequence[Dialog]) -> None:
        super().__init__(dialogs)
        self.places = tuple(
            dict.fromkeys(
                (number, place) for number, dialog in enumerate(dialogs) for place in _places(dialog)
            )
        )
        self._numbers = {place: number for number, place in enumerate(self.places)}

    def states(self, dialog: Dialog) -> Iterable[str]:
        """See `Reading`."""
        return dialog.phases

    def follow(self, at: Configuration, label: Label) -> Iterator[Configuration]:
        """See `Reading`."""
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
            yield _put(moved, place) if puts and place is not None else moved
        elif name in dialog.errors and at.blamed not in (None, label.sender):
            closed = next(name for name, phase in dialog.phases.items() if phase.closed)
            yield accepted._replace(state=closed, blamed=None)

    def change(self, at: Configuration, label: Label) -> TokenChange | None:
        """See `Reading`."""
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
        """See `Reading`."""
        return at._replace(blamed=label.sender or NOBODY) if self._dialogs[at.dialog].errors else at

    def is_closed(self, at: Configuration) -> bool:
        """See `Reading`."""
        return self._dialogs[at.dialog].phases[at.state].closed

    def expected(self, at: Configuration, waiting: Sequence[int]) -> Iterator[str]:
        """See `Reading`."""
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
                taken = _take(accepted, place)
                return taken if then is None else _put(taken, then)
        return None


def _places(dialog: Dialog) -> Iterator[str]:
    for phase in dialog.phases.values():
        yield from (place for _, place in phase.starts.values() if place is not None)
    for takes in dialog.replies.values():
        for place, then in takes:
            yield from (place,) if then is None else (place, then)


def _put(at: Configuration, place: str) -> Configuration:
    tokens = dict(at.tokens)
    tokens[place] = tokens.get(place, 0) + 1
    return at._replace(tokens=tuple(sorted(tokens.items())))


def _take(at: Configuration, place: str) -> Configuration:
    tokens = dict(at.tokens)
    tokens[place] -= 1
    return at._replace(tokens=tuple((place, count) for place, count in sorted(tokens.items()) if count))
