"""`specwire generate`: write the packages of protocols, or check that they are what would be written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from specwire.runtime.cli.console import messages, print_json
from specwire.runtime.cli.grammars import GrammarsOption, compile_all, grammars_folder, protocol_folders

DRIFT = 1
"""Exit status of ``--check`` where files differ."""


def command(
    names: Annotated[list[str] | None, typer.Argument(help="Protocols; all where none is named.")] = None,
    grammars: GrammarsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the packages.", show_default="generated beside the grammars"),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail with a diff.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what changed as JSON.")] = False,
) -> None:
    """Write a package for each protocol; with --check, only say what would change."""
    folder = grammars_folder(grammars)
    target = out or folder.resolve().parent / "generated"
    changed = regenerate(folder, names or [], target, check=check)
    if json:
        print_json({"folder": str(target), "checked": check, "changed": changed})
    elif check and changed:
        messages().print(
            f"{len(changed)} generated files are not what the grammars give: run `make generate`"
        )
    else:
        verb = "are current" if check else f"written, {len(changed)} changed"
        messages().print(f"packages in {target} {verb}", soft_wrap=True)
    if check and changed:
        raise typer.Exit(DRIFT)


def regenerate(grammars: Path, names: list[str], target: Path, *, check: bool = False) -> list[str]:
    """Write the packages of `names` (all where empty) to `target`; return the paths that changed.

    With `check` nothing is written and the differences go to standard output as a diff. The modules
    that all packages share are written where `target` holds specwire's own packages.

    Raises:
        SpecError: a grammar has a fault; nothing is written.
    """
    from specwire.generator.emit.write import differences, replace_files
    from specwire.generator.packages import is_generated, package_files, support_files

    folders = protocol_folders(grammars, names)
    files = package_files([compiled.protocol for compiled in compile_all(folders)])
    whole = not names
    if whole:
        files = support_files() | files
    kept = {path.parts[0] for path in map(Path, files)}

    def owned(path: Path) -> bool:
        """Files that this run may remove: of the packages it writes, or all where it writes all."""
        return (whole or path.relative_to(target).parts[0] in kept) and is_generated(path)

    if check:
        # In specwire's own folder nothing may stand that no grammar gives; elsewhere others' files may.
        own = whole and target == grammars.resolve().parent / "generated"
        found = differences(target, files, owned=(lambda path: True) if own else owned)
        sys.stdout.writelines(found)
        return [text.splitlines()[0].removeprefix("--- ") for text in found]
    return [str(path) for path in replace_files(target, files, owned=owned)]
