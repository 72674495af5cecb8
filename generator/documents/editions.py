"""Compilation of a document without a protocol folder, for `specwire diff` and `specwire import`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from specwire.generator.abnf.sources import GRAMMAR
from specwire.generator.diagnostics import SpecError
from specwire.generator.documents.importing import Imported, import_document
from specwire.generator.documents.profile_text import without_errata
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import Compilation, compile_protocol


def compile_document(path: Path, *, folder: Path | None = None) -> Compilation:
    """Compile the document at `path`, with the profile in `folder` if one is given.

    Raises:
        SpecError: the document has no grammar, or one that does not compile; places are in the document.
        OSError: the document cannot be read.
    """
    protocol = folder.resolve().name if folder else protocol_of(path)
    shown = folder.as_posix() if folder else protocol
    imported = import_document(path, protocol, folder=folder, shown=shown)
    return compile_imported(imported, protocol, folder=folder, shown=shown)


def compile_imported(imported: Imported, protocol: str, *, folder: Path | None, shown: str) -> Compilation:
    """Compile the files of an import, in a temporary folder beside the protocols that they may extend.

    Outdated errata are omitted: the import reports them, and they change nothing.

    Raises:
        SpecError: the files do not compile; places are in the document and in the profile that
            would be written.
    """
    with TemporaryDirectory(prefix="specwire-") as scratch:
        for sibling in folder.resolve().parent.iterdir() if folder and folder.parent.is_dir() else ():
            if sibling.is_dir() and sibling.name != protocol:
                Path(scratch, sibling.name).symlink_to(sibling, target_is_directory=True)
        profile_text = without_errata(imported.profile_text, imported.stale)
        write_imported(replace(imported, profile_text=profile_text), Path(scratch, protocol))
        try:
            return compile_protocol(Path(scratch, protocol), shown=shown)
        except SpecError as error:
            places = imported.text.in_document(error.diagnostics, f"{shown}/{GRAMMAR}")
            raise SpecError(tuple(places)) from None


def protocol_of(path: Path) -> str:
    """Return a protocol name derived from the file name of its document."""
    name = re.sub(r"[^a-z0-9]+", "_", path.stem.lower()).strip("_")
    return name if re.match(r"[a-z]", name) else f"document_{name}".rstrip("_")
