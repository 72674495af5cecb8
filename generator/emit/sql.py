"""Writes ``sql.py``: messages with fixed layouts as expressions of Spark's SQL."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.sql_messages import MessageText, NotCovered
from specwire.generator.emit.sql_text import Lets, quoted
from specwire.generator.emit.write import Emitter, header, render


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's sql module, an empty text where no message can be covered."""
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
    choice = ["CASE", *(_when(one) for one in found), "END"]
    structs = [(one.message.class_name, one.struct) for one in found]
    text = "\n".join([*choice, *(field for _, fields in structs for field in fields)])
    return render(
        "sql.py.j2",
        header=header(
            protocol,
            f"{protocol.edition}: messages as expressions of Spark's SQL.",
            _coverage(left),
        ),
        levels=lets.levels(text),
        message=choice,
        structs=structs,
    )


def _when(one: MessageText) -> str:
    conditions = "\n    AND ".join(one.conditions)
    return f"  WHEN {conditions}\n  THEN {quoted(one.message.class_name)}"


def _coverage(left: list[str]) -> str:
    if not left:
        return "Every message of the protocol is covered."
    return f"Not covered, because their fields stand behind lists: {', '.join(left)}."


EMITTER = Emitter("sql.py", emit)
