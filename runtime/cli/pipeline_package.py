"""`specwire pipeline package`: an archive for the executors of a cluster, and how to submit it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from specwire.runtime.cli.console import messages, print_json, waiting

if TYPE_CHECKING:
    from specwire.runtime.spark.cluster.package import Package


def package(
    out: Annotated[
        Path,
        typer.Option(help="Folder to write; an earlier package in it is replaced.", show_default=False),
    ],
    master: Annotated[
        str, typer.Option(help="Spark master URL for the printed commands.")
    ] = "spark://HOST:7077",
    json: Annotated[bool, typer.Option("--json", help="Print a description of the archive as JSON.")] = False,
) -> None:
    """Write an archive of specwire and its dependencies for a cluster's executors, and print how to submit it."""
    from specwire.runtime.spark.cluster.building import write_package
    from specwire.runtime.spark.session.target import find_jar, jar_trouble

    messages().print(Text("packing specwire and its dependencies"))
    if reason := jar_trouble():
        messages().print(Text(f"without the decoders in Java: {reason}"), soft_wrap=True)
    with waiting("packing"):
        written = write_package(out, find_jar())
    if json:
        note = written.note
        print_json(
            {
                "archive": str(written.archive),
                "archive_octets": note.archive_octets,
                "archive_sha256": note.archive_sha256,
                "jar": str(written.jar) if written.jar else None,
                "python": note.python,
                "platform": note.platform,
                "distributions": note.distributions,
            }
        )
    else:
        sys.stdout.write(_describe(written, master))


def _describe(written: Package, master: str) -> str:
    from specwire.runtime.spark.cluster.package import artifact_lines, pipeline_line, submit_line
    from specwire.runtime.spark.report.text import size_text

    note = written.note
    jar = f"{written.jar}: the decoders in Java\n" if written.jar else ""
    return f"""\
{written.archive}: {len(note.distributions)} distributions, {size_text(note.archive_octets)}
{jar}Executors need Python {note.python} for {note.platform}.

With this program as the driver:
{pipeline_line(written, "--master", master)}

With spark-submit:
{submit_line(written, master)}

With a Spark Connect server:
{pipeline_line(written, "--remote", "sc://HOST:15002")}

In a Connect session of your own:
{artifact_lines(written)}
"""
