"""The checks of a job: silent if tables and counts agree, one sentence for each difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specwire.runtime.cli.job.checks import check_filemq, check_flux, check_norfab, check_ticker, compare_taps
from specwire.runtime.cli.job.filemq_part import FilemqResult, Moved
from specwire.runtime.cli.job.flux_part import FluxResult
from specwire.runtime.cli.job.norfab_part import NorfabResult
from specwire.runtime.cli.job.taps import Recorded
from specwire.runtime.cli.job.ticker_part import TickerResult
from specwire.runtime.spark.pipeline.summary import Summary, TapCount, Timeline

TAP = Recorded("server-1", "filemq", recorded=5, dropped=0)
FILEMQ = FilemqResult((Moved("server", 5, 100, 0, 1),), (), 1.0)
SUMMARY = Summary(
    "capture",
    (TapCount("server-1", "filemq", 5, 100, 0, 0, None, None),),
    (),
    (),
    (),
    Timeline(1.0, ()),
    {},
    1.0,
)


def write(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as the one file of a table."""
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")


@pytest.mark.parametrize(
    ("tap", "errors", "sentence"),
    [
        ({"recorded": 4}, 0, "the tap server-1 recorded 4 messages, and the tables hold 5"),
        ({"tap": "lost-1"}, 0, "the tap lost-1 recorded 5 messages, and the tables hold 0"),
        ({"dropped": 1}, 0, "the tap server-1 dropped 1 messages"),
        ({}, 2, "2 messages did not decode"),
    ],
)
def test_taps(tap: dict[str, object], errors: int, sentence: str) -> None:
    assert list(compare_taps((TAP,), SUMMARY)) == []
    counted = msgspec.structs.replace(SUMMARY.taps[0], errors=errors)
    changed = msgspec.structs.replace(TAP, **tap)
    assert list(compare_taps((changed,), msgspec.structs.replace(SUMMARY, taps=(counted,)))) == [sentence]


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (msgspec.structs.replace(FILEMQ, refusals=("x: why",)), "a FILEMQ peer refused x: why"),
        (
            msgspec.structs.replace(FILEMQ, peers=(Moved("server", 6, 100, 0, 1),)),
            "the FILEMQ peers moved 6 messages, and their taps recorded 5",
        ),
        (
            msgspec.structs.replace(FILEMQ, peers=(Moved("server", 5, 100, 7, 1),)),
            "the FILEMQ peers moved 7 octets of content, and the decoded chunks hold 0",
        ),
    ],
)
def test_filemq(result: FilemqResult, sentence: str) -> None:
    assert list(check_filemq(FILEMQ, (TAP,), SUMMARY)) == []
    assert list(check_filemq(result, (TAP,), SUMMARY)) == [sentence]


def test_flux(tmp_path: Path) -> None:
    """Only the tap of rank 0 counts, and only the topics of the service."""
    rows = [
        ("flux-broker-0-1", "calculator.square", "answered"),
        ("flux-broker-0-1", "calculator.root", "error"),
        ("flux-broker-1-1", "calculator.square", "answered"),
        ("flux-broker-0-1", "overlay.health", "answered"),
    ]
    write(
        tmp_path / "answers" / "requests",
        [{"tap": tap, "topic": topic, "outcome": outcome} for tap, topic, outcome in rows],
    )
    right = FluxResult(answered=1, failed=1, published=3, received=6, faults=())
    assert list(check_flux(right, tmp_path)) == []
    wrong = FluxResult(answered=2, failed=1, published=3, received=5, faults=("4 is wrong",))
    assert list(check_flux(wrong, tmp_path)) == [
        "4 is wrong",
        "2 Flux calls ended as answered, and the table requests holds 1",
        "3 Flux events were published, and 5 received",
    ]


def test_norfab(tmp_path: Path) -> None:
    write(
        tmp_path / "answers" / "jobs",
        [{"task": "ping", "outcome": name} for name in ("done", "failed", "done")],
    )
    assert list(check_norfab(NorfabResult(2, 1, 3, ()), tmp_path)) == []
    assert list(check_norfab(NorfabResult(2, 2, 3, ()), tmp_path)) == [
        "2 NORFAB jobs ended as failed, and the table jobs holds 1"
    ]


def test_ticker(tmp_path: Path) -> None:
    """The last price is that of the greatest sequence number, whatever the order of the rows."""
    quotes = [{"seq": 2, "symbol": "ACME", "price": 7}, {"seq": 1, "symbol": "ACME", "price": 5}]
    write(tmp_path / "typed" / "ticker" / "Quote", quotes)
    assert list(check_ticker(TickerResult(2, {"ACME": 7}, ()), tmp_path)) == []
    assert list(check_ticker(TickerResult(3, {"ACME": 5}, ()), tmp_path)) == [
        "3 quotes were received, and the table Quote holds 2",
        "the last prices were {'ACME': 5}, and in the table Quote they are {'ACME': 7}",
    ]


def test_a_missing_table_is_a_difference(tmp_path: Path) -> None:
    assert list(check_norfab(NorfabResult(1, 0, 1, ()), tmp_path)) == [
        "1 NORFAB jobs ended as done, and the table jobs holds 0"
    ]
