"""`specwire match`: the verdict as exit status, the place as a caret, faults of the grammar as diagnostics."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.runtime.cli.commands import Outcome, specwire

GRAMMAR = """\
topic  = word *( "." word )
word   = 1*( ALPHA / DIGIT )
line   = topic CRLF
lines  = *line
nested = "(" nested ")" / word
frame  = FRAME
free   = *%x20-10FFFF
wrong  = topc
endless = "(" endless ")"
"""


@pytest.fixture
def grammar(tmp_path: Path) -> str:
    path = tmp_path / "g.abnf"
    path.write_text(GRAMMAR)
    return str(path)


def give(monkeypatch: pytest.MonkeyPatch, octets: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(octets)))


def test_a_text_that_matches(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert specwire(capfd, "match", grammar, "topic", "a.b2") == Outcome(0, "the text matches 'topic'\n", "")


def test_a_text_that_stops(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "match", grammar, "Topic", "kvs.get-root")
    assert (outcome.status, outcome.err) == (1, "")
    assert outcome.out.splitlines() == [
        "the text does not match 'Topic' at character 8",
        "  kvs.get-root",
        "         ^",
        'expected ".", ALPHA, DIGIT or the end of the text',
    ]


def test_a_text_that_ends_too_early(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "match", grammar, "topic", "a.")
    assert outcome.out.splitlines() == [
        "the text ends too early for 'topic'",
        "  a.",
        "    ^",
        "expected ALPHA or DIGIT",
    ]


def test_a_text_that_goes_on(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "match", grammar, "line", "a\r\nb")
    assert outcome.status == 1
    assert outcome.out.splitlines()[1:] == ["  a\\r\\nb", "       ^", "expected the end of the text"]


def test_the_caret_stands_under_wide_characters(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "match", grammar, "free", "é日本\x07")
    assert outcome.out.splitlines()[1:3] == ["  é日本\\x07", "       ^"]


def test_of_a_long_text_the_place_is_shown(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "match", grammar, "word", "a" * 500 + "-" + "b" * 500)
    line, caret = outcome.out.splitlines()[1:3]
    assert line == f"  …{'a' * 60}-{'b' * 29}…"
    assert line[caret.index("^")] == "-"


def test_a_text_of_several_lines_stops_in_a_line(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "match", grammar, "lines", "a\r\nb.c\r\nd.!\r\n")
    assert outcome.status == 1
    assert (
        outcome.out.splitlines()[0]
        == "the text does not match 'lines' at character 11, which is line 3, column 3"
    )
    found = json.loads(specwire(capfd, "match", "--json", grammar, "lines", "a\r\n").out)
    assert (found["matches"], found["line"], found["column"]) == (True, 2, 1)


def test_rules_that_contain_themselves_are_matched(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert specwire(capfd, "match", grammar, "nested", "((a1))").status == 0
    outcome = specwire(capfd, "match", grammar, "nested", "((a1)")
    assert outcome.out == "the text ends too early for 'nested'\n  ((a1)\n       ^\nexpected \")\"\n"


def test_json(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "match", "--json", grammar, "topic", "a.")
    assert outcome.status == 1
    assert json.loads(outcome.out) == {
        "rule": "topic",
        "matches": False,
        "offset": 2,
        "line": 1,
        "column": 3,
        "expected": ["ALPHA", "DIGIT"],
        "may_end": False,
    }
    assert json.loads(specwire(capfd, "match", "--json", grammar, "word", "a").out)["matches"] is True


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("topc", "has no rule 'topc'; did you mean 'topic'?"),
        ("", "has no rule ''"),
        ("C:topc", "has no rule 'C:topc'"),
        ("endless", ":9:1: error[E605]: no text matches rule 'endless'"),
        ("frame", ":6:10: error[E603]: 'FRAME' is read as one ZeroMQ frame, which no rule describes"),
        ("wrong", ":8:10: error[E201]: rule 'topc' is not defined"),
    ],
)
def test_rules_that_cannot_be_matched(
    rule: str, said: str, grammar: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = specwire(capfd, "match", grammar, rule, "a")
    assert (outcome.status, outcome.out) == (2, "")
    assert f"{grammar}{said}" in outcome.err or f"{grammar} {said}" in outcome.err


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (b"", "E100"),
        (b"r = %x30-10FFFFFF\n", "E130"),
        (b"r = " + b"(" * 5000 + b'"a"' + b")" * 5000 + b"\n", "E"),
        (b"r = 999999999( r2 )\nr2 = 2( 2DIGIT ALPHA )\n", "E604"),
        (b'r = "a"\x00\n', "E"),
        (b'r = "a" ; \xff\n', "E129"),
        (b'r = "a"\nr = "b"\n', "E202"),
    ],
)
def test_faulty_grammars(
    octets: bytes, code: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    give(monkeypatch, octets)
    outcome = specwire(capfd, "match", "-", "r", "a")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("standard input:") and f"error[{code}" in outcome.err


def test_dialects(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, status in (((), 0), (("--dialect", "rfc5234"), 2), (("--dialect", "zeromq"), 0)):
        give(monkeypatch, b'r = "a" | "b"\n')
        assert specwire(capfd, "match", *arguments, "-", "r", "b").status == status


def test_a_folder_is_read_with_its_profile(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "proto"
    folder.mkdir()
    assert "there is no grammar.abnf in" in specwire(capfd, "match", str(folder), "r", "a").err
    (folder / "grammar.abnf").write_text('r = "a" x\n')
    (folder / "profile.toml").write_text(
        "name = \"proto\"\n[[rules]]\nwhy = \"left out\"\ntext = '''\nx = \"b\"\n'''\n"
    )
    assert specwire(capfd, "match", str(folder), "r", "ab").status == 0
    outcome = specwire(capfd, "match", "--dialect", "rfc5234", str(folder), "r", "ab")
    assert outcome.status == 2 and f"name the file {folder / 'grammar.abnf'}" in outcome.err


def test_files_that_are_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.abnf"
    assert specwire(capfd, "match", str(path), "r", "a") == Outcome(
        2, "", f"specwire: {path}: No such file or directory\n"
    )


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_grammar_without_end(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A file, and standard input."""
    with Path("/dev/zero").open("rb") as endless:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=endless))
        for grammar in ("/dev/zero", "-"):
            outcome = specwire(capfd, "match", grammar, "r", "a")
            assert (outcome.status, outcome.out) == (2, "")
            assert "error[E139]: the grammar has too many characters" in outcome.err


def test_a_text_that_is_not_utf_8(grammar: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "match", grammar, "word", "a\udcff")
    assert outcome == Outcome(2, "", "specwire: the text is not UTF-8\n")


def test_a_protocol_is_named_as_everywhere(
    grammar: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The signature of FILEMQ is %xAA %xA3; a file of that name here comes first."""
    monkeypatch.chdir(tmp_path)
    outcome = specwire(capfd, "match", "filemq", "signature", "x")
    assert (outcome.status, outcome.err) == (1, "") and "expected %xAA" in outcome.out
    outcome = specwire(capfd, "match", "filmq", "signature", "x")
    assert outcome.status == 2 and "did you mean 'filemq'?" in outcome.err
    (tmp_path / "filemq").write_text(GRAMMAR)
    assert specwire(capfd, "match", "filemq", "word", "x").status == 0


def test_a_protocol_of_other_grammars(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "chat").mkdir()
    (tmp_path / "chat" / "grammar.abnf").write_text('hello = "hi"\n')
    (tmp_path / "chat" / "profile.toml").write_text('name = "chat"\n')
    assert specwire(capfd, "match", "chat", "hello", "hi", "--grammars", str(tmp_path)).status == 0
