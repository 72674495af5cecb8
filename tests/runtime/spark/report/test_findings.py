"""What the report collects, from small answer tables whose sums were worked out by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, BinaryType, DateType, LongType, StringType, StructField, StructType

from specwire.runtime.spark.answers.schemas.conversations import CONVERSATIONS, TWINS, VIOLATIONS
from specwire.runtime.spark.answers.schemas.graph import EDGES
from specwire.runtime.spark.answers.schemas.health import SILENCES
from specwire.runtime.spark.answers.schemas.jobs import JOB_PARTS, JOBS
from specwire.runtime.spark.answers.schemas.requests import REQUESTS
from specwire.runtime.spark.answers.schemas.transfers import TRANSFERS
from specwire.runtime.spark.report.findings import collect
from specwire.runtime.spark.report.found import FRAMES_KEPT_OCTETS, Findings, LatencyBin

pytestmark = pytest.mark.spark

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DAY = date(2026, 1, 2)
FRAMES = StructType(
    [
        StructField("tap", StringType()),
        StructField("seq", LongType()),
        StructField("date", DateType()),
        StructField("frames", ArrayType(BinaryType())),
    ]
)
LONG_FRAME = bytes(FRAMES_KEPT_OCTETS + 5)


def table(spark: SparkSession, schema: StructType, rows: Sequence[dict[str, Any]]) -> DataFrame:
    """Return a table whose rows have the given columns, and null in all others."""
    common = {"protocol": "flux", "date": DAY, "tap": "t1", "conversation": "c1", "ts": BEGIN, "seq": 0}
    whole = [{**common, **row} for row in rows]
    return spark.createDataFrame([tuple(row.get(name) for name in schema.names) for row in whole], schema)


@pytest.fixture(scope="module")
def findings(spark: SparkSession) -> Findings:
    """Return what is collected of one of each table; conversation c2 is c1, seen by another tap."""
    request = {"topic": "kvs.get", "service": "kvs", "outcome": "answered"}
    twin = {"tap": "t2", "conversation": "c2"}
    tables = {
        "twins": table(spark, TWINS, [{**twin, "kept_tap": "t1", "kept_conversation": "c1"}]),
        "requests": table(
            spark,
            REQUESTS,
            [
                {**request, "latency_us": 100.0},
                {**request, "latency_us": 100.0},
                {**request, "latency_us": 1000.0, "outcome": "error"},
                {**request, "outcome": "unanswered"},
                {**request, "outcome": "noresponse"},
                {**request, **twin, "latency_us": 9.0},
            ],
        ),
        "job_parts": table(
            spark,
            JOB_PARTS,
            [
                {"service": "netbox", "task": "sync", "latency_us": 0.5, "outcome": "failed", "uuid": "j1"},
                {**twin, "service": "netbox", "task": "sync", "latency_us": 0.5, "uuid": "j1"},
            ],
        ),
        "jobs": table(spark, JOBS, [{"uuid": "j1"}, {**twin, "uuid": "j1"}]),
        "transfers": table(
            spark,
            TRANSFERS,
            [
                {"filename": "/a", "octets": 10, "duration_us": 5e6, "outcome": "complete", "stalls": 0},
                {"filename": "/b", "octets": 20, "duration_us": 1e6, "outcome": "cut", "stalls": 3},
                {"filename": "/c", "octets": 0, "outcome": "deleted", "stalls": 0},
            ],
        ),
        "conversations": table(
            spark,
            CONVERSATIONS,
            [
                {"first_ts": BEGIN, "last_ts": BEGIN + timedelta(seconds=1), "messages": 5},
                {**twin, "first_ts": BEGIN, "last_ts": BEGIN, "messages": 50},
            ],
        ),
        "silences": table(spark, SILENCES, [{"sender": "C", "silent_s": 3.0, "outcome": "silent"}]),
        "violations": table(
            spark,
            VIOLATIONS,
            [
                {"reading": "strict", "kind": "unexpected", "text": "later", "message": "Event", "seq": 4},
                {"reading": "concurrent", "kind": "sender", "text": "first", "message": "Event", "seq": 3},
                {"reading": "concurrent", "kind": "sender", "text": "second", "message": "Event", "seq": 9},
                {**twin, "reading": "concurrent", "kind": "sender", "text": "twin", "seq": 3},
            ],
        ),
        "edges": table(
            spark,
            EDGES,
            [
                {"kind": "messages", "source": "a", "source_role": "C", "target": "b", "target_role": "S"}
                | {"messages": 2, "octets": 20, "errors": 0, "date": day}
                for day in (DAY, DAY + timedelta(days=1))
            ],
        ),
        "frames": spark.createDataFrame(
            [
                ("t1", 3, DAY, [b"ab", LONG_FRAME]),
                ("t1", 4, DAY, None),
                ("t2", 3, DAY, [b"not this"]),
                ("t1", 9, DAY + timedelta(days=1), [b"of another day"]),
            ],
            FRAMES,
        ),
    }
    return collect(tables.get)


def test_latencies_fall_into_their_bins(findings: Findings) -> None:
    """100 µs is 2 decades: bin 40; 1000 µs is bin 60; what takes less than a microsecond is in bin 0; 5 s in bin 133."""
    assert findings.latency == (
        LatencyBin("job", 0, 1),
        LatencyBin("rpc", 40, 2),
        LatencyBin("rpc", 60, 1),
        LatencyBin("transfer", 133, 1),
    )


def test_topics_count_what_was_asked_once(findings: Findings) -> None:
    """Four requests count: two answered, one with an error, one given up; that without an answer wanted and the twin do not."""
    topics = {item.topic: item for item in findings.topics}
    kvs = topics["kvs.get"]
    assert (kvs.begun, kvs.answered, kvs.errors, kvs.unanswered) == (4, 3, 1, 1)
    assert (kvs.p50_us, kvs.p99_us, kvs.max_us) == (100.0, 1000.0, 1000.0)
    assert topics["sync"].errors == 1
    assert findings.topics[0].kind == "transfer"


def test_files_that_were_sent_come_by_size(findings: Findings) -> None:
    assert [(item.filename, item.outcome, item.stalls) for item in findings.files] == [
        ("/b", "cut", 3),
        ("/a", "complete", 0),
    ]


def test_second_views_of_a_connection_do_not_count(findings: Findings) -> None:
    assert [item.conversation for item in findings.presences] == ["c1"]
    assert len(findings.violations) == 3


def test_violations_come_with_their_frames(findings: Findings) -> None:
    """Those of the concurrent reading first; the long frame is cut, and its size said; null frames are none."""
    assert [item.text for item in findings.violations] == ["first", "second", "later"]
    first, second, later = findings.violations
    assert first.frames == (b"ab", LONG_FRAME[:FRAMES_KEPT_OCTETS])
    assert first.sizes == (2, len(LONG_FRAME))
    assert second.frames is None and later.frames is None
    assert [(item.kind, item.violations, item.conversations) for item in findings.violation_counts] == [
        ("sender", 2, 1),
        ("unexpected", 1, 1),
    ]


def test_moments_are_in_utc_wherever_the_machine_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark gives timestamps in the machine's time; in Kolkata that is five and a half hours later."""
    row = {"reading": "strict", "kind": "sender", "text": "", "seq": 1}
    rows = table(spark, VIOLATIONS, [row])
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        [found] = collect({"violations": rows}.get).violations
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found.ts == BEGIN
    assert found.ts.tzinfo is UTC


def test_edges_of_all_days_are_one(findings: Findings) -> None:
    [edge] = findings.edges
    assert (edge.messages, edge.octets) == (4, 40)


def test_what_has_no_tables_has_no_findings() -> None:
    assert collect(lambda name: None) == Findings()
