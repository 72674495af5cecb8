"""Packet captures as captured messages, in the columns of a capture: one Spark task per file.

A Python data source reads the files, because the reassembly of TCP and ZMTP is sequential work over
one file. Connections are followed within a file, not across files. The task logs the parts of a
file that cannot be read (octets that the recorder missed, encrypted connections, a truncated last
record) in the sentences of `specwire decode`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import cast

import msgspec
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from specwire.runtime.package_search import PackageError
from specwire.runtime.packages import load_package
from specwire.runtime.pcap.choosing import in_order
from specwire.runtime.pcap.recording import PacketFile
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols

NAME = "specwire_packets"

_log = logging.getLogger(__name__)


class OneFile(InputPartition):
    """Partition of one file, read by one task."""

    def __init__(self, path: Path) -> None:
        self.path = path


class PacketSource(DataSource):
    """Data source of the messages in packet captures; option `paths` has their names as JSON."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return NAME

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
        # Spark looked the name up in this thread's active session; `createDataFrame` makes ours
        # active.
        spark.createDataFrame([], "nothing INT")
        spark.dataSource.register(source)


def read_packets(spark: SparkSession, paths: Sequence[Path], schema: StructType) -> DataFrame:
    """Return the messages of packet captures in `schema`, the columns of a capture.

    The protocol of each connection is detected automatically.
    """
    register_source(spark, PacketSource)
    names = msgspec.json.encode([str(path.resolve()) for path in paths]).decode()
    return spark.read.format(NAME).schema(schema).option("paths", names).load()


def packages_of(protocol: str | None) -> tuple[ModuleType, ...]:
    """Return the packages that may read a connection: one protocol's, or all by preference.

    Raises:
        InputError: the protocol has no package.
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
