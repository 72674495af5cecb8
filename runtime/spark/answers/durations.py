"""Roll-ups of what takes time (calls, parts of jobs, files): `latency` by minute, `topics` by day.

Quantiles in `latency` are `percentile_approx` with an accuracy of 10,000: the rank of the value for
p differs from p by one in ten thousand at most, and for up to 10,000 values it is exact. Such
quantiles cannot be combined; `latencies` computes them for other groups from the answer tables.

The quantiles of `topics` can be combined, so those of several days do not need every request: each
row also has a histogram with a logarithmic scale, and histograms add up. A quantile of a histogram
is less than 2.4 % (the width of a bin) above the exact one, never below. Times below 1 microsecond
count as 1.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.answer import (
    STORED,
    TAP,
    Frames,
    RollUp,
    as_table,
    group,
    sums,
    table_schema,
)
from specwire.runtime.spark.answers.messages import union
from specwire.runtime.spark.answers.protocol_specifics import takes_time
from specwire.runtime.spark.answers.taps import without_second_views

_SUBJECT = table_schema(
    "kind STRING: rpc (a request), job (a worker's part of a NORFAB job), transfer (a file)",
    "service STRING: service that was asked; null for transfers",
    "topic STRING: topic of the request, task of the job; null for transfers",
)
_ENDS = (
    "answered BIGINT: those that ended, with an error or without: the quantiles are theirs",
    "errors BIGINT: those that ended with an error",
    "unanswered BIGINT: those that were given up",
)
_TOTALS = (
    "max_us BIGINT (microseconds): the longest",
    "total_us BIGINT (microseconds): their sum: by `answered` it gives the mean",
    "octets BIGINT (octets): octets of requests and responses, or of the files",
)

LATENCY = table_schema(
    *STORED,
    "minute TIMESTAMP: the minute in which it began, UTC",
    TAP,
    *_SUBJECT,
    "peer STRING: the connection's peer; of a job the worker",
    "begun BIGINT: requests, parts of jobs or files that began in this minute",
    *_ENDS,
    "p50_us BIGINT (microseconds): median",
    "p90_us BIGINT (microseconds): 90 of 100 took at most so long",
    "p99_us BIGINT (microseconds): 99 of 100 took at most so long",
    *_TOTALS,
)

TOPICS = table_schema(
    *STORED,
    *_SUBJECT,
    "begun BIGINT: requests, parts of jobs or files that began on this day",
    *_ENDS,
    "p50_us BIGINT (microseconds): half of them took at most so long; above the median by less than 2.4 %",
    "p90_us BIGINT (microseconds): 90 of 100 took at most so long; above that quantile by less than 2.4 %",
    "p99_us BIGINT (microseconds): 99 of 100 took at most so long; above that quantile by less than 2.4 %",
    *_TOTALS,
    "spread ARRAY<STRUCT<bin:BIGINT,count:BIGINT>>: how many took how long: bin b has those from "
    "10^(b/100) microseconds to 10^((b+1)/100), bin 0 also what took less; bins without any are left "
    "out. Counts of several days and topics add up",
)

ACCURACY = 10_000

PER_DECADE = 100
"""Bins of the histogram from one power of ten to the next."""

SUBJECT = tuple(_SUBJECT.fieldNames())
QUANTILES = {"p50_us": 0.5, "p90_us": 0.9, "p99_us": 0.99}

_FILE_OUTCOME = "if(outcome IN ('complete', 'unmarked'), 'answered', 'error')"

TIMED = {
    "requests": (
        *("'rpc' AS kind", "service", "topic", "peer", "outcome"),
        *("latency_us AS took_us", "octets"),
    ),
    "job_parts": (
        *("'job' AS kind", "service", "task AS topic", "worker AS peer"),
        "CASE outcome WHEN 'done' THEN 'answered' WHEN 'failed' THEN 'error' ELSE outcome END AS outcome",
        *("latency_us AS took_us", "CAST(NULL AS bigint) AS octets"),
    ),
    "transfers": (
        *("'transfer' AS kind", "CAST(NULL AS string) AS service", "CAST(NULL AS string) AS topic", "peer"),
        f"if(outcome IN ('open', 'deleted'), outcome, {_FILE_OUTCOME}) AS outcome",
        *("duration_us AS took_us", "octets"),
    ),
}
"""SQL of the columns of `timed`, for the answer tables that have what takes time."""

IS_TIMED = "outcome IN ('answered', 'error', 'unanswered', 'open')"
"""SQL for whether a row of `TIMED` takes time. Deletions and messages that are not calls do not."""
ENDED = "kind IS NOT NULL AND outcome IN ('answered', 'error')"
OUTCOMES = {"answered": ENDED, "errors": "outcome = 'error'", "unanswered": "outcome = 'unanswered'"}
TOOK_US = f"if({ENDED}, took_us, NULL)"


def timed(answers: Frames) -> DataFrame | None:
    """Return calls, parts of jobs and files of the existing answer tables, in one schema.

    Columns: `date`, `ts`, `tap`, `kind`, `service`, `topic`, `peer`, `outcome` (answered, error,
    unanswered or open), `took_us` and `octets`. Messages that are not calls (unasked, noresponse,
    untagged), deletions of files, and second views at another tap are omitted.
    """
    frames = [
        without_second_views(answers[name], answers).selectExpr("date", "ts", "tap", *columns)
        for name, columns in TIMED.items()
        if name in answers
    ]
    return union(frames).where(IS_TIMED) if frames else None


def latencies(rows: DataFrame, *by: str) -> DataFrame:
    """Return counts and quantiles of rows of `timed`, for each group of these columns."""
    quantiles = f"percentile_approx({TOOK_US}, array(0.5D, 0.9D, 0.99D), {ACCURACY}) AS quantiles"
    counts = (f"count_if({is_so}) AS {name}" for name, is_so in OUTCOMES.items())
    totals = ("sum(octets) AS octets", f"sum({TOOK_US}) AS total_us", f"max({TOOK_US}) AS max_us")
    rows = group(rows, by, "count(1) AS begun", *counts, *totals, quantiles)
    at = {name: F.col("quantiles")[place] for place, name in enumerate(QUANTILES)}
    return rows.withColumns(at).drop("quantiles")


def latency(sums_of: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the table `latency`."""
    rows = timed(answers)
    assert rows is not None, f"{protocol} has nothing that takes time"
    by_minute = rows.withColumn("minute", F.date_trunc("minute", "ts"))
    counted = latencies(by_minute, "date", "minute", "tap", *SUBJECT, "peer")
    return {"latency": as_table(counted, protocol, LATENCY)}


