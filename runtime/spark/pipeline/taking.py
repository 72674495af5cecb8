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

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial, reduce
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from specwire.generated.schema import ERROR
from specwire.runtime.packages import (
    AT,
    HINT,
    choose_package,
    find_package,
    package_editions,
    protocol_of,
)
from specwire.runtime.spark.answers.particulars import name_conversation, particulars_of
from specwire.runtime.spark.answers.schemas.shared import CONVERSATION_NAME
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.payloads import with_payloads
from specwire.runtime.spark.decoding.shape import FRAMES as RAW_FRAMES
from specwire.runtime.spark.decoding.shape import NOTED, OCTETS, name_noted
from specwire.runtime.spark.decoding.tables import ERRORS, tables
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.pipeline.columns import add_columns, fit, unite
from specwire.runtime.spark.pipeline.commit import Run, Steps
from specwire.runtime.spark.pipeline.counts import choose_width_ms, count_rows
from specwire.runtime.spark.pipeline.intake import Portion
from specwire.runtime.spark.pipeline.ledger import Entry, Outcome
from specwire.runtime.spark.pipeline.payloads import payloads_of
from specwire.runtime.spark.pipeline.request import Request, Work
from specwire.runtime.spark.pipeline.store import (
    FRAMES,
    LATE,
    PROTOCOL,
    TYPED,
    Store,
    read_files,
    stored_schema,
)
from specwire.runtime.spark.pipeline.summary import UNKNOWN, UNKNOWN_TEXT
from specwire.runtime.spark.pipeline.writing import (
    GATHERED_OCTETS,
    Part,
    stage,
    time_partitions,
    write_empty,
    write_table,
)
from specwire.runtime.spark.protocols import known_protocols, packages_of
from specwire.runtime.spark.reading.capture import CAPTURE, EDITION, ENVELOPE, literal_path

_log = logging.getLogger(__name__)


