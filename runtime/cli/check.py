"""`specwire check`: faults of grammars, and assumptions of the compiler about them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specwire.runtime.cli.console import fail, messages, print_json, waiting
from specwire.runtime.cli.grammars import GrammarsOption, PartialOption, grammars_folder, protocol_folders
from specwire.runtime.cli.import_ import check_document
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count

if TYPE_CHECKING:
    from specwire.generator.diagnostics import Diagnostic
    from specwire.generator.documents.coverage import Coverage

EXIT_STATUSES = (
    "Exit status: 0; 2 for a fault, for wrong usage, and with --coverage if something is not accounted for."
)

FAULTS = 2
ASSUMPTIONS = "W4"
"""Prefix of the codes for assumptions: neither grammar nor profile states what the compiler assumed."""


def command(
    names: Annotated[list[str] | None, typer.Argument(help="Protocols; all by default.")] = None,
    grammars: GrammarsOption = None,
    no_assumptions: Annotated[
        bool, typer.Option("--no-assumptions", help="Count every assumption as an error.")
    ] = False,
    partial: PartialOption = False,
    coverage: Annotated[
        Path | None,
        typer.Option(
            help="Compare one protocol with this document: sentences, rules and hexadecimal examples.",
            metavar="DOCUMENT",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Report every fault, warning and assumption of grammars."""
    from specwire.generator.diagnostics import Severity

    if coverage is not None:
        check_document(coverage)
        if len(names or ()) != 1:
            fail("--coverage compares one protocol with its document: name the protocol")
    folders = protocol_folders(grammars_folder(grammars), names or [])
    with waiting("checking grammars"):
        found, report = _check(folders, coverage, partial=partial)
    if no_assumptions:
        found = [replace(d, severity=Severity.ERROR) if _is_assumption(d) else d for d in found]
    if json:
        rows = [_as_json(diagnostic) for diagnostic in found]
        print_json({"findings": rows, "coverage": _coverage_as_json(report)} if coverage else rows)
    else:
        _print(found, len(folders), report)
    if any(d.severity is Severity.ERROR for d in found) or (report and not report.is_complete):
        raise typer.Exit(FAULTS)


def _check(
    folders: Sequence[Path], document: Path | None, *, partial: bool
) -> tuple[list[Diagnostic], Coverage | None]:
    """Return the findings of the folders, each once, and the coverage report if there is a document."""
    from specwire.generator.diagnostics import SpecError
    from specwire.generator.pipeline import compile_protocol

    found: list[Diagnostic] = []
    report: Coverage | None = None
    for folder in folders:
        try:
            compiled = compile_protocol(folder, shown=folder.as_posix(), partial=partial)
            found.extend(compiled.warnings)
            if document is not None:
                from specwire.runtime.cli.coverage import cover

                report = cover(document, folder, compiled)
        except SpecError as error:
            found.extend(error.diagnostics)
    return list(dict.fromkeys(found)), report


def _print(found: Sequence[Diagnostic], protocols: int, report: Coverage | None) -> None:
    from specwire.generator.diagnostics import Severity, render_all

    sys.stdout.write(show(f"{render_all(found)}\n" if found else "", keep="\n\t"))
    faults = sum(d.severity is Severity.ERROR for d in found)
    assumed = sum(_is_assumption(d) and d.severity is Severity.WARNING for d in found)
    counts = (
        show_count(faults, "error"),
        show_count(assumed, "assumption"),
        show_count(len(found) - faults - assumed, "warning"),
    )
    messages().print(f"{show_count(protocols, 'protocol')}: {', '.join(counts)}")
    if report:
        from specwire.runtime.cli.coverage import write_report

        sys.stdout.write(show(write_report(report), keep="\n\t"))


def _is_assumption(diagnostic: Diagnostic) -> bool:
    return diagnostic.code.startswith(ASSUMPTIONS)


def _coverage_as_json(report: Coverage | None) -> dict[str, Any] | None:
    if report is None:
        return None
    from specwire.runtime.cli.coverage import as_json

    return as_json(report)


def _as_json(diagnostic: Diagnostic) -> dict[str, Any]:
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
