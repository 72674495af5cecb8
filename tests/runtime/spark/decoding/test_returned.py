"""What a worker gives back; that Java makes of it the rows of the other backends is `test_backends`' part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StructType

from specwire.generated import flux
from specwire.generated.flux import columns
from specwire.runtime.spark.decoding.opaque import flags_of, opaque_fields
from specwire.runtime.spark.decoding.returned import MESSAGE, OCTETS, Returned, count_octets, returned_for
from specwire.runtime.spark.decoding.words import Bits, share_words
from specwire.runtime.spark.protocols import known_protocols, load_layout, load_schemas
from specwire.runtime.spark.session.opening import SETTINGS

FRAMES = pa.list_(pa.binary())
REQUEST = flux.Request(
    topic="kvs.get", payload=b"x" * 64, userid=2**32 - 1, rolemask=1, nodeid=0x80000000, matchtag=7
).encode()
EVENT = flux.Event(topic="hb", sequence=2).encode()
WIDE = ("norfab", "norfab_ascii")
"""Protocols with so many fields that they keep their structs."""


def returned_of(name: str) -> Returned:
    """Return what a worker gives back for a protocol, as a worker gets it."""
    pickler: Any = cloudpickle
    found: Returned = pickler.loads(
        pickler.dumps(returned_for(load_schemas(name).DECODED, load_layout(name)))
    )
    return found


def number(row: dict[str, Any], bits: Bits) -> int:
    """Return a number of a row as Java takes it: of the word's 64 bits, whatever its sign."""
    word = int(row[f"_word_{bits.word}"]) % 2**64
    return (word >> bits.shift) & ((1 << bits.width) - 1)


@pytest.mark.parametrize("type", [FRAMES, pa.large_list(pa.large_binary())])
def test_octets_are_those_of_all_frames(type: pa.DataType) -> None:
    """Of a part of an array too, and where nothing is there."""
    rows: pa.Array[Any] = pa.array([[b"zz"], None, [], [None], [b"a", None, b"bc"]], type)
    assert count_octets(rows).to_pylist() == [2, 0, 0, 0, 3]
    assert count_octets(rows[1:]).to_pylist() == [0, 0, 0, 3]
    assert count_octets(rows[3:4]).to_pylist() == [0]
    assert count_octets(rows[:0]).to_pylist() == []
    assert count_octets(pa.array([None, []], type)).to_pylist() == [0, 0]


def test_numbers_stand_side_by_side() -> None:
    """In the first word that has room; what is taken of the first stays free."""
    places = share_words(48, {"a": 8, "b": 32, "c": 32, "d": 8, "e": 1})
    assert places == {
        "a": Bits(0, 48, 8),
        "b": Bits(1, 0, 32),
        "c": Bits(1, 32, 32),
        "d": Bits(0, 56, 8),
        "e": Bits(2, 0, 1),
    }


def test_numbers_are_written_beside_others() -> None:
    """The highest bit too; null and what other messages have stay as they are."""
    words = {0: np.array([5, 6, 7], np.uint64)}
    Bits(0, 32, 32).put(words, pa.array([2**32 - 1, None, 1], pa.int64()))
    assert words[0].tolist() == [0xFFFFFFFF_00000005, 6, 0x1_00000007]


def test_fields_of_different_messages_share_places() -> None:
    """Numbers with numbers, texts with texts; the first word tells which message a row is."""
    returned = returned_of("flux")
    rows: pa.Array[Any] = pa.array([REQUEST, EVENT, [b"bad"], None], FRAMES)
    request, event = returned.shared["Request"], returned.shared["Event"]
    assert request.bits["nodeid"] == event.bits["sequence"], "the third number of four octets"
    assert request.columns["topic"] == event.columns["topic"]
    assert len(returned.type) == 3 + 1 + 2, "words, the error, routes and topic"
    found: list[Any] = returned.pack(columns.decode(rows), rows).to_pylist()
    assert [number(row, OCTETS) for row in found] == [91, 22, 3, 0]
    names = [message.name for message in returned.messages]
    assert [number(row, MESSAGE) for row in found] == [
        names.index("Request") + 1,
        names.index("Event") + 1,
        0,
        0,
    ]
    assert [row["_error"] is not None for row in found] == [False, False, True, True]
    assert [row[event.columns["topic"]] for row in found] == ["kvs.get", "hb", None, None]
    assert {name: number(found[0], bits) for name, bits in request.bits.items()} == {
        "flags": 0x0B, "userid": 2**32 - 1, "rolemask": 1, "nodeid": 0x80000000, "matchtag": 7,
    }  # fmt: skip
    assert number(found[1], event.bits["sequence"]) == 2


def test_payloads_stay_in_java() -> None:
    """Frames that are a field as they are, at a place that the first frame or the last one tells."""
    opaque = {
        (name, message.class_name): set(opaque_fields(message))
        for name in known_protocols()
        for message in load_layout(name).messages
        if opaque_fields(message)
    }
    assert opaque["flux", "Request"] == opaque["cmb1_json", "Event"] == {"payload"}
    assert opaque["filemq", "Cheezburger"] == {"chunk"}
    assert opaque["norfab", "PostWorker"] == {"client_address", "body"}
    assert opaque["norfab", "Open"] == {"body"}
    assert {name for name, _ in opaque} == {"cmb1", "cmb1_json", "filemq", "flux", *WIDE}, (
        "zre has lists of frames, zmtp octets behind others in a frame, libfilemq no frame of octets"
    )
    assert ("norfab", "Disconnect") not in opaque, "its body may be missing without a flag that says so"
    assert ("flux", "Control") not in opaque
    flags = flags_of(load_layout("flux").messages[0])
    assert flags is not None
    assert flags.name == "flags"


@pytest.mark.parametrize("name", known_protocols())
def test_every_field_has_a_place(name: str) -> None:
    """Of its own type and of its own in its message; protocols with many fields keep their structs."""
    decoded, returned = load_schemas(name).DECODED, returned_of(name)
    layouts = {message.class_name: message for message in load_layout(name).messages}
    assert bool(returned.shared) == (name not in WIDE)
    for message, shared in returned.shared.items():
        type = decoded[message].dataType
        assert isinstance(type, StructType)
        places = [*shared.bits, *shared.columns, *opaque_fields(layouts[message])]
        assert sorted(places) == sorted(type.names)
        taken = [
            (bits.word, bit)
            for bits in (OCTETS, MESSAGE, *shared.bits.values())
            for bit in range(bits.shift, bits.shift + bits.width)
        ]
        assert len(set(taken)) == len(taken)
        assert all(word < returned.words and bit < 64 for word, bit in taken)
        assert len(set(shared.columns.values())) == len(shared.columns)
        for field, place in shared.columns.items():
            assert returned.type[place].dataType == type[field].dataType
    words = [field for field in returned.type if field.name.startswith("_word_")]
    assert [field.dataType for field in words] == [LongType()] * returned.words
    if not returned.shared:
        rest = [name for name in decoded.names if name not in ("_message", "_frames")]
        assert returned.type.names[returned.words :] == rest


def test_sessions_give_functions_rows() -> None:
    """Made into columns and back, as Spark does by itself above a Parquet scan, they take 1.7 times as long."""
    assert SETTINGS["spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"] == "false"
