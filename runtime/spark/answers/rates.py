"""Roll-ups by minute: the durations of calls, jobs and files, and the amount of traffic.

Quantiles are `percentile_approx` with an accuracy of 10,000: the value given for p has a rank
within one in ten thousand of p, and among up to ten thousand values it is the very one. Quantiles
do not add up; `latencies` makes them for any other grouping from the answer tables.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.messages import message_tables, shape, take, together
from specwire.runtime.spark.answers.particulars import particulars_of, takes_time
from specwire.runtime.spark.answers.registry import RollUp
from specwire.runtime.spark.answers.schemas.rates import LATENCY, TRAFFIC
from specwire.runtime.spark.answers.step import Frames
from specwire.runtime.spark.answers.taps import without_twins
from specwire.runtime.spark.decoding.tables import ERRORS

ACCURACY = 10_000

GROUP = ("tap", "kind", "service", "topic", "peer")


def timed(answers: Frames) -> DataFrame | None:
    """Return calls, parts of jobs and files of the existing answer tables, in one schema.

    Columns: `date`, `ts`, `tap`, `kind`, `service`, `topic`, `peer`, `outcome` (answered, error,
    unanswered or open), `took_us` and `octets`. Messages that are not calls
    (unasked, noresponse, untagged) are omitted, and so are second views at another tap.
    """
    parts = [make(counted(answers, name)) for name, make in TIMED.items() if name in answers]
    return together(parts) if parts else None


def counted(answers: Frames, name: str) -> DataFrame:
    """Return an answer table without views that count at another tap: see `twins`."""
    table = answers[name]
    if "twins" not in answers:
        return table
    if "conversation" in table.columns:
        return without_twins(table, answers["twins"])
    seen = without_twins(answers["jobs"], answers["twins"]) if "jobs" in answers else table
    return table.join(seen.select("tap", "uuid").distinct(), ["tap", "uuid"], "left_semi")


def latencies(things: DataFrame, *by: str) -> DataFrame:
    """Return counts and quantiles of what `timed` gave, for each group of these columns."""
    took = F.when(over(), F.col("took_us"))
    at = F.percentile_approx(took, [0.5, 0.9, 0.99], ACCURACY)
    return (
        things.groupBy(*by)
        .agg(
            F.count(F.lit(1)).alias("begun"),
            F.count_if(over()).alias("answered"),
            F.count_if(F.col("outcome") == "error").alias("errors"),
            F.count_if(F.col("outcome") == "unanswered").alias("unanswered"),
            at.alias("at"),
            F.max(took).alias("max_us"),
            F.sum(took).alias("total_us"),
            F.sum("octets").alias("octets"),
        )
        .withColumns({name: F.col("at")[index] for index, name in enumerate(("p50_us", "p90_us", "p99_us"))})
        .drop("at")
    )


def over() -> Column:
    """Whether a row of `timed` has ended, with an error or without."""
    return F.col("outcome").isin("answered", "error")


def latency(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the table `latency`."""
    things = timed(answers)
    assert things is not None, f"{protocol} has nothing that takes time"
    by_minute = things.withColumn("minute", F.date_trunc("minute", "ts"))
    return {"latency": shape(latencies(by_minute, "date", "minute", *GROUP), protocol, LATENCY)}


def traffic(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the table `traffic`; its messages add up to the rows of the typed tables."""
    topics = particulars_of(protocol).topics
    minute = "date_trunc('minute', ts)"
    words = (
        take(typed, protocol, name, {"topic": topics.get(name, "cast(null as string)")}, noted=SEEN)
        for name in message_tables(protocol)
        if name in typed
    )
    grouped = together(words).groupBy("tap", "message", "sender", "topic", F.expr(minute).alias("minute"))
    wrong = F.count_if(F.col("message") == ERRORS)
    counted = grouped.agg(
        F.count(F.lit(1)).alias("messages"), F.sum("octets").alias("octets"), wrong.alias("errors")
    )
    return {"traffic": shape(counted.withColumn("date", F.to_date("minute")), protocol, TRAFFIC)}


SEEN = ("tap", "sender", "ts", "octets")


def _requests(table: DataFrame) -> DataFrame:
    asked = table.where("outcome in ('answered', 'error', 'unanswered', 'open')")
    return _as_timed(
        asked, "rpc", F.col("service"), F.col("topic"), F.col("peer"), F.col("outcome"), F.col("octets")
    )


def _parts(table: DataFrame) -> DataFrame:
    outcome = F.when(F.col("outcome") == "done", "answered").when(F.col("outcome") == "failed", "error")
    left = outcome.otherwise(F.col("outcome"))
    return _as_timed(table, "job", F.col("service"), F.col("task"), F.col("worker"), left, F.lit(None))


def _transfers(table: DataFrame) -> DataFrame:
    named = F.when(F.col("outcome").isin("complete", "unmarked"), "answered").when(
        F.col("outcome") == "open", "open"
    )
    files = table.where("outcome <> 'deleted'").withColumn("latency_us", F.col("duration_us"))
    nothing = F.lit(None).cast("string")
    return _as_timed(
        files, "transfer", nothing, nothing, F.col("peer"), named.otherwise("error"), F.col("octets")
    )


def _as_timed(
    table: DataFrame,
    kind: str,
    service: Column,
    topic: Column,
    peer: Column,
    outcome: Column,
    octets: Column,
) -> DataFrame:
    return table.select(
        "date",
        "ts",
        "tap",
        F.lit(kind).alias("kind"),
        service.alias("service"),
        topic.alias("topic"),
        peer.alias("peer"),
        outcome.alias("outcome"),
        F.col("latency_us").alias("took_us"),
        octets.cast("long").alias("octets"),
    )


TIMED = {"requests": _requests, "job_parts": _parts, "transfers": _transfers}
"""The answer tables of what takes time, and what makes rows of one kind of theirs."""

ROLL_UPS = (
    RollUp("traffic", lambda protocol: True, message_tables, (), {"traffic": TRAFFIC}, traffic),
    RollUp(
        "latency", takes_time, lambda protocol: (), (*TIMED, "jobs", "twins"), {"latency": LATENCY}, latency
    ),
)
