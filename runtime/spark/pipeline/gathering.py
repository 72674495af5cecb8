"""Several tables into a run's staging folder: by way of this process where their rows are few, else by Spark.

What Spark does to write a table has a price that does not depend on its rows: a plan for the file as well as for the
query, a job that is set up and committed, a folder for each task. A run over some hundred messages writes thirty
tables and pays it thirty times. So the rows of such tables come to this process in Arrow and are written here, into the
same files with the same schema as Spark's. (One query for all of them is no better: planning its union costs
more than the queries.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from specwire.runtime.spark.answers.step import OPEN
from specwire.runtime.spark.pipeline.commit import Area, Run
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA
from specwire.runtime.spark.pipeline.writing import (
    open_table,
    run_all,
    without,
    write_both,
    write_table,
)

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
