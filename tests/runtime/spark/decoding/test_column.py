"""Column functions: values by hand from the specifications, the same on both back ends, in SQL and in a stream.

The stream is that of docs/how-to/columns.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from specwire.runtime.spark import decode, from_specwire, register, tables, to_specwire
from specwire.runtime.spark.decoding.backends import load_backend
from specwire.runtime.spark.decoding.options import struct_type
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas
from specwire.runtime.spark.session.java import describe_failure
from specwire.runtime.spark.session.target import jar_trouble
from tests.generated.vectors import recorded

pytestmark = pytest.mark.spark

FRAMES = pa.list_(pa.binary())
NOM = bytes.fromhex("aaa3070000010000000000")
"""FILEMQ v2: signature AAA3, id 7, credit 2^40 in eight octets."""
SHORT_NOM = NOM[:6]
EVENT = [b"", b"hb", bytes.fromhex("8e010409000000070000000100000002") + bytes(4)]
"""Flux v1: an empty delimiter of no routes, a topic, and magic 8e, version 1, type 4 (event), flags 09."""
SUBSCRIBE = b"\x04\x0d\x09SUBSCRIBEabc"
"""ZMTP v3.1: a short command of 13 octets."""
SUBSCRIBED = Row(subscription=bytearray(b"abc"))


@pytest.fixture(params=["jvm", "arrow"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each back end that users have; Java where it is compiled."""
    if request.param == "jvm" and (reason := jar_trouble()):
        pytest.skip(reason)
    return str(request.param)


@pytest.fixture
def lists(spark: SparkSession) -> DataFrame:
    """FILEMQ in ARRAY<BINARY>: a message, a truncated one, no frames, null, a null frame, two frames."""
    rows = [[NOM], [SHORT_NOM], [], None, [None], [NOM, b"x"]]
    table = pa.table({"key": range(len(rows)), "value": pa.array(rows, FRAMES)})
    return spark.createDataFrame(table).repartition(1)


@pytest.fixture
def singles(spark: SparkSession) -> DataFrame:
    """FILEMQ in BINARY: a message, a truncated one, an empty one, null."""
    rows = [NOM, SHORT_NOM, b"", None]
    table = pa.table({"key": range(len(rows)), "value": pa.array(rows, pa.binary())})
    return spark.createDataFrame(table).repartition(1)


def values(frame: DataFrame) -> list[Any]:
    """Return the column `m` in the order of the keys."""
    return [row.m for row in frame.orderBy("key").collect()]


def test_lists_and_single_frames_are_decoded(lists: DataFrame, singles: DataFrame, backend: str) -> None:
    """The caller's column stays; null stays null; a faulty row has message, field, offset and its frames."""
    decoded = lists.select("key", from_specwire("value", "filemq", backend=backend).alias("m"))
    assert decoded.columns == ["key", "m"]
    sound, short, empty, null, holed, long = values(decoded)
    assert (sound._message, sound._error, sound._frames, sound.Nom) == ("Nom", None, None, Row(credit=2**40))
    assert sound._octets == 11 and sound.Hugz is None
    assert (short._message, short._error.message, short._error.field, short._error.offset) == (
        None, "NOM", "credit", 3,
    )  # fmt: skip
    assert [bytes(frame) for frame in short._frames] == [SHORT_NOM]
    assert (empty._error.kind, empty._frames, null) == ("frames", [], None)
    assert (holed._frames, long._message) == ([None], None)
    single = values(singles.select("key", from_specwire("value", "filemq", backend=backend).alias("m")))
    assert single[:2] == [sound, short]
    assert (single[2]._error.frame, single[2]._frames, single[3]) == (0, [bytearray()], None)


@pytest.mark.parametrize("protocol", ["flux", "zmtp", "norfab"])
def test_every_vector_is_decoded_as_decode_does(spark: SparkSession, backend: str, protocol: str) -> None:
    """Vectors of other implementations; a struct with types and meaning as `decode` has them."""
    vectors = [list(vector.frames) for vector in recorded(protocol)]
    table = pa.table({"key": range(len(vectors)), "frames": pa.array(vectors, FRAMES)})
    frame = spark.createDataFrame(table)
    column = frame.select("key", from_specwire("frames", protocol, backend=backend).alias("m"))
    assert column.schema["m"].dataType == struct_type(protocol)
    fields = load_schemas(protocol).DECODED.fieldNames()
    wanted = decode(frame, protocol, "python").orderBy("key").select("key", *fields).collect()
    assert column.orderBy("key").select("key", *(f"m.{name}" for name in fields)).collect() == wanted
    assert None in {row["_error"] for row in wanted}


