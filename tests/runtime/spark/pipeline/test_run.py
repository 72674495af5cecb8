"""The pipeline as a whole: what it writes, what it counts, and what it refuses before Spark starts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture import CaptureError
from specwire.runtime.capture.segments import list_files
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline import advance as advancing
from specwire.runtime.spark.pipeline.advance import FEW_MESSAGES, FEW_OCTETS, advance, measure, run
from specwire.runtime.spark.pipeline.commit import Area, visible_files
from specwire.runtime.spark.pipeline.ledger import Entry, Outcome
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import FRAMES, Store
from specwire.runtime.spark.pipeline.summary import ErrorCount, Summary, Totals, TypeCount
from specwire.runtime.spark.pipeline.taking import Sorted
from specwire.runtime.spark.report.page import draw_report
from tests.runtime.spark import captures
from tests.runtime.spark.outputs import Output


def work_in(spark: SparkSession, capture: Path, out: Path, **asked: object) -> Summary | None:
    """Run over all that a capture holds."""
    request = Request(capture, msgspec.convert(asked, Asked))
    return advance(spark, Store(out), list_files(capture), request, draw=draw_report)


@pytest.fixture
def capture(one_run: Output) -> Path:
    """What the taps recorded."""
    return one_run.capture


@pytest.fixture
def out(one_run: Output) -> Path:
    """The output of one run."""
    return one_run.out


@pytest.fixture
def summary(out: Path) -> Summary:
    """The summary as another program reads it."""
    return msgspec.json.decode((out / "summary.json").read_bytes(), type=Summary)


@pytest.mark.spark
def test_every_table_is_written(out: Path, summary: Summary) -> None:
    """And holds as many rows as the summary and the manifest say, for each protocol by itself."""
    manifest = json.loads((out / "manifest.json").read_bytes())
    rows = {
        path: sum(pq.read_metadata(file).num_rows for file in visible_files(out / path))
        for path in summary.tables
    }
    assert rows == summary.tables == {path: manifest["rows"][path] for path in rows}
    typed = {path.removeprefix("typed/"): count for path, count in rows.items() if path.startswith("typed/")}
    assert {path: count for path, count in typed.items() if count} == {
        "filemq/Ohai": 1,
        "filemq/OhaiOk": 1,
        "filemq/Nom": 1,
        "filemq/Cheezburger": 3,
        "filemq/Hugz": 2,
        "filemq/_errors": 4,
        "zmtp/Ping": 1,
        "unknown/_errors": 2,
    }
    assert typed["filemq/Wat"] == 0
    assert rows["frames"] == 15 == summary.messages
    assert summary.totals == Totals(captured=15, typed=9, errors=6)
    assert {path.parent.name for path in visible_files(out / "typed")} == {"date=2023-11-14"}
    assert (out / "report.html").is_file()


@pytest.mark.spark
def test_any_reader_sees_the_tables(spark: SparkSession, out: Path) -> None:
    """Plain Spark with the folder's name, plain Arrow too; columns keep their comments."""
    (folder,) = (out / "typed").glob("filemq/Nom")
    literal = str(folder).replace("{", "\\{").replace("}", "\\}")
    assert [str(row.date) for row in spark.read.parquet(literal).collect()] == ["2023-11-14"]
    assert pq.read_table(out / "frames").num_rows == 15
    store = Store(out)
    noms = store.typed(spark, "filemq")["Nom"]
    assert noms.schema["credit"].metadata["unit"] == "octets"
    frames = store.table(spark, FRAMES)
    assert frames is not None
    found = {(row.protocol, row.stated, row.segment) for row in frames.where("seq = 3").collect()}
    assert found == {
        ("filemq", "filemq", "server-1-0-000000.parquet"),
        ("unknown", "../gopher", "odd-3-0-000000.parquet"),
    }


