"""Emitter of ``sql.py``: messages with fixed layouts as Spark SQL expressions."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.sql_errors import error_of
from specwire.generator.emit.sql_messages import MessageText
from specwire.generator.emit.sql_text import Lets, NotCovered, quoted
from specwire.generator.emit.write import Emitter, header, render


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's sql module; empty if no message can be covered."""
    lets, found, left = Lets(), list[MessageText](), list[str]()
    if any(selector.pattern for selector in protocol.selectors) or not protocol.selectors:
        return ""
    for message in protocol.messages:
        try:
            found.append(MessageText(message, protocol, lets))
        except NotCovered:
            left.append(message.class_name)
    if not found:
        return ""
    choice = "\n".join(["CASE", *(_when(one) for one in found), "END"])
    structs = [(one.message.class_name, _struct(one)) for one in found]
    return render(
        "sql.py.j2",
        header=header(
            protocol,
            f"{protocol.edition}: messages as Spark SQL expressions.",
            _coverage(left),
        ),
        levels=lets.levels("\n".join([choice, *(struct for _, struct in structs)])),
        message=choice,
        structs=structs,
        error="" if left else error_of(protocol),
    )


def _when(one: MessageText) -> str:
    conditions = "\n    AND ".join(one.conditions)
    return f"  WHEN {conditions}\n  THEN {quoted(one.message.class_name)}"


def _struct(one: MessageText) -> str:
    return "named_struct(\n  " + ",\n  ".join(one.struct) + "\n)"


def _coverage(left: list[str]) -> str:
    if not left:
        return "Every message of the protocol is covered."
    return f"Not covered, because SQL cannot locate all of their fields: {', '.join(left)}."


EMITTER = Emitter("sql.py", emit)
