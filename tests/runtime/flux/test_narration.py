"""Events of a broker in words: which are told, how often, and that nothing from the wire forges a line."""

from __future__ import annotations

import pytest

from specwire.runtime.flux.events import (
    ChildJoined,
    ChildLeft,
    ClientClosed,
    ClientOpened,
    Dropped,
    Event,
    Joined,
    ParentLost,
    ParentUnreachable,
    PeerRefused,
)
from specwire.runtime.flux.narration import Level, Narrator, describe
from specwire.runtime.log.quota import LINES, PER_S

UUID = "c5e78dd6-0000-4000-8000-000000000000"


class Told:
    """A narrator, its lines, and its clock."""

    def __init__(self, level: Level = Level.NORMAL) -> None:
        self.lines: list[str] = []
        self.now = 100.0
        self.narrator = Narrator(self.lines.append, lambda: self.now, level)

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
        (ChildLeft(1, UUID, "silent", lost=True), Level.QUIET),
        (ClientClosed(UUID, "slow subscriber: 17,000,000 octets are unread"), Level.QUIET),
        (ChildJoined(1, UUID, "here"), Level.NORMAL),
        (ChildLeft(1, UUID, "it said goodbye", lost=False), Level.NORMAL),
        (ParentUnreachable("no connection is possible"), Level.NORMAL),
        (ClientOpened(UUID, 0), Level.VERBOSE),
        (ClientClosed(UUID, "disconnected"), Level.VERBOSE),
    ],
)
def test_what_each_level_tells(event: Event, from_level: Level) -> None:
    for level in Level:
        assert bool(Told(level).tell(event)) == (level >= from_level)


def test_a_flood_is_told_in_part_and_its_rest_counted() -> None:
    """Twenty lines in ten seconds, then how many there were more; what only a broker causes is told in any case."""
    told = Told()
    flood = [Dropped("event", "client", "it has no topic")] * (LINES + 30)
    assert len(told.tell(*flood)) == LINES
    assert len(told.tell(ChildLeft(1, UUID, "silent", lost=True))) == 1
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


def test_a_broker_that_stops_does_not_call_it_a_loss() -> None:
    """Neighbours and clients go because it goes; who wants to know all is told."""
    for level, count in ((Level.QUIET, 0), (Level.NORMAL, 1)):
        told = Told(level)
        told.narrator.end()
        assert len(told.tell(ChildLeft(1, UUID, "the broker stops", lost=True))) == count
