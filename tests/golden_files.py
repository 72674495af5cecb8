"""Golden tests: a folder is a case, with its input beside what is expected of it.

Setting ``SPECWIRE_BLESS=1`` writes what came out as what is expected; the change is reviewed like code.
"""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden")


def cases(subject: str) -> list[Path]:
    """Return the case folders of `subject` in the order of their names."""
    return sorted(path for path in (GOLDEN / subject).iterdir() if path.is_dir())


def blessing() -> bool:
    """Whether expected files are written instead of compared."""
    return os.environ.get("SPECWIRE_BLESS") == "1"


def check_golden(expected: Path, actual: str) -> None:
    """Compare `actual` with the file `expected`, or write that file when blessing."""
    if blessing():
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.write_text(actual, encoding="utf-8", newline="\n")
        return
    assert expected.exists(), f"{expected} is missing: set SPECWIRE_BLESS=1 to write it"
    assert actual == expected.read_text(encoding="utf-8")
