"""`make walk` types all four paths of the README, and nothing in them is left to the reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import walk
from tests.docs.page import blocks, commands
from tests.docs.session import PageError


def walked() -> set[int]:
    """Return the lines of the blocks that are typed."""
    titles = {walk.INSTALL, *(title for titles in walk.PATHS.values() for title in titles)}
    return {block.line for title in titles for block in walk.section(title)}


def test_every_path_is_walked() -> None:
    """The sections below *Four paths* are those that are typed, in their order."""
    text = walk.README.read_text(encoding="utf-8")
    _, _, paths = text.partition("## Four paths\n")
    paths, _, _ = paths.partition("\n## ")
    titles = [title for titles in walk.PATHS.values() for title in titles]
    assert re.findall(r"^### (.*)$", paths, re.MULTILINE) == list(dict.fromkeys(titles))


def test_every_block_of_a_path_is_typed() -> None:
    """Commands and programs alike; a heading inside a block ends no section."""
    by_walk = {block.line for block in blocks(walk.README) if block.note("by") == "tests/walk.py"}
    assert by_walk and by_walk <= walked()
    assert {block.language for block in blocks(walk.README) if block.line in walked()} == {
        "console",
        "python",
    }
    typed = [
        command.text
        for title in walk.PATHS["specification"]
        for block in walk.section(title)
        for command in commands(block)
    ]
    assert typed[0] == "pip install --find-links dist 'specwire[compile]'"
    assert typed[1].startswith("cat > ticker.md") and "# Ticker" in typed[1]


def test_a_section_that_is_gone_is_named() -> None:
    """A heading was changed, and the walk was not."""
    with pytest.raises(PageError, match="no section 'Nowhere'"):
        list(walk.section("Nowhere"))


def test_without_distributions_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is installed."""
    monkeypatch.setattr(walk, "DIST", tmp_path)
    assert walk.main([]) == 2
    assert capsys.readouterr().err == "walk: dist/ has no wheel: make dist\n"
