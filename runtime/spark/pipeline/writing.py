"""Writes tables to the staging folder of a run.

Each partition of a table gets one file, or several of about `FILE_OCTETS`: without limits Spark writes one file for
each task and date, and runs every few seconds would leave many small files.

Writing a table with Spark has a fixed cost: a plan, a job, a folder for each task. A run over some hundred messages
writes thirty tables. So tables with few rows are collected in Arrow and written by this process, with the same files
and schema as Spark writes. A table that never had a row gets one file without rows, because readers expect the table.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from specwire.runtime.spark.answers.step import OPEN
from specwire.runtime.spark.pipeline.commit import Area, Run
from specwire.runtime.spark.pipeline.store import DATE, HOUR, ROW_SCHEMA
from specwire.runtime.spark.reading.capture import local_path
from specwire.runtime.spark.session.settings import changed_settings

TASKS_AT_ONCE = 3

Result = TypeVar("Result")

FILE_OCTETS = 128 << 20
"""Octets of frames that go to one file, before compression."""

AREA = "_area"
"""A column for the time of writing; answer tables have no names with a leading underscore."""

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.ansi.enabled": "true",
    # One physical layout for a Variant: shredding depends on the rows of each file.
    "spark.sql.variant.inferShreddingSchema": "false",
    # So many partitions are written side by side; only beyond them rows are sorted, which copies each of them.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # Decoded rows are kept while they are counted and written, in memory as far as a task's rows fit, else on the disk.
    # Java's serialization, which puts them there, holds a hundred batches of rows at a time.
    "spark.sql.files.maxPartitionBytes": str(16 << 20),
    "spark.sql.inMemoryColumnarStorage.batchSize": "1000",
}
"""What the tables depend on, whatever session the caller has."""

BRIEF = {
    # Planned once, not anew at each shuffle; read as it is, not compiled to Java; shuffled to two tasks.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}
"""What a query over few rows is planned with: its own preparation is most of what it costs."""

OPTIONS = {
    "compression": "zstd",
    # Or a hundred rows are gathered before their size is looked at, and after small ones ten thousand; a row may have
    # a hundred megabytes. The same numbers hold for pages and for groups of rows.
    "parquet.page.size.row.check.min": "4",
    "parquet.page.size.row.check.max": "16",
    # What a task holds in memory until it is written.
    "parquet.block.size": str(32 << 20),
}


def table_settings(spark: SparkSession, *, few: bool) -> AbstractContextManager[None]:
    """Set what the tables depend on, for the time of a block, and what suits a run over few rows."""
    return changed_settings(spark, {**SETTINGS, **BRIEF} if few else SETTINGS)


def write_table(
    run: Run,
    frame: DataFrame,
    table: str,
    *,
    area: Area = Area.ADDED,
    partitions: Iterable[str] = (),
    octets: int = 0,
) -> None:
    """Stage the rows of a table with one job; `octets` is about how large they are, 0 for small."""
    files = frame.coalesce(1 + octets // FILE_OCTETS)
    folder = local_path(run.folder(area, table))
    files.write.mode("append").options(**OPTIONS).partitionBy(*partitions).parquet(folder)


def write_both(run: Run, rows: DataFrame, table: str, *, partitions: Iterable[str], octets: int) -> None:
    """Stage the rows of a table that stay and those that are still open, with one pass; `OPEN` tells which is which."""
    marked = F.when(F.col(OPEN), str(Area.OPEN)).otherwise(str(Area.ADDED))
    folder = run.staging / "both" / table
    files = rows.withColumn(AREA, marked).drop(OPEN).coalesce(1 + octets // FILE_OCTETS)
    files.write.mode("append").options(**OPTIONS).partitionBy(AREA, *partitions).parquet(local_path(folder))
    for area in Area:
        for part in sorted(folder.glob(f"{AREA}={area}/*=*")):
            target = run.folder(area, table) / part.name
            target.parent.mkdir(parents=True, exist_ok=True)
            part.rename(target)


def copy_open(run: Run, table: str, target: str, place: str) -> None:
    """Stage the open rows that were staged for a table as those of another; only what lies in its folder `place`."""
    source, folder = (run.folder(Area.OPEN, name) / place for name in (table, target))
    if source.exists():
        shutil.copytree(source, folder)


def run_all(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run tasks that use Spark, `TASKS_AT_ONCE` at a time, and return their results in the same order.

    Most of the time of a small query is planning, which uses one core. Raises the error of the first task that
    fails; tasks that have not started are then cancelled.
    """
    pool = ThreadPoolExecutor(TASKS_AT_ONCE, "specwire-spark")
    try:
        futures = [pool.submit(task) for task in tasks]
        for done in as_completed(futures):
            done.result()
    except BaseException:
        # Running tasks are not awaited: an interrupted run ends its session, which ends their jobs.
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [future.result() for future in futures]


def write_empty(run: Run, table: str, schema: StructType, partitions: dict[str, str]) -> None:
    """Stage a file without rows; `partitions` are the partition columns of its folder."""
    place = "/".join(f"{name}={value}" for name, value in partitions.items())
    folder = run.folder(Area.ADDED, table) / place
    folder.mkdir(parents=True, exist_ok=True)
    arrow = to_arrow_schema(schema, timezone="UTC")
    with open_table(folder / "part-empty.parquet", arrow, {ROW_SCHEMA: schema.json().encode()}):
        pass


