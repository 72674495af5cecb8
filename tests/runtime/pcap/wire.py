"""Recorded traffic made by hand: packets by dpkt, ZMTP octets written out as RFC 37 has them.

dpkt is the other implementation here: what the product reads was laid out by it, not by us.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from ipaddress import ip_address

import pytest

from specwire.runtime.pcap.packets import Packet
from specwire.runtime.pcap.segments import ACK, FIN, RST, SYN, Segment, read_segment

dpkt = pytest.importorskip("dpkt")

ETHERNET = 1
NULL_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(16) + b"\x00" + bytes(31)


def greeting(mechanism: bytes = b"NULL", minor: int = 1) -> bytes:
    """The 64 octets: signature 10, version 2, mechanism 20, as-server 1, filler 31."""
    return b"\xff" + bytes(8) + b"\x7f\x03" + bytes([minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def ready(socket_type: bytes, identity: bytes = b"") -> bytes:
    """READY: name with a 1-octet length, value with a 4-octet length, twice."""
    metadata = b"\x0bSocket-Type" + len(socket_type).to_bytes(4, "big") + socket_type
    metadata += b"\x08Identity" + len(identity).to_bytes(4, "big") + identity
    return command(b"READY", metadata)


def command(name: bytes, data: bytes = b"") -> bytes:
    body = bytes([len(name)]) + name + data
    return b"\x04" + bytes([len(body)]) + body


def message(*frames: bytes) -> bytes:
    """Frames with flags 1 (more) or 0, in the long form (2) over 255 octets."""
    octets = b""
    for index, frame in enumerate(frames):
        flags = int(index < len(frames) - 1)
        long = len(frame) > 255
        size = len(frame).to_bytes(8 if long else 1, "big")
        octets += bytes([flags | 2 * long]) + size + frame
    return octets


def tcp_packet(segment: Segment, *, pad: bool = False) -> bytes:
    """An Ethernet packet that carries a segment."""
    tcp = dpkt.tcp.TCP(
        sport=segment.source.port,
        dport=segment.target.port,
        seq=segment.seq % 2**32,
        ack=segment.ack % 2**32,
        flags=segment.flags,
        data=segment.payload,
    )
    if len(segment.source.host) == 4:
        kind = dpkt.ethernet.ETH_TYPE_IP
        ip = dpkt.ip.IP(src=segment.source.host, dst=segment.target.host, p=6, data=tcp)
        ip.len = len(ip)
    else:
        kind = dpkt.ethernet.ETH_TYPE_IP6
        ip = dpkt.ip6.IP6(src=segment.source.host, dst=segment.target.host, nxt=6, data=tcp, plen=len(tcp))
    octets = bytes(dpkt.ethernet.Ethernet(type=kind, data=ip))
    return octets.ljust(60, b"\xaa") if pad else octets


def pcap(packets: Iterable[Packet], *, nano: bool = False) -> bytes:
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, nano=nano)
    for packet in packets:
        seconds, rest = divmod(packet.time_ns, 10**9)
        from decimal import Decimal

        writer.writepkt(packet.octets, ts=Decimal(seconds) + Decimal(rest) / 10**9)
    return file.getvalue()


class Talk:
    """One TCP connection as packets, one after another, a millisecond apart.

    Attributes:
        packets: what a recorder that misses nothing sees.
    """

    CLIENT, SERVER = "C", "S"

    def __init__(
        self,
        *,
        client: tuple[str, int] = ("127.0.0.1", 40_000),
        server: tuple[str, int] = ("127.0.0.1", 5670),
        isn: tuple[int, int] = (1000, 9000),
        start_ns: int = 1_772_366_400 * 10**9,
    ) -> None:
        from specwire.runtime.pcap.segments import Address

        self._ends = {
            "C": Address(ip_address(client[0]).packed, client[1]),
            "S": Address(ip_address(server[0]).packed, server[1]),
        }
        self._next = {"C": isn[0], "S": isn[1]}
        self._now_ns = start_ns
        self.packets: list[Packet] = []

    def open(self) -> Talk:
        self._add("C", SYN, b"")
        self._add("S", SYN | ACK, b"")
        return self.acknowledge("C")

    def say(self, side: str, octets: bytes, *, cut: int = 1460) -> Talk:
        for at in range(0, len(octets), cut):
            self._add(side, ACK, octets[at : at + cut])
        return self

    def acknowledge(self, side: str) -> Talk:
        self._add(side, ACK, b"")
        return self

    def close(self) -> Talk:
        self._add("C", FIN | ACK, b"")
        self._add("S", FIN | ACK, b"")
        return self.acknowledge("C")

    def reset(self, side: str) -> Talk:
        self._add(side, RST, b"")
        return self

    def handshake(self, identity: bytes = b"") -> Talk:
        """Open, and come to the end of a NULL handshake between a DEALER and a ROUTER."""
        self.open()
        for side, own in (("C", ready(b"DEALER", identity)), ("S", ready(b"ROUTER"))):
            self.say(side, greeting()[:10]).say(side, greeting()[10:11]).say(side, greeting()[11:]).say(
                side, own
            )
        return self

    def _add(self, side: str, flags: int, payload: bytes) -> None:
        other = "S" if side == "C" else "C"
        segment = Segment(
            self._now_ns,
            self._ends[side],
            self._ends[other],
            self._next[side],
            self._next[other] if flags & ACK else 0,
            flags,
            payload,
        )
        self._next[side] += len(payload) + bool(flags & (SYN | FIN))
        self.packets.append(Packet(self._now_ns, ETHERNET, tcp_packet(segment)))
        self._now_ns += 1_000_000


def segments_of(packets: Iterable[Packet]) -> list[Segment]:
    found = [read_segment(packet) for packet in packets]
    assert all(isinstance(segment, Segment) for segment in found)
    return [segment for segment in found if isinstance(segment, Segment)]
