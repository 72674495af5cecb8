"""A watch as a whole, in the session that all tests share: what it takes in, and that it is what a batch makes of it."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.segments import list_files
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.live.alerts import TABLE
from specwire.runtime.spark.live.conversations import Rules
from specwire.runtime.spark.live.watch import check, watch
from specwire.runtime.spark.live.work import Batch, Listener, Watch
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.commit import begin
from specwire.runtime.spark.pipeline.ledger import Outcome
from specwire.runtime.spark.pipeline.manifest import Manifest
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import LATE, TYPED, Store
from specwire.runtime.spark.pipeline.summary import Summary
from specwire.runtime.spark.reading.stream import StreamOptions
from tests.runtime.spark import captures
from tests.runtime.spark.growing import add_segment
from tests.runtime.spark.live.same import count, read_alerts, read_rows

LIMIT_S = 600.0
"""For what takes seconds on a machine that has nothing else to do."""

SAID: list[captures.Message] = [
    ("C", captures.OHAI),
    ("S", captures.OHAI_OK),
    ("C", captures.ICANHAZ),
    ("S", captures.ICANHAZ_OK),
    ("C", captures.NOM),
    ("S", captures.CHEEZBURGER),
    ("S", captures.CHEEZBURGER),
    ("C", captures.SHORT_NOM),
    ("C", captures.NOM),
    ("S", captures.DELETION),
]


def add(capture: Path, *numbers: int) -> None:
    """Add segments of two messages each."""
    for number in numbers:
        add_segment(capture, number, SAID[2 * number : 2 * number + 2], first=2 * number)


def run_once(spark: SparkSession, capture: Path, out: Path) -> None:
    watch(spark, Watch(Request(capture), out, rules=None, once=True), threading.Event())


@pytest.mark.spark
def test_live_and_batch_agree(spark: SparkSession, tmp_path: Path, few_answers: None) -> None:
    """A segment that is late waits in its table, one that was cut off is set aside, and nothing else differs.

    The second watch goes on where the first was.
    """
    capture, live, batch = (tmp_path / name for name in ("capture", "live", "batch"))
    add(capture, 0, 1, 3)
    run_once(spark, capture, live)
    add(capture, 2, 4)
    whole = (capture / "server-1-0-000004.parquet").read_bytes()
    (capture / "cut-1-0-000000.parquet").write_bytes(whole[: len(whole) // 2])
    watching = Watch(Request(capture), live, rules=None, once=True, stream=StreamOptions(settle_s=0.0))
    watch(spark, watching, threading.Event())
    outcomes = {entry.name: entry.outcome for entry in Store(live).ledger}
    assert outcomes == {
        "server-1-0-000000.parquet": Outcome.READ,
        "server-1-0-000001.parquet": Outcome.READ,
        "server-1-0-000002.parquet": Outcome.LATE,
        "server-1-0-000003.parquet": Outcome.READ,
        "server-1-0-000004.parquet": Outcome.READ,
        "cut-1-0-000000.parquet": Outcome.QUARANTINED,
    }

    on_time = [path for path in list_files(capture) if "000002" not in path.name]
    advance(spark, Store(batch), on_time, Request(capture))
    late = read_rows(live, LATE)
    assert count(late) == 2
    assert {name: rows for name, rows in read_rows(live).items() if name != LATE} == read_rows(batch)
    assert count(read_rows(live, TYPED)) + count(late) == len(SAID)
    assert Store(live).manifest.answered == Store(live).manifest.run


class Seen(Listener):
    """Counts what happened."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.messages = 0
        self.alerts: list[str] = []

    def on_batch(self, batch: Batch, summary: Summary | None) -> None:
        self.batches.append(batch)
        self.messages = summary.messages if summary else 0

    def on_alert(self, alert: Mapping[str, object]) -> None:
        self.alerts.append(str(alert["kind"]))


def silent_sides(out: Path) -> set[str]:
    """Return the senders of alerts of silence. Without Spark: it is asked many times."""
    files = [path for path in (out / TABLE).rglob("*.parquet") if not path.name.startswith(".")]
    rows = (row for path in files for row in pq.ParquetFile(path).read(["kind", "sender"]).to_pylist())
    return {row["sender"] for row in rows if row["kind"] == "silent"}


