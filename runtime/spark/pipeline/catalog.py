"""Tables of an output folder as SQL statements, and in a session's catalog.

The input is an output folder. The output is one external table for each of its tables:
``flux_request`` for ``typed/flux/Request``, ``frames``, and each answer under its name. An external
table stores no rows: the catalog stores columns, comments, partitions and the folder's path.
Dropping the table deletes no file.

A catalog does not detect new partition folders or new columns. A refresh therefore drops the table,
creates it with the columns of the newest file, and lists its partitions (``MSCK REPAIR TABLE``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from specwire.runtime.spark.decoding.tables import column_lines, quote_name, quote_text
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline.store import FRAMES, TYPED, Store, partition_fields, stored_schema
from specwire.runtime.spark.session.executors import local_path
from specwire.runtime.spark.session.java import describe_failure


class CatalogTable(NamedTuple):
    """One table of an output folder in a catalog.

    Attributes:
        name: its quoted name, with its database.
        folder: absolute path of its files.
        statements: SQL that drops an earlier table of this name, creates the table and lists its
            partitions.
    """

    name: str
    folder: Path
    statements: tuple[str, ...]


def catalog_tables(store: Store, database: str) -> list[CatalogTable]:
    """Return the catalog tables for an output folder.

    Raises InputError if there are none, or if two would have the same name.
    """
    if store.manifest.run == 0:
        raise InputError(f"{store.out}: the folder has no tables; write them with `specwire pipeline run`")
    tables = list(_tables(store, database))
    folders: dict[str, Path] = {}
    for table in tables:
        other = folders.setdefault(table.name, table.folder)
        if other != table.folder:
            raise InputError(
                f"{store.out}: the tables {other.relative_to(store.out.resolve())} and "
                f"{table.folder.relative_to(store.out.resolve())} would both be {table.name}"
            )
    return tables


def create_database(database: str) -> str:
    """Return the statement that creates the database if it does not exist."""
    return f"CREATE DATABASE IF NOT EXISTS {quote_name(database)}"


def register_tables(spark: SparkSession, out: Path, database: str) -> list[str]:
    """Create or refresh the tables of a folder in a session's catalog; return their quoted names.

    Raises InputError if the folder has no tables, or if the catalog refuses a table or has a
    different one of the same name.
    """
    tables = catalog_tables(Store(out), database)
    try:
        spark.sql(create_database(database))
        for table in tables:
            _check_replaceable(spark, table)
        for statement in (statement for table in tables for statement in table.statements):
            spark.sql(statement)
    except PySparkException as error:
        raise InputError(f"{database}: the catalog refuses the tables: {describe_failure(error)}") from error
    return [table.name for table in tables]


def _tables(store: Store, database: str) -> Iterator[CatalogTable]:
    for table in store.tables():
        newest = store.newest(table)
        if newest is None:
            continue
        root = store.out / table
        partitions = partition_fields(newest.relative_to(root))
        name = f"{quote_name(database)}.{quote_name(_table_name(table))}"
        yield CatalogTable(name, root.resolve(), _statements(name, root.resolve(), newest, partitions))


def _table_name(table: str) -> str:
    """Return the catalog's name for a table, given by its path in the folder."""
    parts = table.split("/")
    if parts[0] == TYPED:
        return f"{parts[1]}_{parts[2].strip('_')}".lower()
    return FRAMES if table == FRAMES else parts[1]


def _statements(name: str, root: Path, newest: Path, partitions: list[StructField]) -> tuple[str, ...]:
    fields = [*stored_schema(newest), *partitions]
    # Parquet tables have no NOT NULL in a catalog.
    columns = StructType([StructField(f.name, f.dataType, True, f.metadata) for f in fields])
    lines = ",\n  ".join(column_lines(columns))
    by = (
        f"\nPARTITIONED BY ({', '.join(quote_name(field.name) for field in partitions)})"
        if partitions
        else ""
    )
    created = (
        f"CREATE TABLE {name} (\n  {lines}\n)\nUSING parquet{by}\nLOCATION {quote_text(local_path(root))}"
    )
    listed = (f"MSCK REPAIR TABLE {name}",) if partitions else ()
    return (f"DROP TABLE IF EXISTS {name}", created, *listed)


def _check_replaceable(spark: SparkSession, table: CatalogTable) -> None:
    """Raise InputError if the catalog has a table of this name for another folder."""
    if not spark.catalog.tableExists(table.name):
        return
    details = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {table.name}").collect()}
    location = str(details.get("Location", "")).removeprefix("file:").rstrip("/")
    if details.get("Type") != "EXTERNAL" or Path(f"/{location.lstrip('/')}") != table.folder:
        raise InputError(
            f"{table.name}: the catalog has another table of this name; name another database with --database"
        )
