"""`specwire capture list`: what a capture folder holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.capture_progress import show_progress
from specwire.runtime.cli.console import new_table, output, print_json, wide_output
from specwire.runtime.quantities import show_count

if TYPE_CHECKING:
    from specwire.runtime.capture.listing import Listing

FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder with the segments.", show_default=False)
]


def list_(
    folder: FolderArgument,
    segments: Annotated[bool, typer.Option("--segments", help="A line for each file.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print taps, files and bad files as JSON.")] = False,
) -> None:
    """Say what a capture folder holds: taps, messages, times, what was dropped, and files that are damaged."""
    from specwire.runtime.capture.listing import list_capture

    with show_progress() as progress:
        listing = list_capture(folder, progress)
    if json:
        import msgspec

        print_json(msgspec.to_builtins(listing, enc_hook=str))
        return
    if segments:
        _print_segments(listing)
    else:
        _print_taps(listing)
    _print_rest(listing)


def _print_taps(listing: Listing) -> None:
    head = ("tap", "protocol", "messages", "segments", "size", "dropped", "payload", "from", "until")
    rows = [
        (
            tap.tap or "(not stated)",
            tap.protocol,
            f"{tap.messages:,}",
            f"{tap.segments:,}" + (f" of {tap.stands_for:,}" if tap.stands_for != tap.segments else ""),
            _size(tap.octets),
            f"{tap.dropped:,}",
            tap.payload,
            time_text(tap.first_us),
            time_text(tap.last_us),
        )
        for tap in listing.taps
    ]
    _print_table(head, rows, (2, 3, 4, 5))
    for tap in listing.taps:
        if tap.missing:
            _print(f"{tap.tap}: {tap.missing:,} segments between its first and its last are not here")


def _print_segments(listing: Listing) -> None:
    head = ("segment", "protocol", "messages", "size", "dropped", "from", "until")
    rows = [
        (
            line.name,
            line.protocol,
            f"{line.messages:,}",
            _size(line.octets),
            f"{line.dropped:,}",
            time_text(line.first_us),
            time_text(line.last_us),
        )
        for line in listing.segments
    ]
    _print_table(head, rows, (2, 3, 4))


def _print_rest(listing: Listing) -> None:
    messages, files = show_count(listing.messages, "message"), show_count(len(listing.segments), "file")
    _print(f"{messages} in {files}, {_size(listing.octets)}")
    if listing.replaced:
        _print(f"{listing.replaced:,} segments are passed over: a compacted one holds them")
    if listing.writing:
        _print(f"{listing.writing:,} files are being written, or were left by writers that died")
    for bad in listing.bad:
        _print(f"cannot be read: {bad.reason}")


def time_text(micros: int | None) -> str:
    """Return a time in UTC to the second, and a stroke for none."""
    return "-" if micros is None else f"{datetime.fromtimestamp(micros // 10**6, UTC):%Y-%m-%d %H:%M:%S}Z"


def _size(octets: int) -> str:
    from specwire.runtime.quantities import show_octets

    return show_octets(octets)


def _print(sentence: str) -> None:
    from specwire.runtime.log.text import show

    output().print(show(sentence), markup=False, soft_wrap=True)


def _print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], numbers: tuple[int, ...]) -> None:
    from rich import box
    from rich.text import Text

    from specwire.runtime.log.text import show

    table = new_table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(head):
        table.add_column(name, justify="right" if at in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(show(cell)) for cell in row))
    wide_output().print(table)
