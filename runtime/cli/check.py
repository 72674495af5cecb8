"""`specwire check`: what is wrong with grammars, and what the compiler assumed about them."""

from __future__ import annotations

import sys
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
    "Exit status: 0; 2 where there is a fault or, with --coverage, something is not accounted for, "
    "and for usage."
)

FAULTS = 2
ASSUMPTIONS = "W4"
"""Codes of what the compiler assumed where neither grammar nor profile says."""


def command(
    names: Annotated[list[str] | None, typer.Argument(help="Protocols; all where none is named.")] = None,
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
    from specwire.generator.diagnostics import Severity, SpecError, render_all
    from specwire.generator.pipeline import compile_protocol

    if coverage is not None:
        check_document(coverage)
        if len(names or ()) != 1:
            fail("--coverage compares one protocol with its document: name the protocol")
    found: list[Diagnostic] = []
    report: Coverage | None = None
    folders = protocol_folders(grammars_folder(grammars), names or [])
    with waiting("checking grammars"):
        for folder in folders:
            try:
                compiled = compile_protocol(folder, shown=folder.as_posix(), partial=partial)
                found.extend(compiled.warnings)
                if coverage is not None:
                    from specwire.runtime.cli.coverage import cover

                    report = cover(coverage, folder, compiled)
            except SpecError as error:
                found.extend(error.diagnostics)
    found = list(dict.fromkeys(found))
    if no_assumptions:
        found = [replace(d, severity=Severity.ERROR) if _is_assumption(d) else d for d in found]
    faults = sum(d.severity is Severity.ERROR for d in found)
    if coverage is not None:
        from specwire.runtime.cli.coverage import as_json, write_report
    if json:
        rows = [_as_json(diagnostic) for diagnostic in found]
        print_json({"findings": rows, "coverage": report and as_json(report)} if coverage else rows)
    else:
        sys.stdout.write(show(f"{render_all(found)}\n" if found else "", keep="\n\t"))
        assumed = sum(_is_assumption(d) and d.severity is Severity.WARNING for d in found)
        others = len(found) - faults - assumed
        counts = (
            show_count(faults, "error"),
            show_count(assumed, "assumption"),
            show_count(others, "warning"),
        )
        messages().print(f"{show_count(len(folders), 'protocol')}: {', '.join(counts)}")
        if report:
            sys.stdout.write(show(write_report(report), keep="\n\t"))
    if faults or (report and not report.is_complete):
        raise typer.Exit(FAULTS)


def _is_assumption(diagnostic: Diagnostic) -> bool:
    return diagnostic.code.startswith(ASSUMPTIONS)


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
