"""The generated dialog machine over FILEMQ traffic, live or from a capture: what broke the dialog, in words.

One thing needs a rule of its own: a client that speaks where the server knows of no peering. libzmq opens a
lost connection again by itself, with a new routing id, and what the client says before it learns of that has
no OHAI in front; a client forgotten for its silence may have been talking all the while. The server's
view of such a *stray* is in order when it answers with nothing but errors until there is an OHAI: RTFM, WAT where the
command is malformed, SRSLY where it is no matter what is said. On the client's side there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from specwire.generated import filemq, libfilemq
from specwire.generated.errors import DecodeError

Role = Literal["C", "S"]
Message = filemq.AnyMessage | libfilemq.AnyMessage
Cheezburger = filemq.Cheezburger | libfilemq.Cheezburger
PACKAGES = {"filemq": filemq, "libfilemq": libfilemq}
ERRORS = {"Rtfm", "Wat", "Srsly"}


class Line(NamedTuple):
    """One CHEEZBURGER without its content."""

    conversation: str
    name: str
    deletes: bool
    offset: int
    octets: int


def line_of(conversation: str, message: Cheezburger) -> Line:
    """Return what a message says of its file."""
    deletes = message.operation == filemq.Operation.DELETE
    return Line(conversation, message.filename, deletes, message.offset, len(message.chunk))


class DialogWatch:
    """A recorder that gives each message to the machine of its conversation.

    Attributes:
        violations: what broke the dialog, in words.
        own: those of the watched side itself, in conversations that the other side had not broken before.
        strays: conversations without a peering, as a server sees them: not begun with OHAI, or ended by RTFM.
        seen: messages by sender and name, as ``S:Cheezburger``.
        begun: how often a server began to send each file.
        transcript: what was said about files, in order, by conversation; None until `keep_transcript`.
    """

    def __init__(self, role: Role, protocol: str = "filemq") -> None:
        self.violations: list[str] = []
        self.own: list[str] = []
        self.strays: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()
        self.transcript: list[Line] | None = None
        self._role = role
        self._package = PACKAGES[protocol]
        self._sessions: dict[str, filemq.machine.Session | libfilemq.machine.Session] = {}
        self._broken: set[str] = set()

    def keep_transcript(self) -> list[Line]:
        """Write down from now on what is said about files, in a list that begins empty."""
        self.transcript = []
        return self.transcript

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        by: Role = "C" if sender == "C" else "S"
        try:
            message: Message = self._package.decode(frames)
        except DecodeError as error:
            self._find_fault(by, conversation, f"malformed: {error}")
            if conversation in self._sessions:
                self._sessions[conversation].malformed(by)
            return
        label = f"{sender}:{type(message).__name__}"
        self.seen[label] += 1
        if isinstance(message, Cheezburger):
            if message.offset == 0 and message.chunk:
                self.begun[message.filename] += 1
            if self.transcript is not None:
                self.transcript.append(line_of(conversation, message))
        opens = type(message).__name__ == "Ohai"
        if conversation not in self._sessions or (by == "C" and opens):
            self._begin(conversation, opens=opens)
        if conversation in self.strays:
            if by == "S" and type(message).__name__ not in ERRORS:
                self._find_fault(by, conversation, f"{label}, which has no peering")
            return
        violation = self._sessions[conversation].observe(by, message)
        if violation is not None:
            self._find_fault(by, conversation, str(violation))
        if self._role == "S" and type(message).__name__ == "Rtfm":
            self.strays.add(conversation)

    def _find_fault(self, by: Role, conversation: str, words: str) -> None:
        self.violations.append(f"{conversation}: {words}")
        if by != self._role:
            self._broken.add(conversation)
        elif conversation not in self._broken:
            self.own.append(self.violations[-1])

    def _begin(self, conversation: str, *, opens: bool) -> None:
        """Watch a conversation from here on: a new one, or one whose client opens with OHAI."""
        known = self._sessions.get(conversation)
        if known is None or conversation in self.strays:
            self.strays.discard(conversation)
            self._sessions[conversation] = self._package.machine.Session(self._role, "concurrent")
        if self._role == "S" and not opens:
            self.strays.add(conversation)


def watch_capture(folder: Path, role: Role, transcript: list[Line] | None = None) -> DialogWatch:
    """Watch what taps of one side captured; of a tap that dropped messages, what came before.

    What was said about files is added to `transcript`.
    """
    segments = pytest.importorskip("specwire.runtime.capture.segments")
    parquet = pytest.importorskip("pyarrow.parquet")
    watch = DialogWatch(role)
    watch.transcript = transcript
    for _, found in groupby(segments.find_segments(folder), key=lambda segment: segment.source.tap):
        for segment in takewhile(lambda segment: segment.dropped == 0, found):
            for row in parquet.read_table(segment.path).to_pylist():
                watch.record(
                    sender=row["sender"],
                    peer=row["peer"],
                    conversation=row["conversation"],
                    frames=row["frames"],
                )
    return watch
