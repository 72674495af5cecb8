"""What the report shows of the answers, collected from their tables, bounded whatever they hold.

Everything is counted on Spark, so that only a few hundred rows come to the driver; after `collect` no more of
Spark is needed. Where two taps saw one connection, the second view is left out (the answer table ``twins``).

A report is made after each run, of all days there are. So what there is by the million is not gone through again:
how long requests, jobs and files took is in ``topics``, a row for each topic and day, and of the captured frames only
the days of the violations that are shown are looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from specwire.runtime.spark.answers.particulars import particulars_of
from specwire.runtime.spark.answers.taps import without_twins
from specwire.runtime.spark.answers.topics import BY, PER_DECADE, sum_topics
from specwire.runtime.spark.protocols import known_protocols
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
EACH_KIND = 3
"""Violations of each kind that come before more of those that are many."""
Tables = Callable[[str], DataFrame | None]
"""Gives an answer table, or the layer of captured frames by the name ``frames``; None where there is none."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = TypeVar("Row", bound=msgspec.Struct)


def collect(tables: Tables) -> Findings:
    """Collect what the report shows; some ten small jobs."""
    twins = tables("twins")
    violations = _violations(tables("violations"), twins)
    return Findings(
        latency=_bins(tables("topics")),
        topics=_topics(tables("topics")),
        files=_largest(tables("transfers"), twins),
        presences=_presences(tables("conversations"), tables("silences"), twins),
        silences=_silences(tables("silences"), twins),
        violation_counts=_violation_counts(tables("violations"), twins),
        violations=_with_frames(violations, tables("frames")),
        edges=_edges(tables("edges")),
    )


def _alone(frame: DataFrame, twins: DataFrame | None) -> DataFrame:
    """Leave out the connections that another tap's view stands for, and call peers as people know them."""
    named = F.col("peer")
    for protocol in known_protocols():
        name = particulars_of(protocol).peer_name
        if name != "peer":
            named = F.when(F.col("protocol") == protocol, F.expr(name)).otherwise(named)
    alone = frame if twins is None else without_twins(frame, twins)
    return alone.withColumn("peer", named)


def _bins(topics: DataFrame | None) -> tuple[LatencyBin, ...]:
    if topics is None:
        return ()
    spread = topics.select("kind", F.inline("spread"))
    wider = F.floor(F.col("bin") / (PER_DECADE // BINS_PER_DECADE)).cast("int")
    counted = spread.groupBy("kind", wider.alias("bin")).agg(F.sum("count").alias("count"))
    return _values(counted.orderBy("kind", "bin"), LatencyBin)


def _topics(topics: DataFrame | None) -> tuple[Topic, ...]:
    """The topics whose 99th percentile is the highest; of those that never answered, the most asked."""
    if topics is None:
        return ()
    summed = sum_topics(topics, "protocol", *BY)
    ranked = summed.orderBy(F.desc_nulls_last("p99_us"), F.desc("begun"), *BY)
    return _values(ranked.limit(TOPICS_KEPT), Topic)


def _largest(table: DataFrame | None, twins: DataFrame | None) -> tuple[File, ...]:
    if table is None:
        return ()
    ranked = _alone(table, twins).where("outcome <> 'deleted'").orderBy(F.desc("octets"), "filename", "seq")
    columns = [F.coalesce("stalled_us", F.lit(0)).alias("stalled_us")]
    names = ("protocol", "peer", "filename", "outcome", "octets", "octets_per_s", "stalls")
    duration = F.coalesce("duration_us", F.lit(0)).alias("duration_us")
    return _values(ranked.limit(TRANSFERS_KEPT).select(*names, duration, *columns), File)


def _presences(
    table: DataFrame | None, silences: DataFrame | None, twins: DataFrame | None
) -> tuple[Presence, ...]:
    """Conversations with the longest silences, then the busiest, in the order in which they began."""
    if table is None:
        return ()
    alone, place = _alone(table, twins), [F.desc("messages"), F.col("tap"), F.col("conversation")]
    if silences is not None:
        longest = silences.groupBy("tap", "conversation").agg(F.max("silent_s").alias("silent_s"))
        some = longest.orderBy(F.desc("silent_s"), "tap", "conversation").limit(PRESENCES_KEPT // 2)
        alone = alone.join(F.broadcast(some), ["tap", "conversation"], "left")
        place.insert(0, F.desc_nulls_last("silent_s"))
    chosen = alone.orderBy(*place).limit(PRESENCES_KEPT)
    return _values(chosen.orderBy("first_ts", "tap", "conversation"), Presence)


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
    """The first violations, of each kind some; where peers did not wait for each other, the strict reading comes last."""
    if table is None:
        return ()
    moment = (F.col("ts"), F.col("tap"), F.col("seq"))
    alike = Window.partitionBy("protocol", "reading", "kind", "message").orderBy(*moment)
    placed = _alone(table, twins).withColumn("place", F.row_number().over(alike))
    early = placed.where(F.col("place") <= VIOLATIONS_KEPT)
    chosen = early.orderBy(F.col("place") > EACH_KIND, "reading", *moment).limit(VIOLATIONS_KEPT)
    return _values(chosen.orderBy("reading", *moment), Violation)


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
    """Return the busiest edge of each protocol, then the second busiest of each, and so on.

    A NORFAB job is an edge without messages and octets: its messages are counted between peers.
    """
    if table is None:
        return ()
    keys = ("protocol", "kind", "source", "source_role", "target", "target_role")
    sums = (F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("messages", "octets", "errors"))
    counted = table.groupBy(*keys).agg(*sums)
    place = F.row_number().over(Window.partitionBy("protocol").orderBy(F.desc("octets"), *keys))
    ranked = counted.withColumn("place", place).orderBy("place", F.desc("octets"), *keys)
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
