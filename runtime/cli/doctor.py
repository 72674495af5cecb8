"""`specwire doctor`: what this machine can do with specwire, and what to do where it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, meant, output, print_json

if TYPE_CHECKING:
    from specwire.runtime.doctor.finding import Finding

EXIT_STATUSES = "Exit status: 0; 1 where something is wrong, or absent and named by --need; 2 for usage."

NOT_WELL = 1
_COLOURS = {"ok": "green", "absent": "yellow", "wrong": "red"}


def command(
    need: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Fail where this is not ok, such as java, codecs or spark. May be repeated.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look at Python, libraries, codecs in C, Arrow, Java, sockets and limits; say what to do about what is not there.

    Each is ok, absent (what does not need it works) or wrong.
    """
    import msgspec

    from specwire.runtime.doctor.examination import examine
    from specwire.runtime.doctor.finding import State

    findings = list(examine(Path()))
    names = [finding.name for finding in findings]
    for name in need or ():
        if name not in names:
            fail(f"--need {name}: doctor looks at {', '.join(names)}{meant(name, names)}")
    lacking = [
        finding.name
        for finding in findings
        if finding.state is State.WRONG or (finding.state is State.ABSENT and finding.name in (need or ()))
    ]
    if json:
        print_json({"well": not lacking, "lacking": lacking, "findings": msgspec.to_builtins(findings)})
    else:
        _print(findings)
    if lacking:
        raise typer.Exit(NOT_WELL)


def _print(findings: list[Finding]) -> None:
    from rich.text import Text

    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        line = Text(f"{finding.name:{width}}  ")
        line.append(f"{finding.state:6}", style=_COLOURS[finding.state])
        line.append(f"  {finding.found}")
        output().print(line, soft_wrap=True)
        if finding.advice:
            output().print(Text(f"{'':{width}}          → {finding.advice}"), soft_wrap=True)
