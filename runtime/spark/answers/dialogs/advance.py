"""Conversations and their violations: an answer that is continued.

A conversation is over when its tap has gone on for `idle_s` without it, by the tap's own clock; a tap without new
messages that is a day behind those with some is taken to have ended, and its conversations with it. Violations are
certain at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet, dialogs_of
from specwire.runtime.spark.answers.dialogs.fold import FOLDED, Fold
from specwire.runtime.spark.answers.dialogs.narrow import narrow_rows
from specwire.runtime.spark.answers.dialogs.ordering import in_order, ranked
from specwire.runtime.spark.answers.registry import Continued
from specwire.runtime.spark.answers.schemas.conversations import (
    CONVERSATIONS,
    OPEN_CONVERSATIONS,
    VIOLATIONS,
    WATCHED,
)
from specwire.runtime.spark.answers.step import OPEN, Frames, Step
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.protocols import load_schemas

IDLE_S = 6 * 3600.0
"""Silence after which a conversation is over: well above what a client thinks about between two requests."""
TAP_IDLE_S = 24 * 3600.0
"""Silence, compared with other taps, after which a tap is taken to have ended."""
VIOLATIONS_KEPT = 16
"""Violations of which there are rows, for each conversation and reading; all are counted."""

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

    The machines run when it is called, once; what they found is kept in Spark's cache until the step is released.

    `kept` bounds the rows of violations for each conversation and reading. Raises InputError for a protocol
    without a dialog.
    """
    before = None if state is None else state[STATE]
    rows = narrow_rows(typed, Alphabet(protocol), before)
    folded = fold(rows, protocol, idle_s=idle_s, kept=kept, keep=True).persist()
    wholes = folded.where("whole is not null")
    is_over = _is_over(wholes, before, idle_s)
    carried = wholes.where(~is_over).select(
        "tap", "conversation", "peer", F.col("whole.carried").alias("carried")
    )
    return Step(
        rows={
            "conversations": _conversations(wholes, protocol, (~is_over).alias(OPEN)),
            "violations": _violations(folded, protocol, F.lit(False).alias(OPEN)),
        },
        state={STATE: _described(carried, OPEN_CONVERSATIONS)},
        cached=(folded,),
    )


def conversations(
    typed: Frames, protocol: str, *, idle_s: float = IDLE_S, kept: int = VIOLATIONS_KEPT
) -> dict[str, DataFrame]:
    """Return the tables ``conversations`` and ``violations`` of all messages in `typed`.

    Both are plans: each runs over the messages when it is read. Raises InputError for a protocol without a dialog.
    """
    rows = narrow_rows(typed, Alphabet(protocol))
    folded = fold(rows, protocol, idle_s=idle_s, kept=kept, keep=False)
    wholes = folded.where("whole is not null")
    return {"conversations": _conversations(wholes, protocol), "violations": _violations(folded, protocol)}


def fold(rows: DataFrame, protocol: str, *, idle_s: float, kept: int, keep: bool) -> DataFrame:
    """Run the machines over narrow rows; of `whole` and `violation` each row has one."""
    idle_ns = int(idle_s * 1e9)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return Fold(protocol, idle_ns=idle_ns, kept=kept, keep=keep).run(in_order(batches))

    return ranked(rows).mapInArrow(run, FOLDED_ROWS)


def _is_over(wholes: DataFrame, before: DataFrame | None, idle_s: float) -> Column:
    """Return whether a conversation is too far behind its tap, or its tap has ended; runs the machines."""
    taps = _look_at_taps(wholes, before)
    # The clocks of two hosts may be days apart: one that is heard of lives, whatever its clock says.
    newest = max((ts for _, ts, new in taps.values() if new), default=0)
    ended = [
        tap for tap, (_, ts, new) in taps.items() if not new and newest - ts > max(idle_s, TAP_IDLE_S) * 1e6
    ]
    # One literal for each tap that lives: a capture has as many as there are processes that write it at a time.
    is_over = F.col("tap").isin(ended)
    for tap, (mono, _, _) in taps.items():
        if tap not in ended:
            is_silent = F.col("whole.last_mono") < mono - int(idle_s * 1e9)
            is_over = is_over | ((F.col("tap") == tap) & is_silent)
    return is_over


