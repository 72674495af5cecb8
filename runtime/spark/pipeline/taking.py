"""The first two layers of a run: captured frames and typed tables, and the counts that say they are whole.

Each message is decoded once: the decoded rows are persisted while they are counted and written. Messages add
up: as many as the intake promises are counted, and as many as are counted are in the tables. Counting looks at
the decoded rows and at the footers of what was written, which nothing but the truth can make agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.payloads import with_payloads
from specwire.runtime.spark.decoding.tables import ERRORS, tables
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.pipeline import unknown
from specwire.runtime.spark.pipeline.commit import Run
from specwire.runtime.spark.pipeline.counts import choose_width_ms, count_rows
from specwire.runtime.spark.pipeline.gathering import GATHERED_OCTETS, Part, stage
from specwire.runtime.spark.pipeline.intake import Portion
from specwire.runtime.spark.pipeline.payloads import payloads_of
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.rows import KEPT, keep, read_kept, read_portions, rows_of
from specwire.runtime.spark.pipeline.sorting import Sorted
from specwire.runtime.spark.pipeline.steps import Steps
from specwire.runtime.spark.pipeline.store import FRAMES, LATE, PROTOCOL, TYPED, Store, read_files
from specwire.runtime.spark.pipeline.summary import UNKNOWN
from specwire.runtime.spark.pipeline.writing import time_partitions, write_empty, write_table


class Taking:
    """Takes the messages of one run."""

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
        """Stage all tables; return the counts, a table for each protocol. JobError where they do not add up."""
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
            return unknown.refuse(rows)
        # The pipeline counts what does not decode; it leaves such rows out of the tables itself.
        mode = "FAILFAST" if self._asked.mode == "FAILFAST" else "PERMISSIVE"
        return decode(rows, protocol, backend=self._request.backend, mode=mode)

    def _type(self, decoded: DataFrame, protocol: str) -> dict[str, DataFrame]:
        """The typed tables of decoded rows; payloads are read where their table is written, not before."""
        if protocol == UNKNOWN:
            return {ERRORS: unknown.error_rows(decoded)}
        typed = with_payloads(decoded, payloads_of(self._asked.payloads, protocol))
        return tables(typed, protocol, json_as=self._asked.json_as)

    def _write(self, protocol: str, typed: Mapping[str, DataFrame], counted: pa.Table) -> None:
        """Stage the typed tables of a protocol, and hold their rows against what was counted."""
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
