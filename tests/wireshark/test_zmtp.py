"""ZMTP on TCP: segments cut anywhere, handshakes, what cannot be read, and which protocol a connection carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generated import cmb1, filemq, libfilemq, zre
from tests.generated.vectors import entries
from tests.wireshark.traffic import Connection, greeting, message, ready, write_pcap
from tests.wireshark.tshark import NEEDS_TSHARK, Shown, dissect

pytestmark = NEEDS_TSHARK

CONVERSATION = (
    filemq.Ohai(),
    filemq.Icanhaz(path="/photos", options=(("RESYNC", "1"),)),
    filemq.Nom(credit=1_000_000),
    filemq.Kthxbai(),
)
NAMES = ["OHAI", "ICANHAZ", "NOM", "KTHXBAI"]
PORT = 7777
"""A port that neither Wireshark nor the dissectors know."""


def shown(tmp_path: Path, dissectors: dict[str, Path], *connections: Connection) -> list[list[Shown]]:
    """Return what is shown of each connection, packet by packet."""
    path = tmp_path / "capture.pcap"
    write_pcap(path, connections)
    packets = iter(dissect(path, list(dissectors.values())))
    return [[next(packets) for _ in connection.segments] for connection in connections]


def names(packets: list[Shown], protocol: str) -> list[str]:
    """Return the messages of a protocol in their order."""
    return [name for packet in packets for name in packet.values(f"{protocol}.message_name")]


def faults(packets: list[Shown]) -> list[str]:
    """Return what is said of the packets, chatter of TCP left out."""
    return [fault for packet in packets for fault in packet.faults if "ACK" not in fault]


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory, dissectors: dict[str, Path]) -> dict[str, list[Shown]]:
    """Connections of every kind in one capture, shown: one run of tshark for all of the tests."""
    made = connections()
    found = shown(tmp_path_factory.mktemp("zmtp"), dissectors, *made.values())
    return dict(zip(made, found, strict=True))


def connections() -> dict[str, Connection]:
    """Return the connections, each with a client's port of its own."""
    made: dict[str, Connection] = {}

    def connection(name: str, server: int = PORT) -> Connection:
        made[name] = Connection(port=40000 + len(made), server=server)
        return made[name]

    octets = b"".join(message(one.encode()) for one in CONVERSATION)
    for size in (1, 7, 1400):
        cut = connection(f"segments of {size}")
        cut.greet()
        cut.send(octets, sizes=[size] * len(octets))
    in_pieces = connection("greeting in pieces")
    in_pieces.send(greeting() + ready("DEALER") + octets, sizes=(11, 1, 52, 3))

    large = connection("large frames")
    large.greet()
    large.send(message(filemq.Cheezburger(1, 1, "/a", 0, (), bytes(100_000)).encode()), client=False)
    large.send(message(filemq.Hugz().encode()), client=False)

    between = connection("a command between frames")
    between.greet()
    frames = zre.Whisper(sequence=1, content=(b"a", b"b")).encode()
    first, rest = message([*frames[:1], b""])[:-2], message(frames[1:])
    between.send(first + b"\x04\x07\x04PING\x00\x0a" + rest)

    for name, others in (
        ("libfilemq", libfilemq.Ohai()),
        ("cmb1", cmb1.Keepalive()),
        ("zre", zre.Ping(sequence=1)),
    ):
        carried = connection(f"carries {name}")
        carried.greet()
        carried.send(message(others.encode()))
        carried.send(message([b"\xaa\xa1\x06"]))

    both = connection("both sides")
    both.greet()
    both.send(message(filemq.Hugz().encode()))
    both.send(message(filemq.HugzOk().encode()), client=False)

    unknown = connection("an unknown protocol")
    unknown.greet("PUSH", "PULL")
    unknown.send(message([b"hello", b"world"]))

    curve = connection("CURVE")
    curve.greet(mechanism="CURVE")
    curve.send(b"\x04\x16\x05HELLO" + bytes(range(16)))
    curve.send(b"\x04\x16\x05READY" + bytes(range(16)), client=False)
    curve.send(message([b"\x07MESSAGE" + bytes(range(40))]))

    plain = connection("PLAIN")
    plain.greet(mechanism="PLAIN")
    plain.send(b"\x04\x0e\x05HELLO\x03bob\x03pwd")
    plain.send(b"\x04\x08\x07WELCOME", client=False)
    plain.send(b"\x04\x1f\x08INITIATE\x0bSocket-Type\x00\x00\x00\x06DEALER")
    plain.send(message(filemq.Ohai().encode()))

    older = connection("ZMTP 2")
    older.send(b"\xff\0\0\0\0\0\0\0\1\x7f\1\5\0\0")
    three = connection("ZMTP 3.0")
    three.send(greeting(version=b"\3\0") + ready("DEALER") + octets)

    http = connection("HTTP at a port of ZeroMQ", 5555)
    http.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    late = connection("a capture that begins late", 5555)
    late.send(octets)
    broken = connection("not ZMTP any more")
    broken.greet()
    broken.send(b"\x09" + octets)
    huge = connection("a size beyond belief")
    huge.greet()
    huge.send(b"\x02" + (2**62).to_bytes(8) + b"abc")

    recorded = connection("libzmq's own")
    recorded.send(greeting())
    for entry in entries("zmtp-libzmq-4.3.5.json"):
        recorded.send(bytes.fromhex(entry["frames_hex"][0]))
    return made


