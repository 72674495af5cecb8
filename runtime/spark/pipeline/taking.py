"""First two layers of a run: captured frames and typed tables, with a check for missing messages.

Each message is decoded once: decoded rows are persisted while they are counted and written. The run
fails unless three numbers are equal: the messages in the segments, the rows counted after decoding,
and the rows in the footers of the written files.

A message is late if it arrives after later messages of its tap were answered. Late messages wait in
the table ``late``, or all answers are computed again with them (`Request.late`).

Each edition of a protocol is decoded with its own package. The rows of all editions go to the same
tables, which have the union of their columns (`specwire.runtime.spark.pipeline.columns`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial, reduce
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.package_search import without_edition
from specwire.runtime.packages import HINT, find_package
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.options import CAPTURE
from specwire.runtime.spark.decoding.tables import ERRORS, tables, with_payloads
from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.pipeline.captured import (
    KEPT,
    error_rows,
    keep,
    name_package,
    read_kept,
    read_portions,
    refuse,
    rows_of,
    stated_in,
)
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
    partition_fields,
    read_files,
    stored_schema,
)
from specwire.runtime.spark.pipeline.summary import UNKNOWN
from specwire.runtime.spark.pipeline.writing import (
    GATHERED_OCTETS,
    Part,
    stage,
    time_partitions,
    write_empty,
)
from specwire.runtime.spark.protocols import edition_packages
from specwire.runtime.spark.session.executors import ship_packages

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
        for name in {name_of(*stated) for path in self.waiting for stated in stated_in(path)}:
            found.setdefault(without_edition(name), {})[name] = []
        for portion in self.portions:
            for name in {name_of(protocol, portion.edition) for protocol in portion.protocols}:
                found.setdefault(without_edition(name), {}).setdefault(name, []).append(portion)
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
        # Answers run in Python workers even if Java decodes.
        ship_packages(self._spark)
        work = self._work
        if work.late:
            self._keep(read_portions(self._spark, work.late), LATE, few=False)
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
        if "frames" in self._asked.layers and found:
            # After the count, which says whether the messages are small.
            few = self._few and sum(_total(part, "octets") for part in counted) <= GATHERED_OCTETS
            self._keep(self._rows(list(work.portions)), FRAMES, few=few)
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

    def _keep(self, rows: DataFrame, table: str, *, few: bool) -> None:
        octets = sum(entry.size for entry in self._work.entries)
        kept = keep(rows, self._asked.protocol, self._asked.partition)
        partitions = (PROTOCOL.name, *time_partitions(KEPT.names, self._asked.partition))
        stage(self._run, [Part(table, kept, partitions=partitions, octets=octets)], few=few)

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
            others = [name for name in edition_packages(protocol) if self._asked.protocol is None]
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
        return {name: add_columns(table, without_edition(package), edition) for name, table in typed.items()}

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
        if newest is not None:
            before = [field.name for field in partition_fields(newest.relative_to(self._store.out / path))]
            if before != list(time_partitions(columns.names, self._asked.partition)):
                raise InputError(
                    f"{path}: a message has a field {before[0]} in one edition, which is the partition column "
                    "of another: read the editions into two folders"
                )
        return reduce(DataFrame.unionByName, (fit(table, columns) for table in tables))


def _rows_of_table(counted: pa.Table, name: str) -> pa.Table:
    message = counted["message"]
    return counted.filter(pc.is_null(message) if name == ERRORS else pc.equal(message, pa.scalar(name)))


def _total(counted: pa.Table, column: str) -> int:
    return int(pc.sum(counted[column]).as_py() or 0)
