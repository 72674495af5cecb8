"""`specwire diff`: what changed between two editions of a protocol, and who can still read whom."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, messages, new_table, output, print_json
from specwire.runtime.cli.grammars import GrammarsOption, compile_all, grammars_folder, protocol_folders

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from specwire.generator import ir
    from specwire.generator.compare.comparison import Change, Comparison, Judgement

EXIT_STATUSES = "Exit status: 0; 1 where one edition cannot read the other; 2 for usage and a faulty grammar."

BREAKING = 1
"""Exit status where one edition cannot read what the other writes."""

MAX_IR_OCTETS = 64 << 20
"""Octets of a file that may be the IR of a protocol."""

_STYLES = {"yes": "green", "depends": "yellow", "no": "red"}


def command(
    old: Annotated[
        str, typer.Argument(help="The edition before: a grammar folder, a document, an IR file, or a name.")
    ],
    new: Annotated[str, typer.Argument(help="The edition after, given in the same way.")],
    grammars: GrammarsOption = None,
    no_conditions: Annotated[
        bool, typer.Option("--no-conditions", help="Count every condition as a break.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Report what changed between two editions, and who can still read whom."""
    from specwire.generator.compare import compare

    comparison = compare(*read_editions([old, new], grammars))
    if json:
        print_json(comparison.to_dict())
    else:
        print_comparison(comparison)
    if comparison.verdict == "breaking" or (no_conditions and comparison.verdict == "conditional"):
        raise typer.Exit(BREAKING)


def read_editions(given: list[str], grammars: Path | None) -> list[ir.Protocol]:
    """Return the protocol that each of `given` is; faults of several grammars are raised together.

    A document is read with the profile of a grammar folder that it is compared with, if that fits it.

    Raises:
        SpecError: a grammar has a fault.
        CommandError: an argument is no edition at all.
    """
    found: dict[int, ir.Protocol] = {}
    folders: dict[int, Path] = {}
    documents: dict[int, Path] = {}
    for number, argument in enumerate(given):
        path = Path(argument)
        if _has_grammar(path):
            folders[number] = path
        elif path.is_file() and _is_json(path):
            found[number] = _read_ir_file(path)
        elif path.is_file():
            documents[number] = path
        elif path.name == argument and not path.suffix:
            (folders[number],) = protocol_folders(grammars_folder(grammars), [argument])
        elif path.is_dir():
            fail(f"{path} is not the folder of a grammar: it has neither grammar.abnf nor profile.toml")
        else:
            fail(
                f"there is no {argument}; give a grammar folder, a document, an IR file, or the name of a protocol"
            )
    for number, compiled in zip(folders, compile_all(list(folders.values())), strict=True):
        found[number] = compiled.protocol
    beside = next(iter(folders.values()), None)
    for number, path in documents.items():
        found[number] = _read_document(path, beside)
    return [found[number] for number in range(len(given))]


def _has_grammar(path: Path) -> bool:
    return any((path / name).exists() for name in ("profile.toml", "grammar.abnf"))


def _is_json(path: Path) -> bool:
    if path.suffix == ".json":
        return True
    with path.open("rb") as stream:
        return stream.read(64).lstrip().startswith(b"{")


def _read_document(path: Path, folder: Path | None) -> ir.Protocol:
    from specwire.generator.diagnostics import SpecError
    from specwire.generator.documents.editions import compile_document

    if folder is not None:
        try:
            return compile_document(path, folder=folder).protocol
        except SpecError:
            messages().print(
                f"{path} is read without the profile of {folder}, which does not fit it", soft_wrap=True
            )
    return compile_document(path).protocol


def _read_ir_file(path: Path) -> ir.Protocol:
    from specwire.generator.compare.ir_file import IrFileError, read_ir

    with path.open("rb") as stream:
        octets = stream.read(MAX_IR_OCTETS + 1)
    if len(octets) > MAX_IR_OCTETS:
        fail(f"{path} has more than {MAX_IR_OCTETS:,} octets, which the IR of no protocol has")
    try:
        return read_ir(octets)
    except IrFileError as error:
        fail(f"{path} is {error}")


def print_comparison(comparison: Comparison) -> None:
    """Print a table for each message, and for what else changed; then the whole in a few lines."""
    from rich.text import Text

    console = output()
    for group, changes in groupby(comparison.changes, key=lambda change: change.group):
        console.print(_table(group, list(changes)))
        console.print()
    old, new = comparison.old.edition, comparison.new.edition
    console.print(Text(f"{old} -> {new}: {comparison.verdict}", style="bold"))
    if comparison.changes:
        console.print(Text(f"an old reader reads new data: {comparison.old_reads_new}"))
        console.print(Text(f"a new reader reads old data: {comparison.new_reads_old}"))
        console.print(Text(f"existing tables: {comparison.tables}"))


def _table(group: str, changes: list[Change]) -> Table:
    from rich.text import Text

    table = new_table(title=Text(group), title_justify="left", expand=True, show_lines=True)
    for head in ("change", "old reader, new data", "new reader, old data", "existing tables"):
        table.add_column(head, overflow="fold", ratio=1)
    for change in changes:
        asked = change.tables
        effect = f"{asked.effect}: {asked.why}" if asked.effect != "safe to append" else "safe to append"
        readings = _reading(change.old_reads_new), _reading(change.new_reads_old)
        table.add_row(_what(change), *readings, Text(effect))
    return table


def _what(change: Change) -> Text:
    """A change, then what was and what is on lines of their own."""
    from rich.text import Text

    text = Text(f"{change.subject} {change.name} {change.kind}", style="bold")
    for word, value in (("was", change.old), ("is", change.new)):
        if value is not None:
            text.append(f"\n{word} {value}", style="not bold")
    return text


def _reading(judgement: Judgement) -> Text:
    from rich.text import Text

    text = Text(str(judgement.verdict), style=_STYLES[judgement.verdict])
    if judgement.verdict != "yes":
        text.append(f": {judgement.why}", style="default")
    return text
