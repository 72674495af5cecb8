"""`specwire import`: what it writes, what it shows, what it refuses."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.runtime.cli.commands import specwire

FIRST = """\
# Chat Protocol

This is version 1 of the CHAT protocol.

```abnf
chat  = hello / talk
hello = %xAA %x01 name
talk  = %xAA %x02 name
name  = size *VCHAR
size  = OCTET | none
none  = %x00
```
"""
SECOND = FIRST.replace("OCTET | none", "OCTET").replace("none  = %x00\n", "bye   = %xAA %x03\n")


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "chat.markdown"
    path.write_text(FIRST, encoding="utf-8")
    return path


def test_a_new_protocol_is_written_and_can_be_read(
    document: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    grammars = tmp_path / "deep" / "grammars"
    outcome = specwire(capfd, "import", str(document), "--protocol", "chat", "--grammars", str(grammars))
    assert (outcome.status, outcome.out) == (0, "")
    assert "6 rules from 1 block (lines 6-11)" in outcome.err
    assert "chat.markdown:10:15: warning[W103]" in outcome.err
    assert sorted(path.name for path in (grammars / "chat").iterdir()) == ["grammar.abnf", "profile.toml"]
    assert [path.name for path in grammars.iterdir()] == ["chat"]
    profile = tomllib.loads((grammars / "chat" / "profile.toml").read_text(encoding="utf-8"))
    assert (profile["name"], profile["title"], profile["edition"]) == ("chat", "Chat Protocol", "Chat v1")
    assert [erratum["now"] for erratum in profile["errata"]] == ["OCTET / none"]


def test_what_import_wrote_compiles_as_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chat.markdown"
    path.write_text(FIRST.replace(" | none", "").replace("none  = %x00\n", ""), encoding="utf-8")
    grammars = str(tmp_path / "g")
    assert specwire(capfd, "import", str(path), "--protocol", "chat", "--grammars", grammars).status == 0
    out = tmp_path / "wire"
    outcome = specwire(capfd, "generate", "chat", "--grammars", grammars, "--out", str(out))
    assert outcome.status == 0, outcome.err
    assert (out / "chat" / "codec.py").is_file()


def test_a_new_edition_shows_what_changes_and_keeps_the_profile(
    document: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    grammars = tmp_path / "grammars"
    arguments = ["import", str(document), "--protocol", "chat", "--grammars", str(grammars)]
    specwire(capfd, *arguments)
    profile = grammars / "chat" / "profile.toml"
    profile.write_text(
        profile.read_text(encoding="utf-8") + "\n[timers]\nidle = 3.0  # ours\n", encoding="utf-8"
    )
    before = {path: path.read_bytes() for path in (grammars / "chat").iterdir()}
    document.write_text(SECOND, encoding="utf-8")

    outcome = specwire(capfd, *arguments, "--dry-run")
    assert outcome.out.splitlines()[:4] == [
        "-size = OCTET / none",
        "+size = OCTET",
        "-none = %x00",
        "+bye = %xAA %x03",
    ]
    assert "message bye added" in outcome.out and "Chat v1 -> Chat v1: " in outcome.out
    assert "the erratum for 'size' corrects nothing" in outcome.err and "nothing written" in outcome.err
    assert {path: path.read_bytes() for path in (grammars / "chat").iterdir()} == before

    assert specwire(capfd, *arguments).status == 0
    text = profile.read_text(encoding="utf-8")
    assert text.endswith("\n[timers]\nidle = 3.0  # ours\n")
    old = before[profile].decode()
    assert [a for a, b in zip(old.split("\n"), text.split("\n"), strict=True) if a != b] == [
        next(line for line in old.split("\n") if line.startswith("sha256"))
    ]
    assert "bye   = %xAA %x03" in (grammars / "chat" / "grammar.abnf").read_text(encoding="utf-8")
    again = specwire(capfd, *arguments)
    assert again.out == "" and "is current" in again.err


def test_json_says_the_same(document: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    grammars = str(tmp_path / "grammars")
    arguments = ["import", str(document), "--protocol", "chat", "--grammars", grammars, "--json"]
    first = json.loads(specwire(capfd, *arguments).out)
    assert first["new"] and first["written"] == ["grammar.abnf", "profile.toml"] and first["rules"] == 6
    assert first["blocks"] == [{"kind": "grammar", "markup": "fence", "first_line": 6, "last_line": 11}]
    assert [found["code"] for found in first["diagnostics"]] == ["W103"]
    document.write_text(SECOND, encoding="utf-8")
    second = json.loads(specwire(capfd, *arguments, "--dry-run").out)
    assert first["comparison"] is None
    assert ("bye", "added") in [
        (change["name"], change["kind"]) for change in second["comparison"]["changes"]
    ]
    assert not second["new"] and second["dry_run"] and second["written"] == []
    assert second["changes"][0] == {"rule": "size", "was": "OCTET / none", "now": "OCTET"}


def test_what_cannot_be_compared_is_imported_all_the_same(
    document: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["import", str(document), "--protocol", "chat", "--grammars", str(tmp_path / "g")]
    specwire(capfd, *arguments)
    document.write_text(SECOND.replace("OCTET\n", "OCTETTES\n"), encoding="utf-8")
    outcome = specwire(capfd, *arguments)
    assert outcome.status == 0 and "+size = OCTETTES" in outcome.out
    assert "what this means on the wire is not known" in outcome.err and "error[E201]" in outcome.err
    assert "OCTETTES" in (tmp_path / "g" / "chat" / "grammar.abnf").read_text(encoding="utf-8")


def test_comments_can_be_left_out(document: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document.write_text(FIRST.replace("name  = size", "; Not ours.\nname  = size"), encoding="utf-8")
    arguments = ["import", str(document), "--protocol", "chat", "--grammars"]
    specwire(capfd, *arguments, str(tmp_path / "with"))
    specwire(capfd, *arguments, str(tmp_path / "without"), "--no-comments")
    told = [(tmp_path / name / "chat" / "grammar.abnf").read_text("utf-8") for name in ("with", "without")]
    assert ["; Not ours." in text for text in told] == [True, False]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# Nothing\n\nNo grammar here.\n", "[E702]: the document has no grammar"),
        ("```abnf\na = ( %x01\n```\n", "chat.markdown:2:5: error[E122]"),
        ("a = %x01\0\n", "[E701]"),
    ],
)
def test_nothing_is_written_when_there_is_no_grammar(
    text: str, told: str, document: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    document.write_text(text, encoding="utf-8")
    grammars = tmp_path / "grammars"
    outcome = specwire(capfd, "import", str(document), "--protocol", "chat", "--grammars", str(grammars))
    assert outcome.status == 2 and told in outcome.err and "Traceback" not in outcome.err
    assert not grammars.exists()


def test_a_profile_at_fault_stops_the_import(
    document: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "grammars" / "chat"
    folder.mkdir(parents=True)
    (folder / "profile.toml").write_text("name = \n", encoding="utf-8")
    outcome = specwire(capfd, "import", str(document), "--protocol", "chat", "--grammars", str(folder.parent))
    assert outcome.status == 2 and "profile.toml:1:" in outcome.err and "E501" in outcome.err
    assert [path.name for path in folder.iterdir()] == ["profile.toml"]


@pytest.mark.parametrize("name", ["Chat", "../chat", "1chat", "", "class"])
def test_names_that_no_package_can_have(
    name: str, document: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = specwire(capfd, "import", str(document), "--protocol", name, "--grammars", str(tmp_path / "g"))
    assert outcome.status == 2 and "cannot name a protocol" in outcome.err


def test_a_document_that_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "none.md")
    outcome = specwire(capfd, "import", missing, "--protocol", "chat", "--grammars", str(tmp_path))
    assert outcome.status == 2 and "there is no document" in outcome.err
    outcome = specwire(capfd, "import", str(tmp_path), "--protocol", "chat", "--grammars", str(tmp_path))
    assert (outcome.status, outcome.err) == (
        2,
        f"specwire: {tmp_path} is a directory: name the document in it\n",
    )


def test_the_folder_of_grammars_is_named_or_here(
    document: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = specwire(capfd, "import", str(document), "--protocol", "chat")
    assert outcome.status == 2 and "name one with --grammars" in outcome.err
    (tmp_path / "grammars").mkdir()
    assert specwire(capfd, "import", str(document), "--protocol", "chat").status == 0
    assert (tmp_path / "grammars" / "chat" / "grammar.abnf").is_file()


PAYLOADS = """\
Chat topics
===========

