"""Decoder for messages on a byte stream, with two kinds of framing.

`PartFraming`: a magic, the length of all parts, then each part preceded by its size. A part shorter
than the escape value has its size in one octet. A longer part has the escape octet, then its size
as a big-endian integer. A short size in the long form is accepted as well.

`UnitFraming`: consecutive messages of one part, each of which says itself where it ends.

`MessageStream` accepts octets in chunks of any size and returns whole messages. It buffers at most
`max_octets` of an unfinished message, whatever length the peer announces.

If compiled, `specwire.generated.native_stream` joins and splits the parts; see `builds` for when it
is used. What it does not handle is done here.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from specwire.generated.builds import find_native
from specwire.generated.errors import DecodeError, Kind
from specwire.generated.layout import ProtocolLayout
from specwire.generated.measure import Measure
from specwire.generated.octets import OCTETS, as_octets
from specwire.generated.words import one_of, show

M = TypeVar("M")
QuickCut = Callable[[bytes, int], tuple[int, list[list[bytes]]]]

_NATIVE = find_native("specwire.generated.native_stream", "parts 3")


@dataclass(frozen=True, slots=True)
class Framing(ABC):
    """How a protocol frames messages on a stream.

    Attributes:
        protocol: name of the package.
        edition: edition of the specification, for errors.
    """

    protocol: str
    edition: str

    @property
    def quick_cut(self) -> QuickCut | None:
        """Compiled function that returns the leading whole, well-formed messages; None if unavailable.

        It returns where they end, and their parts.
        """
        return None

    @abstractmethod
    def frame(self, parts: Sequence[bytes]) -> bytes:
        """Return the octets that carry `parts`."""

    def measure(self, max_octets: int, sender: str | None) -> Measure | None:
        """Return a measurement of the messages on one stream, if `cut` needs one."""
        return None

    @abstractmethod
    def cut(
        self, buffer: bytearray, at: int, max_octets: int, measure: Measure | None = None
    ) -> tuple[int, list[bytes]] | None:
        """Return where the message at offset `at` ends, and its parts; None if it is incomplete.

        `measure` is that of the stream, which continues with an incomplete message.

        Raises:
            DecodeError: the octets do not begin a message, or the message is too long.
        """

    def error(self, kind: Kind, expected: str, found: str, offset: int) -> DecodeError:
        """Return the error for a fault at `offset` octets into the message, or into its body."""
        return DecodeError(
            protocol=self.protocol, message_name=None, field="framing", frame=None, offset=offset, kind=kind,
            expected=expected, found=found, rule=f"{self.edition} message framing",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PartFraming(Framing):
    """Framing by parts with their sizes, after a magic and the length of all parts.

    Attributes:
        magics: octets with which a message may begin; the first is big-endian, the second its
            reverse.
        length_octets: width of the length of all parts together.
        escape: size octet that announces a long size.
        long_octets: width of a long size.
    """

    magics: tuple[bytes, ...]
    length_octets: int
    escape: int
    long_octets: int
    _quick: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        quick = None
        if _NATIVE is not None:
            quick = _NATIVE.QuickParts(
                self.magics, self.native, self.length_octets, self.escape, self.long_octets
            )
        object.__setattr__(self, "_quick", quick)

    @property
    def quick_cut(self) -> QuickCut | None:
        """See `Framing.quick_cut`."""
        quick: QuickCut | None = None if self._quick is None else self._quick.cut
        return quick

    @property
    def native(self) -> bytes:
        """Magic in the octet order of this machine."""
        return self.magics[-1] if sys.byteorder == "little" else self.magics[0]

    def frame(self, parts: Sequence[bytes]) -> bytes:
        """Return the octets that carry `parts`."""
        if self._quick is not None:
            octets: bytes | None = self._quick.frame(parts)
            if octets is not None:
                return octets
        pieces: list[bytes] = []
        for part in parts:
            size = len(part)
            pieces.append(OCTETS[size] if size < self.escape else self._long(size))
            pieces.append(part)
        body = b"".join(pieces)
        return self.native + len(body).to_bytes(self.length_octets, "big") + body

    def _long(self, size: int) -> bytes:
        return OCTETS[self.escape] + size.to_bytes(self.long_octets, "big")

    def split(self, body: bytes) -> list[bytes]:
        """Return the parts in the octets after magic and length.

        Raises:
            DecodeError: a size exceeds the octets that are left, or there is no part.
        """
        parts: list[bytes] = []
        at, end, escape = 0, len(body), self.escape
        while at < end:
            size = body[at]
            start = at + 1
            if size == escape:
                start += self.long_octets
                if start > end:
                    raise self.error("length", f"{self.long_octets} octets of size", str(end - at - 1), at)
                size = int.from_bytes(body[at + 1 : start], "big")
            stop = start + size
            if stop > end:
                raise self.error("length", f"a part of {size} octets", f"{end - start}", at)
            parts.append(body[start:stop])
            at = stop
        if not parts:
            raise self.error("frames", "at least 1 part", "none", 0)
        return parts

    def cut(
        self, buffer: bytearray, at: int, max_octets: int, measure: Measure | None = None
    ) -> tuple[int, list[bytes]] | None:
        """See `Framing.cut`. `max_octets` limits the parts together with their sizes."""
        sized = at + len(self.magics[0])
        if buffer[at:sized] not in self.magics:
            self._check_beginning(bytes(buffer[at:sized]))
            return None
        start = sized + self.length_octets
        if len(buffer) < start:
            return None
        length = int.from_bytes(buffer[sized:start], "big")
        if length > max_octets:
            raise self.error("limit", f"at most {max_octets} octets", str(length), sized - at)
        end = start + length
        return (end, self.split(bytes(buffer[start:end]))) if len(buffer) >= end else None

    def _check_beginning(self, magic: bytes) -> None:
        """Raise DecodeError unless `magic` can still become a magic."""
        if not any(known.startswith(magic) for known in self.magics):
            expected = " or ".join(known.hex(" ") for known in self.magics)
            # Report octets up to the first wrong one: those after it depend on how the stream was
            # split.
            wrong = max(_common(known, magic) for known in self.magics)
            raise self.error("constant", expected, magic[: wrong + 1].hex(" "), 0)


@dataclass(frozen=True, slots=True)
class Head:
    """Beginning of a message: `prefix`, then, `skip` octets later, a size of `size_octets` octets.

    The size counts what follows it. A message without a size has `octets` octets in total.
    """

    prefix: bytes
    skip: int = 0
    size_octets: int = 0
    octets: int = 0


@dataclass(frozen=True, slots=True)
class UnitFraming(Framing):
    """Framing of messages of one part, each of which says itself where it ends.

    Attributes:
        heads: beginnings of messages; no prefix begins with another.
        layout: layout of the protocol if there are no heads. Then the messages are measured.
    """

    heads: tuple[Head, ...] = ()
    layout: ProtocolLayout | None = None

    def frame(self, parts: Sequence[bytes]) -> bytes:
        """Return the octets that carry the only part."""
        (part,) = parts
        return part

    def measure(self, max_octets: int, sender: str | None) -> Measure | None:
        """See `Framing.measure`."""
        return None if self.layout is None else Measure(self.layout, max_octets, self.error, sender)

    def cut(
        self, buffer: bytearray, at: int, max_octets: int, measure: Measure | None = None
    ) -> tuple[int, list[bytes]] | None:
        """See `Framing.cut`. `max_octets` limits the whole message."""
        if measure is not None:
            length = measure.length(buffer, at)
            return None if length is None else (at + length, [bytes(buffer[at : at + length])])
        head = self._head(buffer, at)
        if head is None:
            return None
        start = at + len(head.prefix) + head.skip
        end = at + head.octets
        if head.size_octets:
            if len(buffer) < start + head.size_octets:
                return None
            end = start + head.size_octets
            end += int.from_bytes(buffer[start:end], "big")
        if end - at > max_octets:
            raise self.error(
                "limit",
                f"at most {max_octets} octets",
                str(end - at),
                start - at if head.size_octets else 0,
            )
        return (end, [bytes(buffer[at:end])]) if len(buffer) >= end else None

    def _head(self, buffer: bytearray, at: int) -> Head | None:
        """Return the head that matches the octets at `at`; None if more octets are needed."""
        for head in self.heads:
            if buffer.startswith(head.prefix, at):
                return head
        prefixes = [head.prefix for head in self.heads]
        octets = bytes(buffer[at : at + max(map(len, prefixes)) + 1])
        common = [_common(prefix, octets) for prefix in prefixes]
        wrong = max(common)
        if wrong == len(octets):
            return None
        nearest = [prefix[wrong:] for prefix, same in zip(prefixes, common, strict=True) if same == wrong]
        kind: Kind = "constant" if len({prefix[wrong : wrong + 1] for prefix in prefixes}) == 1 else "tag"
        # Report the one wrong octet: those after it depend on how the stream was split.
        raise self.error(kind, one_of(dict.fromkeys(nearest)), show(octets[wrong : wrong + 1]), wrong)


def _common(prefix: bytes, octets: bytes) -> int:
    """Return how many leading octets both have in common."""
    return next(
        (at for at, (a, b) in enumerate(zip(prefix, octets, strict=False)) if a != b),
        min(len(prefix), len(octets)),
    )


class MessageStream(Generic[M]):
    """Decoder from a stream of octets, in chunks of any size, to messages.

    A fault ends the stream, because the start of the next message cannot be found. Messages that
    were complete before the fault are still returned, so the result does not depend on the chunks.
    The call that returns them sets `fault`, and the next call raises it.

    `sender` is the role that sends all messages, if known.

    Attributes:
        fault: error that ended the stream; None while there is none.
    """

    def __init__(
        self,
        framing: Framing,
        decode: Callable[[list[bytes]], M],
        max_octets: int,
        sender: str | None = None,
    ) -> None:
        if max_octets < 1:
            raise ValueError(f"max_octets must be at least 1, not {max_octets}")
        self._framing, self._quick_cut = framing, framing.quick_cut
        self._measure = framing.measure(max_octets, sender)
        self._decode = decode
        self._max_octets = max_octets
        self._buffer = bytearray()
        self.fault: DecodeError | None = None

    def feed(self, octets: bytes) -> list[M]:
        """Accept the next octets; return every message that they complete.

        Raises:
            DecodeError: the stream is not made of messages, or a message is too long.
        """
        messages: list[M] = []
        if self.fault is None:
            try:
                self._take(as_octets(octets), messages)
            except DecodeError as error:
                self.fault = error
                self._buffer.clear()
        if self.fault is not None and not messages:
            raise self.fault
        return messages

    def _take(self, octets: bytes, messages: list[M]) -> None:
        """Append every whole message to `messages`; keep the rest for the next call."""
        buffer, decode, most = self._buffer, self._decode, self._max_octets
        if buffer:
            buffer += octets
            found = self._framing.cut(buffer, 0, most, self._measure)
            if found is None:
                return
            at, parts = found
            messages.append(decode(parts))
            octets = bytes(buffer[at:])  # at most what was just received
            buffer.clear()
        at = 0
        if self._quick_cut is not None:
            at, cut = self._quick_cut(octets, most)
            for parts in cut:
                messages.append(decode(parts))  # one by one, to keep the messages before a fault
            if at == len(octets):
                return
        buffer += octets[at:]
        at = 0
        while at < len(buffer) and (found := self._framing.cut(buffer, at, most, self._measure)):
            at, parts = found
            messages.append(decode(parts))
        del buffer[:at]

    def eof(self) -> None:
        """Signal the end of the stream.

        Raises:
            DecodeError: the last message is incomplete, or the stream had a fault before.
        """
        if self.fault is not None:
            raise self.fault
        if self._buffer:
            held = len(self._buffer)
            raise self._framing.error("length", "the rest of a message", "the end of the stream", held)
