"""Emitter of ``schema.py``: Spark StructTypes of the messages and of decoded tables."""

from __future__ import annotations

from specwire.generator import ir
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
from specwire.generator.emit.write import Emitter, header, render

SPARK: dict[Scalar, str] = {
    "int8": "ByteType()",
    "int16": "ShortType()",
    "int32": "IntegerType()",
    "int64": "LongType()",
    "uint64": "DecimalType(20, 0)",
    "float32": "FloatType()",
    "float64": "DoubleType()",
    "string": "StringType()",
    "binary": "BinaryType()",
    "bool": "BooleanType()",
}
PAIRS = {"BINARY_PAIRS", "PAIRS"}


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's schema module."""
    rows = [(message, columns(message, protocol)) for message in protocol.messages]
    names = {name for _, found in rows for name in _names(Struct(found))}
    return render(
        "schema.py.j2",
        header=header(
            protocol, f"{protocol.edition}: Spark schemas of the messages.",
            "The metadata of a field can have these keys: ``comment`` (its meaning, shown by Spark as the column comment),\n"
            "``abnf`` (its grammar rule), ``unit``, ``octets`` (its fixed size), ``content`` (such as ``json``),\n"
            "``timestamp`` and ``epoch`` (unit and origin of a time) and ``source``.",
        ),
        edition=protocol.edition,
        types=sorted({"StructType"} | (names - PAIRS)),
        helpers=sorted({"decoded", "rule_field", "table"} | (names & PAIRS) | _makers(protocol)),
        messages=[
            (message.class_name, message.name, [_field(column) for column in found],
             f"[{', '.join(repr(column.name) for column in found if column.required)}]",
             [_derived(column) for column in derived(message, protocol)])
            for message, found in rows
        ],
    )  # fmt: skip


def _names(kind: Kind) -> set[str]:
    """Return the names that a kind needs: pyspark types, and types shared by the packages."""
    match kind:
        case Many(element=element):
            return {"ArrayType"} | _names(element)
        case Pairs():
            return {_type(kind)}
        case Struct(columns=inside):
            plain = {"StructField"} if any(not column.rule for column in inside) else set()
            return plain.union(*(_names(column.kind) for column in inside))
        case Options(options=options):
            return {"StructField"}.union(*(_names(one.struct) for one in options))
        case scalar:
            return {SPARK[scalar].partition("(")[0]}


def _makers(protocol: ir.Protocol) -> set[str]:
    """Return the names of the functions that create derived columns."""
    found = (column for message in protocol.messages for column in derived(message, protocol))
    return {"flag" if column.mask else "time" if column.timestamp else "json" for column in found}


def _derived(column: Derived) -> str:
    if column.mask:
        return f"flag({column.name!r}, {column.of!r}, {column.mask:#04x}, {column.comment!r})"
    if column.timestamp:
        since = f"{column.timestamp.unit!r}, {column.timestamp.epoch!r}"
        many = ", many=True" if column.many else ""
        return f"time({column.name!r}, {column.of!r}, {since}, {column.comment!r}{many})"
    return f"json({column.name!r}, {column.of!r}, {column.comment!r})"


def _field(column: Column) -> str:
    if column.rule:
        return column.written(_type(column.kind))
    return f"StructField({column.name!r}, {_type(column.kind)}, True, {dict(column.metadata)!r})"


def _type(kind: Kind) -> str:
    match kind:
        case Many(element=element):
            return f"ArrayType({_type(element)})"
        case Pairs(value=value):
            return "PAIRS" if value == "string" else "BINARY_PAIRS"
        case Struct(columns=inside):
            return f"StructType([{', '.join(map(_field, inside))}])"
        case Options(options=options):
            fields = (
                f"StructField({o.name!r}, {_type(o.struct)}, True, { {'comment': o.comment}!r})" for o in options
            )  # fmt: skip
            return f"StructType([{', '.join(fields)}])"
        case scalar:
            return SPARK[scalar]


EMITTER = Emitter("schema.py", emit)
