"""Reconnects of a peer, on a new connection or with a second greeting on the old one.

A connection counts as following another if the same tap records the same peer for both, and the
first had no more messages when the second began. Two overlapping connections are not a reconnect.
The first and the last message of each connection are enough for this.

A connection is over once it has been silent for `OVER_S`, by the tap's clock: what comes later
under its name is another one. So whether a connection came after others is certain when those
before it are over, and of those that are over only the latest of a peer is kept, for a day: a peer
that connects each second for a year has an hour's connections in the state. It is a rule about the
messages and not about portions.

Where a tap names a connection after the peer's own name (a NORFAB broker, a Flux parent), a new
connection is the same conversation to it; there the second greeting shows the reconnect.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from specwire.runtime.spark.answers.messages import together
from specwire.runtime.spark.answers.schemas.shared import LONG, TAP, TEXT, TIMESTAMP, column
from specwire.runtime.spark.answers.silences import GIVEN_UP_NS

OVER_S = 3600
"""Silence on both sides after which a connection is over.

It is much longer than any heartbeat interval and any pause of a client between two requests.
"""

OVER_NS = OVER_S * 1_000_000_000

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
        column("told", BooleanType(), "whether it is certain that it came after another, or that it did not"),
    ]
)
"""State: the connections that are not over, and of each peer the last that is."""


def connections(words: DataFrame, before: Sequence[DataFrame]) -> DataFrame:
    """Return each connection's first and latest message, and what is known of those before it.

    Besides the columns of the state, rows have the tap's latest time (`tap_mono`), the peer's
    latest connection of those that began before (`last`), whether it is over (`is_over`), and
    whether it is certain which connection this one came after, if any (`is_certain`); `told` says
    whether that was certain before these words.
    """
    # By the hour, so that what is silent for longer can be seen without sorting all messages.
    hours = words.groupBy(*CONNECTION, F.floor(F.col("mono") / OVER_NS).alias("hour")).agg(
        F.min_by("ts", "seq").alias("ts"),
        *(F.min(name).alias(name) for name in ("seq", "mono")),
        F.max("seq").alias("last_seq"),
        F.max("mono").alias("last_mono"),
        F.lit(False).alias("told"),
    )
    in_order = Window.partitionBy(*CONNECTION).orderBy("seq")
    begins = F.coalesce(F.col("mono") - F.lag("last_mono").over(in_order) > OVER_NS, F.lit(True))
    cut = together([hours, *before]).withColumn("begins", begins.cast("int"))
    seen = (
        cut.withColumn("life", F.sum("begins").over(in_order))
        .groupBy(*CONNECTION, "life")
        .agg(
            F.min_by("ts", "seq").alias("ts"),
            *(F.min(name).alias(name) for name in ("seq", "mono")),
            *(F.max(name).alias(name) for name in ("last_seq", "last_mono")),
            F.coalesce(F.max("told"), F.lit(False)).alias("told"),
        )
    )
    earlier = Window.partitionBy("tap", "peer").orderBy("seq").rowsBetween(Window.unboundedPreceding, -1)
    latest = F.max(F.struct("last_seq", "last_mono", "conversation")).over(earlier)
    timed = seen.withColumns({"tap_mono": F.max("last_mono").over(Window.partitionBy("tap")), "last": latest})
    ago = F.coalesce(F.col("tap_mono") - F.col("last.last_mono") > OVER_NS, F.lit(True))
    return timed.withColumns(
        {
            "is_over": F.col("tap_mono") - F.col("last_mono") > OVER_NS,
            "is_certain": ago | (F.col("last.last_seq") > F.col("seq")),
        }
    )


def new_connections(known: DataFrame) -> DataFrame:
    """Return the connections that followed another and were not reported, as rows of `reconnects`.

    `is_certain` says that a row is final.
    """
    away = F.col("mono") - F.col("last.last_mono")
    after = known.where(
        ~F.col("told")
        & (F.col("last.last_seq") < F.col("seq"))
        & (F.col("last.conversation") != F.col("conversation"))
        & (away <= GIVEN_UP_NS)
    )
    return after.select(
        *CONNECTION,
        *("ts", "seq", "mono"),
        F.lit("connection").alias("kind"),
        F.col("last.conversation").alias("before"),
        (away / 1e9).alias("away_s"),
        "is_certain",
    )


def kept_connections(known: DataFrame) -> DataFrame:
    """Return the connections that the next words may belong to or come after: the state."""
    of_peer = Window.partitionBy("tap", "peer")
    last_over: Column = F.max(F.when(F.col("is_over"), F.col("last_seq"))).over(of_peer)
    is_last = (F.col("last_seq") == last_over) & (F.col("tap_mono") - F.col("last_mono") <= GIVEN_UP_NS)
    kept = known.withColumn("is_last", is_last).where("not is_over or is_last")
    return kept.withColumn("told", F.col("told") | F.col("is_certain")).select(*CONNECTIONS.fieldNames())


def second_greetings(watched: DataFrame) -> DataFrame:
    """Return the greetings on connections that had one already, as rows of `reconnects`."""
    return watched.where("greets_again").select(
        *CONNECTION,
        *("ts", "seq", "mono"),
        F.lit("greeting").alias("kind"),
        F.col("conversation").alias("before"),
        ((F.col("mono") - F.col("was_mono")) / 1e9).alias("away_s"),
        F.lit(True).alias("is_certain"),
    )
