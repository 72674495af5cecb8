"""Packets to messages, all the way, and what is told of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generated import filemq, flux, libfilemq
from specwire.runtime.pcap.packets import Packet
from specwire.runtime.pcap.rows import Row
from specwire.runtime.pcap.traffic import Traffic
from tests.examples import examples
from tests.runtime.pcap.wire import ETHERNET, Talk, greeting, message

OHAI, OHAI_OK, HUGZ = b"\xaa\xa3\x01\x06FILEMQ\x02", b"\xaa\xa3\x04", b"\xaa\xa3\x09"
"""FILEMQ v2: signature, message number, protocol as a string with its length, version."""


def read(
    packets: Sequence[Packet],
    packages: Sequence[ModuleType] = (flux, filemq, libfilemq),
    port: int | None = None,
) -> tuple[list[Row], list[str]]:
    traffic = Traffic(lambda opener, listener: packages, port=port)
    rows = [row for packet in packets for row in traffic.take(packet)]
    return rows + list(traffic.end()), traffic.notes()


def names(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [(row.sender, row.name) for row in rows]


def peering(identity: bytes = b"") -> Talk:
    talk = Talk().handshake(identity)
    return talk.say("C", message(OHAI)).say("S", message(OHAI_OK)).say("C", message(HUGZ))


def test_rows_say_all_that_a_tap_would() -> None:
    talk = peering(b"\x01me")
    rows, notes = read(talk.packets)
    assert names(rows) == [("C", "Ohai"), ("S", "OhaiOk"), ("C", "Hugz")] and notes == []
    first = rows[0]
    assert (first.protocol, first.frames, first.message) == ("filemq", (OHAI,), filemq.Ohai())
    assert (first.peer, first.listener) == ("016d65", "127.0.0.1:5670")
    assert first.mono == talk.packets[-3].time_ns and first.ts == first.mono // 1000
    assert len({row.conversation for row in rows}) == 1


def test_peer_without_an_identity_has_its_address() -> None:
    rows, _ = read(peering().packets)
    assert {row.peer for row in rows} == {"127.0.0.1:40000"}


def test_flux_peers_are_known_by_their_uuid() -> None:
    """A delimiter, a topic, and the header of an event: type 4, flags topic 1 and route 8."""
    uuid = b"c7d7af97-9aec-47b2-9005-b83ae08b925a"
    event = [b"", b"heartbeat.pulse", b"\x8e\x01\x04\x09" + bytes(16)]
    (row,) = read(Talk().handshake(uuid).say("S", message(*event)).packets)[0]
    assert (row.protocol, row.sender, row.name, row.peer) == ("flux", "S", "Event", uuid.decode())


def test_over_ipv6() -> None:
    talk = Talk(client=("::1", 5), server=("::1", 5670)).handshake().say("C", message(OHAI))
    (row,) = read(talk.packets)[0]
    assert (row.peer, row.listener) == ("[::1]:5", "[::1]:5670")


def test_multipart_message_in_many_segments_has_the_time_of_the_last() -> None:
    frames = [b"", b"t" * 300, b"p" * 5000]
    talk = Talk().handshake().say("C", message(*frames), cut=100)
    (row,) = read(talk.packets)[0]
    assert list(row.frames) == frames and row.mono == talk.packets[-1].time_ns
    assert row.error == "a message of none of the protocols flux, filemq, libfilemq"


def test_malformed_message_keeps_its_frames_and_error() -> None:
    rows, _ = read(peering().say("C", message(b"\xaa\xa3\x63")).say("C", message(HUGZ)).packets)
    assert names(rows)[3:] == [("C", ""), ("C", "Hugz")]
    assert (
        rows[3].protocol == "filemq" and rows[3].frames == (b"\xaa\xa3\x63",) and "0x63" in str(rows[3].error)
    )


def test_broken_first_message_is_an_error_of_the_protocol_that_the_next_one_tells() -> None:
    """AA A3 01 is OHAI, whose protocol is a string of 6 octets; 3 are there. The second tells that it is FILEMQ."""
    cut = b"\xaa\xa3\x01\x06FIL"
    talk = Talk().handshake().say("C", message(cut)).say("S", message(b"?")).say("C", message(OHAI))
    rows, _ = read(talk.packets)
    assert names(rows) == [("C", ""), ("S", ""), ("C", "Ohai")]
    assert {row.protocol for row in rows} == {"filemq"} and [row.frames for row in rows[:2]] == [
        (cut,),
        (b"?",),
    ]
    assert "OHAI.protocol at octet 3" in str(rows[0].error)
    assert [row.mono for row in rows] == [packet.time_ns for packet in talk.packets[-3:]]


def test_connection_that_never_tells_its_protocol_has_its_rows_at_its_end() -> None:
    talk = Talk().handshake().say("C", message(b"?"))
    traffic = Traffic(lambda opener, listener: (flux, filemq))
    assert [row for packet in talk.packets for row in traffic.take(packet)] == []
    (open_end,), (closed,) = read(talk.packets)[0], read(talk.close().packets)[0]
    for row in (open_end, closed):
        assert (row.protocol, row.frames) == (None, (b"?",))


def test_few_messages_wait_for_their_protocol() -> None:
    """The 33rd that cannot be read is one too many; from then on each comes out at once."""
    talk = Talk().handshake()
    for number in range(34):
        talk.say("C", message(b"?%d" % number))
    traffic = Traffic(lambda opener, listener: (flux, filemq))
    counts = [len(list(traffic.take(packet))) for packet in talk.packets]
    assert counts[-34:] == [0] * 32 + [33, 1]


def test_octets_that_are_no_zmtp_are_a_row_too() -> None:
    rows, _ = read(peering().say("C", b"\x63\x63").say("C", message(HUGZ)).packets)
    assert names(rows)[3:] == [("C", ""), ("C", "Hugz")]
    assert str(rows[3].error).startswith("no ZMTP here: ") and rows[3].frames == ()


def test_recording_that_begins_in_the_middle() -> None:
    packets = peering().packets
    rows, notes = read(packets[-2:])
    assert names(rows) == [("S", "OhaiOk"), ("C", "Hugz")] and notes == []


def test_packets_that_are_missing_cost_the_messages_in_them() -> None:
    """One of three messages was not recorded; the others are read, and the loss is told in octets."""
    talk = Talk().handshake().say("C", message(OHAI)).say("C", message(HUGZ)).say("C", message(HUGZ))
    del talk.packets[-2]
    rows, notes = read(talk.close().packets)
    assert names(rows) == [("C", "Ohai"), ("C", "Hugz")]
    assert notes == ["5 octets of TCP are missing from the recording, in 1 place; messages there are lost"]


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (greeting(b"CURVE"), "it is encrypted (CURVE)"),
        (b"\xff" + bytes(8) + b"\x7f\x01\x05", "it is ZMTP 2 (libzmq 3)"),
    ],
)
def test_connections_that_cannot_be_read_are_told(octets: bytes, why: str) -> None:
    rows, notes = read(Talk().open().say("C", octets).say("S", octets).say("C", b"secret").close().packets)
    assert rows == [] and notes == [f"127.0.0.1:40000 to 127.0.0.1:5670 cannot be read: {why}"]


def test_other_traffic_is_passed_over_and_counted() -> None:
    web = (
        Talk(server=("10.0.0.1", 80)).open().say("C", b"GET / HTTP/1.1\r\n").say("S", b"HTTP/1.1 200 OK\r\n")
    )
    middle = Talk(server=("10.0.0.2", 22)).open().say("S", bytes(range(100, 200)))
    odd = [Packet(0, 127, b"radio"), Packet(0, ETHERNET, b"short")]
    rows, notes = read(web.packets + middle.packets[3:] + odd)
    assert rows == []
    assert notes == [
        "2 TCP connections passed over: no ZMTP was recognised",
        "1 packet of link types that are not read (127)",
        "1 packet: damaged or cut off in their headers",
    ]
    assert read([])[1] == ["no TCP connection with octets in 0 packets"]


def test_notes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to one listener are told together, and no more than so many listeners."""
    monkeypatch.setattr("specwire.runtime.pcap.traffic.MAX_NOTES", 1)
    talks = [
        Talk(client=("127.0.0.1", port), server=("127.0.0.1", server))
        .open()
        .say("C", greeting(b"CURVE"))
        .close()
        for port, server in ((1, 5670), (2, 5670), (3, 5671))
    ]
    _, notes = read([packet for talk in talks for packet in talk.packets])
    assert notes == [
        "2 connections to 127.0.0.1:5670 cannot be read: it is encrypted (CURVE)",
        "1 more connection cannot be read",
    ]


