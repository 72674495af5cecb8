"""Events: numbers, order, prefixes, privacy and gaps; one sentence a test."""

from __future__ import annotations

from base64 import b64encode

import pytest

from specwire.generated.flux import Event
from specwire.runtime.flux.actions import Report, ToChild, ToParent
from specwire.runtime.flux.answering import unpack_object
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.events import Dropped, EventGap
from specwire.runtime.flux.flags import PRIVATE
from specwire.runtime.flux.publishing import LAST_SEQUENCE
from specwire.runtime.flux.topology import Tree as Shape
from tests.runtime.flux.tree import GUEST, OWNER, Tree, member


def test_only_rank_0_numbers() -> None:
    """Events SHALL only be published by the rank 0 broker; other ranks forward them to rank 0 first."""
    tree = Tree(7)
    clients = [tree.client(rank) for rank in range(7)]
    for client in clients:
        client.ask("event.subscribe", {"topic": "a"})
    for rank, client in enumerate(clients):
        client.send(Event(topic=f"a.{rank}"))
        tree.settle()
    for client in clients:
        assert [event.topic for event in client.events("a")] == [f"a.{rank}" for rank in range(7)]
        sequences = [event.sequence for event in client.events("a")]
        assert sequences == [*range(sequences[0], sequences[0] + 7)]


def test_sequences_start_at_1() -> None:
    """The header SHALL include a monotonically increasing event sequence number; they start at 1."""
    engine = BrokerEngine(Settings(tree=Shape(1)), 0, "root", lambda: "connector")
    engine.start(0.0)
    engine.accept_client("client", 0, 0.0)
    engine.publish("first", None, 0.0)
    assert engine.publisher.sequence == 1


def test_publish_tells_the_number() -> None:
    """``event.publish`` to nodeid 0: ``{"seq":N}``; the event can come before the response."""
    tree = Tree(3)
    client = tree.client(2)
    client.ask("event.subscribe", {"topic": "a"})
    payload = b64encode(b"\0\1octets").decode()
    answer = client.ask("event.publish", {"topic": "a.b", "flags": 0, "payload": payload}, nodeid=0)
    (event,) = client.events("a.b")
    assert (event.payload, event.sequence) == (b"\0\1octets", unpack_object(answer.payload)["seq"])


@pytest.mark.parametrize("payload", ["%", "YQ", "Y Q=="])
def test_payload_that_is_not_base64(payload: str) -> None:
    """What cannot be read is EPROTO."""
    client = Tree(1).client(0)
    assert client.ask("event.publish", {"topic": "a", "flags": 0, "payload": payload}, nodeid=0).errnum == 71


def test_topic_that_cannot_be_written() -> None:
    """A topic ends with NUL on the wire, so it cannot have one."""
    assert Tree(1).client(0).ask("event.publish", {"topic": "a\0b", "flags": 0}, nodeid=0).errnum == 71


def test_prefixes() -> None:
    """Prefix match, "" = all; subscriptions are counted."""
    tree = Tree(1)
    client = tree.client(0)
    client.ask("event.subscribe", {"topic": "ab"})
    client.ask("event.subscribe", {"topic": "ab"})
    client.ask("event.subscribe", {"topic": "abc"})
    for topic in ("a", "ab", "abc", "b"):
        client.send(Event(topic=topic))
    assert [event.topic for event in client.events()] == ["ab", "abc"]
    client.ask("event.unsubscribe", {"topic": "ab"})
    client.send(Event(topic="ab.again"))
    assert client.events("ab.again")
    client.ask("event.unsubscribe", {"topic": "ab"})
    client.send(Event(topic="ab.never"))
    assert not client.events("ab.never")
    client.ask("event.subscribe", {"topic": ""})
    client.send(Event(topic="zz"))
    assert client.events("zz")


def test_private_events() -> None:
    """Private events only to the owner or the matching userid."""
    tree = Tree(3, allow_guests=True)
    owner, guest, other = tree.client(1, OWNER), tree.client(2, GUEST), tree.client(2, GUEST + 1)
    for client in (owner, guest, other):
        client.ask("event.subscribe", {"topic": "p"})
    guest.send(Event(topic="p.guest", flags=PRIVATE))
    tree.settle()
    owner.send(Event(topic="p.owner", flags=PRIVATE))
    tree.settle()
    other.send(Event(topic="p.open"))
    tree.settle()
    assert [event.topic for event in owner.events("p")] == ["p.guest", "p.owner", "p.open"]
    assert [event.topic for event in guest.events("p")] == ["p.guest", "p.open"]
    assert [event.topic for event in other.events("p")] == ["p.open"]
    assert {event.userid for event in owner.events("p.guest")} == {GUEST}


def test_gap_is_reported_and_the_event_goes_on() -> None:
    """A number that is not the next one: what is between is lost; it is reported, logged and counted."""
    engine = member()
    for sequence in (5, 6):
        assert len(engine.from_parent(Event(topic="a", sequence=sequence), 0.0)) == 1
    report, passed_on = engine.from_parent(Event(topic="a", sequence=9), 0.0)
    assert report == Report(EventGap(7, 8))
    assert isinstance(passed_on, ToChild)
    assert (engine.counters.event_gaps, engine.publisher.sequence) == (2, 9)
    assert engine.journal.lines()[-1].endswith("events 7 to 8 were lost")


def test_event_that_came_already_is_dropped() -> None:
    """Events are delivered in sequence: none twice, none after a later one."""
    engine = member()
    engine.from_parent(Event(topic="a", sequence=5), 0.0)
    for sequence in (5, 4):
        (report,) = engine.from_parent(Event(topic="a", sequence=sequence), 0.0)
        assert isinstance(report, Report)
        assert isinstance(report.event, Dropped)
    assert engine.publisher.sequence == 5


def test_gap_while_apart_is_found() -> None:
    """The last number is kept over rejoin."""
    tree = Tree(2, 1)
    client, far = tree.client(0), tree.client(1)
    far.ask("event.subscribe", {"topic": "a"})
    client.send(Event(topic="a.1"))
    tree.settle()
    tree.perform(1, tree.engines[1].parent_gone("cut", tree.now))
    client.send(Event(topic="a.2"))
    tree.settle()
    tree.rejoin(1)
    tree.settle()
    client.send(Event(topic="a.3"))
    tree.settle()
    assert [event.topic for event in far.events("a")] == ["a.1", "a.3"]
    (gap,) = tree.reported(EventGap)
    assert gap.first == gap.last


def test_numbers_begin_again_at_the_end() -> None:
    """A number has 4 octets: after the last one comes 1."""
    engine = member()
    for sequence in (LAST_SEQUENCE, 1, 2):
        (action,) = engine.from_parent(Event(topic="a", sequence=sequence), 0.0)
        assert isinstance(action, ToChild)


def test_event_without_a_way_to_rank_0_is_dropped() -> None:
    """Nobody but rank 0 may number it, and nobody answers an event."""
    engine = member()
    engine.parent_gone("cut", 0.0)
    (report,) = engine.publish("a", None, 0.0)
    assert isinstance(report, Report)
    assert isinstance(report.event, Dropped)


def test_event_of_a_child_goes_up_unnumbered() -> None:
    """Whatever number a child writes, rank 0 gives its own; LOCAL goes where a message leaves its broker."""
    engine = member()
    event = Event(topic="a", sequence=77, userid=5, rolemask=6)
    assert engine.from_child("leaf", event, 0.0) == [ToParent(Event(topic="a", userid=5, rolemask=2))]