Packages = dict[str, list[Portion]]
"""Packages of one protocol by name, each with the segments that it reads."""


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

    def protocols(self, override: str | None) -> dict[str, Packages]:
        """Return the protocols of the messages, each with the packages that read them.

        A package only of waiting messages has no segments. `UNKNOWN` comes last.
        """
        found: dict[str, Packages] = {}
        name_of = cache(partial(name_package, override=override))
        for name in {name_of(*stated) for path in self.waiting for stated in _stated_in(path)}:
            found.setdefault(protocol_of(name), {})[name] = []
        for portion in self.portions:
            for name in {name_of(protocol, portion.edition) for protocol in portion.protocols}:
                found.setdefault(protocol_of(name), {}).setdefault(name, []).append(portion)
        ordered = sorted(found.items(), key=lambda item: (item[0] == UNKNOWN, item[0]))
        return {protocol: dict(sorted(packages.items())) for protocol, packages in ordered}


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
        """Stage all tables; return tables of counts.

        Raises JobError if the numbers of messages differ.
        """
        self._steps.begin("reading segments")
        work = self._work
        if "frames" in self._asked.layers and (work.portions or work.waiting):
            self._keep(self._rows(list(work.portions)), FRAMES)
        if work.late:
            self._keep(read_portions(self._spark, work.late), LATE)
        self._run.replace(work.waiting)
        self._log_editions()
        counted = [
            self._take_protocol(protocol, packages)
            for protocol, packages in work.protocols(self._asked.protocol).items()
        ]
        found = sum(_total(part, "messages") for part in counted)
        if found != work.messages:
            raise JobError(
                f"{self._request.capture}: the segments hold {work.messages} new messages and {found} were "
                "decoded; a segment has changed while it was read"
            )
        return counted

    def _log_editions(self) -> None:
        """Log the editions that the only package of a protocol reads though it is of another one."""
        text = "%s: the taps state edition %r, and the only known one is %r, which reads them; %s"
        for packages in self._work.protocols(None).values() if self._asked.protocol is None else ():
            for name, portions in packages.items():
                own = "" if name == UNKNOWN else find_package(name).edition
                stated = {portion.edition for portion in portions} - {"", own} if own else ()
                for edition in sorted(stated):
                    _log.warning(text, name, edition, own, HINT)

    def _rows(self, portions: list[Portion]) -> DataFrame:
        rows = read_portions(self._spark, portions)
        came = read_files(self._spark, self._store.out / LATE, self._work.waiting)
        return rows if came is None else rows.unionByName(read_kept(came))

    def _keep(self, rows: DataFrame, table: str) -> None:
        octets = sum(entry.size for entry in self._work.entries)
        kept = keep(rows, self._asked.protocol, self._asked.partition)
        partitions = [PROTOCOL.name, *time_partitions(KEPT.names, self._asked.partition)]
        write_table(self._run, kept, table, partitions=partitions, octets=octets)

    def _take_protocol(self, protocol: str, packages: Packages) -> pa.Table:
        """Stage the typed tables of a protocol; return its counts."""
        self._steps.begin(f"decoding {protocol}")
        width_ms = choose_width_ms(self._last_us - self._first_us)
        decoded: dict[str, DataFrame] = {}
        try:
            for package, portions in packages.items():
                rows = rows_of(self._rows(portions), package, self._asked.protocol)
                decoded[package] = self._decode(rows, package).persist()
            counted = pa.concat_tables(
                [count_rows(frame, package, width_ms) for package, frame in decoded.items()]
            )
            self._steps.begin(f"writing {protocol} tables")
            # The tables have the columns of every known edition, so that later runs rarely add some.
            others = [name for name in packages_of(protocol) if self._asked.protocol is None]
            whole = {
                name: self._decode(self._rows([]).limit(0), name) for name in others if name not in decoded
            }
            typed = [self._type(frame, package) for package, frame in (decoded | whole).items()]
            self._write(protocol, typed, counted)
        finally:
            for frame in decoded.values():
                frame.unpersist()
        return counted

    def _decode(self, rows: DataFrame, package: str) -> DataFrame:
        if package == UNKNOWN:
            return refuse(rows)
        # The pipeline counts messages that do not decode, and excludes them from the tables later.
        mode = "FAILFAST" if self._asked.mode == "FAILFAST" else "PERMISSIVE"
        return decode(rows.select(*CAPTURE.names), package, backend=self._request.backend, mode=mode)

    def _type(self, decoded: DataFrame, package: str) -> dict[str, DataFrame]:
        """Return the typed tables of decoded rows; payloads are read when a table is written."""
        if package == UNKNOWN:
            return {ERRORS: error_rows(decoded)}
        rows = with_payloads(decoded, payloads_of(self._asked.payloads, package))
        typed = tables(rows, package, json_as=self._asked.json_as)
        edition = F.lit(find_package(package).edition)
        return {name: add_columns(table, protocol_of(package), edition) for name, table in typed.items()}

    def _write(self, protocol: str, typed: Sequence[Mapping[str, DataFrame]], counted: pa.Table) -> None:
        """Stage the typed tables of each edition, and compare their rows with the counts."""
        parts: dict[str, tuple[Part, int]] = {}
        for name in dict.fromkeys(name for edition in typed for name in edition):
            table = self._unite(
                f"{TYPED}/{protocol}/{name}", [found[name] for found in typed if name in found]
            )
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

    def _unite(self, path: str, tables: Sequence[DataFrame]) -> DataFrame:
        """Return the rows of a typed table of all editions, in the columns of all files of the table."""
        newest = self._store.newest(path)
        stored = [] if newest is None else [stored_schema(newest)]
        columns = unite(path, [*stored, *(table.schema for table in tables)])
        return reduce(DataFrame.unionByName, (fit(table, columns) for table in tables))


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
    several = [protocol for protocol in known if len(packages_of(protocol)) > 1]
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
        if particulars_of(name).peer_name != particulars_of(UNKNOWN).peer_name:
            found = F.when(protocol == name, name_conversation(name)).otherwise(found)
    return found


def _stated_in(path: Path) -> list[tuple[str | None, str]]:
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
