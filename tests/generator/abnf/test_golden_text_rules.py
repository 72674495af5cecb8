"""Golden cases of rules that no text can be matched against: a folder is a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specwire.generator.abnf import text_rules
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.syntax import Reference
from specwire.generator.abnf.text_rules import compile_text_rule
from specwire.generator.diagnostics import Diagnostics, Source, Span, SpecError
from specwire.generator.passes.resolve import resolve_names
from tests.golden_files import cases, check_golden


@pytest.mark.parametrize("case", cases("match"), ids=lambda case: case.name)
def test_diagnostics(case: Path) -> None:
    """The rule `root` of the grammar cannot be compiled, or the case's text not be matched against it; the diagnostic says why."""
    source = Source("input.abnf", (case / "input.abnf").read_text(encoding="utf-8"))
    diagnostics = Diagnostics()
    rulelist = parse_grammar(source, dialect="zeromq", diagnostics=diagnostics)
    grammar = resolve_names([rulelist], diagnostics=diagnostics)
    found = Diagnostics()
    rule = compile_text_rule(grammar, Reference("root", None, Span(source, 1, 1, 1, 5)), found)
    assert (rule is None) == bool(found.errors)
    if rule is not None:
        with pytest.raises(SpecError) as raised:
            rule.match((case / "text.txt").read_text(encoding="utf-8"))
        found.extend(raised.value.diagnostics)
    check_golden(case / "stderr.txt", "".join(f"{finding.render()}\n" for finding in found))


def test_every_code_has_a_case() -> None:
    """Each E6xx that the module can report is shown by a case."""
    defined = set(re.findall(r'"(E6\d\d)"', Path(text_rules.__file__).read_text(encoding="utf-8")))
    shown = {
        code
        for case in cases("match")
        for code in re.findall(r"\[(E6\d\d)\]", (case / "stderr.txt").read_text(encoding="utf-8"))
    }
    assert defined and defined <= shown
