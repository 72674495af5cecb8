"""`specwire diff`: what it takes, what it prints, and the exit status."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.pipeline import compile_protocol
from specwire.runtime.cli.diff import MAX_IR_OCTETS
from tests.generator.git import commit_all, start_repository
from tests.generator.oven import OVEN_2, OVEN_3, write_oven
from tests.runtime.cli.commands import Outcome, specwire

GRAMMARS = Path(__file__).parents[3] / "grammars"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of one width, wherever the tests run."""
    from specwire.runtime.cli.console import output

    monkeypatch.setenv("COLUMNS", "600")
    output.cache_clear()


def diff(capfd: pytest.CaptureFixture[str], old: str | Path, new: str | Path, *options: str) -> Outcome:
    return specwire(capfd, "diff", str(old), str(new), *options)


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """A copy of FILEMQ's grammar that a test may edit."""
    return Path(shutil.copytree(GRAMMARS / "filemq", tmp_path / "filemq"))


def write_ir(path: Path, protocol: ir.Protocol) -> Path:
    path.write_bytes(msgspec.json.encode(protocol))
    return path


@pytest.mark.parametrize("name", sorted(folder.name for folder in GRAMMARS.iterdir()))
def test_a_protocol_against_itself(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = diff(capfd, GRAMMARS / name, GRAMMARS / name)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.rstrip().endswith(": same")


def test_breaking_editions(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = diff(capfd, GRAMMARS / "cmb1_json", GRAMMARS / "cmb1")
    assert outcome.status == 1
    assert "CMB1 (JSON) -> CMB1: breaking" in outcome.out
    (line,) = [line for line in outcome.out.splitlines() if "flag JSON meaning" in line]
    assert line.count("no: the same octets") == 2
    assert "was JSON 0x04, announces json" in outcome.out and "is NORESPONSE 0x04" in outcome.out


def test_conditions_are_no_break_unless_asked(capfd: pytest.CaptureFixture[str]) -> None:
    editions = GRAMMARS / "cmb1", GRAMMARS / "flux"
    assert diff(capfd, *editions).status == 0
    assert diff(capfd, *editions, "--no-conditions").status == 1


def test_names_of_protocols(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = diff(capfd, "cmb1", "flux", "--grammars", str(GRAMMARS))
    assert outcome.status == 0
    assert "keepalive -> control" in outcome.out


def test_json(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = diff(capfd, GRAMMARS / "cmb1_json", GRAMMARS / "cmb1", "--json")
    assert outcome.status == 1
    value = json.loads(outcome.out)
    assert (value["verdict"], value["old_reads_new"], value["new_reads_old"]) == ("breaking", "no", "no")
    assert value["tables"] == "needs a rewrite"
    (change,) = [one for one in value["changes"] if one["kind"] == "meaning"]
    assert (change["group"], change["name"], change["new"]) == ("flags", "JSON", "NORESPONSE 0x04")
    assert change["old_reads_new"]["verdict"] == "no"


OVEN = """\
# Oven Protocol

This is version 1 of OVEN.

```
oven    = *( C:heat / S:heated )
heat    = %xBA %x01 degrees
degrees = 2OCTET        ; integer
heated  = %xBA %x02
```
"""


@pytest.fixture
def documents(tmp_path: Path) -> tuple[Path, Path]:
    """Two editions of a document: the field of a message grows."""
    old, new = tmp_path / "Oven 1.md", tmp_path / "oven-2.md"
    old.write_text(OVEN, encoding="utf-8")
    new.write_text(OVEN.replace("version 1", "version 2").replace("2OCTET", "4OCTET"), encoding="utf-8")
    return old, new


def test_documents(documents: tuple[Path, Path], capfd: pytest.CaptureFixture[str]) -> None:
    old, new = documents
    outcome = diff(capfd, old, new)
    assert outcome.status == 1
    assert "field degrees resized" in outcome.out and "Oven v1 -> Oven v2: breaking" in outcome.out
    assert diff(capfd, old, old).status == 0
    assert json.loads(diff(capfd, old, new, "--json").out)["verdict"] == "breaking"
    assert sorted(path.name for path in old.parent.iterdir()) == ["Oven 1.md", "oven-2.md"]


def test_a_document_is_read_with_the_profile_of_the_folder(
    documents: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    old, new = documents
    specwire(capfd, "import", str(old), "--protocol", "oven", "--grammars", str(tmp_path / "g"))
    folder = tmp_path / "g" / "oven"
    profile = folder / "profile.toml"
    text = profile.read_text("utf-8")
    profile.write_text(text + '\n[types.degrees]\nname = "heat"\n', encoding="utf-8")
    outcome = diff(capfd, folder, new)
    assert outcome.status == 1 and "field heat resized" in outcome.out
    assert diff(capfd, old, folder).status == 0
    profile.write_text(text + '\n[types.grade]\nname = "heat"\n', encoding="utf-8")
    new.write_text(OVEN, encoding="utf-8")
    assert diff(capfd, folder, new).status == 2
    profile.write_text(text + '\n[types.degrees]\nname = "heat"\n', encoding="utf-8")
    new.write_text(OVEN.replace("degrees", "grade"), encoding="utf-8")
    outcome = diff(capfd, folder, new)
    assert "is read without the profile of" in outcome.err and outcome.status in (0, 1)


def test_faults_of_a_document_are_shown_in_it(
    documents: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    old, new = documents
    new.write_text(OVEN.replace("2OCTET", "2OCTETTES"), encoding="utf-8")
    outcome = diff(capfd, old, new)
    assert (outcome.status, outcome.out) == (2, "")
    assert "oven-2.md:8:12: error[E201]" in outcome.err
    new.write_text("Nothing here.\n", encoding="utf-8")
    assert diff(capfd, old, new).status == 2


def test_ir_as_show_prints_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    printed = specwire(capfd, "show", "ir", "cmb1", "--json", "--grammars", str(GRAMMARS))
    path = tmp_path / "before.json"
    path.write_text(printed.out, encoding="utf-8")
    assert diff(capfd, path, GRAMMARS / "cmb1").status == 0
    assert diff(capfd, path, GRAMMARS / "cmb1_json").status == 1


def test_a_comment_is_no_change(edited: Path, capfd: pytest.CaptureFixture[str]) -> None:
    grammar = edited / "grammar.abnf"
    grammar.write_text("; One more line.\n" + grammar.read_text("utf-8"), encoding="utf-8")
    outcome = diff(capfd, GRAMMARS / "filemq", edited)
    assert (outcome.status, outcome.out) == (0, "FILEMQ v2 -> FILEMQ v2: same\n")


def test_a_field_of_another_size(edited: Path, capfd: pytest.CaptureFixture[str]) -> None:
    grammar = edited / "grammar.abnf"
    text = grammar.read_text("utf-8")
    grammar.write_text(text.replace("credit          = 8OCTET", "credit          = 4OCTET"), encoding="utf-8")
    outcome = diff(capfd, GRAMMARS / "filemq", edited)
    assert outcome.status == 1
    assert "field credit resized" in outcome.out and "uint64 to int64" in outcome.out


def test_faults_of_a_grammar_are_diagnostics(edited: Path, capfd: pytest.CaptureFixture[str]) -> None:
    grammar = edited / "grammar.abnf"
    text = grammar.read_text("utf-8")
    grammar.write_text(
        text.replace("credit          = 8OCTET", "credit          = 8OCTETS"), encoding="utf-8"
    )
    outcome = diff(capfd, GRAMMARS / "filemq", edited)
    assert (outcome.status, outcome.out) == (2, "")
    assert "error[E" in outcome.err and "8OCTETS" in outcome.err


def changed(field: str, value: object) -> bytes:
    """FILEMQ's IR with one value at the top replaced."""
    whole = json.loads(msgspec.json.encode(compile_protocol(GRAMMARS / "filemq").protocol))
    return json.dumps({**whole, field: value}).encode()


STRAY = {
    "name": "a", "rule": "a", "roles": [], "labels": [],
    "strict": [{"name": "S", "accepting": True, "transitions": [{"label": "C:Ohai", "target": "NOWHERE"}]}],
    "concurrent": {"phases": [], "places": [], "replies": [], "errors": []},
}  # fmt: skip


@pytest.mark.parametrize(
    ("octets", "sentence"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is JSON, but not the IR"),
        (b'{"name": "filemq"}', "is JSON, but not the IR"),
        (changed("ir_version", ir.IR_VERSION + 1), f"is IR of version {ir.IR_VERSION + 1}"),
        (changed("ir_version", "x"), "is IR of version 'x'"),
        (changed("messages", 7), "is not the IR of a protocol"),
        (changed("enums", []), "there is no enumeration 'operation'"),
        (changed("dialogs", [STRAY]), "leads to an undefined place"),
    ],
)
def test_files_that_are_no_edition(
    octets: bytes, sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "edition.json"
    path.write_bytes(octets)
    outcome = diff(capfd, path, GRAMMARS / "filemq")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(
        f"specwire: {path} {sentence}" if sentence.startswith("is") else "specwire: "
    )
    assert sentence in outcome.err and outcome.err.count("\n") == 1


def test_a_file_too_large_to_be_an_edition(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "edition.json"
    path.touch()
    os.truncate(path, MAX_IR_OCTETS + 1)
    outcome = diff(capfd, path, GRAMMARS / "filemq")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"specwire: {path} has more than 67,108,864 octets")


def test_things_that_are_no_edition(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for given, sentence in (
        (str(tmp_path / "nothing.json"), "there is no"),
        (str(tmp_path), "is not the folder of a grammar"),
        ("filemk", "has no protocol 'filemk'"),
    ):
        outcome = diff(capfd, given, GRAMMARS / "filemq", "--grammars", str(GRAMMARS))
        assert (outcome.status, outcome.out) == (2, ""), given
        assert sentence in outcome.err


def test_numbers_of_editions(capfd: pytest.CaptureFixture[str]) -> None:
    for given, sentence in (
        ([], "missing argument 'OLD'"),
        (["filemq"], "missing argument 'NEW'"),
        (["filemq", "flux", "zre"], "unexpected third argument"),
    ):
        outcome = specwire(capfd, "diff", *given)
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.err.endswith(f"specwire: {sentence}\n")
    outcome = diff(capfd, "cmb1", "flux", "--json", "--markdown")
    assert (outcome.status, outcome.err) == (2, "specwire: --json and --markdown exclude each other\n")


def test_markdown(documents: tuple[Path, Path], capfd: pytest.CaptureFixture[str]) -> None:
    outcome = diff(capfd, *documents, "--markdown")
    assert outcome.status == 1
    assert outcome.out.startswith("### Oven Protocol: Oven v1 to Oven v2 (breaking)\n\n- `heat`: field")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the first edition of two protocols, as the current folder; returns the grammars."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    start_repository(tmp_path)
    grammars = write_oven(tmp_path / "grammars").parent
    shutil.copytree(GRAMMARS / "cmb1", grammars / "cmb1")
    commit_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return grammars


def test_against_a_commit(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "diff", "--against", "HEAD")
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "no protocol changed since HEAD\n")
    write_oven(repository, OVEN_2)
    outcome = specwire(capfd, "diff", "--against", "HEAD")
    assert outcome.status == 0 and "message light added" in outcome.out
    assert "Oven v1 -> Oven v2: conditional" in outcome.out and "CMB1" not in outcome.out
    assert specwire(capfd, "diff", "--against", "HEAD", "--no-conditions").status == 1
    assert specwire(capfd, "diff", "--against", "HEAD", "cmb1").err == "no protocol changed since HEAD\n"
    write_oven(repository, OVEN_3)
    assert specwire(capfd, "diff", "--against", "main", "oven").status == 1


def test_a_removed_protocol_breaks_its_peers(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (repository / "oven").rename(repository / "stove")
    outcome = specwire(capfd, "diff", "--against", "HEAD")
    assert (outcome.status, outcome.out) == (1, "oven: removed\nstove: added\n")
    assert specwire(capfd, "diff", "--against", "HEAD", "stove").status == 0


def test_a_comment_for_a_pull_request(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_oven(repository, OVEN_3)
    outcome = specwire(capfd, "diff", "--against", "HEAD", "--markdown")
    assert outcome.status == 1
    assert outcome.out.startswith("## Protocols changed since `HEAD`: 1 breaking\n\n### Oven Protocol")
    value = json.loads(specwire(capfd, "diff", "--against", "HEAD", "--json").out)
    assert (value["against"], [one["protocol"] for one in value["protocols"]]) == ("HEAD", ["oven"])
    assert value["protocols"][0]["actions"] and value["protocols"][0]["comparison"]["verdict"] == "breaking"


def test_no_commit_to_compare_with(
    repository: Path, capfd: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    outcome = specwire(capfd, "diff", "--against", "nope")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("specwire: there is no commit 'nope' in this repository")
    alone = write_oven(tmp_path_factory.mktemp("alone") / "grammars").parent
    outcome = specwire(capfd, "diff", "--against", "HEAD", "--grammars", str(alone))
    assert outcome.status == 2 and outcome.err.count("\n") == 1
    assert outcome.err.endswith("it is in no Git repository, so there is no commit to compare with\n")
