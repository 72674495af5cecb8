"""The IR in words, for a person: a table for each message, a row for each field."""

from __future__ import annotations

from typing import assert_never

from rich.table import Table
from rich.text import Text

from specwire.generator import ir
from specwire.runtime.cli.console import output

HEADS = ("part", "field", "type", "default", "meaning")


def print_ir(protocol: ir.Protocol) -> None:
    """Print every message of a protocol."""
    console = output()
    console.print(Text(f"{protocol.name}: {protocol.title} ({protocol.edition})"))
    for message in protocol.messages:
        console.print(_table(message))


def _table(message: ir.Message) -> Table:
    senders = ", ".join(message.senders)
    sent = f" (sent by {senders})" if senders else ""
    title = Text(f"{message.class_name} = {message.rule}{sent}")
    table = Table(title=title, title_justify="left")
    for head in HEADS:
        table.add_column(head, overflow="fold")
    for part in message.parts:
        for field in part.fields if isinstance(part, ir.Frame) else (part.field,):
            default = "" if field.required else repr(field.default)
            cells = (_part(part), field.name, type_text(field.type), default, field.doc)
            table.add_row(*map(Text, cells))
    return table


def _part(part: ir.Part) -> str:
    kind = type(part).__name__.lower()
    presence = "" if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Always) else "?"
    return f"{kind} {part.name}{presence}"


def type_text(type: ir.Type) -> str:
    """Return what a value is on the wire, in words."""
    match type:
        case ir.ConstantType(hex=octets, text=text):
            return f"constant {text or octets or 'nothing'}"
        case ir.KeywordType(options=options):
            return " or ".join(options)
        case ir.IntegerType(octets=octets, enum=enum):
            return f"integer, {_octets(octets)}" + (f", {enum}" if enum else "")
        case ir.TextType(length=length):
            return f"text, {_length(length)}"
        case ir.OctetsType(length=length):
            return f"octets, {_length(length)}"
        case ir.PaddingType(octets=octets):
            return f"padding, {_octets(octets)}"
        case ir.SizeType(forms=forms):
            return "size in " + " or ".join(_octets(form.octets) for form in forms)
        case ir.JsonType():
            return "JSON text"
        case ir.ListType(count_octets=count, element=element):
            return f"list, {_count(count)}, of {type_text(element)}"
        case ir.PairsType(count_octets=count):
            return f"dictionary, {_count(count)}"
        case ir.RecordType(name=name, fields=fields):
            return f"{name} ({'; '.join(f'{field.name}: {type_text(field.type)}' for field in fields)})"
        case ir.UnionType(name=name, options=options):
            return f"{name}, one of {', '.join(option.name for option in options)}"
        case _:
            assert_never(type)


def _length(length: ir.Length) -> str:
    if length.kind == "prefix":
        return f"length in {_octets(length.octets)}"
    if length.kind == "until":
        return f"up to {length.until}"
    return _octets(length.octets) if length.kind == "fixed" else "rest of the run"


def _count(octets: int) -> str:
    return f"count in {_octets(octets)}" if octets else "to the end of the run"


def _octets(count: int) -> str:
    return f"{count} octet{'' if count == 1 else 's'}"
