"""Spark format ``specwire``: captures and packet captures as decoded messages, batch or stream.

    register(spark)
    messages = spark.read.format("specwire").option("message", "Request").load("captures/today")

The reading task decodes messages with the package's ``columns.decode`` and returns them to Spark as
Arrow batches. Schema and rows are those of `decode` with the same options. Spark does not pass the
columns of a query to a Python data source. So the options ``message`` and ``columns`` select what
is decoded. Filters on a tap's columns are pushed down.

Two properties of Spark 4.3 are surprising. It refuses to read a source with `pushFilters` unless a
setting is on, so `register` turns it on. It reads a catalog table without the table's options, but
with the schema that the source returned when the table was created. So that schema has the options,
in the metadata of ``_message``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.segments import Survey, list_protocols, read_footer, survey_files
from specwire.runtime.package_search import AT
from specwire.runtime.packages import choose_package, package_editions
from specwire.runtime.pcap.recording import PacketFile
from specwire.runtime.spark.decoding.column import register_functions
from specwire.runtime.spark.decoding.options import (
    KNOWN,
    Mode,
    Options,
    check_columns,
    check_messages,
    read_options,
    resolve_dialect,
    schema_of,
)
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.reading.batches import BatchDecoder, PushedFilters
from specwire.runtime.spark.reading.capture import (
    Damaged,
    log_notes,
    packages_of,
    read_damaged,
    register_source,
)
from specwire.runtime.spark.reading.paths import (
    Form,
    Inputs,
    find_inputs,
    local_path_of,
    read_form,
    read_names,
)
from specwire.runtime.spark.reading.stream import (
    STREAM_OPTIONS,
    FailedStream,
    FolderStream,
    SegmentPart,
    StreamOptions,
    read_stream_options,
)
from specwire.runtime.spark.session.executors import ship_packages

NAME = "specwire"
DECODING = tuple(name for name in KNOWN if name not in {"debug", "u64"})
"""Options shared with `decode`; the other options of `decode` are expressions on decoded rows."""
SOURCE_OPTIONS = ("path", "paths", "from", "protocol", "damaged", *STREAM_OPTIONS)
OPTIONS = (*SOURCE_OPTIONS, *DECODING)

TABLE = "provider"
"""Property that Spark adds to the options of a new catalog table, with other reserved ones."""
TABLE_OPTION = "option."
"""Prefix of the user's options among the options of a new catalog table."""
STORED = "specwire.options"
"""Metadata key of `_message` with the options of a catalog table."""

_PARTITION_OCTETS = 32 << 20
"""Maximum size of row groups that one task reads; a larger row group is read alone."""
_BATCH_OCTETS = 32 << 20
_BATCH_ROWS = 50_000


