"""Captured frames as a DataFrame: the first layer of the pipeline.

One truncated Parquet file fails a whole Spark query, with a long Java stack trace. So every footer
is read first. Depending on `damaged`, the first file that is not a complete segment is an error, or
all such files are skipped. The check and Spark both ignore hidden files (segments that are being
written).

A Python data source reads packet captures, in one task per file, because the reassembly of TCP and
ZMTP is sequential. Connections are followed within a file, not across files. The task logs the
parts of a file that cannot be read (octets that the recorder missed, encrypted connections, a
truncated last record) in the sentences of `specwire decode`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Literal, cast

import msgspec
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

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

PACKETS = "specwire_packets"
"""Format of `PacketSource`."""

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
    frames = [read_packets(spark, inputs.packets, CAPTURE)] if inputs.packets else []
    if survey.sound:
        paths = (literal_path(segment.path) for segment in survey.sound)
        frames.append(spark.read.schema(CAPTURE).parquet(*paths))
    return reduce(DataFrame.unionByName, frames)


def read_damaged(word: str, known: Sequence[Damaged]) -> Damaged:
    """Return the value of option `damaged`; raise InputError for a word that is not in `known`."""
    return cast(Damaged, one_of("damaged", word.casefold(), known, word))


@dataclass
class OneFile(InputPartition):
    """Partition of one file, read by one task."""

    path: Path


class PacketSource(DataSource):
    """Data source of the messages in packet captures; option `paths` has their names as JSON."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return PACKETS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns of a capture, in the caller's schema."""
        return _PacketReader(msgspec.json.decode(self.options["paths"], type=list[str]), schema)


class _PacketReader(DataSourceReader):
    def __init__(self, paths: Sequence[str], schema: StructType) -> None:
        self._paths, self._schema = paths, schema

    def partitions(self) -> Sequence[InputPartition]:
        return [OneFile(Path(path)) for path in self._paths]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self._schema, timezone="UTC")
        file = PacketFile(cast(OneFile, partition).path, packages_of(None))
        for table in file.read():
            yield from table.cast(schema).to_batches()
        log_notes(file)


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


def read_packets(spark: SparkSession, paths: Sequence[Path], schema: StructType) -> DataFrame:
    """Return the messages of packet captures in `schema`, the columns of a capture.

    The protocol of each connection is detected automatically.
    """
    register_source(spark, PacketSource)
    names = msgspec.json.encode([str(path.resolve()) for path in paths]).decode()
    return spark.read.format(PACKETS).schema(schema).option("paths", names).load()


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
