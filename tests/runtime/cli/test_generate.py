"""`specwire generate` and `specwire check`: what they write, what they refuse, what they say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.runtime.cli.commands import specwire

ROOT = Path(__file__).parents[3]
GRAMMARS = ROOT / "grammars"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with a copy of FILEMQ's grammar, and nothing generated."""
    shutil.copytree(GRAMMARS / "filemq", tmp_path / "grammars" / "filemq")
    return tmp_path


def test_committed_packages_are_what_the_grammars_give(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "generate", "--check", "--grammars", str(GRAMMARS))
    assert (outcome.status, outcome.out) == (0, "")


def test_one_edited_character_is_drift(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    grammars, out = str(workspace / "grammars"), workspace / "generated"
    assert specwire(capfd, "generate", "--grammars", grammars).status == 0
    assert specwire(capfd, "generate", "--check", "--grammars", grammars).status == 0
    codec = out / "filemq" / "codec.py"
    codec.write_text(codec.read_text().replace("class Nom(", "class Non("))
    outcome = specwire(capfd, "generate", "--check", "--grammars", grammars)
    assert outcome.status == 1
    assert "-class Non(" in outcome.out and "+class Nom(" in outcome.out
    assert "class Non(" in codec.read_text(), "checking must not write"
    assert specwire(capfd, "generate", "--grammars", grammars).status == 0
    assert "class Nom(" in codec.read_text()


def test_a_file_that_no_grammar_gives_is_drift(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Told, and left where it is: it may be somebody's."""
    grammars = str(workspace / "grammars")
    assert specwire(capfd, "generate", "--grammars", grammars).status == 0
    stray = workspace / "generated" / "filemq" / "stray.py"
    stray.write_text("x = 1\n")
    outcome = specwire(capfd, "generate", "--check", "--grammars", grammars)
    assert outcome.status == 1 and "stray.py: no grammar generates this file" in outcome.out
    assert specwire(capfd, "generate", "--grammars", grammars).status == 0
    assert stray.exists()


def test_generated_package_can_go_anywhere(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = workspace / "src" / "wire"
    outcome = specwire(
        capfd, "generate", "filemq", "--grammars", str(workspace / "grammars"), "--out", str(out)
    )
    assert outcome.status == 0
    assert sorted(path.name for path in out.iterdir()) == ["filemq"]


def test_every_fault_at_once_and_nothing_written(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    grammar = workspace / "grammars" / "filemq" / "grammar.abnf"
    text = grammar.read_text()
    grammar.write_text(
        text.replace("credit          = 8OCTET", "credit          = 8OCTETS").replace(
            "signature %x0A", "signature %x0Z"
        )
    )
    before = sorted(workspace.rglob("*"))
    outcome = specwire(capfd, "generate", "--grammars", str(workspace / "grammars"))
    assert outcome.status == 2
    line = next(n for n, row in enumerate(text.splitlines(), 1) if row.startswith("HUGZ-OK"))
    assert f"grammar.abnf:{line}:" in outcome.err and "error[E" in outcome.err
    assert "'OCTETS' is used but never defined" in outcome.err, "a fault of another kind is told as well"
    assert sorted(workspace.rglob("*")) == before


def test_faults_of_two_protocols_are_told_together(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(GRAMMARS / "cmb1", workspace / "grammars" / "cmb1")
    for name in ("filemq", "cmb1"):
        with (workspace / "grammars" / name / "grammar.abnf").open("a") as file:
            file.write('broken = "\n')
    outcome = specwire(capfd, "generate", "--grammars", str(workspace / "grammars"))
    assert outcome.status == 2
    assert "filemq/grammar.abnf:" in outcome.err and "cmb1/grammar.abnf:" in outcome.err


def test_unknown_protocol_names_the_known_ones(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "generate", "filmq", "--grammars", str(GRAMMARS))
    assert outcome.status == 2 and "'filmq'" in outcome.err and "filemq" in outcome.err
    assert "Traceback" not in outcome.err


def test_missing_folder_of_grammars(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "check", "--grammars", str(tmp_path / "none"))
    assert outcome.status == 2 and "none is not a folder of grammars" in outcome.err


def test_our_grammars_need_no_assumption(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "check", "--no-assumptions", "--json", "--grammars", str(GRAMMARS))
    assert outcome.status == 0
    found = json.loads(outcome.out)
    assert {entry["severity"] for entry in found} <= {"warning"}
    assert not [entry for entry in found if entry["code"].startswith("W4")]


def test_assumptions_are_listed_and_can_be_forbidden(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "grammar.abnf").write_text(
        "plain = PING / PONG\nPING = %x01 mark\nPONG = %x02 mark\nmark = 4OCTET\n"
    )
    outcome = specwire(capfd, "check", "--grammars", str(tmp_path))
    assert outcome.status == 0 and "plain/grammar.abnf:4:1: warning[W401]" in outcome.out
    assert specwire(capfd, "check", "--no-assumptions", "--grammars", str(tmp_path)).status == 2
