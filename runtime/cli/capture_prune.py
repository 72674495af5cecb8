"""`specwire capture prune`: delete what of a capture is too old, or too much."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from specwire.runtime.cli.capture_list import FolderArgument
from specwire.runtime.cli.console import fail, output, print_json


def prune(
    folder: FolderArgument,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="Delete segments that are older, such as 12h or 7d.", show_default=False
        ),
    ] = None,
    most: Annotated[
        str | None,
        typer.Option(
            "--max",
            metavar="SIZE",
            help="Delete the oldest segments when all are larger, such as 500M or 20G.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deleted, and do nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was deleted as JSON.")] = False,
) -> None:
    """Delete segments by age and size, the oldest first, and what writers that died have left behind."""
    from specwire.runtime.capture.retention import Pruned, Retention
    from specwire.runtime.capture.retention import prune as prune_folder

    if keep is None and most is None:
        fail("say what is to go: --keep AGE, --max SIZE or both")
    retention = Retention(*_read(keep, most))
    if not folder.is_dir():
        fail(f"{folder}: there is no such capture folder")
    done: Pruned = prune_folder(folder, retention, time.time(), pretend=dry_run)
    if json:
        import msgspec

        print_json(msgspec.to_builtins(done, enc_hook=str))
        return
    from specwire.runtime.quantities import show_count, show_octets

    word = "would be deleted" if dry_run else "deleted"
    left = f" and {show_count(len(done.left_over), 'file')} of writers that died" if done.left_over else ""
    output().print(
        f"{show_count(len(done.segments), 'segment')}{left} {word}, {show_octets(done.octets)}; "
        f"{show_count(done.kept, 'segment')} stay, {show_octets(done.kept_octets)}",
        markup=False,
        soft_wrap=True,
    )


def _read(keep: str | None, most: str | None) -> tuple[float | None, int | None]:
    from specwire.runtime.capture.amounts import parse_age, parse_size

    option = "--keep"
    try:
        keep_s = None if keep is None else parse_age(keep)
        option = "--max"
        return keep_s, None if most is None else parse_size(most)
    except ValueError as error:
        fail(f"{option}: {error}")
