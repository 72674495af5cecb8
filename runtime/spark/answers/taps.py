"""Roll-up `twins`: second views of connections that two taps saw, so that each counts once.

A broker and its peer may both be tapped, and each tap names the connection independently. Both
names have a part in common if something of the connection is known to both sides: the uuid of the
child in Flux, the routing id that clients of FILEMQ and NORFAB choose, the name of a NORFAB worker.
`ProtocolSpecifics.connection` extracts that part. For other protocols two taps are recognised only
if they give one name to a connection, as two taps of one proxy do. A peer of another
implementation may let its socket choose its routing id; then nothing is known to both sides, and a
user chooses the taps that count: ``table.where("tap not like 'client-%'")``.

Of the taps that saw a connection on a day, the one with the most messages of that day counts, of
equals the one with the smallest id. (`one_tap` chooses once for all its messages.) Answers are kept
for every tap, because a later portion may show that another tap saw more; `twins` names the views
to omit.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.answer import STORED, TAP, Frames, RollUp, as_table, table_schema
from specwire.runtime.spark.answers.messages import message_tables, select, union
from specwire.runtime.spark.answers.protocol_specifics import specifics_of

TWINS = table_schema(
    *STORED,
    TAP,
    "conversation STRING: a connection that another tap saw too, and that is not to be counted",
    "kept_tap STRING: the tap whose view of the connection counts",
    "kept_conversation STRING: what that tap names it",
)
"""The second views of connections: sums over taps omit these conversations."""

VIEW = ("tap", "conversation")


def one_tap(typed: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the typed tables without the second views of connections that several taps saw."""
    messages = union(
        select(typed, protocol, name, tap_columns=VIEW) for name in message_tables(protocol) if name in typed
    )
    views = messages.groupBy(*VIEW).agg(F.count("*").alias("messages"))
    return {name: without_twins(frame, _second_views(views, protocol)) for name, frame in typed.items()}


def twins(views: DataFrame, protocol: str) -> DataFrame:
    """Return the second views, separately for each day.

    `views` has `protocol`, `date`, `tap`, `conversation` and `messages`, as the table
    `conversations` has.
    """
    counted = views.where(F.col("protocol") == protocol).groupBy("date", *VIEW)
    found = _second_views(counted.agg(F.sum("messages").alias("messages")), protocol, "date")
    return as_table(found, protocol, TWINS)


def without_twins(frame: DataFrame, twins: DataFrame) -> DataFrame:
    """Return the rows of no second view from any table with `tap` and `conversation`.

    In a table with dates, a view is omitted for the dates of its rows in `twins`.
    """
    names = [name for name in ("date", *VIEW) if name in frame.columns and name in twins.columns]
    omitted = F.broadcast(twins.select(*(F.col(name).alias(f"_twin_{name}") for name in names)).distinct())
    same = [F.col(name) == F.col(f"_twin_{name}") for name in names]
    return frame.join(omitted, same, "left_anti")


def without_second_views(table: DataFrame, answers: Frames) -> DataFrame:
    """Return a table without the second views, if there is the table `twins`."""
    return without_twins(table, answers["twins"]) if "twins" in answers else table


def _second_views(views: DataFrame, protocol: str, *days: str) -> DataFrame:
    """Return the views that do not count, with the view that does.

    `views` has the number of messages of each view.
    """
    connection = F.expr(specifics_of(protocol).connection)
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


def _roll_up(sums_of: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    return {"twins": twins(sums_of["sent"].where("conversation IS NOT NULL"), protocol)}


ROLL_UP = RollUp("twins", lambda protocol: True, ("sent",), (), {"twins": TWINS}, _roll_up)
