"""Connections: what a recorder may see, and what comes out of it."""

from __future__ import annotations

from collections import defaultdict

import pytest

from specwire.runtime.pcap import connections as connections_module
from specwire.runtime.pcap.connections import PATIENCE, PATIENCE_NS, Connections, Piece
from specwire.runtime.pcap.packets import Packet
from specwire.runtime.pcap.segments import Segment
from tests.runtime.pcap.wire import Talk, segments_of


def read(packets: list[Packet], *, end: bool = True) -> tuple[list[Piece], Connections]:
    connections = Connections()
    pieces = [piece for segment in segments_of(packets) for piece in connections.add(segment)]
    return pieces + (list(connections.end()) if end else []), connections


def said(pieces: list[Piece]) -> dict[int, bytes]:
    """What each port sent, a hash for each octet that is missing."""
    found: dict[int, bytes] = defaultdict(bytes)
    for piece in pieces:
        if piece.sender is not None:
            found[piece.sender.port] += b"#" * piece.lost + piece.octets
    return dict(found)


def test_both_sides_are_read() -> None:
    pieces, connections = read(Talk().open().say("C", b"ask").say("S", b"answer").close().packets)
    assert said(pieces) == {40000: b"ask", 5670: b"answer"} and connections.count == 1
    connection = pieces[0].connection
    assert (connection.opener.port, connection.listener.port, connection.is_whole) == (40000, 5670, True)
    assert [piece.sender for piece in pieces].count(None) == 1


@pytest.mark.parametrize("isn", [(0, 0), (2**32 - 1, 2**32 - 2), (2**32 - 4, 2**31)])
def test_numbers_begin_anywhere(isn: tuple[int, int]) -> None:
    talk = Talk(isn=isn).open().say("C", b"0123456789" * 50, cut=7).say("S", b"abc" * 40, cut=5).close()
    assert said(read(talk.packets)[0]) == {40000: b"0123456789" * 50, 5670: b"abc" * 40}


def test_retransmissions_and_order() -> None:
    """Every packet comes twice, and each pair of neighbours swapped."""
    talk = Talk().open().say("C", b"0123456789" * 20, cut=10)
    beginning, rest = talk.packets[:3], talk.packets[3:]
    for at in range(0, len(rest) - 1, 2):
        rest[at : at + 2] = [rest[at + 1], rest[at + 1], rest[at], rest[at]]
    assert said(read(beginning + rest)[0]) == {40000: b"0123456789" * 20}


def test_keep_alive_before_the_first_octets_seen() -> None:
    """A keep-alive has the number of the octet before: the recorder came in the middle."""
    talk = Talk(isn=(1000, 9000))
    talk.say("C", b"x").packets.clear()
    talk.say("C", b"data")
    (segment,) = segments_of(talk.packets)
    connections = Connections()
    keep_alive = segment._replace(seq=segment.seq - 1, payload=b"")
    pieces = [*connections.add(keep_alive), *connections.add(segment)]
    assert [(piece.octets, piece.lost) for piece in pieces] == [(b"data", 0)]
    assert not pieces[0].connection.is_whole


def test_acknowledged_and_never_seen_is_lost_after_some_patience() -> None:
    """The recorder dropped 10 octets; what follows waits until it is clear that they will not come."""
    talk = Talk().open().say("C", b"before")
    talk.say("C", b"lostoctets").packets.pop()
    talk.say("C", b"after")
    waiting, _ = read(talk.packets, end=False)
    assert said(waiting) == {40000: b"before"}
    for _ in range(PATIENCE):
        talk.acknowledge("S")
    assert said(read(talk.packets, end=False)[0]) == {40000: b"before"}
    assert said(read(talk.acknowledge("S").packets, end=False)[0]) == {40000: b"before##########after"}


def test_patience_ends_with_time_too() -> None:
    """On a quiet connection packets are few: a second is enough. What comes behind the gap keeps its own time."""
    talk = Talk().open().say("C", b"before")
    talk.say("C", b"lost").packets.pop()
    talk.say("C", b"after").acknowledge("S").acknowledge("S")
    after, first, second = talk.packets[-3:]
    late = second._replace(time_ns=first.time_ns + PATIENCE_NS + 1)
    pieces, _ = read([*talk.packets[:-1], late], end=False)
    assert said(pieces) == {40000: b"before####after"} and pieces[-1].time_ns == after.time_ns


def test_what_comes_late_is_waited_for() -> None:
    """On several queues a recorder sees acknowledgements before what they acknowledge."""
    talk = Talk().open().say("C", b"early")
    (late,) = [talk.packets.pop()]
    for _ in range(PATIENCE // 2):
        talk.acknowledge("S")
    assert said(read([*talk.packets, late], end=False)[0]) == {40000: b"early"}


def test_cut_off_packets_are_gaps() -> None:
    talk = Talk().open().say("C", b"0123456789").say("C", b"next").close()
    cut = [p._replace(octets=p.octets[:-6]) if p is talk.packets[3] else p for p in talk.packets]
    assert said(read(cut)[0]) == {40000: b"0123######next"}


def test_end_of_the_recording_gives_what_waits() -> None:
    talk = Talk().open().say("C", b"lost").say("C", b"here")
    del talk.packets[3]
    assert said(read(talk.packets)[0]) == {40000: b"####here"}


def test_same_addresses_again_are_another_connection() -> None:
    first = Talk(isn=(1, 2)).open().say("C", b"one").reset("C")
    second = Talk(isn=(5000, 7000)).open().say("C", b"two")
    pieces, connections = read(first.packets + second.packets)
    assert connections.count == 2
    assert [piece.octets for piece in pieces if piece.octets] == [b"one", b"two"]


def test_repeated_opening_is_the_same_connection() -> None:
    talk = Talk().open().say("C", b"one")
    assert read([talk.packets[0], *talk.packets])[1].count == 1


def test_what_comes_after_the_end_is_no_connection() -> None:
    talk = Talk().open().say("C", b"one").close()
    again = [*talk.packets, talk.packets[3], talk.packets[-1]]
    pieces, connections = read(again)
    assert connections.count == 1 and said(pieces) == {40000: b"one"}


@pytest.mark.parametrize("answers", [True, False])
def test_listener_is_told_by_syn_or_the_smaller_port(answers: bool) -> None:
    talk = Talk().open().say("C", b"ask")
    pieces, _ = read(talk.packets[1:] if answers else talk.packets[3:])
    assert pieces[0].connection.listener.port == 5670
    pieces, _ = read(Talk().open().say("S", b"told").packets[3:])
    assert pieces[0].connection.listener.port == 5670


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was silent longest is let go, with what waited in it."""
    monkeypatch.setattr(connections_module, "MAX_CONNECTIONS", 2)
    connections = Connections()
    pieces: list[Piece] = []
    segments: list[Segment] = []
    for port in (1001, 1002, 1003):
        talk = Talk(client=("127.0.0.1", port)).open().say("C", b"lost").say("C", b"%d" % port)
        del talk.packets[3]
        segments += segments_of(talk.packets)
    for segment in segments:
        pieces += connections.add(segment)
    assert said(pieces) == {1001: b"####1001"}
    assert said(list(connections.end())) == {1002: b"####1002", 1003: b"####1003"}
