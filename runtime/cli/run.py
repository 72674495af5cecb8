"""`specwire run`: the whole job once, with what a person wants to see of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, messages, output, print_json
from specwire.runtime.cli.grammars import GrammarsOption, grammars_folder, is_shipped
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count

if TYPE_CHECKING:
    from specwire.runtime.job.job import Result
    from specwire.runtime.spark.pipeline.summary import Summary

EXIT_STATUSES = "Exit status: 0; 1 when the job failed or its results differ; 2 for usage and bad input."

JOB_FAILED = 1


def command(
    out: Annotated[Path, typer.Option(help="Folder to work in; an earlier run's is replaced.")] = Path("out"),
    grammars: GrammarsOption = None,
    master: Annotated[str, typer.Option(help="Spark master URL.")] = "local[*]",
    small_files: Annotated[int, typer.Option(help="Small files to distribute.", min=30)] = 300,
    large_octets: Annotated[int, typer.Option(help="Size of the large file in octets.", min=1)] = 64 << 20,
    json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Generate the packages, run FILEMQ peers, capture, decode on Spark, and check that all of it agrees."""
    from specwire.runtime.job.folder import JobFolderError, check_folder

    try:
        check_folder(out)
    except JobFolderError as error:
        fail(str(error))
    _regenerate(grammars)
    from specwire.runtime.cli.pipeline import show_progress
    from specwire.runtime.cli.signals import ending_at_sigterm
    from specwire.runtime.job.job import run_job

    try:
        with show_progress() as listener, ending_at_sigterm():
            result, summary = run_job(
                out, master=master, small_files=small_files, large_octets=large_octets, progress=listener
            )
    except (JobFolderError, TimeoutError) as error:
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
    """Write the packages before any of them is imported, and say what came of it."""
    from specwire.runtime.cli.generate import regenerate

    folder = grammars_folder(grammars)
    if is_shipped(folder):
        return  # Its packages are installed with it.
    target = folder.resolve().parent / "generated"
    changed = regenerate(folder, target)
    messages().print(
        f"generated packages from {folder}: {show_count(len(changed), 'file')} changed", soft_wrap=True
    )


def _show(result: Result, summary: Summary, out: Path) -> None:
    from rich.text import Text

    from specwire.runtime.cli.pipeline import show_summary
    from specwire.runtime.spark.report.text import size_text

    console = output()
    show_summary(summary, out / "result")
    clients = len(result.transfer.peers) - 1
    content = sum(peer.content_octets for peer in result.transfer.peers if peer.name != "server")
    chunks = sum(peer.chunks for peer in result.transfer.peers if peer.name != "server")
    console.print(
        f"{show_count(result.files, 'file')} to {show_count(clients, 'client')} in {result.transfer.seconds:.1f} s: "
        f"{size_text(content)} of content in {chunks:,} chunks",
        soft_wrap=True,
    )
    if not result.faults:
        console.print("all received files have the SHA-1 of the sent ones; errors: none")
    for fault in result.faults:
        console.print(Text(show(f"error: {fault}")), soft_wrap=True)
