"""What a user reads when a grammar has faults: every diagnostic of the ABNF front end, letter by letter.

The name of a case begins with the dialect it is read in. A grammar with a rule `start` has that rule as
its only root, so rules that nothing uses are reported.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.abnf.dialect import Dialect
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from specwire.generator.passes.resolve import resolve_names
from tests.golden_files import cases, check_golden


@pytest.mark.parametrize("case", cases("abnf"), ids=lambda case: case.name)
def test_diagnostics(case: Path) -> None:
    dialect: Dialect = "rfc5234" if case.name.startswith("rfc5234-") else "zeromq"
    text = (case / "input.abnf").read_text(encoding="utf-8", errors="surrogateescape")
    source = Source("input.abnf", text)
    diagnostics = Diagnostics()
    rulelist = parse_grammar(source, dialect=dialect, diagnostics=diagnostics)
    if not diagnostics.errors:
        roots = ("start",) if any(rule.name == "start" for rule in rulelist.rules) else None
        resolve_names([rulelist], diagnostics=diagnostics, dialect=dialect, roots=roots)
    check_golden(case / "stderr.txt", "".join(f"{found.render()}\n" for found in diagnostics))
