"""Fields of one frame or record in the fast encoders: packed runs and the octets between them.

A run of constants, integers, lengths and counts is one `struct` pack; texts, lists and records
follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specwire.generator import ir
from specwire.generator.emit.local_names import LocalNames
from specwire.generator.emit.python import (
    STRUCT_CODES,
    Lines,
    announcing_bits,
    element_annotation,
    octets_literal,
)
from specwire.generator.emit.records import function_name, strict_matters
from specwire.generator.names import constant_name
from specwire.generator.passes.layouts import least_octets


@dataclass
class Encoder:
    """Encoder under construction: its lines and struct objects."""

    name: str
    """Name of the message or record, used in the names of struct objects."""
    fields: tuple[ir.Field, ...]
    protocol: ir.Protocol
    lines: Lines = field(default_factory=lambda: Lines(3))
    structs: dict[str, str] = field(default_factory=dict)
    names: LocalNames = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        self.names = LocalNames(field.attribute for field in self.fields)

    def refuse_if(self, condition: str) -> None:
        """Add a check."""
        with self.lines.block(f"if {condition}:"):
            self.lines.add("raise ValueError")

    def tuple_only(self, value: str) -> None:
        """Add a check against other iterables, which would not decode to the same value."""
        with self.lines.block(f"if not isinstance({value}, tuple):"):
            self.lines.add("raise TypeError")

    def struct(self, codes: str) -> str:
        """Return the name of a struct object of that format."""
        self.runs += 1
        name = f"_WRITE_{constant_name(self.name)}{f'_{self.runs}' if self.runs > 1 else ''}"
        self.structs[name] = f">{codes}"
        return name


class Run:
    """Consecutive values: packed runs and the variable octets between them.

    `owner` is the expression for the message or record that has the fields.
    """

    def __init__(self, encoder: Encoder, owner: str) -> None:
        self.encoder = encoder
        self.owner = owner
        self.pieces: list[str] = []
        self.codes = ""
        self.arguments: list[str] = []
        self.constant = b""

    def expression(self, fields: Sequence[ir.Field]) -> str:
        """Return the octets of the fields as one expression, after adding the statements it needs."""
        left_out = ""
        for number, found in enumerate(fields):
            if isinstance(found.type, ir.SizeType):
                rest = Run(self.encoder, self.owner).expression(fields[number + 1 :])
                self._flush()
                forms = tuple((bytes.fromhex(form.tag), form.octets) for form in found.type.forms)
                self.pieces.append(f"sized({rest}, {forms!r})")
                break
            if found.optional:
                left_out = self._optional(found, left_out)
            else:
                self._field(found)
        self._flush()
        return " + ".join(self.pieces) or 'b""'

    def _optional(self, found: ir.Field, left_out: str) -> str:
        """Add a value that may be omitted together with all later ones; return the condition for that."""
        name = f"{self.owner}.{found.attribute}"
        self._flush()
        octets = self.encoder.names.fresh("octets", "bytes")
        lines = self.encoder.lines
        lines.add(f'{octets} = b""')
        with lines.block(f"if {name} is not None:"):
            if left_out:
                self.encoder.refuse_if(left_out)
            lines.add(f"{octets} = {self._of(found.type, name, found.attribute)}")
            if not least_octets(found.type):
                self.encoder.refuse_if(f"not {octets}")
        self.pieces.append(octets)
        return f"{name} is None"

    def _of(self, type: ir.Type, value: str, target: str) -> str:
        """Return the octets of one value as an expression."""
        run = Run(self.encoder, self.owner)
        run.value(type, value, target)
        run._flush()
        return " + ".join(run.pieces) or 'b""'

    def _add(self, code: str, argument: str) -> None:
        self._close_constant()
        self.codes += code
        self.arguments.append(argument)

    def _close_constant(self) -> None:
        if self.constant:
            self.codes += f"{len(self.constant)}s"
            self.arguments.append(octets_literal(self.constant))
            self.constant = b""

    def _flush(self) -> None:
        """End the run: add one pack, or a literal if it consists of constants."""
        if self.constant and not self.codes:
            self.pieces.append(octets_literal(self.constant))
            self.constant = b""
        self._close_constant()
        if not self.codes:
            return
        if len(self.arguments) == 1 and self.codes.endswith("s"):
            # Octets whose length is already checked.
            self.pieces.append(self.arguments[0])
            self.codes, self.arguments = "", []
            return
        if self.codes == "B" and self.arguments[0].startswith("len("):
            # A longer value has no entry in the table; packing its length would take three times as
            # long.
            self.pieces.append(f"OCTETS[{self.arguments[0]}]")
        else:
            name = _WIDTH_STRUCTS.get(self.codes) or self.encoder.struct(self.codes)
            self.pieces.append(f"{name}.pack({', '.join(self.arguments)})")
        self.codes, self.arguments = "", []

    def _field(self, found: ir.Field) -> None:
        if isinstance(found.type, ir.IntegerType) and found.type.bitmask:
            derived = announcing_bits(self.encoder.protocol)
            self._integer(found.type.octets, "flags" if derived else f"{self.owner}.{found.attribute}")
        else:
            self.value(found.type, f"{self.owner}.{found.attribute}", found.attribute)

    def value(self, type: ir.Type, value: str, target: str) -> None:
        """Add one value; statements may use the local name `target` for its octets."""
        lines = self.encoder.lines
        match type:
            case ir.ConstantType() as constant:
                self.constant += constant.octets
            case ir.PaddingType(octets=octets, fill=fill):
                self.constant += bytes.fromhex(fill) * octets
            case ir.IntegerType(octets=octets, enum=enum, values=values):
                if enum or values:
                    self.encoder.refuse_if(f"{value} not in {f'_{enum.upper()}' if enum else repr(values)}")
                self._integer(octets, value)
            case ir.TextType(length=length, padding=str(fill)):
                octet = octets_literal(bytes.fromhex(fill))
                self._add(f"{length.octets}s", f"padded({value}, {length.octets}, {octet})")
            case ir.TextType(length=length, terminated=terminated):
                lines.add(
                    f"{target} = {f'terminated({value}, strict)' if terminated else f'{value}.encode()'}"
                )
                self._spanned(target, length)
            case ir.OctetsType(length=length):
                lines.add(f"{target} = as_octets({value})")
                self._bounds(target, type)
                self._spanned(target, length)
            case ir.PairsType():
                self._pairs(type, value, target)
            case ir.ListType():
                self._list(type, value, target)
            case ir.RecordType() | ir.UnionType():
                self._flush()
                strict = ", strict" if strict_matters(self.encoder.protocol) else ""
                self.pieces.append(f"_write_{function_name(type)}({value}{strict})")
            case _:
                raise AssertionError(f"{target} fills a frame")

    def _integer(self, octets: int, value: str) -> None:
        if octets in STRUCT_CODES:
            self._add(STRUCT_CODES[octets], value)
        else:
            self._add(f"{octets}s", f"unsigned({value}, {octets})")

    def _bounds(self, target: str, type: ir.OctetsType) -> None:
        if type.length.kind == "fixed":
            return
        if type.minimum:
            self.encoder.refuse_if(f"len({target}) < {type.minimum}")
        if type.maximum is not None:
            self.encoder.refuse_if(f"len({target}) > {type.maximum}")

    def _spanned(self, name: str, length: ir.Length) -> None:
        if length.kind == "fixed":
            self.encoder.refuse_if(f"len({name}) != {length.octets}")
            self._add(f"{length.octets}s", name)
            return
        if length.kind == "until":
            end = octets_literal(bytes.fromhex(length.until))
            self.encoder.refuse_if(f"({name} + {end}).index({end}) != len({name})")
        if length.kind == "prefix":
            self._integer(length.octets, f"len({name})")
        self._flush()
        self.pieces.append(name)

    def _pairs(self, type: ir.PairsType, value: str, target: str) -> None:
        lines, names = self.encoder.lines, self.encoder.names
        content_type = "str" if type.value is None else element_annotation(type.value)
        self.encoder.tuple_only(value)
        lines.add(f"{target} = []")
        with names.scope():
            pair = names.fresh("pair", f"tuple[str, {content_type}]")
            with lines.block(f"for {pair} in {value}:"):
                name, content = names.fresh("name", "str"), names.fresh("value", content_type)
                lines.add(f"{name}, {content} = {pair}")
                lines.add(f"{target}.append({self._pair(type, pair, name, content)})")
        self._joined(target, type)

    def _pair(self, type: ir.PairsType, pair: str, name: str, content: str) -> str:
        """Return the octets of one pair as an expression."""
        names = self.encoder.names
        if type.value is None:
            undivided = name if type.split == "first" else content
            self.encoder.refuse_if(f'not isinstance({pair}, tuple) or "=" in {undivided}')
            return self._of(type.name, f'({name} + "=" + {content})', names.fresh("entry", "bytes"))
        self.encoder.tuple_only(pair)
        both = Run(self.encoder, self.owner)
        both.value(type.name, name, names.fresh("key", "bytes"))
        both.value(type.value, content, names.fresh("content", "bytes"))
        both._flush()
        return " + ".join(both.pieces)

    def _list(self, type: ir.ListType, value: str, target: str) -> None:
        lines, names = self.encoder.lines, self.encoder.names
        self.encoder.tuple_only(value)
        lines.add(f"{target} = []")
        with names.scope():
            item = names.fresh("item", element_annotation(type.element))
            with lines.block(f"for {item} in {value}:"):
                many = isinstance(type.element, ir.ListType | ir.PairsType)
                entry = names.fresh("entries" if many else "entry", "list[bytes]" if many else "bytes")
                lines.add(f"{target}.append({self._of(type.element, item, entry)})")
        self._joined(target, type)

    def _joined(self, target: str, type: ir.PairsType | ir.ListType) -> None:
        if type.minimum:
            self.encoder.refuse_if(f"len({target}) < {type.minimum}")
        if type.count_octets:
            self._integer(type.count_octets, f"len({target})")
        self._flush()
        self.pieces.append(f'b"".join({target})')


_WIDTH_STRUCTS = {code: f"_U{octets * 8}" for octets, code in STRUCT_CODES.items()}
"""Struct objects of one integer, shared by all messages."""