@pytest.mark.parametrize("size", [1, 7, 1400])
def test_messages_are_found_however_the_stream_is_cut(packets: dict[str, list[Shown]], size: int) -> None:
    found = packets[f"segments of {size}"]
    assert names(found, "filemq") == NAMES
    assert faults(found) == []
    assert [one for packet in found for one in packet.values("filemq.credit")] == ["1000000"]


def test_a_greeting_in_pieces_is_known_by_its_first_ten_octets(packets: dict[str, list[Shown]]) -> None:
    found = packets["greeting in pieces"]
    assert names(found, "filemq") == NAMES
    assert faults(found) == []


def test_a_frame_of_many_segments_is_put_together(packets: dict[str, list[Shown]]) -> None:
    found = packets["large frames"]
    assert names(found, "filemq") == ["CHEEZBURGER", "HUGZ"]
    assert [len(one) for packet in found for one in packet.octets("filemq.chunk")] == [200_000]
    assert [one for packet in found for one in packet.values("filemq.sender")] == ["server"] * 2


def test_a_command_may_stand_between_the_frames_of_a_message(packets: dict[str, list[Shown]]) -> None:
    found = packets["a command between frames"]
    assert names(found, "zre") == ["whisper"]
    assert [one for packet in found for one in packet.octets("zre.content")] == [b"a".hex(), b"b".hex()]
    assert names(found, "zmtp")[-1] == "ping"
    assert [one for packet in found for one in packet.values("zmtp.ping_ttl")] == ["10"]
    assert faults(found) == []


@pytest.mark.parametrize("name", ["libfilemq", "cmb1", "zre"])
def test_the_protocol_is_the_one_that_reads_the_message_without_fault(
    packets: dict[str, list[Shown]], name: str
) -> None:
    """FILEMQ's and libfilemq's OHAI begin alike, and so do Flux v1 and CMB1; only one of them fits."""
    found = packets[f"carries {name}"]
    assert found[4].layers()[:2] == ["zmtp", name]
    assert found[4].faults == []


def test_a_connection_keeps_its_protocol_when_a_message_is_malformed(packets: dict[str, list[Shown]]) -> None:
    assert packets["carries zre"][5].layers() == ["zmtp", "zre"]
    assert packets["carries zre"][5].faults == [
        "ping.version at octet 3: expected 1 octet, found 0 [ZRE v2 version]"
    ]


def test_the_socket_types_of_the_handshake_tell_the_sender(packets: dict[str, list[Shown]]) -> None:
    found = packets["both sides"]
    assert found[4].values("filemq.sender") == ["client"]
    assert found[5].values("filemq.sender") == ["server"]


def test_frames_of_an_unknown_protocol_are_shown_as_frames(packets: dict[str, list[Shown]]) -> None:
    found = packets["an unknown protocol"][-1]
    assert found.layers() == ["zmtp"]
    assert found.octets("zmtp.message_body") == [b"hello".hex(), b"world".hex()]
    assert found.faults == []


def test_under_curve_commands_have_names_and_messages_stay_closed(packets: dict[str, list[Shown]]) -> None:
    found = packets["CURVE"]
    assert [one for packet in found for one in packet.values("zmtp.command_name")] == ["HELLO", "READY"]
    assert found[-1].layers() == ["zmtp"]
    assert faults(found) == ["CURVE: the message is encrypted"]


def test_under_plain_messages_can_be_read(packets: dict[str, list[Shown]]) -> None:
    found = packets["PLAIN"]
    assert [one for packet in found for one in packet.values("zmtp.command_name")] == [
        "HELLO",
        "WELCOME",
        "INITIATE",
    ]
    assert names(found, "filemq") == ["OHAI"]
    assert found[-1].values("filemq.sender") == ["client"]
    assert faults(found) == []


def test_older_editions_are_refused_by_name_and_3_0_is_read(packets: dict[str, list[Shown]]) -> None:
    assert faults(packets["ZMTP 2"]) == ["a greeting of another version than ZMTP 3"]
    assert names(packets["ZMTP 3.0"], "filemq") == NAMES
    assert faults(packets["ZMTP 3.0"]) == []


def test_other_traffic_at_a_port_of_zeromq_is_left_to_others(packets: dict[str, list[Shown]]) -> None:
    assert packets["HTTP at a port of ZeroMQ"][0].layers() == []


def test_a_capture_that_begins_late_needs_the_port(packets: dict[str, list[Shown]]) -> None:
    assert names(packets["a capture that begins late"], "filemq") == NAMES


@pytest.mark.parametrize("name", ["not ZMTP any more", "a size beyond belief"])
def test_what_is_no_unit_is_flagged_and_ends_there(packets: dict[str, list[Shown]], name: str) -> None:
    assert faults(packets[name]) == [
        "these octets begin no ZMTP unit, or the unit exceeds the limit in the preferences"
    ]


def test_units_that_libzmq_wrote_are_shown_as_recorded(packets: dict[str, list[Shown]]) -> None:
    found = packets["libzmq's own"][1:]
    wanted = entries("zmtp-libzmq-4.3.5.json")
    names_of_commands = [one["message"] for one in wanted if not one["message"].startswith("message-")]
    assert names(found, "zmtp") == names_of_commands
    bodies = [one["fields"]["message_body"] for one in wanted if "message_body" in one["fields"]]
    assert [one for packet in found for one in packet.octets("zmtp.message_body")] == bodies
    properties = [pair for one in wanted for pair in one["fields"].get("metadata", ())]
    assert [one for packet in found for one in packet.values("zmtp.metadata.name")] == [
        name for name, _ in properties
    ]
    assert [one for packet in found for one in packet.octets("zmtp.metadata.value")] == [
        value for _, value in properties
    ]
    assert faults(found) == []
