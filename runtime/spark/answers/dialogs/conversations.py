"""Conversations and their violations: an answer that continues from run to run.

A conversation is over when its tap has seen other messages for `idle_s` since, by the tap's own
clock. A tap has ended, and its conversations with it, if it has no new messages and is a day behind
the taps that have some. Violations never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from specwire.runtime.spark.answers.dialogs.fold import FOLDED, Fold
from specwire.runtime.spark.answers.dialogs.symbols import Alphabet, dialogs_of, narrow_rows
from specwire.runtime.spark.answers.messages import message_tables
from specwire.runtime.spark.answers.particulars import name_conversation
from specwire.runtime.spark.answers.registry import Continued
from specwire.runtime.spark.answers.schemas.conversations import (
    CONVERSATIONS,
    OPEN_CONVERSATIONS,
    VIOLATIONS,
    WATCHED,
)
from specwire.runtime.spark.answers.schemas.shared import CONVERSATION_NAME
from specwire.runtime.spark.answers.step import OPEN, Frames, Step

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
    """Follow the conversations in new messages; see `specwire.runtime.spark.answers.step`.

    Runs the machines immediately. Their rows stay in Spark's cache until the step is released.

    `kept` bounds the rows of violations for each conversation and reading. Raises InputError for a
    protocol without a dialog.
    """
    before = None if state is None else state[STATE]
    rows = narrow_rows(typed, Alphabet(protocol), before)
    folded = fold(rows, protocol, idle_s=idle_s, kept=kept, keep=True).persist()
    is_over = _is_over(folded, before, idle_s)
    return Step(
        rows={
            "conversations": _conversations(folded, protocol, (~is_over).alias(OPEN)),
            "violations": _violations(folded, protocol, F.lit(False).alias(OPEN)),
        },
        state={STATE: _select(folded.where(~is_over), OPEN_CONVERSATIONS, {})},
        cached=(folded,),
    )


def conversations(
    typed: Frames, protocol: str, *, idle_s: float = IDLE_S, kept: int = VIOLATIONS_KEPT
) -> dict[str, DataFrame]:
    """Return the tables ``conversations`` and ``violations`` of all messages in `typed`.

    Both are plans: each runs over the messages when it is read. Raises InputError for a protocol
    without a dialog.
    """
    rows = narrow_rows(typed, Alphabet(protocol))
    folded = fold(rows, protocol, idle_s=idle_s, kept=kept, keep=False)
    return {"conversations": _conversations(folded, protocol), "violations": _violations(folded, protocol)}


def fold(rows: DataFrame, protocol: str, *, idle_s: float, kept: int, keep: bool) -> DataFrame:
    """Run the machines over narrow rows; returns the columns of `fold.FOLDED`."""
    idle_ns = int(idle_s * 1e9)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return Fold(protocol, idle_ns=idle_ns, kept=kept, keep=keep).run(batches)

    names = ("tap", "conversation")
    return rows.repartition(*names).sortWithinPartitions(*names, "seq").mapInArrow(run, FOLDED)


def _is_over(folded: DataFrame, before: DataFrame | None, idle_s: float) -> Column:
    """Return whether a conversation is too far behind its tap, or its tap has ended.

    Runs the machines.
    """
    taps = _latest_of_taps(folded, before)
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


def _latest_of_taps(folded: DataFrame, before: DataFrame | None) -> dict[str, tuple[int, int, int]]:
    """Return for each tap its greatest `mono` and `ts`, and how many messages of it are new."""
    rows = folded.select("tap", "last_mono", "last_ts", "messages")
    if before is not None:
        known = F.get_json_object("carried", "$.messages").cast("long")
        nothing = F.lit(None).cast("long")
        rows = rows.union(before.select("tap", nothing, nothing, -known))
    columns = rows.toDF("tap", "mono", "ts", "messages").groupBy("tap")
    latest = columns.agg(F.max("mono").alias("mono"), F.max("ts").alias("ts"), F.sum("messages").alias("new"))
    return {row["tap"]: (row["mono"], row["ts"], row["new"]) for row in latest.collect()}


def _conversations(folded: DataFrame, protocol: str, *more: Column) -> DataFrame:
    first_ts = F.timestamp_micros("first_ts")
    computed = {
        "protocol": F.lit(protocol),
        "date": F.to_date(first_ts),
        CONVERSATION_NAME.name: name_conversation(protocol),
        "first_ts": first_ts,
        "last_ts": F.timestamp_micros("last_ts"),
        "duration_us": (F.col("last_mono") - F.col("first_mono")) / 1000,
        "strict": F.col("strict").cast(WATCHED),
        "concurrent": F.col("concurrent").cast(WATCHED),
    }
    return _select(folded, CONVERSATIONS, computed, *more)


def _violations(folded: DataFrame, protocol: str, *more: Column) -> DataFrame:
    found = folded.select("tap", "conversation", "peer", "first_seq", F.inline("violations"))
    ts = F.timestamp_micros("ts")
    computed = {
        "protocol": F.lit(protocol),
        "date": F.to_date(ts),
        CONVERSATION_NAME.name: name_conversation(protocol),
        "ts": ts,
    }
    return _select(found, VIOLATIONS, computed, *more)


def _select(frame: DataFrame, schema: StructType, computed: Mapping[str, Column], *more: Column) -> DataFrame:
    """Return the columns of a schema, with comments: `computed` ones, the others from `frame`."""
    columns = (
        computed.get(field.name, F.col(field.name))
        .cast(field.dataType)
        .alias(field.name, metadata=field.metadata)
        for field in schema
    )
    return frame.select(*columns, *more)


CONTINUED = (
    Continued(
        name="conversations",
        applies=lambda protocol: bool(dialogs_of(protocol)),
        reads=message_tables,
        writes={"conversations": CONVERSATIONS, "violations": VIOLATIONS},
        keeps={STATE: OPEN_CONVERSATIONS},
        advance=advance,
    ),
)
