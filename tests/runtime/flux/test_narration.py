"""Events of a broker in words: which are told, how often, and that nothing from the wire forges a line."""

from __future__ import annotations

import pytest

from specwire.runtime.flux.events import (
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
from specwire.runtime.flux.narration import Level, Narrator, describe, severity_of
from specwire.runtime.log.quota import LINES, PER_S

UUID = "c5e78dd6-0000-4000-8000-000000000000"


class Told:
    """A narrator, its lines, and its clock."""

    def __init__(self, level: Level = Level.NORMAL) -> None:
        self.lines: list[str] = []
        self.now = 100.0
        self.narrator = Narrator(lambda line, severity: self.lines.append(line), lambda: self.now, level)

    def tell(self, *events: Event) -> list[str]:
        """Return the lines that these events are worth."""
        self.lines.clear()
        for event in events:
            self.narrator.tell(event)
        return [*self.lines]


def test_text_from_the_wire_stays_on_its_line() -> None:
    line = describe(PeerRefused("evil\n12:00:00 [0] all is well\x1b[2J"))
    assert line == r"refused a peer: evil\n12:00:00 [0] all is well\x1b[2J"
    assert "\n" not in describe(ChildJoined(1, "a\nb", "host\r"))


@pytest.mark.parametrize(
    ("event", "from_level"),
    [
        (ChildLeft(1, UUID, "here", "silent", lost=True), Level.QUIET),
        (ClientClosed(UUID, "slow subscriber: 17,000,000 octets are unread"), Level.QUIET),
        (ChildJoined(1, UUID, "here"), Level.NORMAL),
        (ChildLeft(1, UUID, "here", "it said goodbye", lost=False), Level.NORMAL),
        (ParentUnreachable("no connection is possible"), Level.NORMAL),
        (ClientOpened(UUID, 0), Level.VERBOSE),
        (Dropped("response", "child", "nobody awaits it"), Level.VERBOSE),
        (Dropped("request", "child", "it has no topic"), Level.QUIET),
        (ClientClosed(UUID, "disconnected"), Level.VERBOSE),
    ],
)
def test_what_each_level_tells(event: Event, from_level: Level) -> None:
    for level in Level:
        assert bool(Told(level).tell(event)) == (level >= from_level)


@pytest.mark.parametrize(
    ("event", "severity", "line"),
    [
        (Joined(3), 6, "rank 3 is in the tree"),
        (ChildJoined(1, UUID, "here"), 7, "rank 1 (c5e78dd6, here) has joined"),
        (ChildLeft(1, UUID, "here", "silent", lost=True), 3, "rank 1 (c5e78dd6, here) is lost: silent"),
        (
            ChildLeft(1, UUID, "here", "the way to rank 0 is lost", lost=True),
            7,
            "rank 1 (c5e78dd6, here) is lost: the way to rank 0 is lost",
        ),
        (ChildLeft(1, UUID, "here", "bye", lost=False), 6, "rank 1 (c5e78dd6, here) has left: bye"),
        (ChildTorpid(1, UUID, "here", True), 4, "rank 1 (c5e78dd6, here) is torpid"),
        (ChildTorpid(1, UUID, "here", False), 6, "rank 1 (c5e78dd6, here) is heard again"),
        (StatusChanged(0, "partial"), 6, "the subtree is partial"),
        (StatusChanged(1, "partial"), 7, "the subtree is partial"),
        (ParentLost("it stopped"), 3, "the parent is lost: it stopped"),
        (EventGap(3, 5), 3, "events 3 to 5 were lost"),
        (ClientClosed(UUID, "malformed"), 4, "client c5e78dd6 is gone: malformed"),
        (PeerRefused("no key"), 4, "refused a peer: no key"),
    ],
)
def test_how_grave_each_event_is(event: Event, severity: int, line: str) -> None:
    """The numbers of RFC 5424: 3 error, 4 warning, 6 information, 7 debugging."""
    assert (severity_of(event), describe(event)) == (severity, line)


def test_a_flood_is_told_in_part_and_its_rest_counted() -> None:
    """Twenty lines in ten seconds, then how many there were more; what only a broker causes is told in any case."""
    told = Told()
    flood = [Dropped("event", "client", "it has no topic")] * (LINES + 30)
    assert len(told.tell(*flood)) == LINES
    assert len(told.tell(ChildLeft(1, UUID, "here", "silent", lost=True))) == 1
    told.now += PER_S
    assert told.tell(flood[0])[0] == "30 more such lines were left out in 10 s"
    assert len(told.lines) == 2


def test_an_unreachable_parent_is_told_once_for_each_reason() -> None:
    """However often it is tried; after this broker was in the tree, anew."""
    told = Told()
    assert len(told.tell(*[ParentUnreachable("no connection is possible")] * 5)) == 1
    assert len(told.tell(ParentUnreachable("the handshake failed"))) == 1
    assert told.tell(Joined(3), ParentLost("it stopped"))[1] == "the parent is lost: it stopped"
    assert len(told.tell(*[ParentUnreachable("no connection is possible")] * 5)) == 1


def test_a_refused_peer_is_told_once_for_each_reason() -> None:
    """What it has sent before it heard of that is refused too; another peer is told."""
    told = Told()
    silent, other = ChildRefused(UUID, "it has not said hello"), ChildRefused("b", "it has not said hello")
    assert told.tell(*[silent] * 5, other, silent) == [
        "refused c5e78dd6: it has not said hello",
        "refused b: it has not said hello",
    ]
    assert len(told.tell(ChildRefused(UUID, "the broker stops"))) == 1


def test_a_broker_that_stops_does_not_call_it_a_loss() -> None:
    """Neighbours and clients go because it goes; who wants to know all is told."""
    for level, count in ((Level.QUIET, 0), (Level.NORMAL, 1)):
        told = Told(level)
        told.narrator.end()
        assert len(told.tell(ChildLeft(1, UUID, "here", "the broker stops", lost=True))) == count
