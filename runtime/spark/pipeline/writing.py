"""Writer of tables to the staging folder of a run.

Each partition of a table gets one file, or several of about `FILE_OCTETS`. Without limits Spark
writes one file for each task and date, and runs every few seconds would leave many small files.

Writing a table with Spark has a fixed cost: a plan, a job, and a folder for each task. A run over a
few hundred messages writes thirty tables. Tables with few rows are therefore collected in Arrow and
written by this process, with the same files and schema as Spark writes. A table that never had a
row gets one file without rows, because readers expect the table.
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

from specwire.runtime.spark.answers.answer import OPEN
from specwire.runtime.spark.answers.messages import stored_names
from specwire.runtime.spark.pipeline.commit import Area, Run
from specwire.runtime.spark.pipeline.store import DATE, HOUR, ROW_SCHEMA
from specwire.runtime.spark.session.executors import local_path
from specwire.runtime.spark.session.opening import changed_settings

TASKS_AT_ONCE = 3

Result = TypeVar("Result")

FILE_OCTETS = 128 << 20
"""Octets of frames for one file, before compression."""

AREA = "_area"
"""Temporary column for writing; columns of answer tables have no leading underscore."""

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.ansi.enabled": "true",
    # One physical layout for a Variant: shredding depends on the rows of each file.
    "spark.sql.variant.inferShreddingSchema": "false",
    # Partitions written in parallel. With more than these, Spark sorts rows, which copies each.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    # Decoded rows are persisted while they are counted and written: in memory if a task's rows fit,
    # otherwise on disk. Java's serialization to disk holds a hundred batches of rows at a time.
    "spark.sql.files.maxPartitionBytes": str(16 << 20),
    "spark.sql.inMemoryColumnarStorage.batchSize": "1000",
    # List the files of a table in the driver. Beyond 32 files Spark would run a job with a task for
    # each: 5 s of processor time for the 365 files of a year, instead of 0.2 s.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str(1 << 30),
}
"""Session settings that the tables depend on, in any session of the caller."""

BRIEF = {
    # Plan once, not again at each shuffle; interpret, do not compile to Java; shuffle to two tasks.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}
"""Session settings for queries over few rows, whose cost is mostly planning and compilation."""

OPTIONS = {
    "compression": "zstd",
    # By default a hundred rows are collected before the first check of their size, and ten thousand
    # after small ones. A row may have a hundred megabytes. The numbers apply to pages and to row
    # groups.
    "parquet.page.size.row.check.min": "4",
    "parquet.page.size.row.check.max": "16",
    # Octets that a task holds in memory before it writes them.
    "parquet.block.size": str(32 << 20),
}


def table_settings(spark: SparkSession, *, few: bool) -> AbstractContextManager[None]:
    """Apply `SETTINGS` for a block, and for a run over few rows also `BRIEF`."""
    return changed_settings(spark, {**SETTINGS, **BRIEF} if few else SETTINGS)


def copy_open(run: Run, table: str, target: str, place: str) -> None:
    """Copy the staged open rows of a table to another table; only those in its folder `place`."""
    source, folder = (run.folder(Area.OPEN, name) / place for name in (table, target))
    if source.exists():
        shutil.copytree(source, folder)


def run_all(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run tasks that use Spark, `TASKS_AT_ONCE` at a time, and return their results in order.

    Most of the time of a small query is planning, which uses one core. Nested calls have limits of
    their own. Raises the error of the first task that fails. Tasks that have not started are then
    cancelled.
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


def find_minutes(files: Iterable[Path]) -> list[int] | None:
    """Return the minutes of the rows of files, in microseconds; None if a row has no time."""
    found: set[int | None] = set()
    for path in files:
        names = pq.read_schema(path).names
        name = stored_names(names)["ts"]
        if name not in names:
            return None
        minutes = pc.floor_temporal(pq.ParquetFile(path).read([name])[name], unit="minute")
        found.update(pc.unique(minutes.cast(pa.int64())).to_pylist())
    minutes_us = [minute for minute in found if minute is not None]
    return sorted(minutes_us) if len(minutes_us) == len(found) else None


def in_minutes(column: str, minutes: Sequence[int]) -> str:
    """Return the SQL for whether a time is in one of these minutes.

    Its limits let Spark skip files and row groups.
    """
    limits = f"timestamp_micros({minutes[0]}) AND timestamp_micros({minutes[-1] + 59_999_999})"
    listed = ", ".join(map(str, minutes))
    return f"{column} BETWEEN {limits} AND unix_micros(date_trunc('minute', {column})) IN ({listed})"


def drop_minutes(run: Run, files: Iterable[Path], minutes: Sequence[int]) -> None:
    """Replace files by files without the rows of some minutes. Files without such rows stay."""
    for path in files:
        with pq.ParquetFile(path) as file:
            times = file.read(["minute"])["minute"].cast(pa.int64())
            stays = pc.invert(pc.is_in(times, pa.array(minutes, pa.int64())))
            if pc.all(stays).as_py():
                continue
            run.replace([path])
            if not pc.any(stays).as_py():
                continue
            folder = run.folder(Area.ADDED, path.parent.relative_to(run.out).as_posix())
            folder.mkdir(parents=True, exist_ok=True)
            schema = file.schema_arrow
            done = 0
            with open_table(folder / f"kept-{path.name}", schema, schema.metadata or {}) as writer:
                for rows in map(file.read_row_group, range(file.num_row_groups)):
                    writer.write_table(rows.filter(stays.slice(done, rows.num_rows)))
                    done += rows.num_rows


def open_table(path: Path, schema: pa.Schema, stated: Mapping[bytes, bytes]) -> pq.ParquetWriter:
    """Return a writer of a Parquet file in Spark's format, with the file metadata `stated`.

    Arrow's description of the columns is omitted: it stores comments differently from Spark.
    """
    writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=3, store_schema=False)
    writer.add_key_value_metadata({key.decode(): value.decode() for key, value in stated.items()})
    return writer


def without(schema: StructType, names: Iterable[str]) -> StructType:
    """Return a schema without some columns: the schema of the files if these are partitions."""
    left = set(names)
    return StructType([field for field in schema if field.name not in left])


def time_partitions(names: Iterable[str], partition: str) -> dict[str, Callable[[Column], Column]]:
    """Return the partition columns of `ts`, each with its expression; `names` are other columns.

    `partition` is ``day`` or ``hour``. If another column has the name, in upper or lower case, the
    partition column gets a leading underscore.
    """
    taken = {name.casefold() for name in names}
    wanted = {DATE.name: F.to_date, HOUR.name: F.hour}
    kept = [DATE.name] if partition == "day" else [DATE.name, HOUR.name]
    return {f"_{name}" if name in taken else name: wanted[name] for name in kept}


GATHERED_OCTETS = 16 << 20
"""Maximum octets of messages whose tables are collected in this process."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Spark's folder name for rows without a value in a partition column."""
VERSION = b"org.apache.spark.version"
"""Key of Spark's version in a Parquet file.

Without it, readers suspect that dates use another calendar.
"""


