"""`specwire explain`: what a diagnostic code means, and what to write instead."""

from __future__ import annotations

import sys
from dataclasses import asdict
from difflib import get_close_matches
from typing import Annotated

import typer

from specwire.runtime.cli.console import fail, print_json


def command(
    code: Annotated[str, typer.Argument(help="A code, such as E201.")],
    json: Annotated[bool, typer.Option("--json", help="Print the code's row as JSON.")] = False,
) -> None:
    """Say what a diagnostic code means, with an example and what to write instead."""
    from specwire.generator.codes import CODES
    from specwire.generator.codes.page import write_code

    row = CODES.get(code.upper())
    if row is None:
        close = get_close_matches(code.upper(), CODES, n=3)
        near = (
            f"there are {', '.join(close)}" if close else "a code is E or W with three digits, such as E201"
        )
        fail(f"there is no code {code!r}; {near}, and docs/reference/diagnostics.md lists them all")
    if json:
        print_json({"severity": row.severity, **asdict(row)})
        return
    sys.stdout.write(f"{row.severity} {row.code}: {row.title}\n\n{write_code(row)}")
