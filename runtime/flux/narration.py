"""Events of a broker in words, one line each, for a log that a person reads: standard error, or ``flux dmesg``.

What an outsider can cause is told at a bounded rate: a hostile peer must not fill a disk with log lines. What was
left out is counted, and the count told with the next line. Brokers and clients are named by the first eight
characters of their uuid, as in the answer to a ping.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import assert_never

from specwire.runtime.flux.events import (
    DISCONNECTED,
    WAY_LOST,
    ChildJoined,
    ChildLeft,
    ChildRefused,
    ChildTorpid,
    ClientClosed,
    ClientOpened,
    Dropped,
    Event,
    EventGap,
    Joined,
    ParentLost,
    ParentUnreachable,
    PeerRefused,
    StatusChanged,
)
from specwire.runtime.flux.severity import Severity
from specwire.runtime.log.quota import Quota
from specwire.runtime.log.text import show

NAME_LENGTH = 8

REMEMBERED = 32
"""Peers that were refused, of which no more is told."""

ByOutsiders = ChildRefused | ClientClosed | ClientOpened | Dropped | PeerRefused
"""Events that somebody may cause as often as he likes."""

ORDINARY = {DISCONNECTED, "the broker stops"}
"""Ends of a client's connection that nobody needs to hear of."""


def describe(event: Event) -> str:
    """Return one line about `event`."""
    match event:
        case Joined(rank=rank):
            return f"rank {rank} is in the tree"
        case ChildJoined():
            return f"{name(event)} has joined"
        case ChildRefused(child=child, reason=reason):
            return f"refused {shorten(child)}: {show(reason)}"
        case ChildLeft(reason=reason, lost=lost):
            return f"{name(event)} {'is lost' if lost else 'has left'}: {show(reason)}"
        case ChildTorpid(torpid=torpid):
            return f"{name(event)} {'is torpid' if torpid else 'is heard again'}"
        case StatusChanged(status=status):
            return f"the subtree is {status}"
        case ParentLost(reason=reason):
            return f"the parent is lost: {show(reason)}"
        case ParentUnreachable(reason=reason):
            return f"no way to the parent yet: {show(reason)}"
        case PeerRefused(reason=reason):
            return f"refused a peer: {show(reason)}"
        case EventGap(first=first, last=last):
            return f"events {first} to {last} were lost"
        case Dropped(kind=kind, source=source, reason=reason):
            return f"dropped {'an' if kind == 'event' else 'a'} {kind} of a {source}: {show(reason)}"
        case ClientOpened(client=client, userid=userid):
            return f"client {shorten(client)} of user {userid} has connected"
        case ClientClosed(client=client, reason=reason):
            return f"client {shorten(client)} is gone: {show(reason)}"
        case _:
            assert_never(event)


def name(event: ChildJoined | ChildLeft | ChildTorpid) -> str:
    """Return which child an event is about."""
    return f"rank {event.rank} ({shorten(event.child)}, {show(event.hostname)})"


def shorten(uuid: str) -> str:
    """Return a uuid as logs show it."""
    return show(uuid[:NAME_LENGTH])


class Level(IntEnum):
    """What is told: faults; neighbours that come and go, too; and clients that do."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


def level_of(event: Event) -> Level:
    """Return from which level on an event is told."""
    match event:
        case ClientOpened() | Dropped(kind="response"):  # whose caller has gone, or waits no more
            return Level.VERBOSE
        case ClientClosed(reason=reason) if reason in ORDINARY:
            return Level.VERBOSE
        case ParentUnreachable() | Joined() | ChildJoined() | StatusChanged() | ChildLeft(lost=False):
            return Level.NORMAL
        case ChildLeft(reason=reason) if reason == WAY_LOST:  # that the parent is lost is told
            return Level.NORMAL
        case _:
            return Level.QUIET


def severity_of(event: Event) -> Severity:
    """Return how grave an event is for who looks after the whole instance."""
    match event:
        case ChildLeft(reason=reason) if reason == WAY_LOST:
            return Severity.DEBUG
        case ChildLeft(lost=True) | ParentLost() | EventGap():
            return Severity.ERROR
        case Joined() | StatusChanged(rank=0) | ChildLeft() | ChildTorpid(torpid=False):
            return Severity.INFO
        case ChildJoined() | StatusChanged() | ClientOpened():
            return Severity.DEBUG
        # Every start has the first, and every caller that gives up the second.
        case ParentUnreachable() | Dropped(kind="response"):
            return Severity.DEBUG
        case ClientClosed(reason=reason) if reason in ORDINARY:
            return Severity.DEBUG
        case _:
            return Severity.WARNING


class Narrator:
    """Writes a line for each event that is worth one.

    A parent that cannot be reached is told once for each reason, however often it is tried; a peer that is refused,
    once for each uuid, however much it has sent already.

    Args:
        write: takes one line, and how grave it is.
        clock: seconds that do not go backwards.
        level: what is told. May be changed.
    """

    __slots__ = ("_clock", "_is_ending", "_losses", "_outsiders", "_refused", "_write", "level")

    def __init__(
        self, write: Callable[[str, Severity], None], clock: Callable[[], float], level: Level = Level.NORMAL
    ) -> None:
        self._write, self._clock, self.level = write, clock, level
        self._outsiders: Quota | None = None  # a broker among 100,000 in one process has seldom need of it
        self._losses: set[str] = set()
        self._refused: tuple[ChildRefused, ...] = ()
        self._is_ending = False

    def tell(self, event: Event) -> None:
        """Write what happened, unless it is not to be told, or is one too many."""
        level = Level.NORMAL if self._is_ending else level_of(event)
        is_new = self._is_new(event)
        if level > self.level or not is_new:
            return
        if isinstance(event, ByOutsiders):
            self._quota().write(describe(event))
        else:
            self._write(describe(event), severity_of(event))

    def end(self) -> None:
        """This broker stops: that neighbours and clients are lost by it is no fault."""
        self._is_ending = True

    def _is_new(self, event: Event) -> bool:
        if isinstance(event, Joined):
            self._losses.clear()
        elif isinstance(event, ParentLost | ParentUnreachable):
            if event.reason in self._losses:
                return False
            self._losses.add(event.reason)
        elif isinstance(event, ChildRefused):
            if event in self._refused:
                return False
            self._refused = (*self._refused[1 - REMEMBERED :], event)
        return True

    def _quota(self) -> Quota:
        if self._outsiders is None:
            write = self._write
            self._outsiders = Quota(
                lambda line: write(line, Severity.WARNING), self._clock, "more such lines were left out"
            )
        return self._outsiders
