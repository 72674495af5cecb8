"""Containers of recorded packets: classic pcap and pcapng, in portions of any size.

A `PacketReader` tells by the first four octets which of the two it is given, and in which byte order. It holds no
more than one unfinished record, and a record that says it is longer than `MAX_RECORD` is a fault: a length is
never believed before the octets are there. So the same reader serves a file, a pipe and a file that grows.

Times are nanoseconds since 1970 UTC, whatever the file counts in. Of pcapng, blocks that hold no packet and
describe no interface are passed over; a section begins anew with interfaces of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from specwire.runtime.pcap.errors import PcapError

MAX_RECORD = 16 << 20
"""Octets of the longest record that is believed; the largest packets that are recorded have half a mebioctet."""

NS = 1_000_000_000
LATEST_NS = 2**63 - 1
"""In the year 2262; a time that is later, or before 1970, is a damaged one, and the nearest of these is taken."""

_ORDERS: tuple[tuple[str, Literal["little", "big"]], ...] = (("<", "little"), (">", "big"))
_PCAP_FRACTIONS = {0xA1B2C3D4: 1_000, 0xA1B23C4D: 1}
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_RESOLUTION, _OFFSET = 9, 14


class Packet(NamedTuple):
    """One recorded packet.

    Attributes:
        time_ns: when it was seen, nanoseconds since 1970 UTC.
        link: number of the link type (LINKTYPE_...), which says what the octets begin with.
        octets: what was recorded of it.
    """

    time_ns: int
    link: int
    octets: bytes


class _Interface(NamedTuple):
    link: int
    units: int
    """Of time in a second."""
    offset_ns: int
    snap: int
    """Most octets recorded of a packet, 0 for all."""


def is_packets(beginning: bytes) -> bool:
    """Say whether a file that begins with these octets (at least four) is of one of the two containers."""
    if len(beginning) < 4:
        return False
    words = {int.from_bytes(beginning[:4], name) for _, name in _ORDERS}
    return bool(words & {*_PCAP_FRACTIONS, _SECTION})


def holds_packets(path: Path) -> bool:
    """Return whether a file begins like a packet capture; False if it cannot be read."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return is_packets(file.read(4))
    except OSError:
        return False


