"""The tables of an output folder in Spark's catalog, in an Iceberg table and in a Delta table.

The recipes are those of docs/how-to/table-formats.md.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, Schema, convert_to_deltalake
from deltalake.schema import PrimitiveType
from pyspark.sql import SparkSession

from specwire.generated import flux
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, list_files, write_segment
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.catalog import catalog_tables, register_tables
from specwire.runtime.spark.pipeline.manifest import Asked, read_manifest
from specwire.runtime.spark.pipeline.request import Request, check_same
from specwire.runtime.spark.pipeline.store import Store

pytestmark = pytest.mark.spark

BEGUN_US = 1_780_000_000_000_000
"""2026-05-28 20:26:40 UTC."""
DAY_US = 86_400_000_000
DATABASE = "catalogued"


def run(spark: SparkSession, out: Path, number: int, payload: bytes, **asked: object) -> Store:
    """Work in a new segment with one request of that payload, a day later than the segment before."""
    capture = out.parent / f"{out.name} capture"
    capture.mkdir(exist_ok=True)
    frames = flux.Request(topic="kvs.get", payload=payload, matchtag=2**32 - 1).encode()
    row = Captured(BEGUN_US + number * DAY_US, number, number, "c", "C", "p", tuple(frames), 0)
    tap = f"broker-1-{number}"
    write_segment(capture, segment_name(tap, 0), build_table([row], Source(tap, "flux", "1"), 0))
    request = Request(capture, msgspec.convert({"layers": ["frames", "typed"], **asked}, Asked))
    assert advance(spark, Store(out), list_files(capture), request)
    return Store(out)


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of two runs, in a folder whose name needs quotes."""
    folder = tmp_path_factory.mktemp("catalog") / "it's {out}"
    run(spark, folder, 0, b"\xff")
    return run(spark, folder, 1, b'{"name": "size"}\0').out


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    """A database that is dropped at the end."""
    yield DATABASE
    spark.sql(f"DROP DATABASE IF EXISTS {quoted(DATABASE)} CASCADE")


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def rows_on_disk(folder: Path) -> int:
    return sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))


def test_a_refresh_shows_new_rows(spark: SparkSession, out: Path, database: str) -> None:
    """Each table has the rows of its files, its comments and partitions, before and after a third run."""
    for number in (2, 3):
        names = register_tables(spark, out, database)
        assert f"{quoted(database)}.`flux_request`" in names
        for table in catalog_tables(Store(out), database):
            assert spark.table(table.name).count() == rows_on_disk(table.folder), table.name
        request = spark.table(f"{quoted(database)}.flux_request")
        assert request.count() == number
        assert request.schema["topic"].metadata["comment"]
        assert spark.sql(f"SHOW PARTITIONS {quoted(database)}.flux_request").count() == number
        if number == 2:
            run(spark, out, 2, b"[]")


def test_a_table_of_somebody_else_is_not_dropped(
    spark: SparkSession, out: Path, database: str, tmp_path: Path
) -> None:
    """Whatever it is called; nothing of the database is changed."""
    spark.sql(f"CREATE DATABASE {quoted(database)} LOCATION '{tmp_path}/warehouse'")
    spark.sql(f"CREATE TABLE {quoted(database)}.flux_request USING parquet AS SELECT 1 AS one")
    with pytest.raises(InputError, match="the catalog has another table of this name; name another database"):
        register_tables(spark, out, database)
    assert spark.table(f"{quoted(database)}.flux_request").collect()[0].one == 1
    tables = spark.sql(f"SHOW TABLES IN {quoted(database)}").where("NOT isTemporary").collect()
    assert [row.tableName for row in tables] == ["flux_request"]


