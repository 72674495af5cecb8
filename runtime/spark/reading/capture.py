"""Captured frames as a DataFrame: the first layer of the pipeline.

One truncated Parquet file fails a whole Spark query, with a long Java stack trace. So every footer
is read first. Depending on `damaged`, the first file that is not a whole segment is reported in one
sentence, or all such files are skipped. The check and Spark both ignore hidden files (segments that
are being written).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.names import SUFFIX
from specwire.runtime.capture.segments import Survey
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.reading.packets import read_packets
from specwire.runtime.spark.reading.paths import find_inputs


def _column(name: str, kind: DataType, comment: str) -> StructField:
    return StructField(name, kind, metadata={"comment": comment})


ENVELOPE = StructType(
    [
        _column("ts", TimestampType(), "when the tap saw the message, to the microsecond, UTC"),
        _column("mono", LongType(), "the tap's monotonic clock, nanoseconds"),
        _column("seq", LongType(), "count of the tap's messages, from 0, without gaps"),
        _column("protocol", StringType(), "name of the generated package, as the tap stated it"),
        _column("tap", StringType(), "id of the tap"),
        _column("conversation", StringType(), "one connection, as the tap names it"),
        _column("sender", StringType(), "role letter of the side that sent the message"),
        _column("peer", StringType(), "the other side's identity, as the tap saw it"),
    ]
)
"""Columns that a tap records about a message, besides its frames."""

EDITION = _column("edition", StringType(), "edition of the specification, as the tap stated it")
"""Column that the pipeline adds from the metadata of a segment."""

CAPTURE = StructType([*ENVELOPE, _column("frames", ArrayType(BinaryType()), "the message, frame by frame")])


Damaged = Literal["fail", "skip", "quarantine"]
"""Treatment of a file that is not a whole segment: fail, skip the file, or return a row for it."""

_log = logging.getLogger(__name__)


def read_capture(
    spark: SparkSession, source: Path | str | Sequence[Path | str], *, damaged: str = "fail"
) -> DataFrame:
    """Return the captured messages of a folder, a file, a glob or a list of these.

    With `damaged` ``skip``, files that are not whole segments are skipped, each with a warning in
    the log; `specwire.runtime.capture.segments.survey_segments` lists them. One task reads each
    packet capture.

    Raises CaptureError if there is nothing to read, and with `damaged` ``fail`` for the first file
    that is not a whole segment.
    """
    wanted = read_damaged(damaged, ("fail", "skip"))
    inputs = find_inputs([source] if isinstance(source, Path | str) else source)
    survey = inputs.survey()
    if not (wanted == "skip" and inputs.packets):
        check_survey(survey, wanted)
    for bad in survey.unsound:
        _log.warning("skipped: %s", bad.reason)
    frames = [read_packets(spark, inputs.packets, CAPTURE)] if inputs.packets else []
    if inputs.folder is not None and not (survey.unsound or survey.replaced or frames):
        frames.append(read_parquet(spark, inputs.folder, CAPTURE))
    elif survey.sound:
        frames.append(
            spark.read.schema(CAPTURE).parquet(*(literal_path(segment.path) for segment in survey.sound))
        )
    return reduce(DataFrame.unionByName, frames)


def read_damaged(word: str, known: Sequence[Damaged]) -> Damaged:
    """Return the value of option `damaged`.

    Raises InputError for a word that is not in `known`.
    """
    for one in known:
        if word.casefold() == one:
            return one
    raise InputError(f"option 'damaged' is {word!r}; it may be {' or '.join(known)}")


def check_survey(survey: Survey, damaged: Damaged) -> None:
    """Raise CaptureError for the first file that is not a whole segment.

    Only with `damaged` ``fail``, or with ``skip`` if no segment is sound.
    """
    if survey.unsound and (damaged == "fail" or (damaged == "skip" and not survey.sound)):
        raise CaptureError(survey.unsound[0].reason)


def read_parquet(spark: SparkSession, folder: Path, schema: StructType | None = None) -> DataFrame:
    """Return the Parquet files of a local folder, whose name may hold any character."""
    reader = spark.read if schema is None else spark.read.schema(schema)
    return reader.option("pathGlobFilter", f"*{SUFFIX}").parquet(literal_path(folder))


def literal_path(path: Path) -> str:
    """Return a path to read from, escaped so that Hadoop does not take it for a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", local_path(path))


def local_path(path: Path) -> str:
    """Return a path to write to, as a ``file:`` address.

    On a cluster, paths without a scheme may refer to another file system (HDFS).
    """
    return f"file:{path.resolve()}"
