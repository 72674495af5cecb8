"""Removal of second views of connections that two taps saw, so that each connection counts once.

A broker and its peer may both be tapped, and each tap names the connection independently. Both
names have a part in common where something of the connection is known to both sides: the uuid of
the child in Flux, the routing id that clients of FILEMQ and NORFAB choose, the name of a NORFAB
worker. What that part is, the protocol's particulars say (`connection`); elsewhere two taps are
recognised only where they give one name to a connection, as two taps of one proxy do. A peer of
another make that lets its socket choose its routing id knows nothing that the other side knows too;
where both sides of such a one were tapped, choose the taps that count: ``table.where("tap not like
'client-%'")``.

Of the taps that saw a connection the one with the most messages counts, of equals the one with the
smallest id. Answers are kept for every tap, because a later portion may show that another tap saw
more; `twins` says whom to leave out.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.dialogs.symbols import dialogs_of
from specwire.runtime.spark.answers.messages import message_tables, shape, take, together
from specwire.runtime.spark.answers.particulars import particulars_of
from specwire.runtime.spark.answers.registry import RollUp
from specwire.runtime.spark.answers.schemas.conversations import TWINS
from specwire.runtime.spark.answers.step import Frames

VIEW = ("tap", "conversation")


def one_tap(typed: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the typed tables without the second views of connections that several taps saw."""
    messages = together(
        take(typed, protocol, name, noted=VIEW) for name in message_tables(protocol) if name in typed
    )
    views = messages.groupBy(*VIEW).agg(F.count("*").alias("messages"))
    return {name: without_twins(frame, _choose(views, protocol)) for name, frame in typed.items()}


def twins(conversations: DataFrame, protocol: str) -> DataFrame:
    """Return the second views among rows of the table ``conversations``, separately for each day."""
    views = conversations.where(F.col("protocol") == protocol).groupBy("date", *VIEW)
    found = _choose(views.agg(F.sum("messages").alias("messages")), protocol, "date")
    return shape(found, protocol, TWINS)


def without_twins(frame: DataFrame, twins: DataFrame) -> DataFrame:
    """Return the rows of any table with `tap` and `conversation` that are of no second view."""
    left_out = F.broadcast(twins.select(*(F.col(name).alias(f"_twin_{name}") for name in VIEW)).distinct())
    same = [F.col(name) == F.col(f"_twin_{name}") for name in VIEW]
    return frame.join(left_out, same, "left_anti")


def _choose(views: DataFrame, protocol: str, *days: str) -> DataFrame:
    """Return the views that do not count, with the view that does.

    `views` has the messages of each.
    """
    connection = F.expr(particulars_of(protocol).connection)
    of_connection = Window.partitionBy(*days, "_connection")
    of_tap = Window.partitionBy(*days, "_connection", "tap")
    counted = views.withColumn("_connection", connection).withColumn("_seen", F.sum("messages").over(of_tap))
    # The first in this order is the view that counts.
    best = F.struct(-F.col("_seen"), F.col("tap"), F.col("conversation"))
    kept = counted.withColumn("_kept", F.min(best).over(of_connection))
    return kept.where(F.col("tap") != F.col("_kept.tap")).select(
        *days,
        *VIEW,
        F.col("_kept.tap").alias("kept_tap"),
        F.col("_kept.conversation").alias("kept_conversation"),
    )


def _roll_up(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    seen = answers.get("conversations")
    return {} if seen is None else {"twins": twins(seen, protocol)}


ROLL_UPS = (
    RollUp(
        name="twins",
        applies=lambda protocol: bool(dialogs_of(protocol)),
        reads=lambda protocol: (),
        reads_answers=("conversations",),
        writes={"twins": TWINS},
        compute=_roll_up,
    ),
)
