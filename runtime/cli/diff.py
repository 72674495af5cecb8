"""`specwire diff`: what changed between two editions of a protocol, and who can still read whom."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from specwire.runtime.cli.console import fail, messages, new_table, output, print_json, waiting
from specwire.runtime.cli.grammars import (
    GrammarsOption,
    compile_all,
    grammars_folder,
    is_shipped,
    protocol_folders,
)
from specwire.runtime.cli.usage import UsageError
from specwire.runtime.log.text import show

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from specwire.generator import ir
    from specwire.generator.compare.comparison import Change, Comparison, Judgement
    from specwire.generator.compare.impact import EditionChange, ProtocolChange

EXIT_STATUSES = (
    "Exit status: 0; 1 where one edition cannot read the other, or a protocol was removed; "
    "2 for usage and a faulty grammar."
)

BREAKING = 1
"""Exit status where one edition cannot read what the other writes."""

MAX_IR_OCTETS = 64 << 20
"""Octets of a file that may be the IR of a protocol."""

Shape = Literal["tables", "markdown", "json"]
"""The output of the command."""

_STYLES = {"yes": "green", "depends": "yellow", "no": "red"}


def command(
    context: typer.Context,
    editions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OLD NEW | NAME...]",
            help="The edition before and the one after: each a grammar folder, a document, an IR file, or a "
            "name. With --against, the names of protocols; all where none is named.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="GITREF", help="Compare the grammars with those of this Git commit."),
    ] = None,
    grammars: GrammarsOption = None,
    no_conditions: Annotated[
        bool, typer.Option("--no-conditions", help="Count every condition as a break.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown for a changelog or a pull request.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Report what changed between two editions, and who can still read whom."""
    if json and markdown:
        fail("--json and --markdown exclude each other")
    shape: Shape = "json" if json else "markdown" if markdown else "tables"
    given = editions or []
    if against is not None:
        is_breaking = _compare_with_commit(against, given, grammars, shape, conditions=no_conditions)
    elif len(given) == 2:
        is_breaking = _compare_editions(given, grammars, shape, conditions=no_conditions)
    else:
        missing = (
            "unexpected third argument" if given[2:] else f"missing argument {('OLD', 'NEW')[len(given)]!r}"
        )
        raise UsageError(missing, context)
    if is_breaking:
        raise typer.Exit(BREAKING)


def _compare_editions(given: list[str], grammars: Path | None, shape: Shape, *, conditions: bool) -> bool:
    """Print the comparison of two editions; return whether it counts as breaking."""
    from specwire.generator.compare.impact import compare_editions
    from specwire.generator.compare.markdown import write_section

    change = compare_editions(*read_editions(given, grammars))
    if shape == "json":
        print_json(change.comparison.to_dict())
    elif shape == "markdown":
        print_markdown([write_section(change)])
    else:
        print_comparison(change.comparison)
    return _breaks(change, conditions=conditions)


def _compare_with_commit(
    commit: str, names: list[str], grammars: Path | None, shape: Shape, *, conditions: bool
) -> bool:
    """Print what changed in a folder of grammars since a commit; return whether it counts as breaking."""
    from specwire.generator.compare.markdown import write_comment
    from specwire.generator.revisions import changes_since

    folder = grammars_folder(grammars)
    if is_shipped(folder):
        fail("these grammars are specwire's own; name a folder in your repository with --grammars")
    with waiting("compiling both editions"):
        changes = changes_since(commit, folder, names)
    if shape == "json":
        print_json({"against": commit, "protocols": [_protocol_as_json(one) for one in changes]})
    elif shape == "markdown":
        print_markdown([write_comment(commit, changes)])
    else:
        for one in changes:
            if one.change:
                print_comparison(one.change.comparison)
            else:
                output().print(f"{one.name}: {one.status}", style="bold", markup=False)
        if not changes:
            messages().print(f"no protocol changed since {commit}", markup=False)
    return any(
        one.status == "removed" or (one.change is not None and _breaks(one.change, conditions=conditions))
        for one in changes
    )


def _breaks(change: EditionChange, *, conditions: bool) -> bool:
    verdict = change.comparison.verdict
    return verdict == "breaking" or (conditions and verdict == "conditional")


def _protocol_as_json(one: ProtocolChange) -> dict[str, Any]:
    found = change_as_json(one.change) if one.change else {}
    return {"protocol": one.name, "status": one.status, **found}


def change_as_json(change: EditionChange) -> dict[str, Any]:
    """Return a comparison with its consequences for programs."""
    from msgspec import to_builtins

    return {
        "comparison": change.comparison.to_dict(),
        "actions": to_builtins(change.impact.actions),
        "tables": to_builtins(change.impact.tables),
    }


def print_markdown(sections: list[str]) -> None:
    """Print sections of Markdown, with unprintable characters escaped."""
    sys.stdout.write(show("\n".join(sections), keep="\n"))
    sys.stdout.flush()


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
