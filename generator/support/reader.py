"""Check of the octets of a message, operation by operation: the slow path of decoding.

A `Reader` performs the operations of the plan on frames and raises the first fault, with its field,
frame and octet. It keeps no values except numbers, which say how long or whether something is. It
never allocates memory by a number that the peer sent. Records that contain each other need no
stack, and the plan limits their number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, takewhile
from typing import NoReturn

from specwire.generated import plan as ops
from specwire.generated.checksums import compute_checksum
from specwire.generated.codings import NumberError, most_octets, read_number
from specwire.generated.errors import DecodeError, Kind
from specwire.generated.layout import Field
from specwire.generated.named_plan import NamedMessage, NamedPlan, NamedVisitor
from specwire.generated.words import (
    allowed_characters,
    depth_words,
    either,
    number_of,
    octets_word,
    one_of,
    show,
)


@dataclass(slots=True)
class _Run:
    """State of a run of operations: a frame, or a record in it."""

    start: int = 0
    """Offset of the innermost body in the frame."""
    nested: bool = False
    """It is a record, whose size may be less than the octets that are left."""
    bounded: bool = True
    """It extends exactly to the end of the octets."""
    numbers: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Slot -> the number in it, its offset, and the offset after it; for bits, those of their integer."""
    marks: dict[str, int] = field(default_factory=dict)


