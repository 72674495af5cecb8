"""Gaps in the numbers of messages: numbered messages that are lost, repeated or late.

The numbers of one side of a connection are consecutive. A receiver that has asked for a selection
(a client that subscribed to a prefix) sees gaps as a matter of course; `filtered` marks them. If a
greeting restarts the numbers, they are not compared across it. The latest number of each side is
kept for the next step.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.answer import (
    CONNECTION,
    MOMENT,
    PLACE,
    Continued,
    Frames,
    Step,
    as_table,
    table_schema,
)
from specwire.runtime.spark.answers.health import GIVEN_UP_NS, SIDE
from specwire.runtime.spark.answers.messages import (
    in_order,
    latest_by_tap,
    select,
    stored_rows,
    union,
    with_sql,
)
from specwire.runtime.spark.answers.protocol_specifics import Numbering, specifics_of
from specwire.runtime.spark.protocols import load_machine

GAPS = table_schema(
    *PLACE,
    "sender STRING: role letter of the side in question",
    *MOMENT,
    "message STRING: class of the message whose number does not follow",
    "expected BIGINT: the number that would have followed",
    "found BIGINT: the number that came",
    "missing BIGINT: numbers that are missing; 0 where it went back",
    "kind STRING: gap, repeat (the same number again) or back (a lower number)",
    "filtered BOOLEAN: whether the receiver had asked for a choice: then gaps are natural",
)

COUNTS = table_schema(
    *CONNECTION,
    "sender STRING: role letter of the side that numbers",
    "seq BIGINT: the tap's count of its latest numbered message",
    "mono BIGINT (nanoseconds): when that was, the tap's monotonic clock",
    "number BIGINT: its number; null where there was none since the numbers began anew",
    "filtered BOOLEAN: whether the receiver had asked for a choice",
)
"""State: the latest number of each side."""


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the table `gaps`."""
    numbering = specifics_of(protocol).numbering
    assert numbering is not None, f"{protocol} numbers nothing"
    messages = _select_messages(typed, protocol, numbering)
    rows = _add_previous(union([messages, *stored_rows(state, "counts")]), latest_by_tap(messages)).persist()
    # If numbers begin again, a distance of less than half of them counts as ahead.
    expected, ahead, modulus = "previous + 1", "number - previous - 1", numbering.modulus
    if modulus:
        expected = f"({expected}) % {modulus}"
        ahead = f"pmod({ahead} + {modulus // 2}, {modulus}) - {modulus // 2}"
    found = with_sql(
        rows.where(f"previous IS NOT NULL AND number <> {expected}"),
        expected=expected,
        found="number",
        missing=f"greatest({ahead}, 0)",
        kind=f"if({ahead} > 0, 'gap', if(number = previous, 'repeat', 'back'))",
    )
    table = as_table(found, protocol, GAPS, is_open=F.lit(False))
    latest = rows.where("is_latest and lives").withColumn("number", F.coalesce("number", "previous"))
    return Step({"gaps": table}, {"counts": latest.select(*COUNTS.fieldNames())}, (rows,))


def _select_messages(typed: Frames, protocol: str, numbering: Numbering) -> DataFrame:
    """Return numbered messages, and the messages that affect the other side's numbers."""
    frames = []
    for message in filter(typed.__contains__, _reads(protocol)):
        fields = {
            "number": numbering.columns.get(message, "cast(null as bigint)"),
            "filtered": numbering.filtered_by.get(message, "false"),
            "restarts": numbering.restarts.get(message, "false"),
        }
        rows = select(typed, protocol, message, fields)
        if message not in numbering.columns:
            roles: Mapping[str, str] = getattr(load_machine(protocol), "ROLES", {})
            here, there = roles
            rows = rows.withColumn("sender", F.when(F.col("sender") == here, there).otherwise(here))
        frames.append(rows)
    return union(frames).where("number is not null or filtered or restarts")


def _add_previous(messages: DataFrame, taps: DataFrame) -> DataFrame:
    """Put each side's messages in order, each beside the number before, `previous`.

    Returns those with both numbers, and the latest message of each side.
    """
    keyed = messages.withColumns({"key": F.xxhash64(*SIDE), "restarts": F.coalesce("restarts", F.lit(False))})
    window = in_order("key", *SIDE)
    earlier = in_order("key", *SIDE, rows="UNBOUNDED PRECEDING AND 1 PRECEDING")
    pause = f"mono - lag(mono) {window}"
    begun = with_sql(keyed, part=f"count_if({pause} > {GIVEN_UP_NS} OR restarts) {window}")
    ordered = with_sql(
        begun,
        last=f"last(if(number IS NULL, NULL, struct(part, number)), true) {earlier}",
        filtered=f"coalesce(last(if(filtered, part, NULL), true) {window} = part, false)",
        is_latest=f"lead(seq) {window} IS NULL",
    )
    timed = with_sql(
        ordered.join(F.broadcast(taps), "tap", "left"),
        previous="if(last.part = part, last.number, NULL)",
        lives=f"coalesce(tap_mono - mono <= {GIVEN_UP_NS}, true)",
    )
    return timed.where("is_latest OR (previous IS NOT NULL AND number IS NOT NULL)")


def _reads(protocol: str) -> tuple[str, ...]:
    numbering = specifics_of(protocol).numbering
    if numbering is None:
        return ()
    return tuple({**numbering.columns, **numbering.filtered_by, **numbering.restarts})


CONTINUED = Continued("gaps", _reads, {"gaps": GAPS}, {"counts": COUNTS}, advance)
