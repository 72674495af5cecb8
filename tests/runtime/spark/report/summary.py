"""Summary of a small capture of FILEMQ, written by hand, with faults and a hostile name."""

from __future__ import annotations

from specwire.runtime.spark.pipeline.summary import (
    Bucket,
    ErrorCount,
    Segments,
    SetAside,
    Summary,
    TapCount,
    Timeline,
    Transfer,
    TypeCount,
)
from tests.runtime.spark.report.findings import HOSTILE

SERVER, CLIENT = "server-10-5f0", "client-11-5f1"
FIRST, LAST = "2026-01-02T03:04:05.000001+00:00", "2026-01-02T03:04:07.500001+00:00"

SUMMARY = Summary(
    capture="captures/today",
    taps=(
        TapCount(SERVER, "filemq", 1202, 4096, 1, 3, FIRST, LAST),
        TapCount(CLIENT, "filemq", 1, 11, 0, 0, FIRST, FIRST),
    ),
    types=(
        TypeCount(SERVER, "filemq", None, "C", 1, 6),
        TypeCount(SERVER, "filemq", "Nom", "C", 1201, 4090),
        TypeCount(CLIENT, "filemq", "Nom", "C", 1, 11),
    ),
    errors=(ErrorCount(SERVER, "filemq", "NOM", "credit", "length", HOSTILE, 1),),
    transfers=(Transfer(SERVER, "filemq", "c1", HOSTILE, 5, 4, 1, 90, 5 << 20, 2.5),),
    timeline=Timeline(0.5, (Bucket(0, 3, 30, {"Nom": 2, "(undecoded)": 1}), Bucket(4, 6, 10, {"Nom": 6}))),
    tables={"filemq/tables/Nom": 1202},
    elapsed_s=1.5,
    segments=Segments(
        read=2, quarantined=1, told=(SetAside(1, "cut.parquet", "quarantined", f"cut off {HOSTILE}"),)
    ),
)
