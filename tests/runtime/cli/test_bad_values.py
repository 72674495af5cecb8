"""Values that an option cannot have are told in our words, whatever typer checks them with."""

from __future__ import annotations

import pytest

from tests.runtime.cli.commands import specwire


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("schema filemq --format nosuch", "'nosuch' is not one of 'ddl', 'tree'"),
        ("decode filemq - --limit -1", "at least 1 is wanted, not -1"),
        ("decode filemq - --limit many", "a whole number is wanted, not 'many'"),
        ("decode filemq - --limit 1.5", "a whole number is wanted, not '1.5'"),
        ("decode filemq - --port 65536", "at most 65535 is wanted, not 65536"),
        ("peer filemq --seconds soon", "a number is wanted, not 'soon'"),
        ("flux overlay status --rank -2", "at least 0 is wanted, not -2"),
    ],
)
def test_the_sentence(words: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, *words.split())
    sentence = " ".join(outcome.err.replace("│", " ").split())
    assert (outcome.status, outcome.out) == (2, "")
    assert told in sentence
    assert "Value error" not in sentence and "Input should" not in sentence


@pytest.mark.parametrize(("code", "told"), [("nosuch", "such as E201"), ("e20", "E20")])
def test_a_code_that_there_is_none_of(code: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "explain", code)
    assert outcome.status == 2 and told in outcome.err
    assert outcome.err.endswith("docs/reference/diagnostics.md lists them all\n")
