"""Captured messages while a run sorts them: read from segments, written to the layer `frames`, refused.

A message is read by the package of the protocol and edition that its tap stated. `name_package`
says which, for a segment; `rows_of` and `keep` evaluate the same rule in Spark. A message without a
package becomes an error row of the protocol `UNKNOWN`, because a tap may state any text as its
protocol, even a path.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from specwire.generated.schema import ERROR
from specwire.runtime.package_search import AT
from specwire.runtime.packages import choose_package, package_editions
from specwire.runtime.spark.answers.answer import CONVERSATION_NAME
from specwire.runtime.spark.answers.protocol_specifics import name_conversation, specifics_of
from specwire.runtime.spark.decoding.options import CAPTURE, EDITION, ENVELOPE, NOTED, OCTETS, name_noted
from specwire.runtime.spark.decoding.options import FRAMES as RAW_FRAMES
from specwire.runtime.spark.pipeline.columns import add_columns
from specwire.runtime.spark.pipeline.intake import Portion
from specwire.runtime.spark.pipeline.summary import UNKNOWN, UNKNOWN_TEXT
from specwire.runtime.spark.pipeline.writing import time_partitions
from specwire.runtime.spark.protocols import edition_packages, known_protocols
from specwire.runtime.spark.session.executors import literal_path

SEGMENT = StructField("segment", StringType(), metadata={"comment": "file that the message was captured in"})
STATED = StructField("stated", StringType(), metadata={"comment": "protocol as the tap stated it"})

NAMES = ("conversation", "sender", "peer")
"""Text columns that may not be UTF-8 in a file of another tool.

If `tap` or `protocol` is not UTF-8, the file is quarantined.
"""

KEPT = StructType(
    [
        *(field for field in CAPTURE if field.name != "protocol"),
        *(STATED, EDITION, CONVERSATION_NAME, SEGMENT),
    ]
)
"""Columns of the layer `frames`, besides its partition columns.

