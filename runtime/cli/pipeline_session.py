"""Options of every pipeline command that say where Spark runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from specwire.runtime.spark.session.target import Target

Master = Annotated[
    str | None,
    typer.Option(
        help="Spark master URL: local[*], spark://HOST:PORT, yarn, k8s://…  [default: local[*], or the "
        "master of spark-submit]",
        show_default=False,
        rich_help_panel="Spark",
    ),
]
Remote = Annotated[
    str | None,
    typer.Option(
        help="Spark Connect server, sc://HOST:PORT, instead of a master.",
        show_default=False,
        envvar="SPARK_REMOTE",
        rich_help_panel="Spark",
    ),
]
Package = Annotated[
    Path | None,
    typer.Option(
        help="Folder that `specwire pipeline package` wrote; it is sent to the executors.",
        show_default=False,
        rich_help_panel="Spark",
    ),
]


def target_of(master: str | None, remote: str | None, package: Path | None) -> Target:
    """Return where Spark must run; raises InputError if the options exclude each other."""
    from specwire.runtime.spark.session.target import Target

    return Target(master=master, remote=remote, package=package)
