"""Data of the report, collected from the answer tables; its size is bounded for any capture.

Spark does the counting, so only some hundred rows are sent to the driver. `collect` runs about a
dozen small jobs; afterwards Spark is not needed. If two taps saw one connection, the second view is
omitted (answer table ``twins``). Limits hold for each protocol, so that a busy one does not
displace a quiet one. `Findings.totals` has the exact numbers of what is cut.

A report is made after each run and covers all days. So large tables are not read again: latencies
are in ``topics``, one row for each topic and day, and of the captured frames only the days of the
violations shown are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from specwire.runtime.spark.answers.durations import PER_DECADE, SUBJECT, sum_topics
from specwire.runtime.spark.answers.messages import union
from specwire.runtime.spark.answers.protocol_specifics import specifics_of
from specwire.runtime.spark.answers.taps import without_twins
from specwire.runtime.spark.pipeline.writing import run_all
from specwire.runtime.spark.protocols import known_protocols
from specwire.runtime.spark.report.text import EPOCH

BINS_PER_DECADE = 20
"""Bins of the latency distribution: each is 12 % wider than the one before."""

FRAMES_KEPT_OCTETS = 4096
"""Octets kept of each frame of a violation; for longer frames the size is kept, too."""
FRAMES_KEPT = 32
"""Frames kept of one message."""

TOPICS_KEPT = 20
FILES_KEPT = 20
PRESENCES_KEPT = 30
SILENCES_KEPT = 100
VIOLATIONS_KEPT = 20
NODES_KEPT = 24
EDGES_KEPT = 100

READINGS = ("concurrent", "strict")
NODE = ("node", "role")
KIND = ("reading", "kind", "message")
EDGE = ("kind", "source", "source_role", "target", "target_role")
_COUNTED = {
    "topics": SUBJECT,
    "transfers": ("tap", "conversation", "peer"),
    "nodes": NODE,
    "edges": EDGE,
    **dict.fromkeys(("files", "conversations", "silences"), ()),
}
"""Tables whose rows are counted; with columns, only rows that differ in these."""
Tables = Callable[[str], DataFrame | None]
"""Returns an answer table, or the layer ``frames`` of captured frames; None if there is none."""

Frames = Mapping[str, DataFrame]
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
    """A side that was silent from `ts` on for longer than its heartbeat allows."""

    protocol: str
    tap: str
    conversation: str
    peer: str | None
    sender: str
    ts: datetime
    silent_s: float
    outcome: str


class ViolationCount(msgspec.Struct, frozen=True):
    """Listed violations of one kind: those with a row in the table ``violations``."""

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
    text: str
    frames: tuple[bytes, ...] | None = None
    sizes: tuple[int, ...] = ()


class GraphNode(msgspec.Struct, frozen=True):
    """A peer or a service with the octets that it sent and received over all days."""

    protocol: str
    node: str
    role: str
    octets: int


class Edge(msgspec.Struct, frozen=True):
    """Traffic from one node to another over all days."""

    protocol: str
    kind: str
    source: str
    source_role: str
    target: str
    target_role: str
    messages: int
    octets: int
    errors: int


class Total(msgspec.Struct, frozen=True):
    """Exact number of the things of which the findings have some."""

    protocol: str
    name: str
    number: int


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
    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[Edge, ...] = ()
    totals: tuple[Total, ...] = ()

    def of(self, protocol: str) -> Findings:
        """Return the findings of one protocol."""
        parts = {
            name: tuple(item for item in getattr(self, name) if item.protocol == protocol)
            for name in self.__struct_fields__
        }
        return Findings(**parts)

    def total(self, name: str) -> int:
        """Return an exact number: of ``topics``, ``files``, ``transfers`` (conversations with files),
        ``conversations``, ``silences``, ``nodes``, ``edges``, or of the violations of a reading.
        """
        return sum(item.number for item in self.totals if item.name == name)


def collect(tables: Tables) -> Findings:
    """Collect the findings from the tables."""
    frames = _prepare(tables)
    finders = {name: finder for name, (table, finder) in _FINDERS.items() if table in frames}
    finders["totals"] = _count
    found = run_all([partial(finder, frames) for finder in finders.values()])
    return Findings(**dict(zip(finders, found, strict=True)))


def _prepare(tables: Tables) -> Frames:
    """Return the tables that exist, without second views of connections, and ``files`` of them."""
    names = ("topics", "transfers", "conversations", "silences", "violations", "nodes", "edges", "frames")
    frames = {name: table for name in names if (table := tables(name)) is not None}
    twins = tables("twins")
    for name in {"conversations", "silences", "violations"} & frames.keys():
        frames[name] = _alone(frames[name], twins)
    if "transfers" in frames:
        frames["files"] = _alone(frames["transfers"], twins).where("outcome <> 'deleted'")
    for name in {"nodes", "edges"} & frames.keys():
        # A tap may not know a peer's name or role. Jobs between a service and its workers have
        # neither messages nor octets.
        frames[name] = frames[name].fillna("").fillna(0)
    return frames


def _alone(table: DataFrame, twins: DataFrame | None) -> DataFrame:
    """Omit the second views of connections, and replace peers' identities by names for people."""
    named = F.col("peer")
    for protocol in known_protocols():
        name = specifics_of(protocol).peer_name
        if name != "peer":
            named = F.when(F.col("protocol") == protocol, F.expr(name)).otherwise(named)
    alone = table if twins is None else without_twins(table, twins)
    return alone.withColumn("peer", named)


