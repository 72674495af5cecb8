"""`specwire generate`: write the packages of protocols, or check that they are what would be written."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, messages, print_json, waiting
from specwire.runtime.cli.grammars import (
    GrammarsOption,
    PartialOption,
    compile_all,
    grammars_folder,
    is_shipped,
    protocol_folders,
)
from specwire.runtime.log.text import show

if TYPE_CHECKING:
    from specwire.generator.diagnostics import Diagnostic
    from specwire.generator.pipeline import Compilation

EXIT_STATUSES = "Exit status: 0; 1 with --check where files differ; 2 for usage and a faulty grammar."

OMITTED = "W423"
"""Code of the warning about a message that ``--partial`` omits."""
DRIFT = 1
"""Exit status of ``--check`` where files differ."""


def command(
    names: Annotated[list[str] | None, typer.Argument(help="Protocols; all where none is named.")] = None,
    grammars: GrammarsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the packages.", show_default="generated beside the grammars"),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="Write only these, and what they import: codec,schema.",
            show_default="the whole package",
            metavar="NAME,...",
        ),
    ] = None,
    templates: Annotated[
        Path | None,
        typer.Option(help="Folder whose templates replace those of the same name.", show_default=False),
    ] = None,
    partial: PartialOption = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail with a diff.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what changed as JSON.")] = False,
) -> None:
    """Write a package for each protocol; with --check, only say what would change."""
    from specwire.generator.diagnostics import render_all

    folder = grammars_folder(grammars)
    if out is None and is_shipped(folder):
        fail("these grammars are specwire's own; name a folder for the packages with --out")
    if templates is not None and not templates.is_dir():
        fail(f"{templates} is not a folder of templates")
    if out is not None and out.exists() and not out.is_dir():
        fail(f"{out} is a file: name a folder for the packages with --out")
    beside = folder.resolve().parent / "generated"
    selection = Selection(split_names(target), templates, partial)
    goal = out or beside
    # What is beside the grammars belongs to them: a package that no grammar gives any more is removed.
    whole = not names and goal.resolve() == beside and selection.targets is None
    with waiting("generating packages"):
        plan = make_plan(folder, names or [], goal, selection, whole=whole)
        diffs = plan.drift(strict=whole) if check else []
        changed = [first_path(diff) for diff in diffs] if check else plan.write()
    if plan.omitted:
        sys.stderr.write(show(f"{render_all(plan.omitted)}\n", keep="\n\t"))
    if json:
        print_json({"folder": str(goal), "checked": check, "changed": changed, "diffs": diffs})
    else:
        sys.stdout.writelines(diffs)
        _tell(goal, len(changed), check=check)
    if diffs:
        raise typer.Exit(DRIFT)


def _tell(goal: Path, changed: int, *, check: bool) -> None:
    if check and changed:
        files = "1 file is" if changed == 1 else f"{changed:,} files are"
        told = f"{files} not what the grammars give: run the same command without --check"
    else:
        told = f"packages in {goal} " + ("are current" if check else f"written, {changed} changed")
    messages().print(told, soft_wrap=True, markup=False)


def first_path(diff: str) -> str:
    """Return the file that a diff is about."""
    return diff.splitlines()[0].removeprefix("--- ").removesuffix(": no grammar generates this file")


def split_names(given: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the names of a list that is separated by commas, or given in several options; None for none."""
    if not given:
        return None
    names = [name.strip() for text in given for name in text.split(",")]
    if not all(names):
        fail("an empty name in --target; write names separated by commas, such as --target codec,schema")
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Selection:
    """What to write of each protocol: the targets (None for the default ones), with whose templates, and
    whether all of it."""

    targets: Sequence[str] | None = None
    templates: Path | None = None
    partial: bool = False
    """Whether messages with faults are omitted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The files of the packages, and which of those in the folder no such run writes any more.

    `omitted` are the warnings about messages that the packages do not have.
    """

    folder: Path
    files: Mapping[str, str]
    links: Mapping[str, str]
    """Links to the support library by name; none but in specwire's own folder."""
    stale: Callable[[Path], bool]
    omitted: Sequence[Diagnostic] = ()

    def write(self) -> list[str]:
        """Write what is not there yet, remove what is stale; return the paths that changed."""
        from specwire.generator.emit.files import replace_files
        from specwire.generator.packages import is_generated, replace_links

        changed = replace_links(self.folder, self.links)
        changed += replace_files(self.folder, self.files, owned=is_generated, stale=self.stale)
        return [str(path) for path in changed]

    def drift(self, *, strict: bool) -> list[str]:
        """Return what would change, a diff for each file; `strict`: modules that specwire never wrote, too."""
        from specwire.generator.emit.files import differences
        from specwire.generator.packages import wrong_links

        def stale(path: Path) -> bool:
            return (strict and path.suffix == ".py") or self.stale(path)

        links = [
            f"--- {path}\n+++ {path} ({f'link to {target}' if target else 'no link'})\n"
            for path, target in wrong_links(self.folder, self.links).items()
        ]
        return links + differences(self.folder, self.files, stale=stale)


