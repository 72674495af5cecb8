"""Octets of a body in the fast encoders: runs of constants and numbers are one `struct` pack each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specwire.generator import ir
from specwire.generator.emit.bodies import run_names
from specwire.generator.emit.local_names import LocalNames
from specwire.generator.emit.numbers import is_little, struct_code
from specwire.generator.emit.python import STRUCT_CODES, Lines, octets_literal
from specwire.generator.ir.names import constant_name
from specwire.generator.support.layout import Boolean, Integer
from specwire.generator.support.plan import Number, Plan, RecordPlan, fixed_octets

WIDTH_STRUCTS = {code: f"_U{octets * 8}" for octets, code in STRUCT_CODES.items()}
"""Struct objects of one integer, shared by all messages."""


@dataclass
class Encoder:
    """Encoder under construction: its lines and struct objects."""

    name: str
    """Name of the message or record, used in the names of struct objects."""
    fields: tuple[ir.Field, ...]
    protocol: ir.Protocol
    plan: Plan
    depth: str = "0"
    """Expression for the number of records that contain the values."""
    lines: Lines = field(default_factory=lambda: Lines(3))
    structs: dict[str, str] = field(default_factory=dict)
    names: LocalNames = field(init=False)
    records: Mapping[str, RecordPlan] = field(init=False)
    runs: Mapping[bytes, str] = field(init=False)
    """Octets of which texts are runs -> name of their regular expression."""
    packs: int = 0

    def __post_init__(self) -> None:
        self.names = LocalNames(field.attribute for field in self.fields)
        self.records = {record.class_name: record for record in self.plan.records}
        self.runs = run_names(self.plan)

    def refuse_if(self, condition: str, error: str = "ValueError") -> None:
        """Add a check."""
        with self.lines.block(f"if {condition}:"):
            self.lines.add(f"raise {error}")

    def tuple_only(self, value: str) -> None:
        """Add a check against other iterables, which would not decode to the same value."""
        self.refuse_if(f"not isinstance({value}, tuple)", "TypeError")

    def struct(self, format: str) -> str:
        """Return the name of a struct object of that format."""
        self.packs += 1
        name = f"_WRITE_{constant_name(self.name)}{f'_{self.packs}' if self.packs > 1 else ''}"
        self.structs[name] = format
        return name


class Pieces:
    """Expressions for the octets of a body, in order: constants and numbers are packed together."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.octets: list[str] = []
        """Expressions; empty for a place that is not filled yet."""
        self._order = ""
        self._codes = ""
        self._arguments: list[str] = []
        self._constant = b""

    def constant(self, octets: bytes) -> None:
        """Add constant octets."""
        self._constant += octets

    def append(self, piece: str) -> None:
        """Add octets of variable size."""
        self.flush()
        self.octets.append(piece)

    def number(self, op: Number, value: str) -> None:
        """Add a number of fixed size, the value of an expression."""
        code, little = struct_code(op.coding), is_little(op.coding)
        order = "" if little is None else "<" if little else ">"
        if code and (not order or self._order in ("", order)):
            self._order = self._order or order
            self.add(code, value)
            return
        octets = fixed_octets(op) or 0
        if not code:
            assert isinstance(op.coding, Integer | Boolean)
            signed = isinstance(op.coding, Integer) and op.coding.signed
            call = "twos_complement" if signed else "unsigned"
            byteorder = ', "little"' if little else ""
            self.add(f"{octets}s", f"{call}({value}, {octets}{byteorder})")
            return
        # Another byte order than that of the run before.
        self.flush()
        self.number(op, value)

    def add(self, code: str, argument: str) -> None:
        """Add a value that `struct` packs with `code`."""
        self._close_constant()
        self._codes += code
        self._arguments.append(argument)

    def _close_constant(self) -> None:
        if self._constant:
            self._codes += f"{len(self._constant)}s"
            self._arguments.append(octets_literal(self._constant))
            self._constant = b""

    def flush(self) -> None:
        """End the run: add one pack, or a literal if it consists of constants."""
        if self._constant and not self._codes:
            self.octets.append(octets_literal(self._constant))
            self._constant = b""
        self._close_constant()
        if self._codes:
            self.octets.append(self._packed())
        self._order, self._codes, self._arguments = "", "", []

    def _packed(self) -> str:
        codes, arguments = self._codes, self._arguments
        if len(arguments) == 1 and codes.endswith("s"):
            # Octets whose length is already checked.
            return arguments[0]
        if codes == "B" and arguments[0].startswith("len(") and " " not in arguments[0]:
            # A longer value has no entry in the table; packing its length would take three times as long.
            return f"OCTETS[{arguments[0]}]"
        shared = WIDTH_STRUCTS.get(codes) if self._order != "<" else None
        name = shared or self.encoder.struct(f"{self._order or '>'}{codes}")
        return f"{name}.pack({', '.join(arguments)})"

    def joined(self) -> str:
        """Return all octets as one expression."""
        return " + ".join(filter(None, self.octets)) or 'b""'
