"""How rows go to Python: in batches of so many rows, which Spark does not weigh.

Where a batch may have so many octets at most, as in our sessions, Spark adds up the buffers of all columns after every
row, which for narrow rows takes as long as sending them does. So for rows that are small, whatever a capture holds, the
limit is taken away while they are sent. Spark looks at it when a job runs.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from specwire.runtime.spark.session.settings import changed_settings

ROWS = 50_000
"""Rows of a batch."""

SMALL_OCTETS = 4096
"""Rows of more octets than this are sent by weight: `ROWS` times as many are the most that a batch has otherwise."""

SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS),
    # With this very number nothing is weighed.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}


def unweighed(spark: SparkSession) -> AbstractContextManager[None]:
    """Take the limit away from the jobs that a session runs for the time of a block."""
    return changed_settings(spark, SETTINGS)
