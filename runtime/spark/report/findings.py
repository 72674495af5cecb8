"""What the report shows of the answers, collected from their tables, bounded whatever they hold.

Everything is counted on Spark, so that only a few hundred rows come to the driver; after `collect` no more of
Spark is needed. Where two taps saw one connection, the second view is left out (the answer table ``twins``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, TypeVar

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from specwire.runtime.spark.answers.rates import counted
from specwire.runtime.spark.answers.taps import without_twins
from specwire.runtime.spark.report.found import (
    BINS_PER_DECADE,
    FRAMES_KEPT_OCTETS,
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

TOPICS_KEPT = 20
TRANSFERS_KEPT = 20
PRESENCES_KEPT = 30
SILENCES_KEPT = 300
VIOLATIONS_KEPT = 50
EDGES_KEPT = 60
Tables = Callable[[str], DataFrame | None]
"""Gives an answer table, or the layer of captured frames by the name ``frames``; None where there is none."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = TypeVar("Row", bound=msgspec.Struct)


def collect(tables: Tables) -> Findings:
    """Collect what the report shows; some ten small jobs."""
    twins = tables("twins")
    named = {name: tables(name) for name in ("requests", "jobs", "job_parts", "transfers", "twins")}
    there = {name: table for name, table in named.items() if table is not None}
    takes_time = {"requests": _requests, "job_parts": _parts, "transfers": _files}
    timed = [shape(counted(there, name)) for name, shape in takes_time.items() if name in there]
    latency = reduce(DataFrame.unionByName, timed) if timed else None
    violations = _violations(tables("violations"), twins)
    return Findings(
        latency=_bins(latency),
        topics=_topics(latency),
        files=_largest(tables("transfers"), twins),
        presences=_presences(tables("conversations"), twins),
        silences=_silences(tables("silences"), twins),
        violation_counts=_violation_counts(tables("violations"), twins),
        violations=_with_frames(violations, tables("frames")),
        edges=_edges(tables("edges")),
    )


def _alone(frame: DataFrame, twins: DataFrame | None) -> DataFrame:
    """Leave out the connections that another tap's view stands for."""
    return frame if twins is None else without_twins(frame, twins)


def _requests(table: DataFrame) -> DataFrame:
    wanted = table.where("outcome in ('answered', 'error', 'open', 'unanswered')")
    return wanted.select(
        "protocol", F.lit("rpc").alias("kind"), "service", "topic", "latency_us",
        (F.col("outcome") == "error").alias("error"), "outcome",
    )  # fmt: skip


def _parts(table: DataFrame) -> DataFrame:
    return table.select(
        "protocol", F.lit("job").alias("kind"), "service", F.col("task").alias("topic"), "latency_us",
        (F.col("outcome") == "failed").alias("error"), "outcome",
    )  # fmt: skip


def _files(table: DataFrame) -> DataFrame:
    nothing = F.lit(None).cast("string")
    ended = F.when(F.col("outcome") == "complete", F.col("duration_us"))
    return table.where("outcome <> 'deleted'").select(
        "protocol", F.lit("transfer").alias("kind"), nothing.alias("service"), nothing.alias("topic"),
        ended.alias("latency_us"), F.col("outcome").isin("cut", "ended").alias("error"), "outcome",
    )  # fmt: skip


def _bins(latency: DataFrame | None) -> tuple[LatencyBin, ...]:
    if latency is None:
        return ()
    at = F.floor(F.log10(F.greatest(F.col("latency_us"), F.lit(1.0))) * BINS_PER_DECADE).cast("int")
    counted = latency.where("latency_us is not null").groupBy("kind", at.alias("bin"))
    return _values(counted.agg(F.count("*").alias("count")).orderBy("kind", "bin"), LatencyBin)


def _topics(latency: DataFrame | None) -> tuple[Topic, ...]:
    """The topics whose 99th percentile is the highest; of those that never answered, the most asked."""
    if latency is None:
        return ()
    counted = latency.groupBy("protocol", "kind", "service", "topic").agg(
        F.count("*").alias("begun"),
        F.count("latency_us").alias("answered"),
        F.count_if("error").alias("errors"),
        F.count_if(F.col("outcome") == "unanswered").alias("unanswered"),
        F.percentile_approx("latency_us", 0.5).alias("p50_us"),
        F.percentile_approx("latency_us", 0.99).alias("p99_us"),
        F.max("latency_us").alias("max_us"),
    )
    ranked = counted.orderBy(F.desc_nulls_last("p99_us"), F.desc("begun"), "kind", "service", "topic")
    return _values(ranked.limit(TOPICS_KEPT), Topic)


