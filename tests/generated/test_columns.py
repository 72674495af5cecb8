"""Columns: one schema in two spellings, and rows that are messages, errors or nothing at all."""

from __future__ import annotations

from decimal import Decimal
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyspark.sql.types as spark
import pytest

from specwire.generated import filemq, flux, libfilemq
from specwire.generated.errors import DecodeError
from tests.generated.agreement import corpus, fields_of, message_layout
from tests.generated.hand_vectors import HAND
from tests.generated.vectors import PACKAGES, package, recorded

FRAMES = pa.list_(pa.binary())


def batch_of(module: ModuleType, rows: list[Any]) -> pa.RecordBatch:
    batch = module.columns.decode(pa.array(rows, FRAMES))
    assert isinstance(batch, pa.RecordBatch)
    return batch


def as_spark(type: pa.DataType) -> spark.DataType:
    """Return what Spark calls an Arrow type; only signed types have a twin."""
    simple: dict[pa.DataType, spark.DataType] = {
        pa.bool_(): spark.BooleanType(),
        pa.int8(): spark.ByteType(),
        pa.int16(): spark.ShortType(),
        pa.int32(): spark.IntegerType(),
        pa.int64(): spark.LongType(),
        pa.float32(): spark.FloatType(),
        pa.float64(): spark.DoubleType(),
        pa.decimal128(20, 0): spark.DecimalType(20, 0),
        pa.string(): spark.StringType(),
        pa.binary(): spark.BinaryType(),
    }
    if pa.types.is_list(type):
        return spark.ArrayType(as_spark(type.value_type), type.value_field.nullable)
    if pa.types.is_struct(type):
        return spark.StructType([as_spark_field(type.field(i)) for i in range(type.num_fields)])
    return simple[type]


def as_spark_field(field: pa.Field[Any]) -> spark.StructField:
    metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    return spark.StructField(field.name, as_spark(field.type), field.nullable, metadata)


@pytest.mark.parametrize("name", PACKAGES)
def test_arrow_and_spark_schemas_are_twins(name: str) -> None:
    module = package(name)
    twin = spark.StructType([as_spark_field(field) for field in module.columns.SCHEMA])
    assert twin.jsonValue() == module.schema.DECODED.jsonValue()
    assert {n: module.schema.DECODED[n].dataType for n in module.MESSAGES} == dict(module.schema.SCHEMAS)


@pytest.mark.parametrize("name", PACKAGES)
def test_columns_are_messages_and_their_fields(name: str) -> None:
    module = package(name)
    schema = module.columns.SCHEMA
    assert schema.names == ["_message", "_error", "_frames", *module.MESSAGES]
    assert len({column.lower() for column in schema.names}) == len(schema.names)
    assert all(field.nullable for field in schema)
    for class_name in module.MESSAGES:
        names = [field.name for field in fields_of(message_layout(module, class_name))]
        column = schema.field(class_name)
        assert [field.name for field in column.type] == (names or ["_present"])
        assert b"comment" in column.metadata
        for field in column.type:
            if field.name != "_present":
                assert {b"comment", b"source"} <= set(field.metadata)


@pytest.mark.parametrize("name", PACKAGES)
def test_recorded_messages_become_rows(name: str) -> None:
    """Row by row what `decode` says, good or bad."""
    module = package(name)
    rows = [list(v.frames) for v in [*recorded(name), *(h for h in HAND if h.package == name)]]
    batch = batch_of(module, rows)
    batch.validate(full=True)
    assert batch.schema.equals(module.columns.SCHEMA, check_metadata=True)
    assert batch.num_rows == len(rows)
    for frames, row in zip(rows, batch.to_pylist(), strict=True):
        there = {class_name for class_name in module.MESSAGES if row[class_name] is not None}
        try:
            message = module.decode(frames)
        except DecodeError as error:
            assert (row["_message"], there, row["_frames"]) == (None, set(), frames)
            assert row["_error"] == {
                "message": error.message_name, "field": error.field, "frame": error.frame,
                "offset": error.offset, "kind": error.kind, "text": str(error),
            }  # fmt: skip
            continue
        class_name = type(message).__name__
        assert (row["_message"], there, row["_error"], row["_frames"]) == (
            class_name,
            {class_name},
            None,
            None,
        )
        for field in fields_of(message_layout(module, class_name)):
            value = message.wire_flags if field.flags else getattr(message, field.attribute)
            assert _plain(row[class_name][field.name]) == _plain(value), field.name