def topics(sums_of: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the table `topics`."""
    rows = without_second_views(sums_of["calls"], answers).where("kind IS NOT NULL")
    binned = group(rows, ("date", *SUBJECT, "bin"), *_ADDED_UP)
    one = F.expr("if(bin IS NULL, NULL, array(struct(bin, answered AS count)))")
    summed = sum_topics(binned.withColumn("spread", one), "date", *SUBJECT)
    return {"topics": as_table(summed, protocol, TOPICS)}


_ADDED_UP = (*sums("begun", *OUTCOMES, "octets", "total_us"), "max(max_us) AS max_us")


def sum_topics(topics: DataFrame, *by: str) -> DataFrame:
    """Return rows of the table `topics` summed for each group of these columns, with quantiles.

    A bin that several rows have is several items of the summed `spread`.
    """
    rows = group(
        topics,
        by,
        *_ADDED_UP,
        "array_sort(flatten(collect_list(spread))) AS spread",
    )
    return rows.withColumns({name: _quantile(share) for name, share in QUANTILES.items()})


def _quantile(share: float) -> Column:
    """Return the end of the bin that reaches this share of values, or the longest time if less."""
    start = F.struct(F.lit(0).cast("long").alias("seen"), F.lit(None).cast("long").alias("bin"))
    wanted = F.ceil(F.col("answered") * share)

    def add(so_far: Column, item: Column) -> Column:
        found = F.when(so_far["seen"] < wanted, item["bin"]).otherwise(so_far["bin"])
        return F.struct((so_far["seen"] + item["count"]).alias("seen"), found.alias("bin"))

    at = F.aggregate("spread", start, add)["bin"]
    # Times are whole numbers, so the largest one in a bin is its end rounded down.
    end = F.floor(F.pow(F.lit(10.0), (at + 1) / PER_DECADE))
    return F.when(at.isNotNull(), F.least(end, F.col("max_us")))


ROLL_UPS = (
    RollUp("latency", takes_time, (), (*TIMED, "twins"), {"latency": LATENCY}, latency),
    RollUp("topics", takes_time, ("calls",), ("twins",), {"topics": TOPICS}, topics),
)
