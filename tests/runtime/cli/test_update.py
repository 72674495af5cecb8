"""`specwire update`: what it prints, what it writes, and the exit status."""

from __future__ import annotations

import json
import shutil
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.generator.oven import OVEN, OVEN_2, OVEN_3
from tests.runtime.cli.commands import Outcome, specwire


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project after the import of the first edition."""
    project = tmp_path_factory.mktemp("project")
    (project / "oven.md").write_text(OVEN, encoding="utf-8")
    return project


@pytest.fixture
def project(
    first: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of the project with grammars and packages, as the current folder."""
    from specwire.runtime.cli.console import output

    monkeypatch.setenv("COLUMNS", "200")
    output.cache_clear()
    monkeypatch.chdir(first)
    if not (first / "grammars").exists():
        (first / "grammars").mkdir()
        assert specwire(capfd, "import", "oven.md", "--protocol", "oven").status == 0
        assert specwire(capfd, "generate", "oven").status == 0
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def update(capfd: pytest.CaptureFixture[str], text: str, *options: str) -> Outcome:
    Path("oven.md").write_text(text, encoding="utf-8")
    return specwire(capfd, "update", "oven.md", *options)


def test_everything_in_one_command(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The rules, the tables of diff, the section for a changelog; then all files are current."""
    outcome = update(capfd, OVEN_3)
    assert outcome.status == 1, outcome.err
    for line in (
        "-degrees = 2OCTET",
        "+degrees = 4OCTET",
        "Oven v1 -> Oven v3: breaking",
        "### Oven Protocol: Oven v1 to Oven v3 (breaking)",
        "- The old S cannot read `heat` of the new C:",
    ):
        assert line in outcome.out.splitlines()
    assert outcome.err.splitlines()[-1].startswith("grammars/oven: Oven v1 is now Oven v3; ")
    assert specwire(capfd, "generate", "oven", "--check").status == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(project / "generated")
        patch.setattr(sys, "modules", dict(sys.modules))
        oven = import_module("oven")
        assert oven.Heat(degrees=1 << 20).encode() == [b"\xba\x01\x00\x10\x00\x00"]
    again = update(capfd, OVEN_3)
    assert again.status == 0 and again.err.splitlines()[-1] == "grammars/oven: Oven v3; 0 files written"


def test_a_dry_run_says_the_same_and_writes_nothing(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*.*") if path.name != "oven.md"}
    tried = update(capfd, OVEN_2, "--dry-run")
    assert tried.status == 1 and tried.err.rstrip().endswith(" files would change; nothing written")
    assert {path: path.read_bytes() for path in before} == before
    done = update(capfd, OVEN_2)
    assert (done.status, done.out) == (1, tried.out)
    assert tried.err.splitlines()[-1].split()[:9] == done.err.splitlines()[-1].split()[:9]


def test_markdown_alone(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = update(capfd, OVEN_2, "--dry-run", "--markdown")
    assert outcome.out.startswith("### Oven Protocol: Oven v1 to Oven v2 (conditional)\n\n- message `light`")
    assert outcome.out in update(capfd, OVEN_2, "--dry-run").out


def test_json(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    value = json.loads(update(capfd, OVEN_3, "--json").out)
    assert value["must_act"] and not value["dry_run"] and "grammars/oven/grammar.abnf" in value["changed"]
    (one,) = value["protocols"]
    assert (one["protocol"], one["comparison"]["verdict"]) == ("oven", "breaking")
    assert one["actions"][0]["reader_edition"] == "old" and "Heat" in [row["table"] for row in one["tables"]]
    assert value["changelog"].startswith("### Oven Protocol")
    assert {"rule": "degrees", "was": "2OCTET", "now": "4OCTET"} in value["rules"]


def test_options(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Other folders, another edition, no comments."""
    (project / "grammars").rename(project / "specs")
    (project / "generated").rename(project / "wire")
    text = OVEN_2.replace("text    =", "; Not ours.\ntext    =")
    options = ("--grammars", "specs", "--out", "wire", "--edition", "March", "--no-comments")
    outcome = update(capfd, text, *options, "--protocol", "oven")
    assert outcome.status == 1 and "Oven v1 -> March: conditional" in outcome.out
    assert "Not ours" not in (project / "specs/oven/grammar.abnf").read_text("utf-8")
    checked = specwire(capfd, "generate", "oven", "--grammars", "specs", "--out", "wire", "--check")
    assert checked.status == 0


def test_faults_end_with_status_2_and_nothing_is_written(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*.*") if path.name != "oven.md"}
    outcome = update(capfd, OVEN_2.replace("2OCTET", "2OCTETTES"))
    assert (outcome.status, outcome.out) == (2, "")
    assert "oven.md:8:12: error[E201]" in outcome.err
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["none.md"], "there is no document none.md"),
        (["."], ". is a directory: name the document in it"),
        (["other.md"], "no protocol in grammars names other.md as its source: name the protocol with --protocol"),
        (["oven.md", "--protocol", "oben"], "grammars has no protocol 'oben'; it has oven; did you mean 'oven'?"),
        (["oven.md", "--grammars", "none"], "none is not a folder of grammars"),
        (["oven.md", "--json", "--markdown"], "--json and --markdown exclude each other"),
        (["oven.md", "--out", "oven.md"], "oven.md is a file: name the folder of the packages with --out"),
    ],
)  # fmt: skip
def test_usage(project: Path, words: list[str], sentence: str, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "other.md").write_text(OVEN.replace("Oven", "Other"), encoding="utf-8")
    outcome = specwire(capfd, "update", *words)
    assert (outcome.status, outcome.out, outcome.err) == (2, "", f"specwire: {sentence}\n")


def test_a_document_of_several_protocols(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(project / "grammars/oven", project / "grammars/stove")
    outcome = update(capfd, OVEN_2)
    assert (outcome.status, outcome.err) == (
        2,
        "specwire: oven.md belongs to several protocols (oven, stove): name one with --protocol\n",
    )


def test_a_package_that_is_not_there_must_be_named(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With --out it is written; a folder beside the grammars is not made without being asked for."""
    shutil.rmtree(project / "generated")
    outcome = update(capfd, OVEN_2)
    assert outcome.status == 2 and "name the folder of the packages with --out" in outcome.err
    assert not (project / "generated").exists()
    assert "light" not in (project / "grammars/oven/grammar.abnf").read_text("utf-8")
    assert update(capfd, OVEN_2, "--out", "wire").status == 1
    assert (project / "wire/oven/codec.py").is_file()


def test_without_a_folder_of_grammars(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = update(capfd, OVEN_2)
    assert outcome.status == 2 and "name one with --grammars" in outcome.err
