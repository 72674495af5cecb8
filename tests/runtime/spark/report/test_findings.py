"""What the report collects, from small answer tables whose sums were worked out by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, BinaryType, DateType, LongType, StringType, StructField, StructType

from specwire.runtime.spark.answers.dialogs.conversations import CONVERSATIONS, VIOLATIONS
from specwire.runtime.spark.answers.durations import TOPICS
from specwire.runtime.spark.answers.health import SILENCES
from specwire.runtime.spark.answers.taps import TWINS
from specwire.runtime.spark.answers.traffic import EDGES
from specwire.runtime.spark.answers.transfers import TRANSFERS
from specwire.runtime.spark.report.findings import FRAMES_KEPT_OCTETS, Findings, LatencyBin, collect

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
    asked = {"topic": "kvs.get", "service": "kvs"}
    twin = {"tap": "t2", "conversation": "c2"}
    tables = {
        "twins": table(spark, TWINS, [{**twin, "kept_tap": "t1", "kept_conversation": "c1"}]),
        "topics": table(
            spark,
            TOPICS,
            [
                {"kind": "rpc", **asked, "begun": 3, "answered": 2, "errors": 0, "unanswered": 1}
                | {"max_us": 100, "spread": [(200, 2)]},
                {"kind": "rpc", **asked, "begun": 1, "answered": 1, "errors": 1, "unanswered": 0}
                | {"max_us": 1000, "spread": [(300, 1)], "date": DAY + timedelta(days=1)},
                {"kind": "job", "service": "netbox", "topic": "sync", "begun": 1, "answered": 1, "errors": 1}
                | {"unanswered": 0, "max_us": 0, "spread": [(0, 1)]},
                {"kind": "transfer", "begun": 2, "answered": 2, "errors": 1, "unanswered": 0}
                | {"max_us": 5000000, "spread": [(669, 1), (665, 1)]},
                {"kind": "rpc", "service": "kvs", "topic": "kvs.put", "begun": 7, "answered": 0, "errors": 0}
                | {"unanswered": 5, "spread": []},
            ],
        ),
        "transfers": table(
            spark,
            TRANSFERS,
            [
                {"filename": "/a", "octets": 10, "duration_us": 5000000, "outcome": "complete", "stalls": 0},
                {"filename": "/b", "octets": 20, "duration_us": 1000000, "outcome": "cut", "stalls": 3},
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
            ]
            + [
                {"kind": "calls", "source": "a", "source_role": "C", "target": "b", "target_role": "service"}
                | {"messages": None, "octets": None, "errors": 1, "date": DAY},
                {"kind": "messages", "source": None, "source_role": None, "target": "b", "target_role": "S"}
                | {"messages": 1, "octets": 2, "errors": 0, "date": DAY},
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
    """Bins of a twentieth of a decade, from those of a hundredth: 200 is 40, 300 is 60, 665 and 669 are 133."""
    assert findings.latency == (
        LatencyBin("flux", "job", 0, 1),
        LatencyBin("flux", "rpc", 40, 2),
        LatencyBin("flux", "rpc", 60, 1),
        LatencyBin("flux", "transfer", 133, 2),
    )


def test_topics_of_all_days_are_one(findings: Findings) -> None:
    """Of three times on two days the second is in bin 200, which ends at 102.3 µs; the third is the longest."""
    topics = {item.topic: item for item in findings.topics}
    kvs = topics["kvs.get"]
    assert (kvs.begun, kvs.answered, kvs.errors, kvs.unanswered) == (4, 3, 1, 1)
    assert (kvs.p99_us, kvs.max_us) == (1000, 1000)
    assert kvs.p50_us == 102  # 10 ** 2.01 = 102.33, in whole microseconds
    assert topics["sync"].p50_us == 0
    assert [item.topic for item in findings.topics] == [None, "kvs.get", "sync", "kvs.put"]
    assert (topics["kvs.put"].begun, topics["kvs.put"].p99_us) == (7, None)


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
    edge, unnamed, calls = findings.edges
    assert (edge.messages, edge.octets) == (4, 40)
    # A tap may not know who sent a message.
    assert (unnamed.source, unnamed.source_role, unnamed.octets) == ("", "", 2)
    # A NORFAB job's messages are not counted on its edge.
    assert (calls.kind, calls.messages, calls.octets, calls.errors) == ("calls", 0, 0, 1)


def test_what_has_no_tables_has_no_findings() -> None:
    assert collect(lambda name: None) == Findings()


def test_silent_and_rare_ones_are_not_behind_busy_ones(spark: SparkSession) -> None:
    """A quiet conversation with a silence among busier ones; a rare violation after many; two protocols of edges."""
    many = range(80)
    talks = [{"conversation": f"c{n:02}", "first_ts": BEGIN, "last_ts": BEGIN, "messages": n} for n in many]
    broken = [
        {"reading": "strict", "kind": "unexpected", "text": str(n), "message": "Event", "seq": n}
        for n in many
    ]
    rare = {"reading": "strict", "kind": "sender", "text": "rare", "seq": 99}
    ends = {
        "kind": "messages",
        "source_role": "C",
        "target": "b",
        "target_role": "S",
        "messages": 1,
        "errors": 0,
    }
    edges = [{**ends, "source": f"p{n:02}", "octets": 1000 + n, "protocol": "filemq"} for n in many]
    tables = {
        "conversations": table(spark, CONVERSATIONS, talks),
        "silences": table(spark, SILENCES, [{"conversation": "c07", "sender": "C", "silent_s": 3.0}]),
        "violations": table(spark, VIOLATIONS, [*broken, rare]),
        "edges": table(spark, EDGES, [*edges, {**ends, "source": "child", "octets": 1}]),
    }
    found = collect(tables.get)
    assert [item.conversation for item in found.presences] == ["c07", *(f"c{n:02}" for n in range(51, 80))]
    assert [item.text for item in found.violations] == [*map(str, range(49)), "rare"]
    filemq, flux = (found.of(protocol).edges for protocol in ("filemq", "flux"))
    assert [edge.source for edge in filemq[:2]] == ["p79", "p78"]
    assert len(filemq) == 60
    assert [edge.source for edge in flux] == ["child"]


def test_peers_are_called_as_people_know_them(spark: SparkSession) -> None:
    """A NORFAB broker's tap knows a peer by its name in hexadecimal, other taps by an endpoint."""
    common = {"protocol": "norfab", "first_ts": BEGIN, "last_ts": BEGIN, "messages": 1}
    talks = [{**common, "peer": b"nf-1".hex()}, {**common, "peer": "tcp://hub:5555", "conversation": "c2"}]
    found = collect({"conversations": table(spark, CONVERSATIONS, talks)}.get)
    assert [item.peer for item in found.presences] == ["nf-1", "tcp://hub:5555"]
