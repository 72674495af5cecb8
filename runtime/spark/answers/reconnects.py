"""Reconnects: a peer that comes again, on a new connection or with a second greeting on the old one.

A connection counts as coming after another where the same tap knows both by the same peer and the first had
nothing more to say when the second began; two beside each other are no reconnect. For that the first and the last
message of each connection suffice. They are kept as long as something is heard of the peer, and a day more.

Where a tap names a connection after the peer's own name (a NORFAB broker, a Flux parent), a new connection is the
same conversation to it; there the second greeting tells.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from specwire.runtime.spark.answers.messages import together
from specwire.runtime.spark.answers.schemas.shared import LONG, TAP, TEXT, TIMESTAMP, column
from specwire.runtime.spark.answers.silences import GIVEN_UP_NS

CONNECTION = ("tap", "peer", "conversation")

CONNECTIONS = StructType(
    [
        TAP,
        column("peer", TEXT, "the identity by which the tap knows the connection"),
        column("conversation", TEXT, "one connection, as the tap names it"),
        column("ts", TIMESTAMP, "when its first message came"),
        column("seq", LONG, "the tap's count of that message"),
        column("mono", LONG, "when that was, the tap's monotonic clock", "nanoseconds"),
        column("last_seq", LONG, "the tap's count of its latest message"),
        column("last_mono", LONG, "when that was, the tap's monotonic clock", "nanoseconds"),
    ]
)
"""State: the connections of peers that may come again."""


def connections(words: DataFrame, before: Sequence[DataFrame]) -> DataFrame:
    """Return each connection's first and latest message, and the tap's latest time (`tap_mono`).

    `peer_lives` tells that something may follow of its peer.
    """
    seen = words.groupBy(*CONNECTION).agg(
        F.min_by("ts", "seq").alias("ts"),
        F.min("seq").alias("seq"),
        F.min("mono").alias("mono"),
        F.max("seq").alias("last_seq"),
        F.max("mono").alias("last_mono"),
    )
    if before:
        seen = (
            together([seen, *before])
            .groupBy(*CONNECTION)
            .agg(
                F.min_by("ts", "seq").alias("ts"),
                *(F.min(name).alias(name) for name in ("seq", "mono")),
                *(F.max(name).alias(name) for name in ("last_seq", "last_mono")),
            )
        )
    tap_mono = F.max("last_mono").over(Window.partitionBy("tap"))
    heard = F.max("last_mono").over(Window.partitionBy("tap", "peer"))
    return seen.withColumns({"tap_mono": tap_mono, "peer_lives": tap_mono - heard <= GIVEN_UP_NS})


def new_connections(known: DataFrame) -> DataFrame:
    """Return the connections that came after another of their peer, as rows of `reconnects`."""
    earlier = Window.partitionBy("tap", "peer").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    last = F.max(F.struct("last_seq", "last_mono", "conversation")).over(earlier)
    after = known.withColumn("last", last).where(
        (F.col("last.last_seq") < F.col("seq")) & (F.col("mono") - F.col("last.last_mono") <= GIVEN_UP_NS)
    )
    return after.select(
        *CONNECTION,
        *("ts", "seq", "mono"),
        F.lit("connection").alias("kind"),
        F.col("last.conversation").alias("before"),
        ((F.col("mono") - F.col("last.last_mono")) / 1e9).alias("away_s"),
        "peer_lives",
    )


def second_greetings(watched: DataFrame) -> DataFrame:
    """Return the greetings on connections that had one already, as rows of `reconnects`."""
    return watched.where("greets_again").select(
        *CONNECTION,
        *("ts", "seq", "mono"),
        F.lit("greeting").alias("kind"),
        F.col("conversation").alias("before"),
        ((F.col("mono") - F.col("was_mono")) / 1e9).alias("away_s"),
        F.lit(False).alias("peer_lives"),
    )
