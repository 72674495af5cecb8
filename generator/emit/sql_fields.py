"""Fields of one frame in Spark SQL: the conditions under which the frame has them, and their values.

A value after fields of fixed size is at a known position. After texts and octets, its position is a
sum of their lengths, which are read from the frame. Adjacent integers are read together.
"""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator import ir
from specwire.generator.emit.sql_numbers import WORD, by_text, integer, integers
from specwire.generator.emit.sql_text import Lets, NotCovered, Sum, cut, literal, valid_text

PREFIX_OCTETS = 4
"""Largest width of a length: wider ones are not used and would exceed a BIGINT."""


class Run:
    """Fields of one frame; constants in the first `known` octets (None: all) are already checked."""

    def __init__(self, protocol: ir.Protocol, lets: Lets, octets: str, known: int | None) -> None:
        self.protocol, self.lets, self.octets, self.known = protocol, lets, octets, known
        self.at = Sum()
        self.conditions: list[str] = []
        self.columns: list[tuple[str, str]] = []
        self.open = False

    def read(self, fields: tuple[ir.Field, ...]) -> None:
        """Read all fields up to the end of the frame; raise NotCovered for an unsupported type."""
        if any(field.optional for field in fields):
            raise NotCovered
        if len(fields) == 1 and isinstance(fields[0].type, ir.KeywordType | ir.ConstantType):
            self._whole(fields[0].name, fields[0].type)
            return
        waiting = list(fields)
        while waiting:
            words = _together(waiting) if not self.at.terms else []
            if words:
                self._words(words)
                del waiting[: len(words)]
            else:
                self._field(waiting.pop(0))
        if not self.open:
            self.conditions.insert(0, f"octet_length({self.octets}) = {self.at}")
        elif self.at != Sum():
            self.conditions.insert(0, f"octet_length({self.octets}) >= {self.at}")
        else:
            self.conditions.insert(0, f"{self.octets} IS NOT NULL")

    def _whole(self, name: str, type: ir.KeywordType | ir.ConstantType) -> None:
        """Read a frame that is one of several words."""
        if isinstance(type, ir.KeywordType):
            self.columns.append((name, f"cast({self.octets} AS STRING)"))
        if self.known is not None:
            options = (
                [type.octets] if isinstance(type, ir.ConstantType) else [o.encode() for o in type.options]
            )
            self.conditions.append(f"{self.octets} IN ({', '.join(map(literal, options))})")

    def _words(self, fields: list[ir.Field]) -> None:
        """Read adjacent integers together."""
        sizes = [octets_of(field.type) for field in fields]
        values = integers(self.lets, self.octets, self.at, sizes)
        self.columns += ((field.name, value) for field, value in zip(fields, values, strict=True))
        self.at = self.at.plus(sum(sizes))

    def _field(self, field: ir.Field) -> None:
        match field.type:
            case ir.ConstantType(octets=octets):
                if self.at.terms or self.known is None or self.at.fixed + len(octets) > self.known:
                    self.conditions.append(f"{cut(self.octets, self.at, len(octets))} = {literal(octets)}")
                self.at = self.at.plus(len(octets))
            case ir.PaddingType(octets=size):
                self.at = self.at.plus(size)
            case ir.IntegerType(octets=size):
                self._integer(field, size)
            case ir.TextType(length=length, padding=None) if length.kind != "until":
                self._text(field, self._span(length), field.type.terminated)
            case ir.JsonType():
                self._text(field, self._span(ir.Length("rest")), False)
            case ir.OctetsType(length=length, minimum=least, maximum=most) if length.kind != "until":
                value = self._span(length)
                if least:
                    self.conditions.append(f"octet_length({value}) >= {least}")
                if most is not None:
                    self.conditions.append(f"octet_length({value}) <= {most}")
                self.columns.append((field.name, value))
            case _:
                raise NotCovered

    def _integer(self, field: ir.Field, size: int) -> None:
        value = integer(self.lets, self.octets, self.at, size)
        assert isinstance(field.type, ir.IntegerType)
        named = (enum.members for enum in self.protocol.enums if enum.name == field.type.enum)
        values = tuple(number for members in named for _, number in members) or field.type.values
        if values:
            self.conditions.append(f"{value} IN ({', '.join(map(str, values))})")
        # The flags already have a name, which all other expressions use.
        self.columns.append((field.name, self.lets.let("flags", value) if field.type.bitmask else value))
        self.at = self.at.plus(size)

    def _span(self, length: ir.Length) -> str:
        """Return the octets of a value and advance past it."""
        start = self.at
        if length.kind == "rest":
            self.open = True
            return cut(self.octets, start, None)
        if length.kind == "fixed":
            self.at = start.plus(length.octets)
            return cut(self.octets, start, length.octets)
        if length.octets > PREFIX_OCTETS:
            raise NotCovered
        size = self.lets.let("size", f"cast({by_text(self.octets, start, length.octets)} AS BIGINT)")
        start = start.plus(length.octets)
        self.at = start.plus(size)
        return cut(self.octets, start, size)

    def _text(self, field: ir.Field, octets: str, terminated: bool) -> None:
        value, checks = octets, [valid_text(octets)]
        if terminated:
            shorter = f"substring({octets}, 1, octet_length({octets}) - 1)"
            checks.insert(0, f"NOT contains({shorter}, X'00')")
            value = f"if(endswith({octets}, X'00'), {shorter}, {octets})"
        # The same frame may be another field of other messages.
        name = octets.removeprefix("_sql_") if octets == self.octets else field.name
        self.conditions.append(self.lets.let(f"{name}_fits", " AND ".join(checks)))
        self.columns.append((field.name, self.lets.let(f"{name}_text", f"cast({value} AS STRING)")))


def _together(fields: list[ir.Field]) -> list[ir.Field]:
    """Return the leading integers that can be read together, at least two of them."""
    found = list(_first_integers(fields))
    return found if len(found) > 1 else []


def _first_integers(fields: list[ir.Field]) -> Iterator[ir.Field]:
    octets = 0
    for field in fields:
        type = field.type
        if not isinstance(type, ir.IntegerType) or type.bitmask or type.enum or type.values:
            return
        octets += type.octets
        if octets > WORD:
            return
        yield field


def octets_of(type: ir.Type) -> int:
    """Return the fixed size of a value, 0 if it varies."""
    if isinstance(type, ir.ConstantType):
        return len(type.octets)
    return type.octets if isinstance(type, ir.IntegerType | ir.PaddingType) else 0
