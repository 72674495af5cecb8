"""Which grammars a command works on: the option ``--grammars``, and the protocols in that folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import specwire
from specwire.runtime.cli.console import fail

if TYPE_CHECKING:
    from specwire.generator.diagnostics import Diagnostic
    from specwire.generator.pipeline import Compilation

GrammarsOption = Annotated[
    Path | None,
    typer.Option("--grammars", help="Folder with a folder for each protocol.", show_default="./grammars, else specwire's own"),
]  # fmt: skip


def grammars_folder(given: Path | None) -> Path:
    """Return the folder of grammars: the one given, ``grammars`` here, or the one beside specwire's source."""
    if given is not None:
        if not given.is_dir():
            fail(f"{given} is not a folder of grammars")
        return given
    here = Path("grammars")
    beside = Path(specwire.__file__).resolve().parents[2] / "grammars"
    for folder in (here, beside):
        if folder.is_dir():
            return folder
    fail("there is no folder grammars here; name one with --grammars")


def protocol_folders(grammars: Path, names: Sequence[str]) -> list[Path]:
    """Return the folders of the protocols in `names`, of all where it is empty, in the order of their names."""
    known = {path.name: path for path in sorted(grammars.iterdir()) if (path / "profile.toml").exists()}
    known |= {path.name: path for path in sorted(grammars.iterdir()) if (path / "grammar.abnf").exists()}
    for name in names:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            fail(f"{grammars} has no protocol {name!r}; it has {listed}")
    return [known[name] for name in (dict.fromkeys(names) or sorted(known))]


def compile_all(folders: Sequence[Path]) -> list[Compilation]:
    """Compile every folder; the faults of all of them are raised together.

    Raises:
        SpecError: at least one has a fault.
    """
    from specwire.generator.diagnostics import SpecError
    from specwire.generator.pipeline import compile_protocol

    compiled: list[Compilation] = []
    faults: list[Diagnostic] = []
    for folder in folders:
        try:
            compiled.append(compile_protocol(folder, shown=folder.as_posix()))
        except SpecError as error:
            faults.extend(found for found in error.diagnostics if found not in faults)
    if faults:
        raise SpecError(tuple(faults))
    return compiled
