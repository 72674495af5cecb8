"""Tables into a run's staging folder: one file for each partition, larger ones cut at `FILE_OCTETS`.

Spark writes as many files as a DataFrame has partitions, times the dates; a run every few seconds would drown
the next reader in small files. So a table is written by as few tasks as its size needs.

A table that never had a row gets one file without rows, because readers rely on the tables being there; it is
written here, without a job of Spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

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
