"""`specwire show`: what a step of the compiler makes of a protocol."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, output
from specwire.runtime.cli.grammars import GrammarsOption, compile_all, grammars_folder, protocol_folders

if TYPE_CHECKING:
    from specwire.generator import ir


class Step(StrEnum):
    """A value between two steps."""

    TREE = "tree"
    IR = "ir"


def command(
    step: Annotated[
        Step, typer.Argument(help="tree: the rules as resolved; ir: messages, frames and fields.")
    ],
    protocol: Annotated[str, typer.Argument(help="Name of the protocol.")],
    grammars: GrammarsOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print the IR as JSON.")] = False,
) -> None:
    """Print a protocol's resolved rules, or its IR."""
    (compiled,) = compile_all(protocol_folders(grammars_folder(grammars), [protocol]))
    if step is Step.TREE:
        from specwire.generator.abnf_text import write_grammar
        from specwire.generator.syntax import Rulelist

        if json:
            fail("the rules have no JSON form; leave --json out, or show the ir")
        sys.stdout.write(write_grammar(Rulelist(compiled.grammar.rules)))
    elif json:
        import msgspec

        sys.stdout.write(msgspec.json.format(msgspec.json.encode(compiled.protocol)).decode() + "\n")
    else:
        _print_ir(compiled.protocol)


def _print_ir(protocol: ir.Protocol) -> None:
    from rich.table import Table
    from rich.text import Text

    console = output()
    console.print(Text(f"{protocol.name}: {protocol.title} ({protocol.edition})"))
    for message in protocol.messages:
        senders = ", ".join(message.senders)
        table = Table(
            title=f"{message.class_name} = {message.rule} (sent by {senders})", title_justify="left"
        )
        for head in ("part", "field", "type", "default", "meaning"):
            table.add_column(head, overflow="fold")
        for part in message.parts:
            fields = (part.field,) if hasattr(part, "field") else part.fields
            for field in fields:
                default = "" if field.required else repr(field.default)
                table.add_row(*map(Text, (_part(part), field.name, _type(field.type), default, field.doc)))
        console.print(table)


def _part(part: ir.Part) -> str:
    from specwire.generator import ir

    kind = type(part).__name__.lower()
    presence = "" if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Always) else "?"
    return f"{kind} {part.name}{presence}"


def _type(type: ir.Type) -> str:
    from specwire.generator import ir

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
        case ir.ListType(count_octets=count, element=element):
            return f"list, count in {_octets(count)}, of {_type(element)}"
        case ir.PairsType(count_octets=count):
            return f"dictionary, count in {_octets(count)}"
        case ir.JsonType():
            return "JSON text"


def _length(length: ir.Length) -> str:
    if length.kind == "prefix":
        return f"length in {_octets(length.octets)}"
    return _octets(length.octets) if length.kind == "fixed" else "rest of the frame"


def _octets(count: int) -> str:
    return f"{count} octet{'' if count == 1 else 's'}"
