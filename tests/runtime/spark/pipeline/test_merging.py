"""Small files of a partition become few, files that lack columns are rewritten, and no row is lost or repeated.

Runs that merge and are killed are in `test_histories`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from specwire.runtime.cli.pipeline import say_mixed
from specwire.runtime.spark.pipeline import advance, merging
from specwire.runtime.spark.pipeline.catalog import register_tables
from specwire.runtime.spark.pipeline.commit import Area, begin, visible_files
from specwire.runtime.spark.pipeline.manifest import read_manifest
from specwire.runtime.spark.pipeline.merging import find_mixed, merge_small, rewrite
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA, Choice, Store, View, read_files
from specwire.runtime.spark.pipeline.writing import SETTINGS, open_table
from specwire.runtime.spark.session.executors import literal_path
from specwire.runtime.spark.session.opening import changed_settings

MANY = 4
TABLE = "typed/filemq/Nom"
DAY, NEXT_DAY = "2026-01-02", "2026-01-03"


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge a few files already."""
    monkeypatch.setattr(merging, "MERGED_AFTER", MANY)


def add(
    out: Path,
    *rows: int,
    day: str = DAY,
    area: Area = Area.ADDED,
    stated: bytes = b"{}",
    merge: bool = True,
    octets: int = merging.MERGED_OCTETS,
) -> None:
    """Have a run add a file of a few rows, and merge what is too many."""
    with begin(out) as run:
        folder = run.folder(area, TABLE) / f"date={day}"
        folder.mkdir(parents=True)
        columns = {"row": pa.array(rows, pa.int64()), "octets": [bytes([row % 256]) * 5 for row in rows]}
        table = pa.table(columns)
        with open_table(folder / "part-0.parquet", table.schema, {ROW_SCHEMA: stated}) as writer:
            writer.write_table(table)
        if merge:
            merge_small(run, [TABLE], octets)
        run.commit(run.before)


def rows_of(out: Path, day: str = DAY) -> list[tuple[int, bytes]]:
    """Return the rows that a reader of a partition sees."""
    found: list[tuple[int, bytes]] = []
    for path in visible_files(out / TABLE / f"date={day}"):
        found += ((row["row"], row["octets"]) for row in pq.read_table(path, partitioning=None).to_pylist())
    return sorted(found)


def wanted(count: int) -> list[tuple[int, bytes]]:
    """Return the rows that so many runs have added, one each."""
    return [(row, bytes([row % 256]) * 5) for row in range(count)]


def test_many_runs_leave_few_files(tmp_path: Path) -> None:
    """Of three times as many runs as are merged, and every row is there once; each partition by itself."""
    out = tmp_path / "out"
    runs = 3 * MANY
    for number in range(runs):
        add(out, number)
        assert len(visible_files(out / TABLE)) <= MANY + 1
    add(out, 7, day=NEXT_DAY)
    assert rows_of(out) == wanted(runs)
    assert len(visible_files(out / TABLE / f"date={NEXT_DAY}")) == 1
    assert read_manifest(out).rows == {TABLE: runs + 1}
    schemas = {path: pq.read_schema(path) for path in visible_files(out / TABLE)}
    assert {schema.metadata[ROW_SCHEMA] for schema in schemas.values()} == {b"{}"}


def test_open_rows_and_other_tiers_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the next run replaces is not merged, nor a large file with small ones."""
    monkeypatch.setattr(merging, "TIERS_OCTETS", (2000, 100_000))
    out = tmp_path / "out"
    add(out, *range(1000), merge=False)
    (large,) = visible_files(out / TABLE)
    assert large.stat().st_size > 2000
    for number in range(MANY):
        add(out, number, area=Area.OPEN)
    assert len(visible_files(out / TABLE)) == MANY + 1
    for number in range(MANY + 1):
        add(out, number)
    names = [path.name for path in visible_files(out / TABLE)]
    assert large.name in names
    assert sum(name.startswith("open-") for name in names) == MANY
    assert sum(name.startswith("run-") for name in names) == 3, (
        "the large, the merged, and that of the last run"
    )


def test_files_of_an_older_schema_are_left_alone(tmp_path: Path) -> None:
    """Merged, they would be the newest file, of which readers take the columns."""
    out = tmp_path / "out"
    for number in range(MANY + 3):
        add(out, number, merge=False)
    add(out, 99, stated=b'{"newer": true}')
    files = visible_files(out / TABLE)
    assert len(files) == MANY + 4
    newest = max(files, key=lambda path: path.name)
    assert pq.read_schema(newest).metadata[ROW_SCHEMA] == b'{"newer": true}'


def test_a_run_merges_so_much_and_leaves_the_rest(tmp_path: Path) -> None:
    """Each run merges one partition, even one with more than the limit, and the next run continues."""
    out = tmp_path / "out"
    for number in range(MANY):
        add(out, number, merge=False)
        add(out, number, day=NEXT_DAY, merge=False)
    counts = []
    for number in (MANY, MANY + 1):
        add(out, number, octets=10)
        counts.append([len(visible_files(out / TABLE / f"date={day}")) for day in (DAY, NEXT_DAY)])
    assert counts == [[2, MANY], [3, 1]]
    assert rows_of(out) == wanted(MANY + 2)
    assert rows_of(out, NEXT_DAY) == wanted(MANY)


def test_rows_are_gathered_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small what is held at once, all rows arrive."""
    monkeypatch.setattr(merging, "GROUP_OCTETS", 1)
    monkeypatch.setattr(merging, "BATCH_ROWS", 1)
    out = tmp_path / "out"
    for number in range(MANY):
        add(out, 2 * number, 2 * number + 1, merge=False)
    add(out, 2 * MANY)
    merged = max(visible_files(out / TABLE), key=lambda path: pq.read_metadata(path).num_rows)
    assert pq.read_metadata(merged).num_row_groups == 2 * MANY
    assert rows_of(out) == wanted(2 * MANY + 1)


