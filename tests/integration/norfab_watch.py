"""The generated dialog machines over NORFAB traffic: what a broker, a worker or a client said out of turn, in words.

Each side answers for what it says itself. What the other side says may be a test's own hostile doing, and where it broke the
dialog, or was malformed, nothing is judged any more in that conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from specwire.generated import norfab, norfab_ascii
from specwire.generated.errors import DecodeError

Letter = Literal["B", "W", "C"]


class NorfabWatch:
    """A recorder that gives each message to the machine of its conversation.

    Args:
        own: the letter of the watched side.
        after: the watch of an earlier run of a broker: what was asked there may be answered here.

    Attributes:
        faults: what the watched side said out of turn, or malformed.
        seen: messages by sender and name, as ``B:ResponseClient``.
    """

    def __init__(self, own: Letter, *, after: NorfabWatch | None = None) -> None:
        self._own = own
        self.faults: list[str] = []
        self.seen: Counter[str] = Counter()
        self._asked: dict[tuple[str, str], str] = {} if after is None else dict(after._asked)
        """The conversation in which a peer asked for a uuid last."""
        self._sessions: dict[tuple[str, str], Any] = {}
        self._sides: dict[str, str] = {}
        self._broken: set[str] = set()

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        package: Any = norfab_ascii if len(frames) > 2 and len(frames[2]) == 4 else norfab
        try:
            message = package.decode([bytes(frame) for frame in frames])
        except DecodeError as error:
            self._find_fault(sender, conversation, f"malformed: {error}")
            return
        name = type(message).__name__
        self.seen[f"{sender}:{name}"] += 1
        question = peer, getattr(message, "uuid", "")
        if sender == "C":
            self._asked[question] = conversation
        elif name == "ResponseClient" and self._asked.get(question, conversation) != conversation:
            return  # asked before the broker began anew
        side = self._side_of(sender, name, conversation)
        session = self._sessions.get((conversation, side))
        if session is None or _begins_anew(sender, name, session.state):
            dialog = "worker" if side == "W" else "client"
            session = package.machine.Session(self._own, "concurrent", dialog)
            self._sessions[conversation, side] = session
        violation = session.observe(sender, message)
        if violation is not None:
            self._find_fault(sender, conversation, str(violation))

    def _side_of(self, sender: str, name: str, conversation: str) -> str:
        """Return the letter of the side that talks with the broker."""
        if sender != "B":
            self._sides[conversation] = sender
            return sender
        if self._own != "B":
            return self._own
        if name.endswith("Worker") or name in ("Keepalive", "Disconnect"):
            return "W"
        return self._sides.get(conversation, "C") if name == "Open" else "C"

    def _find_fault(self, sender: str, conversation: str, words: str) -> None:
        if sender != self._own:
            self._broken.add(conversation)
        elif conversation not in self._broken:
            self.faults.append(f"{conversation}: {words}")


def _begins_anew(sender: str, name: str, state: str) -> bool:
    """Tell whether a peer begins its conversation anew, on a new connection or after DISCONNECT."""
    if sender == "B":
        return False
    if name == "Open":
        return sender == "C" or state == "CLOSED"  # a worker says OPEN also when it manages something else
    return name == "Ready" and state not in ("START", "W_OPEN", "B_OPEN")
