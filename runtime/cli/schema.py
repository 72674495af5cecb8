"""`specwire schema`: a protocol's tables and messages in the schema languages of Spark, pyarrow, Avro and JSON."""

from __future__ import annotations

import json as json_text
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, output, print_json
from specwire.runtime.cli.grammars import profile_path
from specwire.runtime.cli.packages import (
    Grammars,
    Packages,
    class_of_message,
    complete_protocol,
    use_packages,
)
from specwire.runtime.packages import load_package

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class Format(StrEnum):
    """How a schema is printed."""

    DDL = "ddl"
    TREE = "tree"
    ARROW = "arrow"
    JSON_SCHEMA = "json-schema"
    AVRO = "avro"


def command(
    protocol: Annotated[
        str, typer.Argument(help="Name of the protocol, such as flux.", autocompletion=complete_protocol)
    ],
    format: Annotated[
        Format,
        typer.Option(
            help="ddl: columns for SQL; tree: indented; arrow: pyarrow's; "
            "json-schema: of what decode --json prints; avro: of decoded rows."
        ),
    ] = Format.TREE,
    message: Annotated[
        str | None, typer.Option(help="One message class only: its columns.", show_default=False)
    ] = None,
    packages: Packages = None,
    grammars: Grammars = None,
    payloads: Annotated[
        Path | None,
        typer.Option(
            metavar="PROFILE",
            help="Profile or protocol whose [[payload]] tables become columns of --format arrow.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the schemas as Spark's JSON.")] = False,
) -> None:
    """Print the table of every message: its fields, a boolean for each flag, JSON as text, numbers as times."""
    use_packages(packages, grammars, [protocol])
    package = load_package(protocol)
    if message is not None:
        message = class_of_message(package, message)
    if payloads is not None and (format is not Format.ARROW or json or message):
        fail("--payloads adds columns to all rows: it goes with --format arrow, without --message and --json")
    if format in (Format.JSON_SCHEMA, Format.AVRO):
        _print_elsewhere(package, message, format)
        return
    if format is Format.ARROW and not json:
        _print_arrow(_with_payloads(package, payloads) if payloads else package.columns.SCHEMA, message)
        return
    schemas: dict[str, StructType] = dict(package.schema.TABLES)
    chosen = {message: schemas[message]} if message else schemas
    if json:
        print_json({name: json_text.loads(schema.json()) for name, schema in chosen.items()})
    elif format is Format.DDL:
        _print_ddl(chosen, alone=message is not None)
    else:
        for name, schema in chosen.items():
            output().print(
                f"{name}\n{schema.treeString().removeprefix('root').strip(chr(10))}".rstrip(),
                markup=False,
                soft_wrap=True,
            )


def _print_ddl(schemas: dict[str, StructType], *, alone: bool) -> None:
    """Print columns alone for one message, a table for each otherwise."""
    from specwire.runtime.spark.decoding.tables import column_lines

    for name, schema in schemas.items():
        columns = ",\n".join(f"  {line}" for line in column_lines(schema))
        text = columns if alone else f"CREATE TABLE `{name}` (\n{columns}\n);"
        output().print(text, markup=False, soft_wrap=True)


def _print_elsewhere(package: ModuleType, message: str | None, format: Format) -> None:
    """Print a schema that is JSON in any case."""
    from specwire.runtime.schemas.avro import avro_schema
    from specwire.runtime.schemas.json_schema import json_schema

    print_json((avro_schema if format is Format.AVRO else json_schema)(package, message))


def _with_payloads(package: ModuleType, profile: Path) -> object:
    """Return the schema of decoded rows with the columns of payloads that have schemas of their own."""
    from specwire.runtime.schemas.payloads import PayloadError, load_payloads

    schema = package.columns.SCHEMA
    try:
        for payload in load_payloads(profile_path(profile), package):
            schema = schema.append(payload.field)
    except PayloadError as error:
        fail(str(error))
    return schema


def _print_arrow(schema: object, message: str | None) -> None:
    text = str(schema.field(message).type if message else schema)  # type: ignore[attr-defined]
    output().print(text, markup=False, soft_wrap=True)
