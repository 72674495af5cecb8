"""Emitter of the compiled encoders: `Putter` emits the statements that write one run.

Each frame is one allocation. Runs of constants and integers are written at known offsets after one
check for room. A value of variable size is written by a function that returns whether it succeeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specwire.generator import ir
from specwire.generator.emit.native_decoding import members_of
from specwire.generator.emit.native_types import Composite, Slot, c_number, literal, merged, none_of
from specwire.generator.emit.python import Lines, announcing_bits, fixed_size
from specwire.generator.passes.layouts import least_octets

_DECLARED = {
    "made": "cdef list made",
    "out": "cdef Writer out",
    "frame": "cdef bytes frame",
    "start": "cdef uint8_t* start",
    "value": "cdef uint64_t value",
    "mark": "cdef Py_ssize_t mark",
    "size": "cdef uint64_t size",
    "flags": "cdef uint64_t flags",
    "item": "cdef object item",
    "items": "cdef tuple items",
}
"""Declarations of the local variables of encoders, by name."""


@dataclass
class Putter:
    """Statements of one encoding function."""

    protocol: ir.Protocol
    names: dict[Composite, str]
    owner: str = "self"
    out: str = "&out"
    refusal: str = "drop(&out)"
    lines: Lines = field(default_factory=lambda: Lines(1))
    used: set[str] = field(default_factory=set)
    sizes: int = 0

    def text(self, indent: int = 1) -> str:
        """Return the statements, declarations first."""
        head = Lines(indent)
        head.add(*(line for name, line in _DECLARED.items() if name in self.used))
        head.add(*(f"cdef Py_ssize_t sized_{number}" for number in range(1, self.sizes + 1)))
        return "\n".join(part for part in (str(head), str(self.lines)) if part)

    def local(self, name: str) -> str:
        """Return the name of a local variable and declare it."""
        self.used.add(name)
        return name

    def refuse_if(self, condition: str) -> None:
        """Add a check."""
        with self.lines.block(f"if {condition}:"):
            self.lines.add(f"return {self.refusal}")

    def must(self, call: str) -> None:
        """Add a call that returns whether it could write its value."""
        self.refuse_if(f"not {call}")

    # Runs

    def fields(self, fields: Sequence[ir.Field]) -> None:
        """Write the fields of a run."""
        index, before = 0, ""
        while index < len(fields):
            stop = index
            while stop < len(fields) and is_plain(fields[stop]):
                stop += 1
            if stop > index:
                self._plain(fields[index:stop])
                index = stop
                continue
            found = fields[index]
            if isinstance(found.type, ir.SizeType):
                self._sized(found.type, fields[index + 1 :])
                return
            if found.optional:
                before = self._optional(found, before)
            else:
                self.field(found)
            index += 1

    def _plain(self, fields: Sequence[ir.Field]) -> None:
        """Write constants and C integers after one check for room."""
        total = sum(fixed_size(found.type) or 0 for found in fields)
        self.must(f"room({self.out}, {total})")
        out = self.out.removeprefix("&")
        self.lines.add(*self.in_place(fields, f"{out}.at"), f"{out}.at += {total}")

    def in_place(self, fields: Sequence[ir.Field], start: str) -> list[str]:
        """Return the statements that write fields of fixed size at the address `start`."""
        lines: list[str] = []
        offset = 0
        for found in merged(fields):
            at = f"{start} + {offset}" if offset else start
            match found.type:
                case ir.ConstantType(hex=constant):
                    octets_ = bytes.fromhex(constant)
                    lines.append(f"memcpy({at}, <const char*>{literal(octets_)}, {len(octets_)})")
                case ir.PaddingType(octets=octets, fill=fill):
                    lines.append(f"memset({at}, 0x{fill}, {octets})")
                case ir.IntegerType(octets=octets) as integer:
                    value = self._checked(found, integer)
                    lines.append(f"put_number({at}, {value}, {octets})")
            offset += fixed_size(found.type) or 0
        return lines

    def _checked(self, found: ir.Field, type: ir.IntegerType) -> str:
        """Return the expression for a C integer, whose range is checked before anything is written."""
        member = f"{self.owner}._{found.attribute}"
        if members := members_of(type, self.protocol):
            self.refuse_if(none_of(member, members))
        return "flags" if type.bitmask and announcing_bits(self.protocol) else member

    def _optional(self, found: ir.Field, before: str) -> str:
        """Write a value that may be omitted together with all later ones; return the condition for that."""
        value = f"{self.owner}._{found.attribute}"
        with self.lines.block(f"if {value} is not None:"):
            if before:
                self.refuse_if(before)
            may_be_empty = not least_octets(found.type)
            if may_be_empty:
                self.lines.add(f"{self.local('mark')} = written({self.out})")
            self.field(found)
            if may_be_empty:
                self.refuse_if(f"written({self.out}) == mark")
        return f"{value} is None"

    def _sized(self, type: ir.SizeType, rest: Sequence[ir.Field]) -> None:
        """Write the fields counted by a size, then insert the size in the first form that can hold it."""
        # Sizes can be nested, so each has its own start.
        self.sizes += 1
        sized, size = self.local(f"sized_{self.sizes}"), self.local("size")
        self.lines.add(f"{sized} = written({self.out})")
        self.fields(rest)
        self.lines.add(f"{size} = written({self.out}) - {sized}")
        for number, form in enumerate(type.forms):
            octets = bytes.fromhex(form.tag)
            call = f"insert_size({self.out}, {sized}, {literal(octets)}, {len(octets)}, {form.octets})"
            with self.lines.block(f"{'elif' if number else 'if'} {_holds(form, type, size)}:"):
                self.must(call)
        with self.lines.block("else:"):
            self.lines.add(f"return {self.refusal}")

    def field(self, found: ir.Field) -> None:
        """Write the value of one field."""
        value = f"{self.owner}._{found.attribute}"
        if Slot(found, False).is_integer:
            assert isinstance(found.type, ir.IntegerType)
            self._checked(found, found.type)
            self.must(f"put_integer({self.out}, {value}, {found.type.octets})")
        elif Slot(found, False).is_lazy:
            with self.lines.block(f"if type({value}) is bytes:"):
                self.must(f"put_content({self.out}, {value}, 0, 0, -1)")
            with self.lines.block("else:"):
                self.put(found.type, value)
        else:
            self.put(found.type, value)

    # Values

    def put(self, type: ir.Type, value: str) -> None:
        """Write a value that is an object."""
        out = self.out
        match type:
            case ir.IntegerType(octets=octets):
                most = c_number(256**octets - 1)
                self.must(f"fits(<PyObject*>{value}, {most}, &{self.local('value')})")
                if members := members_of(type, self.protocol):
                    self.refuse_if(none_of("value", members))
                self.must(f"put_integer({out}, value, {octets})")
            case ir.TextType():
                self._text(type, value)
            case ir.JsonType():
                self.must(f"put_text({out}, {value}, 0)")
            case ir.OctetsType(length=ir.Length(kind="fixed", octets=octets)):
                self.must(f"put_content({out}, {value}, 0, {octets}, {octets})")
            case ir.OctetsType(length=length, minimum=minimum, maximum=maximum):
                most = "-1" if maximum is None else str(maximum)
                width = length.octets if length.kind == "prefix" else 0
                self.must(f"put_content({out}, {value}, {width}, {minimum}, {most})")
            case ir.ListType() | ir.PairsType() | ir.RecordType() | ir.UnionType():
                self.must(f"_put_{self.names[type]}({out}, {value})")
            case ir.ConstantType() as constant:
                octets_ = constant.octets
                self.must(f"put_literal({out}, {literal(octets_)}, {len(octets_)})")
            case _:
                raise AssertionError("fills a frame, or is written with its run")

    def _text(self, type: ir.TextType, value: str) -> None:
        out, length = self.out, type.length
        if type.padding is not None:
            self.must(f"put_padded({out}, {value}, {length.octets}, 0x{type.padding})")
        elif length.kind == "fixed":
            self.must(f"put_fixed_text({out}, {value}, {length.octets})")
        elif length.kind == "until":
            end = bytes.fromhex(length.until)
            self.must(f"put_text_until({out}, {value}, {literal(end)}, {len(end)})")
        else:
            width = length.octets if length.kind == "prefix" else 0
            call = "put_terminated" if type.terminated else "put_text"
            self.must(f"{call}({out}, {value}, {width})")


def _holds(form: ir.SizeForm, type: ir.SizeType, size: str) -> str:
    """Return the condition that a form can hold a size; without a tag, it must not look like another."""
    conditions = [f"{size} < {c_number(256**form.octets)}"] if form.octets < 8 else []
    for other in type.forms if not form.tag else ():
        octets = len(other.tag) // 2
        if other.tag and octets <= form.octets:
            shift = 8 * (form.octets - octets)
            conditions.append(f"{size} >> {shift} != {c_number(int(other.tag, 16))}")
    return " and ".join(conditions) or "True"


def is_plain(found: ir.Field) -> bool:
    """Return whether a field of a run is written directly: a constant or a C integer."""
    if isinstance(found.type, ir.ConstantType | ir.PaddingType):
        return True
    return Slot(found, False).is_integer and not found.optional
