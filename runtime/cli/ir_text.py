"""The IR in words, for a person: a table for each message, a row for each field."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from specwire.generator import ir
from specwire.generator.compare.wording import describe
from specwire.runtime.cli.console import new_table, output

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
    table = new_table(title=title, title_justify="left")
    for head in HEADS:
        table.add_column(head, overflow="fold")
    for part in message.parts:
        for field in part.fields if isinstance(part, ir.Frame) else (part.field,):
            default = "" if field.required else repr(field.default)
            cells = (_part(part), field.name, describe(field.type), default, field.doc)
            table.add_row(*map(Text, cells))
    return table


def _part(part: ir.Part) -> str:
    kind = type(part).__name__.lower()
    presence = "" if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Always) else "?"
    return f"{kind} {part.name}{presence}"
