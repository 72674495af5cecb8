"""Checks of docs/reference/flux-conformance.md: its tests exist, and it covers each requirement.

The specifications are not part of the repository. `REQUIREMENTS` has the number of sentences under
each heading with SHALL, MUST, SHOULD, REQUIRED or RECOMMENDED, except for the one that defines
these words.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TABLES = (ROOT / "docs" / "reference" / "flux-conformance.md").read_text(encoding="utf-8")

CMB1 = {
    "Rank Assignment": 7,
    "Overlay Networks": 1,
    "Service Addressing": 1,
    "Default Request Routing": 6,
    "Rank Request Routing": 5,
    "Event Routing": 1,
}
"""Requirements in both editions of CMB1, which is Flux RFC 3 before Flux v1."""
REQUIREMENTS = {
    "Flux v1, RFC 3 (spec_3.rst)": {
        "Common Message Format": 4,
        "Optional Message Parts": 4,
        "Required Message Parts": 3,
        "Request Message Type": 7,
        "Request Routing": 12,
        "Response Message Type": 5,
        "Event Message Type": 4,
        "Control message type": 5,
        "Payload Conventions": 5,
        "Message Framing and Security": 12,
    },
    "CMB1, the earlier edition (spec_3.adoc)": CMB1 | {"General Message Format": 4},
    "CMB1, the later edition (spec_3.md)": CMB1
    | {"Suppression of Responses": 1, "Payload Conventions": 5, "General Message Format": 2},
}


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


@pytest.mark.parametrize("text", REQUIREMENTS)
def test_no_sentence_is_missing(text: str) -> None:
    """Each heading has as many rows as requirements."""
    if text.startswith("Flux v1"):
        tabled = Counter(cells[1] for cells in rows("V"))
    else:
        edition = "later" if "later" in text else "earlier"
        tabled = Counter(cells[2] for cells in rows("C") if cells[1] in ("both", edition))
    assert tabled == REQUIREMENTS[text]