.. object:: join request

  .. object:: room

    (*string*, REQUIRED) Name of the room.

  .. object:: silent

    (*boolean*, OPTIONAL) Tell nobody.
"""
TALK = """\
# Talk

    talk    = *( C:request )
    request = %x01 topic body
    topic   = OCTET *VCHAR       ; length, then text
    body    = *OCTET
"""


@pytest.fixture
def talk(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Path:
    """Grammars with a protocol whose requests have JSON."""
    (tmp_path / "talk.md").write_text(TALK, encoding="utf-8")
    grammars = tmp_path / "grammars"
    outcome = specwire(
        capfd, "import", str(tmp_path / "talk.md"), "--protocol", "talk", "--grammars", str(grammars)
    )
    assert outcome.status == 0, outcome.err
    with (grammars / "talk" / "profile.toml").open("a") as profile:
        profile.write('\n[types.body]\ncontent = "json"\n')
    return grammars


def import_payloads(
    grammars: Path, capfd: pytest.CaptureFixture[str], text: str, *options: str
) -> dict[str, object]:
    document = grammars.parent / "topics.rst"
    document.write_text(text, encoding="utf-8")
    arguments = ["--protocol", "talk", "--grammars", str(grammars), "--json", *options]
    outcome = specwire(capfd, "import", str(document), *arguments)
    assert outcome.status == 0, outcome.err
    found: dict[str, object] = json.loads(outcome.out)
    return found


def test_payloads_are_added_to_a_protocol(talk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = import_payloads(talk, capfd, PAYLOADS, "--service", "chat")
    schema = "payloads/chat.join.request.json"
    assert found["payloads"] == [{"topic": "chat.join", "message": "Request", "json_schema": schema}]
    assert found["written"] == ["chat.join.request.json", "profile.toml"]
    assert (talk / "talk" / schema).is_file()
    outcome = specwire(capfd, "check", "talk", "--grammars", str(talk))
    assert (outcome.status, "0 errors" in outcome.out + outcome.err) == (0, True)


def test_changed_payload_is_reported(talk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import_payloads(talk, capfd, PAYLOADS, "--service", "chat")
    changed = PAYLOADS.replace("(*boolean*, OPTIONAL)", "(*boolean*, REQUIRED)")
    found = import_payloads(talk, capfd, changed, "--service", "chat", "--dry-run")
    comparison = found["comparison"]
    assert isinstance(comparison, dict)
    (change,) = comparison["changes"]
    assert (change["subject"], change["kind"], change["name"]) == ("key", "presence", "silent")
    assert found["written"] == []


def test_update_reports_and_writes_a_changed_payload(talk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import_payloads(talk, capfd, PAYLOADS.replace("join request", "chat.join request"))
    wire = talk.parent / "wire"
    grammars = ["--grammars", str(talk)]
    assert specwire(capfd, "generate", "talk", *grammars, "--out", str(wire)).status == 0
    document = talk.parent / "topics.rst"
    text = document.read_text().replace("(*boolean*, OPTIONAL)", "(*boolean*, REQUIRED)")
    document.write_text(text, encoding="utf-8")
    outcome = specwire(capfd, "update", str(document), "--protocol", "talk", *grammars, "--out", str(wire))
    assert outcome.status == 1, outcome.err  # old peers may omit the key
    assert "silent: bool\n" in (wire / "talk" / "payloads.py").read_text()
    assert specwire(capfd, "check", "talk", *grammars).status == 0
