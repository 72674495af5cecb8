"""Typed tables: the written Parquet has the schema that the generated package states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from specwire.generated.filemq import schema
from specwire.generated.flux import schema as flux_schema
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.noted import NOTED
from specwire.runtime.spark.decoding.tables import ERRORS, tables
from specwire.runtime.spark.protocols import known_protocols, load_schemas
from specwire.runtime.spark.reading.capture import CAPTURE, read_capture, read_parquet
from tests.runtime.spark import captures

pytestmark = pytest.mark.spark

MESSAGES = [
    ("C", captures.OHAI),
    ("S", captures.OHAI_OK),
    ("C", captures.NOM),
    ("S", captures.CHEEZBURGER),
    ("S", captures.DELETION),
    ("C", captures.SHORT_NOM),
]


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """The tables of a small capture, written and read back."""
    folder = tmp_path_factory.mktemp("tables")
    capture = captures.write_capture(folder / "capture", MESSAGES)
    decoded = decode(read_capture(spark, capture), "filemq").persist()
    for name, table in tables(decoded, "filemq").items():
        table.write.parquet(str(folder / name))
    decoded.unpersist()
    return {name: read_parquet(spark, folder / name) for name in [*schema.SCHEMAS, ERRORS]}


@pytest.mark.parametrize("message", list(schema.SCHEMAS))
def test_parquet_has_the_generated_schema(written: dict[str, DataFrame], message: str) -> None:
    """Names, types and metadata, for messages that never occurred as well; only nullability is Parquet's."""
    found = written[message].schema
    noted = len(NOTED)
    assert StructType(found.fields[:noted]) == _nullable(NOTED)
    assert StructType(found.fields[noted:]) == _nullable(schema.SCHEMAS[message])


def test_each_message_is_in_its_table(written: dict[str, DataFrame]) -> None:
    """And in no other."""
    counts = {name: table.count() for name, table in written.items()}
    assert {name: count for name, count in counts.items() if count} == {
        "Ohai": 1,
        "OhaiOk": 1,
        "Nom": 1,
        "Cheezburger": 2,
        ERRORS: 1,
    }


def test_fields_are_columns(written: dict[str, DataFrame]) -> None:
    """A query needs no struct."""
    rows = written["Cheezburger"].orderBy("sequence").select("operation", "filename", "chunk").collect()
    assert [(row.operation, row.filename, bytes(row.chunk)) for row in rows] == [
        (1, "a.jpg", bytes.fromhex("000164617461")),
        (2, "a.jpg", b""),
    ]


def test_errors_keep_the_frames(written: dict[str, DataFrame]) -> None:
    """The finding as columns, with the frames as they came."""
    (row,) = written[ERRORS].collect()
    assert (row.message, row.field, row.frame, row.offset, row.kind) == ("NOM", "credit", 0, 3, "length")
    assert (row.seq, row.sender) == (5, "C")
    assert [bytes(frame) for frame in row.frames] == captures.SHORT_NOM


def test_flux_is_read_and_written_by_its_own_schema(spark: SparkSession, tmp_path: Path) -> None:
    """A request that a deployed broker was sent, and the same with its last octet cut off."""
    messages = [
        ("C", captures.FLUX_ATTR_GET),
        ("C", [*captures.FLUX_ATTR_GET[:-1], captures.FLUX_ATTR_GET[-1][:-1]]),
    ]
    capture = captures.write_capture(tmp_path / "capture", messages, protocol="flux")
    found = tables(decode(read_capture(spark, capture), "flux"), "flux")
    for name, table in found.items():
        table.write.parquet(str(tmp_path / name))
    request = read_parquet(spark, tmp_path / "Request")
    assert StructType(request.schema.fields[len(NOTED) :]) == _nullable(flux_schema.SCHEMAS["Request"])
    (row,) = request.collect()
    assert (row.topic, bytes(row.payload), row.matchtag) == ("attr.get", b'{"name":"size"}\0', 1)
    (error,) = read_parquet(spark, tmp_path / ERRORS).collect()
    assert (error.seq, error.field, error.frame, error.offset) == (1, "matchtag", 2, 16)


@pytest.mark.parametrize("protocol", known_protocols())
def test_tables_of_every_protocol_have_the_generated_schema(spark: SparkSession, protocol: str) -> None:
    """And, whatever messages and fields are called, columns that Spark can tell apart."""
    schemas = load_schemas(protocol).SCHEMAS
    decoded = decode(spark.createDataFrame([], CAPTURE), protocol)
    found = tables(decoded, protocol)
    assert list(found) == [*schemas, ERRORS]
    for name, fields in schemas.items():
        assert StructType(found[name].schema.fields[len(NOTED) :]) == fields
    for table in [decoded, *found.values()]:
        names = [name.casefold() for name in table.columns]
        assert len(names) == len(set(names))


def _nullable(fields: StructType) -> StructType:
    """Return a schema with everything nullable, as Parquet gives it back."""

    def relax(part: Any) -> Any:
        if isinstance(part, dict):
            required = {"nullable", "containsNull"}
            return {key: True if key in required else relax(item) for key, item in part.items()}
        return [relax(item) for item in part] if isinstance(part, list) else part

    return StructType.fromJson(relax(fields.jsonValue()))
