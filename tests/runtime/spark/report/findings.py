"""Findings of all kinds, written by hand, with hostile names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from specwire.runtime.spark.report.findings import (
    Edge,
    File,
    Findings,
    GraphNode,
    LatencyBin,
    Presence,
    Silence,
    Topic,
    Total,
    Violation,
    ViolationCount,
)

HOSTILE = "<script>alert('&$')</script>"
BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TAP = "server-10-5f0"


def after(seconds: float) -> datetime:
    """Return a moment after the first message."""
    return BEGIN + timedelta(seconds=seconds)


FINDINGS = Findings(
    latency=(
        LatencyBin("filemq", "rpc", 40, 3),
        LatencyBin("filemq", "rpc", 43, 10),
        LatencyBin("filemq", "rpc", 60, 1),
    ),
    topics=(
        Topic("flux", "rpc", "kvs", HOSTILE, 12, 10, 1, 2, 140, 1000, 1001),
        Topic("norfab", "job", "netbox", "sync", 4, 0, 0, 4, None, None, None),
        Topic("filemq", "transfer", None, None, 2, 2, 0, 0, 2_000_000, 3_000_000, 3_000_000),
    ),
    files=(
        File("filemq", HOSTILE, f"/photos/{HOSTILE}", "complete", 5 << 20, 2.5e6, 2_000_000, 2, 1500),
        File("filemq", None, "/empty", "open", 0, None, 0, 0, 0),
    ),
    presences=(
        Presence("filemq", TAP, "c1", HOSTILE, after(0), after(9), 900),
        Presence("filemq", TAP, "c2", None, after(3), after(8), 12),
    ),
    silences=(
        Silence("filemq", TAP, "c1", None, "C", after(2), 4.0, "again"),
        Silence("filemq", TAP, "c2", HOSTILE, "S", after(4), 5.0, "silent"),
        Silence("filemq", TAP, "gone", None, "S", after(4), 5.0, "gone"),
    ),
    violation_counts=(
        ViolationCount("filemq", "concurrent", "undecodable", None, 1, 1),
        ViolationCount("filemq", "strict", "unexpected", "Nom", 1, 7),
    ),
    violations=(
        Violation(
            "filemq", TAP, 17, "c1", HOSTILE, after(1), "concurrent", "undecodable", "C", None,
            "the message does not decode", (bytes.fromhex("aaa307000001"),), (6,),
        ),
        Violation(
            "filemq", TAP, 18, "c2", None, after(2), "strict", "unexpected", None, "Nom",
            f"not here {HOSTILE}",
        ),
    ),
    nodes=(
        GraphNode("filemq", HOSTILE, "C", 5 << 20),
        GraphNode("filemq", TAP, "S", 5 << 20),
        GraphNode("norfab", "client", "C", 800),
        GraphNode("norfab", "netbox", "service", 800),
    ),
    edges=(
        Edge("filemq", "messages", HOSTILE, "C", TAP, "S", 900, 5000, 1),
        Edge("filemq", "messages", TAP, "S", HOSTILE, "C", 90, 5 << 20, 0),
        Edge("norfab", "calls", "client", "C", "netbox", "service", 8, 800, 0),
    ),
    totals=(
        Total("filemq", "concurrent", 1),
        Total("filemq", "conversations", 2),
        Total("filemq", "edges", 2),
        Total("filemq", "files", 2),
        Total("filemq", "nodes", 2),
        Total("filemq", "silences", 3),
        Total("filemq", "strict", 7),
        Total("filemq", "transfers", 1),
    ),
)  # fmt: skip
