"""Table of a message's columns on Spark, as in the schema."""

from __future__ import annotations

from collections.abc import Iterable

from specwire.generator import ir
from specwire.generator.emit.reference.facts import Table
from specwire.generator.emit.tables import (
    Column,
    Derived,
    Kind,
    Many,
    Options,
    Pairs,
    Scalar,
    Struct,
    columns,
    derived,
)

_TYPES: dict[Scalar, str] = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint64": "decimal(20,0)",
    "float32": "float",
    "float64": "double",
    "string": "string",
    "binary": "binary",
    "bool": "boolean",
}


def view_columns(message: ir.Message, protocol: ir.Protocol) -> Table:
    """Return the columns of a message's table, without the capture columns that all tables have."""
    rows = [*map(_row, columns(message, protocol)), *map(_derived_row, derived(message, protocol))]
    return Table(
        f"Columns of {message.class_name}", ("Column", "Type", "Null", "Unit", "Comment"), tuple(rows)
    )


def _row(column: Column) -> tuple[str, ...]:
    about = dict(column.metadata)
    null = "never" if column.required else "if absent"
    return (column.name, _type(column.kind), null, about.get("unit", ""), about.get("comment", ""))


def _derived_row(column: Derived) -> tuple[str, ...]:
    kind, null = "string", "if it is no JSON"
    if column.mask:
        kind, null = "boolean", "never"
    elif column.timestamp:
        kind = "array<timestamp>" if column.many else "timestamp"
        null = "outside the years 0001 to 9999"
    return (column.name, kind, null, "", f"{column.comment} Derived from {column.of}.".strip())


def _type(kind: Kind) -> str:
    match kind:
        case Many(element=element):
            return f"array<{_type(element)}>"
        case Pairs(value=value):
            return f"array<struct<name: string, value: {value}>>"
        case Struct(columns=inside):
            return _struct((column.name, column.kind) for column in inside)
        case Options(options=options):
            return _struct((option.name, option.struct) for option in options)
        case scalar:
            return _TYPES[scalar]


def _struct(inside: Iterable[tuple[str, Kind]]) -> str:
    return f"struct<{', '.join(f'{name}: {_type(kind)}' for name, kind in inside)}>"
