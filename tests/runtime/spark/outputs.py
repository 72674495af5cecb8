"""Outputs of the pipeline with all answers, each of which several modules read and a worker makes once.

A test that changes an output copies it first; the fixtures fail when a file was changed. The other tests of
runs have `few_answers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, find, settings
from pyspark.sql import SparkSession

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, list_files, write_segment
from specwire.runtime.spark.answers import taps
from specwire.runtime.spark.answers.dialogs import conversations
from specwire.runtime.spark.pipeline import answering
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.protocols import load_schemas
from specwire.runtime.spark.report.page import draw_report
from tests.benchmarks.spark.busy.capture import write_capture as write_busy_capture
from tests.runtime.spark import captures

END_OF_FILE = [bytes.fromhex("aaa30800000000000000070105612e6a7067000000000000100600"), b""]
"""An empty chunk at the file's size."""

ZMTP_PING = [bytes.fromhex("04070450494e470064")]
"""A short command of seven octets: its name, and ten seconds to live."""

DAY_US = 86_400_000_000
BEGUN = (1_780_000_000_000_000, 1_780_000_000_000_000 + 30 * DAY_US)
"""When the messages of the two runs begin: 2026-05-28 and 2026-06-27."""

JSON = b'{"rank": 1.5, "big": 18446744073709551615, "list": [1, null]}\0'
LARGE = 2**63 + 5

ANSWERED = ("filemq", "flux")
"""Protocols of which the output of two runs holds a message of each class."""


class Output(NamedTuple):
    """A capture and the output folder of its runs."""

    capture: Path
    out: Path


@pytest.fixture(scope="session")
def one_run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Output]:
    """The output of one run: two protocols, with an error, a transfer, drops, a message without frames, one of no protocol."""
    folder = tmp_path_factory.mktemp("pipeline")
    capture, out = folder / "capture [1]", folder / "out {a}"
    write_odd_capture(capture)
    assert advance(spark, Store(out), list_files(capture), Request(capture), draw=draw_report)
    with unchanged(folder):
        yield Output(capture, out)


@pytest.fixture(scope="session")
def two_runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Output]:
    """The output of two runs, by hour.

    The first adds a busy network of FILEMQ, Flux and NORFAB, with faults of all kinds, and a message of each class of
    FILEMQ and Flux. The second adds such messages a month later, with JSON in their payloads.
    """
    folder = tmp_path_factory.mktemp("two-runs")
    capture, out = folder / "capture", folder / "out"
    write_busy_capture(capture, 4000)
    run_twice(spark, capture, Store(out), ANSWERED, Asked(partition="hour"))
    with unchanged(folder):
        yield Output(capture, out)


@pytest.fixture
def few_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave one answer that runs continue, the sums, and one roll-up: each answer takes a second a run."""
    monkeypatch.setattr(answering, "continued", lambda _: iter([conversations.CONTINUED]))
    monkeypatch.setattr(answering, "roll_ups", lambda _: iter([taps.ROLL_UP]))


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Fail when a file of a folder has changed at the end of a block."""

    def times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}

    before = times()
    yield
    assert times() == before, f"a test has changed the shared output {folder}"


def read_table(store: Store, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table with its partition columns; pyarrow is quicker than a query of Spark."""
    files = list(map(str, store.files(table)))
    return (
        ds.dataset(files, partitioning=ds.partitioning(flavor="hive")).to_table().to_pylist() if files else []
    )


def write_odd_capture(folder: Path) -> None:
    """Write what three taps recorded; one of them states strange things."""
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
    odd = [("C", captures.HUGZ), ("X", captures.HUGZ), ("", captures.HUGZ), ("C", captures.HUGZ), ("C", [])]
    captures.write_capture(folder, odd, tap="odd-3-0")
    table = pq.read_table(folder / "odd-3-0-000000.parquet")
    rows = table.to_pylist()
    rows[1]["frames"], rows[2]["sender"], rows[3]["protocol"] = [None, b"\xaa\xa3\x09"], None, "../gopher"
    rows.append({**rows[0], "seq": 5, "frames": None})
    rows.append({**rows[0], "seq": 6, "protocol": None})
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), folder / "odd-3-0-000000.parquet")
    captures.write_capture(folder, [("P", ZMTP_PING)], tap="c-2-0", protocol="zmtp")


def run_twice(
    spark: SparkSession, capture: Path, store: Store, protocols: tuple[str, ...], asked: Asked
) -> None:
    """Add a message of each class to a capture and run over it, twice."""
    for run in (0, 1):
        _write_classes(capture, protocols, run)
        assert advance(spark, store, list_files(capture), Request(capture, asked))


def _write_classes(folder: Path, protocols: tuple[str, ...], run: int) -> None:
    """Write a segment of each protocol for the first or the second run."""
    folder.mkdir(exist_ok=True)
    for protocol in protocols:
        rows = [
            Captured(
                BEGUN[run] + seq * 1000, seq * 10**6, seq + 100 * run, "c1", sender, "p", tuple(frames), 0
            )
            for seq, (sender, frames) in enumerate(_messages_of(protocol, run))
        ]
        tap = f"{protocol}-1-{run}"
        write_segment(folder, segment_name(tap, 0), build_table(rows, Source(tap, protocol, "1"), 0))


def _messages_of(protocol: str, run: int) -> Iterator[tuple[str, list[bytes]]]:
    """Yield a message of each class with its sender; in the second run with JSON and large numbers."""
    package = import_module(f"specwire.generated.{protocol}")
    for name in load_schemas(protocol).SCHEMAS:
        message = _smallest(protocol, name)
        if run and protocol == "flux" and name in ("Request", "Response"):
            message = getattr(package, name)(topic="kvs.get", payload=JSON, matchtag=7)
        if run and (protocol, name) == ("filemq", "Nom"):
            message = package.Nom(credit=LARGE)
        yield "C", message.encode()
    yield "C", [b"\xff\xfe"]


@cache
def _smallest(protocol: str, name: str) -> Any:
    """Return the smallest message of a class."""
    strategies = import_module(f"specwire.generated.{protocol}.strategies")
    function = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    made = getattr(strategies, function, None) or getattr(strategies, f"{function}_")
    # The first message that is drawn; it is the smallest.
    return find(made(), lambda _: True, settings=settings(phases=[Phase.generate], database=None))