def _count(frames: Frames) -> tuple[Total, ...]:
    """Count all things of which the findings have some."""
    counted = []
    for name, keys in _COUNTED.items():
        if name in frames:
            rows = frames[name].select("protocol", *keys).distinct() if keys else frames[name]
            counted.append((name, rows, F.count("*")))
    if "conversations" in frames:
        # Those beyond the first ones of a conversation have no rows in `violations`.
        counted += (
            (reading, frames["conversations"], F.sum(F.col(reading)["violations"])) for reading in READINGS
        )
    numbers = [
        rows.groupBy("protocol", F.lit(name).alias("name")).agg(number.alias("number"))
        for name, rows, number in counted
    ]
    return _values(union(numbers).orderBy("protocol", "name"), Total) if numbers else ()


def _first(frame: DataFrame, order: Sequence[Column | str], number: int) -> DataFrame:
    """Return the first rows of each protocol in this order."""
    place = F.row_number().over(Window.partitionBy("protocol").orderBy(*order))
    return frame.withColumn("place", place).where(F.col("place") <= number).orderBy("protocol", "place")


def _latencies(frames: Frames) -> tuple[LatencyBin, ...]:
    spread = frames["topics"].select("protocol", "kind", F.inline("spread"))
    wider = F.floor(F.col("bin") / (PER_DECADE // BINS_PER_DECADE)).cast("int")
    counted = spread.groupBy("protocol", "kind", wider.alias("bin")).agg(F.sum("count").alias("count"))
    return _values(counted.orderBy("protocol", "kind", "bin"), LatencyBin)


def _topics(frames: Frames) -> tuple[Topic, ...]:
    """Return the topics with the highest 99th percentile; those never answered come last."""
    summed = sum_topics(frames["topics"], "protocol", *SUBJECT)
    return _values(
        _first(summed, [F.desc_nulls_last("p99_us"), F.desc("begun"), *SUBJECT], TOPICS_KEPT), Topic
    )


def _files(frames: Frames) -> tuple[File, ...]:
    """Return the largest files."""
    largest = _first(frames["files"], [F.desc("octets"), "filename", "tap", "seq"], FILES_KEPT)
    return _values(largest.fillna(0, ["stalled_us", "duration_us"]), File)


def _presences(frames: Frames) -> tuple[Presence, ...]:
    """Return conversations with the longest silences, then the busiest, ordered by their begin."""
    rows = frames["conversations"]
    order = [F.desc("messages"), F.col("tap"), F.col("conversation")]
    if "silences" in frames:
        keys = ["protocol", "tap", "conversation"]
        longest = frames["silences"].groupBy(*keys).agg(F.max("silent_s").alias("silent_s"))
        some = _first(longest, [F.desc("silent_s"), "tap", "conversation"], PRESENCES_KEPT // 2)
        rows = rows.join(F.broadcast(some.drop("place")), keys, "left")
        order.insert(0, F.desc_nulls_last("silent_s"))
    return _values(_first(rows, order, PRESENCES_KEPT).orderBy("first_ts", "tap", "conversation"), Presence)


def _silences(frames: Frames) -> tuple[Silence, ...]:
    """Return the longest silences."""
    order = [F.desc("silent_s"), F.col("tap"), F.col("conversation"), F.col("seq")]
    return _values(_first(frames["silences"], order, SILENCES_KEPT), Silence)


def _violation_counts(frames: Frames) -> tuple[ViolationCount, ...]:
    """Return all kinds there are; kinds and message classes are few for any capture."""
    numbers = (
        F.count_distinct("tap", "conversation").alias("conversations"),
        F.count("*").alias("violations"),
    )
    counted = frames["violations"].groupBy("protocol", *KIND).agg(*numbers)
    return _values(
        counted.orderBy("protocol", "reading", F.desc("violations"), "kind", "message"), ViolationCount
    )


def _violations(frames: Frames) -> tuple[Violation, ...]:
    """Return some violations: the first of each kind, then the second of each, and so on."""
    moment = (F.col("ts"), F.col("tap"), F.col("seq"))
    alike = Window.partitionBy("protocol", *KIND).orderBy(*moment)
    ranked = frames["violations"].withColumn("rank", F.row_number().over(alike))
    early = ranked.where(F.col("rank") <= VIOLATIONS_KEPT)
    found = _values(_first(early, ["rank", "reading", *moment], VIOLATIONS_KEPT), Violation)
    return _with_frames(found, frames["frames"]) if found and "frames" in frames else found


def _with_frames(found: Sequence[Violation], frames: DataFrame) -> tuple[Violation, ...]:
    wanted = F.lit(False)
    for tap, seq, day in {(item.tap, item.seq, item.ts.date()) for item in found}:
        # Partitions are days: without this condition Spark reads every file.
        wanted = wanted | ((F.col("date") == day) & (F.col("tap") == tap) & (F.col("seq") == seq))
    some = F.slice("frames", 1, FRAMES_KEPT)
    cut = F.transform(some, lambda frame: F.substring(frame, 1, FRAMES_KEPT_OCTETS))
    sizes = F.transform(some, F.octet_length)
    rows = frames.where(wanted & F.col("frames").isNotNull())
    kept = {
        (tap, seq): {
            "frames": tuple(bytes(octets or b"") for octets in parts),
            "sizes": tuple(size or 0 for size in whole),
        }
        for tap, seq, parts, whole in rows.select("tap", "seq", cut, sizes).collect()
    }
    return tuple(msgspec.structs.replace(item, **kept.get((item.tap, item.seq), {})) for item in found)


def _busiest(nodes: DataFrame) -> DataFrame:
    """Return the busiest peers and services, with the octets of all days and taps."""
    octets = F.sum(F.col("sent_octets") + F.col("received_octets")).alias("octets")
    summed = nodes.groupBy("protocol", *NODE).agg(octets)
    return _first(summed, [F.desc("octets"), *NODE], NODES_KEPT)


def _edges(frames: Frames) -> tuple[Edge, ...]:
    """Return the busiest directions between the busiest nodes, summed over all days and taps."""
    sums = (F.sum(name).alias(name) for name in ("messages", "octets", "errors"))
    edges = frames["edges"].groupBy("protocol", *EDGE).agg(*sums)
    for end in ("source", "target"):
        ends = _busiest(frames["nodes"]).select(
            "protocol", F.col("node").alias(end), F.col("role").alias(f"{end}_role")
        )
        edges = edges.join(F.broadcast(ends), ends.columns, "left_semi")
    return _values(_first(edges, [F.desc("octets"), *EDGE], EDGES_KEPT), Edge)


_FINDERS: Mapping[str, tuple[str, Callable[[Frames], tuple[Any, ...]]]] = {
    "latency": ("topics", _latencies),
    "topics": ("topics", _topics),
    "files": ("files", _files),
    "presences": ("conversations", _presences),
    "silences": ("silences", _silences),
    "violation_counts": ("violations", _violation_counts),
    "violations": ("violations", _violations),
    "nodes": ("nodes", lambda frames: _values(_busiest(frames["nodes"]), GraphNode)),
    "edges": ("edges", _edges),
}
"""The table that each finding comes from, and the function that collects it."""


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
