"""The table of diagnostic codes: complete, used, shown by golden cases, and its examples do what they say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from specwire import generator, runtime
from specwire.generator.abnf.dialect import Dialect, Extension
from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.abnf.syntax import Reference
from specwire.generator.abnf.text_rules import compile_text_rule
from specwire.generator.codes import CODES, GROUPS
from specwire.generator.codes.page import main, write_page
from specwire.generator.codes.row import Code
from specwire.generator.codes.texts import TEXTS
from specwire.generator.diagnostics import Diagnostic, Diagnostics, Source, Span, SpecError
from specwire.generator.passes.resolve import resolve_names
from specwire.generator.pipeline import compile_protocol
from tests.golden_files import GOLDEN

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"[EW]\d{3}")
BY_TEXT = {"E203", "E204", "W208", "W209", "W210"}
"""Codes of names whose examples describe text: they are read, not compiled."""
EXAMPLES = [row for row in CODES.values() if row not in TEXTS and (row.wrong or row.right)]
SHOWN_BY_TESTS = {
    "E139",
    "E700",
    "E701",
    "E703",
    "E704",
    "E705",
    "E801",
    "E802",
    "E803",
    "W423",
    "W425",
    "W708",
    "W721",
    "W722",
    "W723",
    "W724",
    "W725",
}
"""Codes whose input is large, is no grammar, or is a command's argument: tests that name them show them."""
SENTENCES = {"E803": "writes what is no Python"}
"""What tests look for where they do not look for the code."""


def used_codes() -> set[str]:
    """Return the codes that the source names, outside of the table and of comments and docstrings."""
    folders = [Path(package.__file__ or "").parent for package in (generator, runtime)]
    modules = [path for folder in folders for path in folder.rglob("*.py") if path.parent.name != "codes"]
    found = {f"{letter}{extension.value.code}" for extension in Extension for letter in "EW"}
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found.add(node.value)
    return found - {f"E{e.value.code}" for e in Extension if e.value.rule is None}


def shown_codes() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in GOLDEN.rglob("*.txt")]
    return {code for text in texts for code in re.findall(r"\[([EW]\d{3})\]", text)}


def test_every_code_of_the_source_has_a_row_and_every_row_is_used() -> None:
    assert used_codes() == set(CODES)


def test_every_code_has_a_golden_case() -> None:
    assert set(CODES) - shown_codes() - SHOWN_BY_TESTS == set()
    assert shown_codes() <= set(CODES)
    tests = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "tests").rglob("test_*.py")
        if path != Path(__file__)
    )
    assert [code for code in sorted(SHOWN_BY_TESTS) if SENTENCES.get(code, code) not in tests] == []


def test_no_code_has_two_rows() -> None:
    rows = [row.code for group in GROUPS.values() for row in group]
    assert sorted(rows) == sorted(set(rows))
    assert all(CODE.fullmatch(code) for code in rows)


def test_a_code_without_a_row_is_refused() -> None:
    place = Span(Source("g", "a"), 1, 1, 1, 2)
    with pytest.raises(KeyError):
        Diagnostics().error("E999", place, "nobody knows this code")
    with pytest.raises(KeyError):
        Diagnostics().warning("E201", place, "an error is no warning")


def read(grammar: str, dialect: Dialect) -> tuple[Diagnostic, ...]:
    diagnostics = Diagnostics()
    rules = parse_grammar(Source("g", grammar), dialect=dialect, diagnostics=diagnostics)
    resolve_names([rules], diagnostics=diagnostics, dialect=dialect)
    return tuple(diagnostics)


def compiled(folder: Path, grammar: str, profile: str) -> tuple[Diagnostic, ...]:
    folder.mkdir()
    for name, text in (("grammar.abnf", grammar), ("profile.toml", profile)):
        if text:
            (folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    try:
        return compile_protocol(folder, shown="demo").warnings
    except SpecError as error:
        return error.diagnostics


@pytest.mark.parametrize("row", EXAMPLES, ids=lambda row: row.code)
def test_the_wrong_example_gives_the_code_and_the_right_one_does_not(row: Code, tmp_path: Path) -> None:
    if row.code[1] == "1" or row.code in BY_TEXT:
        dialect: Dialect = "rfc5234" if row.severity == "error" else "zeromq"
        wrong, right = read(row.wrong, dialect), read(row.right, dialect)
    else:
        (tmp_path / "wrong").mkdir()
        (tmp_path / "right").mkdir()
        wrong = compiled(tmp_path / "wrong" / "demo", row.wrong, row.wrong_profile)
        right = compiled(tmp_path / "right" / "demo", row.right, row.right_profile)
    assert row.code in {found.code for found in wrong}
    assert row.code not in {found.code for found in right}
    # An example of the syntax names rules that it does not define.
    assert [found.render() for found in right if found.severity == "error" and found.code != "E201"] == []


@pytest.mark.parametrize("row", TEXTS, ids=lambda row: row.code)
def test_the_wrong_example_of_a_text_rule_gives_the_code(row: Code) -> None:
    """The example of E601 is a rule by which a long text has too many readings."""
    assert row.code in codes_of_matching(row.wrong)
    assert codes_of_matching(row.right) == set()


def codes_of_matching(grammar: str) -> set[str]:
    found = Diagnostics()
    rules = parse_grammar(Source("g", grammar), dialect="zeromq", diagnostics=found)
    reference = Reference("a", None, Span(Source("g", "a"), 1, 1, 1, 2))
    rule = compile_text_rule(resolve_names([rules], diagnostics=Diagnostics()), reference, found)
    try:
        assert rule is None or rule.match("x" * 400) is not None
    except SpecError as error:
        found.extend(error.diagnostics)
    return {diagnostic.code for diagnostic in found}


def test_the_page_is_what_the_table_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", str(ROOT / "docs/reference/diagnostics.md")]) == 0, capsys.readouterr().out


def test_a_page_that_differs_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    assert main([str(page)]) == 0
    assert page.read_text(encoding="utf-8") == write_page()
    page.write_text(write_page().replace("### E201", "### E2O1"), encoding="utf-8")
    assert main(["--check", str(page)]) == 1
    assert "-### E2O1" in capsys.readouterr().out


def test_errors_say_what_to_write() -> None:
    """Every finding of the golden cases has a line that begins with "help"."""
    without = {
        found[0]
        for path in GOLDEN.rglob("stderr.txt")
        for found in re.findall(
            r"^(\S+:\d+:\d+: (?:error|warning)\[.*)((?:\n(?!\S+:\d+:\d+: ).*)*)",
            path.read_text("utf-8"),
            re.MULTILINE,
        )
        if "= help: " not in found[1]
    }
    assert without == set()
