"""The processor that Spark runs for each conversation, in PySpark's own in-memory tester."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, TimerValues
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import Row

from specwire.runtime.spark.live.alerting import ALERTS, BUNDLES, BundleSource, ConversationWatcher
from specwire.runtime.spark.live.conversations import Rules
from specwire.runtime.spark.reading.position import Position
from specwire.runtime.spark.reading.stream import FolderStream
from tests.runtime.spark import captures
from tests.runtime.spark.growing import add_segment

KEY = ("filemq", "server-1-0", "c1")


def read_rows(folder: Path) -> list[Row]:
    """What a task of the stream reads of a folder."""
    reader = BundleSource({"path": str(folder)}).streamReader(BUNDLES)
    assert isinstance(reader, FolderStream)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    rows = [row for part in reader.partitions(start, end) for row in reader.read(part)]
    return [Row(**dict(zip(BUNDLES.fieldNames(), row, strict=True))) for row in rows]


class Unwrapped(ConversationWatcher):
    """The tester gives a key of several columns as one column."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        return super().handleInputRows(key[0], rows, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        return super().handleExpiredTimer(key[0], timerValues, expiredTimerInfo)


def start() -> TwsTester:
    return TwsTester(Unwrapped(Rules(silent_s=5.0, forget_s=60.0)), timeMode="ProcessingTime")


def set_clock(tester: TwsTester, now_ms: int) -> list[Row]:
    """Set the time and return what timers then gave."""
    found: list[Row] = tester.setProcessingTime(now_ms)
    return found


def test_a_conversation_goes_on_from_batch_to_batch(tmp_path: Path) -> None:
    """Alerts have the columns of their table, in its order."""
    messages = [("C", captures.OHAI), ("S", captures.OHAI_OK), ("S", captures.ICANHAZ_OK)]
    captures.write_capture(tmp_path, messages)
    (row,) = read_rows(tmp_path)
    tester = start()
    set_clock(tester, 1_700_000_000_000)
    (alert,) = tester.test(KEY, [row])
    assert list(alert.asDict()) == ALERTS.fieldNames()
    assert (alert.kind, alert.protocol, alert.tap, alert.conversation, alert.peer) == (
        "violation",
        *KEY,
        "00aa",
    )
    assert (alert.sender, alert.seq, alert.message) == ("S", 2, "IcanhazOk")
    assert alert.raised == datetime.fromtimestamp(1_700_000_000, UTC)
    assert alert.ts == datetime(2023, 11, 14, 22, 13, 20, 2000, UTC)
    assert tester.test(KEY, [row]) == []


def test_silence_is_found_by_the_clock(tmp_path: Path) -> None:
    """Once; then everything is forgotten, timers included."""
    captures.write_capture(tmp_path, [("C", captures.OHAI), ("S", captures.OHAI_OK)])
    tester = start()
    set_clock(tester, 1_000)
    assert tester.test(KEY, read_rows(tmp_path)) == []
    assert set_clock(tester, 5_999) == []
    assert [(alert.kind, alert.sender, alert.seq) for alert in set_clock(tester, 6_001)] == [
        ("silent", "C", None),
        ("silent", "S", None),
    ]
    assert set_clock(tester, 60_000) == []
    assert tester.peekValueState("conversation", KEY) is not None
    assert set_clock(tester, 61_001) == []
    assert tester.peekValueState("conversation", KEY) is None
    assert set_clock(tester, 600_000) == []


def test_a_conversation_that_is_over_leaves_nothing(tmp_path: Path) -> None:
    """No memory, no timer, no silence."""
    captures.write_capture(tmp_path, [("C", captures.OHAI), ("S", captures.SRSLY)])
    tester = start()
    set_clock(tester, 1_000)
    assert tester.test(KEY, read_rows(tmp_path)) == []
    assert tester.peekValueState("conversation", KEY) is None
    assert set_clock(tester, 600_000) == []


def test_segments_are_shared_out_and_put_in_order_again(tmp_path: Path) -> None:
    """Several tasks read a batch; a conversation's messages meet in the order of `seq`."""
    said: list[captures.Message] = [("C", captures.OHAI), ("S", captures.OHAI_OK)]
    said += [("C", captures.ICANHAZ), ("S", captures.ICANHAZ_OK)] * 9
    for number in range(10):
        add_segment(tmp_path, number, said[2 * number : 2 * number + 2], first=2 * number)
    rows = read_rows(tmp_path)
    assert len(rows) == 10
    assert [row.first_seq for row in rows] != sorted(row.first_seq for row in rows)
    tester = start()
    set_clock(tester, 1_000)
    assert tester.test(KEY, rows) == []


def test_a_stream_starts_with_nothing() -> None:
    """And asks no task for it."""
    reader = BundleSource({"path": "nosuch"}).streamReader(BUNDLES)
    assert Position.from_json(reader.initialOffset()) == Position()