def open_table(path: Path, schema: pa.Schema, stated: Mapping[bytes, bytes]) -> pq.ParquetWriter:
    """Return a writer of a Parquet file as Spark writes it, with what is `stated` of it.

    Arrow's own description of the columns is left out: it would tell their comments otherwise than Spark does.
    """
    writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=3, store_schema=False)
    writer.add_key_value_metadata({key.decode(): value.decode() for key, value in stated.items()})
    return writer


def without(schema: StructType, names: Iterable[str]) -> StructType:
    """Return a schema without some of its columns: what is in the files when these are partitions."""
    left = set(names)
    return StructType([field for field in schema if field.name not in left])


def time_partitions(names: Iterable[str], partition: str) -> dict[str, Callable[[Column], Column]]:
    """Return the partition columns of `ts` beside columns of these names, each with its expression.

    `partition` is ``day`` or ``hour``. A name that is taken, in any case, gets a leading underscore.
    """
    taken = {name.casefold() for name in names}
    wanted = {DATE.name: F.to_date, HOUR.name: F.hour}
    kept = [DATE.name] if partition == "day" else [DATE.name, HOUR.name]
    return {f"_{name}" if name in taken else name: wanted[name] for name in kept}


GATHERED_OCTETS = 16 << 20
"""Octets of messages up to which what is made of them comes to this process."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""How Spark calls the folder of rows that have no value in a partition column."""
VERSION = b"org.apache.spark.version"
"""Where Spark says which one wrote a Parquet file; without it readers suspect that its dates are of another calendar."""


class Part(NamedTuple):
    """Rows of one table.

    Attributes:
        table: its path in the output folder.
        rows: its rows.
        area: what becomes of them; None where their column `OPEN` tells it of each.
        partitions: its partition columns.
        octets: about how large it is, 0 for small.
    """

    table: str
    rows: DataFrame
    area: Area | None = Area.ADDED
    partitions: tuple[str, ...] = ()
    octets: int = 0


def stage(run: Run, parts: Sequence[Part], *, few: bool) -> None:
    """Stage tables; `few` says whether their rows may come to this process."""
    gathered = [part for part in parts if few and _can_come(part.rows.schema, nullable=False)]
    for part in gathered:
        _gather(run, part)
    run_all([partial(_write, run, part) for part in parts if part not in gathered])


def _can_come(kind: DataType, *, nullable: bool) -> bool:
    """Whether PySpark can bring values of a type here: none that may be null has parts that may not."""
    match kind:
        case StructType():
            whole = all(field.nullable for field in kind) or not nullable
            return whole and all(_can_come(field.dataType, nullable=field.nullable) for field in kind)
        case ArrayType():
            return _can_come(kind.elementType, nullable=kind.containsNull)
        case MapType():
            return _can_come(kind.valueType, nullable=kind.valueContainsNull)
        case VariantType():
            return not nullable
    return True


def _write(run: Run, part: Part) -> None:
    table, rows, area, partitions, octets = part
    if area is None:
        write_both(run, rows, table, partitions=partitions, octets=octets)
    else:
        write_table(run, rows, table, area=area, partitions=partitions, octets=octets)


def _gather(run: Run, part: Part) -> None:
    """Stage a table whose rows are few."""
    if part.area is not None:
        _write_rows(run, part.rows.toArrow(), part, part.area)
        return
    found = part.rows.withColumn(OPEN, F.coalesce(OPEN, F.lit(False))).toArrow()
    for area in Area:
        marked = pc.equal(found[OPEN], pa.scalar(area is Area.OPEN))
        _write_rows(run, found.filter(marked), part, area)


def _write_rows(run: Run, rows: pa.Table, part: Part, area: Area) -> None:
    """Stage rows as Spark would; without partition columns there is a file even where there are no rows."""
    kept = without(part.rows.schema, (*part.partitions, OPEN))
    stated = {ROW_SCHEMA: kept.json().encode(), VERSION: part.rows.sparkSession.version.encode()}
    arrow = pa.schema([field.remove_metadata() for field in to_arrow_schema(kept, timezone="UTC")])
    for place, chosen in _split(rows, part.partitions):
        folder = run.folder(area, part.table) / place
        folder.mkdir(parents=True, exist_ok=True)
        with open_table(folder / "part-gathered.parquet", arrow, stated) as writer:
            writer.write_table(chosen.select(kept.names).cast(arrow))


def _split(rows: pa.Table, partitions: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Give the rows of each partition with its folder."""
    if not partitions:
        yield "", rows
        return
    named: dict[str, Any] = {name: pc.cast(rows[name], pa.string()) for name in partitions}
    keys = pa.table({name: pc.fill_null(texts, NO_VALUE) for name, texts in named.items()})
    for key in keys.group_by(keys.column_names).aggregate([]).to_pylist():
        chosen = reduce(pc.and_, (pc.equal(keys[name], value) for name, value in key.items()))
        yield "/".join(f"{name}={value}" for name, value in key.items()), rows.filter(chosen)
