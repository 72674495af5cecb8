"""Packet captures as input of a run: staged in parallel, each message once, and no incomplete file in silence.

The command of docs/how-to/pipeline.md reads packet captures in the same way.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.intake import Intake, take_in
from specwire.runtime.spark.pipeline.ledger import Ledger, Outcome
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.packets import stage_packets
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.pipeline.summary import Totals
from specwire.runtime.spark.reading.paths import find_inputs
from tests.runtime.pcap.wire import pcap
from tests.runtime.spark.packet_captures import peering, write_packets


class Runs:
    """Runs over a folder of packet captures, as far as their intake."""

    def __init__(self, folder: Path) -> None:
        self.capture = folder / "pcaps"
        self.ledger = Ledger()
        self._staging = folder / "staging"

    def run(self, number: int) -> Intake:
        """Take in what is new."""
        paths = find_inputs([self.capture]).packets
        staged = stage_packets(
            paths, self.ledger, self._staging / str(number), None, lambda done, total: None
        )
        found = take_in(paths, self.ledger, number, staged)
        self.ledger = self.ledger.add(found.entries)
        return found


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Runs over one file with three messages."""
    found = Runs(tmp_path)
    write_packets(found.capture / "a.pcap", peering().close())
    return found


def test_a_file_is_read_once(runs: Runs) -> None:
    """Under any name: its taps are named after its content."""
    assert runs.run(1).rows == 3
    assert runs.run(2).entries == ()
    (runs.capture / "copy.pcap").write_bytes((runs.capture / "a.pcap").read_bytes())
    (entry,) = runs.run(3).entries
    assert (entry.name, entry.outcome, entry.taken) == ("copy.pcap", Outcome.DUPLICATE, 0)


def test_a_file_that_has_grown_is_set_aside(runs: Runs) -> None:
    """With what was read of it; no message is read twice."""
    path = runs.capture / "a.pcap"
    talk = peering(hugz=2)
    path.write_bytes(pcap(talk.packets[:-1]))
    assert runs.run(1).rows == 3
    path.write_bytes(pcap(talk.packets))
    (entry,) = runs.run(2).entries
    assert (entry.outcome, entry.taken) == (Outcome.QUARANTINED, 0)
    assert "a.pcap: it has grown since run 1 read 3 messages of it" in entry.reason
    assert runs.run(3).entries == ()


def test_another_file_under_a_known_name_is_read(runs: Runs) -> None:
    """As a ring of files has them (tcpdump -W)."""
    assert runs.run(1).rows == 3
    write_packets(runs.capture / "a.pcap", peering(port=41_000, hugz=3))
    assert runs.run(2).rows == 5


def test_a_file_that_changes_meanwhile_waits(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the next run, which reads all of it."""
    path = runs.capture / "a.pcap"
    from specwire.runtime.spark.pipeline import packets

    write = packets._write

    def grow(*arguments: object) -> object:
        found = write(*arguments)  # type: ignore[arg-type]
        write_packets(path, peering(hugz=4))
        return found

    with monkeypatch.context() as patched:
        patched.setattr(packets, "_write", grow)
        (entry,) = runs.run(1).entries
    assert entry.outcome == Outcome.QUARANTINED and "it changed while it was read" in entry.reason
    assert runs.run(2).rows == 6


def test_what_is_missing_is_told(runs: Runs) -> None:
    """In the sentence of `specwire decode`; the messages that are there are read."""
    talk = peering(hugz=3)
    del talk.packets[-2]
    write_packets(runs.capture / "a.pcap", talk.close())
    found = runs.run(1)
    (entry,) = found.entries
    assert found.rows == 4 and entry.outcome == Outcome.READ
    assert entry.reason == (
        "5 octets of TCP are missing from the recording, in 1 place; messages there are lost"
    )


@pytest.mark.spark
def test_a_run_over_files(spark: SparkSession, runs: Runs, tmp_path: Path) -> None:
    """Two processes stage two files; frames name the file; a second run has nothing to do."""
    write_packets(runs.capture / "b.pcap", peering(port=41_000, hugz=2))
    (runs.capture / "empty.pcap").write_bytes(b"\xd4\xc3\xb2\xa1\x02\x00")
    store, request = Store(tmp_path / "out"), Request(runs.capture, Asked(layers=("frames", "typed")))
    paths = find_inputs([runs.capture]).packets
    summary = advance(spark, store, paths, request)
    assert summary is not None and summary.totals == Totals(captured=7, typed=7)
    frames = spark.read.parquet(str(store.out / "frames"))
    assert {(row.segment, row["count"]) for row in frames.groupBy("segment").count().collect()} == {
        ("a.pcap", 3),
        ("b.pcap", 4),
    }
    again = advance(spark, store, paths, request)
    assert again is not None and again.run == 1
