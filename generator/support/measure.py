"""Length of messages on a byte stream that say themselves where they end.

A `Measure` performs the operations of the plan only as far as they say how many octets a message
has: numbers that count, tags, conditions, and the octets that end a value. It checks constants, and
skips octets that a number counts. Everything else is left to the decoder.

A measurement stops where octets are missing, and continues there when they are received, so octets
are not examined again however small the chunks are. It has its own stack: values inside each other
do not use Python's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NoReturn, TypeVar

from specwire.generated import plan as ops
from specwire.generated.codings import NumberError, most_octets, read_number
from specwire.generated.errors import DecodeError, Kind
from specwire.generated.layout import Coding, Digits, ProtocolLayout
from specwire.generated.named_plan import named_plan
from specwire.generated.octets import pattern_octets
from specwire.generated.words import octets_word

T = TypeVar("T")
Fault = Callable[[Kind, str, str, int], DecodeError]
Tag = Sequence[int | tuple[int, int]]
"""Octets with which something begins; an octet with some known bits has their mask behind it."""

_DIGITS = {10: frozenset(b"0123456789"), 16: frozenset(b"0123456789abcdefABCDEF")}


@dataclass(slots=True)
class _Run:
    """Frame or record in it."""

    start: int
    """Offset in the message."""
    depth: int = 0
    """Number of records around the octets."""
    numbers: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Slot -> the number in it, and its offset."""


@dataclass(slots=True)
class _Level:
    """Body to measure: `times` times, or again and again up to the octets `until`."""

    body: ops.Body
    run: _Run
    times: int = 1
    until: bytes = b""
    next: int = 0
    """Index of the operation to perform next."""


class _Incomplete(Exception):
    """More octets are needed: at least `octets` of the message."""

    def __init__(self, octets: int) -> None:
        self.octets = octets


class _Refused(Exception):
    """The first `octets` octets begin no message."""

    def __init__(self, octets: int) -> None:
        self.octets = octets


