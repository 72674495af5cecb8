"""`specwire check`: what is wrong with grammars, and what the compiler assumed about them."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specwire.runtime.cli.console import messages, print_json, waiting
from specwire.runtime.cli.grammars import GrammarsOption, PartialOption, grammars_folder, protocol_folders
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count

if TYPE_CHECKING:
    from specwire.generator.diagnostics import Diagnostic

EXIT_STATUSES = "Exit status: 0; 2 where there is a fault, and for usage."

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
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Report every fault, warning and assumption of grammars."""
    from specwire.generator.diagnostics import Severity, SpecError, render_all
    from specwire.generator.pipeline import compile_protocol

    found: list[Diagnostic] = []
    folders = protocol_folders(grammars_folder(grammars), names or [])
    with waiting("checking grammars"):
        for folder in folders:
            try:
                compiled = compile_protocol(folder, shown=folder.as_posix(), partial=partial)
                found.extend(compiled.warnings)
            except SpecError as error:
                found.extend(error.diagnostics)
    found = list(dict.fromkeys(found))
    if no_assumptions:
        found = [replace(d, severity=Severity.ERROR) if _is_assumption(d) else d for d in found]
    faults = sum(d.severity is Severity.ERROR for d in found)
    if json:
        print_json([_as_json(diagnostic) for diagnostic in found])
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
    if faults:
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
