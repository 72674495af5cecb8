"""One grammar for all commands: each is walked, with help, a typing error and nothing at all; and each is documented."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import command_table
from command_table import WITHOUT_JSON, leaf_commands, options_of
from specwire.runtime.cli import main as root
from tests.house.repository import ROOT

SHORT_OF_OTHERS = {"-r", "-p", "-s", "-c", "-d", "-n"}
"""Letters that flux-core's own commands use in several senses, and ours as they do."""

PROGRAM = [sys.executable, "-c", "from specwire.runtime.cli.main import main; main()"]

walk = pytest.mark.parametrize("words", leaf_commands())


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    """Run the command line in this process; return exit status, standard output and standard error."""
    with pytest.raises(SystemExit) as end:
        root.main(arguments)
    printed = capsys.readouterr()
    return end.value.code, printed.out, printed.err


@walk
def test_help(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command says what it does, and what each argument and option means."""
    status, out, err = call(capsys, *words.split(), "--help")
    assert (status, err) == (0, "")
    assert f"Usage: specwire {words}" in out
    assert "\x1b" not in out, "colour is for terminals"
    command = leaf_commands()[words]
    assert re.match(r"[A-Z].*[.:;]", command.help or "", re.DOTALL), "a sentence says what it does"
    assert [spelling for spelling, option in options_of(command).items() if not option.help] == []


@walk
def test_typing_errors(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, how it is used on standard error, and nothing on standard output."""
    status, out, err = call(capsys, *words.split(), "--no-such-option")
    assert (status, out) == (2, "")
    assert f"Usage: specwire {words}" in err and "--no-such-option" in err


@walk
def test_json(words: str) -> None:
    """Whatever prints a result prints it for programs too; `--json` is the only spelling, and takes no value."""
    option = options_of(leaf_commands()[words]).get("--json")
    assert (option is None) == (words in WITHOUT_JSON)
    assert option is None or option.is_flag


@walk
def test_exit_statuses(words: str) -> None:
    """The help ends with them; 2 is for usage everywhere."""
    told = leaf_commands()[words].epilog or ""
    assert re.match(r"Exit status: .*\b2 (for|where) ", told)


def test_page_has_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """docs/reference/command-line.md is what scripts/command_table.py writes: run it after a change."""
    assert command_table.main(["--check", str(ROOT / "docs/reference/command-line.md")]) == 0, (
        capsys.readouterr().out
    )


def test_only_commands_that_are_there_go_without_json() -> None:
    """The list of exceptions has no leftovers."""
    assert set(WITHOUT_JSON) <= set(leaf_commands())


def test_no_command_is_without_arguments_by_accident(capsys: pytest.CaptureFixture[str]) -> None:
    """What is wanted and not given is a typing error, and the sentence names it."""
    wanting = {
        words: parameter
        for words, command in leaf_commands().items()
        for parameter in command.params
        if parameter.required
    }
    assert len(wanting) > 10
    for words, parameter in wanting.items():
        status, out, err = call(capsys, *words.split())
        assert (status, out) == (2, ""), words
        assert "missing" in err, (words, parameter.name)


def test_options_are_spelled_alike() -> None:
    """Small letters and hyphens; a name is a flag everywhere or takes a value everywhere."""
    kinds: dict[str, set[bool]] = {}
    for words, command in leaf_commands().items():
        for spelling, option in options_of(command).items():
            assert re.fullmatch(r"--[a-z][a-z0-9-]+|-[a-zA-Z]", spelling), (words, spelling)
            if not option.count:
                kinds.setdefault(spelling, set()).add(option.is_flag)
    unlike = {spelling for spelling, kind in kinds.items() if len(kind) > 1}
    assert unlike - SHORT_OF_OTHERS == FLAG_OR_VALUE


FLAG_OR_VALUE = {
    "--curve"  # FILEMQ's peers bring a key of their own; Flux brokers share those of the instance
}
"""Spellings that are a flag in one command and take a value in another, and why."""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_script(shell: str) -> None:
    """Each shell's own script, which asks the program."""
    variables = {**os.environ, "_SPECWIRE_COMPLETE": f"source_{shell}"}
    script = subprocess.run(
        PROGRAM, env=variables, capture_output=True, text=True, check=False, timeout=60
    ).stdout
    assert "_SPECWIRE_COMPLETE" in script and f"complete_{shell}" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_completion_in_bash(tmp_path: Path) -> None:
    """The script is taken by a shell, and its function fills in what the shell asks for."""
    program = tmp_path / "specwire"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m specwire.runtime.cli.main "$@"\n')
    program.chmod(0o755)
    story = """
        eval "$(_SPECWIRE_COMPLETE=source_bash specwire)"
        COMP_WORDS=(specwire flux overlay st) COMP_CWORD=3
        _specwire_completion specwire
        echo "${COMPREPLY[@]}"
    """
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", "--norc", "-c", story]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)
    assert ran.stdout == "status\n", ran.stderr


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("specwire doc", {"doctor"}),
        ("specwire filemq s", {"serve", "subscribe", "status"}),
        ("specwire flux overlay lo", {"lookup"}),
        ("specwire doctor --js", {"--json"}),
        ("specwire schema filemq --format t", {"tree"}),
        *((f"specwire {name} fi", {"filemq"}) for name in ("decode", "encode", "peer", "schema")),
    ],
)
def test_completion(line: str, offered: set[str]) -> None:
    """Commands below commands, options and choices, though modules are loaded late."""
    words = line.split()
    variables = {
        **os.environ,
        "_SPECWIRE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    told = subprocess.run(
        PROGRAM, env=variables, capture_output=True, text=True, check=False, timeout=60
    ).stdout
    assert set(told.split()) == offered
