"""Gaps in the numbers of messages: numbered messages that are lost, repeated or late.

The numbers of one side of a connection are consecutive. A receiver that has asked for a selection
(a client that subscribed to a prefix) sees gaps as a matter of course; `filtered` marks them. If a
greeting restarts the numbers, they are not compared across it. The latest number of each side is
kept for the next run.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from specwire.runtime.spark.answers.messages import kept, latest, shape, take, together
from specwire.runtime.spark.answers.particulars import NONE, Numbers, particulars_of
from specwire.runtime.spark.answers.registry import Continued
from specwire.runtime.spark.answers.schemas.health import GAPS
from specwire.runtime.spark.answers.schemas.shared import LONG, TAP, TEXT, column
from specwire.runtime.spark.answers.silences import GIVEN_UP_NS, SIDE
from specwire.runtime.spark.answers.step import Frames, Step
from specwire.runtime.spark.protocols import load_machine

COUNTS = StructType(
    [
        TAP,
        column("conversation", TEXT, "one connection, as the tap names it"),
        column("peer", TEXT, "the identity by which the tap knows the connection"),
        column("sender", TEXT, "role letter of the side that numbers"),
        column("seq", LONG, "the tap's count of its latest numbered message"),
        column("mono", LONG, "when that was, the tap's monotonic clock", "nanoseconds"),
        column("number", LONG, "its number; null where there was none since the numbers began anew"),
        column("filtered", BooleanType(), "whether the receiver had asked for a choice"),
    ]
)
"""State: the latest number of each side."""


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the table `gaps`."""
    numbers = particulars_of(protocol).numbers
    assert numbers is not None, f"{protocol} numbers nothing"
    words = _words(typed, protocol, numbers)
    rows = _compare(together([words, *kept(state, "counts")]), latest(words)).persist()
    jumps = rows.where(F.col("was").isNotNull() & (F.col("number") != _next(numbers)))
    found = jumps.select(
        *SIDE,
        *("ts", "seq", "mono", "message"),
        _next(numbers).alias("expected"),
        F.col("number").alias("found"),
        *_kind(numbers),
        "filtered",
    )
    table = shape(found, protocol, GAPS, is_open=F.lit(False))
    latest_words = rows.where("is_latest and lives").withColumn("number", F.coalesce("number", "was"))
    counts = latest_words.select(*COUNTS.fieldNames())
    return Step({"gaps": table}, {"counts": counts}, (rows,))


def _words(typed: Frames, protocol: str, numbers: Numbers) -> DataFrame:
    """Return numbered messages, and the messages that affect the other side's numbers."""
    counted = [
        take(
            typed,
            protocol,
            message,
            {
                "number": number,
                "filtered": "false",
                "restarts": numbers.restarts.get(message, "false"),
            },
        )
        for message, number in numbers.columns.items()
    ]
    said = {**numbers.chosen_by, **numbers.restarts}
    asked = [
        take(
            typed,
            protocol,
            message,
            {
                "number": "cast(null as bigint)",
                "filtered": numbers.chosen_by.get(message, "false"),
                "restarts": numbers.restarts.get(message, "false"),
            },
            where=condition,
        ).withColumn("sender", _other_side(protocol))
        for message, condition in said.items()
        if message not in numbers.columns
    ]
    return together([*counted, *asked]).where("number is not null or filtered or restarts")


def _other_side(protocol: str) -> Column:
    here, there = getattr(load_machine(protocol), "ROLES", NONE)
    return F.when(F.col("sender") == here, there).otherwise(here)


def _compare(words: DataFrame, taps: DataFrame) -> DataFrame:
    """Put each side's messages in order, each beside the number before, `was`."""
    keyed = words.withColumns({"key": F.xxhash64(*SIDE), "restarts": F.coalesce("restarts", F.lit(False))})
    in_order = Window.partitionBy("key", *SIDE).orderBy("seq")
    pause = F.col("mono") - F.lag("mono").over(in_order)
    begun = keyed.withColumn("part", F.count_if((pause > GIVEN_UP_NS) | F.col("restarts")).over(in_order))
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    numbered = F.when(F.col("number").isNotNull(), F.struct("part", "number"))
    chosen = F.last(F.when(F.col("filtered"), F.col("part")), ignorenulls=True).over(in_order)
    ordered = begun.withColumns(
        {
            "last": F.last(numbered, ignorenulls=True).over(earlier),
            "filtered": F.coalesce(chosen == F.col("part"), F.lit(False)),
            "is_latest": F.lead("seq").over(in_order).isNull(),
        }
    )
    lives = F.coalesce(F.col("tap_mono") - F.col("mono") <= GIVEN_UP_NS, F.lit(True))
    was = F.when(F.col("last.part") == F.col("part"), F.col("last.number"))
    joined = ordered.join(F.broadcast(taps), "tap", "left").withColumns({"was": was, "lives": lives})
    return joined.where("is_latest or (was is not null and number is not null)")


def _next(numbers: Numbers) -> Column:
    following = F.col("was") + 1
    return following % numbers.modulus if numbers.modulus else following


def _kind(numbers: Numbers) -> tuple[Column, Column]:
    """Return `missing` and `kind`.

    If numbers begin again, a distance of less than half of them counts as ahead.
    """
    ahead = F.col("number") - _next(numbers)
    if numbers.modulus:
        around = F.pmod(ahead, F.lit(numbers.modulus))
        ahead = F.when(around < numbers.modulus // 2, around).otherwise(around - numbers.modulus)
    kind = F.when(ahead > 0, "gap").when(F.col("number") == F.col("was"), "repeat").otherwise("back")
    return F.greatest(ahead, F.lit(0)).alias("missing"), kind.alias("kind")


def _applies(protocol: str) -> bool:
    return particulars_of(protocol).numbers is not None


def _reads(protocol: str) -> tuple[str, ...]:
    numbers = particulars_of(protocol).numbers
    assert numbers is not None, f"{protocol} numbers nothing"
    return tuple({**numbers.columns, **numbers.chosen_by, **numbers.restarts})


CONTINUED = (
    Continued(
        name="gaps",
        applies=_applies,
        reads=_reads,
        writes={"gaps": GAPS},
        keeps={"counts": COUNTS},
        advance=advance,
    ),
)