@pytest.mark.spark
def test_messages_are_counted_by_tap_type_and_sender(summary: Summary) -> None:
    """Undecoded ones too, without a type; a sender that is no role is a question mark."""
    assert (summary.undecoded, summary.dropped, summary.missing) == (6, 2, 0)
    assert TypeCount("server-1-0", "filemq", None, "C", 1, 6) in summary.types
    assert TypeCount("server-1-0", "filemq", "Cheezburger", "S", 3, 33 + 27 + 27) in summary.types
    assert TypeCount("c-2-0", "zmtp", "Ping", "P", 1, 9) in summary.types
    assert TypeCount("odd-3-0", "filemq", "Hugz", "", 1, 3) in summary.types
    assert [item.messages for item in summary.types if item.sender == "?" and item.protocol == "filemq"] == [
        1
    ]


@pytest.mark.spark
def test_taps_have_their_time_range(summary: Summary) -> None:
    """To the microsecond, in UTC."""
    server = next(tap for tap in summary.taps if tap.tap == "server-1-0")
    assert server.first == "2023-11-14T22:13:20.000000+00:00"
    assert server.last == "2023-11-14T22:13:20.006000+00:00"
    assert (server.messages, server.errors, server.dropped) == (7, 1, 2)


@pytest.mark.spark
def test_errors_are_counted_by_reason(summary: Summary) -> None:
    """With the sentence of one of them; what is of no known protocol, or without frames, is an error row."""
    error = next(item for item in summary.errors if item.tap == "server-1-0")
    assert msgspec.structs.replace(error, text="") == ErrorCount(
        "server-1-0", "filemq", "NOM", "credit", "length", "", 1
    )
    assert error.text.startswith("NOM.credit at octet 3: expected 8 octets, found 3")
    unknown = next(item for item in summary.errors if item.protocol == "unknown")
    assert (unknown.kind, unknown.messages) == ("protocol", 2)
    assert unknown.text == "the tap states a protocol that is not known: ../gopher"


@pytest.mark.spark
def test_traffic_over_time_adds_up(summary: Summary) -> None:
    """Seven milliseconds in stretches of one."""
    assert summary.timeline.width_s == 0.001
    assert summary.timeline.buckets[1].messages == 2
    found = summary.timeline.buckets[3]
    assert (found.index, found.messages, found.octets) == (3, 2, 33 + 3)
    assert sum(bucket.messages for bucket in summary.timeline.buckets) == 15
    assert sum(bucket.octets for bucket in summary.timeline.buckets) == summary.octets


@pytest.mark.spark
def test_nothing_new_is_nothing_done(spark: SparkSession, capture: Path, out: Path, tmp_path: Path) -> None:
    """No file is touched, and no session is begun for it; another request is refused."""
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert work_in(spark, capture, out) == Store(out).summary()
    assert run(Request(capture), out, target="not a master") is None
    with pytest.raises(InputError, match="begun with protocol as stated by the taps, not filemq"):
        work_in(spark, capture, out, protocol="filemq")
    with pytest.raises(InputError, match="begun with layers frames,typed,answers, not typed"):
        work_in(spark, capture, out, layers=("typed",))
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


@pytest.mark.spark
def test_an_override_reads_everything_as_one_protocol(
    spark: SparkSession, capture: Path, tmp_path: Path
) -> None:
    """What the taps stated does not count; what does not fit is counted, and left out where that is asked for."""
    steps: list[tuple[str, int, int]] = []
    asked = Asked(protocol="libfilemq", mode="DROPMALFORMED", layers=("typed",))
    found = advance(
        spark,
        Store(tmp_path / "out"),
        list_files(capture),
        Request(capture, asked),
        progress=lambda *step: steps.append(step),
    )
    assert found is not None
    assert {tap.protocol for tap in found.taps} == {"libfilemq"}
    assert found.totals.captured == 15 == found.totals.typed + found.totals.errors
    assert found.totals.errors > 6
    assert found.tables["typed/libfilemq/_errors"] == 0
    assert not (tmp_path / "out" / "frames").exists()
    assert [done for _, done, _ in steps] == list(range(len(steps)))
    assert {total for _, _, total in steps} == {len(steps)}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"protocol": "gopher"}, "there is no protocol 'gopher'"),
        ({"mode": "LENIENT"}, "there is no mode 'LENIENT'; the known ones are PERMISSIVE"),
        ({"layers": ("typed", "gold")}, "there is no layer 'gold'"),
        ({"layers": ("frames",)}, "the layer 'typed' cannot be left out"),
    ],
)
def test_a_bad_request_is_refused_before_spark(
    tmp_path: Path, asked: dict[str, object], sentence: str
) -> None:
    """One sentence, and no folder."""
    folder = captures.write_capture(tmp_path / "capture", [("C", captures.NOM)])
    with pytest.raises(InputError, match=sentence):
        run(Request(folder, msgspec.convert(asked, Asked)), tmp_path / "out", target="not a master")
    assert not (tmp_path / "out").exists()


