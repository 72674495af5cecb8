"""The messages that a run reads, as a DataFrame: new segments, without what is known of them already."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from specwire.runtime.spark.pipeline.intake import Portion
from specwire.runtime.spark.pipeline.summary import UNKNOWN
from specwire.runtime.spark.pipeline.writing import time_partitions
from specwire.runtime.spark.protocols import known_protocols
from specwire.runtime.spark.reading.capture import CAPTURE, literal_path

SEGMENT = StructField("segment", StringType(), metadata={"comment": "file that the message was captured in"})
STATED = StructField("stated", StringType(), metadata={"comment": "protocol as the tap stated it"})

NAMES = ("conversation", "sender", "peer")
"""Texts that a file of another tool may have in no UTF-8; where `tap` or `protocol` is none, the file is set aside."""

KEPT = StructType([*(field for field in CAPTURE if field.name != "protocol"), STATED, SEGMENT])
"""The columns of the layer `frames`, beside its partition columns `protocol` (what a message is read as) and date."""


def read_portions(spark: SparkSession, portions: Iterable[Portion]) -> DataFrame:
    """Return the messages of segments, the columns of a capture and the segment's name."""
    whole = [portion for portion in portions if not portion.known and not portion.repeats]
    parts = [_read(spark, whole)] if whole else []
    for portion in portions:
        if portion.known or portion.repeats:
            rows = _read(spark, [portion]).where(~_is_known(portion))
            parts.append(rows.dropDuplicates(["tap", "seq"]) if portion.repeats else rows)
    if not parts:
        return spark.createDataFrame([], StructType([*CAPTURE, SEGMENT]))
    return reduce(DataFrame.unionByName, parts)


def read_kept(kept: DataFrame) -> DataFrame:
    """Return rows of the layer `frames` as `read_portions` gave them."""
    return kept.select(
        *(F.col("stated" if name == "protocol" else name).alias(name) for name in CAPTURE.names), SEGMENT.name
    )


def keep(rows: DataFrame, override: str | None, partition: str) -> DataFrame:
    """Return messages in the columns of the layer `frames`, with its partition columns by ``day`` or ``hour``."""
    columns = [
        F.col("protocol" if field.name == STATED.name else field.name).alias(
            field.name, metadata=field.metadata
        )
        for field in KEPT
    ]
    times = time_partitions(KEPT.names, partition)
    stored = (make(F.col("ts")).alias(name) for name, make in times.items())
    return rows.select(*columns, _read_as(override).alias("protocol"), *stored)


def rows_of(rows: DataFrame, protocol: str, override: str | None) -> DataFrame:
    """Return the messages that are read as a protocol, `UNKNOWN` for those of none that is known."""
    if override is not None:
        return rows
    if protocol != UNKNOWN:
        return rows.where(F.col("protocol") == protocol)
    return rows.where(F.col("protocol").isNull() | ~F.col("protocol").isin(*known_protocols()))


def protocols_of(portions: Iterable[Portion], override: str | None) -> dict[str, list[Portion]]:
    """Return the segments that hold messages of each protocol, as they are read; `UNKNOWN` comes last."""
    found: dict[str, list[Portion]] = {}
    for portion in portions:
        for name in sorted({_name_as(stated, override) for stated in portion.protocols}):
            found.setdefault(name, []).append(portion)
    return dict(sorted(found.items(), key=lambda item: (item[0] == UNKNOWN, item[0])))


def _name_as(stated: str | None, override: str | None) -> str:
    return override or (stated if stated in known_protocols() else UNKNOWN)


def _read_as(override: str | None) -> Column:
    if override is not None:
        return F.lit(override)
    stated = F.col("protocol")
    return F.when(stated.isin(*known_protocols()), stated).otherwise(UNKNOWN)


def _read(spark: SparkSession, portions: Iterable[Portion]) -> DataFrame:
    paths = [literal_path(portion.path) for portion in portions]
    rows = spark.read.schema(CAPTURE).parquet(*paths)
    columns = (_valid(name) if name in NAMES else F.col(name) for name in CAPTURE.names)
    return rows.select(*columns, F.col("_metadata.file_name").alias(SEGMENT.name))


def _valid(name: str) -> Column:
    """A column as UTF-8. Spark takes any octets that a file has for text, and Python fails at them later."""
    return F.make_valid_utf8(name).alias(name, metadata=CAPTURE[name].metadata)


def _is_known(portion: Portion) -> Column:
    known = F.lit(False)
    for tap, stretches in portion.known.items():
        inside = reduce(lambda one, other: one | other, (F.col("seq").between(*ends) for ends in stretches))
        known = known | ((F.col("tap") == tap) & inside)
    return known