def register(spark: SparkSession) -> None:
    """Register the format ``specwire`` and the SQL functions of all known protocols in a session.

    Also turns on filter push-down of Python data sources.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    ship_packages(spark)
    register_source(spark, SpecwireSource)
    register_functions(spark)


class SourceRequest(msgspec.Struct, frozen=True):
    """Checked options of a batch or stream; `protocol` is empty until the capture was read."""

    names: tuple[str, ...]
    form: Form
    protocol: str
    options: Options
    damaged: Damaged
    stream: StreamOptions


class SpecwireSource(DataSource):
    """Data source: captures as a table of decoded messages."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return NAME

    def __init__(self, options: MutableMapping[str, str]) -> None:
        """Read the options; raise InputError for one that is unknown or invalid.

        Without options, this is a catalog table: `reader` and `streamReader` find its options in
        its schema.
        """
        super().__init__(options)
        given = {name.casefold(): value for name, value in options.items()}
        self._given = _table_options(given) if TABLE in given else given
        self._creates_table = TABLE in given
        if self._given:
            _read_request(self._given)

    def schema(self) -> StructType:
        """Return the schema of `decode` with these options."""
        request = _resolve(self._given)
        fields = schema_of(request.protocol, request.options)
        if not self._creates_table:
            return fields
        stored = msgspec.json.encode({**self._given, "protocol": request.protocol}).decode()
        fields["_message"].metadata[STORED] = stored
        return fields

    def reader(self, schema: StructType) -> SpecwireReader:
        """Return the batch reader; raise InputError for a schema set by the caller."""
        return SpecwireReader(self._request(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a growing capture.

        Spark hides an error that is raised here, so the reader raises it when the stream starts.
        """
        try:
            return self._stream(schema)
        except (InputError, CaptureError) as error:
            return FailedStream(error)

    def _stream(self, schema: StructType) -> DataSourceStreamReader:
        request = self._request(schema)
        folder = local_path_of(request.names[0])
        if len(request.names) > 1 or not folder.is_dir() or request.form == "pcap":
            raise InputError(
                f"{', '.join(request.names)}: a stream follows one folder of capture segments; "
                "read lists, patterns, files and packet captures with spark.read"
            )
        return FolderStream(folder, request.stream, SpecwireReader(request).read_part, tasks=4)

    def _request(self, schema: StructType) -> SourceRequest:
        request = _resolve(self._given or _stored(schema))
        if schema.fieldNames() != schema_of(request.protocol, request.options).fieldNames():
            raise InputError(
                "the format specwire has its own schema: omit schema() and use the option 'columns'"
            )
        return request


def _table_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a catalog table without its properties."""
    named = ((name.removeprefix(TABLE_OPTION), name) for name in given if name.startswith(TABLE_OPTION))
    own = {option: given[name] for option, name in named}
    return {**own, "path": given["path"]} if "path" in given and "paths" not in own else own


def _stored(schema: StructType) -> dict[str, str]:
    """Return the options in the schema of a catalog table; an empty dict for any other schema."""
    for field in schema:
        if STORED in field.metadata:
            return msgspec.json.decode(field.metadata[STORED], type=dict[str, str])
    return {}


def _read_request(given: Mapping[str, str]) -> SourceRequest:
    """Return the request in the options; raise InputError for one that is unknown or invalid."""
    decoding = {name: value for name, value in given.items() if name not in SOURCE_OPTIONS}
    return SourceRequest(
        read_names(given),
        read_form(given.get("from", "")),
        given.get("protocol", ""),
        read_options(decoding, DECODING, OPTIONS),
        read_damaged(given.get("damaged") or "fail", ("fail", "quarantine")),
        read_stream_options(given),
    )


def _resolve(given: Mapping[str, str]) -> SourceRequest:
    """Return the request in the options, with its protocol.

    Raises InputError or CaptureError for options that do not match the files or the protocol.
    """
    request = _read_request(given)
    if not request.names:
        find_inputs(())  # Raises InputError.
    protocol = resolve_dialect(request.protocol or _find_protocol(request), request.options.dialect)
    check_messages(protocol, request.options.message)
    check_columns(protocol, request.options.columns)
    return msgspec.structs.replace(request, protocol=protocol)


def _find_protocol(request: SourceRequest) -> str:
    """Return the protocol, or the package of its edition, that all segments state."""
    inputs = find_inputs(request.names, request.form)
    if inputs.packets:
        raise InputError(
            f"{inputs.packets[0]}: a packet capture does not state its protocol: name it with the option 'protocol'"
        )
    survey = _survey(inputs, request)
    found = list_protocols(survey.sound)
    if len(found) == 1:
        editions = sorted({segment.source.edition if segment.source else "" for segment in survey.sound})
        chosen = {choose_package(found[0], edition) or f"{found[0]}{AT}{edition}" for edition in editions}
        # Without a package, the error is that of the protocol.
        found = sorted(chosen) if package_editions(found[0]) else found
    if len(found) != 1:
        stated = " and ".join(found) or "no messages"
        raise InputError(
            f"{', '.join(request.names)}: the capture holds {stated}: name one with the option 'protocol'"
        )
    return found[0]


def _survey(inputs: Inputs, request: SourceRequest) -> Survey:
    """Return the survey of the segments; CaptureError for a damaged one if that is a failure."""
    survey = survey_files(inputs.segments)
    if survey.unsound and request.damaged == "fail":
        raise CaptureError(survey.unsound[0].reason)
    return survey


@dataclass
class OneFile(InputPartition):
    """Partition of one packet capture."""

    path: Path


@dataclass
class RowGroups(InputPartition):
    """Partition of row groups, each as file and number; None for a file that is not a segment."""

    groups: Sequence[tuple[Path, int | None]]


class SpecwireReader(DataSourceReader):
    """Batch reader of captures: plans on the driver, decodes in Python workers."""

    def __init__(self, request: SourceRequest) -> None:
        self.request = request
        self._filters = PushedFilters()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters on a tap's columns and return the others."""
        return self._filters.take(filters, self._decoder().noted)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions: one for each packet capture, and groups of row groups of segments.

        Raises CaptureError for a file that is not a segment, unless it is quarantined.
        """
        inputs = find_inputs(self.request.names, self.request.form)
        survey = _survey(inputs, self.request)
        found: list[InputPartition] = [OneFile(path) for path in inputs.packets]
        found += (RowGroups([(bad.path, None)]) for bad in survey.unsound)
        groups: list[tuple[Path, int | None]] = []
        octets = 0
        for segment in survey.sound:
            for group, size in self._filters.row_groups(segment):
                if groups and octets + size > _PARTITION_OCTETS:
                    found.append(RowGroups(groups))
                    groups, octets = [], 0
                groups.append((segment.path, group))
                octets += size
        return [*found, RowGroups(groups)] if groups or not found else found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the decoded messages of a partition."""
        decoder = self._decoder()
        if isinstance(partition, OneFile):
            yield from self._read_packets(decoder, partition.path)
            return
        assert isinstance(partition, RowGroups)
        for path, group in partition.groups:
            part = SegmentPart(path.name)
            if group is None:
                yield from self.read_part(path, part)
            else:
                yield from self._read_group(decoder, path, group, part)

    def read_part(self, path: Path, part: SegmentPart) -> Iterator[pa.RecordBatch]:
        """Yield the messages in a part of a segment, or an error row for any other file."""
        if part.after is None:
            raise CaptureError(
                f"{path}: this stream has read some of the segments that it replaces, and it is unknown which "
                "messages are new; begin with a new checkpoint"
            )
        decoder = self._decoder()
        try:
            read_footer(path)
        except CaptureError as error:
            if self.request.damaged == "fail":
                raise
            yield from self._error_row(decoder, "segment", path, str(error))
            return
        for group in range(pq.read_metadata(path).num_row_groups):
            yield from self._read_group(decoder, path, group, part)

    def _decoder(self) -> BatchDecoder:
        return BatchDecoder(self.request.protocol, self.request.options)

    def _read_group(
        self, decoder: BatchDecoder, path: Path, group: int, part: SegmentPart
    ) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            stated = file.metadata.row_group(group)
            rows = min(_BATCH_ROWS, max(1, _BATCH_OCTETS * stated.num_rows // max(1, stated.total_byte_size)))
            columns = decoder.needed((*self._filters.columns, "seq"))
            for batch in file.iter_batches(rows, row_groups=[group], columns=columns):
                yield from self._decode(decoder, _select_part(batch, part), path)

    def _read_packets(self, decoder: BatchDecoder, path: Path) -> Iterator[pa.RecordBatch]:
        file = PacketFile(path, packages_of(self.request.protocol))
        try:
            for table in file.read():
                for batch in table.to_batches(_BATCH_ROWS):
                    yield from self._decode(decoder, batch, path)
        except CaptureError as error:
            if self.request.damaged == "fail":
                raise
            file.notes.append(str(error))
        log_notes(file)
        if self.request.damaged == "quarantine":
            for note in file.notes:
                yield from self._error_row(decoder, "packets", path, f"{path}: {note}")

    def _decode(self, decoder: BatchDecoder, batch: pa.RecordBatch, path: Path) -> Iterator[pa.RecordBatch]:
        selected = self._filters.apply(batch)
        if selected.num_rows:
            yield decoder.decode(selected, path.absolute().as_uri())

    def _error_row(
        self, decoder: BatchDecoder, kind: str, path: Path, reason: str
    ) -> Iterator[pa.RecordBatch]:
        """Yield a row with the reason why a file, or a part of it, cannot be read.

        Raises InputError in FAILFAST mode.
        """
        if self.request.options.mode is Mode.FAILFAST:
            raise InputError(reason)
        if self.request.options.mode is Mode.PERMISSIVE and self._filters.match_nulls:
            yield decoder.error_row(kind, reason, path.absolute().as_uri())


def _select_part(batch: pa.RecordBatch, part: SegmentPart) -> pa.RecordBatch:
    """Return the messages of a batch that are in the part."""
    if part.after == -1 and part.upto is None:
        return batch
    upto = (1 << 63) - 1 if part.upto is None else part.upto
    return batch.filter((pc.field("seq") > part.after) & (pc.field("seq") <= upto))


def follow(spark: SparkSession, capture: str | Path, protocol: str, **options: str) -> DataFrame:
    """Return the decoded messages of a growing capture folder as a stream, as from `decode`.

    All messages are read as `protocol`; `options` are those of the format ``specwire``. For a file
    that is not a complete segment, the stream has a row without a message, whose `_error` is of kind
    ``segment``. With one checkpoint, each message is read once, also after restarts and if segments
    are compacted.
    """
    # Not `register`, because declarative pipelines forbid its setting.
    register_source(spark, SpecwireSource)
    stated = {"damaged": "quarantine", **options, "protocol": protocol}
    return spark.readStream.format(NAME).options(**stated).load(str(capture))
