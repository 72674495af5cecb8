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
    assert "'OCTETS' is not defined" in outcome.err, "a fault of another kind is told as well"
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


@pytest.mark.parametrize("command", ["check", "generate"])
def test_a_folder_without_protocols(command: str, workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is wrong with none, but who names such a folder means another; packages beside it stay."""
    grammars, out = workspace / "grammars", workspace / "generated"
    assert specwire(capfd, "generate", "--grammars", str(grammars)).status == 0
    outcome = specwire(capfd, command, "--grammars", str(grammars / "filemq"))
    assert outcome.status == 2 and "filemq is the folder of one protocol; name the folder that" in outcome.err
    shutil.rmtree(grammars / "filemq")
    outcome = specwire(capfd, command, "--grammars", str(grammars))
    assert outcome.status == 2 and f"{grammars} holds no protocol: each has a folder there" in outcome.err
    assert (out / "filemq" / "codec.py").is_file()


def test_grammars_here_come_before_those_that_specwire_brings(
    workspace: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    outcome = specwire(capfd, "check", "zre")
    assert outcome.status == 2 and "grammars has no protocol 'zre'; it has filemq" in outcome.err
    assert specwire(capfd, "check", "filemq").status == 0
    monkeypatch.chdir(workspace / "grammars" / "filemq")
    assert specwire(capfd, "check", "zre").status == 0


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


def test_two_grammars_of_one_name(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither package takes the place of the other."""
    shutil.copytree(workspace / "grammars" / "filemq", workspace / "grammars" / "other")
    outcome = specwire(capfd, "generate", "--grammars", str(workspace / "grammars"))
    assert outcome.status == 2 and "other are both called 'filemq'" in outcome.err
    assert not (workspace / "generated").exists()


def test_names_that_no_module_can_have(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A word of Python; and in specwire's own folder a module that all packages share."""
    grammars = workspace / "grammars"
    (grammars / "filemq").rename(grammars / "class")
    profile = grammars / "class" / "profile.toml"
    text = profile.read_text()
    profile.write_text(text.replace('name = "filemq"', 'name = "class"'))
    outcome = specwire(capfd, "generate", "--grammars", str(grammars))
    assert outcome.status == 2 and "no Python module can be called 'class'" in outcome.err
    profile.write_text(text.replace('name = "filemq"', 'name = "errors"'))
    (grammars / "class").rename(grammars / "errors")
    support_library(workspace)
    outcome = specwire(capfd, "generate", "--grammars", str(grammars))
    assert outcome.status == 2 and "'errors' is a module that all packages share" in outcome.err
    assert not (workspace / "generated").exists()


def support_library(workspace: Path) -> None:
    """Write a support library of a module and a folder beside the grammars, as in specwire's repository."""
    folder = workspace / "generator" / "support"
    (folder / "java").mkdir(parents=True)
    (folder / "errors.py").write_text("class CodecError(ValueError): ...\n")


def test_links_lead_to_the_support_library(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A missing, wrong or stale link is drift; a file in the place of a link stays where it is."""
    support_library(workspace)
    words = ("generate", "--grammars", str(workspace / "grammars"))
    out = workspace / "generated"
    assert specwire(capfd, *words).status == 0
    assert (out / "errors.py").readlink() == Path("../generator/support/errors.py")
    assert (out / "java").readlink() == Path("../generator/support/java")
    assert (out / "filemq" / "codec.py").is_file()
    assert specwire(capfd, *words, "--check").status == 0

    (out / "java").unlink()
    (out / "errors.py").unlink()
    (out / "errors.py").symlink_to("../grammars/filemq/profile.toml")
    (out / "gone.py").symlink_to("../generator/support/gone.py")
    outcome = specwire(capfd, *words, "--check", "--json")
    assert outcome.status == 1
    assert json.loads(outcome.out)["changed"] == [
        str(out / name) for name in ("errors.py", "java", "gone.py")
    ]
    assert specwire(capfd, *words).status == 0
    assert (out / "errors.py").readlink() == Path("../generator/support/errors.py")
    assert not (out / "gone.py").is_symlink()
    assert specwire(capfd, *words, "--check").status == 0

    (out / "errors.py").unlink()
    (out / "errors.py").write_text("mine\n")
    assert specwire(capfd, *words, "--check").status == 1
    outcome = specwire(capfd, *words)
    assert outcome.status == 2 and "not a link to the support library" in outcome.err
    assert (out / "errors.py").read_text() == "mine\n"


def test_check_as_json(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Standard output is JSON and nothing else, the differences included."""
    arguments = ("generate", "filemq", "--grammars", str(workspace / "grammars"), "--json")
    assert len(json.loads(specwire(capfd, *arguments).out)["changed"]) >= 7
    codec = workspace / "generated" / "filemq" / "codec.py"
    codec.write_text(codec.read_text().replace("class Nom(", "class Non("))
    outcome = specwire(capfd, *arguments, "--check")
    found = json.loads(outcome.out)
    assert outcome.status == 1 and found["changed"] == [str(codec)] and found["checked"]
    assert "+class Nom(" in found["diffs"][0]


def test_packages_of_two_folders_of_grammars_live_side_by_side(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What --out names belongs to the user: only the packages that are written are ever tidied."""
    out = str(workspace / "wire")
    assert specwire(capfd, "generate", "zre", "--grammars", str(GRAMMARS), "--out", out).status == 0
    stale = workspace / "wire" / "filemq" / "gone.py"
    stale.parent.mkdir()
    stale.write_text('"""Generated by specwire from the grammar filemq (old)."""\n')
    assert specwire(capfd, "generate", "--grammars", str(workspace / "grammars"), "--out", out).status == 0
    assert sorted(path.name for path in (workspace / "wire").iterdir()) == ["filemq", "zre"]
    assert not stale.exists(), "no grammar gives it any more"


def test_a_file_is_no_folder_for_packages(workspace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = workspace / "file"
    file.touch()
    words = ("--grammars", str(workspace / "grammars"), "--out", str(file))
    assert specwire(capfd, "generate", "filemq", *words).err == (
        f"specwire: {file} is a file: name a folder for the packages with --out\n"
    )


def test_the_sound_messages_of_a_grammar_with_faults(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each omitted message is a warning, and the exit status is 0."""
    folder = tmp_path / "grammars" / "demo"
    folder.mkdir(parents=True)
    (folder / "grammar.abnf").write_text("A = %x01 x\nx = 2OCTET\nB = %x02 nobody\n", encoding="utf-8")
    (folder / "profile.toml").write_text('name = "demo"\nmessages = ["A", "B"]\n', encoding="utf-8")
    grammars, out = ("--grammars", str(folder.parent)), ("--out", str(tmp_path / "out"))
    assert specwire(capfd, "check", *grammars).status == 2
    checked = specwire(capfd, "check", *grammars, "--partial")
    assert checked.status == 0
    assert "nothing is generated from message 'B': rule 'nobody' is not defined" in checked.out
    assert specwire(capfd, "generate", *grammars, *out).status == 2
    assert not (tmp_path / "out").exists()
    generated = specwire(capfd, "generate", *grammars, *out, "--partial")
    assert generated.status == 0
    assert "warning[W423]: nothing is generated from message 'B'" in generated.err
    assert "class A(" in (tmp_path / "out" / "demo" / "codec.py").read_text(encoding="utf-8")
