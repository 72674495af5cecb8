"""One conversation that a side makes up as it goes, and what it notes of the other side.

`Improviser` is an engine: frames and the time in, frames out. What it says is in order: its session of the
protocol's machine lists what may come next, and one of that is taken at random. What the other side asks for is
answered at once, with the key of the request and the fields that an answer repeats, so a peer that keeps to the
protocol finds nothing amiss. What it hears goes through the same session; what that refuses is a violation of the
other side.

Two things follow from peers that do not wait for each other. What the other side had said before it could know that we
closed is *late* and no fault. And so is an error message after its own close, and anything after its close by an error:
they answer what we said meanwhile, which to the other side comes from a stranger or begins anew.

A broken message is followed by something that gets an answer, the *probe*. The other side reads in order, so when the
probe is answered it has read the broken message too and went on. After a message out of turn, which the other side may
take in earnest, the conversation is given up, for the session does not know where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specwire.generated.errors import DecodeError, EncodeError
from specwire.runtime.rehearsal.breaking import Trial, break_something
from specwire.runtime.rehearsal.language import other_role
from specwire.runtime.rehearsal.ledger import Ledger, Waiting
from specwire.runtime.rehearsal.stage import Stage
from specwire.runtime.rehearsal.tally import HUNG_UP, NO_LIFE, WENT_ON, Finding, Unanswered, show_frames

TRIES = 8
AGAIN_SHARE = 0.25
"""Of the choices in which a request could have one more answer, the part in which it gets one."""

KEYLESS_SHARE = 0.1
"""Of the requests that were drawn without a key, the part that stays so: nobody can tell which answer is theirs."""


class Improviser:
    """Holds one conversation.

    Args:
        dialog: name of the dialog.
        number: of the conversation, from 1, for findings.
        now: the time in seconds, as everywhere here.

    Attributes:
        over: nothing more is to be said; what comes is late.
        heard_at: when something came last.
    """

    def __init__(self, stage: Stage, dialog: str, *, number: int, now: float) -> None:
        self._stage, self._role = stage, stage.role
        self._dialog = stage.language.dialog(dialog)
        self._other = other_role(self._dialog, stage.role)
        self._session = stage.language.session(stage.role, dialog)
        self._ledger = Ledger(self._dialog)
        self._number = number
        self._next_at = now
        self._last_said: tuple[str, float] = ("", now)
        self._trial: Trial | None = None
        self._is_to_break = False
        self._finish_at: float | None = None
        self._closed_by: str | None = None
        self._closed_in_error = False
        self.over = False
        self.heard_at = now
        stage.tally.conversations += 1

    # ---- what the other side does

    def hear(self, frames: Sequence[bytes], now: float) -> None:
        """Take a message."""
        self.heard_at = now
        tally = self._stage.tally
        try:
            message = self._stage.language.decode(frames)
        except DecodeError as error:
            self._hear_unreadable(str(error), frames)
            return
        name = type(message).__name__
        tally.received[name] += 1
        if self._is_late(name):
            tally.late += 1
            return
        phase = self._session.state
        violation = self._session.observe(self._other, message)
        if violation is None:
            tally.answered += self._ledger.note(self._other, message, phase, now)
        elif self._trial is None or not self._trial.gives_up:
            self._find("violation", name, str(violation), frames)
            return
        self._judge(name)
        if self._session.closed and not self.over:
            self._closed_in_error = name in self._errors()
            self._end(self._other)

    def _hear_unreadable(self, fault: str, frames: Sequence[bytes]) -> None:
        """Who could not read us does not know what we read, and may answer in the sibling's writing."""
        language = self._stage.language
        name = language.name_in_sibling(frames)
        if name not in self._errors() or self._trial is None:
            hint = "" if name is None else f"; as {language.habits.sibling} it is {name}"
            self._find("unreadable", "", f"{fault}{hint}", frames)
            return
        self._conclude(self._trial, name)
        self._give_up()

    def lost(self, reason: str) -> None:
        """The connection is gone."""
        if self.over:
            return
        if self._trial is not None:
            self._conclude(self._trial, HUNG_UP)
        else:
            self._stage.tally.losses[reason] += 1
        self._stage.tally.ends.lost += 1
        self._end(None)

    # ---- what we do

    def act(self, now: float) -> list[list[bytes]]:
        """Return the frames of what is to be said now, a message each."""
        said: list[list[bytes]] = []
        while not self.over and (frames := self._next(now)) is not None:
            said.append(frames)
        return said

    def wakes_at(self) -> float:
        """Return when `act` is to be called next, where nothing comes before."""
        if self._trial is not None:
            return self._trial.until
        return self._next_at if self._finish_at is None else self._finish_at

    def finish(self, now: float) -> None:
        """Say nothing more of our own accord: wait for what is awaited, then close."""
        if self._finish_at is None:
            self._finish_at = now + self._stage.manner.patience_s

    def _next(self, now: float) -> list[bytes] | None:
        """Return the frames of one message; None where there is nothing to say for now."""
        owed = next(iter(self._ledger.awaited(self._other)), None)
        if owed is not None and (self._trial is None or not self._trial.gives_up):
            return self._reply(owed, now)
        if self._trial is not None:
            return self._wait_for_effect(self._trial, now)
        if self._finish_at is not None:
            return self._wrap_up(self._finish_at, now)
        if now < self._next_at:
            return None
        manner, dice = self._stage.manner, self._stage.dice
        self._next_at = now + min(dice.expovariate(manner.rate), manner.patience_s)
        if self._is_stuck(now - manner.patience_s):
            self._note_stuck(now)
            self._give_up()
            return None
        self._give_up_waiting(now - manner.patience_s, now)
        awaited = self._ledger.awaited(self._role)
        if len(awaited) >= manner.window:
            return None
        self._is_to_break = self._is_to_break or dice.random() < manner.fault_share
        if self._is_to_break:
            # Where something is under way an answer to that could be taken for one to the fault, and the other side may
            # be a step further than we know.
            if awaited or not self._session.may_send():
                return None
            self._is_to_break = False
            if (frames := self._break(now)) is not None:
                return frames
        names = self._choices()
        if not names or not self._stage.budget.take(now):
            return None
        name = dice.choice(names)
        answerable = self._ledger.answerable(f"{self._role}:{name}")
        return self._say(name, dice.choice(answerable) if answerable else None, now)

    def _choices(self) -> list[str]:
        """Return what may be said of our own accord; what closes, and what answers again, only now and then."""
        phase, dice = self._dialog.phases[self._session.state], self._stage.dice
        closing = self._closing()
        opening: list[str] = []
        for name in self._session.may_send():
            label = f"{self._role}:{name}"
            of_our_own = (label in phase.moves or label in phase.starts) and name not in closing
            if of_our_own or (self._ledger.answerable(label) and dice.random() < AGAIN_SHARE):
                opening.append(name)
        if closing and (not opening or dice.random() < self._stage.manner.closing_share):
            return [] if self._ledger.awaited(self._role) else closing
        return opening

    def _closing(self) -> list[str]:
        """Return the messages of ours that close the conversation from here."""
        phases = self._dialog.phases
        moves = phases[self._session.state].moves
        labels = (label for label, then in moves.items() if phases[then].closed)
        parts = (label.partition(":") for label in labels)
        return [name for sender, _, name in parts if sender == self._role]

    def _reply(self, owed: Waiting, now: float) -> list[bytes] | None:
        labels = self._ledger.replies_to(owed)
        names = [
            name for sender, _, name in (label.partition(":") for label in labels) if sender == self._role
        ]
        frames = self._say(self._stage.dice.choice(names), owed, now) if names else None
        if frames is None:
            self._ledger.forget(owed)
        return frames

    def _say(self, name: str, request: Waiting | None, now: float) -> list[bytes] | None:
        """Make up a message of the class `name`, an answer to `request` where there is one."""
        for _ in range(TRIES):
            message = self._fit(self._stage.deck.deal(name), request)
            try:
                frames: list[bytes] = message.encode()
            except EncodeError:
                continue  # what it repeats of its request has made it too large
            phase = self._session.state
            if self._session.send(message) is not None:
                continue  # the key that was drawn is that of nothing
            self._ledger.note(self._role, message, phase, now)
            self._stage.tally.sent[name] += 1
            self._last_said = (name, now)
            if self._session.closed:
                self._end(self._role)
            return frames
        return None

    def _fit(self, message: Any, request: Waiting | None) -> Any:
        """Return an answer with what it repeats of its request."""
        if request is None:
            return self._keyed(message)
        fields = dict(zip(self._dialog.key, request.key, strict=True))
        for name in self._stage.language.habits.repeated:
            if name in request.message.__match_args__:
                fields[name] = getattr(request.message, name)
        own = message.__match_args__
        return message.replace(**{name: value for name, value in fields.items() if name in own})

    def _keyed(self, message: Any) -> Any:
        """Return a message that was drawn without a key, mostly with one."""
        dice, own = self._stage.dice, message.__match_args__
        empty = [name for name in self._dialog.key if name in own and not getattr(message, name)]
        if not empty or dice.random() < KEYLESS_SHARE:
            return message
        number = dice.randrange(1, 1 << 31)
        return message.replace(
            **{name: f"{number:08x}" if getattr(message, name) == "" else number for name in empty}
        )

    # ---- what is broken, and what comes of it

    def _break(self, now: float) -> list[bytes] | None:
        if self._stage.budget.spent(now):
            return None
        trial = break_something(self._stage, self._dialog, self._session, now)
        if trial is None:
            return None
        self._stage.budget.take(now)
        self._stage.tally.broken += 1
        self._trial = trial
        return trial.frames

    def _wait_for_effect(self, trial: Trial, now: float) -> list[bytes] | None:
        if now < trial.until:
            return None if trial.probed else self._probe(trial, now)
        self._conclude(trial, NO_LIFE if trial.probed else WENT_ON)
        if trial.probed or trial.gives_up:
            self._give_up()
        return None

    def _probe(self, trial: Trial, now: float) -> list[bytes] | None:
        """Say something that gets an answer, if there is such in this phase."""
        phase = self._dialog.phases[self._session.state]
        closing = self._closing()
        labels = [f"{self._role}:{name}" for name in self._session.may_send() if name not in closing]
        asking = [label for label in labels if phase.starts.get(label, ("", None))[1] is not None]
        choices = asking or [label for label in labels if label in phase.moves]
        if not choices:
            return None
        frames = self._say(self._stage.dice.choice(choices).partition(":")[2], None, now)
        if asking:
            awaited = self._ledger.awaited(self._role)
            trial.probe = awaited[-1] if awaited and awaited[-1].at == now else None
            trial.probed = trial.probe is not None
        else:
            trial.probed = not self._session.may_send()
        return frames

    def _judge(self, name: str) -> None:
        """See whether what was heard says what became of a broken message."""
        trial = self._trial
        if trial is None:
            return
        refusal = name in self._stage.language.habits.refusals and trial.probed
        if not refusal and (name in self._errors() or (name in trial.expected and trial.gives_up)):
            self._conclude(trial, name)
        elif refusal or (trial.probed and (trial.probe is None or trial.probe.answered)):
            self._conclude(trial, WENT_ON)
        else:
            return
        if trial.gives_up:
            self._give_up()

    def _conclude(self, trial: Trial, answer: str) -> None:
        self._trial = None
        self._stage.tally.note_reaction(trial.conclude(self._number, answer))

    # ---- the end

    def _wrap_up(self, finish_at: float, now: float) -> list[bytes] | None:
        stuck = self._is_stuck(now)
        if now < finish_at and (stuck or self._ledger.awaited(self._role)):
            return None
        self._give_up_waiting(now, now)
        if stuck:
            self._note_stuck(now)
        polite = [name for name in self._closing() if f"{self._role}:{name}" not in self._dialog.errors]
        frames = self._say(self._stage.dice.choice(polite), None, now) if polite else None
        if not self.over:
            self._stage.tally.ends.unfinished += 1
            self._end(None)
        return frames

    def _is_stuck(self, since: float) -> bool:
        """Whether it is the other side's turn by the dialog, since then or longer."""
        name, at = self._last_said
        return bool(name) and at <= since and not self._session.may_send()

    def _note_stuck(self, now: float) -> None:
        name, at = self._last_said
        self._stage.tally.note_unanswered(Unanswered(self._number, name, {}, round(now - at, 3)))

    def _give_up_waiting(self, since: float, now: float) -> None:
        """Note what was asked at `since` or before and has no answer."""
        for waiting in self._ledger.awaited(self._role):
            if waiting.at <= since:
                self._ledger.forget(waiting)
                key = {
                    name: value if isinstance(value, int | str) else repr(value)
                    for name, value in zip(self._dialog.key, waiting.key, strict=True)
                }
                name = type(waiting.message).__name__
                waited_s = round(now - waiting.at, 3)
                self._stage.tally.note_unanswered(Unanswered(self._number, name, key, waited_s))

    def _give_up(self) -> None:
        self._stage.tally.ends.given_up += 1
        self._end(None)

    def _end(self, closed_by: str | None) -> None:
        """Nothing more is to come of this; a side has closed it, or None has."""
        self.over, self._closed_by = True, closed_by
        ends = self._stage.tally.ends
        ends.by_us += closed_by == self._role
        ends.by_them += closed_by == self._other

    def _errors(self) -> set[str]:
        """The messages by which the other side says that we did something wrong."""
        parts = (label.partition(":") for label in self._dialog.errors)
        names = {name for sender, _, name in parts if sender == self._other}
        unexpected = self._stage.language.answer_out_of_turn(self._other)
        return names if unexpected is None else names | {unexpected}

    def _is_late(self, name: str) -> bool:
        if not self.over:
            return False
        return self._closed_by != self._other or self._closed_in_error or name in self._errors()

    def _find(self, kind: str, name: str, said: str, frames: Sequence[bytes]) -> None:
        self._stage.tally.note_finding(Finding(self._number, kind, name, said, show_frames(frames)))
