"""Captured frames as a DataFrame.

One truncated Parquet file fails a whole Spark query, with a long Java stack trace. So every footer
is read first. Depending on `damaged`, the first file that is not a complete segment is an error, or
all such files are skipped. The check and Spark both ignore hidden files (segments that are being
written).

One task reads each packet capture in Python, because the reassembly of TCP and ZMTP is sequential.
Connections are followed within a file, not across files. The task logs the parts of a file that
cannot be read (octets that the recorder missed, encrypted connections, a truncated last record) in
the sentences of `specwire decode`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Literal, cast

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import to_arrow_schema

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.segments import survey_files
from specwire.runtime.package_search import PackageError
from specwire.runtime.packages import load_package
from specwire.runtime.pcap.choosing import in_order
from specwire.runtime.pcap.recording import PacketFile
from specwire.runtime.spark.decoding.options import CAPTURE, one_of
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols
from specwire.runtime.spark.reading.paths import find_inputs
from specwire.runtime.spark.session.executors import literal_path

Damaged = Literal["fail", "skip", "quarantine"]
"""Treatment of a file that is not a complete segment: fail, skip it, or return a row for it."""

_log = logging.getLogger(__name__)


def read_capture(
    spark: SparkSession, source: Path | str | Sequence[Path | str], *, damaged: str = "fail"
) -> DataFrame:
    """Return the captured messages of a folder, a file, a glob or a list of these.

    With `damaged` ``skip``, files that are not complete segments are skipped, each with a warning
    in the log; `specwire.runtime.capture.segments.survey_segments` lists them. One task reads each
    packet capture.

    Raises CaptureError if there is nothing to read, and with `damaged` ``fail`` for the first file
    that is not a complete segment.
    """
    skip = read_damaged(damaged, ("fail", "skip")) == "skip"
    inputs = find_inputs([source] if isinstance(source, Path | str) else source)
    survey = survey_files(inputs.segments)
    if survey.unsound and not (skip and (survey.sound or inputs.packets)):
        raise CaptureError(survey.unsound[0].reason)
    for bad in survey.unsound:
        _log.warning("skipped: %s", bad.reason)
    frames = [_read_packets(spark, inputs.packets)] if inputs.packets else []
    if survey.sound:
        paths = (literal_path(segment.path) for segment in survey.sound)
        frames.append(spark.read.schema(CAPTURE).parquet(*paths))
    return reduce(DataFrame.unionByName, frames)


def read_damaged(word: str, known: Sequence[Damaged]) -> Damaged:
    """Return the value of option `damaged`; raise InputError for a word that is not in `known`."""
    return cast(Damaged, one_of("damaged", word.casefold(), known, word))


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Register a Python data source in a session, including one from `newSession`."""
    try:
        spark.dataSource.register(source)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        # Spark searched this thread's active session; `createDataFrame` makes `spark` active.
        spark.createDataFrame([], "nothing INT")
        spark.dataSource.register(source)


def _read_packets(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """Return the messages of packet captures; the protocol of each connection is detected."""
    files = [path.resolve() for path in paths]
    arrow = to_arrow_schema(CAPTURE, timezone="UTC")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_numpy():
                file = PacketFile(files[number], packages_of(None))
                for table in file.read():
                    yield from table.cast(arrow).to_batches()
                log_notes(file)

    # Each partition has the number of one file.
    rows = spark.range(0, len(files), 1, len(files)).mapInArrow(read, CAPTURE)
    return rows.select(*(F.col(field.name).alias(field.name, metadata=field.metadata) for field in CAPTURE))


def packages_of(protocol: str | None) -> tuple[ModuleType, ...]:
    """Return the package of a protocol, or all in the order in which they are tried.

    Raises InputError if the protocol has no package.
    """
    names = in_order(known_protocols()) if protocol is None else [protocol]
    try:
        return tuple(map(load_package, names))
    except PackageError as error:
        raise InputError(str(error)) from error


def log_notes(file: PacketFile) -> None:
    """Log the parts of a file that could not be read."""
    for note in file.notes:
        _log.warning("%s: %s", file.path, note)
