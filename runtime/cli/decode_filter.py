"""Which of the messages of a capture are wanted: by name, peer, time, and whether they could be decoded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from types import ModuleType

import msgspec

from specwire.runtime.cli.console import fail, meant
from specwire.runtime.pcap.rows import Row

SHOWN_NAMES = 20
"""A mistaken name is answered with all names where they are no more than these."""


class Filter(msgspec.Struct, frozen=True):
    """What is asked of a row; each part is passed by where it is empty.

    Attributes:
        names: class names of messages.
        peer: part of the peer's name or of an address, in small letters.
        since: earliest time, microseconds since 1970 UTC.
        until: the time before which messages lie, in the same.
        errors: only what could not be decoded.
    """

    names: frozenset[str] = frozenset()
    peer: str = ""
    since: int | None = None
    until: int | None = None
    errors: bool = False

    def wants(self, row: Row) -> bool:
        """Say whether a row is wanted."""
        if self.errors and row.error is None:
            return False
        if self.names and row.name not in self.names:
            return False
        if (self.since is not None or self.until is not None) and not self._in_time(row.ts):
            return False
        return not self.peer or any(self.peer in text.lower() for text in _places(row))

    def _in_time(self, ts: int | None) -> bool:
        if ts is None:
            return False
        return (self.since is None or ts >= self.since) and (self.until is None or ts < self.until)


def _places(row: Row) -> tuple[str, ...]:
    return row.peer, peer_text(row.peer), row.listener, row.conversation


def peer_text(peer: str) -> str:
    """Return a peer as people write it: taps keep routing ids in hexadecimal, and some of these are text."""
    try:
        text = bytes.fromhex(peer).decode("ascii")
    except ValueError:
        return peer
    return text if text and text.isprintable() else peer


def message_names(packages: Sequence[ModuleType], asked: Sequence[str]) -> frozenset[str]:
    """Return the class names of messages, which may be written as the class or as the grammar does, in any case.

    A name that no package has ends the command.
    """
    known: dict[str, set[str]] = {}
    for package in packages:
        for name, message in package.MESSAGES.items():
            for spelling in (name, message.NAME):
                known.setdefault(spelling.lower(), set()).add(name)
    found: set[str] = set()
    for name in asked:
        if name.lower() not in known:
            own = sorted({name for names in known.values() for name in names})
            others = f"; there are {', '.join(own)}" if len(own) <= SHOWN_NAMES else ""
            fail(f"no message is called {name!r}{meant(name, own) or others}")
        found |= known[name.lower()]
    return frozenset(found)


def read_time(text: str | None, option: str) -> int | None:
    """Return the microseconds since 1970 UTC of a time as ISO 8601 writes it; without a zone it is UTC's."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        fail(
            f"{option}: {text!r} is no time; write 2026-03-01, 2026-03-01T12:30:00 or 2026-03-01T12:30:00.5+01:00"
        )
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // datetime.resolution
