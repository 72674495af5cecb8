"""`specwire pipeline catalog`: the tables of an output folder in a SQL catalog."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, messages, print_json
from specwire.runtime.cli.pipeline_session import Master, Package, Remote, target_of

if TYPE_CHECKING:
    from specwire.runtime.spark.session.target import Target

JOB_FAILED = 1
BAD_INPUT = 2


def catalog(
    out: Annotated[
        Path, typer.Option(help="Folder that `pipeline run` or `watch` wrote.", show_default=False)
    ],
    database: Annotated[str, typer.Option(help="Database of the tables.", show_default=False)],
    master: Master = None,
    remote: Remote = None,
    package: Package = None,
    json: Annotated[bool, typer.Option("--json", help="Print the names and statements as JSON.")] = False,
) -> None:
    """Print the SQL that creates a table for each table of an output folder, with comments and partitions.

    With --master or --remote, or under spark-submit, it also runs the SQL in that session's catalog. Run it
    again to list new partitions and columns.
    """
    from specwire.runtime.spark.errors import InputError, PipelineError
    from specwire.runtime.spark.pipeline.catalog import catalog_tables, create_database
    from specwire.runtime.spark.pipeline.store import Store

    try:
        target = target_of(master, remote, package)
        tables = catalog_tables(Store(out), database)
        if master is not None or remote is not None or target.submitted:
            _register(out, database, target)
    except InputError as error:
        fail(str(error), status=BAD_INPUT)
    except PipelineError as error:
        fail(str(error), status=JOB_FAILED)
    statements = [create_database(database), *(text for table in tables for text in table.statements)]
    if json:
        print_json({"tables": [table.name for table in tables], "statements": statements})
    else:
        sys.stdout.write("".join(f"{statement};\n" for statement in statements))


def _register(out: Path, database: str, target: Target) -> None:
    from specwire.runtime.spark.pipeline.catalog import register_tables
    from specwire.runtime.spark.session.opening import open_session

    with open_session(target) as spark:
        names = register_tables(spark, out, database)
    messages().print(f"{len(names)} tables in the catalog", soft_wrap=True)
