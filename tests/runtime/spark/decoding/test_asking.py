"""What `decode` can be asked for: modes, some of the messages and columns, other types, what stands beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import LongType, StructType

from specwire.generated import libfilemq
from specwire.runtime.spark import decode, read
from specwire.runtime.spark.decoding.options import CAPTURE, NOTED
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols, load_schemas
from specwire.runtime.spark.session.java import describe_failure
from tests.runtime.spark import captures

pytestmark = pytest.mark.spark

MESSAGES = [
    ("C", captures.ICANHAZ),
    ("C", captures.NOM),
    ("S", captures.CHEEZBURGER),
    ("C", captures.SHORT_NOM),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of four messages, of which the last is faulty."""
    return captures.write_capture(tmp_path_factory.mktemp("asking") / "capture", MESSAGES)


@pytest.fixture
def captured(spark: SparkSession, folder: Path) -> DataFrame:
    """The messages of the capture."""
    return read(spark, folder)


def collect(decoded: DataFrame) -> list[Row]:
    """Return the rows in the order of the capture."""
    return decoded.orderBy("seq").collect()


def test_dropmalformed_leaves_faulty_rows_out(captured: DataFrame) -> None:
    """And no other; the columns stay."""
    dropped = decode(captured, "filemq", mode="DROPMALFORMED")
    assert [row.seq for row in collect(dropped)] == [0, 1, 2]
    assert dropped.schema == decode(captured, "filemq").schema


@pytest.mark.parametrize("backend", ["auto", "arrow"])
def test_failfast_names_file_message_field_and_offset(
    captured: DataFrame, folder: Path, backend: str
) -> None:
    """Even where the query looks at none of the decoded columns."""
    decoded = decode(captured, "filemq", backend, mode="FAILFAST")
    with pytest.raises(PySparkException) as caught:
        decoded.select("seq").collect()
    (segment,) = folder.iterdir()
    assert f"{segment.name}: message 3 of tap server-1-0, frame 0: NOM.credit at octet 3: " in (
        describe_failure(caught.value)
    )


def test_failfast_reads_what_is_sound(spark: SparkSession, tmp_path: Path) -> None:
    """As PERMISSIVE does."""
    captured = read(spark, captures.write_capture(tmp_path / "capture", MESSAGES[:3]))
    failfast, permissive = (decode(captured, "filemq", mode=mode) for mode in ("FAILFAST", "PERMISSIVE"))
    assert failfast.schema == permissive.schema
    assert collect(failfast) == collect(permissive)