def make_plan(
    grammars: Path, names: Sequence[str], folder: Path, selection: Selection, *, whole: bool
) -> Plan:
    """Return what the packages of `names` (all where empty) in `folder` shall be.

    With `whole` the folder holds what `grammars` gives and nothing else that specwire wrote. Only
    specwire's own folder has links to the support library; all other packages import it from the
    installed specwire.

    Raises:
        SpecError: a grammar or a template has a fault.
        TargetError: there is no such target, or a plug-in is at fault.
    """
    from specwire.generator.packages import package_files, support_links, written_for
    from specwire.generator.targets import choose_targets

    targets = choose_targets(selection.targets)
    compilations = compile_named(protocol_folders(grammars, names), partial=selection.partial)
    selected = selection.targets is not None
    files = package_files(
        [compilation.protocol for compilation in compilations.values()],
        targets,
        templates=selection.templates,
        present={name: targets_of(folder / name) for name in compilations if selected},
        compilations=compilations.values(),
        overview=not names,
    )
    support = grammars.resolve().parent / "generator" / "support"
    links = support_links(support) if whole and support.is_dir() else {}
    for name in compilations:
        if links.keys() & {name, f"{name}.py", f"{name}.pyx"}:
            fail(f"{name!r} is a module that all packages share: give the protocol another name")
    # Those that were asked for, and the default ones where all of them are written.
    tidied = {target.name for target in targets if not target.emitter.default}
    tidied |= set() if selected else {""}

    def stale(path: Path) -> bool:
        inside = whole or path.relative_to(folder).parts[0] in compilations
        return inside and written_for(path) in tidied

    warnings = [found for compilation in compilations.values() for found in compilation.warnings]
    return Plan(folder, files, links, stale, [found for found in warnings if found.code == OMITTED])


def compile_named(folders: Sequence[Path], *, partial: bool = False) -> dict[str, Compilation]:
    """Compile every folder; return the compilations by the names of the protocols, which are all different.

    Raises:
        SpecError: at least one has a fault.
    """
    found: dict[str, Compilation] = {}
    places: dict[str, Path] = {}
    for compilation, place in zip(compile_all(folders, partial=partial), folders, strict=True):
        name = compilation.protocol.name
        if name in found:
            fail(f"{places[name]} and {place} are both called {name!r}: name one otherwise")
        if keyword.iskeyword(name):
            fail(f"{place}: no Python module can be called {name!r}: give the protocol another name")
        found[name], places[name] = compilation, place
    return found


def regenerate(grammars: Path, folder: Path) -> list[str]:
    """Make `folder` hold the packages of all grammars and none besides; return the paths that changed.

    Raises:
        SpecError: a grammar has a fault; nothing is written.
    """
    return make_plan(grammars, [], folder, Selection(), whole=True).write()


def targets_of(package: Path) -> set[str]:
    """Return the targets that a package on disk has modules of."""
    from specwire.generator.packages import is_generated

    return {path.stem for path in package.glob("*.py") if is_generated(path)}
