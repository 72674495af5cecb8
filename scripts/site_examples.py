"""A worked example of each message: its octets, one after the other, with the field that each belongs to.

Where ``tests/vectors`` has octets of that message that another implementation or a person wrote, these are taken
(the shortest of those that show most of its fields); else those of the call that the page shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from specwire.generated.errors import DecodeError
from specwire.generated.marks import Mark, mark_fields
from specwire.generator import ir
from specwire.generator.emit.reference.facts import Table
from specwire.generator.emit.reference.snippets import construct

VECTORS = Path(__file__).resolve().parents[1] / "tests" / "vectors"
RECORDED: Mapping[str, Mapping[str, str]] = {
    "filemq": {"filemq-seed-hand.json": "Written by hand after the specification"},
    "flux": {
        "flux-core-0.88.json": "As flux-core 0.88 wrote it",
        "flux-cli-0.88.json": "As the flux command of flux-core 0.88 wrote it",
    },
    "libfilemq": {"filemq-libfilemq.json": "As the C implementation wrote it"},
    "norfab_ascii": {"norfab-0.25-0.6.json": "As the package norfab wrote it"},
    "zmtp": {"zmtp-libzmq-4.3.5.json": "As libzmq 4.3.5 wrote it"},
    "zre": {"zre-rfc36.json": "Written by hand after the specification, and read by Pyre"},
}
"""Files with messages of a protocol that something else than specwire wrote, and what."""

LONGEST = 200
"""Octets of the longest message that a person may want to read one by one."""
_EMPTY = "An empty frame, which parts what is before it from what follows."
LONGEST_RUN = 48
"""Octets of one field that are shown."""


def examples(protocol: ir.Protocol) -> dict[str, Table]:
    """Return a table of octets for each message, by the name of its class."""
    package = import_module(f"specwire.generated.{protocol.name}")
    recorded = _recorded(protocol.name)
    found = {}
    for message in protocol.messages:
        sender = message.senders[0] if message.senders else None
        made = eval(construct(protocol, message), {protocol.name: package})
        choice = recorded.get(message.class_name)
        frames, origin = choice if choice else (made.encode(), "Octets of the call above")
        found[message.class_name] = _explain(protocol, package, frames, sender, origin)
    return found


@cache
def _recorded(protocol: str) -> Mapping[str, tuple[list[bytes], str]]:
    """Return the best recorded frames of each message, with what wrote them."""
    package = import_module(f"specwire.generated.{protocol}")
    best: dict[str, tuple[tuple[int, int], list[bytes], str]] = {}
    for name, origin in RECORDED.get(protocol, {}).items():
        for vector in json.loads((VECTORS / name).read_text(encoding="utf-8")):
            frames = [bytes.fromhex(frame) for frame in vector.get("frames_hex", [])]
            size = sum(map(len, frames))
            try:
                message = package.decode(frames)
            except DecodeError:
                continue  # a fault that was recorded on purpose, or octets that are no message
            marks, _ = mark_fields(package.layout.LAYOUT, frames)
            rank = (-len({mark.field for mark in marks}), size)
            class_name = type(message).__name__
            if size <= LONGEST and (class_name not in best or rank < best[class_name][0]):
                best[class_name] = (rank, frames, origin)
    return {name: (frames, origin) for name, (_, frames, origin) in best.items()}


def _explain(
    protocol: ir.Protocol, package: ModuleType, frames: Sequence[bytes], sender: str | None, origin: str
) -> Table:
    marks, _ = mark_fields(package.layout.LAYOUT, frames, sender)
    known = {"sender": sender} if sender and "sender" in package.decode.__code__.co_varnames else {}
    message = package.decode(frames, **known)
    model = next(found for found in protocol.messages if found.class_name == type(message).__name__)
    fields = _fields(model)
    rows = []
    for mark in _with_empty_frames(marks, frames):
        octets = frames[mark.frame][mark.offset : mark.offset + mark.octets]
        field = fields.get(mark.field.partition("[")[0].partition(".")[0])
        rows.append(
            (
                str(mark.frame),
                str(mark.offset),
                _hex(octets),
                mark.field or "(empty)",
                _value(protocol, message, mark.field, octets, field),
                _EMPTY if not octets else (field.doc if field else ""),
            )
        )
    total = sum(map(len, frames))
    caption = f"{origin}: {total} octets in {len(frames)} frame{'s' * (len(frames) != 1)}"
    return Table(caption, ("Frame", "Offset", "Octets", "Field", "Value", "Meaning"), tuple(rows))


def _fields(message: ir.Message) -> dict[str, ir.Field]:
    """Return the fields of a message by the names that errors and marks have for them."""
    found: dict[str, ir.Field] = {}
    for part in message.parts:
        for field in part.fields if isinstance(part, ir.Frame) else (part.field,):
            found[field.name] = found[field.attribute] = field
    return found


def _with_empty_frames(marks: Sequence[Mark], frames: Sequence[bytes]) -> Iterator[Mark]:
    for number, frame in enumerate(frames):
        if not frame:
            yield Mark(number, 0, 0, "")
        yield from (mark for mark in marks if mark.frame == number)


def _hex(octets: bytes) -> str:
    cut = octets[:LONGEST_RUN].hex(" ")
    return f"{cut} … {len(octets) - LONGEST_RUN} more" if len(octets) > LONGEST_RUN else cut


def _value(protocol: ir.Protocol, message: Any, path: str, octets: bytes, field: ir.Field | None) -> str:
    """What the octets stand for, as a program sees it; empty where they carry no value of their own."""
    if field is None or not octets:
        return ""
    if isinstance(field.type, ir.ConstantType):
        return "always these octets"
    if isinstance(field.type, ir.PaddingType):
        return "padding"
    if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
        bits = [flag.name for flag in protocol.flags if flag.value & octets[0]]
        return " + ".join(bits) or "no bit"
    if isinstance(field.type, ir.SizeType):
        return f"{int.from_bytes(octets, 'big')} octets follow"
    value = _at(message, path.replace(field.name, field.attribute, 1))
    if isinstance(value, tuple) and "[" not in path:
        return f"{len(value)} entr{'y' if len(value) == 1 else 'ies'}"
    return _shown(protocol, value, field)


def _at(message: Any, path: str) -> Any:
    """Return the value at a path such as ``headers[1].value``."""
    found: Any = message
    for name in path.replace("[", ".[").split("."):
        if name.startswith("["):
            found = found[int(name[1:-1])]
        elif isinstance(found, tuple) and name in ("name", "value"):
            found = found[("name", "value").index(name)]
        else:
            found = getattr(found, name)
    return found


def _shown(protocol: ir.Protocol, value: Any, field: ir.Field) -> str:
    match value:
        case int():
            names = _names(protocol, field, value)
            return f"{value}: {names[0]}" if names else str(value)
        case bytes():
            readable = all(0x20 <= octet < 0x7F for octet in value.removesuffix(b"\0"))
            return repr(value)[1:] if value and readable else f"{len(value)} octets"
        case (str(name), str(text)):
            return f"{name} = {text}"
    return json.dumps(str(value), ensure_ascii=False)


def _names(protocol: ir.Protocol, field: ir.Field, value: int) -> list[str]:
    """Return what the specification calls a number of this field."""
    enum = field.type.enum if isinstance(field.type, ir.IntegerType) else None
    members = [
        name for found in protocol.enums if found.name == enum for name, n in found.members if n == value
    ]
    constants = (constant for constant in protocol.constants if constant.name in field.sentinels)
    return members + [constant.name for constant in constants if constant.value == value]