NARROW = StructType().add("row", "integer")
WIDE = StructType().add("row", "long").add("volume", "integer")
WIDER = StructType().add("row", "long").add("volume", "decimal(20,0)").add("venue", "string")
ONE_FILE = 1
"""Octets after which a run rewrites no other file."""


def run_once(
    out: Path, columns: StructType | None = None, *rows: Sequence[Any], day: str = DAY, octets: int = ONE_FILE
) -> None:
    """Have a run add a file with these columns, or none, and rewrite files that lack some."""
    with begin(out) as run:
        if columns is not None:
            stage(run.folder(Area.ADDED, TABLE) / f"date={day}", columns, *rows)
        mixed = rewrite(run, find_mixed(run, [TABLE]), octets)
        run.commit(msgspec.structs.replace(run.before, mixed=mixed, answered=run.number))


def stage(folder: Path, columns: StructType, *rows: Sequence[Any]) -> None:
    """Write rows into a folder as Spark does."""
    folder.mkdir(parents=True)
    arrow = to_arrow_schema(columns)
    table = pa.Table.from_pylist([dict(zip(columns.names, row, strict=True)) for row in rows], arrow)
    with open_table(folder / "part-0.parquet", arrow, {ROW_SCHEMA: columns.json().encode()}) as writer:
        writer.write_table(table)


def names_of(out: Path) -> list[str]:
    """Return the table's files, in the order of their paths."""
    return [path.relative_to(out / TABLE).as_posix() for path in visible_files(out / TABLE)]


def check_rows(out: Path, *rows: tuple[Any, ...]) -> None:
    """Read the table with engines that unite the columns of its files."""
    files = [str(path) for path in visible_files(out / TABLE)]
    with duckdb.connect() as connection:
        found = connection.read_parquet(files, union_by_name=True, hive_partitioning=True)
        assert sorted(found.project("* EXCLUDE date").fetchall()) == sorted(rows)
    united = pl.concat(
        [pl.read_parquet(file, hive_partitioning=False) for file in files], how="diagonal_relaxed"
    )
    assert sorted(united.rows()) == sorted(rows)


def check_first_file(out: Path, *rows: tuple[Any, ...]) -> None:
    """Read the table with engines that take its columns from the first file."""
    read = ds.dataset(out / TABLE, partitioning="hive").to_table()
    widen = pl.ScanCastOptions(integer_cast="upcast")
    scan = pl.scan_parquet(out / TABLE, missing_columns="insert", cast_options=widen)
    for table in (read, scan.collect().to_arrow()):
        assert sorted(tuple(row.values()) for row in table.drop(["date"]).to_pylist()) == sorted(rows)


def add_narrow(out: Path) -> None:
    """Have three runs add a file each: two on one day, one on the next."""
    for number, day in enumerate((DAY, DAY, NEXT_DAY), start=1):
        run_once(out, NARROW, [number], day=day)
    assert read_manifest(out).mixed == {}


def test_each_run_rewrites_some_files(tmp_path: Path) -> None:
    """In the order of paths, until all files have the columns of the last one; then none is rewritten."""
    out = tmp_path / "out"
    add_narrow(out)
    run_once(out, WIDE, (2**40, 500), day=NEXT_DAY)
    rows = [(1, None), (2, None), (3, None), (2**40, 500)]
    left = [f"date={DAY}/run-000002-0000.parquet", f"date={NEXT_DAY}/run-000003-0000.parquet"]
    for number in (4, 5):
        assert read_manifest(out).mixed == {TABLE: 3}
        assert Store(out).lacking() == {TABLE: (6 - number, 4)}
        assert [name for name in names_of(out) if name.split("-")[3] < "000004"] == left[number - 4 :]
        check_rows(out, *rows)
        if number == 5:
            check_first_file(out, *rows)
        run_once(out)
    after = names_of(out)
    assert read_manifest(out).mixed == {} and read_manifest(out).rows == {TABLE: 4}
    assert {str(pq.ParquetFile(file).schema).partition("\n")[2] for file in visible_files(out / TABLE)} == {
        str(pq.ParquetFile(out / TABLE / after[-1]).schema).partition("\n")[2]
    }
    check_rows(out, *rows)
    run_once(out, WIDE, (5, 5))
    assert {*after} < {*names_of(out)}


