"""Messages of a protocol that there is no package for: kept and counted, each with an error row that says so.

They have a protocol of their own, `specwire.runtime.spark.pipeline.summary.UNKNOWN`, because what a tap stated may be anything, a path among it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from specwire.generated.schema import ERROR
from specwire.runtime.spark.decoding.shape import FRAMES, NOTED, OCTETS
from specwire.runtime.spark.pipeline.summary import UNKNOWN_TEXT
from specwire.runtime.spark.reading.capture import ENVELOPE

KIND = "protocol"


def refuse(frame: DataFrame) -> DataFrame:
    """Return captured messages as rows that did not decode, with the columns that all protocols have."""
    stated = F.coalesce(F.substring("protocol", 1, 100), F.lit("none"))
    values = {
        "kind": F.lit(KIND),
        "text": F.concat(F.lit(UNKNOWN_TEXT), stated),
    }
    error = F.struct(
        *(values.get(part.name, F.lit(None)).cast(part.dataType).alias(part.name) for part in ERROR)
    )
    return frame.select(
        *ENVELOPE.names,
        _octets().alias(OCTETS.name),
        F.lit(None).cast("string").alias("_message"),
        error.alias("_error"),
        F.col("frames").alias(FRAMES),
    )


def error_rows(refused: DataFrame) -> DataFrame:
    """Return refused messages in the columns of the table `_errors`."""
    noted = [F.col(name).alias(f"_{name}" if name in ERROR.names else name) for name in NOTED.fieldNames()]
    findings = (F.col("_error")[name].alias(name) for name in ERROR.names)
    return refused.select(*noted, *findings, F.col(FRAMES).alias("frames"))


def _octets() -> Column:
    sizes = F.transform("frames", lambda frame: F.coalesce(F.octet_length(frame), F.lit(0)).cast("long"))
    none = F.lit(0).cast("long")
    return F.coalesce(F.aggregate(sizes, none, lambda total, size: total + size), none)
