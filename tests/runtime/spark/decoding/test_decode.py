"""Decoding on Spark: each message in its struct, each fault in its row, each field with its metadata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from specwire.generated.filemq import schema
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.options import NOTED, name_noted
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.reading.capture import read_capture
from tests.runtime.spark import captures

pytestmark = pytest.mark.spark


@pytest.fixture
def decoded(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Six messages, two of them faulty."""
    messages = [
        ("C", captures.ICANHAZ),
        ("C", captures.NOM),
        ("S", captures.CHEEZBURGER),
        ("C", captures.SHORT_NOM),
        ("C", captures.UNKNOWN),
        ("S", captures.HUGZ),
    ]
    return decode(read_capture(spark, write(tmp_path, messages)), "filemq")


def write(folder: Path, messages: Sequence[captures.Message]) -> Path:
    """Write a capture of its own."""
    return captures.write_capture(folder / "capture", messages)


def collect(decoded: DataFrame) -> list[Row]:
    """Return the rows in the order of the capture."""
    return decoded.orderBy("seq").collect()


def test_each_row_has_its_message(decoded: DataFrame) -> None:
    """One struct a row is not null, and `_message` names it."""
    for row in collect(decoded):
        filled = [name for name in schema.SCHEMAS if row[name] is not None]
        assert filled == ([row["_message"]] if row["_message"] else [])
    assert [row["_message"] for row in collect(decoded)] == [
        "Icanhaz",
        "Nom",
        "Cheezburger",
        None,
        None,
        "Hugz",
    ]


def test_fields_have_the_values_on_the_wire(decoded: DataFrame) -> None:
    """Values derived by hand from the specification."""
    icanhaz, nom, cheezburger, *_ = collect(decoded)
    assert icanhaz["Icanhaz"].path == "/photos"
    assert icanhaz["Icanhaz"].options == [Row(name="RESYNC", value="1")]
    assert icanhaz["Icanhaz"].cache == [Row(name="a.jpg", value="DA39")]
    assert nom["Nom"].credit == 1099511627776
    found = cheezburger["Cheezburger"]
    assert (found.sequence, found.operation, found.filename, found.offset) == (5, 1, "a.jpg", 4096)
    assert (found.headers, bytes(found.chunk)) == ([], bytes.fromhex("000164617461"))


def test_what_the_tap_noted_stays(decoded: DataFrame) -> None:
    """And the octets of all frames are counted."""
    row = collect(decoded)[2]
    noted = (row.protocol, row.tap, row.conversation, row.sender, row.peer, row.seq, row.mono)
    assert noted == ("filemq", "server-1-0", "c1", "S", "00aa", 2, 2_000_000)
    assert row.octets == sum(map(len, captures.CHEEZBURGER))


def test_a_faulty_row_says_where_and_keeps_its_frames(decoded: DataFrame) -> None:
    """Message, field, frame and offset as values, the finding as a sentence, the frames as they came."""
    short, unknown = collect(decoded)[3:5]
    error = short["_error"]
    assert (error.message, error.field, error.frame, error.offset, error.kind) == (
        "NOM",
        "credit",
        0,
        3,
        "length",
    )
    assert "NOM.credit at octet 3" in error.text
    assert [bytes(frame) for frame in short["_frames"]] == captures.SHORT_NOM
    assert (unknown["_error"].message, unknown["_error"].frame, unknown["_error"].offset) == (None, 0, 2)
    assert [bytes(frame) for frame in unknown["_frames"]] == captures.UNKNOWN


def test_sound_rows_keep_no_frames(decoded: DataFrame) -> None:
    """The fields hold it all."""
    assert decoded.where("_error is null and _frames is not null").count() == 0


def test_schema_is_the_generated_one(decoded: DataFrame) -> None:
    """With the metadata of every field, at every depth."""
    assert StructType(decoded.schema.fields[: len(NOTED)]) == NOTED
    message, *others = decoded.schema.fields[len(NOTED) :]
    assert others == schema.DECODED.fields[1:]
    stated = schema.DECODED["_message"]
    assert message == StructField(
        "_message", stated.dataType, True, {**stated.metadata, "protocol": "filemq"}
    )


def test_an_unknown_protocol_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """The sentence lists the known ones."""
    frame = read_capture(spark, write(tmp_path, [("C", captures.NOM)]))
    with pytest.raises(InputError, match=r"there is no protocol 'nosuch'; the known ones are .*filemq"):
        decode(frame, "nosuch")


def test_noted_columns_make_room_without_regard_to_case() -> None:
    """Spark cannot tell `peer` from `Peer`."""
    names = [field.name for field in name_noted(["Peer", "sender", "credit"])]
    assert names[6:8] == ["_sender", "_peer"]
    assert [name for name in names if name.startswith("_")] == ["_sender", "_peer"]
    assert name_noted([])[-1] == StructField("octets", LongType(), False, metadata=NOTED["octets"].metadata)
