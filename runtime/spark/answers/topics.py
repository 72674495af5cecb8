"""Roll-up `topics`: the durations of each topic by day, in a form that adds up.

Quantiles of several days cannot be computed from those of each day, and a roll-up must avoid
reading every request of all days again. So each row has a histogram beside its counts, on a
logarithmic scale: the sum of histograms is the histogram of the sum, and a quantile of it is less
than 2.4 % above the true one (`WIDTH`), never below.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.messages import shape
from specwire.runtime.spark.answers.particulars import takes_time
from specwire.runtime.spark.answers.rates import TIMED, over, timed
from specwire.runtime.spark.answers.registry import RollUp
from specwire.runtime.spark.answers.schemas.rates import TOPICS
from specwire.runtime.spark.answers.step import Frames

PER_DECADE = 100
"""Bins of the histogram from one power of ten to the next."""

WIDTH = 10 ** (1 / PER_DECADE)
"""The end of a bin over its beginning."""

COUNTED = ("begun", "answered", "errors", "unanswered", "octets", "total_us")
"""Columns that add up."""

BY = ("kind", "service", "topic")

QUANTILES = {"p50_us": 0.5, "p90_us": 0.9, "p99_us": 0.99}


def spread_bin(took_us: Column) -> Column:
    """Return the bin of a time in microseconds: a whole number from 0, null for null."""
    bin_ = F.floor(F.log10(F.greatest(took_us, F.lit(1.0))) * PER_DECADE)
    return F.when(took_us.isNotNull(), bin_)  # `greatest` passes over null


def sum_topics(topics: DataFrame, *by: str) -> DataFrame:
    """Return rows of the table `topics` summed for each group of these columns, with quantiles.

    In `spread` a bin that several rows have stands several times.
    """
    return _with_quantiles(
        topics.groupBy(*by).agg(
            *(F.sum(name).alias(name) for name in COUNTED),
            F.max("max_us").alias("max_us"),
            F.flatten(F.collect_list("spread")).alias("spread"),
        )
    )


def topics(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return the table `topics`."""
    things = timed(answers)
    assert things is not None, f"{protocol} has nothing that takes time"
    ended = over()
    took = F.when(ended, F.col("took_us"))
    binned = things.groupBy("date", *BY, spread_bin(took).alias("bin")).agg(
        F.count(F.lit(1)).alias("begun"),
        F.count_if(ended).alias("answered"),
        F.count_if(F.col("outcome") == "error").alias("errors"),
        F.count_if(F.col("outcome") == "unanswered").alias("unanswered"),
        F.sum("octets").alias("octets"),
        F.sum(took).alias("total_us"),
        F.max(took).alias("max_us"),
    )
    one = F.when(F.col("bin").isNotNull(), F.array(F.struct("bin", F.col("answered").alias("count"))))
    rows = sum_topics(binned.withColumn("spread", one), "date", *BY)
    return {"topics": shape(rows, protocol, TOPICS)}


def _with_quantiles(rows: DataFrame) -> DataFrame:
    """Sort the histograms, and add the quantiles; both null or empty where nothing was answered."""
    ordered = rows.withColumn("spread", F.array_sort("spread"))
    return ordered.withColumns({name: _quantile(share) for name, share in QUANTILES.items()})


def _quantile(share: float) -> Column:
    """Return the end of the bin that reaches this share of values, or the longest time if less."""
    before = F.struct(F.lit(0).cast("long").alias("seen"), F.lit(None).cast("long").alias("bin"))
    wanted = F.ceil(F.col("answered") * share)

    def take(so_far: Column, item: Column) -> Column:
        found = F.when(so_far["seen"] < wanted, item["bin"]).otherwise(so_far["bin"])
        return F.struct((so_far["seen"] + item["count"]).alias("seen"), found.alias("bin"))

    at = F.aggregate("spread", before, take)["bin"]
    # Times are whole numbers, so the largest one in a bin is its end rounded down.
    end = F.floor(F.pow(F.lit(10.0), (at + 1) / PER_DECADE))
    return F.when(at.isNotNull(), F.least(end, F.col("max_us")))


ROLL_UPS = (
    RollUp("topics", takes_time, lambda protocol: (), (*TIMED, "jobs", "twins"), {"topics": TOPICS}, topics),
)
