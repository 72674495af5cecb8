r"""Octets that people have as text: what xxd, hexdump -C, od, tcpdump -X and tshark -x print, and plain hexadecimal.

A line of a dump has the offset of its first octet in front, and often the octets as text behind; the offset of the
next line says how many octets a line has, so text behind is never taken for octets. A line ``*`` stands for repetitions
of the line before. Plain hexadecimal has neither; ``0x``, ``\x``, commas, colons and spaces are passed over, ``''`` is
an empty frame, and lines that begin with ``#`` are comments.

Each dump, and each line of plain hexadecimal, is one frame. An empty line ends a message.
"""

from __future__ import annotations

import re
from enum import StrEnum

from specwire.runtime.pcap.errors import PcapError

MAX_OCTETS = 64 << 20
"""Octets of all dumps of a text together; a repetition cannot claim more."""


class Kind(StrEnum):
    """What each dump is."""

    FRAME = "frame"
    STREAM = "stream"
    PACKET = "packet"


Dumped = list[list[bytes]]
"""The frames of each message."""

_LINE = re.compile(
    r"\s*(?:0x)?([0-9a-fA-F]{4,16})(:\s*|\s{2,}|\s+(?=[0-9a-fA-F]{2}(?:\s|$))|\s*$)(.*)", re.DOTALL
)
_HEADING = re.compile(r"[A-Z][^|]*\(\d+ bytes?\):?|Packet \d+.*|\s*\d+ +\S+ +\S+ → .*|\d\d:\d\d:\d\d\.\d+ .*")
_BARS = re.compile(r"\s*\|.*\|\s*$", re.DOTALL)
_PLAIN_MARKS = re.compile(r"0x|\\x|[\s,:;]")
_COLUMN_ENDS = re.compile(r"\s{2,}")


def parse_dumps(text: str, name: str) -> Dumped:
    """Return the octets in a text.

    Raises:
        PcapError: a line is neither; the sentence begins with `name` and the line's number.
    """
    reader = _Reader(name)
    for number, line in enumerate(text.splitlines(), 1):
        reader.take(number, line)
    return reader.end()


class _Line:
    """A line of a dump, of which the next line tells how many octets it has."""

    def __init__(self, number: int, offset: int, separator: str, rest: str) -> None:
        self.number, self.offset = number, offset
        without = rest if separator.startswith(":") else _BARS.sub("", rest)
        has_bars, rest = without != rest, without
        # hexdump -C has a gap in the middle, and bars; the others have text behind a gap.
        self.sure = rest if has_bars else _COLUMN_ENDS.split(rest, maxsplit=1)[0]
        self.all = rest

    def octets(self, count: int | None) -> bytes:
        """Return `count` octets, or those before the text; ValueError where there are fewer."""
        digits = "".join(re.match(r"[0-9a-fA-F\s]*", self.all if count else self.sure)[0].split())  # type: ignore[index]
        found = bytes.fromhex(digits[: count * 2] if count else digits[: len(digits) // 2 * 2])
        if (count and len(found) < count) or (not count and not re.fullmatch(r"[0-9a-fA-F\s]*", self.sure)):
            raise ValueError
        return found


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._messages: Dumped = []
        self._frames: list[bytes] = []
        self._dump: bytearray | None = None
        self._last: _Line | None = None
        self._repeated = False
        self._width = 0
        self._octets = 0

    def take(self, number: int, line: str) -> None:
        if line.lstrip().startswith("#") or _HEADING.fullmatch(line):
            self._end_dump()
        elif not line.strip():
            self._end_message()
        elif line.strip() == "*" and self._last is not None:
            self._repeated = True
        elif (dumped := self._dump_line(number, line)) is not None:
            self._take_dumped(dumped)
        else:
            self._end_dump()
            self._frames.append(self._plain(number, line))

    def end(self) -> Dumped:
        self._end_message()
        return self._messages

    def _dump_line(self, number: int, line: str) -> _Line | None:
        """The line as one of a dump: with offset 0, or one that fits what came before."""
        found = _LINE.fullmatch(line)
        if found is None:
            return None
        offset = int(found[1], 16)
        # A word of eight digits at the beginning of plain hexadecimal is hardly ever an offset of 0.
        if self._dump is None and (offset or not found[3].strip()):
            return None
        return _Line(number, offset, found[2], found[3])

    def _take_dumped(self, line: _Line) -> None:
        if self._dump is not None and line.offset:
            self._settle(line.offset, line.number)
        else:
            self._end_dump()
            self._dump = bytearray()
        self._last = line

    def _settle(self, offset: int, number: int) -> None:
        """Take the line before, now that the next one's offset is known."""
        assert self._dump is not None and self._last is not None, "a dump has a line"
        count = offset - self._last.offset
        if self._octets + offset > MAX_OCTETS:
            raise PcapError(f"{self._name}:{number}: the dump would have more than {MAX_OCTETS} octets")
        if self._repeated:
            octets = self._line_octets(self._last, self._width or None)
            if count <= 0 or not octets or count % len(octets):
                raise PcapError(f"{self._name}:{number}: the offset does not follow from the line before")
            self._dump += octets * (count // len(octets))
        elif 0 < count <= 256:
            self._dump += self._line_octets(self._last, count)
            self._width = count
        else:
            raise PcapError(f"{self._name}:{number}: the offset does not follow from the line before")
        self._repeated = False

    def _line_octets(self, line: _Line, count: int | None) -> bytes:
        try:
            return line.octets(count)
        except ValueError:
            expected = f"{count} octets" if count else "octets"
            raise PcapError(
                f"{self._name}:{line.number}: expected {expected} in hexadecimal behind the offset"
            ) from None

    def _end_dump(self) -> None:
        if self._dump is None:
            return
        assert self._last is not None, "a dump has a line"
        if self._last.all.strip() or not self._last.offset:
            self._dump += self._line_octets(self._last, None)
        self._octets += len(self._dump)
        self._frames.append(bytes(self._dump))
        self._dump, self._last, self._repeated, self._width = None, None, False, 0

    def _end_message(self) -> None:
        self._end_dump()
        if self._frames:
            self._messages.append(self._frames)
            self._frames = []

    def _plain(self, number: int, line: str) -> bytes:
        text = line.strip()
        if text in ("''", '""'):
            return b""
        try:
            octets = bytes.fromhex(_PLAIN_MARKS.sub("", text))
        except ValueError:
            raise PcapError(
                f"{self._name}:{number}: neither hexadecimal nor a line of a hex dump: {text[:60]!r}"
            ) from None
        self._octets += len(octets)
        if self._octets > MAX_OCTETS:
            raise PcapError(f"{self._name}:{number}: more than {MAX_OCTETS} octets")
        return octets
