"""Which grammars a command works on: the option ``--grammars``, and the protocols in that folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import specwire
from specwire.runtime.cli.console import fail, meant

if TYPE_CHECKING:
    from specwire.generator.diagnostics import Diagnostic
    from specwire.generator.pipeline import Compilation

GrammarsOption = Annotated[
    Path | None,
    typer.Option("--grammars", help="Folder with a folder for each protocol.", show_default="./grammars, else those that specwire brings"),
]  # fmt: skip


PartialOption = Annotated[
    bool,
    typer.Option(
        "--partial", help="Omit messages with faults instead of refusing the protocol; warn of each."
    ),
]

SHIPPED = Path(specwire.__file__).parent / "grammars"
"""The grammars that come with specwire: in a checkout a link to the folder at its top."""


def grammars_folder(given: Path | None) -> Path:
    """Return the folder of grammars: the one given, ``grammars`` here, or the one that specwire brings."""
    if given is not None:
        if not given.is_dir():
            fail(f"{given} is not a folder of grammars")
        return given
    here = Path("grammars")
    for folder in (here, SHIPPED.resolve()):
        if folder.is_dir():
            return folder
    fail("there is no folder grammars here; name one with --grammars")


def is_shipped(grammars: Path) -> bool:
    """Whether these are the grammars of an installed specwire, beside which nothing may be written."""
    return SHIPPED.is_dir() and not SHIPPED.is_symlink() and grammars.resolve() == SHIPPED.resolve()


def protocol_folders(grammars: Path, names: Sequence[str]) -> list[Path]:
    """Return the folders of the protocols in `names`, of all where it is empty, in the order of their names."""
    folders = sorted(path for path in grammars.iterdir() if path.is_dir())
    known = {path.name: path for path in folders if _is_protocol(path)}
    if not known and _is_protocol(grammars):
        fail(f"{grammars} is the folder of one protocol; name the folder that it is in")
    if not known and not names:
        fail(f"{grammars} holds no protocol: each has a folder there, with grammar.abnf and profile.toml")
    for name in names:
        if name not in known:
            fail(
                f"{grammars} has no protocol {name!r}; it has {', '.join(known) or 'none'}{meant(name, known)}"
            )
    return [known[name] for name in (dict.fromkeys(names) or known)]


def profile_path(given: Path) -> Path:
    """Return a profile: the file, or that of the protocol of this name if there is no such file."""
    if given.exists() or given.name != str(given) or given.suffix:
        return given
    (folder,) = protocol_folders(grammars_folder(None), [given.name])
    return folder / "profile.toml"


def compile_all(folders: Sequence[Path], *, partial: bool = False) -> list[Compilation]:
    """Compile every folder; the faults of all of them are raised together.

    With `partial`, messages with faults are omitted.

    Raises:
        SpecError: at least one has a fault.
    """
    from specwire.generator.diagnostics import SpecError
    from specwire.generator.pipeline import compile_protocol

    compiled: list[Compilation] = []
    faults: dict[Diagnostic, None] = {}
    for folder in folders:
        try:
            compiled.append(compile_protocol(folder, shown=folder.as_posix(), partial=partial))
        except SpecError as error:
            faults |= dict.fromkeys(error.diagnostics)
    if faults:
        raise SpecError(tuple(faults))
    return compiled


def _is_protocol(folder: Path) -> bool:
    return (folder / "grammar.abnf").exists() or (folder / "profile.toml").exists()
