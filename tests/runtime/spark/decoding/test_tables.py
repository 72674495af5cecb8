"""Typed tables: the written Parquet has the schema that the generated package states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from specwire.generated.filemq import schema
from specwire.generated.flux import schema as flux_schema
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.options import CAPTURE, NOTED
from specwire.runtime.spark.decoding.tables import ERRORS, tables
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols, load_schemas
from specwire.runtime.spark.reading.capture import read_capture
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
    return {name: spark.read.parquet(str(folder / name)) for name in [*schema.TABLES, ERRORS]}


@pytest.mark.parametrize("message", list(schema.TABLES))
def test_parquet_has_the_generated_schema(written: dict[str, DataFrame], message: str) -> None:
    """Names, types and metadata, for messages that never occurred as well; only nullability is Parquet's."""
    found = written[message].schema
    noted = len(NOTED)
    assert StructType(found.fields[:noted]) == _nullable(NOTED)
    assert StructType(found.fields[noted:]) == _nullable(schema.TABLES[message])


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
    request = spark.read.parquet(str(tmp_path / "Request"))
    assert StructType(request.schema.fields[len(NOTED) :]) == _nullable(flux_schema.TABLES["Request"])
    (row,) = request.collect()
    assert (row.topic, bytes(row.payload), row.matchtag) == ("attr.get", b'{"name":"size"}\0', 1)
    assert row.payload_json == '{"name":"size"}'
    (error,) = spark.read.parquet(str(tmp_path / ERRORS)).collect()
    assert (error.seq, error.field, error.frame, error.offset) == (1, "matchtag", 2, 16)


@pytest.mark.parametrize("protocol", known_protocols())
def test_tables_of_every_protocol_have_the_generated_schema(spark: SparkSession, protocol: str) -> None:
    """And, whatever messages and fields are called, columns that Spark can tell apart."""
    schemas = load_schemas(protocol).TABLES
    decoded = decode(spark.createDataFrame([], CAPTURE), protocol)
    found = tables(decoded, protocol)
    assert list(found) == [*schemas, ERRORS]
    for name, fields in schemas.items():
        assert StructType(found[name].schema.fields[len(NOTED) :]) == fields
    for table in [decoded, *found.values()]:
        names = [name.casefold() for name in table.columns]
        assert len(names) == len(set(names))


def test_flags_are_booleans_and_json_is_text(spark: SparkSession, tmp_path: Path) -> None:
    """A boolean for each bit; JSON with or without a final NUL, null where it is invalid or too deep."""
    payloads = {
        b'{"a": [1,"x"]}\0': '{"a": [1,"x"]}', b"7": "7", b"null\0": "null", b"": None, b"{": None,
        b'"\xff"\0': None, b"[" * 5000: None,
    }  # fmt: skip
    topic, _, header = captures.FLUX_ATTR_GET
    messages = [("C", [topic, payload, header]) for payload in payloads]
    bare = bytes.fromhex("8e010164") + header[4:]  # private, streaming, noresponse
    messages.append(("C", [bare]))
    capture = captures.write_capture(tmp_path / "capture", messages, protocol="flux")
    decoded = decode(read_capture(spark, capture), "flux")
    table = tables(decoded)["Request"].drop("payload").orderBy("seq")
    *rows, last = table.collect()
    assert [row.payload_json for row in rows] == list(payloads.values())
    variants = tables(decoded, json_as="variant")["Request"].orderBy("seq").select("payload_json").collect()
    there = [(text, row[0]) for text, row in zip(payloads.values(), variants, strict=False)]
    assert [found and found.toPython() for text, found in there if text is None] == [None] * 4
    assert [found.toPython() for text, found in there if text is not None] == [{"a": [1, "x"]}, 7, None]
    bits = [name for name in table.columns if name.startswith("flags_")]
    assert [name for name in bits if rows[0][name]] == ["flags_topic", "flags_payload"]
    assert [name for name in bits if last[name]] == ["flags_noresponse", "flags_private", "flags_streaming"]
    assert (last.flags, last.payload_json, table.schema["flags_private"].nullable) == (0x64, None, False)
    assert table.schema["flags_private"].metadata["source"] == table.schema["flags"].metadata["source"]
    plain = tables(decoded, flags=False, json_as=None)["Request"]
    assert not [name for name in plain.columns if name.startswith(("flags_", "payload_"))]


def test_a_dictionary_is_a_map_only_where_no_name_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    """On request; the pairs stay as they are."""
    twice = [bytes.fromhex("aaa305012f0203613d3103613d3200")]
    messages = [("C", captures.ICANHAZ), ("C", twice)]
    decoded = decode(read_capture(spark, captures.write_capture(tmp_path / "capture", messages)), "filemq")
    once, lost = tables(decoded, maps=True)["Icanhaz"].orderBy("seq").collect()
    assert (once.options_map, once.cache_map) == ({"RESYNC": "1"}, {"a.jpg": "DA39"})
    assert (lost.options_map, lost.cache_map) == (None, {})
    assert [(pair.name, pair.value) for pair in lost.options] == [("a", "1"), ("a", "2")]


def test_a_required_field_that_is_null_is_told(spark: SparkSession) -> None:
    """Rows that something else wrote must not make a zero of it."""
    rows = spark.sql(
        "select 'Nom' as _message, struct(cast(null as decimal(20,0)) as credit) as Nom, null as _error"
    )
    table = tables(rows.withColumn("_frames", F.lit(None)), "filemq")["Nom"]
    assert not table.schema["credit"].nullable
    with pytest.raises(PySparkException, match=r"Nom\.credit is null, which no message has"):
        table.collect()


def test_rows_say_what_they_were_decoded_as(spark: SparkSession, tmp_path: Path) -> None:
    """Written and read back, too; where they do not, the protocol must be named."""
    decoded = decode(spark.createDataFrame([], CAPTURE), "filemq", message="Nom", record_id=True)
    decoded.write.parquet(str(tmp_path / "decoded"))
    found = tables(spark.read.parquet(str(tmp_path / "decoded")))
    assert list(found) == ["Nom", ERRORS]
    assert found["Nom"].columns[len(NOTED) :] == ["_record_id", "credit"]
    with pytest.raises(InputError, match="does not state its protocol: name it"):
        tables(decoded.withMetadata("_message", {}))
    with pytest.raises(InputError, match="has no column '_message': it must be rows of decode"):
        tables(decoded.drop("_message"))


def _nullable(fields: StructType) -> StructType:
    """Return a schema with everything nullable, as Parquet gives it back."""

    def relax(part: Any) -> Any:
        if isinstance(part, dict):
            required = {"nullable", "containsNull"}
            return {key: True if key in required else relax(item) for key, item in part.items()}
        return [relax(item) for item in part] if isinstance(part, list) else part

    return StructType.fromJson(relax(fields.jsonValue()))