class Measure(ops.Visitor):
    """Measurement of the messages on one stream, one after the other.

    Args:
        layout: layout of the protocol. Each message has one frame, and no value extends to its end.
        max_octets: longest message.
        fault: creates the error for a message that is longer.
        sender: role that sends the messages, if known.
    """

    def __init__(self, layout: ProtocolLayout, max_octets: int, fault: Fault, sender: str | None) -> None:
        self._layout = layout
        self._max_octets = max_octets
        self._fault = fault
        self._plan = named_plan(layout)
        self._beginnings = _beginnings(layout, sender)
        self._selected = max((octets or 0 for _, octets in layout.selectors), default=0)
        self._buffer = bytearray()
        self._start = 0
        self._held = 0
        """Number of octets of the message that may be examined."""
        self._restart()

    def _restart(self) -> None:
        self._at = 0
        """Offset in the message."""
        self._levels: list[_Level] = []
        self._run = _Run(0)
        self._searched = 0
        """Offset up to which the end of the value at `_at` was searched."""
        self._required = 0
        """Octets that the message has at least."""
        self._awaited = 1
        """Octets without which the measurement cannot continue."""

    def length(self, buffer: bytearray, start: int) -> int | None:
        """Return the number of octets of the message at offset `start`; None if it is incomplete.

        Then the next call must be for the same message with more octets. If the octets are no
        message, the length is that of the octets that show it, so the decoder refuses them.

        Raises:
            DecodeError: the message is too long.
        """
        if len(buffer) - start < self._awaited:
            return None
        self._buffer, self._start = buffer, start
        # A longer message is refused alike however many octets of it are there.
        self._held = min(len(buffer) - start, self._max_octets)
        try:
            self._measure()
            length = self._at
        except _Incomplete as need:
            self._awaited = need.octets
            return None
        except _Refused as fault:
            length = max(fault.octets, self._required)
        self._restart()
        return length

    def _measure(self) -> None:
        if not self._levels:
            self._require(self._selected, 0)
            message, _ = self._choose(self._beginnings, folded=self._layout.folded)
            self._levels.append(_Level(self._plan.messages[message].parts[0].body, self._run))
        while self._levels:
            level = self._levels[-1]
            if level.next == len(level.body):
                level.next, level.times = 0, level.times - 1
            if not level.next and self._is_done(level):
                self._levels.pop()
                continue
            self._run = level.run
            self.operation(level.body[level.next])
            level.next += 1

    def _is_done(self, level: _Level) -> bool:
        return self._begins(level.until) if level.until else level.times <= 0

    # Octets

    def _require(self, octets: int, number_at: int) -> None:
        """Require the next `octets` octets; the number that counts them is at the offset `number_at`."""
        end = self._at + octets
        if end > self._max_octets:
            self._refuse_length(str(end), number_at)
        self._required = max(self._required, end)
        if end > self._held:
            raise _Incomplete(end)

    def _require_more(self) -> NoReturn:
        """Require one octet more than there are."""
        if self._held == self._max_octets:
            self._refuse_length("more", self._at)
        raise _Incomplete(self._held + 1)

    def _refuse_length(self, found: str, at: int) -> NoReturn:
        raise self._fault("limit", f"at most {octets_word(self._max_octets)}", found, at)

    def _peek(self, octets: int) -> bytes:
        """Return the next `octets` octets, fewer if not all are there."""
        at = self._start + self._at
        return bytes(self._buffer[at : min(at + octets, self._start + self._held)])

    def _skip(self, octets: int, number_at: int | None = None) -> None:
        self._require(octets, self._at if number_at is None else number_at)
        self._at += octets

    def _begins(self, octets: bytes, *, folded: bool = False) -> bool:
        """Return whether the next octets are `octets`, in lower case if `folded`."""
        found = self._peek(len(octets))
        if folded:
            found = found.lower()
        if found != octets and octets.startswith(found):
            self._require_more()
        return found == octets

    def _choose(self, options: Sequence[tuple[Tag, T]], *, folded: bool) -> tuple[T, int]:
        """Return the first option whose tag begins here, and the number of octets of the tag."""
        found = self._peek(max((len(tag) for tag, _ in options), default=0))
        if folded:
            found = found.lower()
        most = 0
        for tag, option in options:
            alike = _alike(tag, found)
            if alike == len(tag):
                return option, alike
            if alike == len(found):
                self._require_more()
            most = max(most, alike)
        raise _Refused(self._at + most + 1)

    # Values

    def expect(self, op: ops.Expect) -> None:
        """Check constant octets."""
        size = len(op.octets)
        self._require(size, self._at)
        found = self._peek(size)
        if found != op.octets and not (op.folded and found.lower() == op.octets.lower()):
            raise _Refused(self._at + size)
        self._at += size

    def number(self, op: ops.Number) -> None:
        """Keep a number, and the bits of it."""
        octets = self._peek(most_octets(op.coding))
        try:
            found = _read_number(op.coding, octets)
        except NumberError:
            raise _Refused(self._at + _refused_octets(op.coding, octets)) from None
        if found is None:
            self._require_more()
        value, size = found
        self._run.numbers[op.slot] = value, self._at
        for bit in op.bits:
            self._run.numbers[bit.slot] = value >> bit.shift & (1 << bit.width) - 1, self._at
        self._at += size

    def text(self, op: ops.TakeText) -> None:
        """Skip a text."""
        self._extent(op.extent)

    def octets(self, op: ops.TakeOctets) -> None:
        """Skip opaque octets."""
        self._extent(op.extent)

    def _extent(self, extent: ops.Extent) -> None:
        match extent.kind:
            case "fixed":
                self._skip(extent.octets)
            case "slot":
                self._skip(*self._count(extent.slot, extent.plus))
            case "until":
                self._skip_until(extent.until)
            case "run":
                self._skip_run(extent)
            case "rest":
                raise TypeError("a value up to the end of its frame has no end on a stream")

    def _skip_until(self, until: bytes) -> None:
        begin = max(self._at, self._searched)
        found = self._buffer.find(until, self._start + begin, self._start + self._held)
        if found < 0:
            self._searched = max(begin, self._held - len(until) + 1)
            self._require_more()
        self._at = found - self._start

    def _skip_run(self, extent: ops.Extent) -> None:
        begin = self._start + max(self._at, self._searched)
        run = _run_of(extent.among).match(self._buffer, begin, self._start + self._held)
        end = run.end() - self._start if run else self._at
        del run  # it keeps the buffer from growing
        if end == self._held:
            self._searched = end
            self._require_more()
        if end - self._at < extent.octets:
            raise _Refused(end + 1)
        self._at = end

    def _count(self, slot: str, plus: int) -> tuple[int, int]:
        """Return what the number in a slot counts, and the offset of the number."""
        number, at = self._run.numbers[slot]
        if number < plus:
            raise _Refused(self._at)
        return number - plus, at

    def pad(self, op: ops.Pad) -> None:
        """Skip octets without meaning."""
        self._skip((self._run.start - self._at) % op.multiple if op.multiple else op.octets)

    # Values with values inside

    def loop(self, op: ops.Loop) -> None:
        """Measure items: as many as a number says, or up to certain octets."""
        times = 1
        if op.count:
            times, number_at = self._count(op.count, op.plus)
            match op.body:
                case (ops.Fixed(octets=size),):
                    self._skip(times * size, number_at)
                    return
            self._require(times, number_at)  # each item has at least one octet
        self._levels.append(_Level(op.body, self._run, times, op.until))

    def nest(self, op: ops.Nest) -> None:
        """Measure a record."""
        self._enter(op.record, self._at)

    def choose(self, op: ops.Choose) -> None:
        """Measure the record that begins here."""
        record, tag = self._choose(op.options, folded=op.folded)
        self._enter(record, self._at + tag)

    def _enter(self, record: str, seen: int) -> None:
        depth = self._run.depth + 1
        if 0 < self._layout.max_depth < depth:
            raise _Refused(seen)
        self._levels.append(_Level(self._plan.records[record].body, _Run(self._at, depth)))

    def optional(self, op: ops.Optional) -> None:
        """Measure operations if their condition holds."""
        if self._holds(op.when):
            self._levels.append(_Level(op.body, self._run))

    def _holds(self, when: ops.When) -> bool:
        match when.kind:
            case "octets":
                return self._begins(when.octets, folded=when.folded)
            case "number":
                number, _ = self._run.numbers[when.slot]
                return when.fits(number)
            case "left":
                raise TypeError("a frame that ends before a value has no end on a stream")

    def sized(self, op: ops.Sized) -> None:
        """Skip the octets that a size counts."""
        # A form without a tag must not begin like any other form.
        forms = sorted(op.forms, key=lambda form: not form[0])
        octets, tag = self._choose(forms, folded=False)
        self._require(tag + octets, self._at)
        size = int.from_bytes(self._peek(tag + octets)[tag:], "big")
        self._skip(tag + octets + size, self._at + tag)

    def region(self, op: ops.Region) -> None:
        """Skip the octets that a number counts."""
        self._skip(*self._count(op.count, op.plus))

    def mark(self, op: ops.Mark) -> None:
        """A position has no octets."""

    def verify(self, op: ops.Verify) -> None:
        """The decoder checks checksums."""

    def fixed(self, op: ops.Fixed) -> None:
        """Measure operations of fixed size."""
        self._require(op.octets, self._at)
        self.visit(op.body)


