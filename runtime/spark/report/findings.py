"""Data of the report, collected from the answer tables; its size is bounded for any capture.

Spark does the counting, so only some hundred rows are sent to the driver. `collect` runs about ten
small jobs; afterwards Spark is not needed. If two taps saw one connection, the second view is
omitted (answer table ``twins``). Limits hold for each protocol, so that a busy one does not
displace a quiet one.

A report is made after each run and covers all days. So large tables are not read again: latencies
are in ``topics``, one row for each topic and day, and of the captured frames only the days of the
violations shown are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from specwire.runtime.spark.answers.durations import PER_DECADE, SUBJECT, sum_topics
from specwire.runtime.spark.answers.protocol_specifics import specifics_of
from specwire.runtime.spark.answers.taps import without_twins
from specwire.runtime.spark.protocols import known_protocols
from specwire.runtime.spark.report.text import EPOCH

BINS_PER_DECADE = 20
"""Bins of the latency distribution: each is 12 % wider than the one before."""

FRAMES_KEPT_OCTETS = 4096
"""Octets kept of each frame of a violation; for longer frames the size is kept, too."""
FRAMES_KEPT = 32
"""Frames kept of one message."""

TOPICS_KEPT = 20
TRANSFERS_KEPT = 20
PRESENCES_KEPT = 30
SILENCES_KEPT = 100
VIOLATIONS_KEPT = 50
EDGES_KEPT = 60
EACH_KIND = 3
"""Violations of each kind that precede more violations of frequent kinds."""

Tables = Callable[[str], DataFrame | None]
"""Returns an answer table, or the layer ``frames`` of captured frames; None if there is none."""

Row = TypeVar("Row", bound=msgspec.Struct)


class LatencyBin(msgspec.Struct, frozen=True):
    """Number of answers that took 10 ** (bin / 20) microseconds and more, up to the next bin."""

    protocol: str
    kind: str
    bin: int
    count: int


class Topic(msgspec.Struct, frozen=True):
    """Requests, jobs or files of one topic.

    Quantiles in microseconds, None if nothing was answered.
    """

    protocol: str
    kind: str
    service: str | None
    topic: str | None
    begun: int
    answered: int
    errors: int
    unanswered: int
    p50_us: int | None
    p99_us: int | None
    max_us: int | None


class File(msgspec.Struct, frozen=True):
    """One file that was sent."""

    protocol: str
    peer: str | None
    filename: str
    outcome: str
    octets: int
    octets_per_s: float | None
    duration_us: int
    stalls: int
    stalled_us: int


class Presence(msgspec.Struct, frozen=True):
    """A conversation from its first to its last message."""

    protocol: str
    tap: str
    conversation: str
    peer: str | None
    first_ts: datetime
    last_ts: datetime
    messages: int


class Silence(msgspec.Struct, frozen=True):
    """A side that was silent for longer than its heartbeat allows.

    `until_ts` is None if it never spoke again.
    """

    tap: str
    conversation: str
    sender: str
    ts: datetime
    until_ts: datetime | None
    silent_s: float
    outcome: str
    protocol: str = ""
    peer: str | None = None


class ViolationCount(msgspec.Struct, frozen=True):
    """Violations of one kind."""

    protocol: str
    reading: str
    kind: str
    message: str | None
    conversations: int
    violations: int


class Violation(msgspec.Struct, frozen=True):
    """Message that broke the dialog; `frames` is None if the captured frames are not kept.

    The first `FRAMES_KEPT` frames are cut to `FRAMES_KEPT_OCTETS` each; `sizes` has their full
    sizes.
    """

    protocol: str
    tap: str
    seq: int
    conversation: str
    peer: str | None
    ts: datetime
    reading: str
    kind: str
    sender: str | None
    message: str | None
    state: str | None
    text: str
    frames: tuple[bytes, ...] | None = None
    sizes: tuple[int, ...] = ()


class Edge(msgspec.Struct, frozen=True):
    """Traffic from one peer to another, or to a service, over all days."""

    protocol: str
    kind: str
    source: str
    source_role: str
    target: str
    target_role: str
    messages: int
    octets: int
    errors: int


class Findings(msgspec.Struct, frozen=True):
    """All data of the report from the answers.

    A sequence is empty if its table is empty or missing.
    """

    latency: tuple[LatencyBin, ...] = ()
    topics: tuple[Topic, ...] = ()
    files: tuple[File, ...] = ()
    presences: tuple[Presence, ...] = ()
    silences: tuple[Silence, ...] = ()
    violation_counts: tuple[ViolationCount, ...] = ()
    violations: tuple[Violation, ...] = ()
    edges: tuple[Edge, ...] = ()

    def of(self, protocol: str) -> Findings:
        """Return the findings of one protocol."""
        parts = {
            name: tuple(item for item in getattr(self, name) if item.protocol == protocol)
            for name in self.__struct_fields__
        }
        return Findings(**parts)


def collect(tables: Tables) -> Findings:
    """Collect the findings from the tables."""
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
    """Omit the second views of connections, and replace peers' identities by names for people."""
    named = F.col("peer")
    for protocol in known_protocols():
        name = specifics_of(protocol).peer_name
        if name != "peer":
            named = F.when(F.col("protocol") == protocol, F.expr(name)).otherwise(named)
    alone = frame if twins is None else without_twins(frame, twins)
    return alone.withColumn("peer", named)


