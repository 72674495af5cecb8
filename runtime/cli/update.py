"""`specwire update`: bring a protocol and its package to a new edition, and say who must act."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specwire.runtime.cli.console import fail, messages, print_json, waiting
from specwire.runtime.cli.diff import change_as_json, print_comparison, print_markdown
from specwire.runtime.cli.grammars import protocol_folders
from specwire.runtime.cli.import_ import check_document, diagnostic_as_json, print_findings
from specwire.runtime.quantities import show_count

if TYPE_CHECKING:
    from specwire.generator.update import Update

EXIT_STATUSES = (
    "Exit status: 0 where nobody must act; 1 where a peer or the owner of a table must; "
    "2 for usage and a document or grammar with an error, and then nothing is written."
)
MUST_ACT = 1
"""Exit status if a peer, or the owner of a table, must act."""


def command(
    document: Annotated[Path, typer.Argument(help="The document of the new edition, as for import.")],
    protocol: Annotated[
        str | None,
        typer.Option(
            help="Name of the protocol's folder.",
            show_default="the one whose profile names the document, or has its title",
        ),
    ] = None,
    grammars: Annotated[
        Path | None,
        typer.Option(help="Folder with the protocol's folder.", show_default="./grammars"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the packages.", show_default="generated beside the grammars"),
    ] = None,
    edition: Annotated[
        str | None, typer.Option(help="Name of the edition.", show_default="what the document states")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; show what would change.")
    ] = False,
    no_comments: Annotated[
        bool,
        typer.Option("--no-comments", help="Omit the document's comments, except those that define layouts."),
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print only the section for a changelog.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was found and changed as JSON.")] = False,
) -> None:
    """Update grammar, profile and package to a new edition, and report what changed and who must act.

    The profile is kept as in `specwire import`. Errata that correct nothing any more are removed.
    """
    from specwire.generator.update import prepare_update

    if json and markdown:
        fail("--json and --markdown exclude each other")
    check_document(document)
    folder = _folder(document, protocol, grammars)
    packages = out or folder.resolve().parent.parent / "generated"
    if packages.exists() and not packages.is_dir():
        fail(f"{packages} is a file: name the folder of the packages with --out")
    with waiting("compiling both editions"):
        update = prepare_update(document, folder, packages, comments=not no_comments, edition=edition)
    package = packages / update.change.new.name
    if out is None and not package.is_dir():
        fail(f"there is no package {package}: name the folder of the packages with --out")
    changed = update.pending() if dry_run else update.write()
    if json:
        print_json(_as_json(update, changed, dry_run=dry_run))
    else:
        _print(update, whole=not markdown)
        messages().print(_outcome(update, changed, dry_run=dry_run), soft_wrap=True, markup=False)
    if update.must_act:
        raise typer.Exit(MUST_ACT)


def _folder(document: Path, protocol: str | None, grammars: Path | None) -> Path:
    """Return the folder of the protocol: the named one, or the only one to which the document belongs."""
    from specwire.generator.update import find_protocols

    place = grammars or Path("grammars")
    if not place.is_dir():
        fail(
            f"{place} is not a folder of grammars"
            if grammars
            else "there is no folder grammars here; name one with --grammars"
        )
    if protocol is not None:
        (folder,) = protocol_folders(place, [protocol])
        return folder
    found = find_protocols(document, place)
    if not found:
        fail(f"no protocol in {place} names {document.name} as its source: name the protocol with --protocol")
    if len(found) > 1:
        names = ", ".join(folder.name for folder in found)
        fail(f"{document.name} belongs to several protocols ({names}): name one with --protocol")
    return found[0]


def _print(update: Update, *, whole: bool) -> None:
    """Print the section for a changelog; with `whole`, the findings and tables of `specwire diff` above it."""
    print_findings(update.imported, rules=whole)
    if whole:
        for change in update.changes:
            print_comparison(change.comparison)
        sys.stdout.write("\n")
    print_markdown(_sections(update))


def _sections(update: Update) -> list[str]:
    """Return the sections for a changelog; a protocol that extends the updated one has one if it changes."""
    from specwire.generator.compare.markdown import write_section

    told = [update.change, *(change for change in update.changes[1:] if change.comparison.changes)]
    return [write_section(change) for change in told]


def _outcome(update: Update, changed: list[Path], *, dry_run: bool) -> str:
    was, now = update.change.old.edition, update.change.new.edition
    told = now if was == now else f"{was} is now {now}"
    errata = len(update.imported.stale)
    if errata:
        told += f"; {errata} outdated {'erratum' if errata == 1 else 'errata'} removed"
    verb = "would change; nothing written" if dry_run else "written"
    return f"{update.folder}: {told}; {show_count(len(changed), 'file')} {verb}"


def _as_json(update: Update, changed: list[Path], *, dry_run: bool) -> dict[str, Any]:
    imported = update.imported
    return {
        "folder": update.folder.as_posix(),
        "packages": update.packages.as_posix(),
        "dry_run": dry_run,
        "changed": [path.as_posix() for path in changed],
        "must_act": update.must_act,
        "protocols": [{"protocol": change.new.name, **change_as_json(change)} for change in update.changes],
        "changelog": "\n".join(_sections(update)),
        "rules": [{"rule": one.rule, "was": one.was, "now": one.now} for one in imported.changes],
        "diagnostics": [diagnostic_as_json(diagnostic) for diagnostic in imported.diagnostics],
    }
