"""`specwire run`: the whole job, from specifications to a report, and a check of its results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, messages, output, print_json
from specwire.runtime.cli.grammars import GrammarsOption, grammars_folder, is_shipped
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count

if TYPE_CHECKING:
    from specwire.runtime.cli.job.job import Result
    from specwire.runtime.spark.pipeline.summary import Summary

EXIT_STATUSES = "Exit status: 0; 1 when the job failed or its results differ; 2 for usage and bad input."

JOB_FAILED = 1


def command(
    out: Annotated[
        Path, typer.Option(help="Folder of the job; the output of an earlier run is replaced.")
    ] = Path("out"),
    grammars: GrammarsOption = None,
    master: Annotated[str, typer.Option(help="Spark master URL.")] = "local[*]",
    small_files: Annotated[int, typer.Option(help="Small files to distribute.", min=30)] = 300,
    large_octets: Annotated[int, typer.Option(help="Size of the large file in octets.", min=1)] = 8 << 20,
    json: Annotated[bool, typer.Option("--json", help="Print the counts and the summary as JSON.")] = False,
) -> None:
    """Run peers of four protocols, capture and decode their traffic, write a report, and check the results.

    The packages are generated first. FILEMQ distributes files, Flux brokers answer RPCs, NORFAB
    workers run jobs, and a ticker is compiled from its specification. All traffic is captured at
    the same time.
    """
    from specwire.runtime.cli.job.workspace import JobFolderError, check_folder

    try:
        check_folder(out)
    except JobFolderError as error:
        fail(str(error))
    _regenerate(grammars)
    from specwire.runtime.cli.job.job import run_job
    from specwire.runtime.cli.pipeline import show_progress
    from specwire.runtime.cli.signals import ending_at_sigterm
    from specwire.runtime.flux import FluxError

    try:
        with show_progress() as listener, ending_at_sigterm():
            result, summary = run_job(
                out, master=master, small_files=small_files, large_octets=large_octets, progress=listener
            )
    except (JobFolderError, TimeoutError, FluxError) as error:
        fail(str(error), status=JOB_FAILED)
    except OSError as error:
        fail(f"{error.filename or out}: {error.strerror or error}", status=JOB_FAILED)
    if json:
        import msgspec

        print_json({"job": msgspec.to_builtins(result), "summary": msgspec.to_builtins(summary)})
    else:
        _show(result, summary, out)
    if result.faults:
        raise typer.Exit(JOB_FAILED)


def _regenerate(grammars: Path | None) -> None:
    """Write the packages before any of them is imported, and print how many files changed."""
    from specwire.runtime.cli.generate import regenerate

    folder = grammars_folder(grammars)
    if is_shipped(folder):
        return  # The packages of shipped grammars are installed.
    target = folder.resolve().parent / "generated"
    changed = regenerate(folder, target)
    messages().print(
        f"generated packages from {folder}: {show_count(len(changed), 'file')} changed", soft_wrap=True
    )


def _show(result: Result, summary: Summary, out: Path) -> None:
    from rich.text import Text

    from specwire.runtime.cli.pipeline import show_summary

    console = output()
    show_summary(summary, out / "result")
    for line in _describe(result):
        console.print(line, soft_wrap=True)
    for fault in result.faults:
        console.print(Text(show(f"error: {fault}")), soft_wrap=True)
    if not result.faults:
        console.print("checks: every file, RPC, job and quote is in the tables as the peers counted it")


def _describe(result: Result) -> Iterator[str]:
    """Yield one line for each protocol."""
    from specwire.runtime.spark.report.text import size_text

    filemq, flux, norfab, ticker = (
        result.peers.filemq,
        result.peers.flux,
        result.peers.norfab,
        result.peers.ticker,
    )
    clients = filemq.peers[1:]
    content = size_text(sum(client.content_octets for client in clients))
    yield (
        f"FILEMQ: {show_count(result.files, 'file')} to {show_count(len(clients), 'client')} "
        f"in {filemq.seconds:.1f} s, {content} in {sum(client.chunks for client in clients):,} chunks"
    )
    yield (
        f"Flux: {flux.answered:,} RPCs answered, {flux.failed:,} refused because a root is not an integer, "
        f"{show_count(flux.published, 'event')} received {flux.received:,} times"
    )
    yield (
        f"NORFAB: {show_count(norfab.done, 'job')} done, {norfab.failed:,} failed because a device does not "
        f"exist, {norfab.results:,} results"
    )
    yield (
        f"Ticker, compiled during this run: {show_count(ticker.quotes, 'quote')} "
        f"of {show_count(len(ticker.last_prices), 'symbol')}"
    )
