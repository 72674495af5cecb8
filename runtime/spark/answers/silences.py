"""Silences of each side of a connection: their length, and the messages before them.

Any message is a sign of life. A silence longer than the protocol tolerates (its timer, or the
caller's value) is a row. `beats` counts the heartbeats that the side had sent. Without heartbeats a
silence may be normal: a client of a Flux broker that makes no requests is silent. After a farewell,
no sign of life is expected.

The messages of each side are sorted in the tap's order, and each is compared with the one before.
If a side may continue, its last message is kept for the next run, as its `SIDES` row.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from specwire.runtime.spark.answers.messages import message_tables, take, together
from specwire.runtime.spark.answers.particulars import beat_s, particulars_of
from specwire.runtime.spark.answers.schemas.shared import LONG, TAP, TEXT, TIMESTAMP, column
from specwire.runtime.spark.answers.step import Frames

GIVEN_UP_S = 86_400
"""Silence, by the tap's clock, after which a side is gone.

Later messages count as those of a new side.
"""

GIVEN_UP_NS = GIVEN_UP_S * 1_000_000_000

COUNTED = ("beats", "greetings")

SIDE = ("tap", "conversation", "peer", "sender")

SIDES = StructType(
    [
        TAP,
        column("conversation", TEXT, "one connection, as the tap names it"),
        column("peer", TEXT, "the identity by which the tap knows the connection"),
        column("sender", TEXT, "role letter of the side"),
        column("ts", TIMESTAMP, "when its latest message came"),
        column("seq", LONG, "the tap's count of that message"),
        column("mono", LONG, "when that was, the tap's monotonic clock", "nanoseconds"),
        column("beats", LONG, "heartbeats that it has sent"),
        column("greetings", LONG, "greetings that it has sent"),
        column("left", BooleanType(), "whether its latest message was a farewell"),
    ]
)
"""State: the latest message of each side."""


def side_words(typed: Frames, protocol: str) -> DataFrame:
    """Return every message, narrow, with what it is: a heartbeat, a greeting, a farewell."""
    stated = particulars_of(protocol)
    never = "false"
    return together(
        take(
            typed,
            protocol,
            message,
            {
                "beats": f"if({stated.beats.get(message, never)}, 1L, 0L)",
                "greetings": f"if({stated.greetings.get(message, never)}, 1L, 0L)",
                "left": f"coalesce({stated.farewells.get(message, never)}, false)",
            },
        )
        for message in message_tables(protocol)
        if message in typed
    )


def watch(words: DataFrame, sides: Sequence[DataFrame], taps: DataFrame, threshold_s: float) -> DataFrame:
    """Return the messages that matter.

    These are messages before a silence, greetings after the first, and each side's latest message.

    Each row also has the message before (`was_mono`) and after (`next_ts`, `next_seq`, `next_mono`;
    null after the latest), how long the side is silent after it (`silent_ns`), by the latest time
    of its tap in `taps` (`tap_mono`), and how many heartbeats and greetings there were so far, this
    one included (`all_beats`, `all_greetings`).
    """
    known = [rows.withColumn("told", F.lit(True)) for rows in sides]
    both = together([words.withColumn("told", F.lit(False)), *known]).withColumn("key", F.xxhash64(*SIDE))
    in_order = Window.partitionBy("key", *SIDE).orderBy("seq")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    told = both.withColumns(
        {
            "was_mono": F.lag("mono").over(in_order),
            **{f"next_{name}": F.lead(name).over(in_order) for name in ("ts", "seq", "mono")},
            **{f"all_{name}": F.sum(name).over(so_far) for name in COUNTED},
        }
    )
    afresh = F.coalesce(F.col("mono") - F.col("was_mono") > GIVEN_UP_NS, F.lit(True))
    earlier = {
        name: F.last(F.when(afresh, F.col(f"all_{name}") - F.col(name)), ignorenulls=True).over(so_far)
        for name in COUNTED
    }
    counted = told.withColumns({f"old_{name}": total for name, total in earlier.items()}).withColumns(
        {f"all_{name}": F.col(f"all_{name}") - F.col(f"old_{name}") for name in COUNTED}
    )
    timed = counted.join(F.broadcast(taps), "tap").withColumn(
        "silent_ns", F.coalesce("next_mono", "tap_mono") - F.col("mono")
    )
    silent = (F.col("silent_ns") > round(threshold_s * 1e9)) & ~F.col("left")
    again = ~F.col("told") & (F.col("greetings") > 0) & (F.col("all_greetings") > 1)
    return timed.withColumns({"is_silent": silent, "greets_again": again}).where(
        "is_silent or greets_again or next_seq is null"
    )


def silent_sides(watched: DataFrame, protocol: str, threshold_s: float) -> DataFrame:
    """Return the rows of the table `silences`."""
    gone = F.col("silent_ns") > GIVEN_UP_NS
    lasting = F.col("next_seq").isNull()
    silent_s = F.when(gone, F.lit(float(GIVEN_UP_S))).otherwise(F.col("silent_ns") / 1e9)
    every_s = beat_s(protocol)
    return watched.where("is_silent").select(
        *SIDE,
        *("ts", "seq", "mono"),
        F.when(~gone, F.col("next_ts")).alias("until_ts"),
        F.when(~gone, F.col("next_seq")).alias("until_seq"),
        silent_s.alias("silent_s"),
        F.lit(threshold_s).alias("threshold_s"),
        F.col("all_beats").alias("beats"),
        (F.floor(silent_s / every_s) if every_s else F.lit(None)).alias("missed"),
        F.when(gone, "gone").when(lasting, "silent").otherwise("again").alias("outcome"),
    )


def kept_sides(watched: DataFrame) -> DataFrame:
    """Return the latest message of each side that is not given up: the state."""
    latest_words = watched.where(F.col("next_seq").isNull() & (F.col("silent_ns") <= GIVEN_UP_NS))
    counts = {name: F.col(f"all_{name}") for name in COUNTED}
    return latest_words.withColumns(counts).select(*SIDES.fieldNames())
