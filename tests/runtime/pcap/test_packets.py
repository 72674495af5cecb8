"""Containers: what others wrote is read, in any portions, and damage is told with its place."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.pcap.errors import PcapError
from specwire.runtime.pcap.packets import Packet, PacketReader, is_packets
from tests.runtime.pcap.wire import dpkt, pcap

TIME_NS = 1_772_366_400_123_456_000
PACKETS = [
    Packet(TIME_NS, 1, b"first"),
    Packet(TIME_NS + 1_000_000, 1, b""),
    Packet(TIME_NS + 2_000_000, 1, b"x" * 3000),
]


def read(octets: bytes, portion: int | None = None) -> list[Packet]:
    reader = PacketReader()
    size = portion or len(octets)
    found = [p for at in range(0, len(octets), size) for p in reader.feed(octets[at : at + size])]
    assert reader.end() is None
    return found


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int, options: bytes = b"", order: str = "<") -> bytes:
    return block(1, struct.pack(order + "HHI", link, 0, 0) + options, order)


def enhanced(number: int, time: int, octets: bytes, order: str = "<") -> bytes:
    head = struct.pack(order + "5I", number, time >> 32, time & 0xFFFFFFFF, len(octets), len(octets))
    return block(6, head + octets + bytes(-len(octets) % 4), order)


@pytest.mark.parametrize("portion", [None, 1, 7])
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_as_dpkt_writes_it(nano: bool, portion: int | None) -> None:
    assert read(pcap(PACKETS, nano=nano), portion) == PACKETS


def test_pcap_of_the_other_byte_order() -> None:
    """Magic, version 2.4, zone, accuracy, snap length, link type; seconds, microseconds, held, length."""
    octets = struct.pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 276)
    octets += struct.pack(">IIII", 5, 7, 3, 3) + b"abc"
    assert read(octets) == [Packet(5_000_007_000, 276, b"abc")]


@pytest.mark.parametrize("portion", [None, 1, 5])
@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_interfaces_have_link_and_clock_of_their_own(order: str, portion: int | None) -> None:
    """if_tsresol 9 is nanoseconds; 0x80 | 10 is 1024ths of a second; if_tsoffset adds seconds."""
    nano = struct.pack(order + "HHB3x", 9, 1, 9)
    binary = struct.pack(order + "HHB3x", 9, 1, 0x8A) + struct.pack(order + "HHq", 14, 8, 100)
    octets = (
        section(order)
        + interface(1, order=order)
        + interface(113, nano, order)
        + interface(101, binary, order)
        + block(5, b"statistics", order)
        + enhanced(0, 1_500_000, b"micro", order)
        + enhanced(1, 1_500_000_001, b"nano", order)
        + enhanced(2, 512, b"two", order)
    )
    assert read(octets, portion) == [
        Packet(1_500_000_000, 1, b"micro"),
        Packet(1_500_000_001, 113, b"nano"),
        Packet(100_500_000_000, 101, b"two"),
    ]


def test_pcapng_as_dpkt_writes_it() -> None:
    import io

    file = io.BytesIO()
    writer = dpkt.pcapng.Writer(file)
    writer.writepkt(b"octets", ts=1_772_366_400.5)
    assert read(file.getvalue()) == [Packet(1_772_366_400_500_000_000, 1, b"octets")]


@pytest.mark.parametrize(("offset_s", "expected"), [(2**62, 2**63 - 1), (-(2**62), 0)])
def test_absurd_times_are_bounded(offset_s: int, expected: int) -> None:
    """What takes them further keeps times in 64 bits."""
    octets = section() + interface(1, struct.pack("<HHq", 14, 8, offset_s)) + enhanced(0, 2**64 - 1, b"")
    assert read(octets) == [Packet(expected, 1, b"")]


def test_sections_and_older_blocks() -> None:
    """A new section describes its interfaces anew, in its own byte order; packets without a time get the last one."""
    old = block(2, struct.pack("<HHIIII", 0, 0, 0, 3_000_000, 2, 2) + b"ab")
    simple = block(3, struct.pack("<I", 3) + b"abc")
    octets = section() + interface(1) + old + simple + section(">") + interface(113, order=">")
    octets += enhanced(0, 1, b"z", ">")
    assert read(octets) == [
        Packet(3_000_000_000, 1, b"ab"),
        Packet(3_000_000_000, 1, b"abc"),
        Packet(1_000, 113, b"z"),
    ]


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"PK\x03\x04", "it begins with 50 4b 03 04"),
        (
            pcap(PACKETS)[:24] + struct.pack("<4I", 0, 0, 0xFFFFFFFF, 1),
            "octet 24: a packet says that it has 4294967295 octets",
        ),
        (
            section() + struct.pack("<II", 6, 0xFFFFFFF0) + bytes(4),
            "a block says that it has 4294967280 octets",
        ),
        (section() + struct.pack("<II", 6, 8) + bytes(4), "a block has 8 octets, which no block can have"),
        (
            section() + enhanced(3, 0, b""),
            "octet 28: a packet is of interface 3, which the file does not describe",
        ),
        (
            section() + interface(1) + block(6, bytes(12) + b"\xff\0\0\0" + bytes(4)),
            "a packet is longer than its block",
        ),
        (section() + block(1, b""), "a block of type 1 is too short"),
        (section()[:-1] + b"\xff", "ends with another length"),
        (block(0x0A0D0D0A, b"what"), "a section does not say its byte order"),
    ],
)
def test_damage_is_told_with_its_place(octets: bytes, reason: str) -> None:
    with pytest.raises(PcapError) as told:
        read(octets)
    assert reason in str(told.value)


def test_packets_before_the_damage_come_out() -> None:
    reader = PacketReader()
    found: list[Packet] = []
    with pytest.raises(PcapError):
        found.extend(reader.feed(pcap(PACKETS) + b"\xff" * 16))
    assert found == PACKETS


def test_what_ends_early_says_so() -> None:
    reader = PacketReader()
    whole = pcap(PACKETS)
    assert list(reader.feed(whole[:-1])) == PACKETS[:2]
    assert reader.end() == f"the file ends in the middle of a record, at octet {len(whole) - 1}"
    assert PacketReader().end() == "the file is empty"


def test_containers_are_told_by_their_beginning() -> None:
    assert is_packets(section()) and is_packets(pcap([])) and is_packets(pcap([], nano=True))
    assert not is_packets(b"PAR1") and not is_packets(b"\xd4\xc3") and not is_packets(b"0000")


@given(st.sampled_from([section() + interface(1), pcap([]), b""]), st.binary(max_size=80), st.integers(1, 30))
def test_any_octets_give_packets_or_a_reason(beginning: bytes, octets: bytes, portion: int) -> None:
    reader = PacketReader()
    whole = beginning + octets
    try:
        for at in range(0, len(whole), portion):
            assert all(isinstance(packet, Packet) for packet in reader.feed(whole[at : at + portion]))
    except PcapError as error:
        assert "octet" in str(error) or "it begins with" in str(error)
