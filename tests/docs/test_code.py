"""Blocks of code are what they say they are: programs run, data can be read, quotations are quotations."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from specwire.generator.abnf.parser import parse_grammar
from specwire.generator.diagnostics import Diagnostics, Source
from tests.docs.page import Block, blocks
from tests.docs.session import ROOT
from tests.docs.test_commands import NAMES, PAGES


def parse_rules(text: str) -> None:
    """Read rules as grammars write them; raises SpecError where they are none."""
    found = Diagnostics()
    parse_grammar(Source("page", text), dialect="zeromq", diagnostics=found)
    found.raise_errors()


READERS: Mapping[str, Callable[[str], object]] = {
    "abnf": parse_rules,
    "toml": tomllib.loads,
    "json": json.loads,
    "yaml": yaml.safe_load,
}
"""What reads a block of a language as a whole."""
NOT_CODE = ("text", "")
"""Output, sketches."""
ELSEWHERE = ("console", "python")
"""Languages that another test here looks at."""
BY_NOTE = ("py", "sql", "sh")
"""Languages that need a note that says which test runs the block, or why none."""


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_blocks_are_a_program(page: Path) -> None:
    """One after another they run, and what they assert holds."""
    own = [
        block
        for block in blocks(page)
        if block.language == "python" and not block.title and not block.note("by")
    ]
    if own:
        # Blank lines in front, so that a fault is told with its line on the page.
        program = ""
        for block in own:
            program += "\n" * (block.line - program.count("\n")) + block.text
        run = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
        )
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_block_is_looked_at(page: Path) -> None:
    """A block of data can be read; one that nothing here can read or run says what does."""
    for block in blocks(page):
        if block.title:
            assert_quoted(block)
        elif block.language in READERS:
            READERS[block.language](block.text)
        elif block.language in BY_NOTE:
            assert block.note("by") or block.note("skip"), block.place
        else:
            assert block.language in (*NOT_CODE, *ELSEWHERE), block.place


def assert_quoted(block: Block) -> None:
    """Hold a block against the file that its title names: it has these lines, and ``…`` is what is left out."""
    lines = [line.strip() for line in (ROOT / block.title).read_text(encoding="utf-8").splitlines()]
    at = 0
    for wanted in (line.strip() for line in block.text.splitlines()):
        if wanted in ("", "…", "# …", "// …"):
            continue
        assert wanted in lines[at:], f"{block.place}: not in {block.title}, or not there: {wanted}"
        at = lines.index(wanted, at) + 1
