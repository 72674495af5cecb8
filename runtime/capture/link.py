"""The words between a tap and its writer process: length-prefixed msgpack over a pair of pipes.

The writer is started with an `Opening` as its one argument (JSON). Then a `Captured` goes down for each
message, and a `Closing`; a `Progress` comes up after each segment. Each word is a 4-octet length (network
order) and a msgpack array whose first item names its kind. The downward pipe may end anywhere, because a
process can be killed anywhere; half a word at its end is not a word.
"""

from __future__ import annotations

import struct

import msgspec

from specwire.runtime.capture.limits import Limits

LENGTH = struct.Struct(">I")


class Opening(msgspec.Struct, frozen=True):
    """What every segment of a tap has in common."""

    folder: str
    tap: str
    protocol: str
    edition: str
    limits: Limits
    package: str = ""
    """Folder of the protocol's package, where it does not come with specwire."""


class Captured(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="captured"):
    """One message, as one row of a segment."""

    ts: int
    """Wall clock, microseconds since 1970 UTC."""

    mono: int
    """Monotonic clock, nanoseconds."""

    seq: int
    """Count of the tap's messages, from 0 and without gaps."""

    conversation: str
    sender: str
    peer: str
    frames: tuple[bytes, ...]
    dropped: int
    """Messages that the tap had dropped before this one."""


class Closing(msgspec.Struct, frozen=True, array_like=True, tag="closing"):
    """The tap was closed on purpose; nothing follows."""

    dropped: int


class Progress(msgspec.Struct, frozen=True, array_like=True, tag="progress"):
    """What the writer has done so far; the counts only grow."""

    written: int
    """Messages in finished segments."""

    lost: int
    """Messages whose segment could not be written."""

    fault: str | None
    """Why the last segment could not be written, as one sentence."""

    note: str | None = None
    """What else went wrong, as one sentence; nothing is lost by it."""


Word = Captured | Closing | Progress

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Word)


def pack_word(word: Word) -> bytes:
    """Return the octets of one word; UnicodeEncodeError where a text has lone surrogates."""
    body = _encoder.encode(word)
    return LENGTH.pack(len(body)) + body


class WordReader:
    """Cuts words out of octets that arrive in any portions."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, octets: bytes) -> list[Word]:
        """Return the words that are complete with these octets."""
        self._pending += octets
        words: list[Word] = []
        start = 0
        with memoryview(self._pending) as view:
            while len(view) - start >= LENGTH.size:
                (size,) = LENGTH.unpack_from(view, start)
                end = start + LENGTH.size + size
                if end > len(view):
                    break
                words.append(_decoder.decode(view[start + LENGTH.size : end]))
                start = end
        del self._pending[:start]
        return words
