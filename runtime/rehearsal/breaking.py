"""Which broken message a side says next, and what is known of its effect.

Either frames that are no message (`faults`), or a whole message that comes where it may not.
"""

from __future__ import annotations

import msgspec

from specwire.generated.dialog import Dialog
from specwire.generated.session import DialogSession
from specwire.runtime.rehearsal.faults import BREAKERS, Broken, break_message
from specwire.runtime.rehearsal.language import other_role, own_names
from specwire.runtime.rehearsal.ledger import Waiting
from specwire.runtime.rehearsal.stage import Stage
from specwire.runtime.rehearsal.tally import SILENT, Reaction, show_frames

OUT_OF_TURN = "out of turn"
OUT_OF_TURN_SHARE = 0.25
"""Of the broken messages, the part that is whole and comes where it may not."""


class Trial(msgspec.Struct):
    """A broken message, and what is waited for to see its effect.

    Attributes:
        expected: the answers that are as they should be, as `Reaction` has them.
        until: when we wait no longer, in seconds.
        probe: the request behind it; its answer says that the other side went on.
        probed: something was said that wants an answer, a request or the next step of the dialog.
    """

    fault: str
    message: str
    detail: str
    expected: tuple[str, ...]
    frames: list[bytes]
    until: float
    probe: Waiting | None = None
    probed: bool = False

    @property
    def gives_up(self) -> bool:
        """Whether the session does not know any more where the conversation stands."""
        return self.fault == OUT_OF_TURN

    def conclude(self, conversation: int, answer: str) -> Reaction:
        """Return what became of it."""
        shown = show_frames(self.frames)
        return Reaction(conversation, self.fault, self.message, self.detail, self.expected, answer, shown)


def break_something(stage: Stage, dialog: Dialog, session: DialogSession, now: float) -> Trial | None:
    """Return a broken message to send now, of which the session has taken note; None where none could be made.

    To be called when nothing is under way: only then both sides see the same state, and out of turn is what seems so.
    """
    if stage.dice.random() < OUT_OF_TURN_SHARE:
        return _out_of_turn(stage, dialog, session, now)
    found = _malformed(stage, session)
    if found is None:
        return None
    name, broken = found
    session.malformed(stage.role)
    other = other_role(dialog, stage.role)
    answer = _speakable(dialog, other, stage.language.answer(other, broken.error))
    unasked = _speakable(dialog, other, stage.language.answer_out_of_turn(other))
    # Who has no answer to what cannot be read may take it for something out of turn.
    expected = (answer,) if answer else (*SILENT, unasked) if unasked else SILENT
    until = now + stage.manner.patience_s
    return Trial(broken.kind, name, f"{broken.detail}: {broken.error}", expected, broken.frames, until)


def _malformed(stage: Stage, session: DialogSession) -> tuple[str, Broken] | None:
    """A message that may come, and its frames with a fault; each kind of fault as often as any where it is possible."""
    names, kinds = list(session.may_send()), list(BREAKERS)
    stage.dice.shuffle(names)
    stage.dice.shuffle(kinds)
    for kind in kinds:
        for name in names:
            frames = stage.deck.deal(name).encode()
            if broken := break_message(stage.language, stage.dice, frames, stage.role, kind):
                return name, broken
    return None


def _out_of_turn(stage: Stage, dialog: Dialog, session: DialogSession, now: float) -> Trial | None:
    names = sorted(own_names(dialog, stage.role) - set(session.may_send()))
    if not names:
        return None
    message = stage.deck.deal(stage.dice.choice(names))
    violation = session.send(message)
    if violation is None:
        return None
    other = other_role(dialog, stage.role)
    answer = _speakable(dialog, other, stage.language.answer_out_of_turn(other))
    name = type(message).__name__
    # An answer to what nobody asked may be a late one, which nobody is to be blamed for.
    late = f"{stage.role}:{name}" in dialog.replies
    expected = (answer, *(SILENT if late else ())) if answer else SILENT
    until = now + stage.manner.patience_s
    return Trial(OUT_OF_TURN, name, str(violation), expected, message.encode(), until)


def _speakable(dialog: Dialog, role: str, name: str | None) -> str | None:
    """A role's answer where it can give it in this dialog: a role that speaks in two has it perhaps in the other."""
    return name if name in own_names(dialog, role) else None
