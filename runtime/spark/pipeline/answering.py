"""Third layer of a run: answers continued over new messages, then roll-ups for the changed dates.

A continued answer receives its stored state and the typed rows of the runs since its last update.
Its output is staged. When the run commits, the earlier state and open rows are removed. A roll-up
receives the complete typed and answer tables of each date that changed, and its rows of these dates
are replaced.

In a rebuild an answer receives all typed rows and no state, and all its tables are replaced. The
same happens to a single answer that the folder lacks, or has with different columns because another
version wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from specwire.runtime.spark.answers.answer import Continued, RollUp
from specwire.runtime.spark.answers.registry import continued, roll_ups
from specwire.runtime.spark.pipeline.commit import Area, Run, Steps
from specwire.runtime.spark.pipeline.store import (
    ANSWERS,
    DATE,
    PROTOCOL,
    STATE,
    TYPED,
    Store,
    View,
    partition,
    partition_date,
    run_number,
    stored_schema,
)
from specwire.runtime.spark.pipeline.summary import UNKNOWN
from specwire.runtime.spark.pipeline.writing import (
    GATHERED_OCTETS,
    Part,
    copy_open,
    run_all,
    stage,
    without,
    write_empty,
)
from specwire.runtime.spark.session.opening import changed_settings

PARTITIONS = (PROTOCOL.name, DATE.name)
SETTINGS = {
    # With a limit in octets, Spark measures each row that it sends to Python, which takes as long
    # as sending it. The rows of answers are small, so a limit on their number is enough: Arrow's
    # arrays hold 2 GiB.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
"""Settings of the session while answers are computed."""


def lacks_answers(store: Store, protocol: str) -> bool:
    """Return whether a protocol lacks answers, or has them with the columns of another version.

    A computed answer always has tables, with or without rows.
    """
    if protocol == UNKNOWN:
        return False
    answers: Iterator[Continued | RollUp] = chain(continued(protocol), roll_ups(protocol))
    return not all(_is_current(store, answer) for answer in answers)


def _is_current(store: Store, answer: Continued | RollUp) -> bool:
    """Return whether the tables of an answer exist and have the columns that it writes."""
    for name, schema in answer.writes.items():
        files = store.files(f"{ANSWERS}/{name}")
        if not files:
            return False
        stored = stored_schema(max(files, key=lambda path: path.name))
        if stored.simpleString() != without(schema, PARTITIONS).simpleString():
            return False
    return True


class Answering:
    """Updater of the answers in one run."""

    def __init__(
        self, spark: SparkSession, store: Store, run: Run, steps: Steps, *, rebuild: bool, few: bool
    ) -> None:
        self._spark = spark
        self._store = store
        self._run = run
        self._view = View(spark, store, run)
        self._steps = steps
        self._rebuild = rebuild
        self._small = few
        self._few = False
        self._since = 0 if rebuild else run.before.answered
        self._octets = 0
        self._current: dict[str, bool] = {}

    def answer_all(self, protocols: Iterable[str]) -> None:
        """Stage the answers for some protocols."""
        with changed_settings(self._spark, SETTINGS):
            for protocol in protocols:
                self._answer(protocol)

    def _answer(self, protocol: str) -> None:
        self._steps.begin(f"answering {protocol}")
        answers = tuple(continued(protocol))
        lacking = any(map(self._lacks, answers))
        since = 0 if lacking else self._since
        files = self._new_files(f"{TYPED}/{protocol}", since)
        # Compressed size: accurate enough to choose the number of tasks.
        self._octets = _size(files)
        self._few = self._small and _size(self._store.files(f"{STATE}/{protocol}")) <= GATHERED_OCTETS
        # A table without rows is stored at the first date of the messages.
        first = min(map(partition_date, files or self._every_file(protocol)), default=None)
        if first is None:
            return  # A user has removed all files of the protocol.
        run_all([partial(self._continue, answer, protocol, first) for answer in answers])
        for group in _independent(roll_ups(protocol)):
            touched = [(roll_up, self._touched(roll_up, protocol, since)) for roll_up in group]
            run_all([partial(self._roll_up, roll_up, protocol, dates) for roll_up, dates in touched if dates])

    def _touched(self, answer: RollUp, protocol: str, since: int) -> set[str]:
        """Return the dates for which a roll-up must be computed.

        These are the dates at which the tables that it reads change: typed tables by files of the
        runs after `since`, answer tables in this run.
        """
        if self._rebuild or self._lacks(answer):
            return set(map(partition_date, self._every_file(protocol)))
        tables = (f"{TYPED}/{protocol}/{name}" for name in answer.reads(protocol))
        typed = {partition_date(path) for table in tables for path in self._new_files(table, since)}
        return typed.union(
            *(self._view.dates(f"{ANSWERS}/{name}", protocol) for name in answer.reads_answers)
        )

    def _lacks(self, answer: Continued | RollUp) -> bool:
        """Return whether an answer must be computed for all dates.

        The result is cached, because committed files do not change during the run.
        """
        if answer.name not in self._current:
            self._current[answer.name] = _is_current(self._store, answer)
        return not self._current[answer.name]

    def _every_file(self, protocol: str) -> list[Path]:
        """Return all files with messages or answers of a protocol, with those of this run."""
        answers = [
            *self._store.files(ANSWERS),
            *(path for area in Area for path in self._run.staged(ANSWERS, area)),
        ]
        return [
            *self._new_files(f"{TYPED}/{protocol}", 0),
            *(path for path in answers if partition(path, PROTOCOL.name) == protocol),
        ]

    def _new_files(self, table: str, since: int) -> list[Path]:
        """Return the files of a table, or of a folder of tables, of the runs after `since` and of this run."""
        files = [path for path in self._store.files(table) if run_number(path) > since]
        return [*files, *self._run.staged(table)]

    def _continue(self, answer: Continued, protocol: str, first: str) -> None:
        """Stage a step of an answer; `first` is the first date of its messages."""
        anew = self._rebuild or self._lacks(answer)
        typed = self._typed(protocol, answer.reads(protocol), since=0 if anew else self._since)
        state = None if anew else self._store.state(self._spark, protocol, answer.name)
        self._run.replace(self._store.files(f"{STATE}/{protocol}/{answer.name}"))
        for name in answer.writes:
            self._drop_answers(name, protocol, every=anew)
        step = answer.advance(typed, protocol, state)
        root = f"{STATE}/{protocol}/{answer.name}"
        parts = [
            *(
                Part(f"{ANSWERS}/{name}", rows, None, PARTITIONS, self._octets)
                for name, rows in step.rows.items()
            ),
            *(
                Part(f"{root}/{name}", rows, Area.OPEN, octets=self._octets)
                for name, rows in step.state.items()
                if name not in step.rows
            ),
        ]
        try:
            stage(self._run, parts, few=self._few)
        finally:
            step.release()
        for name in step.state.keys() & step.rows.keys():
            copy_open(self._run, f"{ANSWERS}/{name}", f"{root}/{name}", f"{PROTOCOL.name}={protocol}")
        self._write_empties(answer.writes, protocol, first)

    def _roll_up(self, answer: RollUp, protocol: str, dates: set[str]) -> None:
        typed = self._typed(protocol, answer.reads(protocol), dates=dates)
        tables = {
            name: self._view.table(f"{ANSWERS}/{name}", protocol=protocol, dates=dates)
            for name in answer.reads_answers
        }
        known = {name: table for name, table in tables.items() if table is not None}
        for name in answer.writes:
            self._run.replace(
                path
                for path in self._store.files(f"{ANSWERS}/{name}")
                if partition(path, PROTOCOL.name) == protocol
                and (self._rebuild or partition_date(path) in dates)
            )
        parts = [
            Part(
                f"{ANSWERS}/{name}",
                rows.where(F.col(DATE.name).cast("string").isin(*dates)),
                partitions=PARTITIONS,
                octets=self._octets,
            )
            for name, rows in answer.compute(typed, known, protocol).items()
        ]
        stage(self._run, parts, few=self._few)
        self._write_empties(answer.writes, protocol, min(dates))

    def _typed(
        self, protocol: str, names: Iterable[str], *, since: int = 0, dates: set[str] | None = None
    ) -> dict[str, DataFrame]:
        found = {
            name: self._view.table(f"{TYPED}/{protocol}/{name}", since=since, dates=dates) for name in names
        }
        return {name: table for name, table in found.items() if table is not None}

    def _drop_answers(self, name: str, protocol: str, *, every: bool) -> None:
        """Mark the files with open rows of a table as replaced; with `every`, all its files."""
        self._run.replace(
            path
            for path in self._store.files(f"{ANSWERS}/{name}")
            if partition(path, PROTOCOL.name) == protocol and (every or path.name.startswith(f"{Area.OPEN}-"))
        )

    def _write_empties(self, schemas: Mapping[str, StructType], protocol: str, date: str) -> None:
        for name, schema in schemas.items():
            table = f"{ANSWERS}/{name}"
            there = [path for path in self._store.files(table) if path not in self._run.replaced]
            if not there and not any(self._run.staged(table, area) for area in Area):
                place = dict(zip(PARTITIONS, (protocol, date), strict=True))
                write_empty(self._run, table, without(schema, PARTITIONS), place)


def _size(files: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def _independent(answers: Iterable[RollUp]) -> Iterator[list[RollUp]]:
    """Split roll-ups, in order, into groups in which none reads a table that another writes."""
    group: list[RollUp] = []
    for answer in answers:
        written = {name for earlier in group for name in earlier.writes}
        if written.intersection(answer.reads_answers):
            yield group
            group = []
        group.append(answer)
    yield group
