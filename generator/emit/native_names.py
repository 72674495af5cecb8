"""Names in the compiled codec: members of classes, functions of nested values, and variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import msgspec

from specwire.generator.emit.bodies import flat, nested, octet_ranges
from specwire.generator.emit.python import Lines, octets_literal
from specwire.generator.support import plan
from specwire.generator.support.layout import Boolean, Coding, Digits, Integer, Varint
from specwire.generator.support.plan import is_hidden, operations

CYTHON_WORDS = frozenset({"cdef", "cimport", "cpdef", "ctypedef", "include"})
"""Words that are reserved in Cython but not in Python."""

POINTER = "const uint8_t*"
SIGNS = {None: "UNSIGNED", "zigzag": "ZIGZAG", "complement": "COMPLEMENT"}
"""Names in C of how a varint is signed."""


Value = (
    plan.Number | plan.Bit | plan.TakeText | plan.TakeOctets | plan.Word | plan.Loop | plan.Nest | plan.Choose
    | plan.Optional
)  # fmt: skip
"""Operation that reads the value of an attribute; an `Optional` if that is a bool."""


@dataclass(frozen=True, slots=True)
class Member:
    """C member of a class, for the value that `op` reads.

    A number that is always present is a C integer. A loop that can be checked without creating
    objects is *held* as octets until its first access. Every other value is an object from the
    start.
    """

    op: Value
    present: bool
    """Whether every message has the value."""
    many: bool = False
    """Whether the value is a tuple, with one item for each of many frames."""

    @property
    def name(self) -> str:
        """Name of the member; field names do not begin with an underscore."""
        return f"_{self.op.slot}"

    @property
    def range(self) -> tuple[int, int] | None:
        """Least and greatest value of a C integer; None for an object."""
        return (
            number_bounds(self.op) if isinstance(self.op, plan.Number | plan.Bit) and self.present else None
        )

    @property
    def c_type(self) -> str:
        """Type of the member."""
        if (ends := self.range) is None:
            return "object"
        least, most = ends
        octets = next(width for width in (1, 2, 4, 8) if most < 256**width and least >= -(256**width) // 2)
        return f"{'int' if least else 'uint'}{8 * octets}_t"

    @property
    def is_presence(self) -> bool:
        """Whether the value is a bool that says whether constants are present."""
        return isinstance(self.op, plan.Optional)

    @property
    def is_held(self) -> bool:
        """Whether the value is stored as octets until its first access."""
        return isinstance(self.op, plan.Loop) and not self.many and _is_canonical(self.op.body)


def message_members(message: plan.MessagePlan) -> dict[str, Member]:
    """Return the members of a message class by slot."""
    found: dict[str, Member] = {}
    for part in message.parts:
        present = part.presence.kind == "always"
        if isinstance(part, plan.ManyFrames):
            (value,) = (op for op, _ in values(part.body))
            found[part.slot] = Member(msgspec.structs.replace(value, slot=part.slot), False, many=True)
        else:
            found |= record_members(part.body, present=present)
    return found


def record_members(body: plan.Body, *, present: bool = True) -> dict[str, Member]:
    """Return the members of a record class by slot; `present` for those that every record has."""
    return {op.slot: Member(op, present and not optional) for op, optional in values(body)}


def values(body: plan.Body, *, optional: bool = False) -> Iterator[tuple[Value, bool]]:
    """Yield the operations that read values of attributes, and whether these may be omitted."""
    for op in operations(body):
        match op:
            case plan.Optional(boolean=True):
                yield op, True
            case plan.Optional(body=inside):
                yield from values(inside, optional=True)
            case plan.Sized(body=inside) | plan.Region(body=inside):
                yield from values(inside, optional=optional)
            case plan.Number(bits=bits) if bits:
                yield from ((bit, optional) for bit in bits if not is_hidden(bit))
            case plan.Number() if is_hidden(op):
                continue
            case plan.Expect() | plan.Pad() | plan.Mark() | plan.Verify() | plan.Fixed():
                continue
            case _:
                yield op, optional


def numbers(body: plan.Body) -> Iterator[plan.Number | plan.Bit]:
    """Yield the numbers of a body and of the bodies inside it, but not of the items of loops.

    Bits are yielded instead of their integer.
    """
    for op in flat(body):
        if isinstance(op, plan.Number):
            yield from op.bits or (op,)


def conditions(body: plan.Body) -> set[str]:
    """Return the slots of the numbers that decide whether operations of a body are performed."""
    return {op.when.slot for op in flat(body) if isinstance(op, plan.Optional)} - {""}


def marks(body: plan.Body) -> list[str]:
    """Return the names of the marks of a body and of the bodies inside it."""
    return [op.name for op in flat(body) if isinstance(op, plan.Mark)]


def is_padded(body: plan.Body) -> bool:
    """Return whether a body has padding whose size depends on its position in the body."""
    return any(isinstance(op, plan.Pad) and op.multiple for op in body)


def _is_canonical(body: plan.Body) -> bool:
    """Return whether encoding always reproduces the octets of a body, and it contains no record."""
    for op in operations(body):
        match op:
            case plan.Number(coding=Integer() | Boolean()) | plan.TakeOctets() | plan.Expect(folded=False):
                continue
            case plan.TakeText(terminated=terminated):
                if terminated:
                    return False
            case plan.Loop(body=inside):
                if not _is_canonical(inside):
                    return False
            case _:
                return False
    return True


def number_bounds(op: plan.Number | plan.Bit) -> tuple[int, int] | None:
    """Return the least and the greatest value of a number; None if it is no C integer."""
    if isinstance(op, plan.Number):
        return bounds(op.coding)
    return None if op.boolean else (0, 2**op.width - 1)


def bounds(coding: Coding) -> tuple[int, int] | None:
    """Return the least and the greatest value of a number that is a C integer; None for another."""
    match coding:
        case Integer(octets=octets, signed=signed):
            span = 256**octets
        case Varint(maximum=maximum, signed=signed):
            span = 128**maximum
        case Digits(base=base, maximum=maximum, signed=signed):
            most = base**maximum - 1
            return (max(-most, -(2**63)), min(most, 2**63 - 1)) if signed else (0, min(most, 2**64 - 1))
        case _:
            return None
    span = min(span, 2**64)
    return (-span // 2, span // 2 - 1) if signed else (0, span - 1)


def merged(body: plan.Body) -> list[plan.Op]:
    """Return the operations of a body with adjacent constants as one, without empty ones."""
    found: list[plan.Op] = []
    for op in body:
        last = found[-1] if found else None
        if isinstance(op, plan.Expect) and isinstance(last, plan.Expect) and op.folded == last.folded:
            found[-1] = msgspec.structs.replace(last, octets=last.octets + op.octets)
        elif not isinstance(op, plan.Expect) or op.octets:
            found.append(op)
    return found


class Functions:
    """Names of the functions of loops and of many frames."""

    def __init__(self, lowered: plan.Plan, announcing: int) -> None:
        self.announcing = announcing
        """Bits of the flags that announce parts."""
        self.max_depth = lowered.max_depth
        """Maximum number of records that contain each other; 0 if it needs no check."""
        self.loops: dict[plan.Loop, str] = {}
        self.many: dict[tuple[bytes | None, plan.Body], str] = {}
        self.held: set[str] = set()
        """Loops that are held, and loops inside them."""
        for record in lowered.records:
            self._body(record.body, record_members(record.body))
        for message in lowered.messages:
            members = message_members(message)
            for part in message.parts:
                self._body(part.body, members)
                if isinstance(part, plan.ManyFrames):
                    key = (part.delimiter, part.body)
                    self.many.setdefault(key, f"frames_{len(self.many) + 1}")

    def _body(self, body: plan.Body, members: dict[str, Member]) -> None:
        for op in nested(body):
            if isinstance(op, plan.Loop):
                self.loops.setdefault(_loop_key(op), f"loop_{len(self.loops) + 1}")
        for op in flat(body):
            if isinstance(op, plan.Loop) and (member := members.get(op.slot)) and member.is_held:
                inside = [inner for inner in nested(op.body) if isinstance(inner, plan.Loop)]
                self.held |= {self.loop(found) for found in [op, *inside]}

    def loop(self, op: plan.Loop) -> str:
        """Return the name of the functions of a loop, also for loops with other slots."""
        return self.loops[_loop_key(op)]


def _loop_key(op: plan.Loop) -> plan.Loop:
    return msgspec.structs.replace(op, slot="", count="#" if op.count else "", plus=0, rule=None)


class Statements:
    """Statements of one function in Cython, and the declarations of its variables."""

    def __init__(self, functions: Functions, refusal: str, indent: int, depth: str = "0") -> None:
        self.functions = functions
        self.refusal = refusal
        """Expression that the function returns for what it refuses."""
        self.depth = f", {depth}" if functions.max_depth else ""
        """Argument of functions of values inside: the number of records that contain them."""
        self.lines = Lines(indent)
        self._indent = indent
        self.variables: dict[str, str] = {}
        """Variable -> its declaration."""

    def source(self) -> str:
        """Return the statements, declarations first."""
        head = Lines(self._indent)
        head.add(*(f"cdef {declaration}" for declaration in self.variables.values()))
        return "\n".join(part for part in (str(head), str(self.lines)) if part)

    def add(self, *lines: str) -> None:
        """Append statements."""
        self.lines.add(*lines)

    def block(self, head: str) -> AbstractContextManager[None]:
        """Append `head` and indent the statements that are added inside."""
        return self.lines.block(head)

    def refuse_if(self, condition: str) -> None:
        """Append a check."""
        with self.block(f"if {condition}:"):
            self.add(f"return {self.refusal}")

    def check_octets(self, op: plan.TakeOctets, number: str) -> None:
        """Check the number of octets of a value."""
        if op.minimum:
            self.refuse_if(f"{number} < {op.minimum}")
        if op.maximum is not None:
            self.refuse_if(f"{number} > {op.maximum}")

    def local(self, name: str, type: str) -> str:
        """Declare a variable, if it is not declared; return its name."""
        self.variables[name] = f"{type} {name}"
        return name

    def fresh(self, stem: str, type: str) -> str:
        """Declare another variable; return its name."""
        number = sum(name.startswith(f"{stem}_") for name in self.variables) + 1
        return self.local(f"{stem}_{number}", type)


def c_number(value: int) -> str:
    """Return a number as a C literal in Cython."""
    if value <= -(2**63):
        return f"(-{2**63 - 1}LL - 1)"
    if value < -(2**31):
        return f"{value}LL"
    return f"{value}ULL" if value >= 2**31 else str(value)


def one_of(value: str, members: tuple[int, ...]) -> str:
    """Return the condition that a number is one of `members`."""
    if len(members) == 1:
        return f"{value} == {c_number(members[0])}"
    return f"{value} in ({', '.join(map(c_number, members))})"


def none_of(value: str, members: tuple[int, ...]) -> str:
    """Return the condition that a number is none of `members`."""
    if len(members) == 1:
        return f"{value} != {c_number(members[0])}"
    return f"{value} not in ({', '.join(map(c_number, members))})"


def decided(when: plan.When, number: str) -> str:
    """Return the condition that a number decides that operations are performed."""
    return one_of(f"({number} & {c_number(when.mask)})" if when.mask else number, when.values)


def same(at: str, octets: bytes, *, folded: bool = False) -> str:
    """Return the condition that octets at an address are these; letters in either case if `folded`."""
    wanted = octets.lower() if folded else octets
    return f"same{'_folded' * folded}({at}, {literal(wanted)}, {len(octets)})"


def begins(run: str, at: str, octets: bytes, *, folded: bool = False) -> str:
    """Return the condition that a run, which is at an address, begins with these octets."""
    return f"left({run}) >= {len(octets)} and {same(at, octets, folded=folded)}"


def ranges(among: bytes) -> str:
    """Return two arguments: the ranges of octets in ascending order, and their number."""
    found = octet_ranges(among)
    return f"{literal(bytes(octet for pair in found for octet in pair))}, {len(found)}"


def less(number: str, plus: int) -> str:
    """Return the expression of a number less a constant."""
    return f"{number} - {plus}" if plus > 0 else f"{number} + {-plus}" if plus else number


def literal(value: str | bytes) -> str:
    """Return a text or octets as Cython source, in double quotes if it contains none."""
    source = octets_literal(value) if isinstance(value, bytes) else repr(value)
    if '"' in source:
        return source
    return source.replace("'", '"') if source.count("'") == 2 else source
