"""Computation of the summary from the table of counts, the ledger, and the largest transfers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from specwire.runtime.spark.pipeline.counts import STRETCHES, WIDTHS_MS, Way, cut
from specwire.runtime.spark.pipeline.ledger import TOTALS, Ledger, Outcome, count
from specwire.runtime.spark.pipeline.store import ANSWERS, View
from specwire.runtime.spark.pipeline.summary import (
    UNDECODED,
    Bucket,
    ErrorCount,
    Segments,
    SetAside,
    Summary,
    TapCount,
    Timeline,
    Totals,
    Transfer,
    TypeCount,
)

ERRORS_KEPT = 100
"""Maximum number of findings of each protocol."""
TOLD = 100
SHOWN = ("frames", "late", "typed", "answers")
"""Layers whose tables are in the summary."""


def sum_up(
    *,
    capture: Path,
    run: int,
    counts: pa.Table,
    ledger: Ledger,
    rows: Mapping[str, int],
    transfers: tuple[Transfer, ...],
    elapsed_s: float,
) -> Summary:
    """Return the summary of an output folder; `rows` is the row count of each table by path."""
    timelines = draw_timelines(counts)
    return Summary(
        capture=str(capture),
        taps=count_taps(counts, ledger),
        types=count_types(counts),
        errors=count_errors(counts),
        transfers=transfers,
        timeline=add_timelines(timelines.values()),
        timelines=timelines,
        tables={path: rows[path] for path in rows if path.partition("/")[0] in SHOWN},
        elapsed_s=round(elapsed_s, 3),
        run=run,
        totals=total(counts, ledger),
        segments=count_segments(ledger),
    )


def count_taps(counts: pa.Table, ledger: Ledger) -> tuple[TapCount, ...]:
    """Count the messages of each tap and protocol, and dropped ones; silent taps come last."""
    summed = counts.append_column(
        "wrong", pc.if_else(pc.is_valid(counts["wrong_kind"]), counts["messages"], 0)
    )
    groups = _group(
        summed,
        ["tap", "protocol"],
        {"messages": "sum", "octets": "sum", "wrong": "sum", "first": "min", "last": "max"},
    )
    dropped = {tap: number for tap, number in ledger.dropped().items() if number}
    missing = {tap: number for tap, number in _count_missing(ledger).items() if number}
    taps = [
        TapCount(
            tap=row["tap"],
            protocol=row["protocol"],
            messages=row["messages"],
            octets=row["octets"],
            errors=row["wrong"],
            dropped=dropped.pop(row["tap"], 0),
            missing=missing.pop(row["tap"], 0),
            first=_iso(row["first"]),
            last=_iso(row["last"]),
        )
        for row in sorted(groups, key=lambda row: (row["first"], row["tap"], row["protocol"]))
    ]
    silent = sorted(dropped.keys() | missing.keys())
    taps += (
        TapCount(tap, "", 0, 0, 0, dropped.get(tap, 0), None, None, missing.get(tap, 0)) for tap in silent
    )
    return tuple(taps)


def _count_missing(ledger: Ledger) -> dict[str, int]:
    """Count, for each tap, the messages between its first and last that no segment has."""
    known = ledger.known().items()
    return {tap: found[-1][1] - found[0][0] + 1 - count(found) for tap, found in known}


def count_types(counts: pa.Table) -> tuple[TypeCount, ...]:
    """Count messages by tap, type and sender."""
    keys = ["tap", "protocol", "message", "sender"]
    groups = _group(counts, keys, {"messages": "sum", "octets": "sum"})
    groups.sort(key=lambda row: (row["tap"], row["protocol"], row["message"] or "", row["sender"]))
    return tuple(TypeCount(**row) for row in groups)


def count_errors(counts: pa.Table) -> tuple[ErrorCount, ...]:
    """Count messages that did not decode by finding, the most frequent of each protocol first."""
    names = {"wrong_message": "message", "wrong_field": "field", "wrong_kind": "kind"}
    wrong = counts.filter(pc.is_valid(counts["wrong_kind"]))
    groups = _group(wrong, ["tap", "protocol", *names], {"text": "min", "messages": "sum"})
    groups.sort(key=lambda row: (-row["messages"], row["tap"], row["text"]))
    kept: Counter[str] = Counter()
    errors = []
    for row in groups:
        if kept[row["protocol"]] < ERRORS_KEPT:
            errors.append(ErrorCount(**{names.get(name, name): value for name, value in row.items()}))
            kept[row["protocol"]] += 1
    return tuple(errors)


def draw_timelines(counts: pa.Table) -> dict[str, Timeline]:
    """Return the timeline of each protocol, all with the same stretches, `STRETCHES` at most."""
    if not counts.num_rows:
        return {}
    first, last = pc.min(counts["first"]).as_py() // 1000, pc.max(counts["last"]).as_py() // 1000
    widest = pc.max(counts["width_ms"]).as_py()
    fitting = (width for width in WIDTHS_MS if width >= widest and last - first < width * STRETCHES)
    width_ms = next(fitting, WIDTHS_MS[-1])
    begin = first // width_ms
    # Cut before grouping, so that Python gets one row for each stretch and type.
    stretches = cut(counts, width_ms)
    messages: dict[str, dict[int, Counter[str]]] = {}
    octets: dict[str, Counter[int]] = {}
    for row in _group(stretches, ["protocol", "since", "message"], {"messages": "sum", "octets": "sum"}):
        index, protocol = row["since"] // width_ms - begin, row["protocol"]
        types = messages.setdefault(protocol, {}).setdefault(index, Counter())
        types[row["message"] or UNDECODED] += row["messages"]
        octets.setdefault(protocol, Counter())[index] += row["octets"]
    return {
        protocol: Timeline(
            width_ms / 1000,
            tuple(
                Bucket(index, types.total(), octets[protocol][index], dict(sorted(types.items())))
                for index, types in sorted(stretches.items())
            ),
        )
        for protocol, stretches in sorted(messages.items())
    }


def add_timelines(timelines: Iterable[Timeline]) -> Timeline:
    """Return the sum of timelines that have the same stretches."""
    types: dict[int, Counter[str]] = {}
    octets: Counter[int] = Counter()
    width_s = 1.0
    for timeline in timelines:
        width_s = timeline.width_s
        for bucket in timeline.buckets:
            types.setdefault(bucket.index, Counter()).update(bucket.types)
            octets[bucket.index] += bucket.octets
    return Timeline(
        width_s,
        tuple(
            Bucket(index, found.total(), octets[index], dict(sorted(found.items())))
            for index, found in sorted(types.items())
        ),
    )


def count_segments(ledger: Ledger) -> Segments:
    """Count segments by outcome, and list unreadable and unusual ones."""
    numbers = ledger.sums()
    told = [SetAside(entry.run, entry.name, entry.outcome, entry.reason) for entry in ledger.told()]
    told.sort(key=lambda item: (-item.run, item.outcome != Outcome.QUARANTINED, item.name))
    return Segments(
        read=numbers[Outcome.READ],
        partial=numbers[Outcome.PARTIAL],
        duplicate=numbers[Outcome.DUPLICATE],
        late=numbers[Outcome.LATE],
        quarantined=sum(item.outcome == Outcome.QUARANTINED for item in told),
        told=tuple(told[:TOLD]),
    )


def total(counts: pa.Table, ledger: Ledger) -> Totals:
    """Return the numbers of messages in all segments by result."""
    sums = ledger.sums()
    wrong = counts.filter(pc.is_valid(counts["wrong_kind"]))
    messages, errors = (int(pc.sum(part["messages"]).as_py() or 0) for part in (counts, wrong))
    captured, late, repeated = (sums[name] for name in TOTALS)
    return Totals(captured=captured, typed=messages - errors, errors=errors, late=late, repeated=repeated)


def _group(table: pa.Table, keys: list[str], ways: Mapping[str, Way]) -> list[dict[str, Any]]:
    grouped = table.group_by(keys).aggregate(list(ways.items()))
    names = {f"{name}_{way}": name for name, way in ways.items()}
    return grouped.rename_columns([names.get(name, name) for name in grouped.column_names]).to_pylist()


def _iso(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="microseconds")


KEPT = 200
"""Maximum number of conversations of each protocol."""


def find_transfers(view: View) -> tuple[Transfer, ...]:
    """Return the transfers by conversation, the largest of each protocol first.

    The result is empty if answers are not requested.
    """
    table = view.table(f"{ANSWERS}/transfers")
    return () if table is None else count_transfers(table)


def count_transfers(files: DataFrame) -> tuple[Transfer, ...]:
    """Count files by conversation, by protocol, the largest first; at most `KEPT` of each."""
    sent = F.col("outcome") != "deleted"
    counted = files.groupBy("protocol", "tap", "conversation", "peer").agg(
        F.count_if(sent & (F.col("offset") == 0)).alias("begun"),
        F.count_if(F.col("outcome") == "complete").alias("ended"),
        F.count_if(~sent).alias("deleted"),
        F.sum("chunks").alias("chunks"),
        F.sum("octets").alias("octets"),
        ((F.max("last_mono") - F.min("mono")) / 1e9).alias("seconds"),
    )
    largest = Window.partitionBy("protocol").orderBy(F.desc("octets"), "tap", "conversation")
    ranked = counted.withColumn("rank", F.row_number().over(largest)).where(F.col("rank") <= KEPT)
    rows = ranked.orderBy("protocol", "rank").drop("rank").collect()
    return tuple(Transfer(**row.asDict()) for row in rows)
