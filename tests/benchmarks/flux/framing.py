"""The octets that both sides pass, and the framing that both sides have to take apart.

The yardstick's own way to cut a stream, written as plainly as it can be: it finds messages and their parts by their
sizes, and knows nothing else of them.
"""

from __future__ import annotations

from specwire.generated.flux import Event, Request, frame
from specwire.generated.flux.stream import FRAMING
from specwire.runtime.flux.answering import respond

PAYLOAD = {"seq": 0, "pad": ""}
TOPIC = "bench.tick"
ANSWER = (
    b'{"seq": 0, "pad": "", "route": "c5e78dd6!fb1d7153!74ba6a2a", "userid": 0, "rolemask": 5, "rank": 0}\0'
)
REQUESTS = [
    Request((), "broker.ping", b'{"seq":0,"pad":""}\0', nodeid=rank, matchtag=1).encode() for rank in range(3)
]
"""A ping of each rank, as parts."""

ANSWER_HEAD = respond(Request((), "broker.ping", matchtag=1), ANSWER).encode()[-1]
EVENT = frame(Event((), TOPIC, b'{"seq":0,"pad":""}\0', sequence=1))

MAGIC, LENGTH_OCTETS = FRAMING.native, FRAMING.length_octets
HEADER_OCTETS = len(MAGIC) + LENGTH_OCTETS
ESCAPE, LONG_OCTETS = FRAMING.escape, FRAMING.long_octets


def join(parts: list[bytes]) -> bytes:
    """Return the octets of one message, whose parts are short."""
    body = b"".join([bytes((len(part),)) + part for part in parts])
    return MAGIC + len(body).to_bytes(LENGTH_OCTETS, "big") + body


def cut(buffer: bytearray) -> list[list[bytes]]:
    """Take the messages that are whole out of `buffer`, and return the parts of each."""
    messages: list[list[bytes]] = []
    begin, available = 0, len(buffer)
    while available - begin >= HEADER_OCTETS:
        at = begin + HEADER_OCTETS
        end = at + int.from_bytes(buffer[at - LENGTH_OCTETS : at], "big")
        if end > available:
            break
        parts: list[bytes] = []
        while at < end:
            size = buffer[at]
            at += 1
            if size == ESCAPE:
                size = int.from_bytes(buffer[at : at + LONG_OCTETS], "big")
                at += LONG_OCTETS
            parts.append(bytes(buffer[at : at + size]))
            at += size
        messages.append(parts)
        begin = end
    del buffer[:begin]
    return messages


def nodeid_of(parts: list[bytes]) -> int:
    """Return the rank that a request is for."""
    return int.from_bytes(parts[-1][12:16], "big")
