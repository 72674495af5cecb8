"""First two layers of a run: captured frames and typed tables, with a check for missing messages.

Each message is decoded once: decoded rows are persisted while they are counted and written. The run
fails unless three numbers are equal: the messages in the segments, the rows counted after decoding,
and the rows in the footers of the written files.

A message is late if it arrives after later messages of its tap were answered. Late messages wait in
the table ``late``, or all answers are computed again with them (`Request.late`). A message whose
protocol has no package becomes an error row of the protocol `UNKNOWN`, because a tap may state any
text as its protocol, even a path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from specwire.generated.schema import ERROR
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.options import CAPTURE, ENVELOPE, NOTED, OCTETS, name_noted
from specwire.runtime.spark.decoding.options import FRAMES as RAW_FRAMES
from specwire.runtime.spark.decoding.tables import ERRORS, tables, with_payloads
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.pipeline.commit import Run, Steps
from specwire.runtime.spark.pipeline.counts import choose_width_ms, count_rows
from specwire.runtime.spark.pipeline.intake import Portion
from specwire.runtime.spark.pipeline.ledger import Entry, Outcome
from specwire.runtime.spark.pipeline.payloads import payloads_of
from specwire.runtime.spark.pipeline.request import Request, Work
from specwire.runtime.spark.pipeline.store import FRAMES, LATE, PROTOCOL, TYPED, Store, partition, read_files
from specwire.runtime.spark.pipeline.summary import UNKNOWN, UNKNOWN_TEXT
from specwire.runtime.spark.pipeline.writing import (
    GATHERED_OCTETS,
    Part,
    stage,
    time_partitions,
    write_empty,
    write_table,
)
from specwire.runtime.spark.protocols import known_protocols
from specwire.runtime.spark.session.executors import literal_path


class Sorted(msgspec.Struct, frozen=True):
    """Work of a run, sorted by destination.

    Attributes:
        portions: segments whose messages go to the tables.
        late: segments whose messages go to the table `late`.
        waiting: files of that table whose messages go to the tables now.
        entries: new entries of the ledger.
        messages: number of messages that go to the tables.
        rebuild: whether all answers are computed again.
    """

    portions: tuple[Portion, ...]
    late: tuple[Portion, ...]
    waiting: tuple[Path, ...]
    entries: tuple[Entry, ...]
    messages: int
    rebuild: bool

    def protocols(self, override: str | None) -> dict[str, list[Portion]]:
        """Return the protocols of the messages, each with its segments.

        A protocol only of waiting messages has no segments.
        """
        found = {partition(path, "protocol"): list[Portion]() for path in self.waiting}
        return found | protocols_of(self.portions, override)


def sort_out(work: Work, request: Request, run: int, waiting: list[Path]) -> Sorted:
    """Sort the work of run number `run`; `waiting` are the files of the table ``late``."""
    portions, entries = work.intake.portions, work.intake.entries
    late = tuple(portion for portion in portions if portion.late)
    if not request.answering or request.late == "keep":
        now = tuple(portion for portion in portions if not portion.late)
        messages = sum(entry.taken for entry in entries if entry.outcome != Outcome.LATE)
        return Sorted(now, late, (), entries, messages, rebuild=False)
    came = tuple(entry for entry in work.ledger if entry.outcome == Outcome.LATE)
    whole = tuple(_work_in(entry, run) for entry in (*entries, *came))
    messages = sum(entry.taken for entry in whole)
    return Sorted(portions, (), tuple(waiting), whole, messages, rebuild=bool(late or waiting))


def _work_in(entry: Entry, run: int) -> Entry:
    if entry.outcome != Outcome.LATE:
        return entry
    outcome = Outcome.PARTIAL if entry.repeated else Outcome.READ
    reason = (
        entry.reason or "its messages arrived after later ones of their tap; the answers were computed again"
    )
    return msgspec.structs.replace(entry, outcome=outcome, run=run, reason=reason)


class Taking:
    """Decoder and writer of the messages of one run."""

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        run: Run,
        request: Request,
        work: Sorted,
        steps: Steps,
        *,
        few: bool,
    ) -> None:
        self._spark = spark
        self._store = store
        self._run = run
        self._asked = request.asked
        self._request = request
        self._work = work
        self._steps = steps
        self._few = few
        times = [time for entry in work.entries for time in (entry.first, entry.last) if time is not None]
        self._first_us, self._last_us = min(times, default=0), max(times, default=0)

    def take(self) -> list[pa.Table]:
        """Stage all tables; return a table of counts for each protocol.

        Raises JobError if the numbers of messages differ.
        """
        self._steps.begin("reading segments")
        work = self._work
        if "frames" in self._asked.layers and (work.portions or work.waiting):
            self._keep(self._rows(list(work.portions)), FRAMES)
        if work.late:
            self._keep(read_portions(self._spark, work.late), LATE)
        self._run.replace(work.waiting)
        counted = [
            self._take_protocol(protocol, portions)
            for protocol, portions in work.protocols(self._asked.protocol).items()
        ]
        found = sum(_total(part, "messages") for part in counted)
        if found != work.messages:
            raise JobError(
                f"{self._request.capture}: the segments hold {work.messages} new messages and {found} were "
                "decoded; a segment has changed while it was read"
            )
        return counted

    def _rows(self, portions: list[Portion]) -> DataFrame:
        rows = read_portions(self._spark, portions)
        came = read_files(self._spark, self._store.out / LATE, self._work.waiting)
        return rows if came is None else rows.unionByName(read_kept(came))

    def _keep(self, rows: DataFrame, table: str) -> None:
        octets = sum(entry.size for entry in self._work.entries)
        kept = keep(rows, self._asked.protocol, self._asked.partition)
        partitions = [PROTOCOL.name, *time_partitions(KEPT.names, self._asked.partition)]
        write_table(self._run, kept, table, partitions=partitions, octets=octets)

    def _take_protocol(self, protocol: str, portions: list[Portion]) -> pa.Table:
        self._steps.begin(f"decoding {protocol}")
        rows = rows_of(self._rows(portions), protocol, self._asked.protocol)
        decoded = self._decode(rows, protocol).persist()
        try:
            width_ms = choose_width_ms(self._last_us - self._first_us)
            counted = count_rows(decoded, protocol, width_ms)
            self._steps.begin(f"writing {protocol} tables")
            self._write(protocol, self._type(decoded, protocol), counted)
        finally:
            decoded.unpersist()
        return counted

    def _decode(self, rows: DataFrame, protocol: str) -> DataFrame:
        if protocol == UNKNOWN:
            return refuse(rows)
        # The pipeline counts messages that do not decode, and excludes them from the tables later.
        mode = "FAILFAST" if self._asked.mode == "FAILFAST" else "PERMISSIVE"
        return decode(rows, protocol, backend=self._request.backend, mode=mode)

    def _type(self, decoded: DataFrame, protocol: str) -> dict[str, DataFrame]:
        """Return the typed tables of decoded rows; payloads are read when a table is written."""
        if protocol == UNKNOWN:
            return {ERRORS: error_rows(decoded)}
        typed = with_payloads(decoded, payloads_of(self._asked.payloads, protocol))
        return tables(typed, protocol, json_as=self._asked.json_as)

    def _write(self, protocol: str, typed: Mapping[str, DataFrame], counted: pa.Table) -> None:
        """Stage the typed tables of a protocol, and compare their rows with the counts."""
        parts: dict[str, tuple[Part, int]] = {}
        for name, table in typed.items():
            malformed = name == ERRORS and self._asked.mode == "DROPMALFORMED"
            own = _rows_of_table(counted, name)
            rows = 0 if malformed else _total(own, "messages")
            path = f"{TYPED}/{protocol}/{name}"
            times = time_partitions(table.columns, self._asked.partition)
            if rows:
                ts = F.col(table.columns[0])
                dated = table.withColumns({column: make(ts) for column, make in times.items()})
                part = Part(path, dated, partitions=tuple(times), octets=_total(own, "octets"))
                parts[path] = part, rows
            elif not self._store.files(path):
                first = datetime.fromtimestamp(self._first_us / 1e6, UTC)
                place = (first.date().isoformat(), str(first.hour))
                write_empty(self._run, path, table.schema, dict(zip(times, place, strict=False)))
        few = self._few and _total(counted, "octets") <= GATHERED_OCTETS
        stage(self._run, [part for part, _ in parts.values()], few=few)
        for path, (_, rows) in parts.items():
            written = sum(pq.read_metadata(file).num_rows for file in self._run.staged(path))
            if written != rows:
                raise JobError(f"{path}: {rows} messages were counted and {written} rows were written")


def _rows_of_table(counted: pa.Table, name: str) -> pa.Table:
    message = counted["message"]
    return counted.filter(pc.is_null(message) if name == ERRORS else pc.equal(message, pa.scalar(name)))


def _total(counted: pa.Table, column: str) -> int:
    return int(pc.sum(counted[column]).as_py() or 0)


SEGMENT = StructField("segment", StringType(), metadata={"comment": "file that the message was captured in"})
STATED = StructField("stated", StringType(), metadata={"comment": "protocol as the tap stated it"})

NAMES = ("conversation", "sender", "peer")
"""Text columns that may not be UTF-8 in a file of another tool.

