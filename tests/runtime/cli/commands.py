"""Run the command line inside the test's own process, as a user would type it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from specwire.runtime.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """What a command printed and how it ended."""

    status: int
    out: str
    err: str


def specwire(capfd: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """Return what `specwire ARGUMENTS` printed, and its exit status."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    printed = capfd.readouterr()
    code = ended.value.code
    return Outcome(code if isinstance(code, int) else 0, printed.out, printed.err)
