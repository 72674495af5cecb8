"""What no file of the project may contain: the place it was written at, or where its packages came from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.repository import ROOT, product_files

# Written so that no pattern matches itself.
FORBIDDEN = {
    "a folder outside the repository": r"[.][.]/shared\b",
    "a folder beside the repository": r"\bROOT[.]parent\b|\bparents\[\d\][.]parent\b",
    "a path of one machine": r"(?<![\w.])/(?:work|root|home|Users|mnt|tmp/lab)/\w",
    "the host of a registry": r"\b(?:pypi[.]org|pythonhosted[.]org|deb[.]debian[.]org|registry[.]npmjs)",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_contains(what: str) -> None:
    """The project works from any clone, with whatever index the user's tools are set to."""
    pattern = re.compile(FORBIDDEN[what])
    assert [place for path in product_files() for place in places(path, pattern)] == []


def places(path: Path, pattern: re.Pattern[str]) -> list[str]:
    """Return the lines of a text file that `pattern` is found in; none for a file that is not text."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    return [f"{path.relative_to(ROOT)}:{n}" for n, line in enumerate(lines, 1) if pattern.search(line)]