def _largest(table: DataFrame | None, twins: DataFrame | None) -> tuple[File, ...]:
    if table is None:
        return ()
    ranked = _alone(table, twins).where("outcome <> 'deleted'").orderBy(F.desc("octets"), "filename", "seq")
    columns = [F.coalesce("stalled_us", F.lit(0.0)).alias("stalled_us")]
    names = ("protocol", "peer", "filename", "outcome", "octets", "octets_per_s", "stalls")
    duration = F.coalesce("duration_us", F.lit(0.0)).alias("duration_us")
    return _values(ranked.limit(TRANSFERS_KEPT).select(*names, duration, *columns), File)


def _presences(table: DataFrame | None, twins: DataFrame | None) -> tuple[Presence, ...]:
    """The busiest conversations, in the order in which they began."""
    if table is None:
        return ()
    busiest = _alone(table, twins).orderBy(F.desc("messages"), "tap", "conversation").limit(PRESENCES_KEPT)
    return _values(busiest.orderBy("first_ts", "tap", "conversation"), Presence)


def _silences(table: DataFrame | None, twins: DataFrame | None) -> tuple[Silence, ...]:
    if table is None:
        return ()
    longest = _alone(table, twins).orderBy(F.desc("silent_s"), "tap", "conversation", "seq")
    return _values(longest.limit(SILENCES_KEPT), Silence)


def _violation_counts(table: DataFrame | None, twins: DataFrame | None) -> tuple[ViolationCount, ...]:
    if table is None:
        return ()
    counted = (
        _alone(table, twins)
        .groupBy("protocol", "reading", "kind", "message")
        .agg(F.count_distinct("tap", "conversation").alias("conversations"), F.count("*").alias("violations"))
    )
    ranked = counted.orderBy(F.desc("violations"), "protocol", "reading", "kind", "message")
    return _values(ranked.limit(VIOLATIONS_KEPT), ViolationCount)


def _violations(table: DataFrame | None, twins: DataFrame | None) -> tuple[Violation, ...]:
    """The first violations; where peers did not wait for each other, those of the strict reading come last."""
    if table is None:
        return ()
    ranked = _alone(table, twins).orderBy(F.col("reading"), "ts", "tap", "seq")
    return _values(ranked.limit(VIOLATIONS_KEPT), Violation)


def _with_frames(found: Sequence[Violation], frames: DataFrame | None) -> tuple[Violation, ...]:
    if frames is None or not found:
        return tuple(found)
    wanted = F.lit(False)
    for tap, seq, day in {(item.tap, item.seq, item.ts.date()) for item in found}:
        # The day is a folder: without it every file would be looked into.
        wanted = wanted | ((F.col("date") == day) & (F.col("tap") == tap) & (F.col("seq") == seq))
    cut = F.transform("frames", lambda frame: F.substring(frame, 1, FRAMES_KEPT_OCTETS))
    sizes = F.transform("frames", F.octet_length)
    rows = frames.where(wanted).select("tap", "seq", cut.alias("frames"), sizes.alias("sizes")).collect()
    kept = {(row["tap"], row["seq"]): row for row in rows}
    return tuple(_complete(item, kept.get((item.tap, item.seq))) for item in found)


def _complete(item: Violation, row: Any) -> Violation:
    if row is None or row["frames"] is None:
        return item
    frames = tuple(bytes(frame or b"") for frame in row["frames"])
    return msgspec.structs.replace(item, frames=frames, sizes=tuple(size or 0 for size in row["sizes"]))


def _edges(table: DataFrame | None) -> tuple[Edge, ...]:
    if table is None:
        return ()
    keys = ("protocol", "kind", "source", "source_role", "target", "target_role")
    counted = table.groupBy(*keys).agg(
        F.sum("messages").alias("messages"),
        F.sum("octets").alias("octets"),
        F.sum("errors").alias("errors"),
    )
    ranked = counted.orderBy(F.desc("octets"), *keys)
    return _values(ranked.limit(EDGES_KEPT), Edge)


def _values(frame: DataFrame, kind: type[Row]) -> tuple[Row, ...]:
    """Collect rows as values of a type, whose fields name the columns.

    A timestamp comes as microseconds: Spark would give it in this machine's time, without saying so.
    """
    moments = {field.name for field in frame.schema if isinstance(field.dataType, TimestampType)}
    names = [field for field in kind.__struct_fields__ if field in frame.columns]
    columns = [F.unix_micros(name).alias(name) if name in moments else F.col(name) for name in names]
    rows = (row.asDict() for row in frame.select(*columns).collect())
    return tuple(
        kind(**{name: _moment(value) if name in moments else value for name, value in row.items()})
        for row in rows
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)
