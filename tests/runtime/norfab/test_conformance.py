"""Checks of docs/reference/norfab-conformance.md: its tests exist, and it covers each requirement.

The specification is not part of the repository. `REQUIREMENTS` has the numbers that were counted in
it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TABLES = (ROOT / "docs" / "reference" / "norfab-conformance.md").read_text(encoding="utf-8")

REQUIREMENTS = {
    "Overall Topology": 4,
    "ROUTER Addressing": 2,
    "Status Frames": 5,
    "NFP/Client": 3,
    "Job Persistence": 2,
    "Opening and Closing a Connection": 10,
    "POST and RESPONSE Processing": 2,
    "Keepaliving": 5,
    "Broker Management Interface (BMMI)": 2,
    "Worker Management Interface (WMMI)": 2,
    "Broker Simple Inventory Datastore (SID)": 1,
}
"""Number of sentences with SHALL, MUST, SHOULD, REQUIRED, RECOMMENDED or MAY, by heading of the
NORFAB Protocol. The section Language, which defines these words, and fenced blocks do not count."""


def rows(prefix: str) -> Iterator[list[str]]:
    """Yield the cells of every row whose number begins with `prefix`."""
    for line in TABLES.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(rf"{prefix}\d+", cells[0]):
            yield cells


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
    """Each heading has as many rows as requirements."""
    assert Counter(cells[1] for cells in rows("N")) == REQUIREMENTS