@lru_cache(maxsize=64)
def _beginnings(layout: ProtocolLayout, sender: str | None) -> tuple[tuple[Tag, str], ...]:
    """Return how messages begin, with their classes, in the order in which they are chosen."""
    if layout.shapes:
        shapes = [(name, shape) for name, shape in layout.shapes if shape.may_be_from(sender, layout.roles)]
        return tuple((_tag(shape.frames[0][0] if shape.frames else ""), name) for name, shape in shapes)
    rows = [(_tag(pattern), m.class_name) for m in layout.messages for pattern in m.patterns]
    # The longest of the selected pieces begins like the others: all are of one frame.
    rows += [(max(pieces, key=len), m.class_name) for m in layout.messages for pieces in m.tags]
    return tuple(sorted(rows, key=lambda row: -len(row[0])))


def _tag(pattern: str) -> Tag:
    return tuple(pattern_octets(pattern)) if "?" in pattern else bytes.fromhex(pattern)


def _alike(tag: Tag, octets: bytes) -> int:
    """Return how many leading octets are as a tag says."""
    if isinstance(tag, bytes) and octets.startswith(tag):
        return len(tag)
    for at, (wanted, octet) in enumerate(zip(tag, octets, strict=False)):
        known, mask = (wanted, 0xFF) if isinstance(wanted, int) else wanted
        if octet & mask != known:
            return at
    return min(len(tag), len(octets))


@cache
def _run_of(among: bytes) -> re.Pattern[bytes]:
    return re.compile(b"[%b]*" % b"".join(b"\\x%02x" % octet for octet in among))


def _read_number(coding: Coding, octets: bytes) -> tuple[int, int] | None:
    """Return the number at the start of `octets`, and its number of octets; None if more are needed.

    Raises:
        NumberError: the octets begin with no number.
    """
    if isinstance(coding, Digits):
        digits = octets.removeprefix(b"-") if coding.signed else octets
        if len(digits) < coding.maximum and _DIGITS[coding.base].issuperset(digits):
            return None
    try:
        return read_number(coding, octets)
    except NumberError as error:
        if error.kind != "length":
            raise
        return None


def _refused_octets(coding: Coding, octets: bytes) -> int:
    """Return how many of `octets` show that they begin with no number."""
    for size in range(1, len(octets)):
        try:
            _read_number(coding, octets[:size])
        except NumberError:
            return size
    return len(octets)