class PacketReader:
    """Takes the octets of a container as they come and gives whole packets.

    Attributes:
        taken: octets that were understood so far; where it stopped, a fault lies.
    """

    def __init__(self) -> None:
        self.taken = 0
        self._buffer = bytearray()
        self._step: Callable[[int], tuple[int, Packet | None] | None] = self._begin
        self._order = "<"
        self._fraction_ns = 1
        self._link = 0
        self._interfaces: list[_Interface] = []
        self._last_ns = 0

    def feed(self, octets: bytes) -> Iterator[Packet]:
        """Take octets and yield the packets that they complete; iterate to the end before the next call.

        Raises:
            PcapError: this is no such container, or it is damaged here. Packets before the fault came out.
        """
        self._buffer += octets
        at = 0
        try:
            while (found := self._step(at)) is not None:
                self.taken += found[0] - at
                at, packet = found
                if packet is not None:
                    yield packet
        finally:
            del self._buffer[:at]

    def end(self) -> str | None:
        """Say in one sentence what is missing where the octets end here; None where nothing is."""
        if not self._buffer:
            return None if self.taken else "the file is empty"
        return f"the file ends in the middle of a record, at octet {self.taken + len(self._buffer)}"

    # ---- each step reads one record at `at`, and returns where the next begins, or None while it is not whole

    def _begin(self, at: int) -> tuple[int, Packet | None] | None:
        if len(self._buffer) < at + 4:
            return None
        word = bytes(self._buffer[at : at + 4])
        if int.from_bytes(word, "big") == _SECTION:
            self._step = self._block
            return self._block(at)
        for order, name in _ORDERS:
            magic = int.from_bytes(word, name)
            if magic in _PCAP_FRACTIONS:
                if len(self._buffer) < at + 24:
                    return None
                self._order, self._fraction_ns = order, _PCAP_FRACTIONS[magic]
                # The upper bits say how long a frame check sequence is.
                self._link = struct.unpack_from(order + "I", self._buffer, at + 20)[0] & 0xFFFF
                self._step = self._record
                return at + 24, None
        raise PcapError(f"no pcap and no pcapng file: it begins with {word.hex(' ')}")

    def _record(self, at: int) -> tuple[int, Packet | None] | None:
        """A record of classic pcap."""
        if len(self._buffer) < at + 16:
            return None
        seconds, fraction, held, _ = struct.unpack_from(self._order + "4I", self._buffer, at)
        self._believe(held, "a packet")
        end = at + 16 + held
        if len(self._buffer) < end:
            return None
        time_ns = seconds * NS + fraction * self._fraction_ns
        return end, Packet(time_ns, self._link, bytes(self._buffer[at + 16 : end]))

    def _block(self, at: int) -> tuple[int, Packet | None] | None:
        """A block of pcapng."""
        if len(self._buffer) < at + 12:
            return None
        if int.from_bytes(self._buffer[at : at + 4], "big") == _SECTION:
            self._enter_section(bytes(self._buffer[at + 8 : at + 12]))
        kind, length = struct.unpack_from(self._order + "2I", self._buffer, at)
        self._believe(length, "a block")
        end = at + length
        if length < 12 or length % 4:
            raise self._damaged(f"a block has {length} octets, which no block can have")
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[at + 8 : end - 4])
        if struct.unpack_from(self._order + "I", self._buffer, end - 4)[0] != length:
            raise self._damaged("a block ends with another length than it begins with")
        try:
            return end, self._read_block(kind, body)
        except struct.error as error:
            raise self._damaged(f"a block of type {kind} is too short") from error

    def _enter_section(self, magic: bytes) -> None:
        for order, name in _ORDERS:
            if int.from_bytes(magic, name) == _BYTE_ORDER_MAGIC:
                self._order = order
                self._interfaces = []
                return
        raise self._damaged("a section does not say its byte order")

    def _read_block(self, kind: int, body: bytes) -> Packet | None:
        order = self._order
        if kind == _INTERFACE:
            link, _, snap = struct.unpack_from(order + "HHI", body)
            self._interfaces.append(_Interface(link, *self._clock(body[8:]), snap))
        elif kind == _PACKET:
            number, high, low, held, _ = struct.unpack_from(order + "5I", body)
            return self._packet(number, high << 32 | low, held, body)
        elif kind == _OLD_PACKET:
            number, _, high, low, held, _ = struct.unpack_from(order + "2H4I", body)
            return self._packet(number, high << 32 | low, held, body)
        elif kind == _SIMPLE_PACKET:
            (length,) = struct.unpack_from(order + "I", body)
            interface = self._interface(0)
            held = min(length, interface.snap or length)
            if held > len(body) - 4:
                raise self._damaged("a packet is longer than its block")
            # Such packets have no time: the one before is nearest.
            return Packet(self._last_ns, interface.link, body[4 : 4 + held])
        return None

    def _packet(self, number: int, time: int, held: int, body: bytes) -> Packet:
        interface = self._interface(number)
        if held > len(body) - 20:
            raise self._damaged("a packet is longer than its block")
        stated_ns = time * NS // interface.units + interface.offset_ns
        self._last_ns = max(0, min(stated_ns, LATEST_NS))
        return Packet(self._last_ns, interface.link, body[20 : 20 + held])

    def _interface(self, number: int) -> _Interface:
        if number >= len(self._interfaces):
            raise self._damaged(f"a packet is of interface {number}, which the file does not describe")
        return self._interfaces[number]

    def _clock(self, options: bytes) -> tuple[int, int]:
        """The units of time in a second and the offset in nanoseconds that an interface's options state."""
        units, offset_ns, at = 1_000_000, 0, 0
        while at + 4 <= len(options):
            code, length = struct.unpack_from(self._order + "2H", options, at)
            value = options[at + 4 : at + 4 + length]
            if code == 0:
                break
            if code == _RESOLUTION and len(value) == 1:
                units = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
            elif code == _OFFSET and len(value) == 8:
                offset_ns = struct.unpack(self._order + "q", value)[0] * NS
            at += 4 + (length + 3) // 4 * 4
        return units, offset_ns

    def _believe(self, length: int, what: str) -> None:
        if length > MAX_RECORD:
            raise self._damaged(f"{what} says that it has {length} octets, more than {MAX_RECORD}")

    def _damaged(self, why: str) -> PcapError:
        return PcapError(f"the file is damaged at octet {self.taken}: {why}")
