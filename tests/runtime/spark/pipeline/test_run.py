"""The pipeline as a whole: what it writes, what it counts, and what it refuses before Spark starts."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture import CaptureError
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline import run as pipeline
from specwire.runtime.spark.pipeline.run import carry_out, plan
from specwire.runtime.spark.pipeline.summary import Bucket, ErrorCount, Summary, TypeCount
from specwire.runtime.spark.reading.capture import read_parquet
from tests.runtime.spark import captures

LIBFILEMQ_NOM = [bytes.fromhex("aaa30700000000004c4b400000000000000000")]
"""As the C implementation's client sends it: credit and sequence."""

END_OF_FILE = [bytes.fromhex("aaa30800000000000000070105612e6a7067000000000000100600"), b""]
"""An empty chunk at the file's size."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two taps of two protocols, with an error, a transfer and drops."""
    folder = tmp_path_factory.mktemp("pipeline") / "capture"
    messages = [
        ("C", captures.OHAI),
        ("S", captures.OHAI_OK),
        ("C", captures.NOM),
        ("S", captures.CHEEZBURGER),
        ("S", END_OF_FILE),
        ("S", captures.DELETION),
        ("C", captures.SHORT_NOM),
    ]
    captures.write_capture(folder, messages, dropped=2)
    return captures.write_capture(folder, [("C", LIBFILEMQ_NOM)], tap="c-2-0", protocol="libfilemq")


@pytest.fixture(scope="module")
def out(spark: SparkSession, capture: Path) -> Path:
    """The output of one run."""
    folder = capture.parent / "out"
    carry_out(spark, plan(capture, folder))
    return folder


@pytest.fixture(scope="module")
def summary(out: Path) -> Summary:
    """The summary as another program reads it."""
    return msgspec.json.decode((out / "summary.json").read_bytes(), type=Summary)


@pytest.mark.spark
def test_every_table_is_written(spark: SparkSession, out: Path, summary: Summary) -> None:
    """And holds as many rows as the summary says, for each protocol by itself."""
    rows = {path: read_parquet(spark, out / path).count() for path in summary.tables}
    assert rows == summary.tables
    assert {path: count for path, count in rows.items() if count} == {
        "filemq/tables/Ohai": 1,
        "filemq/tables/OhaiOk": 1,
        "filemq/tables/Nom": 1,
        "filemq/tables/Cheezburger": 3,
        "filemq/tables/_errors": 1,
        "libfilemq/tables/Nom": 1,
    }
    assert rows["filemq/tables/Wat"] == 0
    assert read_parquet(spark, out / "libfilemq" / "decoded").count() == 1


@pytest.mark.spark
def test_messages_are_counted_by_tap_type_and_sender(summary: Summary) -> None:
    """Undecoded ones too, without a type."""
    assert (summary.messages, summary.undecoded, summary.dropped) == (8, 1, 2)
    assert TypeCount("server-1-0", "filemq", None, "C", 1, 6) in summary.types
    assert TypeCount("server-1-0", "filemq", "Cheezburger", "S", 3, 33 + 27 + 27) in summary.types
    assert TypeCount("c-2-0", "libfilemq", "Nom", "C", 1, 19) in summary.types


@pytest.mark.spark
def test_taps_have_their_time_range(summary: Summary) -> None:
    """To the microsecond, in UTC."""
    server = next(tap for tap in summary.taps if tap.tap == "server-1-0")
    assert server.first == "2023-11-14T22:13:20.000000+00:00"
    assert server.last == "2023-11-14T22:13:20.006000+00:00"
    assert (server.messages, server.errors, server.dropped) == (7, 1, 2)


@pytest.mark.spark
def test_errors_are_counted_by_reason(summary: Summary) -> None:
    """With the sentence of one of them."""
    (error,) = summary.errors
    assert msgspec.structs.replace(error, text="") == ErrorCount(
        "server-1-0", "filemq", "NOM", "credit", "length", "", 1
    )
    assert error.text.startswith("NOM.credit at octet 3: expected 8 octets, found 3")


@pytest.mark.spark
def test_transfers_are_counted(summary: Summary) -> None:
    """One chunk with octets, one end of file, one deletion; the chunk is not the first of its file."""
    (transfer,) = summary.transfers
    assert (transfer.begun, transfer.ended, transfer.deleted) == (0, 1, 1)
    assert (transfer.chunks, transfer.octets, transfer.peer) == (1, 6, "00aa")
    assert transfer.seconds == pytest.approx(0.002)


