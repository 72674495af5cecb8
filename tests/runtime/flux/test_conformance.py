"""docs/flux-conformance.md is true: its tests exist, and no sentence of the specifications is missing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.flux.requirements import counts

ROOT = Path(__file__).parents[3]
SPECIFICATIONS = ROOT.parent / "shared" / "specs"
TABLES = (ROOT / "docs" / "flux-conformance.md").read_text(encoding="utf-8")

FLUX_V1 = "flux-v1-spec_3.rst"
LATER, EARLIER = "flux-cmb1-spec_3.md.txt", "flux-cmb1-spec_3.adoc.txt"


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


def test_every_named_test_exists() -> None:
    """Each is named by its file and its function."""
    named = set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", TABLES))
    assert len(named) > 50
    files = {name: names_in(Path(__file__).parent / name) for name, _ in named}
    assert sorted(f"{name}::{test}" for name, test in named if test not in files[name]) == []


@pytest.mark.parametrize("prefix", ["V", "C"])
def test_rows_are_numbered_and_name_a_test(prefix: str) -> None:
    """From 1, without a gap, and each with at least one test."""
    found = list(rows(prefix))
    assert [cells[0] for cells in found] == [f"{prefix}{n}" for n in range(1, len(found) + 1)]
    assert [cells[0] for cells in found if "::test_" not in cells[-2]] == []


@pytest.mark.parametrize("name", [FLUX_V1, LATER, EARLIER])
def test_no_sentence_is_missing(name: str) -> None:
    """Under each heading as many rows as sentences that ask for something."""
    if not (SPECIFICATIONS / name).exists():
        pytest.skip("no folder of specifications beside the repository")
    if name == FLUX_V1:
        tabled = Counter(cells[1] for cells in rows("V"))
    else:
        edition = "later" if name == LATER else "earlier"
        tabled = Counter(cells[2] for cells in rows("C") if cells[1] in ("both", edition))
    assert tabled == counts(SPECIFICATIONS / name)
