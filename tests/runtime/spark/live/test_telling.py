"""Alerts that the server stored are told in their order, once; after a crash none is left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specwire.runtime.spark.live.alert_table import alert_file
from specwire.runtime.spark.live.behind import TOLD, Telling, forget_told, last_commit

STREAM = "0123456789abcdef"


class Place:
    """An output folder whose alerts another process writes."""

    def __init__(self, folder: Path) -> None:
        self.out, self.folder = folder, folder / "live"
        (self.folder / "alerts" / "commits").mkdir(parents=True)
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

    def begin(self) -> Telling:
        """Begin as a process does that knows nothing but what was kept."""

        def line(alert: Mapping[str, object]) -> None:
            assert alert["ts"] == "2026-01-02T00:00:00+00:00"
            self.lines.append(alert["text"])

        return Telling(self.out, self.folder, line)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place without alerts."""
    return Place(tmp_path)


def test_alerts_are_told_when_their_batch_is_committed(place: Place) -> None:
    """All days of a batch, batch by batch; a batch without alerts has no file."""
    telling = place.begin()
    assert telling.tell(STREAM) == 0
    place.store(1, "c", "d", day="2026-01-01")
    place.store(0, "b")
    place.store(0, "a", day="2026-01-01")
    assert telling.tell(STREAM) == 0
    place.commit(0)
    place.commit(1)
    place.commit(2)
    assert telling.tell(STREAM) == 4
    assert place.lines == ["a", "b", "c", "d"]
    assert telling.tell(STREAM) == 0


def test_the_next_watch_goes_on(place: Place) -> None:
    """With what was committed after the last one was cut off."""
    telling = place.begin()
    place.store(0, "a")
    place.commit(0)
    telling.tell(STREAM)
    place.store(1, "b")
    place.commit(1)
    assert place.begin().tell(STREAM) == 1
    assert place.lines == ["a", "b"]


def test_what_was_told_here_is_not_told_again(place: Place) -> None:
    """By a watch with a driver of its own, which forgets what was noted; nor where the note was lost."""
    place.commit(6)
    place.begin().tell(STREAM)
    forget_told(place.folder)
    place.store(7, "a")
    place.commit(7)
    assert place.begin().tell(STREAM) == 0
    (place.folder / TOLD).write_bytes(b"\0")
    assert place.begin().tell(STREAM) == 0


def test_a_checkpoint_that_is_begun_anew_counts_from_nought(place: Place) -> None:
    """Its query has another id."""
    place.store(4, "a")
    place.commit(4)
    place.begin().tell("another id")
    (place.folder / "alerts" / "commits" / "4").unlink()
    assert last_commit(place.folder / "alerts") == -1
    telling = place.begin()
    place.store(0, "b")
    place.commit(0)
    assert telling.tell(STREAM) == 1
