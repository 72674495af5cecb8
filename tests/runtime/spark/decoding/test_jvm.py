"""The JVM backend: rows of the columns, one call for a message, nothing sent to Python, and what it says where it cannot."""

from __future__ import annotations

import logging
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from specwire.generated import flux
from specwire.runtime.spark.decoding import backends, jvm
from specwire.runtime.spark.decoding.backends import ARROW
from specwire.runtime.spark.decoding.jvm import JVM
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.session import target
from tests.generated.vectors import package, recorded

pytestmark = pytest.mark.spark

ROWS = pa.list_(pa.binary())
FAULTY = [b"\x8e\x01\x01\x00", b""]


@pytest.fixture(autouse=True)
def compiled() -> None:
    """The jar; tests are skipped where there is none."""
    if reason := target.jar_trouble():
        pytest.skip(reason)


def captured(spark: SparkSession, frames: list[Any]) -> DataFrame:
    """Return messages with their numbers."""
    return spark.createDataFrame(pa.table({"seq": range(len(frames)), "frames": pa.array(frames, ROWS)}))


def decode(frame: DataFrame, protocol: str) -> DataFrame:
    """Return the numbers and the decoded columns."""
    assert JVM.available(frame.sparkSession, protocol) is None
    found = frame.select("seq", JVM.column(F.col("frames"), protocol, None).alias("decoded"))
    return found.select("seq", "decoded.*")


def collected(rows: DataFrame) -> list[dict[str, Any]]:
    """Return the decoded columns in the order of the messages."""
    found: list[dict[str, Any]] = sorted(rows.toArrow().to_pylist(), key=lambda row: int(row["seq"]))
    return [{name: value for name, value in row.items() if name not in ("seq", "_octets")} for row in found]


@pytest.mark.parametrize("name", ["flux", "norfab_ascii", "zmtp"])
def test_rows_are_those_of_the_columns(spark: SparkSession, name: str) -> None:
    """Through Spark as outside of it (`tests/generated/test_java.py` has many more): headers at the end, many messages, patterns."""
    frames = [[], [None], FAULTY, *(list(vector.frames) for vector in recorded(name))]
    rows = decode(captured(spark, frames), name)
    assert collected(rows) == package(name).columns.decode(pa.array(frames, ROWS)).to_pylist()
    assert rows.columns == ["seq", *package(name).schema.DECODED.fieldNames(), "_octets"]


def test_octets_come_with_the_decoding(spark: SparkSession) -> None:
    """A null among frames has none; null frames have no row."""
    rows = decode(captured(spark, [None, [], [None, b"abc"], [b"ab", b"c"]]), "flux")
    assert [row["_octets"] for row in rows.orderBy("seq").collect()] == [None, 0, 3, 3]


def test_a_message_is_decoded_once(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """However many fields are used, and whatever is filtered above; and no Python has part in it."""
    # What is local would be decoded while the plan is made.
    frame = captured(spark, [[b""]]).repartition(1)
    rows = decode(frame, "flux").where(F.col("_error").isNull())
    rows.select("_message", "Request.topic", "Request.matchtag", "Response.errnum").explain()
    plan = capsys.readouterr().out
    assert plan.count("specwire.generated.flux.Decode.invoke") == 1
    assert "Python" not in plan and "Arrow" not in plan


def test_rows_stay_as_they_are(spark: SparkSession) -> None:
    """Each has memory of its own: what was decoded before, in this row or the one before, does not change."""
    assert JVM.available(spark, "flux") is None
    frames = [list(flux.Event(topic=topic, sequence=7).encode()) for topic in ("one", "two", "three")]
    table = pa.table({"some": pa.array([frames, frames[::-1]], pa.list_(ROWS))})
    found = (
        spark.createDataFrame(table)
        .repartition(1)
        .selectExpr(
            "specwire.from_flux(some[0]).Event AS first",
            "specwire.from_flux(some[1]).Event AS second",
            "aggregate(some, array(''), (all, next) -> concat(all, array(specwire.from_flux(next).Event.topic))) AS all",
        )
    )
    assert [(row.first.topic, row.second.topic, row.all[1:]) for row in found.collect()] == [
        ("one", "two", ["one", "two", "three"]),
        ("three", "two", ["three", "two", "one"]),
    ]


def test_messages_are_grouped_by_their_values(spark: SparkSession) -> None:
    """Spark groups structs by their octets: those that come from the decoder and those that Spark makes are the same."""
    message = flux.Request(routes=("r1", "rank2"), topic="a.topic", payload=b"x" * 70, matchtag=3)
    decoded = decode(captured(spark, [list(message.encode())] * 3), "flux").select("Request")
    made = spark.createDataFrame(decoded.toArrow(), decoded.schema)
    assert decoded.unionAll(made).groupBy("Request").count().select("count").collect() == [(6,)]


def test_other_threads_decode_too(spark: SparkSession) -> None:
    """Python's threads have threads of Java of their own, each with its own idea of where classes are."""
    frame = captured(spark, [flux.Event(topic="a", sequence=7).encode()])

    def decode_there() -> list[dict[str, Any]]:
        return collected(decode(frame, "flux"))

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(decode_there).result()[0]["Event"]["sequence"] == 7


def test_a_second_session_gets_the_functions(spark: SparkSession) -> None:
    """Each session has catalogs of its own."""
    other = spark.newSession()
    assert JVM.available(other, "zre") is None
    assert collected(decode(captured(other, [[b"\xaa\xa1\x06\x02\x00\x01"]]), "zre"))[0]["_message"] == "Ping"


def test_the_jar_may_lie_anywhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark can not spell this place, nor tell two jars of one name apart."""
    place = tmp_path / "it's a folder, with 100 % odd names"
    place.mkdir()
    copy = Path(shutil.copy(target.JAR, place))
    monkeypatch.setattr(jvm, "JAR", copy)
    jvm._add_jar(spark, copy)
    listed = [row[0] for row in spark.sql("LIST JARS").collect()]
    assert any(name.endswith(f"/specwire-decoders-{target.sources_digest()[:16]}.jar") for name in listed)


def test_without_a_jar_arrow_decodes_and_the_log_says_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(target, "JAR", tmp_path / "decoders.jar")
    reason = "the Java decoders are not compiled here (`make jar` does it where there is a javac)"
    assert JVM.available(spark, "flux") == reason
    with caplog.at_level(logging.INFO, backends.__name__):
        assert backends.find_backend("auto", spark, "flux") is ARROW
    assert caplog.messages == [f"flux is decoded by the backend arrow; not by jvm: {reason}"]
    with pytest.raises(InputError, match="the Java decoders are not compiled here"):
        backends.find_backend("jvm", spark, "flux")


def test_a_session_with_other_decoders_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes that are loaded stay: after a change of the grammar they give other columns."""
    monkeypatch.setattr(jvm, "struct_type", lambda protocol: StructType())
    assert JVM.available(spark, "flux") == (
        "the session has Java decoders of another version: open a new session without their jar"
    )
