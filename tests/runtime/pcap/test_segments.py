"""From packets to TCP segments, over every link layer that is read."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.pcap.packets import Packet
from specwire.runtime.pcap.segments import ACK, SYN, Address, Segment, Unread, read_segment
from tests.runtime.pcap.wire import dpkt, tcp_packet

V4 = Segment(
    5, Address(bytes([10, 0, 0, 1]), 4000), Address(bytes([10, 0, 0, 2]), 80), 7, 9, SYN | ACK, b"hello"
)
V6 = V4._replace(
    source=Address(ip_address("fe80::1").packed, 4000), target=Address(ip_address("::1").packed, 80)
)


def ip_of(segment: Segment) -> bytes:
    return tcp_packet(segment)[14:]


@pytest.mark.parametrize("segment", [V4, V6], ids=["IPv4", "IPv6"])
def test_ethernet(segment: Segment) -> None:
    assert read_segment(Packet(5, 1, tcp_packet(segment))) == segment


@pytest.mark.parametrize("segment", [V4, V6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("link", [1, 113, 276, 0, 108, 12, 101, 228, 229])
def test_link_layers(link: int, segment: Segment) -> None:
    """113: protocol in the last of 16 octets; 276: in the first of 20; 0 and 108: the family in 4 octets."""
    kind = struct.pack(">H", 0x0800 if len(segment.source.host) == 4 else 0x86DD)
    heads = {
        1: bytes(12) + kind,
        113: bytes(14) + kind,
        276: kind + bytes(18),
        0: b"\x02\0\0\0",
        108: b"\0\0\0\x02",
    }
    assert read_segment(Packet(5, link, heads.get(link, b"") + ip_of(segment))) == segment


def test_vlan_tags() -> None:
    octets = tcp_packet(V4)
    tagged = octets[:12] + b"\x88\xa8\x00\x01\x81\x00\x00\x02" + octets[12:]
    assert read_segment(Packet(5, 1, tagged)) == V4


def test_padding_is_no_payload() -> None:
    """A packet shorter than 60 octets is padded; the IP header says where it ends."""
    segment = V4._replace(payload=b"")
    padded = tcp_packet(segment, pad=True)
    assert len(padded) == 60 and read_segment(Packet(5, 1, padded)) == segment


def test_cut_off_packet_says_what_is_missing() -> None:
    octets = tcp_packet(V4)
    assert read_segment(Packet(5, 1, octets[:-2])) == V4._replace(payload=b"hel", missing=2)
    assert read_segment(Packet(5, 1, octets[:-7])) == V4._replace(payload=b"", missing=5)
    assert read_segment(Packet(5, 1, octets[:40])) is Unread.MALFORMED


def test_offloaded_packet_has_no_length() -> None:
    octets = bytearray(tcp_packet(V4))
    octets[16:18] = b"\0\0"
    assert read_segment(Packet(5, 1, bytes(octets))) == V4


def test_ipv6_extension_headers() -> None:
    """Hop-by-hop (0) of 8 octets, then an atomic fragment header (44), then TCP (6)."""
    ip = bytearray(ip_of(V6))
    extra = b"\x2c\x00" + bytes(6) + b"\x06\x00\x00\x00" + bytes(4)
    ip[6] = 0
    ip[4:6] = struct.pack(">H", len(ip) - 40 + len(extra))
    assert read_segment(Packet(5, 101, bytes(ip[:40]) + extra + bytes(ip[40:]))) == V6


def test_what_is_no_segment() -> None:
    fragment = bytearray(tcp_packet(V4))
    fragment[20] = 0x20
    assert read_segment(Packet(5, 1, bytes(fragment))) is Unread.FRAGMENT
    ip = dpkt.ip.IP(p=17, data=dpkt.udp.UDP(sport=1, dport=2))
    ip.len = len(ip)
    assert read_segment(Packet(5, 1, bytes(dpkt.ethernet.Ethernet(data=ip)))) is Unread.OTHER
    assert (
        read_segment(Packet(5, 1, bytes(dpkt.ethernet.Ethernet(type=0x0806, data=b"x" * 28)))) is Unread.OTHER
    )
    assert read_segment(Packet(5, 127, b"x" * 90)) is Unread.LINK
    assert read_segment(Packet(5, 1, b"")) is Unread.MALFORMED


@given(st.sampled_from([0, 1, 101, 113, 276]), st.binary(max_size=120))
def test_any_octets_give_a_segment_or_a_reason(link: int, octets: bytes) -> None:
    found = read_segment(Packet(0, link, octets))
    assert isinstance(found, Unread) or len(found.payload) <= len(octets)


@given(st.integers(0, 80), st.integers(0, 255), st.sampled_from([V4, V6]))
def test_any_damaged_header_gives_a_segment_or_a_reason(place: int, value: int, segment: Segment) -> None:
    octets = bytearray(tcp_packet(segment))
    octets[place % len(octets)] = value
    found = read_segment(Packet(0, 1, bytes(octets)))
    assert isinstance(found, Segment | Unread)


def test_addresses_as_text() -> None:
    assert str(V4.source) == "10.0.0.1:4000" and str(V6.source) == "[fe80::1]:4000"