def test_options(lists: DataFrame, backend: str) -> None:
    """One message alone, its octets beside it, longs; of all messages too."""

    def decoded(**options: Any) -> list[Any]:
        column = from_specwire("value", "filemq", backend=backend, **options)
        return values(lists.select("key", column.alias("m")))

    nothing = [None] * 5
    assert decoded(message="Nom") == [Row(credit=2**40), *nothing]
    assert decoded(message="Nom", debug=True) == [Row(credit=2**40, credit_hex="0000010000000000"), *nothing]
    assert decoded(message="Nom", u64="long", mode="permissive")[0] == Row(credit=2**40)
    assert [row and row.Nom for row in decoded(debug=True)] == [
        Row(credit=2**40, credit_hex="0000010000000000"), *nothing,
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"message": "Nom"}, {"debug": True}])
def test_failfast_names_message_field_and_octet(
    lists: DataFrame, backend: str, options: dict[str, Any]
) -> None:
    """And gives the values of sound rows, null for null."""
    column = from_specwire("value", "filemq", backend=backend, mode="FAILFAST", **options).alias("m")
    sound = values(lists.where("key in (0, 3)").select("key", column))
    nom = sound[0] if "message" in options else sound[0].Nom
    assert (nom.credit, sound[1]) == (2**40, None)
    with pytest.raises(PySparkException) as caught:
        lists.where("key < 2").select(column).collect()
    assert "filemq: frame 0: NOM.credit at octet 3: expected 8 octets, found 3" in describe_failure(
        caught.value
    )


@pytest.mark.parametrize("options", [{}, {"mode": "FAILFAST"}, {"message": "Nom", "debug": True}])
def test_a_message_is_decoded_once(
    lists: DataFrame, backend: str, options: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    """However many fields a query uses, and whatever it filters by."""
    decoded = lists.select("key", from_specwire("value", "filemq", backend=backend, **options).alias("m"))
    decoded.where("m is not null").select("m.*", "m").explain()
    plan = capfd.readouterr().out
    assert plan.count("decode_frames(") + plan.count("filemq.Decode.invoke(") == 1


def test_messages_are_encoded(lists: DataFrame, backend: str) -> None:
    """Octet for octet, faulty rows too; from the whole struct, and from one message's."""
    decoded = from_specwire("value", "filemq", backend=backend)
    again = values(lists.select("key", to_specwire(decoded, "filemq").alias("m")))
    assert again == [row.value for row in lists.orderBy("key").collect()]
    nom = to_specwire(decoded["Nom"], "filemq", message="Nom", single_frame=True)
    assert values(lists.select("key", nom.alias("m"))) == [NOM, *[None] * 5]


def test_messages_of_ones_own_are_encoded(spark: SparkSession) -> None:
    """Fields in any order and type; a null struct is null; a fault is a sentence or null."""
    one = spark.range(3).withColumnRenamed("id", "key")
    credit = F.when(F.col("key") > 0, F.struct((2 * F.col("key") - 3).alias("credit")))
    kept = to_specwire(credit, "filemq", message="Nom", mode="PERMISSIVE")
    assert values(one.select("key", kept.alias("m"))) == [
        None,
        None,
        [bytes.fromhex("aaa3070000000000000001")],
    ]
    with pytest.raises(PySparkException) as caught:
        one.select(to_specwire(credit, "filemq", message="Nom")).collect()
    assert "filemq: NOM.credit: expected 0 to 18446744073709551615, found -1" in describe_failure(
        caught.value
    )
    subscribe = F.struct(F.lit(b"abc").alias("subscription"))
    unit = to_specwire(subscribe, "zmtp", message="Subscribe", single_frame=True)
    assert one.select(unit.alias("m")).first() == Row(m=SUBSCRIBE)
    event = F.array(*(F.lit(frame) for frame in EVENT))
    several = to_specwire(from_specwire(event, "flux"), "flux", single_frame=True)
    with pytest.raises(PySparkException) as caught:
        one.select(several).collect()
    assert "flux: the message has 3 frames, not one" in describe_failure(caught.value)


def test_tables_are_made_of_the_struct(lists: DataFrame) -> None:
    """Its columns are decoded rows."""
    decoded = lists.select(from_specwire("value", "filemq").alias("m")).where("m is not null").select("m.*")
    found = tables(decoded)
    assert [row.credit for row in found["Nom"].collect()] == [2**40]
    assert found["_errors"].count() == 4


def test_a_stream_is_decoded(spark: SparkSession, backend: str, tmp_path: Path) -> None:
    """Files of `value BINARY`, as a topic's records have it, each file once."""
    for number, octets in enumerate((SUBSCRIBE, SUBSCRIBE[:-1])):
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(pa.table({"value": [octets]}), tmp_path / "in" / f"{number}.parquet")
    arriving = spark.readStream.schema("value binary").parquet(str(tmp_path / "in"))
    decoded = arriving.select("value", from_specwire("value", "zmtp", backend=backend).alias("m"))
    query = (
        decoded.writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "state"))
        .start(str(tmp_path / "out"))
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy(F.length("value").desc()).collect()
    assert [(row.value, row.m.Subscribe) for row in rows] == [(SUBSCRIBE, SUBSCRIBED), (SUBSCRIBE[:-1], None)]
    assert rows[1].m._error.field == "command_size"


