"""What the report shows of the answers, as values: collected from the answer tables, bounded whatever they hold.

Everything is counted on Spark, so that only a few hundred rows come to the driver; after `collect` no more of
Spark is needed. Where two taps saw one connection, the second view is left out (the answer table ``twins``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import reduce
from typing import Any, TypeVar

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

BINS_PER_DECADE = 20
"""Of the latency distribution: each bin is 12 % wider than the one before."""

TOPICS_KEPT = 20
TRANSFERS_KEPT = 20
PRESENCES_KEPT = 30
SILENCES_KEPT = 300
VIOLATIONS_KEPT = 50
EDGES_KEPT = 60
FRAMES_KEPT_OCTETS = 4096
"""Of each frame of a violation, from its beginning; the rest is said in octets."""

Tables = Callable[[str], DataFrame | None]
"""Gives an answer table, or the layer of captured frames by the name ``frames``; None where there is none."""

Row = TypeVar("Row", bound=msgspec.Struct)


class LatencyBin(msgspec.Struct, frozen=True):
    """How many of a kind took from `bin` steps of a decade's twentieth above 1 µs to the next."""

    kind: str
    bin: int
    count: int


class Topic(msgspec.Struct, frozen=True):
    """What was asked of one topic; quantiles in microseconds, None where nothing was answered."""

    protocol: str
    kind: str
    service: str | None
    topic: str | None
    begun: int
    answered: int
    errors: int
    unanswered: int
    p50_us: float | None
    p99_us: float | None
    max_us: float | None


class File(msgspec.Struct, frozen=True):
    """One file that was sent."""

    protocol: str
    peer: str | None
    filename: str
    outcome: str
    octets: int
    octets_per_s: float | None
    duration_us: float
    stalls: int
    stalled_us: float


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
    """A side that said nothing for longer than its heartbeat allows; `until_ts` is None where it has not spoken since."""

    tap: str
    conversation: str
    sender: str
    ts: datetime
    until_ts: datetime | None
    silent_s: float
    outcome: str


class ViolationCount(msgspec.Struct, frozen=True):
    """Violations of one kind."""

    protocol: str
    reading: str
    kind: str
    message: str | None
    conversations: int
    violations: int


class Violation(msgspec.Struct, frozen=True):
    """A message that broke the dialog; `frames` is None where the captured frames are not kept.

    `frames` are cut to `FRAMES_KEPT_OCTETS` each, `sizes` are their whole sizes.
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
    """Who sent to whom, or asked which service, over all days."""

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
    """All of it; a sequence is empty where there was nothing, or where its table is not written."""

    latency: tuple[LatencyBin, ...] = ()
    topics: tuple[Topic, ...] = ()
    files: tuple[File, ...] = ()
    presences: tuple[Presence, ...] = ()
    silences: tuple[Silence, ...] = ()
    violation_counts: tuple[ViolationCount, ...] = ()
    violations: tuple[Violation, ...] = ()
    edges: tuple[Edge, ...] = ()


def collect(tables: Tables) -> Findings:
    """Collect what the report shows; some ten small jobs."""
    twins = tables("twins")
    timed = [
        _alone(frame, twins)
        for frame in (_requests(tables("requests")), _parts(tables("job_parts")), _files(tables("transfers")))
        if frame is not None
    ]
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
    if twins is None:
        return frame
    return frame.join(F.broadcast(twins.select("tap", "conversation")), ["tap", "conversation"], "left_anti")


_TIMED = ("protocol", "tap", "conversation", "kind", "service", "topic", "latency_us", "error", "outcome")


def _requests(table: DataFrame | None) -> DataFrame | None:
    if table is None:
        return None
    wanted = table.where("outcome in ('answered', 'error', 'open', 'unanswered')")
    return wanted.select(
        *_TIMED[:3], F.lit("rpc").alias("kind"), "service", "topic", "latency_us",
        (F.col("outcome") == "error").alias("error"), "outcome",
    )  # fmt: skip


def _parts(table: DataFrame | None) -> DataFrame | None:
    if table is None:
        return None
    return table.select(
        "protocol", "tap", F.lit(None).cast("string").alias("conversation"), F.lit("job").alias("kind"),
        "service", F.col("task").alias("topic"), "latency_us",
        (F.col("outcome") == "failed").alias("error"), "outcome",
    )  # fmt: skip


def _files(table: DataFrame | None) -> DataFrame | None:
    if table is None:
        return None
    nothing = F.lit(None).cast("string")
    ended = F.when(F.col("outcome") == "complete", F.col("duration_us"))
    return table.where("outcome <> 'deleted'").select(
        *_TIMED[:3], F.lit("transfer").alias("kind"), nothing.alias("service"), nothing.alias("topic"),
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
    for item in {(item.tap, item.seq) for item in found}:
        wanted = wanted | ((F.col("tap") == item[0]) & (F.col("seq") == item[1]))
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
    """Collect rows as values of a type, whose fields name the columns."""
    names = [field for field in kind.__struct_fields__ if field in frame.columns]
    return tuple(kind(**row.asDict()) for row in frame.select(*names).collect())