@settings(max_examples=examples(30), deadline=None)
@given(
    damage=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=8),
    order=st.permutations(range(20)),
    kept=st.integers(1, 20),
)
def test_any_damage_and_order_give_rows(damage: list[tuple[int, int]], order: list[int], kept: int) -> None:
    """Packets of a peering, damaged anywhere, shuffled, some left out: rows or notes, never an exception."""
    packets = peering(b"me").say("C", b"\x63").say("S", message(b"x" * 300, b"")).close().packets
    octets = [bytearray(packets[place].octets) for place in order[:kept] if place < len(packets)]
    for place, value in damage:
        packet = octets[place % len(octets)] if octets else bytearray(1)
        packet[place % len(packet)] = value
    rows, notes = read([Packet(number, ETHERNET, bytes(packet)) for number, packet in enumerate(octets)])
    assert all((row.message is None) == (row.error is not None) for row in rows)
    assert all(isinstance(note, str) for note in notes)


def test_only_one_port() -> None:
    other = Talk(server=("127.0.0.1", 5555)).handshake().say("C", message(OHAI))
    rows, _ = read(peering().packets + other.packets, port=5555)
    assert {row.listener for row in rows} == {"127.0.0.1:5555"}


def test_packages_by_connection() -> None:
    """HUGZ alone is read by both dialects; who chooses by the port settles it."""
    talk = Talk().handshake().say("C", message(HUGZ))
    assert read(talk.packets, [libfilemq])[0][0].protocol == "libfilemq"
    assert read(talk.packets)[0][0].protocol == "filemq"