@pytest.mark.spark
def test_traffic_over_time_adds_up(summary: Summary) -> None:
    """Seven milliseconds in stretches of one."""
    assert summary.timeline.width_s == 0.001
    assert summary.timeline.buckets[0] == Bucket(0, 2, 30)
    assert sum(bucket.messages for bucket in summary.timeline.buckets) == 8
    assert sum(bucket.octets for bucket in summary.timeline.buckets) == summary.octets


@pytest.mark.spark
def test_report_stands_beside_the_tables(out: Path) -> None:
    """As one file."""
    assert "Captured traffic: filemq, libfilemq" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.spark
def test_an_override_reads_everything_as_one_protocol(
    spark: SparkSession, capture: Path, tmp_path: Path
) -> None:
    """What the taps stated does not count; what does not fit is an error row."""
    steps: list[tuple[str, int, int]] = []
    request = plan(capture, tmp_path / "out", protocol="libfilemq")
    found = carry_out(spark, request, progress=lambda *step: steps.append(step))
    assert {tap.protocol for tap in found.taps} == {"libfilemq"}
    assert found.messages == 8
    assert found.undecoded > 1
    assert [done for _, done, _ in steps] == list(range(len(steps)))
    assert {total for _, _, total in steps} == {len(steps)}


@pytest.mark.spark
def test_a_failed_run_leaves_the_earlier_output(
    spark: SparkSession, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing half written takes its place."""

    def refuse(_: object) -> str:
        raise RuntimeError("the last step fails")

    captures.write_capture(tmp_path / "capture", [("C", captures.HUGZ)])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text("{}")
    monkeypatch.setattr(pipeline, "render_report", refuse)
    with pytest.raises(RuntimeError, match="the last step"):
        carry_out(spark, plan(tmp_path / "capture", tmp_path / "out"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["capture", "out"]
    assert (tmp_path / "out" / "summary.json").read_text() == "{}"


def test_an_unknown_protocol_is_refused_before_spark(tmp_path: Path) -> None:
    """Whether it was asked for or stated by the tap."""
    folder = captures.write_capture(tmp_path / "capture", [("C", captures.NOM)], protocol="gopher")
    with pytest.raises(InputError, match="there is no protocol 'gopher'"):
        plan(folder, tmp_path / "out")
    assert plan(folder, tmp_path / "out", protocol="filemq").protocols == ("filemq",)
    with pytest.raises(InputError, match="there is no protocol 'nosuch'"):
        plan(folder, tmp_path / "out", protocol="nosuch")


def test_a_capture_without_messages_is_one_sentence(tmp_path: Path) -> None:
    """A tap that dropped all it saw leaves a segment without rows."""
    folder = captures.write_capture(tmp_path / "capture", [], dropped=9)
    with pytest.raises(CaptureError, match="the capture holds no messages"):
        plan(folder, tmp_path / "out")


def test_rows_count_by_what_they_state(spark: SparkSession, tmp_path: Path) -> None:
    """A segment may hold two protocols, whatever its metadata says, and a row without frames is an error row."""
    folder = captures.write_capture(tmp_path / "capture", [("C", captures.NOM)])
    (segment,) = folder.iterdir()
    table = pq.read_table(segment)
    rows = table.to_pylist()
    rows.append({**rows[0], "seq": 1, "protocol": "flux", "frames": captures.FLUX_ATTR_GET})
    rows.append({**rows[0], "seq": 2, "frames": None})
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), segment)
    summary = carry_out(spark, plan(folder, tmp_path / "out"))
    assert {(count.protocol, count.message): count.messages for count in summary.types} == {
        ("filemq", "Nom"): 1,
        ("flux", "Request"): 1,
        ("filemq", None): 1,
    }
    assert summary.octets == sum(map(len, [*captures.NOM, *captures.FLUX_ATTR_GET]))
    assert summary.undecoded == 1


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (None, "a message in it states no protocol; name one with --protocol"),
        ("nosuch", "there is no protocol 'nosuch'"),
    ],
)
def test_rows_of_no_known_protocol_are_told(protocol: str | None, sentence: str, tmp_path: Path) -> None:
    """Before Spark starts; nothing is left out in silence."""
    folder = captures.write_capture(tmp_path / "capture", [("C", captures.NOM)])
    (segment,) = folder.iterdir()
    table = pq.read_table(segment)
    rows = [*table.to_pylist(), {**table.to_pylist()[0], "protocol": protocol}]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), segment)
    with pytest.raises((CaptureError, InputError), match=sentence):
        plan(folder, tmp_path / "out")