def test_another_column_for_a_mixed_table(tmp_path: Path) -> None:
    """Files that were rewritten for the first column are rewritten for the second too."""
    out = tmp_path / "out"
    add_narrow(out)
    run_once(out, WIDE, (4, 500))
    run_once(out, WIDER, (5, 2**63, "XETR"), day=NEXT_DAY)
    assert read_manifest(out).mixed == {TABLE: 4}
    rows = [(1, None, None), (2, None, None), (3, None, None), (4, 500, None), (5, 2**63, "XETR")]
    check_rows(out, *rows)
    run_once(out, octets=1 << 30)
    assert read_manifest(out).mixed == {}
    assert {tuple(pq.read_schema(file).names) for file in visible_files(out / TABLE)} == {tuple(WIDER.names)}
    check_rows(out, *rows)


def test_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In runs that rewrite some files each; not if rows are not in the answers yet."""
    out = tmp_path / "out"
    monkeypatch.setattr(advance, "rewrite", partial(rewrite, octets=ONE_FILE))
    add_narrow(out)
    run_once(out, WIDE, (4, 500))
    assert say_mixed(out) == (
        f"{TABLE}: 2 of 4 files lack columns of later files; later runs add them, or one with --rewrite-all"
    )
    steps: list[tuple[str, int, int]] = []
    with begin(out) as run:
        run.commit(run.before)
    advance.rewrite_all(out)
    assert read_manifest(out).run == 5
    with begin(out) as run:
        run.commit(msgspec.structs.replace(run.before, answered=run.number))
    advance.rewrite_all(out, lambda *step: steps.append(step))
    assert steps == [("rewriting earlier files", done, 2) for done in (0, 1)]
    assert (read_manifest(out).mixed, read_manifest(out).run, say_mixed(out)) == ({}, 8, "")


def test_a_run_that_fails_leaves_a_mixed_table_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    add_narrow(out)
    run_once(out, WIDE, (4, 500))
    names, manifest = names_of(out), read_manifest(out)
    with pytest.raises(KeyboardInterrupt), begin(out) as run:
        rewrite(run, run.before.mixed)
        raise KeyboardInterrupt
    assert (names_of(out), read_manifest(out)) == (names, manifest)


@pytest.mark.spark
def test_spark_reads_a_mixed_table(spark: SparkSession, tmp_path: Path) -> None:
    """All columns, also of earlier files only: in the pipeline, in a catalog, and as a folder of its first day."""
    out = tmp_path / "out"
    add_narrow(out)
    run_once(out, WIDER, (4, 2**63, "XETR"), octets=2 * merging.LEAST_OCTETS)
    assert read_manifest(out).mixed == {TABLE: 3}
    rows = [(1, None, None), (2, None, None), (3, None, None), (4, 2**63, "XETR")]
    store = Store(out)
    with store.begin() as run:
        view = View(spark, store, run).table(TABLE, Choice(dates=[NEXT_DAY]))
        assert view is not None and list(map(tuple, view.drop("date").collect())) == [rows[2]]
    register_tables(spark, out, "of_mixed")
    found = spark.sql("SELECT row, volume, venue FROM of_mixed.filemq_nom").collect()
    spark.sql("DROP DATABASE of_mixed CASCADE")
    assert sorted(map(tuple, found)) == rows
    folder = spark.read.parquet(literal_path(out / TABLE)).drop("date").collect()
    assert sorted(map(tuple, folder)) == rows


@pytest.mark.spark
def test_variants_keep_their_values(spark: SparkSession, tmp_path: Path) -> None:
    """Version 0.1 wrote them in a layout that depends on the rows, here with a part for the number."""
    out = tmp_path / "out"
    with begin(out) as run:
        shredded = {
            f"spark.sql.variant.{name}": "true" for name in ("inferShreddingSchema", "writeShredding.enabled")
        }
        rows = spark.sql("""SELECT CAST(1 AS INT) AS row, parse_json('{"rank": 7}') AS payload""")
        with changed_settings(spark, shredded):
            rows.write.parquet(str(run.folder(Area.ADDED, TABLE) / f"date={DAY}"))
        run.commit(run.before)
    (file,) = visible_files(out / TABLE)
    assert "typed_value" in str(pq.read_schema(file).field("payload").type)
    more = rows.selectExpr("CAST(2 AS INT) AS row", "payload", "'XETR' AS venue")
    with begin(out) as run, changed_settings(spark, SETTINGS):
        more.write.parquet(str(run.folder(Area.ADDED, TABLE) / f"date={NEXT_DAY}"))
        assert rewrite(run, find_mixed(run, [TABLE])) == {}
        run.commit(run.before)
    table = read_files(spark, out / TABLE, visible_files(out / TABLE))
    assert table is not None
    found = {row["row"]: (row["payload"].toPython(), row["venue"]) for row in table.collect()}
    assert found == {1: ({"rank": 7}, None), 2: ({"rank": 7}, "XETR")}
