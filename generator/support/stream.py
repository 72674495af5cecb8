"""Messages on a byte stream: each part with its size, all parts with a magic and a length in front.

A part shorter than the escape value has its size in one octet; a longer one has the escape octet, then
its size as a big-endian integer. A size that could have been short is accepted in its long form too.
`MessageStream` takes octets as they come, however they are cut, and gives whole messages; it holds no more
than the longest message of an unfinished one, whatever length the peer announces.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from specwire.generated.errors import DecodeError, Kind
from specwire.generated.octets import as_octets

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Framing:
    """How a protocol frames messages on a stream.

    Attributes:
        protocol: name of the package.
        edition: the specification, for errors.
        magics: the octets that a message may begin with; the first is big-endian, the second its reverse.
        length_octets: octets of the length of all parts together.
        escape: the size octet that says a long size follows.
        long_octets: octets of a long size.
    """

    protocol: str
    edition: str
    magics: tuple[bytes, ...]
    length_octets: int
    escape: int
    long_octets: int

    @property
    def native(self) -> bytes:
        """The magic as peers of this machine write it."""
        return self.magics[-1] if sys.byteorder == "little" else self.magics[0]

    def frame(self, parts: Sequence[bytes]) -> bytes:
        """Return the octets that carry `parts`."""
        body = b"".join(self._sized(part) for part in parts)
        return self.native + len(body).to_bytes(self.length_octets, "big") + body

    def _sized(self, part: bytes) -> bytes:
        size = len(part)
        if size < self.escape:
            return bytes((size,)) + part
        return bytes((self.escape,)) + size.to_bytes(self.long_octets, "big") + part

    def split(self, body: bytes) -> list[bytes]:
        """Return the parts in the octets after magic and length.

        Raises:
            DecodeError: a size runs past the end, or there is no part at all.
        """
        parts: list[bytes] = []
        at = 0
        while at < len(body):
            start, size = at + 1, body[at]
            if size == self.escape:
                start += self.long_octets
                if start > len(body):
                    raise self.error(
                        "length", f"{self.long_octets} octets of size", str(len(body) - at - 1), at
                    )
                size = int.from_bytes(body[at + 1 : start], "big")
            if size > len(body) - start:
                raise self.error("length", f"a part of {size} octets", f"{len(body) - start}", at)
            parts.append(body[start : start + size])
            at = start + size
        if not parts:
            raise self.error("frames", "at least 1 part", "none", 0)
        return parts

    def error(self, kind: Kind, expected: str, found: str, offset: int) -> DecodeError:
        """Return the error for a fault at `offset` octets into the message's body or header."""
        return DecodeError(
            protocol=self.protocol, message_name=None, field="framing", frame=None, offset=offset, kind=kind,
            expected=expected, found=found, rule=f"{self.edition} message framing",
        )  # fmt: skip


class MessageStream(Generic[M]):
    """Cuts a stream of octets, however they come, into messages.

    A fault ends the stream: there is no way to find the next message. What was complete before it is still
    given out, so that the same octets give the same messages however they are cut; the fault is then what
    the next call raises, and `fault` until then.

    Attributes:
        fault: why the stream cannot go on, None as long as it can.
    """

    def __init__(self, framing: Framing, decode: Callable[[list[bytes]], M], max_octets: int) -> None:
        if max_octets < 1:
            raise ValueError(f"max_octets must be at least 1, not {max_octets}")
        self._framing = framing
        self._decode = decode
        self._max_octets = max_octets
        self._buffer = bytearray()
        self.fault: DecodeError | None = None

    def feed(self, octets: bytes) -> list[M]:
        """Take octets of any number; return every message that they complete.

        Raises:
            DecodeError: the stream is not made of messages, or one is longer than it may be.
        """
        messages: list[M] = []
        if self.fault is None:
            self._buffer += as_octets(octets)
            try:
                while (body := self._next()) is not None:
                    messages.append(self._decode(self._framing.split(body)))
            except DecodeError as error:
                self.fault = error
                self._buffer.clear()
        if self.fault is not None and not messages:
            raise self.fault
        return messages

    def eof(self) -> None:
        """Say that no more octets will come.

        Raises:
            DecodeError: a message has begun and not ended, or the stream had a fault before.
        """
        if self.fault is not None:
            raise self.fault
        if self._buffer:
            held = len(self._buffer)
            raise self._framing.error("length", "the rest of a message", "the end of the stream", held)

    def _next(self) -> bytes | None:
        header = len(self._framing.magics[0])
        magic = bytes(self._buffer[:header])
        if not any(known.startswith(magic) for known in self._framing.magics):
            expected = " or ".join(known.hex(" ") for known in self._framing.magics)
            raise self._framing.error("constant", expected, magic.hex(" "), 0)
        end = header + self._framing.length_octets
        if len(self._buffer) < end:
            return None
        length = int.from_bytes(self._buffer[header:end], "big")
        if length > self._max_octets:
            raise self._framing.error("limit", f"at most {self._max_octets} octets", str(length), header)
        if len(self._buffer) < end + length:
            return None
        body = bytes(self._buffer[end : end + length])
        del self._buffer[: end + length]
        return body