def _look_at_taps(wholes: DataFrame, before: DataFrame | None) -> dict[str, tuple[int, int, int]]:
    """Return for each tap its greatest `mono` and `ts`, and how many messages of it are new."""
    whole = F.col("whole")
    told = wholes.select("tap", whole["last_mono"], whole["last_ts"], whole["messages"])
    if before is not None:
        known = F.get_json_object("carried", "$.messages").cast("long")
        nothing = F.lit(None).cast("long")
        told = told.union(before.select("tap", nothing, nothing, -known))
    columns = told.toDF("tap", "mono", "ts", "messages").groupBy("tap")
    latest = columns.agg(F.max("mono").alias("mono"), F.max("ts").alias("ts"), F.sum("messages").alias("new"))
    return {row["tap"]: (row["mono"], row["ts"], row["new"]) for row in latest.collect()}


def _conversations(wholes: DataFrame, protocol: str, *more: Column) -> DataFrame:
    whole = F.col("whole")
    first_ts = F.timestamp_micros(whole["first_ts"])
    given: dict[str, Column] = {
        "protocol": F.lit(protocol),
        "date": F.to_date(first_ts),
        "first_ts": first_ts,
        "last_ts": F.timestamp_micros(whole["last_ts"]),
        "duration_us": F.floor((whole["last_mono"] - whole["first_mono"]) / 1000),
        "strict": whole["strict"].cast(WATCHED),
        "concurrent": whole["concurrent"].cast(WATCHED),
    }
    own = ("tap", "conversation", "peer", "first_seq")
    return wholes.select(
        *(
            given.get(field.name, F.col(field.name) if field.name in own else whole[field.name]).alias(
                field.name, metadata=field.metadata
            )
            for field in CONVERSATIONS
        ),
        *more,
    )


def _violations(folded: DataFrame, protocol: str, *more: Column) -> DataFrame:
    violation = F.get("violation", F.lit(0))
    ts = F.timestamp_micros(violation["ts"])
    given = {"protocol": F.lit(protocol), "date": F.to_date(ts), "ts": ts}
    own = ("tap", "conversation", "peer", "first_seq")
    return folded.where("violation is not null").select(
        *(
            given.get(field.name, F.col(field.name) if field.name in own else violation[field.name]).alias(
                field.name, metadata=field.metadata
            )
            for field in VIOLATIONS
        ),
        *more,
    )


def _described(frame: DataFrame, schema: StructType) -> DataFrame:
    return frame.select(*(F.col(field.name).alias(field.name, metadata=field.metadata) for field in schema))


def _to_struct(kind: pa.StructType) -> StructType:
    return StructType([StructField(field.name, _to_spark(field.type)) for field in kind])


def _to_spark(kind: pa.DataType) -> DataType:
    if pa.types.is_struct(kind):
        assert isinstance(kind, pa.StructType)
        return _to_struct(kind)
    if pa.types.is_list(kind):
        assert isinstance(kind, pa.ListType)
        return ArrayType(_to_spark(kind.value_type))
    return {pa.string(): StringType(), pa.int64(): LongType(), pa.bool_(): BooleanType()}[kind]


FOLDED_ROWS = _to_struct(pa.struct(list(FOLDED)))
"""`fold.FOLDED`, for Spark."""


def _reads(protocol: str) -> tuple[str, ...]:
    return (*load_schemas(protocol).SCHEMAS, ERRORS)


CONTINUED = (
    Continued(
        name="conversations",
        applies=lambda protocol: bool(dialogs_of(protocol)),
        reads=_reads,
        writes={"conversations": CONVERSATIONS, "violations": VIOLATIONS},
        keeps={STATE: OPEN_CONVERSATIONS},
        advance=advance,
    ),
)
