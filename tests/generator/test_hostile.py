"""Whatever a grammar holds, it is compiled or diagnosed, and what is said of it can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator.diagnostics import Diagnostic, Severity, SpecError, render_all
from specwire.generator.pipeline import compile_protocol
from tests.generator.hostile import HOSTILE, Hostile

LONGEST_REPORT = 60_000


def diagnose(folder: Path, hostile: Hostile) -> tuple[Diagnostic, ...]:
    grammar = hostile.grammar()
    (folder / "grammar.abnf").write_bytes(grammar.encode() if isinstance(grammar, str) else grammar)
    (folder / "profile.toml").write_text(f'name = "demo"\n{hostile.profile()}', encoding="utf-8")
    try:
        return compile_protocol(folder, shown="demo").warnings
    except SpecError as error:
        return error.diagnostics


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_diagnosed(name: str, tmp_path: Path) -> None:
    found = diagnose(tmp_path, HOSTILE[name])
    assert {d.code for d in found if d.severity is Severity.ERROR} == HOSTILE[name].errors
    report = render_all(found)
    assert len(report) <= LONGEST_REPORT
    assert max(map(len, report.split("\n")), default=0) <= 1_000


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("100,000 rules", "the grammar has 99,999 rules; at most 10,000 are allowed"),
        ("a million brackets", "the grammar has a rule of 1,000,009 characters; at most 100,000 are allowed"),
        ("a comment of 10 MB", "the grammar has too many characters; at most 2,000,000 are allowed"),
        ("a million empty lines", "the grammar has 1,000,001 lines; at most 100,000 are allowed"),
    ],
)
def test_too_large_says_how_large(name: str, sentence: str, tmp_path: Path) -> None:
    (found,) = diagnose(tmp_path, HOSTILE[name])
    assert (found.code, found.message) == ("E139", sentence)


def test_what_there_is_too_much_of_is_counted(tmp_path: Path) -> None:
    found = diagnose(tmp_path, HOSTILE["9,990 rules with faults"])
    report = render_all(found)
    assert report.count("error[E122]") == 100
    assert "= note: and 9,890 more places, in lines 102-9991" in report
    assert sum(d.code == "E122" for d in found) == 9_990
