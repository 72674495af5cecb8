"""State of a decoder under construction: its lines, struct objects and field values."""

from __future__ import annotations

from dataclasses import dataclass, field

from specwire.generator import ir
from specwire.generator.emit.local_names import LocalNames
from specwire.generator.emit.python import Lines
from specwire.generator.names import constant_name


@dataclass
class Decoder:
    """Decoder under construction: its lines, struct objects, and the values of fields so far."""

    name: str
    """Name of the message or record, used in the names of struct objects."""
    fields: tuple[ir.Field, ...]
    protocol: ir.Protocol
    lines: Lines = field(default_factory=lambda: Lines(1))
    structs: dict[str, str] = field(default_factory=dict)
    """Name of a struct object -> its format."""
    values: dict[str, str] = field(default_factory=dict)
    """Field attribute -> expression for its value."""
    names: LocalNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = LocalNames(field.attribute for field in self.fields)

    def refuse_if(self, condition: str) -> None:
        """Add a check."""
        with self.lines.block(f"if {condition}:"):
            self.lines.add("raise ValueError")

    def struct(self, suffix: str, codes: str) -> str:
        """Return the name of a struct object of that format."""
        stem = name = f"_READ_{constant_name(self.name)}{suffix}"
        number = 1
        while self.structs.get(name, f">{codes}") != f">{codes}":
            number += 1
            name = f"{stem}_{number}"
        self.structs[name] = f">{codes}"
        return name


@dataclass
class MessageDecoder(Decoder):
    """Decoder of a message, which has frames."""

    message: ir.Message = field(kw_only=True)
