"""Alerts are found, stored and emitted once, whatever ends a watch and when."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live.alerts import (
    ALERTS,
    FILE,
    TABLE,
    AlertFinder,
    follow_alerts,
    open_finder,
)
from specwire.runtime.spark.live.conversations import Rules
from specwire.runtime.spark.live.work import Listener, Watch
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import stored_schema
from tests.runtime.spark import captures
from tests.runtime.spark.growing import add_segment

NOW_MS = 1_700_000_000_000
OPENING: list[captures.Message] = [("C", captures.OHAI), ("S", captures.OHAI_OK)]
FAULT: captures.Message = ("S", captures.ICANHAZ_OK)
"""An answer that nobody asked for."""


class Place(Listener):
    """A capture and the folder of a watch; notes the alerts that are emitted."""

    def __init__(self, folder: Path) -> None:
        self.capture, self.out = folder / "capture", folder / "out"
        self.capture.mkdir()
        (self.out / "live").mkdir(parents=True)
        rules = Rules(silent_s=5.0, repeat_s=0.0, forget_s=60.0)
        self.request = Watch(Request(self.capture), self.out, rules=rules)
        self.emitted: list[Mapping[str, object]] = []
        self.segments = self.messages = 0

    def on_alert(self, alert: Mapping[str, object]) -> None:
        self.emitted.append(alert)

    def add(self, *messages: captures.Message, tap: str = "server-1-0") -> None:
        """Add a segment that continues conversation c1 of the tap."""
        add_segment(self.capture, self.segments, messages, first=self.messages, tap=tap)
        self.segments += 1
        self.messages += len(messages)

    @contextmanager
    def begin(self) -> Iterator[AlertFinder]:
        """Begin as a process does that knows nothing but what was stored."""
        with open_finder(self.request, self) as finder:
            yield finder

    def run(self, now_ms: int = NOW_MS) -> bool:
        """Run one batch in a process of its own."""
        with self.begin() as finder:
            return finder.run(now_ms)

    def stored(self) -> list[dict[str, object]]:
        """Return the rows of the table, in the order of their messages."""
        rows = [
            row
            for file in (self.out / TABLE).rglob("*.parquet")
            for row in pq.ParquetFile(file).read().to_pylist()
        ]
        return sorted(rows, key=lambda row: (row["ts"], row["sender"]))

    def conversations(self) -> int:
        """Return how many conversations are stored."""
        with sqlite3.connect(self.out / "live" / FILE) as database:
            return int(database.execute("SELECT count(*) FROM conversations").fetchone()[0])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place without segments."""
    return Place(tmp_path)


def test_an_alert_is_a_row_and_an_event(place: Place) -> None:
    """With the columns of the table, in their order; times in an event are text."""
    place.add(*OPENING, FAULT)
    assert place.run() and not place.run()
    (row,) = place.stored()
    assert list(row) == ALERTS.fieldNames()
    assert [row[name] for name in ("kind", "protocol", "tap", "conversation", "peer")] == [
        *("violation", "filemq", "server-1-0", "c1", "00aa"),
    ]
    assert [row[name] for name in ("sender", "seq", "message")] == ["S", 2, "IcanhazOk"]
    assert row["raised"] == datetime.fromtimestamp(NOW_MS / 1000, UTC)
    assert row["ts"] == datetime(2023, 11, 14, 22, 13, 20, 2000, UTC)
    (event,) = place.emitted
    times = {name: value.isoformat() for name, value in row.items() if isinstance(value, datetime)}
    assert event == row | times
    (file,) = (place.out / TABLE).rglob("*.parquet")
    assert stored_schema(file) == ALERTS, "comments included"


def test_a_conversation_continues_in_the_next_batch(place: Place) -> None:
    """Each batch is read by a process of its own."""
    place.add(*OPENING)
    assert place.run()
    place.add(("C", captures.ICANHAZ), FAULT)
    assert place.run()
    assert place.emitted == []
    place.add(FAULT)
    assert place.run()
    assert [alert["seq"] for alert in place.emitted] == [4]


def test_segments_are_read_in_the_order_of_their_numbers(place: Place) -> None:
    """Also if the first one is compacted, and its name sorts after the others."""
    for _ in range(12):
        place.add(*(OPENING if place.segments == 0 else [("C", captures.ICANHAZ), FAULT]))
    first = place.capture / "server-1-0-000000.parquet"
    first.rename(first.with_name("server-1-0-000000_000001.parquet"))
    (place.capture / "server-1-0-000001.parquet").unlink()
    assert place.run()
    assert place.emitted == []