If `tap` or `protocol` is not UTF-8, the file is quarantined.
"""

KEPT = StructType([*(field for field in CAPTURE if field.name != "protocol"), STATED, SEGMENT])
"""Columns of the layer `frames`, besides its partition columns.

The partition columns are the date and `protocol`, the protocol that decodes a message.
"""


def read_portions(spark: SparkSession, portions: Iterable[Portion]) -> DataFrame:
    """Return the messages of segments: the columns of a capture, and the segment's name."""
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
    """Return rows of the layer `frames` in the columns of `read_portions`."""
    return kept.select(
        *(F.col("stated" if name == "protocol" else name).alias(name) for name in CAPTURE.names), SEGMENT.name
    )


def keep(rows: DataFrame, override: str | None, partition: str) -> DataFrame:
    """Return messages in the columns of the layer `frames`, with its partition columns.

    `partition` is ``day`` or ``hour``.
    """
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
    """Return the messages that a protocol decodes; `UNKNOWN` selects those of unknown protocols."""
    if override is not None:
        return rows
    if protocol != UNKNOWN:
        return rows.where(F.col("protocol") == protocol)
    return rows.where(F.col("protocol").isNull() | ~F.col("protocol").isin(*known_protocols()))


def protocols_of(portions: Iterable[Portion], override: str | None) -> dict[str, list[Portion]]:
    """Return the segments that hold messages of each decoding protocol; `UNKNOWN` comes last."""
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
        F.col("frames").alias(RAW_FRAMES),
    )


def error_rows(refused: DataFrame) -> DataFrame:
    """Return refused messages in the columns of the table `_errors`."""
    renamed = zip(NOTED.fieldNames(), name_noted(ERROR.names), strict=True)
    noted = [F.col(name).alias(field.name) for name, field in renamed]
    findings = (F.col("_error")[name].alias(name) for name in ERROR.names)
    return refused.select(*noted, *findings, F.col(RAW_FRAMES).alias("frames"))


def _octets() -> Column:
    sizes = F.transform("frames", lambda frame: F.coalesce(F.octet_length(frame), F.lit(0)).cast("long"))
    none = F.lit(0).cast("long")
    return F.coalesce(F.aggregate(sizes, none, lambda total, size: total + size), none)