class Reader(NamedVisitor):
    """Position in the frames of one message; each operation moves it, or raises DecodeError."""

    def __init__(self, plan: NamedPlan, message: NamedMessage, frames: list[bytes], strict: bool) -> None:
        super().__init__(plan, message)
        self.frames = frames
        self.strict = strict
        self.index = 0
        """Index of the frame, from 0."""
        self.at = 0
        """Offset in the frame."""
        self.end = 0
        """Offset in the frame at which the innermost run ends."""
        self._depth = 0
        """Number of records that contain this position."""
        self._divided: int | None = None
        """In a text with a name and a value: offset of the octet between them."""
        self._run = _Run()

    # Position

    @property
    def frame(self) -> bytes:
        """Octets of the current frame."""
        return self.frames[self.index]

    @property
    def left(self) -> int:
        """Number of octets up to the end of the run."""
        return self.end - self.at

    def move(self, field: Field | None, path: str) -> None:
        """Move to another field, or to none."""
        super().move(field, path)
        self._divided = None

    def open(self, field: Field | None, path: str) -> None:
        """Move to the start of the current frame."""
        self.move(field, path)
        self.at, self.end = 0, len(self.frame)
        self._run = _Run()

    def take(self, octets: int) -> bytes:
        """Return the next `octets` octets.

        Raises:
            DecodeError: the run ends earlier.
        """
        if octets > self.left:
            self.refuse("length", octets_word(octets), str(self.left), self.at)
        self.at += octets
        return self.frame[self.at - octets : self.at]

    def peek(self, octets: int) -> bytes:
        """Return the next `octets` octets without moving, fewer if the run ends earlier."""
        return self.frame[self.at : min(self.at + octets, self.end)]

    def begins(self, octets: bytes, *, folded: bool = False) -> bool:
        """Return whether the next octets are `octets`; if `folded`, with letters in either case."""
        return _same(self.frame[self.at : min(self.at + len(octets), self.end)], octets, folded=folded)

    def number_in(self, body: ops.Body, slot: str) -> tuple[int, int]:
        """Return the number in a slot of the current frame, and its offset; check the octets before it."""
        for op in ops.operations(body):
            self.visit((op,))
            if slot in self._run.numbers:
                break
        number, start, _ = self._run.numbers[slot]
        return number, start

    def refuse(self, kind: Kind, expected: str, found: str, at: int | None) -> NoReturn:
        """Raise DecodeError for a fault at offset `at` of the frame; None if no octet is at fault."""
        path = self.path
        if self._divided is not None and at is not None:
            path += ".name" if at < self._divided else ".value"
        raise DecodeError(
            protocol=self.plan.layout.protocol, message_name=self.message.layout.name, field=path or None,
            frame=min(self.index, len(self.frames)) if self.frames else None, offset=at, kind=kind,
            expected=expected, found=found, rule=f"{self.plan.layout.edition} {self.rule_name}",
        )  # fmt: skip

    # Frames

    def whole(self, op: ops.Expect) -> None:
        """Check octets that must be all of the frame."""
        self.peek(len(op.octets))
        if not _same(self.frame, op.octets, folded=op.folded):
            self.refuse("constant", op.words, show(self.frame), 0)
        self.at = self.end

    def ends(self) -> None:
        """Check that no octet of the frame is left."""
        if self.left:
            self.refuse("trailing", "the end of the frame", number_of(self.left, "more octet"), self.at)

    # Constants and numbers

    def expect(self, op: ops.Expect) -> None:
        """Check constant octets."""
        self.enter(op.slot)
        size = len(op.octets)
        found = self.peek(size)
        if not _same(found, op.octets, folded=op.folded):
            if len(found) < size and _same(found, op.octets[: len(found)], folded=op.folded):
                self.refuse("length", octets_word(size), str(len(found)), self.at)
            self.refuse("constant", *_unlike(op, found), self.at)
        self.at += size

    def word(self, op: ops.Word) -> None:
        """Check one of several words that fill the run."""
        self.enter(op.slot)
        options = [option.encode() for option in op.options]
        found = self.peek(self.left)
        if not any(_same(found, option, folded=op.folded) for option in options):
            self.refuse("constant", one_of(options), show(found), self.at)
        self.at = self.end

    def pad(self, op: ops.Pad) -> None:
        """Skip octets without meaning."""
        self.enter(op.slot)
        self.take((self._run.start - self.at) % op.multiple if op.multiple else op.octets)

    def number(self, op: ops.Number) -> None:
        """Check a number, and keep it."""
        self.enter(op.slot)
        start = self.at
        try:
            value, size = read_number(op.coding, self.peek(most_octets(op.coding)))
        except NumberError as error:
            self.refuse(error.kind, error.expected, error.found, start)
        self.at += size
        self._run.numbers[op.slot] = value, start, self.at
        for bit in op.bits:
            self._bit(bit, value >> bit.shift & (1 << bit.width) - 1, start)

    def _bit(self, bit: ops.Bit, value: int, start: int) -> None:
        """Check some bits of the integer at offset `start`, and keep their number."""
        self.enter(bit.slot)
        if bit.constant not in (None, value):
            self.refuse("constant", str(bit.constant), str(value), start)
        if bit.members and value not in bit.members:
            self.refuse("range", either(map(str, bit.members)), str(value), start)
        self._run.numbers[bit.slot] = value, start, self.at

    def _count(self, slot: str, plus: int) -> tuple[int, int]:
        """Return the number of octets or items that a hidden number says, and its offset."""
        number, start, _ = self._run.numbers[slot]
        if number < plus:
            self.enter(slot)
            self.refuse("range", f"at least {plus}", str(number), start)
        return number - plus, start

    # Texts and octets

    def text(self, op: ops.TakeText) -> None:
        """Check a text, and of a text with a name and a value, both sides."""
        self.enter(op.slot)
        raw = self._extent(op.extent)
        start = self.at - len(raw)
        if op.json:
            self._json(raw, start)
        elif self.split in ("first", "last"):
            equals = raw.find(b"=") if self.split == "first" else raw.rfind(b"=")
            self._divided = start + equals if equals >= 0 else None
            self._text(op, raw, start)
            if equals < 0:
                self.refuse("text", "name=value", show(raw), start)
            self._divided = None
        else:
            self._text(op, raw, start)

    def octets(self, op: ops.TakeOctets) -> None:
        """Check the number of opaque octets."""
        self.enter(op.slot)
        start = self.at
        raw = self._extent(op.extent)
        if op.extent.kind == "slot":
            _, start, _ = self._run.numbers[op.extent.slot]
        if len(raw) < op.minimum:
            self.refuse("length", f"at least {octets_word(op.minimum)}", str(len(raw)), start)
        if op.maximum is not None and len(raw) > op.maximum:
            self.refuse("length", f"at most {octets_word(op.maximum)}", str(len(raw)), start)

    def _extent(self, extent: ops.Extent) -> bytes:
        match extent.kind:
            case "fixed":
                return self.take(extent.octets)
            case "slot":
                return self.take(self._count(extent.slot, extent.plus)[0])
            case "rest":
                if extent.octets > self.left:
                    least = f"at least {octets_word(extent.octets)}"
                    self.refuse("length", least, str(self.left), self.at)
                return self.take(self.left - extent.octets)
            case "until":
                end = self.frame.find(extent.until, self.at, self.end)
                if end < 0:
                    self.refuse(
                        "text", f"{show(extent.until)} behind it", show(self.peek(self.left)), self.at
                    )
                return self.take(end - self.at)
            case "run":
                return self._octets_among(extent.among, extent.octets)

    def _octets_among(self, among: bytes, least: int) -> bytes:
        """Return the longest run of the octets `among`, at least `least` of them."""
        run = _run_of(among).match(self.frame, self.at, self.end)
        found = self.take(len(run[0]) if run else 0)
        if len(found) < least:
            self.refuse("text", allowed_characters(self.rule_name), show(self.peek(1)), self.at)
        return found

    def _text(self, op: ops.TakeText, raw: bytes, at: int) -> None:
        """Check the octets of a text, which begin at octet `at`."""
        if op.padding is not None:
            raw = raw.rstrip(op.padding)
        self._utf8(raw, at)
        if op.terminated:
            ended = raw.endswith(b"\0")
            raw = raw[:-1] if ended else raw
            if b"\0" in raw:
                self.refuse("text", "text without NUL", "0x00", at + raw.index(b"\0"))
            if self.strict and not ended:
                self.refuse("text", "a NUL at the end", "none", at + len(raw))
        if self.strict and op.pattern is not None and not re.fullmatch(op.pattern, raw, re.DOTALL):
            fits = re.match(op.pattern, raw, re.DOTALL)
            good = fits.end() if fits else 0
            wrong = raw[good : good + 1] if fits else raw
            self.refuse("text", allowed_characters(self.rule_name), show(wrong), at + good)

    def _utf8(self, raw: bytes, at: int) -> None:
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            self.refuse("text", "UTF-8", show(raw[error.start : error.end]), at + error.start)

    def _json(self, raw: bytes, start: int) -> None:
        """Check JSON text, which must be UTF-8; strict requires an object and allows a NUL at the end."""
        self._utf8(raw, start)
        if not self.strict:
            return
        text = raw.decode("utf-8").removesuffix("\0")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            # The position counts characters, an offset octets.
            at = len(text[: error.pos].encode()) if isinstance(error, json.JSONDecodeError) else 0
            self.refuse("text", "JSON", show(raw[at : at + 8]), start + at)
        if not isinstance(value, dict):
            self.refuse("text", "a JSON object", show(raw[:8]), start)

    # Values with values inside

    def loop(self, op: ops.Loop) -> Iterator[ops.Body]:
        """Check items: as many as a number says, or up to the end of the run, or of the loop."""
        self.enter(op.slot)
        start = self.at
        numbers: Iterable[int] = takewhile(lambda _: self._more(op.until), count())
        if op.count:
            items, start = self._count(op.count, op.plus)
            # Each item has at least one octet.
            if items > self.left:
                self.enter(op.count)
                expected = f"at most {self.left} entries in {octets_word(self.left)}"
                self.refuse("count", expected, str(items), start)
            self._check_minimum(op, items, start)
            numbers = range(items)
        found = 0
        for _ in self.items(op, numbers):
            yield op.body
            found += 1
        self._check_minimum(op, found, start)

    def _more(self, until: bytes) -> bool:
        """Return whether octets are left, and the next ones are not `until`."""
        return self.left > 0 and not (until and self.begins(until))

    def _check_minimum(self, op: ops.Loop, number: int, at: int) -> None:
        if number < op.minimum:
            self.refuse("count", f"at least {op.minimum}", str(number), at)

    def nest(self, op: ops.Nest) -> Iterator[ops.Body]:
        """Check a record."""
        self.enter(op.slot)
        yield from self._record(op.record)

    def choose(self, op: ops.Choose) -> Iterator[ops.Body]:
        """Check the record that begins here."""
        self.enter(op.slot)
        for tag, record in op.options:
            if self._is_tag(tag, folded=op.folded):
                yield from self._record(record)
                return
        self._refuse_tag([tag for tag, _ in op.options], "tag", folded=op.folded)

    def _is_tag(self, tag: bytes, *, folded: bool = False) -> bool:
        found = self.peek(len(tag))
        return (found.lower() if folded else found) == tag

    def _record(self, class_name: str) -> Iterator[ops.Body]:
        """Check the operations of a record; it ends where its size says."""
        deepest = self.plan.layout.max_depth
        if deepest and self._depth == deepest:
            self.refuse("limit", depth_words(deepest), "more", self.at)
        record = self.plan.records[class_name]
        end, outer, run = self.end, self._run, _Run(self.at, nested=True, bounded=False)
        with self.inside(class_name):
            self._run = run
            self._depth += 1
            yield record.body
            self._depth -= 1
        if run.bounded and self.left:
            self.rule = record.rule
            expected = f"the end of {self.path}"
            self.refuse("trailing", expected, number_of(self.left, "more octet"), self.at)
        self.end, self._run = end, outer

    def optional(self, op: ops.Optional) -> Iterator[ops.Body]:
        """Check operations if their condition holds."""
        if self._holds(op.when):
            yield op.body

    def _holds(self, when: ops.When) -> bool:
        match when.kind:
            case "left":
                return self.left > when.left
            case "octets":
                return self.begins(when.octets, folded=when.folded)
            case "number":
                return when.slot in self._run.numbers and when.fits(self._run.numbers[when.slot][0])

    def sized(self, op: ops.Sized) -> Iterator[ops.Body]:
        """Check a size, then the operations that it counts."""
        self.enter(op.slot)
        start, size = self._size(op)
        run, left = self._run, self.left
        if run.nested and size > left:
            self.refuse("length", f"at most {left}, the number of octets left", str(size), start)
        if run.bounded and size != left:
            self.refuse("length", f"{left}, the number of octets behind it", str(size), start)
        run.start, self.end, run.bounded = self.at, self.at + size, True
        yield op.body

    def _size(self, op: ops.Sized) -> tuple[int, int]:
        """Return the offset of the integer of a size, and its value."""
        # A form without a tag must not begin like any other form.
        for tag, octets in sorted(op.forms, key=lambda form: not form[0]):
            if self._is_tag(tag):
                self.at += len(tag)
                return self.at, int.from_bytes(self.take(octets), "big")
        self._refuse_tag([tag for tag, _ in op.forms], "constant")

    def _refuse_tag(self, tags: Sequence[bytes], kind: Kind, *, folded: bool = False) -> NoReturn:
        found = self.peek(max(map(len, tags)))
        cut = any(tag.startswith(found.lower() if folded else found) for tag in tags)
        self.refuse("length" if cut else kind, one_of(tags), show(found), self.at)

    def region(self, op: ops.Region) -> Iterator[ops.Body]:
        """Check operations that fill as many octets as a number says."""
        count, start = self._count(op.count, op.plus)
        if count > self.left:
            self.enter(op.count)
            expected = f"at most {self.left + op.plus}, the number of octets left"
            self.refuse("length", expected, str(count + op.plus), start)
        run, end = self._run, self.at + count
        outer = run.start, self.end, run.bounded
        run.start, self.end, run.bounded = self.at, end, True
        yield op.body
        if self.at < end:
            self.enter(op.count)
            expected = f"the end of the octets that {self.path} counts"
            self.refuse("trailing", expected, number_of(end - self.at, "more octet"), self.at)
        run.start, self.end, run.bounded = outer

    # Checksums

    def mark(self, op: ops.Mark) -> None:
        """Keep the position."""
        self._run.marks[op.name] = self.at

    def verify(self, op: ops.Verify) -> None:
        """Check the checksum of the octets between marks."""
        marks = self._run.marks
        covered = b"".join(self.frame[marks[begin] : marks[end]] for begin, end in op.ranges)
        found, start, end = self._run.numbers[op.slot]
        right = compute_checksum(op.algorithm, covered)
        if found != right:
            self.enter(op.slot)
            digits = 2 * (end - start)
            self.refuse("checksum", f"0x{right:0{digits}x}", f"0x{found:0{digits}x}", start)


def _same(found: bytes, octets: bytes, *, folded: bool) -> bool:
    """Return whether octets are equal; if `folded`, with letters in either case."""
    return found.lower() == octets.lower() if folded else found == octets


@lru_cache(maxsize=64)
def _run_of(among: bytes) -> re.Pattern[bytes]:
    """Return the expression of octets that are all in `among`."""
    return re.compile(b"[" + b"".join(b"\\x%02x" % octet for octet in among) + b"]*")


def _unlike(op: ops.Expect, found: bytes) -> tuple[str, str]:
    """Return the expected constant and what was found, in words; omit the length prefix of a text."""
    text = op.words.strip("'").encode()
    length = op.octets.removesuffix(text)
    if length in (b"", op.octets):
        return op.words, show(found)
    if found.startswith(length):
        return op.words, show(found.removeprefix(length))
    return f"0x{op.octets.hex()} ({op.words})", f"0x{found.hex()}"