def wait_for(condition: Callable[[], bool], running: Future[None]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert not running.done(), running.result(0)
        assert time.monotonic() < deadline, f"nothing for {LIMIT_S:g} s"
        time.sleep(0.05)


@pytest.mark.spark
def test_a_growing_capture_and_its_alerts(spark: SparkSession, tmp_path: Path, few_answers: None) -> None:
    """A violation and two silent sides are alerts once, in the table and as events; a stop ends it all."""
    capture, out = tmp_path / "capture", tmp_path / "out"
    add_segment(capture, 0, SAID[:2], first=0, now=True)
    seen, stop = Seen(), threading.Event()
    request = Watch(Request(capture), out, every_s=1.0, rules=Rules(silent_s=1.0), answers_s=LIMIT_S)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(watch, spark, request, stop, listener=seen)
        try:
            wait_for(lambda: seen.messages == 2, running)
            add_segment(capture, 1, [("S", captures.ICANHAZ_OK)] * 2, first=2, now=True)
            wait_for(lambda: seen.messages == 4 and {"violation", "silent"} <= set(seen.alerts), running)
            wait_for(lambda: {"C", "S"} <= silent_sides(out), running)
        finally:
            stop.set()
        running.result(LIMIT_S)
    assert [batch.number for batch in seen.batches] == list(range(len(seen.batches)))
    assert sum(batch.segments for batch in seen.batches) == 2
    assert all(batch.lag_s is not None and batch.lag_s >= batch.took_s for batch in seen.batches)

    found = read_alerts(spark, out)
    rows = found.collect()
    assert sorted(row.kind for row in rows) == sorted(seen.alerts)
    (violation,) = [row for row in rows if row.kind == "violation"]
    assert (violation.sender, violation.seq, violation.message) == ("S", 2, "IcanhazOk")
    assert (violation.protocol, violation.conversation, violation.peer) == ("filemq", "c1", "00aa")
    assert {row.sender for row in rows if row.kind == "silent"} == {"C", "S"}
    assert found.schema["kind"].metadata["comment"].startswith("violation")
    assert Store(out).manifest.answered == Store(out).manifest.run, "answers follow a stop"


def test_what_is_wrong_is_said_before_spark(tmp_path: Path) -> None:
    """A capture inside of the output, and a folder that holds something else."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("kept")
    (tmp_path / "capture").mkdir()
    with pytest.raises(InputError, match="not an earlier output"):
        check(Watch(Request(tmp_path / "capture"), tmp_path / "out"))
    with pytest.raises(InputError, match="must lie apart"):
        check(Watch(Request(tmp_path / "capture"), tmp_path))


def test_two_watches_do_not_share_a_folder(tmp_path: Path) -> None:
    """The second is refused before Spark is asked for anything, and without a touch of the lock of runs."""
    capture, out = tmp_path / "capture", tmp_path / "out"
    capture.mkdir()
    (out / "live").mkdir(parents=True)
    (out / "manifest.json").write_bytes(Manifest(run=1).to_json())
    with (out / "live" / ".lock").open("w") as lock, begin(out):
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another watch is at work there"):
            watch(cast(SparkSession, None), Watch(Request(capture), out), threading.Event())


def test_a_folder_that_cannot_be_written_is_told_before_spark(tmp_path: Path) -> None:
    """One that cannot be made, one that another run is at work in, and one whose watch cannot be noted; nothing is left."""
    capture, out = tmp_path / "capture", tmp_path / "out"
    capture.mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file/out: the output folder cannot be made or written: Not a dir"):
        check(Watch(Request(capture), tmp_path / "file" / "out"))
    with begin(out), pytest.raises(InputError, match="another run is at work there"):
        check(Watch(Request(capture), out))
    check(Watch(Request(capture), out))
    assert not out.exists()
    (out / "live" / ".lock").mkdir(parents=True)
    (out / "manifest.json").write_bytes(Manifest(run=1).to_json())
    with pytest.raises(InputError, match="live: a watch cannot write there: Is a directory"):
        watch(cast(SparkSession, None), Watch(Request(capture), out), threading.Event())


def test_a_folder_of_packet_captures_is_refused(tmp_path: Path) -> None:
    """Files that a recorder still writes are incomplete; a folder that is still empty is watched."""
    (capture := tmp_path / "pcaps").mkdir()
    check(Watch(Request(capture), tmp_path / "out"))
    (capture / "a.pcap").write_bytes(bytes.fromhex("d4c3b2a1") + bytes(20))
    with pytest.raises(CaptureError, match="a folder of packet captures cannot be watched"):
        check(Watch(Request(capture), tmp_path / "out"))
