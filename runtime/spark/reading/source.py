"""``spark.read.format("specwire")``: a capture as decoded messages, without a step in between.

    register(spark)
    messages = spark.read.format("specwire").option("message", "Request").load("captures/today")

The segments are decoded where they are read, by `columns.decode`, and come to Spark as Arrow batches; the schema and
the rows are those of `decode` with the same options. Spark tells a Python data source nothing of the columns and
filters of a query, so what need not be decoded is said by the options ``message`` and ``columns``.

There is no `pushFilters` here, on purpose: Spark refuses every read of a data source that has one unless
``spark.sql.python.filterPushdown.enabled`` is set.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.segments import list_protocols, read_footer, survey_segments
from specwire.runtime.spark.decoding.column import register_functions
from specwire.runtime.spark.decoding.options import (
    KNOWN,
    Mode,
    Options,
    check_messages,
    read_options,
    resolve_dialect,
)
from specwire.runtime.spark.decoding.shape import check_columns, schema_of
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas
from specwire.runtime.spark.reading.batches import Reader, quarantined
from specwire.runtime.spark.reading.capture import Damaged, check_survey, read_damaged
from specwire.runtime.spark.session.shipping import ship_packages

NAME = "specwire"
DECODING = tuple(name for name in KNOWN if name not in {"debug", "u64"})
"""The options that it shares with `decode`; what the others do is an expression on decoded rows."""
OPTIONS = ("path", "protocol", "damaged", *DECODING)
OWNER = "owner"
"""Table property that Spark adds to the options when it creates a catalog table."""

_PARTITION_OCTETS = 32 << 20
"""Small row groups are read together, up to so many octets of frames and the rest."""
_BATCH_OCTETS = 32 << 20
_BATCH_ROWS = 50_000


def register(spark: SparkSession) -> None:
    """Register the format ``specwire`` and the SQL functions of all protocols in a session, for the packages known now."""
    ship_packages(spark)
    try:
        spark.dataSource.register(SpecwireSource)
    except AnalysisException as error:
        # A session made by newSession() may have the format of the session before it.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    register_functions(spark)


class SpecwireSource(DataSource):
    """A capture folder as a table of decoded messages."""

    @classmethod
    def name(cls) -> str:
        """Return what stands in ``format()``."""
        return NAME

    def __init__(self, options: MutableMapping[str, str]) -> None:
        """Read the options; InputError for one that is unknown, or cannot be met."""
        super().__init__(options)
        given = {name.casefold(): value for name, value in options.items()}
        if OWNER in given:
            raise InputError(
                "the specwire format does not support catalog tables, because Spark reads them without "
                "their options: use CREATE TEMPORARY VIEW ... USING specwire OPTIONS (path '...')"
            )
        known = {name: given.pop(name, "") for name in ("path", "protocol", "damaged")}
        self.asked: Options = read_options(given, DECODING, OPTIONS)
        self.damaged: Damaged = read_damaged(known["damaged"] or "fail", ("fail", "quarantine"))
        if not known["path"]:
            raise InputError("there is no path: name the capture's folder in load(), or in the option 'path'")
        self.folder = local_folder(known["path"])
        self.protocol = resolve_dialect(known["protocol"] or self._find_protocol(), self.asked.dialect)
        check_messages(self.protocol, self.asked.message, load_schemas(self.protocol).SCHEMAS)
        check_columns(self.protocol, self.asked.columns)

    def schema(self) -> StructType:
        """Return what `decode` gives with these options."""
        return schema_of(self.protocol, self.asked)

    def reader(self, schema: StructType) -> SpecwireReader:
        """Return what reads the capture; a schema of the caller's own is refused."""
        if schema.fieldNames() != self.schema().fieldNames():
            raise InputError(
                "the format specwire has a schema of its own: leave out schema(), name columns instead"
            )
        return SpecwireReader(self.folder, self.protocol, self.asked, self.damaged)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader that raises InputError later: Spark would hide an error raised here."""
        return _UnsupportedStream()

    def _find_protocol(self) -> str:
        survey = survey_segments(self.folder)
        check_survey(survey, self.damaged)
        found = list_protocols(survey.sound)
        if len(found) != 1:
            stated = " and ".join(found) or "no messages"
            raise InputError(
                f"{self.folder}: the capture holds {stated}: name one with the option 'protocol'"
            )
        return found[0]


class _UnsupportedStream(DataSourceStreamReader):
    """Reader for ``readStream`` that fails when Spark asks for the first offset."""

    def initialOffset(self) -> NoReturn:
        """Raise InputError."""
        raise InputError(
            "the specwire format does not support streaming reads: follow a growing capture with "
            "`specwire pipeline watch`, or with follow() of specwire.runtime.spark.live.messages"
        )

    def read(self, partition: InputPartition) -> NoReturn:
        """Raise InputError."""
        self.initialOffset()


@dataclass
class Groups(InputPartition):
    """Row groups of segments that one task reads, or a file that is no segment with the reason."""

    groups: tuple[tuple[str, int], ...] = ()
    unsound: tuple[str, str] | None = None


class SpecwireReader(DataSourceReader):
    """Reads a capture: planned on the driver, carried out by Python workers."""

    def __init__(self, folder: Path, protocol: str, asked: Options, damaged: Damaged) -> None:
        self.folder, self.protocol, self.asked, self.damaged = folder, protocol, asked, damaged

    def partitions(self) -> Sequence[InputPartition]:
        """Return the row groups of all segments, small ones together; CaptureError for a file that is none."""
        survey = survey_segments(self.folder)
        check_survey(survey, self.damaged)
        found: list[InputPartition] = [Groups((), (str(bad.path), bad.reason)) for bad in survey.unsound]
        groups: list[tuple[str, int]] = []
        octets = 0
        for segment in survey.sound:
            footer = pq.read_metadata(segment.path)
            for group in range(footer.num_row_groups):
                size = footer.row_group(group).total_byte_size
                if groups and octets + size > _PARTITION_OCTETS:
                    found.append(Groups(tuple(groups)))
                    groups, octets = [], 0
                groups.append((str(segment.path), group))
                octets += size
        return [*found, Groups(tuple(groups))] if groups or not found else found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the decoded messages of a partition."""
        assert isinstance(partition, Groups)
        reader = Reader(self.protocol, self.asked)
        if partition.unsound:
            yield from self._stand_in(reader, *partition.unsound)
        for path, group in partition.groups:
            file = pq.ParquetFile(path)
            stated = file.metadata.row_group(group)
            rows = min(_BATCH_ROWS, max(1, _BATCH_OCTETS * stated.num_rows // max(1, stated.total_byte_size)))
            for batch in file.iter_batches(rows, row_groups=[group], columns=reader.needed()):
                yield reader.decode(batch, Path(path).as_uri())

    def read_segment(self, path: Path) -> Iterator[pa.RecordBatch]:
        """Yield the decoded messages of one segment, or what stands for a file that is none."""
        try:
            read_footer(path)
        except CaptureError as error:
            if self.damaged == "fail":
                raise
            yield from self.read(Groups((), (str(path), str(error))))
        else:
            groups = range(pq.read_metadata(path).num_row_groups)
            yield from self.read(Groups(tuple((str(path), group) for group in groups)))

    def _stand_in(self, reader: Reader, path: str, reason: str) -> Iterator[pa.RecordBatch]:
        """The one row of a file that is no segment, as the mode wants it."""
        if self.asked.mode is Mode.FAILFAST:
            raise InputError(reason)
        if self.asked.mode is Mode.PERMISSIVE:
            yield quarantined(reader, reason, Path(path).as_uri())


def local_folder(path: str) -> Path:
    """Return the folder that a path or a ``file:`` address names; InputError for any other address."""
    parts = urlsplit(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if parts.scheme and "//" in path:
        raise InputError(
            f"{path}: the format specwire reads folders that every worker sees as files; "
            "read other places as Parquet and decode() that"
        )
    return Path(path)
