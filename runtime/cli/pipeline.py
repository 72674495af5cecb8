"""`specwire pipeline run`: typed tables, a summary and a report from a capture folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from specwire.runtime.cli.console import fail, messages, new_table, output
from specwire.runtime.cli.packages import Grammars, Packages, use_packages
from specwire.runtime.cli.pipeline_catalog import catalog
from specwire.runtime.cli.pipeline_declare import declare
from specwire.runtime.cli.pipeline_package import package as write_package
from specwire.runtime.cli.pipeline_payloads import Payloads, read_payloads
from specwire.runtime.cli.pipeline_session import Master, Package, Remote, target_of
from specwire.runtime.cli.pipeline_watch import watch
from specwire.runtime.cli.signals import ending_at_sigterm
from specwire.runtime.log.text import show, show_json

if TYPE_CHECKING:
    from specwire.runtime.spark.decoding.tables import JsonAs
    from specwire.runtime.spark.pipeline.commit import Progress as Listener
    from specwire.runtime.spark.pipeline.summary import Summary
    from specwire.runtime.spark.report.tables import Table
    from specwire.runtime.spark.session.target import Target

EXIT_STATUSES = (
    "Exit status: 0; 1 when Spark or the disk failed; 2 for usage, and a capture that cannot be used."
)
EXIT_STATUSES_OF_RUN = (
    "Exit status: 0 when all is read; 1 when Spark or the disk failed; 2 for usage, and a capture that cannot be "
    "used; 3 when it is done, but some segments cannot be read, or some messages have no package."
)

app = typer.Typer(help="Decode captured traffic on Spark.", no_args_is_help=True)
app.command("package", epilog=EXIT_STATUSES)(write_package)
app.command("watch", epilog=EXIT_STATUSES)(watch)
app.command("catalog", epilog=EXIT_STATUSES)(catalog)
app.command("declare", epilog=EXIT_STATUSES)(declare)

JOB_FAILED = 1
BAD_INPUT = 2
INCOMPLETE = 3

SEGMENTS_SHOWN = 20
BOUNDLESS = 10_000
"""Columns; wider than any table of a few taps."""


@app.callback()
def pipeline() -> None:
    """Decode captured traffic on Spark."""


@app.command(epilog=EXIT_STATUSES_OF_RUN)
def run(
    capture: Annotated[
        Path,
        typer.Option(
            help="Folder of capture segments or of packet captures (pcap, pcapng), or one such file.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder of tables and answers; an earlier output is continued.", show_default=False
        ),
    ],
    protocol: Annotated[
        str | None,
        typer.Option(help="Read every message as this protocol, not as its tap stated.", show_default=False),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            help="Messages that do not decode are stored in _errors (PERMISSIVE), are only counted "
            "(DROPMALFORMED), or fail the run (FAILFAST)."
        ),
    ] = "PERMISSIVE",
    layers: Annotated[
        str, typer.Option(help="Layers to write: frames, typed and answers; typed is required.")
    ] = "frames,typed,answers",
    payloads: Payloads = None,
    json_as: Annotated[
        str | None,
        typer.Option(
            help="Type of the columns that hold the JSON of payloads: string, which every engine reads, or "
            "variant.  [default: the type in the folder, or string]",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        str, typer.Option(help="Partitions of frames and typed tables: day (date=…) or hour (date=…/hour=…).")
    ] = "day",
    backend: Annotated[str, typer.Option(help="Decoder: auto, jvm, arrow or python.")] = "auto",
    rewrite_all: Annotated[
        bool,
        typer.Option(
            "--rewrite-all",
            help="Add new columns to all earlier files of a table, not to about 256 MiB in each run.",
        ),
    ] = False,
    packages: Packages = None,
    grammars: Grammars = None,
    master: Master = None,
    remote: Remote = None,
    package: Package = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Work new segments of a capture into typed tables and answers, with a summary and an HTML report.

    A second run reads only what is new. One that fails leaves the folder as it was.
    """
    target = target_of(master, remote, package)
    use_packages(packages, grammars)
    from specwire.runtime.capture import CaptureError
    from specwire.runtime.spark.errors import InputError, PipelineError

    try:
        options = _Options(protocol, mode.upper(), layers, backend, payloads, json_as, partition, rewrite_all)
        with ending_at_sigterm():
            summary, complete = _run(capture, out, options, target)
    except (CaptureError, InputError) as error:
        fail(str(error), status=BAD_INPUT)
    except PipelineError as error:
        fail(str(error), status=JOB_FAILED)
    if json:
        sys.stdout.write(show_json(summary.to_json().decode()))
    else:
        show_summary(summary, out)
    if sentence := say_mixed(out):
        messages().print(Text(show(sentence)), soft_wrap=True)
    if not complete:
        if sentence := summary.unknown_sentence:
            messages().print(Text(show(sentence)), soft_wrap=True)
        raise typer.Exit(INCOMPLETE)


class _Options(NamedTuple):
    protocol: str | None
    mode: str
    layers: str
    backend: str
    payloads: list[Path] | None
    json_as: str | None
    partition: str
    rewrite_all: bool


