"""Three editions of a small protocol as documents: a new message, then a field of another size."""

from __future__ import annotations

from pathlib import Path

from specwire.generator.documents.importing import import_document
from specwire.generator.documents.store import write_imported

OVEN = """\
# Oven Protocol

This is version 1 of OVEN.

```
oven    = *( C:heat S:heated / S:note )
heat    = %xBA %x01 degrees
degrees = 2OCTET        ; integer
heated  = %xBA %x02
note    = %xBA %x03 text
text    = *VCHAR
```
"""
OVEN_2 = (
    OVEN.replace("version 1", "version 2")
    .replace("/ S:note", "/ S:note / C:light")
    .replace("text    =", "light   = %xBA %x04\ntext    =")
)
"""The second edition has a message `light`, which old readers do not know."""
OVEN_3 = OVEN_2.replace("version 2", "version 3").replace("2OCTET", "4OCTET")
"""In the third edition the degrees have four octets."""


def write_oven(grammars: Path, document: str = OVEN) -> Path:
    """Import the document to a folder of grammars, as a user would; return the protocol's folder."""
    grammars.parent.mkdir(parents=True, exist_ok=True)
    path = grammars.parent / "oven.md"
    path.write_text(document, encoding="utf-8")
    folder = grammars / "oven"
    write_imported(import_document(path, "oven", folder=folder), folder)
    return folder
