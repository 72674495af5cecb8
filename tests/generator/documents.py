"""Documents for the import tests: a writer of small ones, and the folder of whole ones."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = ROOT / "tests" / "data" / "documents"


def write_document(folder: Path, text: str, name: str = "document.txt") -> Path:
    """Write a document of the test's own and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path
