"""`specwire pipeline declare`: initial files of a Spark Declarative Pipeline over a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from specwire.runtime.cli.console import fail, output, print_json
from specwire.runtime.cli.packages import Packages, use_packages

BAD_INPUT = 2


def declare(
    capture: Annotated[Path, typer.Option(help="Folder of capture segments.", show_default=False)],
    protocol: Annotated[
        str,
        typer.Option(
            help="Protocol of the messages. If its package does not come with specwire, "
            "set SPECWIRE_PACKAGES when the pipeline runs.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="New folder for the pipeline's files.", show_default=False)],
    packages: Packages = None,
    json: Annotated[bool, typer.Option("--json", help="Print the paths of the files as JSON.")] = False,
) -> None:
    """Write a Spark Declarative Pipeline for a capture: tables and a first roll-up, yours to change."""
    use_packages(packages, None)
    from specwire.runtime.spark.errors import InputError
    from specwire.runtime.spark.live.declare import declare as write_files

    try:
        written = write_files(capture, protocol, out)
    except InputError as error:
        fail(str(error), status=BAD_INPUT)
    if json:
        print_json({"files": [str(path) for path in written], "run": str(out / "run")})
        return
    for path in written:
        output().print(Text(str(path)), soft_wrap=True)
    output().print(Text(f"run it with {out / 'run'}"), soft_wrap=True)
