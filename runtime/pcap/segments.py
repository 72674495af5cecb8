"""From a recorded packet to its TCP segment: link layer, IP, TCP.

Link layers: Ethernet (with VLAN tags), Linux cooked v1 and v2, BSD loopback, raw IP. Lengths are those of the
IP header, not those of the packet: Ethernet pads short packets. What a recorder cut off the end of a packet
counts as `missing`. Checksums are not looked at: network cards compute them after the recorder has seen the packet.

Fragments of IP datagrams are not put together; TCP avoids them.
"""

from __future__ import annotations

import struct
from enum import Enum
from socket import AF_INET, AF_INET6, inet_ntop
from typing import NamedTuple

from specwire.runtime.pcap.packets import Packet

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

_TCP = 6
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN = {0x8100, 0x88A8, 0x9100}
_OPTIONS = {0, 43, 60}
"""IPv6 headers that say their length in units of 8 octets: hop-by-hop options, routing, destination options."""
_FRAGMENT, _AUTHENTICATION = 44, 51

_ADDRESSED = {1: 14, 113: 16, 276: 20}
"""Octets of the headers that name what follows by its EtherType: Ethernet, Linux cooked v1 and v2."""
_PLAIN = {0: 4, 12: 0, 14: 0, 101: 0, 108: 4, 228: 0, 229: 0}
"""Octets of the headers after which IP follows in any case: loopback, raw IP."""


class Unread(Enum):
    """Why a packet gives no segment."""

    LINK = "link types that are not read"
    OTHER = "no TCP"
    FRAGMENT = "fragments of IP datagrams, which are not put together"
    MALFORMED = "damaged or cut off in their headers"


class Address(NamedTuple):
    """One end of a connection."""

    host: bytes
    port: int

    def __str__(self) -> str:
        if len(self.host) == 4:
            return f"{inet_ntop(AF_INET, self.host)}:{self.port}"
        return f"[{inet_ntop(AF_INET6, self.host)}]:{self.port}"


class Segment(NamedTuple):
    """One TCP segment.

    Attributes:
        time_ns: when it was seen, nanoseconds since 1970 UTC.
        seq: number of the first octet, or of SYN, modulo 2^32.
        ack: number of the next octet that the sender waits for, modulo 2^32; nothing where ACK is not among `flags`.
        missing: octets at the end of the payload that were not recorded.
    """

    time_ns: int
    source: Address
    target: Address
    seq: int
    ack: int
    flags: int
    payload: bytes
    missing: int = 0


class _Datagram(NamedTuple):
    source: bytes
    target: bytes
    begin: int
    end: int
    """Where the payload ends on the wire, which may be behind what was recorded."""


def read_segment(packet: Packet) -> Segment | Unread:
    """Return the TCP segment in a packet, or why there is none."""
    try:
        at = _find_ip(packet)
        if isinstance(at, Unread):
            return at
        version = packet.octets[at] >> 4
        datagram = (_read_ipv4 if version == 4 else _read_ipv6)(packet.octets, at)
        if isinstance(datagram, Unread):
            return datagram
        return _read_tcp(packet, datagram)
    except (IndexError, struct.error):
        return Unread.MALFORMED


def _find_ip(packet: Packet) -> int | Unread:
    octets = packet.octets
    if packet.link in _PLAIN:
        at = _PLAIN[packet.link]
        return at if octets[at] >> 4 in (4, 6) else Unread.OTHER
    if packet.link not in _ADDRESSED:
        return Unread.LINK
    at = _ADDRESSED[packet.link]
    (kind,) = struct.unpack_from(">H", octets, 0 if packet.link == 276 else at - 2)
    while kind in _VLAN:
        (kind,) = struct.unpack_from(">H", octets, at + 2)
        at += 4
    if kind not in (_IPV4, _IPV6):
        return Unread.OTHER
    return at if octets[at] >> 4 == (4 if kind == _IPV4 else 6) else Unread.MALFORMED


def _read_ipv4(octets: bytes, at: int) -> _Datagram | Unread:
    head, total, fragment, protocol = struct.unpack_from(">BxHxxHxB", octets, at)
    length = (head & 0x0F) * 4
    if len(octets) < at + 20 or length < 20:
        return Unread.MALFORMED
    if protocol != _TCP:
        return Unread.OTHER
    if fragment & 0x3FFF:
        return Unread.FRAGMENT
    # A length of 0 is a packet that the network card is to cut up (segmentation offload).
    end = at + total if total else len(octets)
    return _Datagram(octets[at + 12 : at + 16], octets[at + 16 : at + 20], at + length, end)


def _read_ipv6(octets: bytes, at: int) -> _Datagram | Unread:
    length, kind = struct.unpack_from(">HB", octets, at + 4)
    begin = at + 40
    if len(octets) < begin:
        return Unread.MALFORMED
    end = begin + length if length else len(octets)
    while kind != _TCP:
        if kind == _FRAGMENT:
            kind, place = struct.unpack_from(">BxH", octets, begin)
            if place & 0xFFF9:
                return Unread.FRAGMENT
            begin += 8
        elif kind in _OPTIONS:
            kind, begin = octets[begin], begin + (octets[begin + 1] + 1) * 8
        elif kind == _AUTHENTICATION:
            kind, begin = octets[begin], begin + (octets[begin + 1] + 2) * 4
        else:
            return Unread.OTHER
    return _Datagram(octets[at + 8 : at + 24], octets[at + 24 : at + 40], begin, end)


def _read_tcp(packet: Packet, datagram: _Datagram) -> Segment | Unread:
    octets, at = packet.octets, datagram.begin
    source, target, seq, ack, size, flags = struct.unpack_from(">HHIIBB", octets, at)
    begin = at + (size >> 4) * 4
    if begin < at + 20 or begin > datagram.end:
        return Unread.MALFORMED
    payload = octets[begin : datagram.end]
    return Segment(
        packet.time_ns,
        Address(datagram.source, source),
        Address(datagram.target, target),
        seq,
        ack,
        flags,
        payload,
        datagram.end - begin - len(payload),
    )
