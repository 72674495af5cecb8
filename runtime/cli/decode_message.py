"""One message for a person: what it is called, its frames, and its fields with what their values mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import IntEnum
from math import isfinite
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import UUID

from specwire.runtime.cli.console import new_table, output
from specwire.runtime.log.text import show

if TYPE_CHECKING:
    from specwire.generated.payloads import PayloadReading

SHOWN_OCTETS = 48


def plain(value: Any) -> Any:
    """Return a value of a field as JSON has it: octets in hexadecimal, pairs and lists as arrays, the grammar's names.

    UUIDs are strings, and so are floats that are no numbers: ``nan``, ``inf``, ``-inf``.
    """
    match value:
        case bytes():
            return value.hex()
        case UUID():
            return str(value)
        case float() if not isfinite(value):
            return str(value)
        case dict():
            return {grammar_name(name): plain(item) for name, item in value.items()}
        case tuple() | list():
            return [plain(item) for item in value]
    return value


def grammar_name(attribute: str) -> str:
    """Return what a field is called outside of Python: without the ``_`` of a name that means something else there."""
    return attribute.rstrip("_")


def payload_of(package: ModuleType, message: Any) -> PayloadReading | None:
    """Return the payload of a message; None if its package does not describe it, or it is not JSON."""
    payloads = getattr(package, "payloads", None)
    return None if payloads is None else payloads.read(message)


def payload_object(found: PayloadReading) -> dict[str, Any]:
    """Return a payload as JSON; one that does not fit has a `fault`."""
    fault = {"fault": found.fault} if found.fault else {}
    return {"topic": found.topic, "field": grammar_name(found.field), "value": found.value, **fault}


def show_message(package: ModuleType, message: Any, frames: Sequence[bytes]) -> None:
    """Print a message with its frames, and its payload if the package describes it."""
    from rich.text import Text

    console = output()
    console.print(Text(f"{message.PROTOCOL} {type(message).__name__} ({message.NAME})", style="bold"))
    wire = new_table(title="frames", title_justify="left")
    for head in ("frame", "octets", "content"):
        wire.add_column(head, overflow="fold", justify="right" if head == "octets" else "left")
    for index, frame in enumerate(frames):
        wire.add_row(str(index), str(len(frame)), Text(preview(frame)))
    console.print(wire)
    table = new_table(title="fields", title_justify="left")
    for head in ("field", "value", "meaning"):
        table.add_column(head, overflow="fold")
    for name, value in message.to_dict().items():
        shown = message.wire_flags if name == "flags" and hasattr(message, "wire_flags") else value
        lines = "\n".join(map(show, _value(shown).split("\n")))
        table.add_row(Text(grammar_name(name)), Text(lines), Text(meaning(package, name, shown)))
    console.print(table)
    found = payload_of(package, message)
    if found is not None:
        _show_payload(found)


def _show_payload(found: PayloadReading) -> None:
    from rich.text import Text

    keys = found.value if isinstance(found.value, dict) else {"": found.value}
    if found.value is not None:
        table = new_table(title=show(f"{found.field}: {found.topic}"), title_justify="left")
        for head in ("key", "value"):
            table.add_column(head, overflow="fold")
        for key, value in keys.items():
            table.add_row(Text(show(key)), Text(show(json.dumps(value, ensure_ascii=False))))
        output().print(table)
    if found.fault:
        output().print(Text(show(found.fault), style="red"))


def preview(octets: bytes, most: int = SHOWN_OCTETS) -> str:
    """Return octets as text where they are text, else in hexadecimal; long ones are cut and say so."""
    if not octets:
        return "(empty)"
    cut = octets[:most]
    more = f" ... {len(octets) - len(cut)} more" if len(octets) > len(cut) else ""
    printable = all(0x20 <= octet <= 0x7E or octet == 0 for octet in cut) and any(cut)
    return (repr(cut)[1:] if printable else cut.hex(" ", 4)) + more


def _value(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bytes():
            return preview(value)
        case dict():
            return ", ".join(f"{name} = {_value(item)}" for name, item in value.items())
        case ((str(), str()), *_):
            return "\n".join(f"{name} = {item}" for name, item in value)
        case tuple():
            return "\n".join(_value(item) for item in value) or "(none)"
        case str():
            return value or "(empty)"
    return str(value)


def meaning(package: ModuleType, name: str, value: Any) -> str:
    """Return what a number is called: a constant, the names of its bits, a member of its enumeration."""
    if not isinstance(value, int):
        return ""
    if name == "flags" and hasattr(package, "Flags"):
        names = [flag.name or "" for flag in package.Flags if flag & value]
        return f"0x{value:02x}: {' '.join(names).lower()}".rstrip(": ")
    enum = getattr(package, grammar_name(name).title().replace("_", ""), None)
    if isinstance(enum, type) and issubclass(enum, IntEnum) and value in list(enum):
        return enum(value).name.lower()
    constants = [c for c in dir(package) if c.startswith(f"{name.upper()}_") and getattr(package, c) == value]
    return constants[0] if constants else ""
