"""Emitter of ``columns.py``: the pyarrow schema of decoded messages, and the codec of whole arrays."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.tables import Column, Kind, Many, Options, Pairs, Scalar, Struct, columns
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.passes.shapes import takes_sender

ARROW: dict[Scalar, str] = {
    "int8": "pa.int8()",
    "int16": "pa.int16()",
    "int32": "pa.int32()",
    "int64": "pa.int64()",
    "uint64": "UINT64",
    "float32": "pa.float32()",
    "float64": "pa.float64()",
    "string": "pa.string()",
    "binary": "pa.binary()",
    "bool": "pa.bool_()",
}

TYPES = ("BINARY_PAIRS", "PAIRS", "UINT64")
"""Helpers that are types."""

SEVERAL = "lists of binary values. Each list holds the ZeroMQ frames of one message."
SINGLE = f"binary values, one for each message; or {SEVERAL}"
NEEDED = """for each message, the letter of the role that sent it; null or empty if unknown. It distinguishes
            messages whose frames look alike. Messages that this role does not send are rejected."""
NOT_NEEDED = "letters of the roles that sent the messages. Ignored: the frames identify each message."


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's columns module."""
    rows = [(message, columns(message, protocol)) for message in protocol.messages]
    by_sender = takes_sender(protocol)
    single = all(len(m.parts) == 1 and isinstance(m.parts[0], ir.Frame) for m in protocol.messages)
    helpers = {name for _, found in rows for column in found for name in _helpers(column.kind)}
    return render(
        "columns.py.j2",
        header=header(protocol, f"{protocol.edition}: decoder and encoder between arrays of messages and columns."),
        edition=protocol.edition,
        messages=[
            (message.class_name, message.name, [_field(column) for column in found],
             f"({', '.join(map(_source, found))},)")
            for message, found in rows
        ],
        helpers=[("columns" if helper in TYPES else "columns.rows", helper) for helper in sorted(helpers)],
        by_sender=", by_sender=True" if by_sender else "",
        array=SINGLE if single else SEVERAL,
        senders=NEEDED if by_sender else NOT_NEEDED,
    )  # fmt: skip


def _helpers(kind: Kind) -> set[str]:
    """Return the names of `specwire.generated.columns` that a kind needs."""
    match kind:
        case "uint64":
            return {"UINT64"}
        case Many(element=element):
            inside = _helpers(element)
            return inside | ({"each"} if _conversion(element) else set())
        case Pairs():
            return {_type(kind), "pairs"}
        case Struct(columns=inside_columns):
            return {"record"}.union(*(_helpers(column.kind) for column in inside_columns))
        case Options(options=options):
            return {"option"}.union(*(_helpers(one.struct) for one in options))
    return set()


def _field(column: Column) -> str:
    if column.rule:
        return column.written(_type(column.kind))
    return f"pa.field({column.name!r}, {_type(column.kind)}, metadata={dict(column.metadata)!r})"


def _type(kind: Kind) -> str:
    match kind:
        case Many(element=element):
            return f"pa.list_({_type(element)})"
        case Pairs(value=value):
            return "PAIRS" if value == "string" else "BINARY_PAIRS"
        case Struct(columns=inside):
            return f"pa.struct([{', '.join(map(_field, inside))}])"
        case Options(options=options):
            fields = (
                f"pa.field({o.name!r}, {_type(o.struct)}, metadata={ {'comment': o.comment}!r})" for o in options
            )  # fmt: skip
            return f"pa.struct([{', '.join(fields)}])"
        case scalar:
            return ARROW[scalar]


def _source(column: Column) -> str:
    """Return the source of a column: its name, its attribute, and its conversion if it needs one."""
    convert = _conversion(column.kind)
    return f"({column.name!r}, {column.attribute!r}{f', {convert}' if convert else ''})"


def _conversion(kind: Kind) -> str:
    """Return the expression for the conversion of a value for pyarrow; empty if it needs none."""
    match kind:
        case Many(element=element):
            inside = _conversion(element)
            return f"each({inside})" if inside else ""
        case Pairs():
            return "pairs"
        case Struct(columns=inside):
            return f"record({', '.join(map(_source, inside))})"
        case Options(options=options):
            return f"option({', '.join(f'{o.class_name}=({o.name!r}, {_conversion(o.struct)})' for o in options)})"
        case _:
            return ""


EMITTER = Emitter("columns.py", emit, requires=("codec",))
