"""docs/norfab-conformance.md is true: its tests exist, and no sentence of the specification is missing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SPECIFICATION = ROOT.parent / "shared" / "specs" / "norfab-nfp.md"
TABLES = (ROOT / "docs" / "norfab-conformance.md").read_text(encoding="utf-8")

WORDS = re.compile(r"\b(?:SHALL|MUST|SHOULD|REQUIRED|RECOMMENDED|MAY)\b")
SENTENCE = re.compile(r"(?<=[.:])\s+(?=[A-Z\u201c])")
ABOUT_WORDS = "Language"
"""The section that introduces the words themselves."""


def rows(prefix: str) -> Iterator[list[str]]:
    """Yield the cells of every row whose number begins with `prefix`."""
    for line in TABLES.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(rf"{prefix}\d+", cells[0]):
            yield cells


def asked() -> Iterator[str]:
    """Yield the heading of every sentence that asks for something."""
    heading, in_block = "", False
    for line in SPECIFICATION.read_text(encoding="utf-8").splitlines():
        in_block ^= line.startswith("```")
        if in_block:
            continue
        if line.startswith("#"):
            heading = line.strip("# ")
        elif heading != ABOUT_WORDS:
            yield from (heading for sentence in SENTENCE.split(line) if WORDS.search(sentence))


def names_in(path: Path) -> set[str]:
    """Return the names of the functions in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def path_of(name: str) -> Path:
    """Return where a file of tests is that the tables name."""
    tests = ROOT / "tests"
    return tests / name if name.startswith("integration/") else tests / "runtime" / name


def test_every_named_test_exists() -> None:
    """Each is named by its file and its function."""
    named = set(re.findall(r"`((?:integration|norfab\w*)/test_\w+\.py)::(test_\w+)`", TABLES))
    assert len(named) > 80
    files = {name: names_in(path_of(name)) for name, _ in named}
    assert sorted(f"{name}::{test}" for name, test in named if test not in files[name]) == []


@pytest.mark.parametrize(("prefix", "count"), [("C", 12), ("S", 10), ("N", 38), ("R", 29), ("F", 14)])
def test_rows_are_numbered_and_name_a_test(prefix: str, count: int) -> None:
    """From 1, without a gap, and each with at least one test."""
    found = list(rows(prefix))
    assert [cells[0] for cells in found] == [f"{prefix}{n}" for n in range(1, count + 1)]
    assert [cells[0] for cells in found if "::test_" not in " ".join(cells[-2:])] == []


def test_no_sentence_is_missing() -> None:
    """Under each heading as many rows as sentences that ask for something."""
    if not SPECIFICATION.exists():
        pytest.skip("no folder of specifications beside the repository")
    assert Counter(cells[1] for cells in rows("N")) == Counter(asked())
