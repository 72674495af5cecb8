"""The documents tell the truth: paths they name exist, commands they show parse. `tests/docs` runs what they show."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

import site_api
from specwire.runtime.cli.main import COMMANDS, load_command
from tests.docs.page import blocks
from tests.docs.page import commands as commands_of
from tests.docs.session import first_words
from tests.house.repository import ROOT, product_files

DOCUMENTS = [path for path in product_files() if path.suffix == ".md"]
TOPS = {path.relative_to(ROOT).parts[0] for path in product_files()}
MADE = ("out/", "build/", "dist/", ".venv")
"""What set-up and the commands write: documents may name it, a clone does not hold it."""


def names(documents: list[Path]) -> list[str]:
    """Return the documents' paths, as ids of parametrized tests."""
    return [str(path.relative_to(ROOT)) for path in documents]


def commands(document: Path) -> Iterator[list[str]]:
    """Yield the words of every command that a document shows after a prompt, up to a pipe or a comment."""
    for block in blocks(document):
        if block.language == "console":
            yield from (first_words(command.text) for command in commands_of(block))


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_named_paths_exist(document: Path) -> None:
    """A path in backquotes that begins with one of the top folders, or a link, leads to something."""
    text = document.read_text(encoding="utf-8")
    paths = {ROOT / name for name in re.findall(r"`([\w.-]+/[\w./-]*)`", text) if is_ours(name)}
    links = {document.parent / name for name in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)}
    assert [str(path) for path in sorted(paths | links) if not path.exists() and not is_built(path)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_shown_commands_parse(document: Path) -> None:
    """Each `make` names a target; each `specwire` names a command and options that this command has."""
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for words in commands(document):
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= set(targets), words
        elif words[0] == "specwire":
            assert_parses(words[1:])


def test_readme_opens_with_the_two_commands() -> None:
    """Whoever reads ten lines can run it."""
    opening = next(block for block in blocks(ROOT / "README.md") if block.language == "console")
    assert opening.line <= 10
    assert [first_words(command.text) for command in commands_of(opening)] == [
        ["make", "run"],
        ["make", "test"],
    ]


def test_readme_names_what_ci_runs() -> None:
    """CI, the README and the Makefile run the tests by one command."""
    assert "`make test`" in (ROOT / "README.md").read_text()
    assert "make --no-print-directory check" in (ROOT / ".ci/run").read_text()
    check = re.search(r"^check: (.*?) ##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert check is not None
    assert check[1].split() == ["setup", "drift", "lint", "types", "test", "fuzz-short"]


def assert_parses(words: list[str]) -> None:
    """Check the words after `specwire` against the command's own parameters; arguments may be anything."""
    if words[0].startswith("--"):
        assert words == ["--help"] or words == ["--version"]
        return
    assert words[0] in COMMANDS, words
    command: Any = load_command(words[0])
    rest = words[1:]
    while hasattr(command, "commands") and rest != ["--help"]:
        assert rest and rest[0] in command.commands, words
        command, rest = command.commands[rest[0]], rest[1:]
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    ours = takewhile(lambda word: word != "--", rest)  # what follows is another command's
    options = {word.partition("=")[0] for word in ours if word.startswith("-")}
    assert options <= known | {"--help"}, words


def is_built(path: Path) -> bool:
    """Whether a link leads to a page that the site makes of a grammar or of docstrings."""
    place = Path(os.path.normpath(path))
    if place.parent == ROOT / "docs/reference/api":
        return place.stem in {page.name for page in site_api.pages()}
    grammar = ROOT / "grammars" / place.stem / "profile.toml"
    return place.parent == ROOT / "docs/protocols" and (place.stem == "index" or grammar.exists())


def is_ours(name: str) -> bool:
    """Whether a path in a document is meant to be one of the repository."""
    return name.partition("/")[0] in TOPS and not name.startswith(MADE)
