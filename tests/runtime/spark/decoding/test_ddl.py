"""`specwire schema --format ddl`: Spark reads what it prints, and finds the schema of the written Parquet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.options import NOTED
from specwire.runtime.spark.decoding.tables import column_lines, tables
from specwire.runtime.spark.protocols import known_protocols, load_schemas
from specwire.runtime.spark.reading.capture import read_capture
from tests.runtime.cli.commands import specwire
from tests.runtime.spark import captures

pytestmark = pytest.mark.spark


def _read(ddl: str) -> StructType:
    """Return the columns as Spark's own parser reads them."""
    read = StructType.fromDDL(ddl)
    assert isinstance(read, StructType)
    return read


def test_printed_ddl_is_the_schema_of_the_written_parquet(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Flux, of which a request was captured: names, types and comments of every table."""
    capture = captures.write_capture(tmp_path / "capture", [("C", captures.FLUX_ATTR_GET)])
    decoded = decode(read_capture(spark, capture), "flux")
    for name, table in tables(decoded, "flux").items():
        if name not in load_schemas("flux").TABLES:
            continue
        table.write.parquet(str(tmp_path / name))
        columns = spark.read.parquet(str(tmp_path / name)).schema.fields[len(NOTED) :]
        printed = specwire(capfd, "schema", "flux", "--format", "ddl", "--message", name)
        read = _read(printed.out)
        assert [(f.name, f.dataType) for f in read.fields] == [(f.name, f.dataType) for f in columns]
        assert [f.metadata["comment"] for f in read.fields] == [f.metadata["comment"] for f in columns]


@pytest.mark.parametrize("protocol", known_protocols())
def test_ddl_of_every_message_is_read_back(spark: SparkSession, protocol: str) -> None:
    """Comments with quotes and backslashes included."""
    for schema in load_schemas(protocol).TABLES.values():
        read = _read(", ".join(column_lines(schema)))
        told = [(f.name, f.dataType, f.nullable) for f in read.fields]
        assert told == [(f.name, f.dataType, f.nullable) for f in schema.fields]
        comments = [f.metadata.get("comment") for f in schema.fields]
        assert [f.metadata.get("comment") for f in read.fields] == comments
