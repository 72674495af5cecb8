"""A capture of version 0.1.0, and the output folder of its pipeline: read as they are, and continued.

Expected values are those that `tests/data/0.1/write/capture.py.txt` put in.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.segments import (
    Source,
    build_table,
    find_segments,
    list_files,
    read_segments,
    write_segment,
)
from specwire.runtime.spark.pipeline.advance import advance, run
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import ANSWERS, FRAMES, Store
from tests.house.repository import ROOT

DATA = ROOT / "tests/data/0.1"

TAP = "server-17-60aa00bb00cc0"
CLIENT_TAP = "client-11089-661385dc8e8fd"
"""The name is `client`; process and time are those of the writing."""

BEGUN = datetime(2023, 11, 20, tzinfo=UTC)
MODIFIED_S = 1_800_000_000
"""When the files of the capture were written, as the pipeline noted it."""

NOM = [bytes.fromhex("aaa3070000010000000000")]
HUGZ = [bytes.fromhex("aaa309")]
SHORT_NOM = [bytes.fromhex("aaa307000001")]
MESSAGES = [
    ("C", [bytes.fromhex("aaa3010646494c454d5102")]),
    ("S", [bytes.fromhex("aaa304")]),
    ("C", [bytes.fromhex("aaa305072f70686f746f730108524553594e433d31010a612e6a70673d44413339")]),
    ("S", [bytes.fromhex("aaa306")]),
    ("C", NOM),
    (
        "S",
        [
            bytes.fromhex("aaa30800000000000000050105612e6a7067000000000000100000"),
            bytes.fromhex("000164617461"),
        ],
    ),
    ("S", [bytes.fromhex("aaa30800000000000000060205612e6a7067000000000000000000"), b""]),
    ("C", SHORT_NOM),
]
LIVE = [("C", NOM), ("S", HUGZ)]

TYPES = {
    ("server", "Ohai"): 1,
    ("server", "OhaiOk"): 1,
    ("server", "Icanhaz"): 1,
    ("server", "IcanhazOk"): 1,
    ("server", "Nom"): 1,
    ("server", "Cheezburger"): 2,
    ("server", None): 1,
    ("client", "Nom"): 1,
    ("client", "Hugz"): 1,
}


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A copy of the capture, its files as old as they were for the pipeline."""
    folder = shutil.copytree(DATA / "capture", tmp_path / "capture")
    for path in folder.iterdir():
        os.utime(path, (MODIFIED_S, MODIFIED_S))
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A copy of the output folder."""
    return shutil.copytree(DATA / "pipeline", tmp_path / "out")


def test_footers_say_which_tap_wrote_a_file(capture: Path) -> None:
    """One file stands for two segments that were compacted, the other was written by a live tap."""
    live, compacted = find_segments(capture)
    assert live.source == Source(CLIENT_TAP, "filemq", "2", "keep")
    assert (live.path.name, live.rows, live.dropped) == (f"{CLIENT_TAP}-000000.parquet", 2, 0)
    assert compacted.source == Source(TAP, "filemq", "2", "keep")
    assert (compacted.path.name, compacted.rows, compacted.dropped) == (
        f"{TAP}-000000_000001.parquet",
        8,
        3,
    )


def test_messages_are_read_as_they_were_captured(capture: Path) -> None:
    rows = read_segments(capture).to_pylist()
    assert {row["protocol"] for row in rows} == {"filemq"}
    server = [row for row in rows if row["tap"] == TAP]
    assert [(row["sender"], row["frames"]) for row in server] == MESSAGES
    assert [row["seq"] for row in server] == [*range(8)]
    assert [row["mono"] for row in server] == [*range(8)]
    assert [row["ts"] for row in server] == [BEGUN + timedelta(seconds=number) for number in range(8)]
    assert {(row["conversation"], row["peer"]) for row in server} == {("c1", "00aa")}
    client = [row for row in rows if row["tap"] == CLIENT_TAP]
    assert [(row["seq"], row["sender"], row["frames"]) for row in client] == [
        (number, sender, frames) for number, (sender, frames) in enumerate(LIVE)
    ]
    assert {(row["conversation"], row["peer"]) for row in client} == {("a", "tcp://127.0.0.1:5670")}


def test_summary_of_the_pipeline_is_read(out: Path) -> None:
    store = Store(out)
    assert store.manifest.run == 1
    assert store.protocols() == ["filemq"]
    summary = store.summary()
    assert summary is not None
    assert {(item.tap.split("-")[0], item.message): item.messages for item in summary.types} == TYPES
    assert {tap.tap: (tap.messages, tap.errors, tap.dropped, tap.missing) for tap in summary.taps} == {
        TAP: (8, 1, 3, 0),
        CLIENT_TAP: (2, 0, 0, 0),
    }
    [error] = summary.errors
    assert (error.message, error.field, error.messages) == ("NOM", "credit", 1)


@pytest.mark.spark
def test_answers_get_the_columns_of_this_version(spark: SparkSession, capture: Path, out: Path) -> None:
    """By one run without new segments; after it there is nothing to do, and Spark is not started."""
    assert {str(file_type(out, "transfers", "duration_us"))} == {"double"}
    request = Request(capture)
    summary = advance(spark, Store(out), list_files(capture), request)
    assert summary is not None
    assert summary.messages == 10
    assert file_type(out, "transfers", "duration_us") == "int64"
    names = ds.dataset(out / "answers/conversations").to_table()["conversation_name"].to_pylist()
    assert {*names} == {"client with tcp://127.0.0.1:5670", "server with 00aa"} and len(names) == 2
    assert run(request, out, target="no master") is None
    assert Store(out).manifest.run == 2


def file_type(out: Path, answer: str, column: str) -> str:
    """Return the type that all files of an answer have for a column."""
    files = Store(out).files(f"answers/{answer}")
    (found,) = {str(pq.read_schema(file).field(column).type) for file in files}
    return found


@pytest.mark.spark
def test_tables_of_the_pipeline_are_read(spark: SparkSession, out: Path) -> None:
    store = Store(out)
    frames = store.table(spark, FRAMES)
    assert frames is not None
    found = [
        (row["tap"], row["seq"], row["sender"], [bytes(frame) for frame in row["frames"]])
        for row in frames.orderBy("tap", "seq").collect()
    ]
    assert found == [
        *((CLIENT_TAP, number, sender, octets) for number, (sender, octets) in enumerate(LIVE)),
        *((TAP, number, sender, octets) for number, (sender, octets) in enumerate(MESSAGES)),
    ]
    typed = store.typed(spark, "filemq")
    counts = {name: table.count() for name, table in typed.items()}
    assert {name: count for name, count in counts.items() if count} == {
        "Ohai": 1,
        "OhaiOk": 1,
        "Icanhaz": 1,
        "IcanhazOk": 1,
        "Nom": 2,
        "Cheezburger": 2,
        "Hugz": 1,
        "_errors": 1,
    }
    assert [row["credit"] for row in typed["Nom"].collect()] == [0x10000000000, 0x10000000000]
    [first, second] = typed["Cheezburger"].orderBy("seq").collect()
    assert (first["filename"], bytes(first["chunk"])) == ("a.jpg", b"\0\x01data")
    assert (second["filename"], bytes(second["chunk"])) == ("a.jpg", b"")
    [icanhaz] = typed["Icanhaz"].collect()
    assert icanhaz["path"] == "/photos"


@pytest.mark.spark
def test_pipeline_continues_its_folder(spark: SparkSession, capture: Path, out: Path) -> None:
    """A new segment of the same tap is worked in, and what was read is not read again."""
    at = int((BEGUN + timedelta(seconds=8)).timestamp()) * 10**6
    rows = [
        Captured(at, 8, 8, "c1", "C", "00aa", tuple(NOM), 0),
        Captured(at, 9, 9, "c1", "C", "00aa", tuple(HUGZ), 0),
    ]
    write_segment(capture, f"{TAP}-000002.parquet", build_table(rows, Source(TAP, "filemq", "2"), 3))
    store = Store(out)
    summary = advance(spark, store, list_files(capture), Request(capture))
    assert summary is not None
    expected = {**TYPES, ("server", "Nom"): 2, ("server", "Hugz"): 1}
    assert {(item.tap.split("-")[0], item.message): item.messages for item in summary.types} == expected
    assert store.manifest.run == 2
    conversations = store.table(spark, f"{ANSWERS}/conversations")
    assert conversations is not None
    assert {row["tap"]: row["messages"] for row in conversations.collect()} == {TAP: 10, CLIENT_TAP: 2}
    noms = ds.dataset(out / "typed/filemq/Nom").to_table(columns=["edition", "conversation_name"])
    old, new = (None, None), ("FILEMQ v2", "server with 00aa")
    assert sorted(map(tuple, map(dict.values, noms.to_pylist())), key=repr) == [new, old, old]
