"""Writes ``schema.py``: Spark's StructTypes of the messages and of decoded tables."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.tables import Column, Kind, columns
from specwire.generator.emit.write import Emitter, header, render

SPARK: dict[Kind, str] = {
    "int16": "ShortType()",
    "int32": "IntegerType()",
    "int64": "LongType()",
    "uint64": "DecimalType(20, 0)",
    "string": "StringType()",
    "binary": "BinaryType()",
    "pairs": "PAIRS",
    "bool": "BooleanType()",
}


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's schema module."""
    messages = [
        (message.class_name, message.name, [_field(column) for column in columns(message, protocol)])
        for message in protocol.messages
    ]
    text = str(messages)
    types = {"ArrayType", *(type.partition("(")[0] for type in SPARK.values() if type != "PAIRS")}
    return render(
        "schema.py.j2",
        header=header(
            protocol, f"{protocol.edition}: Spark schemas of the messages.",
            "Each field's metadata says what it is (``comment``, which Spark shows as the column's), which rule of the\n"
            "grammar it comes from (``abnf``), its ``unit``, and its ``source``.",
        ),
        types=sorted({"StructField", "StructType"} | {name for name in types if f"{name}(" in text}),
        helpers=["COMMON", *(["PAIRS"] if "PAIRS" in text else [])],
        messages=messages,
    )  # fmt: skip


def _field(column: Column) -> str:
    type = SPARK[column.kind]
    if column.repeated:
        type = f"ArrayType({type})"
    return f"StructField({column.name!r}, {type}, True, {dict(column.metadata)!r})"


EMITTER = Emitter("schema.py", emit)