class Part(NamedTuple):
    """Rows of one table.

    Attributes:
        table: its path in the output folder.
        rows: its rows.
        area: area of the rows; None if their column `OPEN` determines it for each row.
        partitions: its partition columns.
        octets: its approximate size, 0 for small.
    """

    table: str
    rows: DataFrame
    area: Area | None = Area.ADDED
    partitions: tuple[str, ...] = ()
    octets: int = 0


def stage(run: Run, parts: Sequence[Part], *, few: bool) -> None:
    """Stage tables; `few` says whether their rows may be collected in this process."""
    gathered = [part for part in parts if few and _can_come(part.rows.schema, nullable=False)]
    for part in gathered:
        _gather(run, part)
    run_all([partial(_write, run, part) for part in parts if part not in gathered])


def _can_come(kind: DataType, *, nullable: bool) -> bool:
    """Return whether PySpark can collect values of a type.

    It cannot if a nullable structure has fields that are not nullable.
    """
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
    """Stage a table with one job; `OPEN` becomes a partition column, whose folders are then moved."""
    rows, by, folder = part.rows, part.partitions, run.staging / "both" / part.table
    if part.area is None:
        marked = F.when(F.col(OPEN), str(Area.OPEN)).otherwise(str(Area.ADDED))
        rows, by = rows.withColumn(AREA, marked).drop(OPEN), (AREA, *by)
    else:
        folder = run.folder(part.area, part.table)
    files = rows.coalesce(1 + part.octets // FILE_OCTETS).write.mode("append").options(**OPTIONS)
    files.partitionBy(*by).parquet(local_path(folder))
    for area in Area if part.area is None else ():
        for place in sorted(folder.glob(f"{AREA}={area}/*=*")):
            target = run.folder(area, part.table) / place.name
            target.parent.mkdir(parents=True, exist_ok=True)
            place.rename(target)


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
    """Stage rows as Spark would; without partition columns, no rows still make one file."""
    kept = without(part.rows.schema, (*part.partitions, OPEN))
    stated = {ROW_SCHEMA: kept.json().encode(), VERSION: part.rows.sparkSession.version.encode()}
    arrow = pa.schema([field.remove_metadata() for field in to_arrow_schema(kept, timezone="UTC")])
    for place, chosen in _split(rows, part.partitions):
        folder = run.folder(area, part.table) / place
        folder.mkdir(parents=True, exist_ok=True)
        with open_table(folder / "part-gathered.parquet", arrow, stated) as writer:
            writer.write_table(chosen.select(kept.names).cast(arrow))


def _split(rows: pa.Table, partitions: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yield the folder and the rows of each partition."""
    if not partitions:
        yield "", rows
        return
    named: dict[str, Any] = {name: pc.cast(rows[name], pa.string()) for name in partitions}
    keys = pa.table({name: pc.fill_null(texts, NO_VALUE) for name, texts in named.items()})
    for key in keys.group_by(keys.column_names).aggregate([]).to_pylist():
        chosen = reduce(pc.and_, (pc.equal(keys[name], value) for name, value in key.items()))
        yield "/".join(f"{name}={value}" for name, value in key.items()), rows.filter(chosen)
