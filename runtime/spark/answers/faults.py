"""Roll-up `errors`: messages that did not decode, by error, message and field."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.messages import shape, take
from specwire.runtime.spark.answers.registry import RollUp
from specwire.runtime.spark.answers.schemas.health import ERRORS as ERRORS_TABLE
from specwire.runtime.spark.answers.step import Frames
from specwire.runtime.spark.decoding.tables import ERRORS

FOUND = {"found": "message", "field": "field", "kind": "kind", "text": "text"}


def errors(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the table `errors`; its messages add up to the rows of `_errors`."""
    rows = take(typed, protocol, ERRORS, FOUND, noted=("tap", "sender", "ts", "seq", "octets")).drop(
        "message"
    )
    grouped = rows.withColumnRenamed("found", "message").groupBy(
        F.to_date("ts").alias("date"), "tap", "sender", "message", "field", "kind"
    )
    counted = grouped.agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum("octets").alias("octets"),
        F.min("ts").alias("first_ts"),
        F.max("ts").alias("last_ts"),
        F.min_by("text", "seq").alias("text"),
    )
    return {"errors": shape(counted, protocol, ERRORS_TABLE)}


ROLL_UPS = (
    RollUp("errors", lambda protocol: True, lambda protocol: (ERRORS,), (), {"errors": ERRORS_TABLE}, errors),
)
