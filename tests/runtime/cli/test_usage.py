"""Look of the command line: help that is whole at 80 columns, and usage errors in one style."""

from __future__ import annotations

import re

import pytest

from command_table import leaf_commands
from specwire.runtime.cli.main import COMMANDS
from tests.runtime.cli.commands import specwire


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "schema filemq --format nosuch",
            "invalid value for '--format': 'nosuch' is not one of 'ddl', 'tree'",
        ),
        ("decode filemq - --limit -1", "invalid value for '--limit': expected at least 1, not -1"),
        ("decode filemq - --limit many", "invalid value for '--limit': expected a whole number, not 'many'"),
        ("decode filemq - --limit 1.5", "invalid value for '--limit': expected a whole number, not '1.5'"),
        ("decode filemq - --port 65536", "invalid value for '--port': expected at most 65535, not 65536"),
        ("peer filemq --seconds soon", "invalid value for '--seconds': expected a number, not 'soon'"),
        (
            "flux overlay status --rank -2",
            "invalid value for '--rank' / '-r': expected at least 0, not -2",
        ),
        ("diff", "missing argument 'OLD'"),
        ("decod", "no such command 'decod'; did you mean 'decode', 'encode'?"),
        ("flux nosuch", "no such command 'nosuch'"),
        ("doctor --jsn", "no such option: --jsn; did you mean --json?"),
        ("doctor --json=1", "option '--json' does not take a value"),
        ("bridge --to", "option '--to' requires an argument"),
    ],
)
def test_a_usage_error_is_the_last_line(words: str, sentence: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, *words.split())
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.splitlines()[-1].startswith(f"specwire: {sentence}")
    assert not re.search("[│╭]|Error:|Value error|Input should", outcome.err)


def test_a_usage_error_names_the_usage_and_the_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert specwire(capfd, "diff").err == (
        "Usage: specwire diff [OPTIONS] [OLD NEW | NAME...]\n"
        "Try 'specwire diff -h' for help.\n"
        "specwire: missing argument 'OLD'\n"
    )


@pytest.mark.parametrize("words", sorted({"", *COMMANDS, *leaf_commands()}))
def test_help_is_whole_at_80_columns(
    words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No boxes, nothing cut off, no name of a Python type; `-h` and `--help` are the same."""
    monkeypatch.setenv("COLUMNS", "80")
    short, long = (specwire(capfd, *words.split(), option) for option in ("-h", "--help"))
    assert short == long and short.status == 0
    assert max(map(len, short.out.splitlines())) <= 80
    unwanted = r"[│╭]|[a-z,]\.\.\.$|…$|<(str|bool|int|float|path|list)\b"
    assert not re.search(unwanted, short.out, re.MULTILINE)


@pytest.mark.parametrize(("code", "told"), [("nosuch", "such as E201"), ("e20", "E20")])
def test_a_code_that_does_not_exist(code: str, told: str, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = specwire(capfd, "explain", code)
    assert outcome.status == 2 and told in outcome.err
    assert outcome.err.endswith("docs/reference/diagnostics.md lists them all\n")


@pytest.mark.parametrize(
    "words",
    [
        "decode filemq aaa3070000000000100000",
        "show ir filemq",
        "show machine filemq",
        "config show",
        "diff filemq libfilemq",
    ],
)
def test_tables_have_no_lines_in_a_pipe(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    """For programs such as grep and cut."""
    outcome = specwire(capfd, *words.split())
    assert outcome.err == ""
    assert outcome.out and not re.search("[─-╿]", outcome.out)