def _plain(value: Any) -> Any:
    """A list of name and value structs is a dictionary in wire order."""
    if isinstance(value, list | tuple):
        return [tuple(item.values()) if isinstance(item, dict) else item for item in value]
    return value


def test_largest_integers() -> None:
    top = 2**64 - 1
    row = batch_of(filemq, [filemq.Nom(top).encode()]).to_pylist()[0]
    assert row["Nom"] == {"credit": Decimal(top)}
    message = flux.Request(topic="a", flags=0xF4, userid=2**32 - 1, nodeid=2**32 - 1, matchtag=2**32 - 1)
    row = batch_of(flux, [message.encode()]).to_pylist()[0]["Request"]
    assert (row["flags"], row["userid"], row["nodeid"], row["matchtag"]) == (0xFD, *[2**32 - 1] * 3)


def test_absent_parts_are_null_and_empty_ones_are_not() -> None:
    rows = [flux.Request(routes=None).encode(), flux.Request(topic="", payload=b"").encode()]
    none, empty = (row["Request"] for row in batch_of(flux, rows).to_pylist())
    assert (none["routes"], none["topic"], none["payload"]) == (None, None, None)
    assert (empty["routes"], empty["topic"], empty["payload"]) == ([], "", b"")


def test_message_without_fields_is_present() -> None:
    row = batch_of(filemq, [filemq.Hugz().encode()]).to_pylist()[0]
    assert (row["_message"], row["Hugz"], row["HugzOk"]) == ("Hugz", {"_present": True}, None)


def test_dictionaries_keep_repeats() -> None:
    message = libfilemq.Icanhaz("/", options=(("a", "1"), ("a", "2")))
    row = batch_of(libfilemq, [message.encode()]).to_pylist()[0]
    assert row["Icanhaz"]["options"] == [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
    assert row["Icanhaz"]["cache"] == []


@pytest.mark.parametrize("name", PACKAGES)
def test_rows_that_are_no_frames(name: str) -> None:
    """A null row, an empty one, null frames: errors like any other, in their place."""
    module = package(name)
    rows = [None, [], [None], [None, b"x", None], [b""]]
    found = batch_of(module, rows).to_pylist()
    assert [row["_message"] for row in found] == [None] * 5
    assert [row["_frames"] for row in found] == rows
    assert [row["_error"]["kind"] for row in found][:2] == ["frames", "frames"]
    assert all(row["_error"]["text"] for row in found)


def test_null_frame_is_not_an_empty_one() -> None:
    """A frame that a capture left out is not known; the message that it would make if empty is not made up."""
    topic, header = b"a", flux.Request(topic="a").encode()[-1]
    empty, null = batch_of(flux, [[b"", topic, header], [None, topic, header]]).to_pylist()
    assert empty["Request"]["routes"] == []
    assert (null["Request"], null["_frames"]) == (None, [None, topic, header])
    assert null["_error"] == {
        "message": None, "field": "frames", "frame": 0, "offset": None, "kind": "frames",
        "text": "frames: expected octets, found null [columns]",
    }  # fmt: skip


@pytest.mark.parametrize("name", PACKAGES)
def test_no_rows(name: str) -> None:
    module = package(name)
    empty = pa.array([], FRAMES)
    for array in (empty, pa.chunked_array([empty])):
        batch = module.columns.decode(array)
        assert batch.num_rows == 0
        assert batch.schema.equals(module.columns.SCHEMA, check_metadata=True)


def test_chunks_and_wide_offsets() -> None:
    frames = filemq.Nom(1).encode()
    chunked = pa.chunked_array([pa.array([frames], FRAMES), pa.array([frames, None], FRAMES)])
    wide = pa.array([frames, frames, None], pa.large_list(pa.large_binary()))
    for array in (chunked, wide):
        assert filemq.columns.decode(array).column("_message").to_pylist() == ["Nom", "Nom", None]


@pytest.mark.parametrize("name", PACKAGES)
def test_tables_are_nullable_as_the_layout_is(name: str) -> None:
    """What a table says is never null is not, in any recorded message; the fields are those of the struct."""
    module = package(name)
    batch = batch_of(module, [list(frames) for frames in corpus(name)])
    for message, table in module.schema.TABLES.items():
        fields = module.schema.SCHEMAS[message]
        assert [field.name for field in table][: len(fields)] == fields.fieldNames()
        rows: Any = batch.column(message).drop_null()
        for own, field in zip(table, fields, strict=False):
            assert (own.dataType, own.metadata) == (field.dataType, field.metadata)
            assert own.nullable or not rows.field(own.name).null_count
        names = [field.name.casefold() for field in table]
        assert len(names) == len(set(names))
