"""What the other side did, as numbers and findings that can be printed.

Findings are kept up to a bound and counted beyond it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

KEPT = 100
"""Findings of each sort that are kept."""

SHOWN_OCTETS = 256
"""Octets of a frame that are shown."""

SHOWN_FRAMES = 16


class Finding(msgspec.Struct, frozen=True):
    """Something that the other side did against the machine, or could not be read.

    Attributes:
        conversation: its number, from 1.
        kind: violation or unreadable.
        message: class name; empty for what is no message.
        said: one sentence.
        frames: hexadecimal, cut where they are long.
    """

    conversation: int
    kind: str
    message: str
    said: str
    frames: list[str]


class Unanswered(msgspec.Struct, frozen=True):
    """A request of ours that got no answer while the conversation was open."""

    conversation: int
    message: str
    key: dict[str, Any]
    waited_s: float


class Reaction(msgspec.Struct, frozen=True):
    """A broken message of ours, and what came of it.

    Attributes:
        conversation: its number, from 1.
        fault: truncated, wrong command, absurd length, frames, out of turn.
        message: the class of the message that was broken.
        detail: what was wrong with it.
        expected: the answers that are as they should be: the class that the profile names; where it names none, going
            on and hanging up.
        answer: what came: the class of a message, "went on", "hung up" or "no sign of life".
        frames: what was sent, in hexadecimal.
    """

    conversation: int
    fault: str
    message: str
    detail: str
    expected: tuple[str, ...]
    answer: str
    frames: list[str]

    @property
    def as_expected(self) -> bool:
        """Whether the other side did what is expected of its role."""
        return self.answer in self.expected


WENT_ON = "went on"
HUNG_UP = "hung up"
NO_LIFE = "no sign of life"
SILENT = (WENT_ON, HUNG_UP)


class Ends(msgspec.Struct):
    """How conversations ended.

    Attributes:
        by_us, by_them: closed by a message of this side.
        lost: the connection was.
        given_up: after a message out of turn, or when the other side did not say what only it could say next.
        unfinished: still open at the end of the rehearsal.
    """

    by_us: int = 0
    by_them: int = 0
    lost: int = 0
    given_up: int = 0
    unfinished: int = 0


class Tally:
    """Counts of a whole rehearsal, of all its conversations."""

    def __init__(self) -> None:
        self.conversations = 0
        self.sent: Counter[str] = Counter()
        self.received: Counter[str] = Counter()
        self.broken = 0
        self.late = 0
        self.answered = 0
        self.violations = 0
        self.unreadable = 0
        self.unanswered = 0
        self.findings: list[Finding] = []
        self.unanswered_requests: list[Unanswered] = []
        self.reactions: list[Reaction] = []
        self.faults: Counter[tuple[str, str]] = Counter()
        self.unexpected_reactions = 0
        self.ends = Ends()
        self.losses: Counter[str] = Counter()

    @property
    def failed(self) -> bool:
        """Whether the other side broke the protocol."""
        return bool(self.violations or self.unreadable)

    def note_finding(self, finding: Finding) -> None:
        """Take a violation, or frames that are no message."""
        if finding.kind == "violation":
            self.violations += 1
        else:
            self.unreadable += 1
        if len(self.findings) < KEPT:
            self.findings.append(finding)

    def note_unanswered(self, request: Unanswered) -> None:
        """Take a request without answer."""
        self.unanswered += 1
        if len(self.unanswered_requests) < KEPT:
            self.unanswered_requests.append(request)

    def note_reaction(self, reaction: Reaction) -> None:
        """Take what became of a broken message."""
        self.faults[reaction.fault, reaction.answer] += 1
        self.unexpected_reactions += not reaction.as_expected
        if len(self.reactions) < KEPT or (not reaction.as_expected and self._room_by_expected()):
            self.reactions.append(reaction)

    def _room_by_expected(self) -> bool:
        """Make room for a reaction that nobody expected, in place of one that everybody did."""
        for index, reaction in enumerate(self.reactions):
            if reaction.as_expected:
                del self.reactions[index]
                return True
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "conversations": self.conversations,
            "ended": msgspec.to_builtins(self.ends),
            "lost_because": dict(self.losses),
            "sent": dict(self.sent),
            "received": dict(self.received),
            "broken": self.broken,
            "late": self.late,
            "answered": self.answered,
            "violations": self.violations,
            "unreadable": self.unreadable,
            "unanswered": self.unanswered,
            "findings": msgspec.to_builtins(self.findings),
            "unanswered_requests": msgspec.to_builtins(self.unanswered_requests),
            "faults": [
                {"fault": fault, "answer": answer, "count": count}
                for (fault, answer), count in sorted(self.faults.items())
            ],
            "unexpected_reactions": self.unexpected_reactions,
            "reactions": [
                {**msgspec.to_builtins(reaction), "as_expected": reaction.as_expected}
                for reaction in self.reactions
            ],
        }


def show_frames(frames: Sequence[bytes]) -> list[str]:
    """Return frames in hexadecimal, long ones and long lists cut with a word about it."""
    shown = [
        bytes(frame[:SHOWN_OCTETS]).hex()
        + (f" and {len(frame) - SHOWN_OCTETS} octets more" if len(frame) > SHOWN_OCTETS else "")
        for frame in frames[:SHOWN_FRAMES]
    ]
    more = len(frames) - SHOWN_FRAMES
    return [*shown, f"and {more} frames more"] if more > 0 else shown