The partition columns are the date and `protocol`, the protocol that decodes a message.
"""

READ = StructType([*CAPTURE, EDITION, SEGMENT])
"""Columns of messages while they are sorted."""


def read_portions(spark: SparkSession, portions: Iterable[Portion]) -> DataFrame:
    """Return the messages of segments, in the columns of `READ`."""
    parts = []
    by_edition: dict[str, list[Portion]] = {}
    for portion in portions:
        if portion.known or portion.repeats:
            rows = _read(spark, [portion], portion.edition).where(~_is_known(portion))
            parts.append(rows.dropDuplicates(["tap", "seq"]) if portion.repeats else rows)
        else:
            by_edition.setdefault(portion.edition, []).append(portion)
    parts += (_read(spark, whole, edition) for edition, whole in by_edition.items())
    return reduce(DataFrame.unionByName, parts) if parts else spark.createDataFrame([], READ)


def read_kept(kept: DataFrame) -> DataFrame:
    """Return rows of the layer `frames` or `late` in the columns of `READ`."""
    names = {"protocol": STATED.name}
    nothing = F.lit(None).cast("string")  # Version 0.1 had no column for the edition.
    columns = {name: F.col(names.get(name, name)) for name in READ.names}
    if EDITION.name not in kept.columns:
        columns[EDITION.name] = nothing
    return kept.select(*(column.alias(name) for name, column in columns.items()))


def keep(rows: DataFrame, override: str | None, partition: str) -> DataFrame:
    """Return messages in the columns of the layer `frames`, with its partition columns.

    `partition` is ``day`` or ``hour``.
    """
    protocol = F.substring_index(_package(override), AT, 1)
    made = {STATED.name: F.col("protocol"), CONVERSATION_NAME.name: _conversation_name(protocol)}
    columns = [
        made.get(field.name, F.col(field.name)).alias(field.name, metadata=field.metadata) for field in KEPT
    ]
    times = time_partitions(KEPT.names, partition)
    stored = (make(F.col("ts")).alias(name) for name, make in times.items())
    return rows.select(*columns, protocol.alias("protocol"), *stored)


def rows_of(rows: DataFrame, package: str, override: str | None) -> DataFrame:
    """Return the messages that a package decodes; `UNKNOWN` selects those without a package."""
    return rows if override is not None else rows.where(_package(None) == package)


def name_package(protocol: str | None, edition: str, override: str | None) -> str:
    """Return the name of the package for messages that state a protocol and an edition."""
    if override is not None:
        return override
    known = choose_package(protocol, edition) if protocol and protocol in known_protocols() else None
    return known or UNKNOWN


def _package(override: str | None) -> Column:
    """Return `name_package` of each row."""
    if override is not None:
        return F.lit(override)
    known = known_protocols()
    several = [protocol for protocol in known if len(edition_packages(protocol)) > 1]
    stated, edition = F.col("protocol"), F.coalesce(EDITION.name, F.lit(""))
    found = F.when(stated.isin(*(protocol for protocol in known if protocol not in several)), stated)
    for protocol in several:
        for one in ("", *package_editions(protocol)):
            found = found.when((stated == protocol) & (edition == one), choose_package(protocol, one))
    return found.otherwise(UNKNOWN)


def _conversation_name(protocol: Column) -> Column:
    """Return the column of names; a protocol may have particular names of peers."""
    found = name_conversation(UNKNOWN)
    for name in known_protocols():
        if specifics_of(name).peer_name != specifics_of(UNKNOWN).peer_name:
            found = F.when(protocol == name, name_conversation(name)).otherwise(found)
    return found


def stated_in(path: Path) -> list[tuple[str | None, str]]:
    """Return the protocols and editions that the rows of a file of the table `late` state."""
    names = [name for name in (STATED.name, EDITION.name) if name in pq.read_schema(path).names]
    rows = pq.read_table(path, columns=names, partitioning=None).group_by(names).aggregate([]).to_pylist()
    return [(row[STATED.name], row.get(EDITION.name) or "") for row in rows]


def _read(spark: SparkSession, portions: Iterable[Portion], edition: str) -> DataFrame:
    paths = [literal_path(portion.path) for portion in portions]
    rows = spark.read.schema(CAPTURE).parquet(*paths)
    columns = (_valid(name) if name in NAMES else F.col(name) for name in CAPTURE.names)
    # Nullable in every file, whatever editions the portions have.
    stated = F.when(F.col("ts").isNotNull(), F.lit(edition or None).cast("string")).alias(EDITION.name)
    return rows.select(*columns, stated, F.col("_metadata.file_name").alias(SEGMENT.name))


def _valid(name: str) -> Column:
    """Return a column as valid UTF-8: Spark accepts any octets as text, and Python does not."""
    return F.make_valid_utf8(name).alias(name, metadata=CAPTURE[name].metadata)


def _is_known(portion: Portion) -> Column:
    known = F.lit(False)
    for tap, stretches in portion.known.items():
        inside = reduce(lambda one, other: one | other, (F.col("seq").between(*ends) for ends in stretches))
        known = known | ((F.col("tap") == tap) & inside)
    return known


KIND = "protocol"


def refuse(frame: DataFrame) -> DataFrame:
    """Return captured messages as rows that did not decode, with the columns of all protocols."""
    edition = F.concat(F.lit(AT), F.substring(EDITION.name, 1, 100))
    unknown = F.coalesce(F.when(F.col("protocol").isin(*known_protocols()), edition), F.lit(""))
    stated = F.concat(F.coalesce(F.substring("protocol", 1, 100), F.lit("none")), unknown)
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
        F.col("frames").alias(RAW_FRAMES),
        EDITION.name,
    )


def error_rows(refused: DataFrame) -> DataFrame:
    """Return refused messages in the columns of the table `_errors`."""
    renamed = zip(NOTED.fieldNames(), name_noted(ERROR.names), strict=True)
    noted = [F.col(name).alias(field.name) for name, field in renamed]
    findings = (F.col("_error")[name].alias(name) for name in ERROR.names)
    stated = F.col(EDITION.name).alias("_stated_edition")
    table = refused.select(*noted, *findings, F.col(RAW_FRAMES).alias("frames"), stated)
    return add_columns(table, UNKNOWN, F.col("_stated_edition")).drop("_stated_edition")


def _octets() -> Column:
    sizes = F.transform("frames", lambda frame: F.coalesce(F.octet_length(frame), F.lit(0)).cast("long"))
    none = F.lit(0).cast("long")
    return F.coalesce(F.aggregate(sizes, none, lambda total, size: total + size), none)
