"""Large and odd messages on their way through a run: each has its place in the tables."""

from __future__ import annotations

import hashlib
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from specwire.generated import flux
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.segments import Source, build_table, list_files, write_segment
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import ANSWERS, Store
from specwire.runtime.spark.pipeline.summary import Totals
from tests.runtime.spark import captures
from tests.runtime.spark.captures import BEGUN
from tests.spark_session import Command

pytestmark = pytest.mark.spark

LARGE = 16 << 20
"""Octets of the largest frame."""

HOUR_US = 3_600_000_000


def test_large_frames_and_jumping_clocks(spark: SparkSession, tmp_path: Path) -> None:
    """A frame of 16 MiB that does not compress is decoded as any other.

    A clock that goes back over midnight makes two dates, in order.

    A conversation is captured from its middle, by two taps, one of which has lost messages.
    """
    large = random.Random(1).randbytes(LARGE)
    request = flux.Request(topic="kvs.put", payload=large, matchtag=7)
    small = flux.Request(topic="kvs.get", payload=b"{}", matchtag=8)
    seen = [(request, 0), (small, -23 * HOUR_US), (small, HOUR_US)]
    folder = tmp_path / "capture"
    folder.mkdir()
    for tap, first, messages in (("a-1-0", 40, seen), ("b-2-0", 7, seen[1:])):
        rows = [
            Captured(BEGUN + shift, 10**6 * at, first + at * 2, "c9", "C", "x", tuple(message.encode()), 0)
            for at, (message, shift) in enumerate(messages)
        ]
        write_segment(folder, f"{tap}-000003.parquet", build_table(rows, Source(tap, "flux", "1"), 5))
    asked = Asked(layers=("frames", "typed"))
    summary = advance(spark, Store(tmp_path / "out"), list_files(folder), Request(folder, asked))
    assert summary is not None
    assert summary.totals == Totals(captured=5, typed=5)
    assert [(tap.tap, tap.messages, tap.dropped, tap.missing) for tap in summary.taps] == [
        ("a-1-0", 3, 5, 2),
        ("b-2-0", 2, 5, 1),
    ]
    requests = Store(tmp_path / "out").typed(spark, "flux")["Request"]
    found = (
        requests.where("tap = 'a-1-0'").orderBy("seq").select("seq", F.sha2("payload", 256), "date").collect()
    )
    of_large, of_small = (hashlib.sha256(payload).hexdigest() for payload in (large, b"{}"))
    assert [(row[0], row[1], str(row[2])) for row in found] == [
        (40, of_large, "2023-11-14"),
        (42, of_small, "2023-11-13"),
        (44, of_small, "2023-11-14"),
    ]
    files = list((tmp_path / "out" / "frames").rglob("*.parquet"))
    assert sum(pq.read_metadata(file).num_rows for file in files) == 5


def test_names_of_another_tool_are_made_texts(spark: SparkSession, tmp_path: Path, few_answers: None) -> None:
    """All layers take them, and the message is decoded as any other; a second run goes on from what is open."""
    folder, out = tmp_path / "capture", Store(tmp_path / "out")
    captures.write_capture(folder, [("C", captures.OHAI), ("C", captures.NOM)], tap="a-1-0")
    captures.put_octets(folder / "a-1-0-000000.parquet", "conversation", "sender", "peer")
    for tap in ("b-2-0", "c-3-0"):
        done = advance(spark, out, list_files(folder), Request(folder))
        captures.write_capture(folder, [("C", captures.NOM)], tap=tap)
    assert done is not None and done.totals == Totals(captured=3, typed=3)
    found = out.typed(spark, "filemq")["Nom"].where("tap = 'a-1-0'").collect()
    assert [(row.conversation, row.sender, row.peer) for row in found] == [(captures.AS_TEXT,) * 3]
    talks = out.table(spark, f"{ANSWERS}/conversations")
    assert talks is not None
    assert {row.conversation for row in talks.collect()} == {"c1", captures.AS_TEXT}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={4 << 20}", "tmpfs", str(folder)]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_leaves_the_earlier_output(spark: SparkSession, tmp_path: Path, small_disk: Path) -> None:
    """The run fails in one sentence, and what was there is there; with room it goes on."""
    folder, out = tmp_path / "capture", small_disk / "out"
    folder.mkdir()
    request = Request(folder, Asked(layers=("frames", "typed")))
    for number, octets in enumerate((10, 5 << 20)):
        message = flux.Request(topic="kvs.put", payload=random.Random(number).randbytes(octets), matchtag=7)
        rows = [Captured(BEGUN, number, number, "c", "C", "x", tuple(message.encode()), 0)]
        write_segment(
            folder, f"a-1-0-{number:06d}.parquet", build_table(rows, Source("a-1-0", "flux", "1"), 0)
        )
        if number == 0:
            first = advance(spark, Store(out), list_files(folder), request)
    with pytest.raises((JobError, PySparkException, Py4JError), match="No space left on device"):
        advance(spark, Store(out), list_files(folder), request)
    assert Store(out).summary() == first
    assert not [path.name for path in out.iterdir() if path.name.startswith(".staging")]
    subprocess.run(["mount", "-o", f"remount,size={64 << 20}", str(small_disk)], check=True)
    done = advance(spark, Store(out), list_files(folder), request)
    assert done is not None
    assert done.totals == Totals(captured=2, typed=2)


def test_a_segment_that_cannot_be_read_is_told(command: Command, tmp_path: Path) -> None:
    """Exit status 3 by the run that finds it; the next has nothing to do."""
    folder = captures.write_capture(tmp_path / "capture", [("C", captures.NOM)])
    (folder / "cut.parquet").write_bytes(next(folder.iterdir()).read_bytes()[:-9])
    run = ("pipeline", "run", "--capture", str(folder), "--out", str(tmp_path / "out"), "--layers", "typed")
    ran = command(*run)
    assert ran.status == 3, ran.err
    told = ran.out.replace("\n", " ")
    assert "segments that cannot be read: 1" in told and "cut.parquet: not a whole Parquet file" in told
    again = command(*run, "--master", "no master")
    assert (again.status, again.err) == (0, "nothing new since run 1\n")
    assert "segments that cannot be read: 1" in again.out