def test_a_backend_that_there_is_none_of_is_refused_before_spark(tmp_path: Path) -> None:
    folder = captures.write_capture(tmp_path / "capture", [("C", captures.NOM)])
    with pytest.raises(InputError, match="there is no backend 'gpu'; the known ones are auto, jvm, arrow"):
        run(Request(folder, backend="gpu"), tmp_path / "out", target="not a master")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["capture", "capture/out", "."])
def test_output_and_capture_lie_apart(tmp_path: Path, out: str) -> None:
    """Or the output would be captured traffic to the next run."""
    folder = captures.write_capture(tmp_path / "capture", [("C", captures.NOM)])
    with pytest.raises(InputError, match="must lie apart from the capture folder"):
        run(Request(folder), tmp_path / out, target="not a master")


def test_a_capture_without_messages_is_one_sentence(tmp_path: Path) -> None:
    """A tap that dropped all it saw leaves a segment without rows; others cannot be read."""
    folder = captures.write_capture(tmp_path / "capture", [], dropped=9)
    with pytest.raises(CaptureError, match="the capture holds no messages"):
        run(Request(folder), tmp_path / "out", target="not a master")
    (folder / "a.parquet").write_text("a letter")
    with pytest.raises(CaptureError, match=r"a\.parquet: not a whole Parquet file"):
        run(Request(folder), tmp_path / "out", target="not a master")
    (folder / "b.parquet").write_text("a letter")
    with pytest.raises(CaptureError, match="none of 2 segments can be read; the first: "):
        run(Request(folder), tmp_path / "out", target="not a master")


def test_a_run_is_small_by_what_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages, and where it updates answers the open state, sums of its dates and unanswered messages."""
    monkeypatch.setattr(advancing, "FEW_EARLIER", 79)
    lacking: list[str] = []
    monkeypatch.setattr(advancing, "lacks_answers", lambda store, protocol: protocol in lacking)
    store = Store(tmp_path / "out")
    for day, area in ((1, Area.ADDED), (2, Area.ADDED), (3, Area.OPEN)):
        with store.begin() as earlier:
            for folder in (
                earlier.folder(Area.ADDED, f"typed/flux/Request/date=2026-01-0{day}"),
                earlier.folder(area, f"state/flux/sums/protocol=flux/date=2026-01-0{day}"),
            ):
                folder.mkdir(parents=True)
                pq.write_table(pa.table({"row": range(40)}), folder / "part-0.parquet")
            earlier.commit(msgspec.structs.replace(earlier.before, answered=earlier.number))

    def few(messages: int, *, day: int = 4, size: int = 1, answered: int = 3, **more: bool) -> bool:
        at = int(datetime(2026, 1, day, tzinfo=UTC).timestamp()) * 10**6
        entry = Entry("a", size, 0, 4, Outcome.READ, rows=messages, first=at, last=at)
        work = Sorted((), (), (), (entry,), messages, more.get("rebuild", False))
        with store.begin() as run:
            run.before = msgspec.structs.replace(run.before, answered=answered)
            return measure(store, run, work, ["flux"] if more.get("answers", True) else []).few

    assert few(FEW_MESSAGES), "and 40 open rows"
    assert not few(FEW_MESSAGES + 1)
    assert not few(1, day=1), "80 with the sums of its date"
    assert few(1, day=1, answers=False)
    assert not few(1, answered=2), "80 with the messages of run 3"
    assert not few(1, rebuild=True)
    assert few(1, size=FEW_OCTETS) and not few(1, size=FEW_OCTETS + 1)
    lacking.append("flux")
    assert not few(1)
