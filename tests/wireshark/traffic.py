"""Connections as pcap files, written octet by octet: Ethernet, IPv4, TCP, and ZMTP as libzmq speaks it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SEGMENT = 1400
"""Octets of a segment where nothing else is wanted."""

CLIENT, SERVER = 49152, 5555


@dataclass
class Connection:
    """A TCP connection between two ports of one machine, segment by segment; `port` is the client's."""

    port: int = CLIENT
    server: int = SERVER
    segments: list[tuple[int, int, int, int, bytes]] = field(default_factory=list)
    sent: dict[bool, int] = field(default_factory=lambda: {True: 1, False: 1})

    def send(self, octets: bytes, *, client: bool = True, sizes: Sequence[int] = ()) -> None:
        """Add what one side sends, cut into segments of these sizes, then into usual ones."""
        waiting = iter(sizes)
        while octets:
            size = next(waiting, SEGMENT)
            ports = (self.port, self.server) if client else (self.server, self.port)
            self.segments.append((*ports, self.sent[client], self.sent[not client], octets[:size]))
            self.sent[client] += len(octets[:size])
            octets = octets[size:]

    def greet(self, client: str = "DEALER", server: str = "ROUTER", mechanism: str = "NULL") -> None:
        """Add both greetings, and READY where nothing is encrypted."""
        self.send(greeting(mechanism))
        self.send(greeting(mechanism, server=mechanism != "NULL"), client=False)
        if mechanism == "NULL":
            self.send(ready(client))
            self.send(ready(server), client=False)


def greeting(mechanism: str = "NULL", *, server: bool = False, version: bytes = b"\3\1") -> bytes:
    """Return a greeting: signature 10 octets, version 2, mechanism 20, as-server 1, filler 31 (RFC 37)."""
    signature = b"\xff" + bytes(7) + b"\1" + b"\x7f"
    return signature + version + mechanism.encode().ljust(20, b"\0") + bytes((server,)) + bytes(31)


def ready(socket: str, identity: bytes = b"") -> bytes:
    """Return the command READY with the properties that libzmq sends."""
    properties = ((b"Socket-Type", socket.encode()), (b"Identity", identity))
    body = b"\5READY" + b"".join(
        bytes((len(name),)) + name + len(value).to_bytes(4) + value for name, value in properties
    )
    return bytes((4, len(body))) + body


def message(frames: Sequence[bytes]) -> bytes:
    """Return a message on the stream: flags 1 says that more follow, 2 that the size has 8 octets."""
    octets = b""
    for number, frame in enumerate(frames, 1):
        more = number < len(frames)
        if len(frame) < 256:
            octets += bytes((more, len(frame))) + frame
        else:
            octets += bytes((2 + more,)) + len(frame).to_bytes(8) + frame
    return octets


def write_pcap(path: Path, connections: Iterable[Connection]) -> None:
    """Write the connections one after the other: Ethernet, IPv4 and TCP headers without check sums."""
    records = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)]
    moment = 0
    for connection in connections:
        for source, target, sequence, answer, octets in connection.segments:
            tcp = struct.pack(">HHIIBBHHH", source, target, sequence, answer, 0x50, 0x18, 65535, 0, 0)
            total = 20 + len(tcp) + len(octets)
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, total, 0, 0, 64, 6, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
            packet = bytes(12) + b"\x08\0" + ip + tcp + octets
            moment += 1
            records.append(struct.pack("<IIII", 1_700_000_000, moment, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(records))