def test_a_name_that_spark_refuses(spark: SparkSession, out: Path) -> None:
    """Is quoted, so it stays a name, and refused in one sentence."""
    name = "it's`; DROP DATABASE default; --"
    with pytest.raises(InputError, match="the catalog refuses the tables"):
        register_tables(spark, out, name)
    (table,) = (table for table in catalog_tables(Store(out), name) if table.name.endswith(".`flux_request`"))
    assert table.name == "`it's``; DROP DATABASE default; --`.`flux_request`"


def test_a_folder_without_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the folder has no tables; write them with"):
        catalog_tables(Store(tmp_path / "none"), "flux")


def test_two_tables_of_one_name_are_refused(out: Path, tmp_path: Path) -> None:
    """Errors of protocol `flux`, and a message `Errors` of the same protocol."""
    copy = Path(shutil.copytree(out, tmp_path / "copy"))
    shutil.copytree(copy / "typed/flux/Request", copy / "typed/flux/Errors")
    with pytest.raises(
        InputError, match=r"the tables typed/flux/\w+ and typed/flux/\w+ would both be .*flux_errors"
    ):
        catalog_tables(Store(copy), "flux")


def test_iceberg_adds_the_files(out: Path, tmp_path: Path) -> None:
    """Without a copy: `add_files` reads the footers. The partition column is not in the files, so it is added."""
    from pyiceberg.catalog.sql import SqlCatalog  # takes a second in every worker that collects tests

    folder = out / "typed/flux/Request"
    files = sorted(folder.rglob("*.parquet"))
    catalog = SqlCatalog("test", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("flux")
    table = catalog.create_table("flux.request", schema=pq.read_schema(files[0]).remove_metadata())
    table.add_files([str(file) for file in files])
    expected = ds.dataset(files).to_table().sort_by("ts").to_pylist()
    assert table.scan().to_arrow().sort_by("ts").to_pylist() == expected


def test_delta_converts_the_folder(out: Path, tmp_path: Path) -> None:
    """In place: a log beside the files. Here in a copy, because the other tests share the folder."""
    folder = tmp_path / "Request"
    for file in (out / "typed/flux/Request").rglob("*.parquet"):
        target = folder / file.relative_to(out / "typed/flux/Request")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    expected = ds.dataset(folder, partitioning="hive").to_table()
    day = Schema([Field("date", PrimitiveType("date"))])
    convert_to_deltalake(folder, partition_by=day, partition_strategy="hive")
    found = pa.table(DeltaTable(folder).to_pyarrow_table())
    assert found.num_rows == expected.num_rows
    for name in set(expected.column_names) - {"date"}:
        ours, theirs = (table.sort_by("ts")[name].to_pylist() for table in (found, expected))
        assert ours == theirs, name
    assert sorted(map(str, found["date"].to_pylist())) == sorted(map(str, expected["date"].to_pylist()))


def test_a_variant_has_one_layout_and_stays(spark: SparkSession, tmp_path: Path) -> None:
    """On request; an earlier version's folder, whose manifest does not say what JSON became, keeps it too."""
    out = tmp_path / "out"
    run(spark, out, 0, b"\xff", json_as="variant")
    manifest = out / "manifest.json"
    stated = msgspec.json.decode(manifest.read_bytes())
    assert stated["asked"].pop("json_as") == "variant"
    manifest.write_bytes(msgspec.json.encode(stated))
    run(spark, out, 1, b'{"rank": 1.5}')
    assert read_manifest(out).asked.json_as == "variant"
    with pytest.raises(InputError, match="begun with json_as variant, not string; ask for the same"):
        check_same(Asked(layers=("frames", "typed"), json_as="string"), read_manifest(out), out)
    files = Store(out).files("typed/flux/Request")
    assert len(files) == 2
    types = {str(pq.read_schema(file).field("payload_json").type) for file in files}
    assert len(types) == 1
    assert "typed_value" not in types.pop()
    table = Store(out).typed(spark, "flux")["Request"]
    assert [row[0] and row[0].toPython() for row in table.orderBy("ts").select("payload_json").collect()] == [
        None, {"rank": 1.5},
    ]  # fmt: skip
