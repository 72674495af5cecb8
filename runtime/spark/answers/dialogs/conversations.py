"""Tables `conversations` and `violations`: a continued answer.

A conversation is over when its tap has seen other messages for `idle_s` since, by the tap's own
clock. A tap has ended, and its conversations with it, if it has no new messages and is a day behind
the taps that have some. Violations never change.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from specwire.runtime.spark.answers.answer import (
    CONNECTION,
    PLACE,
    Continued,
    Frames,
    Step,
    as_table,
    table_schema,
)
from specwire.runtime.spark.answers.dialogs.symbols import Alphabet, dialogs_of, narrow_rows
from specwire.runtime.spark.answers.dialogs.tracking import READING, TRACKED, VIOLATION, ConversationTracker
from specwire.runtime.spark.answers.messages import message_tables

CONVERSATIONS = table_schema(
    *PLACE,
    "first_seq BIGINT: seq of its first message; with tap and conversation, the row's key",
    "last_seq BIGINT: seq of its last message",
    "first_ts TIMESTAMP: when the tap saw the first message, UTC",
    "last_ts TIMESTAMP: when the tap saw the last message, UTC",
    "duration_us BIGINT (microseconds): from the first to the last message",
    "messages BIGINT: messages, undecodable ones included",
    "errors BIGINT: messages that did not decode",
    StructField("strict", READING, metadata={"comment": "the dialog as written: one message after another"}),
    StructField(
        "concurrent", READING, metadata={"comment": "the dialog of peers that do not wait for each other"}
    ),
)
"""One row for each conversation; `date` is that of `first_ts`. After a long silence it is another row."""

VIOLATIONS = table_schema(
    *PLACE,
    "first_seq BIGINT: seq of the conversation's first message",
    *VIOLATION,
)
"""Messages that broke the dialog: the first few of each conversation and reading."""

OPEN_CONVERSATIONS = table_schema(
    *CONNECTION,
    "carried STRING: its row and the states of the machines, JSON",
)
"""State: the conversations that may continue."""

IDLE_S = 6 * 3600.0
"""Silence after which a conversation is over: longer than clients wait between requests."""
TAP_IDLE_S = 24 * 3600.0
"""Silence, compared with other taps, after which a tap has ended."""
VIOLATIONS_KEPT = 16
"""Violations with rows, for each conversation and reading; all are counted."""

STATE = "open_conversations"


def advance(
    typed: Frames,
    protocol: str,
    state: Frames | None = None,
    /,
    *,
    idle_s: float = IDLE_S,
    kept: int = VIOLATIONS_KEPT,
) -> Step:
    """Continue the tables `conversations` and `violations`.

    Runs the machines immediately. Their rows stay in Spark's cache until the step is released.

    `kept` bounds the rows of violations for each conversation and reading. Raises InputError for a
    protocol without a dialog.
    """
    before = None if state is None else state[STATE]
    rows = narrow_rows(typed, Alphabet(protocol), before)
    tracked = track(rows, protocol, idle_s=idle_s, kept=kept, saves_state=True).persist()
    is_over = _is_over(tracked, before, idle_s)
    return Step(
        rows={
            "conversations": _conversations(tracked, protocol, ~is_over),
            "violations": _violations(tracked, protocol, F.lit(False)),
        },
        state={STATE: as_table(tracked.where(~is_over), protocol, OPEN_CONVERSATIONS)},
        cached=(tracked,),
    )


def conversations(
    typed: Frames, protocol: str, *, idle_s: float = IDLE_S, kept: int = VIOLATIONS_KEPT
) -> dict[str, DataFrame]:
    """Return the tables `conversations` and `violations` of all messages in `typed`.

    Both are plans: each runs over the messages when it is read. Raises InputError for a protocol
    without a dialog.
    """
    rows = narrow_rows(typed, Alphabet(protocol))
    tracked = track(rows, protocol, idle_s=idle_s, kept=kept, saves_state=False)
    return {
        "conversations": _conversations(tracked, protocol),
        "violations": _violations(tracked, protocol),
    }


def track(rows: DataFrame, protocol: str, *, idle_s: float, kept: int, saves_state: bool) -> DataFrame:
    """Run the machines over narrow rows; returns the columns of `TRACKED`."""
    idle_ns = int(idle_s * 1e9)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return ConversationTracker(protocol, idle_ns=idle_ns, kept=kept, saves_state=saves_state).run(batches)

    names = ("tap", "conversation")
    return rows.repartition(*names).sortWithinPartitions(*names, "seq").mapInArrow(run, TRACKED)


def _is_over(tracked: DataFrame, before: DataFrame | None, idle_s: float) -> Column:
    """Return whether a conversation is too far behind its tap, or its tap has ended.

    Runs the machines.
    """
    taps = _latest_of_taps(tracked, before)
    # Clocks of two hosts may be days apart: a tap with new messages lives, whatever its clock.
    newest = max((ts for _, ts, new in taps.values() if new), default=0)
    ended = [
        tap for tap, (_, ts, new) in taps.items() if not new and newest - ts > max(idle_s, TAP_IDLE_S) * 1e6
    ]
    # One literal for each live tap: a capture has one for each process that writes it.
    is_over = F.col("tap").isin(ended)
    for tap, (mono, _, _) in taps.items():
        if tap not in ended:
            is_silent = F.col("last_mono") < mono - int(idle_s * 1e9)
            is_over = is_over | ((F.col("tap") == tap) & is_silent)
    return is_over


def _latest_of_taps(tracked: DataFrame, before: DataFrame | None) -> dict[str, tuple[int, int, int]]:
    """Return for each tap its greatest `mono` and `ts`, and how many messages of it are new."""
    rows = tracked.select("tap", "last_mono", "last_ts", "messages")
    if before is not None:
        known = F.get_json_object("carried", "$.messages").cast("long")
        nothing = F.lit(None).cast("long")
        rows = rows.union(before.select("tap", nothing, nothing, -known))
    columns = rows.toDF("tap", "mono", "ts", "messages").groupBy("tap")
    latest = columns.agg(F.max("mono").alias("mono"), F.max("ts").alias("ts"), F.sum("messages").alias("new"))
    return {row["tap"]: (row["mono"], row["ts"], row["new"]) for row in latest.collect()}


def _conversations(tracked: DataFrame, protocol: str, is_open: Column | None = None) -> DataFrame:
    first_ts = F.timestamp_micros("first_ts")
    return as_table(
        tracked,
        protocol,
        CONVERSATIONS,
        is_open=is_open,
        date=F.to_date(first_ts),
        first_ts=first_ts,
        last_ts=F.timestamp_micros("last_ts"),
        duration_us=(F.col("last_mono") - F.col("first_mono")) / 1000,
    )


def _violations(tracked: DataFrame, protocol: str, is_open: Column | None = None) -> DataFrame:
    rows = tracked.select("tap", "conversation", "peer", "first_seq", F.inline("violations"))
    timed = rows.withColumn("ts", F.timestamp_micros("ts"))
    return as_table(timed, protocol, VIOLATIONS, is_open=is_open)


def _reads(protocol: str) -> tuple[str, ...]:
    return message_tables(protocol) if dialogs_of(protocol) else ()


CONTINUED = Continued(
    "conversations",
    _reads,
    {"conversations": CONVERSATIONS, "violations": VIOLATIONS},
    {STATE: OPEN_CONVERSATIONS},
    advance,
)