def test_sql_functions_with_java(spark: SparkSession) -> None:
    """Every protocol, in each session that calls `register`; BINARY, ARRAY<BINARY> and NULL."""
    if reason := jar_trouble():
        pytest.skip(reason)
    session = spark.newSession()
    with pytest.raises(AnalysisException, match="from_filemq"):
        session.sql("SELECT specwire.from_filemq(X'aa')").collect()
    register(session)
    query = f"""
        SELECT specwire.from_filemq(X'{NOM.hex()}').Nom.credit, specwire.from_filemq(array(X'{NOM.hex()}'))._message,
               specwire.from_filemq(NULL), specwire.from_zmtp(X'{SUBSCRIBE.hex()}').Subscribe
    """
    (row,) = session.sql(query).collect()
    assert tuple(row) == (2**40, "Nom", None, SUBSCRIBED)
    with pytest.raises(AnalysisException, match="from_filemq takes one argument"):
        session.sql("SELECT specwire.from_filemq(X'aa', 'C', 1)").collect()
    with pytest.raises(AnalysisException, match="ARRAY<BINARY>"):
        session.sql("SELECT specwire.from_filemq(1)").collect()


def test_sql_functions_without_java(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same under a name without a dot."""
    monkeypatch.setattr(load_backend("jvm"), "available", lambda *_: "there is no jar")
    session = spark.newSession()
    register(session)
    query = f"SELECT f.Nom.credit, f._message FROM (SELECT specwire_from_filemq(X'{NOM.hex()}') AS f)"
    assert [tuple(row) for row in session.sql(query).collect()] == [(2**40, "Nom")]
    assert session.sql("SELECT specwire_from_flux(CAST(NULL AS BINARY)) AS f").collect() == [Row(f=None)]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: from_specwire("v", "filemq", mode="DROPMALFORMED"),
            "a column cannot drop rows: use PERMISSIVE",
        ),
        (
            lambda: to_specwire("v", "filemq", mode="DROPMALFORMED"),
            "a column cannot drop rows: use PERMISSIVE",
        ),
        (lambda: from_specwire("v", "filemq", message=["Nom", "Hugz"]), "option 'message' names Nom, Hugz; "),
        (
            lambda: from_specwire("v", "filemq", message="NOM"),
            "option 'message' names 'NOM'; filemq has Ohai",
        ),
        (
            lambda: from_specwire("v", "filemq", record_id=True),
            "there is no option 'record_id'; the known ones",
        ),
        (lambda: from_specwire("v", "filemq", backend="rust"), "there is no backend 'rust'"),
        (lambda: from_specwire("v", "nosuch"), "there is no protocol 'nosuch'"),
        (lambda: to_specwire("v", "filemq", message="NOM"), "filemq has no message 'NOM'; it has Ohai"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(
    spark: SparkSession, call: Callable[[], object], sentence: str
) -> None:
    """Before any query."""
    with pytest.raises(InputError, match=sentence):
        call()


def test_decoding_takes_frames_and_keeps_columns(spark: SparkSession, backend: str) -> None:
    """Other columns of the caller stay before the decoded ones; a capture's column may be missing."""
    table = pa.table({"Key": ["a", "b"], "tap": ["t", "t"], "frames": pa.array([[NOM], [SHORT_NOM]], FRAMES)})
    frame = spark.createDataFrame(table)
    decoded = decode(frame, "filemq", backend)
    assert decoded.columns[:4] == ["tap", "octets", "Key", "_message"]
    assert decoded.orderBy("Key").select("Key", "octets", "Nom.credit").collect() == [
        Row(Key="a", octets=11, credit=2**40), Row(Key="b", octets=6, credit=None),
    ]  # fmt: skip
    assert decode(frame, "filemq", backend, columns="key").columns == ["Key", "_message", "_error", "_frames"]
    with pytest.raises(PySparkException) as caught:
        decode(frame, "filemq", backend, mode="FAILFAST").collect()
    assert "tap t, frame 0: NOM.credit at octet 3" in describe_failure(caught.value)
    with pytest.raises(InputError, match="has a column 'nom', and decoded filemq too: rename or drop it"):
        decode(frame.withColumn("nom", F.lit(1)), "filemq")
    with pytest.raises(InputError, match="the column 'frames' is binary, not array<binary>"):
        decode(frame.withColumn("frames", F.lit(NOM)), "filemq")
    with pytest.raises(InputError, match="option 'record_id' needs the column 'seq'"):
        decode(frame, "filemq", record_id=True)


def test_struct_type_is_decoded_and_octets() -> None:
    """The columns of the generated package, then the number of octets."""
    assert StructType(struct_type("zre").fields[1:-1]) == StructType(load_schemas("zre").DECODED.fields[1:])
    assert struct_type("zre").fieldNames()[-1] == "_octets"
