"""`specwire pipeline run`: from a capture folder to typed tables, a summary and a report."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

from specwire.runtime.cli.console import fail, messages, output

if TYPE_CHECKING:
    from specwire.runtime.spark.pipeline.run import Progress as Listener
    from specwire.runtime.spark.pipeline.summary import Summary
    from specwire.runtime.spark.report.page import Table

app = typer.Typer(help="Decode captured traffic on Spark.", no_args_is_help=True)

JOB_FAILED = 1
BAD_INPUT = 2


@app.callback()
def pipeline() -> None:
    """Decode captured traffic on Spark."""


@app.command()
def run(
    capture: Annotated[Path, typer.Option(help="Folder of capture segments.", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="Folder to write; an earlier output is replaced.", show_default=False)
    ],
    protocol: Annotated[
        str | None,
        typer.Option(help="Read every message as this protocol, not as its tap stated.", show_default=False),
    ] = None,
    master: Annotated[str, typer.Option(help="Spark master URL.")] = "local[*]",
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Decode a capture into typed Parquet tables, with a summary and an HTML report."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        fail("the pipeline needs Spark: install specwire[spark]", status=JOB_FAILED)
    from specwire.runtime.capture import CaptureError
    from specwire.runtime.spark.errors import InputError, PipelineError

    try:
        summary = _run(capture, out, protocol, master)
    except (CaptureError, InputError) as error:
        fail(str(error), status=BAD_INPUT)
    except PipelineError as error:
        fail(str(error), status=JOB_FAILED)
    if json:
        sys.stdout.write(summary.to_json().decode())
    else:
        show_summary(summary, out)


def _run(capture: Path, out: Path, protocol: str | None, master: str) -> Summary:
    from specwire.runtime.spark.pipeline.run import plan, run_plan

    request = plan(capture, out, protocol=protocol)
    with show_progress() as listener:
        listener("starting Spark", 0, 1)
        return run_plan(request, master=master, progress=listener)


@contextmanager
def show_progress() -> Iterator[Listener]:
    """Give a listener that shows the steps on standard error: a bar on a terminal, lines elsewhere."""
    console = messages()
    if not console.is_terminal:
        shown = ""

        def print_step(step: str, done: int, total: int) -> None:
            nonlocal shown
            if step != shown:
                console.print(Text(step))
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
    """Print what was found and where it is."""
    from specwire.runtime.spark.report.figures import size_text
    from specwire.runtime.spark.report.page import error_table, type_table

    console = output()
    console.print(_rich_table(type_table(summary)))
    if summary.errors:
        console.print(_rich_table(error_table(summary)))
    console.print(
        f"{summary.messages:,} messages, {size_text(summary.octets)}, {summary.undecoded:,} not decoded, "
        f"{summary.dropped:,} dropped while capturing; {summary.elapsed_s:.1f} s on Spark",
        soft_wrap=True,
    )
    for protocol in sorted({tap.protocol for tap in summary.taps if tap.messages}):
        console.print(Text(f"tables: {out / protocol / 'tables'}"), soft_wrap=True)
    console.print(Text(f"report: {out / 'report.html'}"), soft_wrap=True)


def _rich_table(table: Table) -> RichTable:
    shown = RichTable(title=table.title, title_justify="left", caption=table.note, caption_justify="left")
    for at, name in enumerate(table.head):
        shown.add_column(Text(name), justify="left" if at < table.labels else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    return shown
