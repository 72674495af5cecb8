"""One direction of a ZMTP 3 connection, cut into what passes as it is and the messages that are to be translated.

The greeting, the handshake and other commands pass, octet by octet as they came; so both sides agree with each other, and
not with the bridge. Only what follows the handshake in the mechanisms NULL and PLAIN can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specwire.generated.errors import DecodeError
from specwire.generated.stream import MessageStream
from specwire.generated.zmtp.stream import FRAMING

GREETING_OCTETS = 64
SIGNATURE = slice(0, 10)
MECHANISM = slice(12, 32)
MAJOR = 10
READABLE = (b"NULL", b"PLAIN")

MORE, LONG, COMMAND = 1, 2, 4
MAX_OCTETS = 64 << 20
"""The longest message that is translated, all frames together."""

MAX_FRAMES = 1024


class UnreadableError(Exception):
    """A connection cannot be read; `str()` says why."""


class Units:
    """Takes octets in whatever portions they come."""

    def __init__(self) -> None:
        self._greeting = bytearray()
        self._stream: MessageStream[bytes] | None = None
        self._frames: list[bytes] = []
        self._held = 0

    def feed(self, octets: bytes) -> Iterator[bytes | list[bytes]]:
        """Yield octets that pass as they are, and messages as lists of frames; raises UnreadableError."""
        if self._stream is None:
            # As it comes: a peer sends the rest of its greeting when it has the beginning of the other's.
            missing = GREETING_OCTETS - len(self._greeting)
            part, octets = octets[:missing], octets[missing:]
            self._greeting += part
            if len(self._greeting) == GREETING_OCTETS:
                _check(bytes(self._greeting))
                self._stream = MessageStream(FRAMING, _only, MAX_OCTETS)
            yield part
            if self._stream is None or not octets:
                return
        try:
            units = self._stream.feed(octets)
        except DecodeError as error:
            raise UnreadableError(f"this is no ZMTP: {error}") from error
        for unit in units:
            yield from self._take(unit)

    def _take(self, unit: bytes) -> Iterator[bytes | list[bytes]]:
        flags = unit[0]
        if flags & COMMAND:
            yield unit
            return
        body = unit[9 if flags & LONG else 2 :]
        self._frames.append(body)
        self._held += len(body)
        if self._held > MAX_OCTETS or len(self._frames) > MAX_FRAMES:
            raise UnreadableError(f"a message has more than {MAX_OCTETS >> 20} MiB, or {MAX_FRAMES} frames")
        if not flags & MORE:
            frames, self._frames, self._held = self._frames, [], 0
            yield frames


def _only(parts: list[bytes]) -> bytes:
    return parts[0]


def _check(greeting: bytes) -> None:
    signature = greeting[SIGNATURE]
    if signature[0] != 0xFF or signature[-1] != 0x7F:
        raise UnreadableError("it is no ZMTP 3")
    if greeting[MAJOR] < 3:
        raise UnreadableError(f"it is ZMTP {greeting[MAJOR]}, and version 3 is wanted")
    mechanism = greeting[MECHANISM].rstrip(b"\0")
    if mechanism not in READABLE:
        name = mechanism.decode("ascii", "replace")
        raise UnreadableError(f"its mechanism is {name!r}, and NULL or PLAIN is wanted")


def join_frames(frames: Sequence[bytes]) -> bytes:
    """Return a message as it goes over a connection."""
    parts: list[bytes] = []
    for at, frame in enumerate(frames):
        flags = MORE if at + 1 < len(frames) else 0
        size = len(frame)
        parts.append(bytes((flags, size)) if size < 256 else bytes((flags | LONG,)) + size.to_bytes(8, "big"))
        parts.append(frame)
    return b"".join(parts)
