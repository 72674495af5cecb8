"""Three editions of a small protocol as documents.

The second edition has a message `light`, which old readers do not know. In the third edition the
degrees have four octets instead of two.
"""

from __future__ import annotations

from pathlib import Path

from specwire.generator.documents.importing import import_document
from specwire.generator.documents.store import write_imported

DOCUMENTS = Path(__file__).parents[1] / "data" / "oven"
OVEN, OVEN_2, OVEN_3 = ((DOCUMENTS / f"oven-{n}.md").read_text(encoding="utf-8") for n in (1, 2, 3))


def write_oven(grammars: Path, document: str = OVEN) -> Path:
    """Import the document to a folder of grammars, as a user would; return the protocol's folder."""
    grammars.parent.mkdir(parents=True, exist_ok=True)
    path = grammars.parent / "oven.md"
    path.write_text(document, encoding="utf-8")
    folder = grammars / "oven"
    write_imported(import_document(path, "oven", folder=folder), folder)
    return folder
