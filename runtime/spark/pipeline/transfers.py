"""Files that FILEMQ carried, for the summary: added up from the answer table of files.

That table has a row for each file, made once: the typed table of chunks has their contents, which would be gone
through at each run for a sum.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from specwire.runtime.spark.pipeline.store import ANSWERS
from specwire.runtime.spark.pipeline.summary import Transfer
from specwire.runtime.spark.pipeline.view import View

KEPT = 200
"""Conversations of each protocol."""


def find_transfers(view: View) -> tuple[Transfer, ...]:
    """Return the files by conversation, the largest of each protocol first; none where answers are not asked for."""
    table = view.table(f"{ANSWERS}/transfers")
    return () if table is None else count_transfers(table)


def count_transfers(files: DataFrame) -> tuple[Transfer, ...]:
    """Count files by conversation, the protocols one after another, the largest first; at most `KEPT` of each."""
    sent = F.col("outcome") != "deleted"
    counted = files.groupBy("protocol", "tap", "conversation", "peer").agg(
        F.count_if(sent & (F.col("offset") == 0)).alias("begun"),
        F.count_if(F.col("outcome") == "complete").alias("ended"),
        F.count_if(~sent).alias("deleted"),
        F.sum("chunks").alias("chunks"),
        F.sum("octets").alias("octets"),
        ((F.max("last_mono") - F.min("mono")) / 1e9).alias("seconds"),
    )
    largest = Window.partitionBy("protocol").orderBy(F.desc("octets"), "tap", "conversation")
    ranked = counted.withColumn("rank", F.row_number().over(largest)).where(F.col("rank") <= KEPT)
    rows = ranked.orderBy("protocol", "rank").drop("rank").collect()
    return tuple(Transfer(**row.asDict()) for row in rows)
