"""The figures of a summary, counted on Spark.

`overview` takes from each protocol's decoded rows what all protocols have in common, so that one query counts
them all; only a few hundred result rows ever come to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.decoding.tables import noted_columns
from specwire.runtime.spark.pipeline.summary import (
    Bucket,
    ErrorCount,
    TapCount,
    Timeline,
    Transfer,
    TypeCount,
)

ERRORS_KEPT = 100
TRANSFERS_KEPT = 200
BUCKETS = 60
WIDTHS_S = tuple(step * 10.0**power for power in range(-3, 7) for step in (1, 2, 5))

Count = TypeVar("Count", bound=msgspec.Struct)


def overview(decoded: Mapping[str, DataFrame]) -> DataFrame:
    """Return what the tap noted, `_message` and `_error` of all decoded rows, given by protocol."""
    frames = [
        frame.select(*noted_columns(protocol), "_message", "_error").withColumn("protocol", F.lit(protocol))
        for protocol, frame in decoded.items()
    ]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionByName(frame)
    return whole


def count_taps(rows: DataFrame, dropped: Mapping[str, int]) -> tuple[TapCount, ...]:
    """Count what each tap saw, and what it dropped, which is given by tap."""
    counted = rows.groupBy("tap", "protocol").agg(
        F.count("*").alias("messages"),
        F.sum("octets").alias("octets"),
        F.count("_error").alias("errors"),
        F.unix_micros(F.min("ts")).alias("first"),
        F.unix_micros(F.max("ts")).alias("last"),
    )
    taps: list[TapCount] = []
    unstated = dict(dropped)
    for row in counted.orderBy("first", "tap", "protocol").collect():
        values = row.asDict() | {"first": _iso(row["first"]), "last": _iso(row["last"])}
        taps.append(TapCount(**values, dropped=unstated.pop(row["tap"], 0)))
    silent = (TapCount(tap, "", 0, 0, 0, count, None, None) for tap, count in unstated.items() if count)
    return (*taps, *silent)


def count_types(rows: DataFrame) -> tuple[TypeCount, ...]:
    """Count messages by tap, type and sender."""
    groups = rows.groupBy("tap", "protocol", F.col("_message").alias("message"), "sender")
    counted = groups.agg(F.count("*").alias("messages"), F.sum("octets").alias("octets"))
    return _collect(counted.orderBy("tap", "protocol", "message", "sender"), TypeCount)


def count_errors(rows: DataFrame) -> tuple[ErrorCount, ...]:
    """Count the rows that did not decode by what was found, the most frequent first."""
    found = (F.col("_error")[name].alias(name) for name in ("message", "field", "kind", "text"))
    wrong = rows.where("_error is not null").select("tap", "protocol", *found)
    counted = wrong.groupBy("tap", "protocol", "message", "field", "kind").agg(
        F.min("text").alias("text"), F.count("*").alias("messages")
    )
    return _collect(counted.orderBy(F.desc("messages"), "tap", "text").limit(ERRORS_KEPT), ErrorCount)


def count_transfers(cheezburgers: DataFrame, protocol: str) -> tuple[Transfer, ...]:
    """Count the files in a FILEMQ table of chunks, by conversation, the largest first.

    FILEMQ has no word for the end of a file; servers mark it with an empty chunk at the file's size.
    """
    created, size = F.col("operation") == 1, F.octet_length("chunk")
    counted = cheezburgers.groupBy("tap", "conversation", "peer").agg(
        F.count_if(created & (F.col("offset") == 0)).alias("begun"),
        F.count_if(created & (size == 0)).alias("ended"),
        F.count_if(F.col("operation") == 2).alias("deleted"),
        F.count_if(size > 0).alias("chunks"),
        F.sum(size.cast("long")).alias("octets"),
        ((F.max("mono") - F.min("mono")) / 1e9).alias("seconds"),
    )
    ranked = counted.withColumn("protocol", F.lit(protocol)).orderBy(F.desc("octets"), "tap", "conversation")
    return _collect(ranked.limit(TRANSFERS_KEPT), Transfer)


def count_over_time(rows: DataFrame) -> Timeline:
    """Count messages and octets in at most `BUCKETS` equal stretches from the first message to the last."""
    at = F.unix_micros("ts")
    first, last = rows.agg(F.min(at), F.max(at)).collect()[0]
    span_s = (last - first) / 1e6
    width_s = next((width for width in WIDTHS_S if span_s < width * BUCKETS), span_s)
    index = F.floor((at - first) / (width_s * 1e6)).alias("index")
    counted = rows.groupBy(index).agg(F.count("*").alias("messages"), F.sum("octets").alias("octets"))
    return Timeline(width_s, _collect(counted.orderBy("index"), Bucket))


def _collect(frame: DataFrame, kind: type[Count]) -> tuple[Count, ...]:
    return tuple(kind(**row.asDict()) for row in frame.collect())


def _iso(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat(timespec="microseconds")
