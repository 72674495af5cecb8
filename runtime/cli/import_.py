"""`specwire import`: make a protocol's grammar and profile of a published document."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specwire.runtime.cli.console import fail, messages, print_json
from specwire.runtime.cli.diff import print_comparison
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count

if TYPE_CHECKING:
    from specwire.generator.compare.comparison import Comparison
    from specwire.generator.diagnostics import Diagnostic
    from specwire.generator.documents.importing import Imported
    from specwire.generator.profile.tables import PayloadTable

NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
FAULTS_SHOWN = 3
"""Faults of a grammar that are shown if they only prevent a comparison; ``specwire check`` shows all."""


def command(
    document: Annotated[
        Path, typer.Argument(help="RST, Markdown, AsciiDoc, wikidot, .bnf or plain text, or a JSON Schema.")
    ],
    protocol: Annotated[str, typer.Option(help="Name of the protocol's folder and package.")],
    grammars: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the protocol's folder; created if it is missing.", show_default="./grammars"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; show what would change.")
    ] = False,
    no_comments: Annotated[
        bool,
        typer.Option(
            "--no-comments", help="Omit the document's comments, except those that define the layout."
        ),
    ] = False,
    service: Annotated[
        str | None,
        typer.Option(
            help="First word of the topics of payloads, if the document states the topics without it.",
            show_default="the one that the document mentions",
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(help="Topic of the payload that a JSON Schema describes; * is any characters."),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option(
            help="Message class with the payload that a JSON Schema describes, such as Request.",
            show_default="all with that topic",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was found and changed as JSON.")] = False,
) -> None:
    """Write grammar.abnf and profile.toml from a published document, or bring them up to a new edition.

    Payloads that the document describes become JSON Schemas beside them. A document without a grammar
    adds its payloads to the folder of a protocol.

    Comments are kept by default: some define the layout, and the others document the generated code.
    """
    from specwire.generator.documents.importing import import_document
    from specwire.generator.documents.payload_files import PayloadOptions
    from specwire.generator.documents.store import write_imported

    if not NAME.match(protocol):
        fail(f"{protocol!r} cannot name a protocol: use lower-case letters, digits and '_', a letter first")
    if keyword.iskeyword(protocol):
        fail(f"{protocol!r} cannot name a protocol: it is a word of Python, and no package can be called so")
    folder = _folder(grammars) / protocol
    if folder.exists() and not folder.is_dir():
        fail(f"{folder} is not a folder")
    check_document(document)
    comments = not no_comments
    imported = import_document(
        document,
        protocol,
        folder=folder,
        shown=folder.as_posix(),
        comments=comments,
        payload_options=PayloadOptions(service, topic, message, comments),
    )
    comparison = _compare(imported, protocol, folder)
    if json:
        changed = [] if dry_run else write_imported(imported, folder)
        found = _as_json(imported, protocol, folder, [path.name for path in changed], dry_run=dry_run)
        print_json({**found, "comparison": comparison.to_dict() if comparison else None})
        return
    print_findings(imported)
    if comparison:
        print_comparison(comparison)
    changed = [] if dry_run else write_imported(imported, folder)
    messages().print(_outcome(imported, folder, changed, dry_run=dry_run), soft_wrap=True, markup=False)


def check_document(document: Path) -> None:
    """End the command if `document` is not a file."""
    if document.is_dir():
        fail(f"{document} is a directory: name the document in it")
    if not document.is_file():
        fail(f"there is no document {document}")


def _compare(imported: Imported, protocol: str, folder: Path) -> Comparison | None:
    """Compare the folder with the import; None if nothing changes, or one of them does not compile."""
    from specwire.generator.compare import compare
    from specwire.generator.diagnostics import SpecError
    from specwire.generator.documents.editions import compile_imported
    from specwire.generator.pipeline import compile_protocol

    if not imported.changes and not imported.payloads:
        return None
    shown = folder.as_posix()
    try:
        old = compile_protocol(folder, shown=shown)
        new = compile_imported(imported, protocol, folder=folder, shown=shown)
    except SpecError as error:
        faults = [found.render() for found in error.diagnostics if found.severity == "error"]
        messages().print("what this means on the wire is not known:", soft_wrap=True)
        sys.stderr.write(show("\n".join(faults[:FAULTS_SHOWN]), keep="\n\t") + "\n")
        return None
    return compare(old.protocol, new.protocol)


def _folder(given: Path | None) -> Path:
    """Return the folder of grammars: the one given, which need not be there, or ``grammars`` here."""
    folder = given or Path("grammars")
    if folder.exists() and not folder.is_dir():
        fail(f"{folder} is not a folder of grammars")
    if given is None and not folder.is_dir():
        fail("there is no folder grammars here; name one with --grammars, it is made where missing")
    return folder


def print_findings(imported: Imported, *, rules: bool = True) -> None:
    """Print findings to standard error, and with `rules` to standard output how the rules change."""
    from specwire.generator.diagnostics import render_all

    if imported.diagnostics:
        sys.stderr.write(show(render_all(imported.diagnostics), keep="\n\t") + "\n")
    for change in imported.changes if rules else ():
        sys.stdout.writelines(show(line, keep="\t") + "\n" for line in change.lines)
    sys.stdout.flush()


def _outcome(imported: Imported, folder: Path, changed: list[Path], *, dry_run: bool) -> str:
    state = "nothing written" if dry_run else f"{folder} {'written' if changed else 'is current'}"
    payloads = show_count(len(imported.payloads), "payload")
    if not imported.blocks:
        return f"{imported.facts.title}: {payloads}; {state}"
    blocks = len(imported.blocks)
    lines = ", ".join(f"{block.first_line}-{block.last_line}" for block in imported.blocks[:6])
    found = (
        f"{imported.facts.title}: {show_count(imported.rules, 'rule')} from {show_count(blocks, 'block')} "
        f"(lines {lines}{', …' if blocks > 6 else ''})"
    )
    rules = len(imported.changes)
    errata = len(imported.errata)
    news = f"; {errata} errat{'a' if errata != 1 else 'um'} proposed" if errata else ""
    if not imported.is_new:
        news = f"; {show_count(rules, 'rule')} changed, the profile kept"
    if imported.edition_was is not None:
        news += f"; edition {imported.edition_was} is now {imported.facts.edition}"
    if imported.payloads:
        news += f"; {payloads}"
    return f"{found}{news}; {state}"


def _as_json(
    imported: Imported, protocol: str, folder: Path, written: list[str], *, dry_run: bool
) -> dict[str, Any]:
    return {
        "protocol": protocol,
        "folder": folder.as_posix(),
        "title": imported.facts.title,
        "edition": imported.facts.edition,
        "new": imported.is_new,
        "dry_run": dry_run,
        "written": written,
        "rules": imported.rules,
        "blocks": [
            {
                "kind": block.kind,
                "markup": block.markup,
                "first_line": block.first_line,
                "last_line": block.last_line,
            }
            for block in imported.blocks
        ],
        "payloads": [_payload_as_json(payload.table) for payload in imported.payloads],
        "changes": [
            {"rule": change.rule, "was": change.was, "now": change.now} for change in imported.changes
        ],
        "diagnostics": [diagnostic_as_json(diagnostic) for diagnostic in imported.diagnostics],
    }


def _payload_as_json(table: PayloadTable) -> dict[str, Any]:
    return {"topic": table.topic, "message": table.message, "json_schema": table.json_schema}


def diagnostic_as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic for programs."""
    span = diagnostic.span
    return {
        "severity": str(diagnostic.severity),
        "code": diagnostic.code,
        "file": span.source.path,
        "line": span.line,
        "column": span.column,
        "message": diagnostic.message,
        "help": diagnostic.help,
    }