def _run(capture: Path, out: Path, options: _Options, target: Target) -> tuple[Summary, bool]:
    """Return the summary of the folder, and whether this run processed all its input.

    The run is complete if every segment was readable and every message had a package. Messages that
    do not decode do not matter: protocols have faults.
    """
    from specwire.runtime.spark.pipeline.advance import rewrite_all
    from specwire.runtime.spark.pipeline.advance import run as run_pipeline
    from specwire.runtime.spark.pipeline.manifest import LAYERS, Asked
    from specwire.runtime.spark.pipeline.request import Request
    from specwire.runtime.spark.pipeline.store import Store
    from specwire.runtime.spark.report.page import draw_report

    named = {name.strip() for name in options.layers.split(",") if name.strip()}
    layers = (*(name for name in LAYERS if name in named), *sorted(named.difference(LAYERS)))
    payloads = read_payloads(options.payloads, options.protocol)
    asked = Asked(
        options.protocol,
        options.mode,
        layers,
        payloads=payloads,
        partition=options.partition,
        json_as=cast("JsonAs | None", options.json_as),
    )
    request = Request(capture, asked, options.backend)
    before = Store(out).summary()
    with show_progress() as listener:
        done = run_pipeline(request, out, target=target, progress=listener, draw=draw_report)
        if options.rewrite_all:
            rewrite_all(out, listener)
    if done is not None:
        unknown = done.unknown - (before.unknown if before is not None else 0)
        return done, not (done.set_aside or unknown)
    if before is None:
        fail(f"{out}: summary.json of the last run is missing; a run with new messages writes it again")
    messages().print(f"nothing new since run {before.run}", soft_wrap=True)
    return before, True


@contextmanager
def show_progress() -> Iterator[Listener]:
    """Yield a listener that shows steps on standard error: a bar on a terminal, lines elsewhere."""
    console = messages()
    if not console.is_terminal:
        shown = ""

        def print_step(step: str, done: int, total: int) -> None:
            nonlocal shown
            if step != shown:
                console.print(Text(show(step)))
                shown = step

        yield print_step
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def listen(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total)

        yield listen


def show_summary(summary: Summary, out: Path) -> None:
    """Print the summary, and the paths of the results."""
    from specwire.runtime.spark.report.tables import error_table, type_table
    from specwire.runtime.spark.report.text import size_text

    console = output()
    types = _rich_table(type_table(summary))
    # Measured on a very wide console, because a measured width never exceeds the console's.
    if console.measure(types, options=console.options.update(max_width=BOUNDLESS)).maximum > console.width:
        types = _rich_table(type_table(summary, by_tap=False))
    console.print(types)
    if (errors := error_table(summary)) is not None:
        console.print(_rich_table(errors))
    console.print(
        f"{summary.messages:,} messages, {size_text(summary.octets)}, {summary.undecoded:,} not decoded, "
        f"{summary.dropped:,} dropped while capturing; {summary.elapsed_s:.1f} s on Spark",
        soft_wrap=True,
    )
    for sentence in _odd_things(summary):
        console.print(Text(show(sentence)), soft_wrap=True)
    for layer in ("typed", "answers"):
        if any(path.startswith(f"{layer}/") for path in summary.tables):
            console.print(Text(f"{layer}: {out / layer}"), soft_wrap=True)
    console.print(Text(f"report: {out / 'report.html'}"), soft_wrap=True)


def say_mixed(out: Path) -> str:
    """Return a sentence about the tables with files that lack columns; empty if there are none."""
    from specwire.runtime.spark.pipeline.store import Store

    if not (found := Store(out).lacking()):
        return ""
    first, *others = found
    tables = f"{first} and {len(others)} other tables" if others else first
    lacking, files = (sum(numbers) for numbers in zip(*found.values(), strict=True))
    return (
        f"{tables}: {lacking:,} of {files:,} files lack columns of later files; "
        "later runs add them, or one with --rewrite-all"
    )


def _odd_things(summary: Summary) -> Iterator[str]:
    """Yield a sentence for each unusual property of the capture."""
    totals, segments = summary.totals, summary.segments
    if totals.repeated:
        yield f"{totals.repeated:,} messages were in several segments and are counted once"
    if totals.late:
        yield f"{totals.late:,} messages came after their answers and wait in the table late"
    if summary.missing:
        yield f"{summary.missing:,} messages are in no segment that could be read, though earlier and later ones are"
    if segments.quarantined:
        yield f"segments that cannot be read: {segments.quarantined:,}"
    yield from (f"  {item.reason}" for item in segments.told[:SEGMENTS_SHOWN])


def _rich_table(table: Table) -> RichTable:
    from specwire.runtime.spark.report.text import THIN_SPACE

    shown = new_table(title=table.title, title_justify="left", caption=table.note, caption_justify="left")
    for column in table.columns:
        shown.add_column(Text(column.name), justify="left" if column.word else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(show(cell, keep=THIN_SPACE)) for cell in row))
    return shown
