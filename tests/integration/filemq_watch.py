"""The generated dialog machine over FILEMQ traffic, live or from a capture: what broke the dialog, in words.

One thing needs a rule of its own: a client that speaks where the server knows of no peering. libzmq opens a
lost connection again by itself, with a new routing id, and what the client says before it learns of that has
no OHAI in front; a client forgotten for its silence may have been talking all the while. The server's
view of such a *stray* is in order when it answers RTFM to all but OHAI. On the client's side there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import Literal

import pytest

from specwire.generated import filemq

Role = Literal["C", "S"]


class DialogWatch:
    """A recorder that gives each message to the machine of its conversation.

    Attributes:
        violations: what broke the dialog, in words.
        strays: conversations without a peering, as a server sees them: not begun with OHAI, or ended by RTFM.
        seen: messages by sender and name, as ``S:Cheezburger``.
        begun: how often a server began to send each file.
    """

    def __init__(self, role: Role) -> None:
        self.violations: list[str] = []
        self.strays: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()
        self._role = role
        self._sessions: dict[str, filemq.machine.Session] = {}

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        message = filemq.decode(frames)
        label = f"{sender}:{type(message).__name__}"
        self.seen[label] += 1
        if isinstance(message, filemq.Cheezburger) and message.offset == 0 and message.chunk:
            self.begun[message.filename] += 1
        by = "C" if sender == "C" else "S"
        if conversation not in self._sessions or (by == "C" and isinstance(message, filemq.Ohai)):
            self._begin(conversation, message)
        if conversation in self.strays:
            if by == "S" and not isinstance(message, filemq.Rtfm):
                self.violations.append(f"{label} in {conversation}, which has no peering")
            return
        violation = self._sessions[conversation].observe(by, message)
        if violation is not None:
            self.violations.append(f"{conversation}: {violation}")
        if self._role == "S" and isinstance(message, filemq.Rtfm):
            self.strays.add(conversation)

    def _begin(self, conversation: str, message: filemq.AnyMessage) -> None:
        """Watch a conversation from here on: a new one, or one whose client opens with OHAI."""
        known = self._sessions.get(conversation)
        if known is None or conversation in self.strays:
            self.strays.discard(conversation)
            self._sessions[conversation] = filemq.machine.Session(self._role, "concurrent")
        if self._role == "S" and not isinstance(message, filemq.Ohai):
            self.strays.add(conversation)


def watch_capture(folder: Path, role: Role) -> DialogWatch:
    """Watch what taps of one side captured; of a tap that dropped messages, what came before."""
    segments = pytest.importorskip("specwire.runtime.capture.segments")
    parquet = pytest.importorskip("pyarrow.parquet")
    watch = DialogWatch(role)
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
