"""Writes ``columns.py``: the pyarrow schema of decoded messages, and the decoder of whole arrays."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.tables import Column, Kind, columns
from specwire.generator.emit.write import Emitter, header, render

ARROW: dict[Kind, str] = {
    "int16": "pa.int16()",
    "int32": "pa.int32()",
    "int64": "pa.int64()",
    "uint64": "UINT64",
    "string": "pa.string()",
    "binary": "pa.binary()",
    "pairs": "PAIRS",
    "bool": "pa.bool_()",
}


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's columns module."""
    messages = [
        (message.class_name, message.name, [_field(column) for column in columns(message, protocol)],
         tuple((column.name, column.attribute) for column in columns(message, protocol)))
        for message in protocol.messages
    ]  # fmt: skip
    text = str(messages)
    return render(
        "columns.py.j2",
        header=header(protocol, f"{protocol.edition}: arrays of messages to columns."),
        name=protocol.name,
        messages=messages,
        helpers=[name for name in ("PAIRS", "UINT64") if name in text],
    )


def _field(column: Column) -> str:
    type = ARROW[column.kind]
    if column.repeated:
        type = f"pa.list_({type})"
    metadata = dict(column.metadata)
    return f"pa.field({column.name!r}, {type}, metadata={metadata!r})"


EMITTER = Emitter("columns.py", emit)
