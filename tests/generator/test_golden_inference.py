"""Each rule of inference in three cases: where it applies, where the specification leaves open what is meant,
and where a profile says it.

A case is a folder with a protocol ``demo``: a grammar or the document that it is imported from, and a profile
where it has one; ``expected.txt`` beside it holds what is said about it, and its layout in words.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from specwire.generated.errors import DecodeError
from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostic, SpecError, render_all
from specwire.generator.documents.importing import import_document
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import compile_protocol
from tests.generator.pictures import picture
from tests.generator.test_layouts import generated
from tests.golden_files import GOLDEN, cases, check_golden

RULES = cases("inference")
KINDS = ("plain", "ambiguous", "override")
OPEN = ("E4", "W4", "W206", "W7")
"""Findings that say that more than one thing may be meant."""


@dataclass(frozen=True)
class Outcome:
    """What came of a case: what is said about it, and the protocol where it compiles."""

    found: tuple[Diagnostic, ...]
    protocol: ir.Protocol | None

    @property
    def layout(self) -> str:
        return picture(self.protocol) if self.protocol else "no layout\n"

    @property
    def text(self) -> str:
        said = f"{render_all(self.found)}\n\n" if self.found else ""
        return said + self.layout


def outcome(case: Path, home: Path, patch: pytest.MonkeyPatch) -> Outcome:
    """Import the case's document, where it has one, and compile."""
    folder = home / case.parent.name / case.name / "demo"
    folder.mkdir(parents=True)
    for file in (case / "demo").iterdir():
        if file.suffix != ".md":
            shutil.copyfile(file, folder / file.name)
    found: tuple[Diagnostic, ...] = ()
    patch.chdir(case)
    try:
        for document in sorted(Path("demo").glob("*.md")):
            imported = import_document(document, "demo", folder=folder, shown="demo")
            write_imported(imported, folder)
            found += imported.diagnostics
        compilation = compile_protocol(folder, shown="demo")
    except SpecError as error:
        return Outcome(found + error.diagnostics, None)
    return Outcome(found + compilation.warnings, compilation.protocol)


def opens(found: tuple[Diagnostic, ...]) -> set[str]:
    return {str(one) for one in found if one.code.startswith(OPEN)}


def test_all_twenty_rules_have_all_three_cases() -> None:
    assert [case.name[:3] for case in RULES] == [f"{number:02}-" for number in range(1, 21)]
    for rule in RULES:
        assert {case.name for case in cases(f"inference/{rule.name}")} == set(KINDS), rule.name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_case(rule: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = rule / kind
    check_golden(case / "expected.txt", outcome(case, tmp_path, monkeypatch).text)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_is_open_is_said_and_settled_by_the_profile(
    rule: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is assumed in the plain case; the profile of the override leaves nothing to assume, and is heard."""
    plain, ambiguous, override = (outcome(rule / kind, tmp_path, monkeypatch) for kind in KINDS)
    assert not opens(plain.found)
    assert opens(ambiguous.found)
    assert override.protocol is not None
    assert not [one for one in override.found if one.code.startswith(("E", "W4", "W206"))]
    assert override.layout != ambiguous.layout
    for file in ("grammar.abnf", "document.md"):
        same = [case / "demo" / file for case in (rule / "ambiguous", rule / "override")]
        assert len({path.read_text("utf-8") if path.exists() else None for path in same}) == 1


def test_character_classes_hold_under_strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = outcome(
        GOLDEN / "inference" / "17-character-classes" / "plain", tmp_path, monkeypatch
    ).protocol
    assert protocol is not None
    with generated(tmp_path, protocol) as package:
        assert package.decode([b"\x01kvs.get"], strict=True).topic == "kvs.get"
        for text in (b"", b"kvs get", b"kvs.get\0"):
            assert package.decode([b"\x01" + text]).topic == text.decode()
            with pytest.raises(DecodeError) as refused:
                package.decode([b"\x01" + text], strict=True)
            assert (refused.value.field, refused.value.kind) == ("topic", "text")
