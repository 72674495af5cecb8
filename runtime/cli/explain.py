"""`specwire explain`: what a diagnostic code means, and what to write instead."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import Annotated

import typer

from specwire.runtime.cli.console import fail


def command(code: Annotated[str, typer.Argument(help="A code, such as E201.")]) -> None:
    """Say what a diagnostic code means, with an example and what to write instead."""
    from specwire.generator.codes import CODES
    from specwire.generator.codes.page import write_code

    row = CODES.get(code.upper())
    if row is None:
        close = get_close_matches(code.upper(), CODES, n=3)
        fail(f"there is no code {code!r}" + (f"; there are {', '.join(close)}" if close else ""))
    sys.stdout.write(f"{row.severity} {row.code}: {row.title}\n\n{write_code(row)}")