def test_silence_is_found_by_the_clock(place: Place) -> None:
    """Once for each side; an hour later, here a minute, the conversation is forgotten."""
    place.add(*OPENING)
    assert place.run(1_000)
    assert not place.run(5_999) and place.emitted == []
    assert not place.run(6_001)
    silent = [("silent", "C", None), ("silent", "S", None)]
    assert [(alert["kind"], alert["sender"], alert["seq"]) for alert in place.emitted] == silent
    assert not place.run(60_999) and place.conversations() == 1
    assert not place.run(61_001) and place.conversations() == 0
    assert not place.run(600_000)
    assert len(place.stored()) == len(place.emitted) == 2


def test_a_conversation_that_is_over_leaves_nothing(place: Place) -> None:
    """No state and no silence."""
    place.add(("C", captures.OHAI), ("S", captures.SRSLY))
    assert place.run(1_000)
    assert place.conversations() == 0
    assert not place.run(600_000) and place.emitted == []


def cut_short(place: Place, monkeypatch: pytest.MonkeyPatch, now_ms: int) -> None:
    """Run a batch that dies after it has written its files."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with place.begin() as finder, monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(finder, "_commit", die)
        finder.run(now_ms)


def test_a_batch_that_was_cut_short_runs_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what has come meanwhile; its files are replaced, and nothing of it was emitted."""
    place.add(*OPENING, FAULT)
    cut_short(place, monkeypatch, NOW_MS)
    assert len(place.stored()) == 1 and place.emitted == []
    place.add(FAULT)
    assert place.run()
    assert [row["seq"] for row in place.stored()] == [alert["seq"] for alert in place.emitted] == [2, 3]


def test_files_of_a_batch_that_was_cut_short_are_removed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be no alert when the batch runs again: a silent side may have sent a message."""
    place.add(*OPENING)
    place.run(1_000)
    cut_short(place, monkeypatch, 6_001)
    assert len(place.stored()) == 2
    place.add(("C", captures.HUGZ), ("S", captures.HUGZ))
    assert place.run(6_001)
    assert place.stored() == place.emitted == []


def test_alerts_that_were_not_emitted_are_emitted_by_the_next_watch(place: Place, tmp_path: Path) -> None:
    """A file of lines that cannot be written ends the watch with its name; no alert is lost."""
    place.add(*OPENING, FAULT)
    place.request = msgspec.structs.replace(place.request, alert_lines=tmp_path)
    with pytest.raises(JobError, match=r": alerts cannot be written: Is a directory$"):
        place.run()
    lines = tmp_path / "lines.json"
    place.request = msgspec.structs.replace(place.request, alert_lines=lines)
    with place.begin():
        assert [json.loads(line)["seq"] for line in lines.read_text().splitlines()] == [2]
    with place.begin():
        assert len(lines.read_text().splitlines()) == 1


def test_a_damaged_state_is_named(place: Place) -> None:
    """And nothing is emitted."""
    (place.out / "live" / FILE).write_bytes(b"no database" * 100)
    with pytest.raises(JobError, match=f"{FILE}: the state of alerts cannot be read or written: file is not"):
        place.run()


def test_a_folder_that_cannot_be_read_has_nothing_new(place: Place) -> None:
    """For a moment; the rounds of the watch report it."""
    place.add(FAULT)
    with place.begin() as finder:
        aside = place.capture.rename(place.capture.with_name("aside"))
        assert not finder.run(NOW_MS)
        aside.rename(place.capture)
        assert finder.run(NOW_MS) and len(place.emitted) == 1


def test_once_is_what_is_there(place: Place) -> None:
    """In several batches. Without rules there is nothing to do."""
    place.request = msgspec.structs.replace(place.request, once=True)
    for _ in range(40):
        place.add(FAULT)
    follow_alerts(place.request, place, threading.Event())
    assert len(place.emitted) == len(place.stored()) == 40
    files = {pq.read_metadata(file).num_rows for file in (place.out / TABLE).rglob("*.parquet")}
    assert files == {32, 8}
    follow_alerts(msgspec.structs.replace(place.request, rules=None), place, threading.Event())
