"""Events in words, one line each, for a log that a person reads.

What an outsider can cause (`Refused`) is told at a bounded rate: a hostile peer must not fill a disk with log
lines. What was left out is counted, and the count told with the next line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from specwire.runtime.filemq.events import (
    Event,
    FileDeleted,
    FilePublished,
    FileReceived,
    FileSent,
    FileWithdrawn,
    PeerClosed,
    PeerOpened,
    Refused,
    Subscribed,
)
from specwire.runtime.filemq.names import KEPT, RESERVED

KEPT_IN = f"{RESERVED}/{KEPT}"
REFUSALS = 20
PER_S = 10.0


def describe(event: Event) -> str:
    """Return one line about `event`."""
    match event:
        case FileReceived(path=path, size=size, sha1=sha1, verified=verified):
            doubt = "" if verified else ", unverified"
            return f"received {show(path)} ({size:,} octets, SHA-1 {sha1}{doubt})"
        case FileDeleted(path=path, kept=kept):
            return f"deleted {show(path)}{f', a copy is kept in {KEPT_IN}' if kept else ''}"
        case FilePublished(path=path, size=size, sha1=sha1):
            return f"published {show(path)} ({size:,} octets, SHA-1 {sha1})"
        case FileWithdrawn(path=path):
            return f"withdrawn {show(path)}"
        case FileSent(path=path, size=size, peer=peer):
            return f"sent {show(path)} to {peer} ({size:,} octets)"
        case Subscribed(path=path, peer=peer):
            return f"subscribed to {show(path)}" if not peer else f"{peer} subscribed to {show(path)}"
        case Refused(name=name, reason=reason, peer=peer):
            return f"refused {show(name)}{f' of {peer}' if peer else ''}: {show(reason)}"
        case PeerOpened(peer=peer, user=user):
            return f"connected with {peer}{f' of {show(user)}' if user else ''}"
        case PeerClosed(peer=peer, reason=reason):
            return f"disconnected from {peer}: {show(reason)}"
        case _:
            assert_never(event)


def show(text: str) -> str:
    """Return text from the wire with everything unprintable escaped, so that it cannot forge log lines."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Narrator:
    """Writes a line for each event.

    Args:
        write: takes one line.
        clock: seconds that do not go backwards.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._write, self._clock = write, clock
        self._since = clock()
        self._told = self._left_out = 0

    def tell(self, event: Event) -> None:
        """Write what happened, unless it is one refusal too many."""
        if not isinstance(event, Refused) or self._may_tell():
            self._write(describe(event))

    def _may_tell(self) -> bool:
        now = self._clock()
        if now - self._since >= PER_S:
            if self._left_out:
                self._write(f"{self._left_out:,} more were refused in {now - self._since:.0f} s")
            self._since, self._told, self._left_out = now, 0, 0
        self._told += 1
        self._left_out += self._told > REFUSALS
        return self._told <= REFUSALS
