"""`specwire capture compact`: merge the segments of closed days."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from specwire.runtime.cli.capture_list import FolderArgument
from specwire.runtime.cli.capture_progress import show_progress
from specwire.runtime.cli.console import fail, output, print_json


def compact(
    folder: FolderArgument,
    grace: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Keep merged segments beside the new file for so long, for readers that are at work, such as 1h; "
            "a later call deletes them.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be merged, and do nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Merge each tap's segments of days that are over (UTC); pipelines read no message twice."""
    from specwire.runtime.capture.amounts import parse_age
    from specwire.runtime.capture.compact import compact as compact_folder

    try:
        grace_s = 0.0 if grace is None else parse_age(grace)
    except ValueError as error:
        fail(f"--grace: {error}")
    with show_progress() as progress:
        done = compact_folder(folder, now_s=time.time(), grace_s=grace_s, pretend=dry_run, progress=progress)
    if json:
        import msgspec

        print_json(msgspec.to_builtins(done, enc_hook=str))
        return
    from specwire.runtime.quantities import show_octets

    for merged in done.merged:
        after = "" if dry_run else f" to {show_octets(merged.octets)}"
        _print(
            f"{merged.day} {merged.tap}: {merged.segments:,} segments, {merged.messages:,} messages, "
            f"{show_octets(merged.octets_before)}{after}"
        )
    if not done.merged:
        _print("nothing to merge: no tap has several segments of a day that is over")
    if done.waiting:
        _print(f"{done.waiting:,} merged segments stay for readers; a later call deletes them")
    for bad in done.left:
        _print(f"not merged: {bad.reason}")


def _print(sentence: str) -> None:
    from specwire.runtime.log.text import show

    output().print(show(sentence), markup=False, soft_wrap=True)
