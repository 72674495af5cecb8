"""What a user reads of a protocol that does not compile, or that compiles with assumptions, letter by letter.

A case is a folder of protocols, of which ``demo`` is compiled; the text is what ``specwire check`` prints.
The findings of our own grammars are golden too, so that a change of either shows in review.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.diagnostics import Diagnostic, SpecError, render_all
from specwire.generator.pipeline import compile_protocol
from tests.golden_files import GOLDEN, cases, check_golden

GRAMMARS = Path(__file__).resolve().parents[2] / "grammars"


def findings(folder: Path, shown: str) -> tuple[Diagnostic, ...]:
    try:
        return compile_protocol(folder, shown=shown).warnings
    except SpecError as error:
        return error.diagnostics


def text_of(found: tuple[Diagnostic, ...]) -> str:
    return f"{render_all(found)}\n" if found else ""


@pytest.mark.parametrize("case", cases("compile"), ids=lambda case: case.name)
def test_diagnostics(case: Path) -> None:
    before = sorted(case.rglob("*"))
    check_golden(case / "stderr.txt", text_of(findings(case / "demo", "demo")))
    assert sorted(path for path in case.rglob("*") if path.name != "stderr.txt") == [
        path for path in before if path.name != "stderr.txt"
    ]


@pytest.mark.parametrize("folder", sorted(GRAMMARS.iterdir()), ids=lambda folder: folder.name)
def test_our_own_grammars(folder: Path) -> None:
    found = findings(folder, f"grammars/{folder.name}")
    assert not [diagnostic for diagnostic in found if diagnostic.code.startswith(("E", "W4"))]
    check_golden(GOLDEN / "grammars" / folder.name / "stderr.txt", text_of(found))