@pytest.mark.parametrize("backend", ["auto", "arrow"])
def test_messages_are_decoded_once(
    captured: DataFrame, backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """However the rows are filtered: a filter below would bring a decoding of its own."""
    decoded = decode(captured, "filemq", backend, mode="FAILFAST", message="Nom")
    decoded.where("_message = 'Nom' and Nom.credit > 3").explain()
    plan = capfd.readouterr().out
    assert plan.count("decode_frames(") + plan.count("filemq.Decode.invoke(") == 1


def test_some_messages(captured: DataFrame) -> None:
    """Their rows and their columns, and the faulty rows, of which nobody knows what they should be."""
    decoded = decode(captured, "filemq", message=["Nom", "Hugz"])
    assert [(row.seq, row["_message"]) for row in collect(decoded)] == [(1, "Nom"), (3, None)]
    assert decoded.columns[len(NOTED) :] == ["_message", "_error", "_frames", "Nom", "Hugz"]


def test_some_columns(captured: DataFrame) -> None:
    """Noted ones, whole messages, single fields; what tells the rows apart stays."""
    decoded = decode(captured, "filemq", columns="Cheezburger.filename, SEQ, cheezburger.chunk, Nom")
    assert decoded.columns == ["seq", "_message", "_error", "_frames", "Nom", "Cheezburger"]
    burger, all_fields = decoded.schema["Cheezburger"].dataType, load_schemas("filemq").SCHEMAS["Cheezburger"]
    assert burger == StructType([all_fields["filename"], all_fields["chunk"]])
    rows = collect(decoded)
    assert rows[2].Cheezburger == Row(filename="a.jpg", chunk=bytes.fromhex("000164617461"))
    assert [row.Cheezburger for row in rows[:2]] == [None, None]


def test_what_can_stand_beside_the_messages(captured: DataFrame, folder: Path) -> None:
    """An id, the raw frames of every row, the file."""
    decoded = decode(captured, "filemq", record_id=True, record_frames=True, input_file=True)
    rows = collect(decoded)
    assert [row["_record_id"] for row in rows] == [f"server-1-0/{seq}" for seq in range(4)]
    assert [row["_record_frames"] for row in rows] == [frames for _, frames in MESSAGES]
    (segment,) = folder.iterdir()
    assert {row["_input_file"] for row in rows} == {segment.as_uri()}


def test_debug_shows_the_octets_of_each_field(captured: DataFrame) -> None:
    """Integers in their size, texts in UTF-8, dictionaries pair by pair; derived by hand from the frames."""
    rows = collect(decode(captured, "filemq", debug=True))
    icanhaz, nom, burger = rows[0].Icanhaz, rows[1].Nom, rows[2].Cheezburger
    assert (icanhaz.path_hex, icanhaz.options_hex) == (
        "2f70686f746f73",
        [Row(name="524553594e43", value="31")],
    )
    assert nom.credit_hex == "0000010000000000"
    assert (burger.sequence_hex, burger.operation_hex, burger.headers_hex) == ("0000000000000005", "01", [])
    assert burger.chunk_hex == "000164617461"


def test_large_numbers_are_decimals_or_longs(spark: SparkSession, tmp_path: Path) -> None:
    """As a long, one that does not fit is null, and FAILFAST fails; as a decimal, none is lost."""
    credits = [5, 2**63 - 1, 2**63, 2**64 - 1]
    messages = [("C", libfilemq.Nom(credit=credit, sequence=1).encode()) for credit in credits]
    captured = read(spark, captures.write_capture(tmp_path / "capture", messages))
    assert [int(row.Nom.credit) for row in collect(decode(captured, "libfilemq"))] == credits
    longs = decode(captured, "libfilemq", u64="long")
    assert longs.selectExpr("Nom.credit").schema["credit"].dataType == LongType()
    assert [row.Nom.credit for row in collect(longs)] == [5, 2**63 - 1, None, None]
    with pytest.raises(PySparkException, match="9223372036854775808"):
        decode(captured, "libfilemq", u64="long", mode="FAILFAST").collect()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"messages": "Nom"},
            r"there is no option 'messages' \(is it 'message'\?\); the known ones are mode,",
        ),
        ({"message": "NOM"}, "option 'message' names 'NOM'; filemq has Ohai, OhaiOk"),
        ({"columns": "Nom.debit"}, "option 'columns' names 'Nom.debit'; decoded filemq has ts, mono"),
        ({"dialect": "x"}, "option 'dialect' is 'x'; filemq has no dialect"),
        ({"backend": "rust"}, "there is no backend 'rust'"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(
    captured: DataFrame, options: dict[str, Any], sentence: str
) -> None:
    """Before any query."""
    with pytest.raises(InputError, match=sentence):
        decode(captured, "filemq", **options)


def test_other_rows_are_refused(captured: DataFrame) -> None:
    """The sentence names the column."""
    with pytest.raises(
        InputError, match=r"the DataFrame has no column 'frames': decode\(\) takes ARRAY<BINARY>"
    ):
        decode(captured.drop("frames"), "filemq")


@pytest.mark.parametrize("protocol", known_protocols())
def test_every_option_at_once(spark: SparkSession, protocol: str) -> None:
    """Of every protocol: names that Spark can tell apart, whatever messages and fields are called."""
    asked: dict[str, Any] = {
        "debug": True,
        "record_id": True,
        "record_frames": True,
        "input_file": True,
        "u64": "long",
    }
    decoded = decode(spark.createDataFrame([], CAPTURE), protocol, **asked)
    assert_unique(decoded.columns)
    for field in decoded.schema:
        if isinstance(field.dataType, StructType):
            assert_unique(field.dataType.fieldNames())


def assert_unique(names: Sequence[str]) -> None:
    """Names are compared without case."""
    assert len({name.casefold() for name in names}) == len(names)
