"""What the octets of a hex dump are: frames of messages, a stretch of a ZMTP stream, or whole packets.

A dump does not say. What begins with ZMTP's greeting is a stream. Otherwise the ways to cut it into messages are tried,
and that is believed by which most can be decoded; where none can be, the errors of the plainest are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from specwire.runtime.pcap.choosing import Chooser
from specwire.runtime.pcap.errors import PcapError
from specwire.runtime.pcap.hexdump import Dumped, Kind
from specwire.runtime.pcap.packets import Packet
from specwire.runtime.pcap.rows import Row
from specwire.runtime.pcap.segments import Unread, read_segment
from specwire.runtime.pcap.zmtp_side import Broken, Message, Unreadable, ZmtpSide, is_greeting

ETHERNET = 1


def find_kind(dumped: Dumped) -> Kind:
    """Return what the dumps of a text most likely are."""
    pieces = [piece for message in dumped for piece in message]
    if pieces and is_greeting(b"".join(pieces[:64])[:64]):
        return Kind.STREAM
    packets = (read_segment(Packet(0, ETHERNET, piece)) for piece in pieces)
    return Kind.PACKET if pieces and not any(isinstance(p, Unread) for p in packets) else Kind.FRAME


def read_frames(dumped: Dumped, packages: Sequence[ModuleType], sender: str | None) -> list[Row]:
    """Return the messages, cut in the way by which most can be decoded."""
    frames = [piece for message in dumped for piece in message]
    ways: list[list[list[bytes]]] = [dumped, [frames], [[b"".join(frames)]]]
    tried = [_decode(way, packages, sender) for way in ways]
    return max(tried, key=lambda rows: sum(row.error is None for row in rows) / max(1, len(rows)))


def _decode(messages: Dumped, packages: Sequence[ModuleType], sender: str | None) -> list[Row]:
    chooser, rows = Chooser(packages), []
    for frames in messages:
        reading = chooser.decode(frames, sender)
        rows.append(
            Row(
                frames=tuple(frames),
                sender=sender or "",
                protocol=reading.protocol,
                message=reading.message,
                error=reading.error,
            )
        )
    return rows


def read_stream(
    dumped: Dumped, packages: Sequence[ModuleType], sender: str | None, note: Callable[[str], None]
) -> Iterator[Row]:
    """Yield the messages in what one side of a connection sent.

    Raises:
        PcapError: it cannot be read.
    """
    octets = b"".join(piece for message in dumped for piece in message)
    chooser = Chooser(packages)
    side = ZmtpSide(is_whole=is_greeting(octets), plausible=chooser.reads)
    for event in side.feed(octets):
        match event:
            case Message(frames=frames):
                reading = chooser.decode(frames, sender)
                yield Row(
                    frames=frames,
                    sender=sender or "",
                    protocol=reading.protocol,
                    message=reading.message,
                    error=reading.error,
                )
            case Broken(why=why):
                yield Row(frames=(), sender=sender or "", error=f"no ZMTP here: {why}")
            case Unreadable(why=why):
                raise PcapError(f"the stream cannot be read: {why}")
    if missing := side.end():
        note(f"the stream is not whole: {missing}")
