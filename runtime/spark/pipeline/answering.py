"""Third layer of a run: answers continued over new messages, then sums, and roll-ups of these.

A continued answer receives its stored state and the typed rows of the runs since its last update.
Its output is staged. When the run commits, the earlier state and open rows are removed.

A run adds its new messages, and the rows that it closes, to the stored sums. So its cost depends on
the new messages, not on the stored ones. A roll-up is computed again for each date on which its sums
or answer tables changed. In a table by minute, only the changed minutes are computed; Arrow copies
the other rows without Spark.

In a rebuild an answer receives all rows and no state, and all its tables are replaced. The same
happens to a single answer that the folder lacks, or has with different columns because another
version wrote it, and to the sums of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from specwire.runtime.spark.answers.answer import Continued, RollUp, Sums
from specwire.runtime.spark.answers.messages import union
from specwire.runtime.spark.answers.registry import all_sums, continued, roll_ups
from specwire.runtime.spark.pipeline.columns import without_required
from specwire.runtime.spark.pipeline.commit import Area, Run, Steps
from specwire.runtime.spark.pipeline.store import (
    ANSWERS,
    DATE,
    PROTOCOL,
    STATE,
    TYPED,
    Choice,
    Store,
    View,
    partition,
    partition_date,
    run_number,
    stored_schema,
)
from specwire.runtime.spark.pipeline.summary import UNKNOWN
from specwire.runtime.spark.pipeline.writing import (
    Part,
    copy_open,
    drop_minutes,
    find_minutes,
    in_minutes,
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


Answer = Continued | Sums | RollUp


def lacks_answers(store: Store, protocol: str) -> bool:
    """Return whether a table of a protocol's answers is missing, or has the columns of another version.

    A computed answer always has tables, with or without rows. Answer tables are shared: one with
    rows of another protocol is not missing.
    """
    if protocol == UNKNOWN:
        return False
    answers: Iterator[Answer] = chain(continued(protocol), all_sums(protocol), roll_ups(protocol))
    return not all(_is_current(store, answer, protocol) for answer in answers)


def _tables(answer: Answer, protocol: str) -> dict[str, StructType]:
    """Return the schemas of the tables that an answer writes, by their paths."""
    if isinstance(answer, Sums):
        root = ANSWERS if answer.is_answer else f"{STATE}/{protocol}"
        return {f"{root}/{answer.name}": answer.schema}
    return {f"{ANSWERS}/{name}": schema for name, schema in answer.writes.items()}


def _is_current(store: Store, answer: Answer, protocol: str) -> bool:
    """Return whether the tables of an answer exist and have the columns that it writes."""
    for table, schema in _tables(answer, protocol).items():
        newest = store.newest(table)
        if newest is None:
            return False
        if stored_schema(newest).simpleString() != without(schema, PARTITIONS).simpleString():
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
        self._few = few
        self._since = 0 if rebuild else run.before.answered
        self._octets = 0
        self._current: dict[tuple[str, str], bool] = {}

    def answer_all(self, protocols: Iterable[str]) -> None:
        """Stage the answers for some protocols."""
        with changed_settings(self._spark, SETTINGS):
            for protocol in protocols:
                self._answer(protocol)

    def _answer(self, protocol: str) -> None:
        self._steps.begin(f"answering {protocol}")
        answers = tuple(continued(protocol))
        sums = {one.name: one for one in all_sums(protocol)}
        rewritten = {table for one in answers if self._is_whole(one, protocol) for table in one.writes}
        typed = f"{TYPED}/{protocol}"
        files = [
            *(path for path in self._store.files(typed) if rewritten or run_number(path) > self._since),
            *self._run.staged(typed),
        ]
        dates = {partition_date(path) for path in files or self._every_file(protocol)}
        if not dates:
            return  # A user has removed all files of the protocol.
        first = min(dates)
        # Compressed size: accurate enough to choose the number of tasks.
        self._octets = _size(files)
        run_all([partial(self._continue, answer, protocol, first) for answer in answers])
        run_all([partial(self._add, one, protocol, first, rewritten) for one in sums.values()])
        for group in _independent(roll_ups(protocol)):
            # Before any of them writes.
            changed = [self._changed_files(roll_up, protocol, sums) for roll_up in group]
            pairs = zip(group, changed, strict=True)
            run_all([partial(self._roll_up, one, protocol, sums, new, first) for one, new in pairs])

    def _is_whole(self, answer: Answer, protocol: str) -> bool:
        """Return whether an answer must be computed for all dates.

        The result is cached, because committed files do not change during the run.
        """
        key = (protocol, answer.name)
        if key not in self._current:
            self._current[key] = not self._rebuild and _is_current(self._store, answer, protocol)
        return not self._current[key]

    def _every_file(self, protocol: str) -> list[Path]:
        """Return all committed files with messages or answers of a protocol."""
        answers = (path for path in self._store.files(ANSWERS) if partition(path, PROTOCOL.name) == protocol)
        return [*self._store.files(f"{TYPED}/{protocol}"), *answers]

    def _continue(self, answer: Continued, protocol: str, first: str) -> None:
        """Stage a step of an answer; `first` is the first date of its messages."""
        whole = self._is_whole(answer, protocol)
        since = Choice(0 if whole else self._since)
        typed = self._read_messages(protocol, answer.reads(protocol), since)
        state = None if whole else self._store.state(self._spark, protocol, answer.name)
        root = f"{STATE}/{protocol}/{answer.name}"
        self._run.replace(self._store.files(root))
        for table in _tables(answer, protocol):
            self._run.replace(
                path
                for path in self._store.files(table)
                if partition(path, PROTOCOL.name) == protocol
                and (whole or path.name.startswith(f"{Area.OPEN}-"))
            )
        step = answer.advance(typed, protocol, state)
        parts = [
            *(self._part(f"{ANSWERS}/{name}", rows, None) for name, rows in step.rows.items()),
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
        self._write_empties(answer, protocol, first)

    def _add(self, sums: Sums, protocol: str, first: str, rewritten: set[str]) -> None:
        """Stage sums with what is new; `rewritten` are the answer tables that this run replaces."""
        ((table, schema),) = _tables(sums, protocol).items()
        whole = self._is_whole(sums, protocol) or not rewritten.isdisjoint(sums.reads_answers)
        since, last = (0, 0) if whole else (self._since, self._run.before.run)
        reads = sums.reads(protocol)
        closed = (ANSWERS, sums.reads_answers, Choice(last, protocol, area=Area.ADDED))
        new = self._files(f"{TYPED}/{protocol}", reads, Choice(since)) + self._files(*closed)
        choice = Choice(0, protocol, set(map(partition_date, new)))
        stored = None if whole else self._view.table(table, choice)
        minutes = self._remove(table, schema, protocol, None if whole else new)
        if new:
            typed = self._read_messages(protocol, reads, Choice(since))
            rows = [sums.select(typed, self._read(*closed), protocol)]
            if stored is not None:
                rows.append(stored if minutes is None else stored.where(in_minutes("minute", minutes)))
            part = self._part(table, sums.add_up(union(rows), protocol), Area.ADDED)
            stage(self._run, [part], few=self._few)
        self._write_empties(sums, protocol, first)

    def _remove(
        self, table: str, schema: StructType, protocol: str, new: list[Path] | None
    ) -> list[int] | None:
        """Remove the rows of the dates of new files from a table; None for all dates.

        From a table by minute, remove only the minutes that rows of new files have, and return
        them. If a new row has no time, remove the dates.
        """
        stored = [path for path in self._store.files(table) if partition(path, PROTOCOL.name) == protocol]
        if new is not None:
            dates = set(map(partition_date, new))
            stored = [path for path in stored if partition_date(path) in dates]
            minutes = find_minutes(new) if stored and "minute" in schema.names else None
            if minutes is not None:
                drop_minutes(self._run, stored, minutes)
                return minutes
        self._run.replace(stored)
        return None

    def _changed_files(self, roll_up: RollUp, protocol: str, sums: Mapping[str, Sums]) -> list[Path]:
        """Return the files of this run that change what a roll-up reads.

        If it must be computed for all dates, these are all files that it reads.
        """
        read = [sums[name] for name in roll_up.reads_sums if name in sums]
        tables = {table for one in read for table in _tables(one, protocol)}
        answers = {
            f"{ANSWERS}/{name}" for name in chain(roll_up.reads_answers, *(one.reads_answers for one in read))
        }
        if self._is_whole(roll_up, protocol):
            return [
                path for table in tables | answers for path in self._view.files(table, Choice(0, protocol))
            ]
        new = Choice(self._run.before.run, protocol)
        added = (path for table in tables for path in self._view.files(table, new))
        return [*added, *(path for table in answers for path in self._view.changed_files(table, protocol))]

    def _roll_up(
        self, roll_up: RollUp, protocol: str, sums: Mapping[str, Sums], changed: list[Path], first: str
    ) -> None:
        """Stage a roll-up for the dates of changed files."""
        whole = self._is_whole(roll_up, protocol)
        minutes = None
        for table, schema in _tables(roll_up, protocol).items():
            minutes = self._remove(table, schema, protocol, None if whole else changed)
        if changed:
            choice = Choice(0, protocol, set(map(partition_date, changed)))
            answers = self._read(ANSWERS, roll_up.reads_answers, choice)
            if minutes is not None:
                timed = {name: table for name, table in answers.items() if "ts" in table.columns}
                answers |= {name: table.where(in_minutes("ts", minutes)) for name, table in timed.items()}
            read = {
                name: self._with_open(sums[name], protocol, choice)
                for name in roll_up.reads_sums
                if name in sums
            }
            parts = [
                self._part(f"{ANSWERS}/{name}", rows, Area.ADDED)
                for name, rows in roll_up.compute(read, answers, protocol).items()
            ]
            stage(self._run, parts, few=self._few)
        self._write_empties(roll_up, protocol, first)

    def _part(self, table: str, rows: DataFrame, area: Area | None) -> Part:
        return Part(table, without_required(rows, PARTITIONS), area, PARTITIONS, self._octets)

    def _with_open(self, sums: Sums, protocol: str, choice: Choice) -> DataFrame:
        """Return chosen sums, and the open rows of answers, which are not added to them."""
        (table,) = _tables(sums, protocol)
        stored = self._view.table(table, choice)
        assert stored is not None, table
        opened = (ANSWERS, sums.reads_answers, choice._replace(area=Area.OPEN))
        if not self._files(*opened):
            return stored
        return union([stored, sums.select({}, self._read(*opened), protocol)])

    def _read(self, root: str, names: Iterable[str], choice: Choice) -> dict[str, DataFrame]:
        """Return those of some tables that exist."""
        found = {name: self._view.table(f"{root}/{name}", choice) for name in names}
        return {name: table for name, table in found.items() if table is not None}

    def _read_messages(self, protocol: str, names: Sequence[str], choice: Choice) -> dict[str, DataFrame]:
        """Return the typed tables that have rows; if none has any, those that exist.

        Spark plans a query sooner, the fewer tables are in it.
        """
        typed = f"{TYPED}/{protocol}"
        filled = [name for name in names if self._files(typed, [name], choice)]
        return self._read(typed, filled or names, choice)

    def _files(self, root: str, names: Iterable[str], choice: Choice) -> list[Path]:
        return [path for name in names for path in self._view.files(f"{root}/{name}", choice)]

    def _write_empties(self, answer: Answer, protocol: str, date: str) -> None:
        """Stage files without rows for tables that have no file."""
        for table, schema in _tables(answer, protocol).items():
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
