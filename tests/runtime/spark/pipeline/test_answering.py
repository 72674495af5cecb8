"""Sums and roll-ups of several runs are those of one run over the whole capture.

Three taps, in four runs: a call that is open over midnight, a tap whose views of a connection come late and
replace those that counted, and a segment of a minute that the answers already have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from specwire.generated import flux
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.segments import Source, build_table, list_files, write_segment
from specwire.runtime.spark.answers import requests
from specwire.runtime.spark.pipeline import advance as advancing
from specwire.runtime.spark.pipeline import answering
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store, partition_date, run_number
from tests.runtime.spark.outputs import read_table

pytestmark = pytest.mark.spark

CHILD = "9af32562-7533-4e2f-bef3-89b82dabfb0d"
MIDNIGHT_S = 1_700_006_400
FIRST, SECOND = "2023-11-14", "2023-11-15"
"""The days before and after it."""
UNDECODABLE = (b"\x8e\x01\x01",)


class Said(NamedTuple):
    """A message: seconds from midnight, its sender, its tag, and whether it does not decode."""

    at_s: float
    sender: str
    tag: int
    broken: bool = False


class Segment(NamedTuple):
    """Messages that a tap saw on one connection; the first has `seq`."""

    tap: str
    conversation: str
    seq: int
    messages: tuple[Said, ...]

    def write(self, folder: Path) -> None:
        """Write the segment."""
        rows = []
        for seq, (at_s, sender, tag, broken) in enumerate(self.messages, self.seq):
            message = (flux.Request if sender == "C" else flux.Response)(topic=f"kvs.{tag % 2}", matchtag=tag)
            frames = UNDECODABLE if broken else tuple(message.encode())
            ts = int((MIDNIGHT_S + at_s) * 10**6)
            rows.append(Captured(ts, 1000 * ts, seq, self.conversation, sender, "00aa", frames, 0))
        folder.mkdir(exist_ok=True)
        source = Source(f"{self.tap}-1-a", "flux", "2")
        name = f"{source.tap}-{self.seq:06d}.parquet"
        write_segment(folder, name, build_table(rows, source, 0))


PARENT, HERE, THERE = f"0a0b0c0d-{CHILD}", f"11223344-{CHILD}", "0a0b0c0d-client"
RUNS = (
    (
        # The parent's view of its child. Call 2 waits until the next day.
        Segment(
            "parent",
            PARENT,
            0,
            (Said(-100, "C", 1), Said(-99, "S", 1), Said(-90, "C", 2), Said(-40, "S", 9, broken=True)),
        ),
    ),
    (
        Segment("parent", PARENT, 4, (Said(1, "C", 3), Said(10, "S", 2), Said(11, "S", 3))),
        # The child saw less of the first day.
        Segment("child", HERE, 0, (Said(-100, "C", 1), Said(-99, "S", 1))),
    ),
    (
        # With these it saw more, and its view counts.
        Segment(
            "child",
            HERE,
            2,
            (*(Said(-90 + n, "C", 10 + n) for n in range(3)), Said(-70, "S", 10), Said(5, "C", 3)),
        ),
    ),
    (
        # Minutes of the first day that the answers have, and one that they do not have.
        Segment(
            "other",
            THERE,
            0,
            (Said(-300, "C", 1), Said(-99, "S", 1), Said(-95, "C", 5, broken=True)),
        ),
    ),
)
TABLES = ("traffic", "errors", "twins", "nodes", "edges", "latency", "topics", "requests")


def content(store: Store) -> dict[str, list[str]]:
    """Return the rows of the answers and of the sums as texts."""
    tables = (*(f"answers/{name}" for name in TABLES), "state/flux/sent", "state/flux/calls")
    found = {table: [str(sorted(row.items())) for row in read_table(store, table)] for table in tables}
    return {table: sorted(rows) for table, rows in found.items()}


def run(spark: SparkSession, folder: Path, segments: Iterable[Segment]) -> Store:
    """Add segments to a capture and run over it."""
    capture, store = folder / "capture", Store(folder / "out")
    folder.mkdir(exist_ok=True)
    for segment in segments:
        segment.write(capture)
    assert advance(spark, store, list_files(capture), Request(capture))
    return store


def test_runs_come_to_the_same_as_the_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the run over the whole, Spark writes the tables, as where there are many messages."""
    monkeypatch.setattr(answering, "continued", lambda _: iter((requests.CONTINUED,)))
    with monkeypatch.context() as many:
        many.setattr(advancing, "FEW_MESSAGES", 0)
        whole = run(spark, tmp_path / "whole", (segment for segments in RUNS for segment in segments))
    expected = content(whole)
    assert all(expected.values())
    assert len(expected["answers/errors"]) == 2
    twins, latency = (read_table(whole, f"answers/{name}") for name in ("twins", "latency"))
    # On the first day the child saw six messages and the parent four, on the second it saw fewer.
    assert {(row["date"], row["conversation"]) for row in twins} == {(FIRST, PARENT), (SECOND, HERE)}
    # Calls 1, 10, 11 and 12 of the child, call 1 of the other tap; call 3 of the parent.
    begun, answered = Counter[str](), Counter[str]()
    for row in latency:
        begun[row["date"]] += row["begun"]
        answered[row["date"]] += row["answered"]
    assert begun == {FIRST: 5, SECOND: 1}
    assert answered == {FIRST: 3, SECOND: 1}
    for segments in RUNS:
        store = run(spark, tmp_path / "parts", segments)
    assert content(store) == expected
    for table in ("answers/traffic", "answers/latency", "answers/topics", "answers/edges", "state/flux/sent"):
        runs = {run_number(path) for path in store.files(table) if partition_date(path) == SECOND}
        assert 4 not in runs, "the last run has no messages of the second day"
