"""What a worker gives back; that Java makes of it the rows of the other backends is `test_backends`' part."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from specwire.generated import flux
from specwire.generated.flux import columns, schema
from specwire.runtime.spark.decoding.returned import OCTETS, count_octets, returned_for
from specwire.runtime.spark.protocols import known_protocols, load_schemas
from specwire.runtime.spark.session.opening import SETTINGS

FRAMES = pa.list_(pa.binary())
REQUEST = flux.Request(topic="kvs.get", payload=b"x" * 64, matchtag=1).encode()
EVENT = flux.Event(topic="hb", sequence=2).encode()


@pytest.mark.parametrize("type", [FRAMES, pa.large_list(pa.large_binary())])
def test_octets_are_those_of_all_frames(type: pa.DataType) -> None:
    """Of a part of an array too, and where nothing is there."""
    rows: pa.Array[Any] = pa.array([[b"zz"], None, [], [None], [b"a", None, b"bc"]], type)
    assert count_octets(rows).to_pylist() == [2, 0, 0, 0, 3]
    assert count_octets(rows[1:]).to_pylist() == [0, 0, 0, 3]
    assert count_octets(rows[3:4]).to_pylist() == [0]
    assert count_octets(rows[:0]).to_pylist() == []
    assert count_octets(pa.array([None, []], type)).to_pylist() == [0, 0]


def test_fields_of_different_messages_share_places() -> None:
    """Numbers with numbers, texts with texts; what Java makes a struct of says which message a row is."""
    returned = returned_for(schema.DECODED)
    rows: pa.Array[Any] = pa.array([REQUEST, EVENT, [b"bad"], None], FRAMES)
    places = returned.places
    assert places["Request"]["matchtag"] == places["Control"]["status"], "the fourth BIGINT of each"
    assert places["Request"]["payload"] == places["Event"]["payload"]
    assert len(returned.type) == 3 + 8, (
        "octets, message, error; a request has eight fields, no other message more"
    )
    found: list[Any] = returned.pack(columns.decode(rows), rows).to_pylist()
    assert [row[OCTETS.name] for row in found] == [91, 22, 3, 0]
    assert [row["_message"] for row in found] == ["Request", "Event", None, None]
    assert [row["_error"] is not None for row in found] == [False, False, True, True]
    assert [row[places["Event"]["topic"]] for row in found] == ["kvs.get", "hb", None, None]
    assert [row[places["Request"]["payload"]] for row in found] == [b"x" * 64, None, None, None]
    assert (found[0][places["Request"]["matchtag"]], found[1][places["Event"]["sequence"]]) == (1, 2)


@pytest.mark.parametrize("name", known_protocols())
def test_every_field_has_a_place(name: str) -> None:
    """Of its own type and of its own in its message; protocols with many fields keep their structs."""
    decoded = load_schemas(name).DECODED
    returned = returned_for(decoded)
    assert bool(returned.places) == (name not in ("norfab", "norfab_ascii"))
    for message, places in returned.places.items():
        type = decoded[message].dataType
        assert isinstance(type, StructType)
        assert len(set(places.values())) == len(type)
        assert [returned.type[place].dataType for place in places.values()] == [
            field.dataType for field in type
        ]
    if not returned.places:
        assert returned.type.names[1:] == [field.name for field in decoded if field.name != "_frames"]


def test_sessions_give_functions_rows() -> None:
    """Made into columns and back, as Spark does by itself above a Parquet scan, they take 1.7 times as long."""
    assert SETTINGS["spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"] == "false"
