"""`specwire decode`: one message, given as the hexadecimal octets of its frames, for a person to read."""

from __future__ import annotations

import re
from enum import IntEnum
from inspect import signature
from types import ModuleType
from typing import Annotated, Any

import typer

from specwire.runtime.cli.console import fail, output, print_json
from specwire.runtime.cli.grammars import PackageGrammarsOption
from specwire.runtime.cli.protocols import load_protocol

SHOWN_OCTETS = 48


def command(
    protocol: Annotated[str, typer.Argument(help="Name of the protocol, such as flux.")],
    frames: Annotated[
        list[str],
        typer.Argument(help="Each frame in hexadecimal, '' for an empty one.", metavar="FRAME_HEX..."),
    ],
    grammars: PackageGrammarsOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Hold it to the letter of the specification.")
    ] = False,
    sender: Annotated[
        str | None,
        typer.Option(help="Letter of the role that sent it, which tells apart messages that look the same."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the fields as JSON.")] = False,
) -> None:
    """Decode one message and print its frames and fields."""
    package = load_protocol(protocol, grammars)
    octets = [_octets(index, text) for index, text in enumerate(frames)]
    known = {} if sender is None else _sender(package, sender)
    message = package.decode(octets, strict=strict, **known)
    if json:
        print_json(
            {"protocol": protocol, "message": type(message).__name__, "fields": _plain(message.to_dict())}
        )
        return
    _print(package, message, octets)


def _sender(package: ModuleType, sender: str) -> dict[str, str]:
    """The argument of `decode` that says who sent the frames; nothing where their octets say what they are."""
    return {"sender": sender} if "sender" in signature(package.decode).parameters else {}


def _octets(index: int, text: str) -> bytes:
    try:
        return bytes.fromhex(re.sub(r"[\s:]", "", text.removeprefix("0x")))
    except ValueError:
        fail(f"frame {index} is not hexadecimal: {text!r}")


def _plain(value: Any) -> Any:
    """The value as JSON has it: octets in hexadecimal, pairs and lists as arrays."""
    match value:
        case bytes():
            return value.hex()
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case tuple() | list():
            return [_plain(item) for item in value]
    return value


def _print(package: ModuleType, message: Any, frames: list[bytes]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = output()
    console.print(Text(f"{message.PROTOCOL} {type(message).__name__} ({message.NAME})", style="bold"))
    wire = Table(title="frames", title_justify="left")
    for head in ("frame", "octets", "content"):
        wire.add_column(head, overflow="fold", justify="right" if head == "octets" else "left")
    for index, frame in enumerate(frames):
        wire.add_row(str(index), str(len(frame)), Text(_preview(frame)))
    console.print(wire)
    table = Table(title="fields", title_justify="left")
    for head in ("field", "value", "meaning"):
        table.add_column(head, overflow="fold")
    for name, value in message.to_dict().items():
        shown = message.wire_flags if name == "flags" and hasattr(message, "wire_flags") else value
        table.add_row(Text(name.rstrip("_")), Text(_value(shown)), Text(_meaning(package, name, shown)))
    console.print(table)


def _preview(octets: bytes) -> str:
    """Text where it is text, else hexadecimal; long ones are cut and say so."""
    if not octets:
        return "(empty)"
    cut = octets[:SHOWN_OCTETS]
    more = f" ... {len(octets) - len(cut)} more" if len(octets) > len(cut) else ""
    printable = all(0x20 <= octet <= 0x7E or octet == 0 for octet in cut) and any(cut)
    return (repr(cut)[1:] if printable else cut.hex(" ", 4)) + more


def _value(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bytes():
            return _preview(value)
        case dict():
            return ", ".join(f"{name} = {_value(item)}" for name, item in value.items())
        case ((str(), str()), *_):
            return "\n".join(f"{name} = {item}" for name, item in value)
        case tuple():
            return "\n".join(_value(item) for item in value) or "(none)"
        case str():
            return value or "(empty)"
    return str(value)


def _meaning(package: ModuleType, name: str, value: Any) -> str:
    """What a number is called: a constant, the names of its bits, a member of its enumeration."""
    if not isinstance(value, int):
        return ""
    if name == "flags" and hasattr(package, "Flags"):
        names = [flag.name or "" for flag in package.Flags if flag & value]
        return f"0x{value:02x}: {' '.join(names).lower()}".rstrip(": ")
    enum = getattr(package, name.rstrip("_").title().replace("_", ""), None)
    if isinstance(enum, type) and issubclass(enum, IntEnum) and value in list(enum):
        return enum(value).name.lower()
    constants = [c for c in dir(package) if c.startswith(f"{name.upper()}_") and getattr(package, c) == value]
    return constants[0] if constants else ""
