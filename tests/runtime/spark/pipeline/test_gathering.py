"""Tables that are written here are those that Spark writes: the same files for any reader, rows and schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.answer import OPEN
from specwire.runtime.spark.pipeline import merging
from specwire.runtime.spark.pipeline.commit import Area, begin, visible_files
from specwire.runtime.spark.pipeline.merging import merge_small
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA, read_files
from specwire.runtime.spark.pipeline.writing import VERSION, Part, stage, table_settings

pytestmark = pytest.mark.spark

KINDS = """
    timestamp_micros(1700000000000000 + id) as ts,
    id as number,
    cast(id as smallint) as small,
    cast(id as decimal(20, 0)) as large,
    id / 3 as part,
    cast(concat('text ', id) as binary) as octets,
    if(id = 1, null, concat('\u00e9', id)) as text,
    id = 1 as flag,
    array(named_struct('name', 'a', 'value', if(id = 2, null, 'b'))) as pairs,
    if(id = 2, null, array(id, null)) as numbers,
    named_struct('x', id, 'y', array(named_struct('z', if(id = 1, null, hex(id))))) as nested,
    from_json(if(id = 1, null, '{"x": 1}'), 'x bigint') as loose,
    'filemq' as protocol
"""
"""A column of each type that tables have; the first never null."""


def mixed(spark: SparkSession) -> DataFrame:
    """Return four rows of two dates, and one without a date; a column has a comment."""
    rows = spark.range(5).selectExpr(*map(str.strip, KINDS.strip().split(",\n")))
    day = F.when(F.col("number") < 2, "2023-11-14").when(F.col("number") < 4, "2023-11-15").cast("date")
    return rows.withColumn("date", day).withMetadata("number", {"comment": "which row it is"})


def parts_of(spark: SparkSession) -> list[Part]:
    """Return tables of every shape: with open rows, with none, by partition or not, without rows."""
    rows = mixed(spark)
    strict = rows.select("number", F.expr("if(number = 1, null, named_struct('x', number)) as strict"))
    variant = rows.select("number", F.expr("if(number = 1, null, parse_json('[1]')) as json"))
    marked = rows.withColumn(OPEN, F.expr("number in (0, 3)"))
    nothing = rows.where("number > 9")
    by = ("protocol", "date")
    return [
        Part("answers/both", marked, None, by),
        Part("answers/none", rows.withColumn(OPEN, F.lit(True)), None, by),
        Part("typed/a/b", rows.drop("protocol"), partitions=("date",)),
        Part("state/a/rows", rows, area=Area.OPEN),
        Part("state/a/strict", strict, area=Area.OPEN),
        Part("state/a/json", variant, area=Area.OPEN),
        Part("state/a/none", nothing.select("number"), area=Area.OPEN),
    ]


def written(spark: SparkSession, out: Path, *, few: bool) -> dict[str, Any]:
    """Stage the tables; return by table and folder the files' schemas, what Spark says in them, and their rows."""
    found: dict[str, Any] = {}
    with begin(out) as run, table_settings(spark, few=False):
        parts = parts_of(spark)
        stage(run, parts, few=few)
        for part in parts:
            for area in Area:
                root = run.folder(area, part.table)
                for path in visible_files(root):
                    place = f"{area} {part.table} {path.parent.relative_to(root)}"
                    schema = pq.read_schema(path)
                    metadata = schema.metadata or {}
                    stated = (json.loads(metadata[ROW_SCHEMA]), metadata[VERSION])
                    table = read_files(spark, root, [path])
                    assert table is not None
                    rows = sorted(map(repr, table.collect()))
                    found[place] = (schema.remove_metadata(), stated, rows, "gathered" in path.name)
    return found


def test_they_are_what_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    """To the nullability of a column and the folder of rows without a date."""
    ours, theirs = (written(spark, tmp_path / str(few), few=few) for few in (True, False))
    assert ours.keys() == theirs.keys()
    for place, (schema, stated, rows, gathered) in theirs.items():
        assert not gathered
        assert ours[place][2] == rows, place
        assert ours[place][0].equals(schema, check_metadata=True), place
        assert ours[place][1] == stated, place
    assert "run answers/both protocol=filemq/date=__HIVE_DEFAULT_PARTITION__" in ours
    by_spark = {place for place, (*_, gathered) in ours.items() if not gathered}
    assert by_spark == {"open state/a/strict .", "open state/a/json ."}, "what PySpark cannot bring here"
    assert ours["open state/a/none ."][2] == [], "a state without rows is a file too"


def test_merged_files_are_what_spark_wrote(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files by Spark and by us become one, with every type of column, and Spark reads the same rows of it."""
    monkeypatch.setattr(merging, "MERGED_AFTER", 3)
    variant = F.expr("if(number = 1, null, parse_json('{\"a\": [1, null]}'))")
    frames = {"plain": mixed(spark), "json": mixed(spark).select("number", "date", variant.alias("json"))}
    out = tmp_path / "out"
    for number in range(4):
        with begin(out) as run, table_settings(spark, few=False):
            parts = [Part(f"typed/a/{name}", rows, partitions=("date",)) for name, rows in frames.items()]
            stage(run, parts, few=number % 2 == 1)
            if number == 3:
                merge_small(run, [part.table for part in parts])
            run.commit(run.before)
    for name, rows in frames.items():
        files = visible_files(out / "typed/a" / name)
        assert len(files) == 6, "of each of three dates the merged one and the last run's"
        table = read_files(spark, out / "typed/a" / name, files)
        assert table is not None
        wanted = sorted(4 * [repr(row) for row in rows.select(table.columns).collect()])
        assert sorted(map(repr, table.collect())) == wanted
