"""Alerts that the server stored are told in their order, once; after a crash none is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live.alerting import alert_file
from specwire.runtime.spark.live.queries import EMITTED_FILE, AlertEmitter, last_commit

STREAM = "0123456789abcdef"


class Place:
    """An output folder whose alerts another process writes."""

    def __init__(self, folder: Path) -> None:
        self.out, self.folder = folder, folder / "live"
        (self.folder / "alerts" / "commits").mkdir(parents=True)
        self.file = folder / "lines.json"
        self.lines: list[object] = []

    def store(self, number: int, *texts: str, day: str = "2026-01-02") -> None:
        """Write alerts of one batch and day."""
        folder = self.out / "alerts" / f"date={day}"
        folder.mkdir(parents=True, exist_ok=True)
        moments = [datetime(2026, 1, 2, tzinfo=UTC)] * len(texts)
        pq.write_table(pa.table({"ts": moments, "text": texts}), folder / alert_file(STREAM, number))

    def commit(self, number: int) -> None:
        """Note that Spark has committed a batch; it keeps the last ones on record."""
        (self.folder / "alerts" / "commits" / str(number)).touch()

    def begin(self) -> AlertEmitter:
        """Begin as a process does that knows nothing but what was kept."""

        def line(alert: Mapping[str, object]) -> None:
            assert alert["ts"] == "2026-01-02T00:00:00+00:00"
            self.lines.append(alert["text"])

        return AlertEmitter(self.out, line, self.file)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place without alerts."""
    return Place(tmp_path)


def test_alerts_are_told_when_their_batch_is_committed(place: Place) -> None:
    """All days of a batch, batch by batch; a batch without alerts has no file."""
    emitter = place.begin()
    emitter.emit(STREAM)
    place.store(1, "c", "d", day="2026-01-01")
    place.store(0, "b")
    place.store(0, "a", day="2026-01-01")
    emitter.emit(STREAM)
    assert place.lines == []
    place.commit(0)
    place.commit(1)
    place.commit(2)
    emitter.emit(STREAM)
    emitter.emit(STREAM)
    assert place.lines == ["a", "b", "c", "d"]
    assert [json.loads(line)["text"] for line in place.file.read_text().splitlines()] == place.lines


def test_the_next_watch_goes_on(place: Place) -> None:
    """With what was committed after the last one was cut off."""
    emitter = place.begin()
    place.store(0, "a")
    place.commit(0)
    emitter.emit(STREAM)
    place.store(1, "b")
    place.commit(1)
    place.begin().emit(STREAM)
    assert place.lines == ["a", "b"]


def test_without_its_note_nothing_is_told_again(place: Place) -> None:
    """Where the note is missing or was damaged, what was committed before counts as told."""
    place.store(6, "a")
    place.commit(6)
    place.begin().emit(STREAM)
    place.store(7, "b")
    place.commit(7)
    (place.folder / EMITTED_FILE).write_bytes(b"\0")
    place.begin().emit(STREAM)
    assert place.lines == []


def test_a_line_that_cannot_be_written_is_told(place: Place) -> None:
    """By the name of its file; it is written by the next watch."""
    place.store(0, "a")
    emitter = AlertEmitter(place.out, lambda alert: None, place.out)
    place.commit(0)
    with pytest.raises(JobError, match=r": alerts cannot be written: Is a directory$"):
        emitter.emit(STREAM)


def test_a_checkpoint_that_is_begun_anew_counts_from_nought(place: Place) -> None:
    """Its query has another id."""
    place.store(4, "a")
    place.commit(4)
    place.begin().emit("another id")
    (place.folder / "alerts" / "commits" / "4").unlink()
    assert last_commit(place.folder / "alerts") == -1
    emitter = place.begin()
    place.store(0, "b")
    place.commit(0)
    emitter.emit(STREAM)
    assert place.lines == ["b"]
