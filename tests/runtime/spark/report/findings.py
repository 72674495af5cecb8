"""Findings of all kinds, written by hand, with hostile names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from specwire.runtime.spark.report.findings import (
    Edge,
    File,
    Findings,
    LatencyBin,
    Presence,
    Silence,
    Topic,
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
        LatencyBin("filemq", "job", 62, 4),
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
        Silence(TAP, "c1", "C", after(2), after(6), 4.0, "again", "filemq"),
        Silence(TAP, "c2", "S", after(4), None, 5.0, "silent", "filemq", HOSTILE),
        Silence(TAP, "gone", "S", after(4), None, 5.0, "gone", "filemq"),
    ),
    violation_counts=(
        ViolationCount("filemq", "concurrent", "undecodable", None, 1, 1),
        ViolationCount("filemq", "strict", "unexpected", "Nom", 1, 7),
    ),
    violations=(
        Violation(
            "filemq", TAP, 17, "c1", HOSTILE, after(1), "concurrent", "undecodable", "C", None, "READY",
            "the message does not decode", (bytes.fromhex("aaa307000001"),), (6,),
        ),
        Violation(
            "filemq", TAP, 18, "c2", None, after(2), "strict", "unexpected", None, "Nom", "START",
            f"not here {HOSTILE}",
        ),
    ),
    edges=(
        Edge("filemq", "messages", HOSTILE, "C", TAP, "S", 900, 5000, 1),
        Edge("filemq", "messages", TAP, "S", HOSTILE, "C", 90, 5 << 20, 0),
        Edge("norfab", "calls", "client", "C", "netbox", "service", 8, 800, 0),
    ),
)  # fmt: skip
