"""The SQL backend: expressions of the package's generated ``sql`` module."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession


def available(spark: SparkSession, protocol: str) -> str | None:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""
    return f"{protocol} has no SQL expressions"


def decode(frame: DataFrame, protocol: str) -> DataFrame:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""
    raise NotImplementedError
