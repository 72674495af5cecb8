"""Compilation of a document without a protocol folder, for `specwire diff` and `specwire import`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from specwire.generator.abnf.sources import GRAMMAR
from specwire.generator.diagnostics import SpecError
from specwire.generator.documents.importing import Imported, import_document
from specwire.generator.documents.payload_files import FOLDER
from specwire.generator.documents.profile_text import without_errata
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import Compilation, compile_protocol
from specwire.generator.profile.reader import PROFILE


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
    with imported_beside(imported, protocol, folder) as place:
        return compile_in(place, imported, shown=shown)


@contextmanager
def imported_beside(imported: Imported, protocol: str, folder: Path | None) -> Iterator[Path]:
    """Write an import to a temporary copy of `folder`, beside links to its neighbours; yield the copy."""
    with TemporaryDirectory(prefix="specwire-") as scratch:
        place = Path(scratch, protocol)
        place.mkdir()
        for sibling in folder.resolve().parent.iterdir() if folder and folder.parent.is_dir() else ():
            if sibling.is_dir() and sibling.name != protocol:
                Path(scratch, sibling.name).symlink_to(sibling, target_is_directory=True)
        for file in folder.resolve().iterdir() if folder and folder.is_dir() else ():
            if file.name == FOLDER and file.is_dir():
                shutil.copytree(file, place / FOLDER)  # the import may replace schemas in it
            elif file.name != PROFILE and (file.name != GRAMMAR or not imported.grammar_text):
                (place / file.name).symlink_to(file)
        write_imported(without_stale_errata(imported), place)
        yield place


def compile_in(place: Path, imported: Imported, *, shown: str) -> Compilation:
    """Compile the folder that `imported_beside` yielded, or a neighbour of it.

    Raises:
        SpecError: the files do not compile; places are in the document.
    """
    try:
        return compile_protocol(place, shown=shown)
    except SpecError as error:
        raise SpecError(tuple(imported.text.in_document(error.diagnostics, f"{shown}/{GRAMMAR}"))) from None


def without_stale_errata(imported: Imported) -> Imported:
    """Return the import without the errata that correct nothing in the new edition."""
    profile_text = without_errata(imported.profile_text, imported.stale)
    return replace(imported, profile_text=profile_text)


def protocol_of(path: Path) -> str:
    """Return a protocol name derived from the file name of its document."""
    name = re.sub(r"[^a-z0-9]+", "_", path.stem.lower()).strip("_")
    return name if re.match(r"[a-z]", name) else f"document_{name}".rstrip("_")
