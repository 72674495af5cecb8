"""`specwire show`: each value between two steps, for a person and as JSON; and packages made on the spot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specwire.runtime.packages import REGISTRY
from tests.runtime.cli.commands import specwire

DOCUMENT = """\
# A protocol

```abnf
chat  = HELLO / BYE   ; the whole
HELLO = %x01 size
BYE   = %x02 size
size  = OCTET         ; an integer in network order
```

Prose, and an example:

```json
{"a": 1}
```

```
C: HELLO
S: BYE
"""
MESSAGE = ["0105"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Path:
    """The current folder, with the document, and in ``g`` the grammar imported from it."""
    monkeypatch.chdir(tmp_path)
    Path("chat.md").write_text(DOCUMENT, encoding="utf-8")
    assert specwire(capfd, "import", "chat.md", "--protocol", "chat", "--grammars", "g").status == 0
    return tmp_path


@pytest.mark.usefixtures("project")
def test_blocks_with_their_place_kind_and_lines(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "show", "blocks", "chat.md")
    assert outcome.status == 0
    assert outcome.out == (
        "chat.md:4: grammar (fence, abnf)\n"
        "4 | chat  = HELLO / BYE   ; the whole\n"
        "5 | HELLO = %x01 size\n"
        "6 | BYE   = %x02 size\n"
        "7 | size  = OCTET         ; an integer in network order\n"
        "chat.md:13: other (fence, json)\n"
        '13 | {"a": 1}\n'
        "chat.md:17: dialog (fence, never closed)\n"
        "17 | C: HELLO\n"
        "18 | S: BYE\n"
    )


@pytest.mark.usefixtures("project")
def test_blocks_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    first, _, last = json.loads(specwire(capfd, "show", "blocks", "chat.md", "--json").out)
    assert first == {
        "file": "chat.md",
        "kind": "grammar",
        "markup": "fence",
        "language": "abnf",
        "first_line": 4,
        "last_line": 7,
        "closed": True,
        "text": "".join(f"{line}\n" for line in DOCUMENT.splitlines()[3:7]),
    }
    assert (last["kind"], last["language"], last["closed"]) == ("dialog", None, False)


@pytest.mark.parametrize(
    ("content", "status", "told"),
    [
        (b"No rules here.\n", 0, "chat.md has no block that import would read"),
        (b"", 0, "chat.md has no block that import would read"),
        (b"a = \0\n", 2, "chat.md:1:1: error[E701]"),
        (b'```abnf\na = "\xff"\n```\n', 0, ""),
    ],
)
@pytest.mark.usefixtures("project")
def test_blocks_of_odd_documents(
    content: bytes, status: int, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("chat.md").write_bytes(content)
    outcome = specwire(capfd, "show", "blocks", "chat.md")
    assert outcome.status == status and told in outcome.err and "Traceback" not in outcome.err
    assert outcome.out == ('chat.md:2: grammar (fence, abnf)\n2 | a = "ÿ"\n' if b"\xff" in content else "")
    as_json = specwire(capfd, "show", "blocks", "chat.md", "--json")
    assert as_json.status == status and (not status or as_json.out == "")


@pytest.mark.usefixtures("project")
def test_rules_as_text_and_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    """What names resolve to: the published rules with their comments and places."""
    text = specwire(capfd, "show", "tree", "chat", "--grammars", "g").out
    assert "HELLO = %x01 size\n" in text
    rules = json.loads(specwire(capfd, "show", "tree", "chat", "--grammars", "g", "--json").out)
    assert [rule["rule"] for rule in rules[:4]] == ["chat", "HELLO", "BYE", "size"]
    assert rules[3] == {
        "rule": "size",
        "definition": "OCTET",
        "comments": ["an integer in network order"],
        "file": "g/chat/grammar.abnf",
        "line": rules[3]["line"],
    }
    lines = Path("g/chat/grammar.abnf").read_text(encoding="utf-8").splitlines()
    assert [lines[rule["line"] - 1].split()[0] for rule in rules[:4]] == ["chat", "HELLO", "BYE", "size"]


@pytest.mark.usefixtures("project")
def test_ir_as_text_and_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    text = specwire(capfd, "show", "ir", "chat", "--grammars", "g").out
    assert "Hello = HELLO" in text and "integer, 1 octet" in text
    as_json = json.loads(specwire(capfd, "show", "ir", "chat", "--grammars", "g", "--json").out)
    assert [message["class_name"] for message in as_json["messages"]] == ["Hello", "Bye"]


@pytest.mark.parametrize("step", ["blocks", "tree", "ir", "machine"])
@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.usefixtures("project")
def test_what_there_is_none_of(step: str, form: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """A sentence on standard error, with --json too: standard output has a value or nothing."""
    outcome = specwire(capfd, "show", step, "chatt", "--grammars", "g", *form)
    assert (outcome.status, outcome.out) == (2, "")
    asked = "chatt: No such file or directory" if step == "blocks" else "did you mean 'chat'?"
    assert outcome.err.count("\n") == 1 and asked in outcome.err
    assert specwire(capfd, "show", "blocks", "g").err == "specwire: g is a folder, not a document\n"


@pytest.mark.usefixtures("project")
def test_a_grammar_decodes_before_anything_is_generated(capfd: pytest.CaptureFixture[str]) -> None:
    """`decode` and `schema` make the package of a grammar on the spot, and write nothing."""
    before = sorted(Path.cwd().rglob("*"))
    decoded = specwire(capfd, "decode", "chat", *MESSAGE, "--grammars", "g", "--json")
    assert json.loads(decoded.out) == {"protocol": "chat", "message": "Hello", "fields": {"size": 5}}
    shown = specwire(capfd, "schema", "chat", "--grammars", "g", "--format", "arrow")
    assert shown.status == 0 and "Hello: struct<size: int16>" in shown.out
    refused = specwire(capfd, "decode", "chat", "0905", "--grammars", "g")
    assert refused.status == 2 and refused.err.startswith("specwire: chat") and "Traceback" not in refused.err
    assert sorted(Path.cwd().rglob("*")) == before
    # The grammar of today, not that of the first call.
    text = Path("g/chat/grammar.abnf").read_text(encoding="utf-8")
    Path("g/chat/grammar.abnf").write_text(text.replace("= %x01", "= %x07"), encoding="utf-8")
    REGISTRY.clear()  # Each command has a process of its own.
    assert specwire(capfd, "decode", "chat", "0705", "--grammars", "g", "--json").status == 0


def test_unknown_packages_name_the_one_that_was_meant(capfd: pytest.CaptureFixture[str]) -> None:
    for command in ("decode", "schema"):
        outcome = specwire(capfd, command, "flx", *(["00"] if command == "decode" else []))
        assert outcome.status == 2 and "did you mean 'flux'?" in outcome.err
