"""Every command that a page shows does what the page says; what is not run is counted, and says why."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

import pytest

from tests.docs.__main__ import can_unshare
from tests.docs.page import Block, Command, blocks, commands
from tests.docs.session import ROOT, first_words, is_set_up
from tests.house.repository import product_files

PAGES = [
    path
    for path in product_files()
    if path.suffix == ".md" and path.relative_to(ROOT).parts[0] in ("docs", "README.md", "CONTRIBUTING.md")
]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
MOST_LEFT_OUT = 12
"""Blocks that nothing runs. Before this number grows, look for a way to run the block."""


def consoles(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page that hold commands."""
    yield from (block for block in blocks(page) if block.language == "console")


RUN = [
    page for page in PAGES if any(not (block.note("by") or block.note("skip")) for block in consoles(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=[str(page.relative_to(ROOT)) for page in RUN])
def test_commands_do_what_the_page_says(page: Path) -> None:
    """One after the other, in a scratch folder and with a network of its own."""
    if not can_unshare():
        pytest.skip("pages name ports, and this user may not have a network of its own (unshare)")
    run = subprocess.run(
        [sys.executable, "-m", "tests.docs", str(page)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_what_another_test_runs_is_in_it(page: Path) -> None:
    """A test that is named exists, and names the page or the words that the commands begin with."""
    for block in blocks(page):
        by = block.note("by")
        if by is not None:
            test = (ROOT / by).read_text(encoding="utf-8")
            if page.name not in test:
                assert block.language in ("console", "sh"), f"{block.place}: {by} does not name the page"
                shown = commands(block) if block.language == "console" else [Command(block.text, ())]
                for command in shown:
                    words = takewhile(lambda word: not word.startswith("-"), first_words(command.text)[1:3])
                    assert all(word in test for word in words), command.text


def test_little_is_left_out() -> None:
    """The list of what nothing runs is short."""
    left_out = [
        f"{block.place}: {block.note('skip')}"
        for page in PAGES
        for block in blocks(page)
        if block.note("skip")
    ]
    assert len(left_out) <= MOST_LEFT_OUT, "\n".join(left_out)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_set_up_names_what_there_is(page: Path) -> None:
    """Targets of the Makefile, extras of the package, modules of the repository."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for block in consoles(page):
        for command in commands(block):
            words = first_words(command.text)
            if words[0] == "make":
                assert {word for word in words[1:] if "=" not in word} <= targets, command.text
            elif words[:2] == ["python", "-m"]:
                assert find_spec(words[2]) is not None, command.text
            elif is_set_up(words):
                named = re.findall(r"specwire\[([\w,-]+)\]", command.text)
                assert {extra for names in named for extra in names.split(",")} <= set(extras), command.text


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_are_in_console_blocks(page: Path) -> None:
    """An indented block, or one of another language, holds none: nothing would run it."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        text = text.replace(block.text, "")
    assert (
        re.findall(r"^ {4,}(?:\$ .*|(?:specwire|make|pip|python) (?:-|[a-z]).*)$", text, re.MULTILINE) == []
    )