def _first(frame: DataFrame, order: Sequence[Column | str], number: int) -> DataFrame:
    """Return the first rows of each protocol in this order."""
    place = F.row_number().over(Window.partitionBy("protocol").orderBy(*order))
    return frame.withColumn("place", place).where(F.col("place") <= number).orderBy("protocol", "place")


def _bins(topics: DataFrame | None) -> tuple[LatencyBin, ...]:
    if topics is None:
        return ()
    spread = topics.select("protocol", "kind", F.inline("spread"))
    wider = F.floor(F.col("bin") / (PER_DECADE // BINS_PER_DECADE)).cast("int")
    counted = spread.groupBy("protocol", "kind", wider.alias("bin")).agg(F.sum("count").alias("count"))
    return _values(counted.orderBy("protocol", "kind", "bin"), LatencyBin)


def _topics(topics: DataFrame | None) -> tuple[Topic, ...]:
    """Return the topics with the highest 99th percentile.

    Of those never answered, the most frequent.
    """
    if topics is None:
        return ()
    summed = sum_topics(topics, "protocol", *SUBJECT)
    return _values(
        _first(summed, [F.desc_nulls_last("p99_us"), F.desc("begun"), *SUBJECT], TOPICS_KEPT), Topic
    )


def _largest(table: DataFrame | None, twins: DataFrame | None) -> tuple[File, ...]:
    if table is None:
        return ()
    sent = _alone(table, twins).where("outcome <> 'deleted'")
    zeros = {name: F.coalesce(name, F.lit(0)) for name in ("stalled_us", "duration_us")}
    largest = _first(sent, [F.desc("octets"), "filename", "tap", "seq"], TRANSFERS_KEPT)
    return _values(largest.withColumns(zeros), File)


def _presences(
    table: DataFrame | None, silences: DataFrame | None, twins: DataFrame | None
) -> tuple[Presence, ...]:
    """Return conversations with the longest silences, then the busiest, ordered by their begin."""
    if table is None:
        return ()
    alone = _alone(table, twins)
    order = [F.desc("messages"), F.col("tap"), F.col("conversation")]
    if silences is not None:
        keys = ["protocol", "tap", "conversation"]
        longest = silences.groupBy(*keys).agg(F.max("silent_s").alias("silent_s"))
        some = _first(longest, [F.desc("silent_s"), "tap", "conversation"], PRESENCES_KEPT // 2)
        alone = alone.join(F.broadcast(some.drop("place")), keys, "left")
        order.insert(0, F.desc_nulls_last("silent_s"))
    chosen = _first(alone, order, PRESENCES_KEPT)
    return _values(chosen.orderBy("first_ts", "tap", "conversation"), Presence)


def _silences(table: DataFrame | None, twins: DataFrame | None) -> tuple[Silence, ...]:
    if table is None:
        return ()
    order = [F.desc("silent_s"), F.col("tap"), F.col("conversation"), F.col("seq")]
    return _values(_first(_alone(table, twins), order, SILENCES_KEPT), Silence)


def _violation_counts(table: DataFrame | None, twins: DataFrame | None) -> tuple[ViolationCount, ...]:
    """Return all kinds there are; kinds and message classes are few for any capture."""
    if table is None:
        return ()
    counted = (
        _alone(table, twins)
        .groupBy("protocol", "reading", "kind", "message")
        .agg(F.count_distinct("tap", "conversation").alias("conversations"), F.count("*").alias("violations"))
    )
    return _values(
        counted.orderBy(F.desc("violations"), "protocol", "reading", "kind", "message"), ViolationCount
    )


def _violations(table: DataFrame | None, twins: DataFrame | None) -> tuple[Violation, ...]:
    """Return the first violations, some of each kind; those of the concurrent reading first."""
    if table is None:
        return ()
    moment = (F.col("ts"), F.col("tap"), F.col("seq"))
    alike = Window.partitionBy("protocol", "reading", "kind", "message").orderBy(*moment)
    placed = _alone(table, twins).withColumn("rank", F.row_number().over(alike))
    early = placed.where(F.col("rank") <= VIOLATIONS_KEPT)
    chosen = _first(early, [F.col("rank") > EACH_KIND, F.col("reading"), *moment], VIOLATIONS_KEPT)
    return _values(chosen.orderBy("reading", *moment), Violation)


def _with_frames(found: Sequence[Violation], frames: DataFrame | None) -> tuple[Violation, ...]:
    if frames is None or not found:
        return tuple(found)
    wanted = F.lit(False)
    for tap, seq, day in {(item.tap, item.seq, item.ts.date()) for item in found}:
        # Partitions are days: without this condition Spark reads every file.
        wanted = wanted | ((F.col("date") == day) & (F.col("tap") == tap) & (F.col("seq") == seq))
    some = F.slice("frames", 1, FRAMES_KEPT)
    cut = F.transform(some, lambda frame: F.substring(frame, 1, FRAMES_KEPT_OCTETS))
    sizes = F.transform(some, F.octet_length)
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
    # A tap may not know a peer's name or role.
    named = table.withColumns({name: F.coalesce(name, F.lit("")) for name in keys})
    counted = named.groupBy(*keys).agg(
        # Jobs between a service and its workers have neither messages nor octets.
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("messages", "octets", "errors")),
    )
    busiest = _first(counted, [F.desc("octets"), *keys], EDGES_KEPT)
    return _values(busiest, Edge)


def _values(frame: DataFrame, kind: type[Row]) -> tuple[Row, ...]:
    """Collect rows as values of a type, whose fields name the columns.

    Timestamps are collected as microseconds: Spark returns them in local time without a time zone.
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
