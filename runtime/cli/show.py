"""`specwire show`: what a step of the compiler makes of a document or of a protocol."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specwire.runtime.cli.console import fail, messages, print_json
from specwire.runtime.cli.grammars import GrammarsOption, compile_all, grammars_folder, protocol_folders
from specwire.runtime.cli.show_machine import Format, ReadingName, show_machine

if TYPE_CHECKING:
    from specwire.generator.abnf.syntax import Rule
    from specwire.generator.documents.blocks import Block
    from specwire.generator.pipeline import Compilation


class Step(StrEnum):
    """A value between two steps."""

    BLOCKS = "blocks"
    TREE = "tree"
    IR = "ir"
    PLAN = "plan"
    MACHINE = "machine"
    BUILDS = "builds"


def command(
    step: Annotated[
        Step,
        typer.Argument(
            help="blocks: what import cuts out of a document; tree: a protocol's rules as resolved; "
            "ir: its messages, frames and fields; plan: the operations that read and write them; machine: its "
            "dialogs; builds: what its package runs in, C or Python."
        ),
    ],
    subject: Annotated[
        str | None,
        typer.Argument(
            help="A document for blocks, else the name of a protocol; builds without one: all packages.",
            metavar="SUBJECT",
            show_default=False,
        ),
    ] = None,
    grammars: GrammarsOption = None,
    dialog: Annotated[str | None, typer.Option(help="machine: this dialog only.", show_default="all")] = None,
    role: Annotated[
        str | None, typer.Option(help="machine: as this role sees it, by its letter.", show_default="none")
    ] = None,
    reading: Annotated[
        ReadingName | None, typer.Option(help="machine: this reading only.", show_default="both")
    ] = None,
    format: Annotated[Format, typer.Option(help="machine: how the dialogs are drawn.")] = Format.TABLE,
    json: Annotated[bool, typer.Option("--json", help="Print the same as JSON.")] = False,
) -> None:
    """Print the blocks of a document, or a protocol's resolved rules, IR, plan, dialogs or build."""
    if step is Step.BUILDS:
        from specwire.runtime.cli.show_builds import show_builds

        show_builds(subject, json=json)
        return
    if subject is None:
        fail(f"show {step.value} of what? Name a {'document' if step is Step.BLOCKS else 'protocol'}")
    if step is Step.BLOCKS:
        show_blocks(Path(subject), json=json)
        return
    (compiled,) = compile_all(protocol_folders(grammars_folder(grammars), [subject]))
    if step is Step.TREE:
        show_rules(compiled, json=json)
    elif step is Step.PLAN:
        show_plan(compiled, json=json)
    elif step is Step.MACHINE:
        show_machine(compiled.protocol, dialog=dialog, role=role, reading=reading, format=format, json=json)
    elif json:
        import msgspec

        sys.stdout.write(msgspec.json.format(msgspec.json.encode(compiled.protocol)).decode() + "\n")
    else:
        from specwire.runtime.cli.ir_text import print_ir

        print_ir(compiled.protocol)


def show_plan(compiled: Compilation, *, json: bool) -> None:
    """Print the operations that read and write each message; octets in JSON are hexadecimal."""
    from specwire.generator.plan import plan_of
    from specwire.generator.plan.text import write_plan

    plan = plan_of(compiled.protocol)
    if json:
        import msgspec

        print_json(_hexadecimal(msgspec.to_builtins(plan, builtin_types=(bytes,))))
    else:
        sys.stdout.write(write_plan(plan))


def _hexadecimal(value: Any) -> Any:
    """Return plain data with octets as hexadecimal text."""
    match value:
        case bytes():
            return value.hex()
        case dict():
            return {key: _hexadecimal(item) for key, item in value.items()}
        case list() | tuple():
            return [_hexadecimal(item) for item in value]
    return value


def show_blocks(document: Path, *, json: bool) -> None:
    """Print every block of a document with its place, what it is taken for, and its lines.

    Raises:
        SpecError: the document is no text.
    """
    from specwire.generator.diagnostics import Diagnostics
    from specwire.generator.documents.blocks import cut_blocks
    from specwire.generator.documents.reading import read_document, read_octets

    if document.is_dir():
        fail(f"{document} is a folder, not a document")
    blocks = cut_blocks(read_document(document, read_octets(document), Diagnostics()))
    if json:
        print_json([_block_as_json(block) for block in blocks])
        return
    for block in blocks:
        sys.stdout.write(_block_as_text(block))
    if not blocks:
        messages().print(f"{document} has no block that import would read", soft_wrap=True, markup=False)


def _block_as_json(block: Block) -> dict[str, Any]:
    return {
        "file": block.source.path,
        "kind": block.kind,
        "markup": block.markup,
        "language": block.language or None,
        "first_line": block.first_line,
        "last_line": block.last_line,
        "closed": block.closed,
        "text": _printable("".join(f"{line}\n" for line in block.lines)),
    }


def _block_as_text(block: Block) -> str:
    """The place as editors jump to it, then the lines with their numbers in the document."""
    marked = block.markup + (f", {block.language}" if block.language else "")
    never = "" if block.closed else ", never closed"
    head = f"{block.source.path}:{block.first_line}: {block.kind} ({marked}{never})\n"
    width = len(str(block.last_line))
    numbered = enumerate(block.lines, block.first_line)
    return _printable(
        head + "".join(f"{number:>{width}} | {line}".rstrip() + "\n" for number, line in numbered)
    )


def _printable(text: str) -> str:
    """Octets that were not UTF-8 show as ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")


def show_rules(compiled: Compilation, *, json: bool) -> None:
    """Print the rules that names resolve to: the published ones, mended, and those of the profile."""
    from specwire.generator.abnf.syntax import Rulelist, write_grammar

    rules = compiled.grammar.rules
    if json:
        print_json([_rule_as_json(rule) for rule in rules])
    else:
        sys.stdout.write(write_grammar(Rulelist(rules)))


def _rule_as_json(rule: Rule) -> dict[str, Any]:
    from specwire.generator.abnf.syntax import write_element

    return {
        "rule": str(rule),
        "definition": write_element(rule.definition),
        "comments": [comment.text for comment in (*rule.leading, *rule.trailing)],
        "file": rule.span.source.path,
        "line": rule.span.line,
    }
