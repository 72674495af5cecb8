"""Emitter of the compiled decoders: Cython that reads octets through a pointer.

A decoder returns the message, or None for frames that are not its message; it never raises for
them. Then the pure codec decides. `Reader` emits the statements of one function. It *takes* a value
into a member or variable, or *skips* it if only its octets are needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specwire.generator import ir
from specwire.generator.emit.native_types import (
    Composite,
    Slot,
    literal,
    merged,
    none_of,
)
from specwire.generator.emit.python import Lines, announcing_bits, fixed_size

_DECLARED = {
    "run": "cdef Run run",
    "piece": "cdef Run piece",
    "start": "cdef const uint8_t* start",
    "value": "cdef uint64_t value",
    "size": "cdef uint64_t size",
    "end": "cdef const uint8_t* end",
    "frame": "cdef bytes frame",
    "at": "cdef Py_ssize_t at",
    "flags": "cdef uint64_t flags",
    "item": "cdef object item",
    "name": "cdef object name",
    "items": "cdef list items",
    "entries": "cdef uint64_t entries",
}
"""Declarations of the local variables of decoders, by name."""


@dataclass
class Reader:
    """Statements of one decoding function."""

    protocol: ir.Protocol
    names: dict[Composite, str]
    refusal: str = "None"
    """What the function returns for octets that are not its value."""
    owner: str = "made"
    """Variable whose members are set."""
    run: str = "&run"
    """The current run as an argument of helpers."""
    lines: Lines = field(default_factory=lambda: Lines(1))
    used: set[str] = field(default_factory=set)

    def text(self) -> str:
        """Return the statements, declarations first."""
        head = Lines(1)
        head.add(*(line for name, line in _DECLARED.items() if name in self.used))
        return "\n".join(part for part in (str(head), str(self.lines)) if part)

    def local(self, name: str) -> str:
        """Return the name of a local variable and declare it."""
        self.used.add(name)
        return name

    def refuse_if(self, condition: str) -> None:
        """Add a check."""
        with self.lines.block(f"if {condition}:"):
            self.lines.add(f"return {self.refusal}")

    @property
    def front(self) -> str:
        """Address of the first unread octet."""
        return f"{self.run.removeprefix('&')}.at"

    # Runs

    def fields(self, fields: tuple[ir.Field, ...]) -> None:
        """Take the fields of a run in order; adjacent ones of fixed size share one check of the end."""
        index = 0
        while index < len(fields):
            stop = index
            while stop < len(fields) and _in_place(fields[stop]):
                stop += 1
            if stop > index:
                self._fixed(fields[index:stop])
                index = stop
                continue
            found = fields[index]
            if isinstance(found.type, ir.SizeType):
                self.size(found.type)
                self.refuse_if(f"size != <uint64_t>left({self.run})")
            elif found.optional:
                with self.lines.block(f"if left({self.run}):"):
                    self._take_field(found)
            else:
                self._take_field(found)
            index += 1

    def record(self, fields: tuple[ir.Field, ...]) -> None:
        """Take the fields of a record, whose run ends where its size says."""
        size = next((n for n, found in enumerate(fields) if isinstance(found.type, ir.SizeType)), None)
        if size is None:
            self.fields(fields)
            return
        self.fields(fields[:size])
        type = fields[size].type
        assert isinstance(type, ir.SizeType)
        self.size(type)
        self.refuse_if(f"size > <uint64_t>left({self.run})")
        end = self.local("end")
        self.lines.add(f"{end} = run.end", "run.end = run.at + size")
        self.fields(fields[size + 1 :])
        self.refuse_if("run.at != run.end")
        self.lines.add(f"run.end = {end}")

    def _fixed(self, fields: tuple[ir.Field, ...]) -> None:
        total = sum(fixed_size(found.type) or 0 for found in fields)
        self.refuse_if(f"left({self.run}) < {total}")
        offset = 0
        for found in merged(fields):
            at = f"{self.front} + {offset}" if offset else self.front
            self._in_place(found, at)
            offset += fixed_size(found.type) or 0
        self.lines.add(f"{self.front} += {total}")

    def _in_place(self, found: ir.Field, at: str) -> None:
        member = f"{self.owner}._{found.attribute}"
        match found.type:
            case ir.ConstantType() as constant:
                octets = constant.octets
                self.refuse_if(f"not same({at}, {literal(octets)}, {len(octets)})")
            case ir.IntegerType(octets=octets) as integer:
                self.lines.add(f"{member} = number({at}, {octets})")
                self._in_range(integer, member)
                if integer.bitmask and announcing_bits(self.protocol):
                    self.local("flags")
                    self.lines.add(f"flags = {member}")
                    self.lines.add(f"{member} &= {256**octets - 1 - announcing_bits(self.protocol):#04x}")
            case ir.OctetsType(length=length):
                self.lines.add(f"{member} = bytes_of({at}, {length.octets})")
            case _:
                assert isinstance(found.type, ir.PaddingType)

    def _in_range(self, type: ir.IntegerType, value: str) -> None:
        if members := members_of(type, self.protocol):
            self.refuse_if(none_of(value, members))

    def _take_field(self, found: ir.Field) -> None:
        target = f"{self.owner}._{found.attribute}"
        if Slot(found, False).is_lazy:
            assert isinstance(found.type, ir.ListType | ir.PairsType)
            start = self.local("start")
            self.lines.add(f"{start} = {self.front}")
            self.refuse_if(f"not _skip_{self.names[found.type]}({self.run})")
            self.lines.add(f"{target} = bytes_of({start}, {self.front} - {start})")
            return
        self.take(found.type, target)

    # Values

    def take(self, type: ir.Type, target: str) -> None:
        """Take a value into `target`."""
        match type:
            case ir.IntegerType():
                self.integer(type)
                self.lines.add(f"{target} = value")
            case ir.TextType():
                self.split(type.length)
                self._strip(type)
                self.lines.add(f"{target} = text_in(&piece)")
                self.refuse_if(f"{target} is None")
            case ir.OctetsType():
                self._octets(type)
                self.lines.add(f"{target} = bytes_in(&piece)")
            case ir.ListType() | ir.PairsType() | ir.RecordType() | ir.UnionType():
                self.lines.add(f"{target} = _take_{self.names[type]}({self.run})")
                self.refuse_if(f"{target} is None")
            case ir.ConstantType() as constant:
                fixed = constant.octets
                self.refuse_if(f"left({self.run}) < {len(fixed)}")
                self.refuse_if(f"not same({self.front}, {literal(fixed)}, {len(fixed)})")
                self.lines.add(f"{self.front} += {len(fixed)}")
            case ir.PaddingType(octets=number):
                self.refuse_if(f"not skip({self.run}, {number})")
            case ir.JsonType():
                self.take(ir.TextType(ir.Length("rest")), target)
            case _:
                raise AssertionError("fills a frame, or is read with its run")

    def skip(self, type: ir.Type) -> None:
        """Check a value and advance."""
        match type:
            case ir.IntegerType(octets=octets):
                if members_of(type, self.protocol):
                    self.integer(type)
                else:
                    self.refuse_if(f"not skip({self.run}, {octets})")
            case ir.TextType():
                self.split(type.length)
                self._strip(type)
                self.refuse_if("not text_is_good(&piece)")
            case ir.OctetsType():
                self._octets(type)
            case ir.ListType() | ir.PairsType():
                self.refuse_if(f"not _skip_{self.names[type]}({self.run})")
            case _:
                raise AssertionError("is never kept as octets")

    def integer(self, type: ir.IntegerType) -> None:
        """Take an integer into the variable ``value``."""
        value = self.local("value")
        self.refuse_if(f"left({self.run}) < {type.octets}")
        self.lines.add(f"{value} = number({self.front}, {type.octets})", f"{self.front} += {type.octets}")
        self._in_range(type, value)

    def split(self, length: ir.Length) -> None:
        self.local("piece")
        match length.kind:
            case "prefix":
                call = f"split_prefixed({self.run}, {length.octets}, &piece)"
            case "fixed":
                call = f"split_fixed({self.run}, {length.octets}, &piece)"
            case "until":
                end = bytes.fromhex(length.until)
                call = f"split_until({self.run}, {literal(end)}, {len(end)}, &piece)"
            case "rest":
                self.lines.add(f"split_rest({self.run}, &piece)")
                return
        self.refuse_if(f"not {call}")

    def _strip(self, type: ir.TextType) -> None:
        if type.padding is not None:
            self.lines.add(f"strip(&piece, 0x{type.padding})")
        elif type.terminated:
            self.refuse_if("not strip_nul(&piece)")

    def _octets(self, type: ir.OctetsType) -> None:
        self.split(type.length)
        if type.length.kind == "fixed":
            return
        if type.minimum:
            self.refuse_if(f"left(&piece) < {type.minimum}")
        if type.maximum is not None:
            self.refuse_if(f"left(&piece) > {type.maximum}")

    def size(self, type: ir.SizeType) -> None:
        """Take a size into the variable ``size``."""
        size, lines = self.local("size"), self.lines
        tagged = [form for form in type.forms if form.tag]
        bare = [form for form in type.forms if not form.tag]
        for number, form in enumerate(tagged):
            octets = bytes.fromhex(form.tag)
            test = (
                f"left({self.run}) >= {len(octets)} and same({self.front}, {literal(octets)}, {len(octets)})"
            )
            with lines.block(f"{'elif' if number else 'if'} {test}:"):
                self._sized(size, len(octets), form.octets)
        if not tagged:
            self._sized(size, 0, bare[0].octets)
            return
        with lines.block("else:"):
            if bare:
                self._sized(size, 0, bare[0].octets)
            else:
                lines.add(f"return {self.refusal}")

    def _sized(self, size: str, tag: int, octets: int) -> None:
        at = f"{self.front} + {tag}" if tag else self.front
        self.refuse_if(f"left({self.run}) < {tag + octets}")
        self.lines.add(f"{size} = number({at}, {octets})", f"{self.front} += {tag + octets}")


def members_of(type: ir.IntegerType, protocol: ir.Protocol) -> tuple[int, ...]:
    """Return the allowed values of an integer; empty if any is allowed."""
    if type.enum:
        return tuple(value for enum in protocol.enums if enum.name == type.enum for _, value in enum.members)
    return type.values


def _in_place(found: ir.Field) -> bool:
    """Return whether a field of a run is read at a known offset."""
    plain = isinstance(found.type, ir.ConstantType | ir.IntegerType | ir.PaddingType | ir.OctetsType)
    return plain and fixed_size(found.type) is not None and not found.optional
