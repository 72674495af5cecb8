"""Text form of a plan, as ``specwire show plan`` prints it: one line for each operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from specwire.generator.support.layout import Coding, Digits, Integer, Varint
from specwire.generator.support.plan import (
    Bit,
    Body,
    Choose,
    Expect,
    Extent,
    Fixed,
    Loop,
    ManyFrames,
    Mark,
    MessagePlan,
    Nest,
    Number,
    Optional,
    Pad,
    Part,
    Plan,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    Verify,
    Visitor,
    When,
    Word,
)
from specwire.generator.support.words import number_of


def write_plan(plan: Plan) -> str:
    """Return all messages and records of a plan, with their operations, as lines of text."""
    writer = _Writer()
    for message in plan.messages:
        writer.message(message)
    for record in plan.records:
        with writer.block(f"record {record.class_name}"):
            writer.visit(record.body)
    return "\n".join(writer.lines) + "\n"


class _Writer(Visitor):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self.depth += 1
        yield
        self.depth -= 1

    def inside(self, head: str, body: Body) -> None:
        with self.block(head):
            self.visit(body)

    def message(self, message: MessagePlan) -> None:
        with self.block(f"message {message.name} ({message.class_name})"):
            for part in message.parts:
                self.part(part)

    def part(self, part: Part) -> None:
        if isinstance(part, ManyFrames):
            end = "all that remain"
            if part.delimiter is not None:
                end = (
                    f"up to the frame {part.delimiter.hex(' ')}" if part.delimiter else "up to an empty frame"
                )
            head = f"frames {part.slot}: {end}"
        else:
            head = f"frame {part.name}"
        match part.presence.kind:
            case "announced":
                head += f", if flags & 0x{part.presence.mask:02x} == 0x{part.presence.value:02x}"
            case "counted":
                head += ", if there are enough frames"
        self.inside(head, part.body)

    def expect(self, op: Expect) -> None:
        case = ", in either case" if op.folded else ""
        self.add(f"expect {op.octets.hex(' ')}{case}  ; {op.slot} = {op.words}")

    def number(self, op: Number) -> None:
        words = [*_coding(op.coding), *_counts(op)]
        words += ["checksum"] * op.checks + ["flags"] * op.flags
        with self.block(f"number {op.slot}: {', '.join(words)}"):
            for bit in op.bits:
                self.bit(bit)

    def bit(self, bit: Bit) -> None:
        words = [number_of(bit.width, "bit"), *_counts(bit)]
        words += ["boolean"] * bit.boolean + ["spare"] * bit.spare
        words += [f"always {bit.constant}"] if bit.constant is not None else []
        words += [f"one of {', '.join(map(str, bit.members))}"] if bit.members else []
        words += [f"whether {bit.announces} is present"] if bit.announces else []
        self.add(f"bits {bit.slot}: {', '.join(words)}")

    def text(self, op: TakeText) -> None:
        words = [_extent(op.extent)]
        words += ["a NUL may follow"] * op.terminated + ["JSON"] * op.json
        words += [f"filled with {op.padding.hex()}"] if op.padding is not None else []
        self.add(f"text {op.slot}: {', '.join(words)}")

    def octets(self, op: TakeOctets) -> None:
        words = [_extent(op.extent)]
        words += [f"at least {op.minimum}"] if op.minimum else []
        words += [f"at most {op.maximum}"] if op.maximum is not None else []
        words += [f"UUID, {op.uuid}-endian"] if op.uuid else []
        self.add(f"octets {op.slot}: {', '.join(words)}")

    def word(self, op: Word) -> None:
        case = ", in either case" if op.folded else ""
        self.add(f"word {op.slot}: {' or '.join(op.options)}{case}")

    def pad(self, op: Pad) -> None:
        number = f"to a multiple of {_octets(op.multiple)}" if op.multiple else _octets(op.octets)
        self.add(f"pad {number} with {op.fill.hex()}")

    def loop(self, op: Loop) -> None:
        end = f"up to {op.until.hex()}" if op.until else "to the end"
        times = f"{_less(op.count, op.plus)} times" if op.count else end
        kind = {"": "", "both": ", pairs", "first": ", pairs split at the first '='",
                "last": ", pairs split at the last '='"}[op.pairs]  # fmt: skip
        least = f", at least {op.minimum}" if op.minimum else ""
        self.inside(f"loop {op.slot}: {times}{least}{kind}", op.body)

    def nest(self, op: Nest) -> None:
        self.add(f"nest {op.slot}: {op.record}")

    def choose(self, op: Choose) -> None:
        options = ", ".join(f"{tag.hex()} {record}" for tag, record in op.options)
        case = ", in either case" if op.folded else ""
        self.add(f"choose {op.slot}: {options}{case}")

    def optional(self, op: Optional) -> None:
        slots = " and ".join((op.slot, *op.others))
        self.inside(f"optional {slots}: if {_condition(op.when)}", op.body)

    def sized(self, op: Sized) -> None:
        forms = " or ".join(f"{tag.hex()} " * bool(tag) + _octets(octets) for tag, octets in op.forms)
        self.inside(f"sized {op.slot}: {forms}", op.body)

    def region(self, op: Region) -> None:
        self.inside(f"region: as many octets as {_less(op.count, op.plus)}", op.body)

    def mark(self, op: Mark) -> None:
        self.add(f"mark {op.name}")

    def verify(self, op: Verify) -> None:
        ranges = ", ".join(f"{begin} to {end}" for begin, end in op.ranges)
        self.add(f"verify {op.slot}: {op.algorithm} of {ranges}")

    def fixed(self, op: Fixed) -> None:
        self.inside(f"fixed {_octets(op.octets)}", op.body)


def _octets(number: int) -> str:
    return number_of(number, "octet")


def _counts(counter: Number | Bit) -> Iterator[str]:
    if counter.counts:
        yield f"counts {' and '.join(counter.counts)}" + (f" plus {counter.plus}" if counter.plus else "")


def _condition(when: When) -> str:
    match when.kind:
        case "octets":
            return f"the next octets are {when.octets.hex(' ')}" + (", in either case" if when.folded else "")
        case "number":
            mask = f" & 0x{when.mask:02x}" if when.mask else ""
            return f"{when.slot}{mask} is {' or '.join(map(str, when.values))}"
        case "left":
            return f"more than {_octets(when.left)} remain" if when.left else "octets remain"


def _extent(extent: Extent) -> str:
    match extent.kind:
        case "fixed":
            return _octets(extent.octets)
        case "slot":
            return f"as many as {_less(extent.slot, extent.plus)}"
        case "until":
            return f"up to {extent.until.hex()}"
        case "run":
            least = f"at least {_octets(extent.octets)}" if extent.octets else "octets"
            return f"{least} among {extent.among.hex()}"
        case "rest":
            return f"to the last {_octets(extent.octets)}" if extent.octets else "to the end"


def _less(slot: str, plus: int) -> str:
    return f"{slot} less {plus}" if plus else slot


def _coding(coding: Coding) -> Iterator[str]:
    match coding:
        case Varint(order=order, maximum=maximum, signed=signed):
            yield f"{order}-endian groups of 7 bits in 1 to {_octets(maximum)}"
            yield from [signed] if signed else []
        case Digits(base=base, minimum=minimum, maximum=maximum, signed=signed):
            yield f"{minimum} to {maximum} digits of base {base}"
            yield from ["signed"] * signed
        case Integer(octets=octets, members=members, order=order, signed=signed):
            yield _octets(octets)
            yield from ["little-endian"] * (order == "little") + ["signed"] * signed
            yield from [f"one of {', '.join(map(str, members))}"] if members else []
        case _:
            yield f"{type(coding).__name__.lower()} of {_octets(coding.octets)}"
            yield from ["little-endian"] * (coding.order == "little")
