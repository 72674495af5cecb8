"""Any history of runs, kills, full disks and restarts leaves what the committed runs added, once.

A run adds rows to partitions of two tables, replaces the open rows of one, and merges small files.
It may bring a column to the other table; then runs rewrite one earlier file each.
It commits or does not, and may die, or meet a full disk, before any call to the file system, also
while it completes the commit of the run before. A reader looks at the folder before each call.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from pyspark.sql.types import StructType

from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.pipeline import merging
from specwire.runtime.spark.pipeline.commit import JOURNAL, LOCK, Area, Run, begin, visible_files
from specwire.runtime.spark.pipeline.manifest import read_manifest
from specwire.runtime.spark.pipeline.merging import find_mixed, merge_small, rewrite
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA, run_number
from specwire.runtime.spark.pipeline.writing import open_table
from tests.examples import examples
from tests.runtime.spark.pipeline.faults import Killed, fault, full_disk

FINAL, MIXED = "typed/p/M", "answers/a"
"""A table without open rows, and one with."""
PARTITIONS = tuple(f"{table}/date=2026-01-0{day}" for table in (FINAL, MIXED) for day in (1, 2))
NEVER = 10**6

Rows = dict[str, frozenset[int]]
"""Rows by partition."""

partitions = st.sets(st.sampled_from(PARTITIONS))
calls = st.integers(0, 60)


class Histories(RuleBasedStateMachine):
    """One output folder; its rows, as numbers, are those of the runs that were committed."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.out = self.folder / "out"
        self.before: Rows = dict.fromkeys(PARTITIONS, frozenset())
        self.rows, self.open, self.next_open = self.before, self.before, self.before
        self.after = self.rows
        self.number = self.made = 0
        self.width = self.next_width = 0
        self.staging: Path | None = None
        self.known: dict[Path, list[int]] = {}
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr(merging, "MERGED_AFTER", 3)

    def teardown(self) -> None:
        """Remove the folder."""
        self.patched.undo()
        shutil.rmtree(self.folder)

    @rule(
        added=partitions,
        opened=partitions,
        widen=st.booleans(),
        answer=st.booleans(),
        merge=st.booleans(),
        commit=st.booleans(),
    )
    def run(
        self, added: set[str], opened: set[str], widen: bool, answer: bool, merge: bool, commit: bool
    ) -> None:
        """A run that nothing interrupts."""
        self.next_width = self.width + widen
        with fault(NEVER, look=self.look):
            self.work(added, opened, answer=answer, merge=merge, commit=commit)
        assert (self.out.exists(), self.hidden()) in ((True, {LOCK}), (self.number > 0, set()))

    @rule(
        added=partitions,
        opened=partitions,
        answer=st.booleans(),
        merge=st.booleans(),
        call=calls,
        full=st.booleans(),
    )
    def fail(
        self, added: set[str], opened: set[str], answer: bool, merge: bool, call: int, full: bool
    ) -> None:
        """A run that is killed, or meets a full disk."""
        self.next_width = self.width
        error = full_disk() if full else None
        with suppress(InputError, JobError) if full else suppress(Killed), fault(call, error, self.look):
            self.work(added, opened, answer=answer, merge=merge, commit=True)

    @rule(call=calls)
    def restart(self, call: int) -> None:
        """A run that is killed while it has nothing to do but to tidy up."""
        with suppress(Killed), fault(call, look=self.look), begin(self.out):
            pass

    @rule()
    def write_on(self) -> None:
        """Spark on another machine writes on for a run that was killed."""
        if self.staging is not None:
            write(self.staging / Area.ADDED / PARTITIONS[0], [-1], name="part-late.parquet")

    def work(
        self, added: Iterable[str], opened: Iterable[str], *, answer: bool, merge: bool, commit: bool
    ) -> None:
        """Make a run; the rows are those after it as soon as it is committed."""
        self.after, begun = self.rows, None
        try:
            with begin(self.out) as begun:
                self.staging = begun.staging
                self.check(begun)
                self.before = self.rows
                self.stage(begun, added, opened if answer else None)
                mixed = find_mixed(begun, [FINAL])
                if merge:
                    merge_small(begun, [FINAL, MIXED])
                    mixed = rewrite(begun, mixed, octets=1)
                begun.write("summary.json", b"%d" % begun.number)
                if commit:
                    begun.commit(msgspec.structs.replace(begun.before, mixed=mixed))
        finally:
            if begun and ((self.out / JOURNAL).exists() or read_manifest(self.out).run == begun.number):
                self.rows, self.open, self.number = self.after, self.next_open, begun.number
                self.width = self.next_width

    def stage(self, run: Run, added: Iterable[str], opened: Iterable[str] | None) -> None:
        """Stage a row for each partition; with `opened`, close half of the open rows and open others."""
        new = {partition: [self.make()] for partition in added}
        self.next_open = self.open
        if opened is not None:
            run.replace(path for path in run.files(MIXED) if path.name.startswith(f"{Area.OPEN}-"))
            more = {partition: self.make() for partition in opened if partition.startswith(MIXED)}
            self.next_open = {
                name: frozenset(row for row in rows if row % 2) | ({more[name]} if name in more else set())
                for name, rows in self.open.items()
            }
            for name, rows in self.open.items():
                new[name] = [*new.get(name, ()), *(rows - self.next_open[name])]
                if self.next_open[name]:
                    write(run.folder(Area.OPEN, name), self.next_open[name])
        for name, found in new.items():
            if found:
                write(run.folder(Area.ADDED, name), found, self.next_width if FINAL in name else 0)
        self.after = {
            name: (rows - self.open[name]) | self.next_open[name] | set(new.get(name, ()))
            for name, rows in self.rows.items()
        }

    def make(self) -> int:
        """Return a row that is not there yet."""
        self.made += 1
        return self.made

    def check(self, run: Run) -> None:
        """Compare the folder with the model; the run has tidied up."""
        assert self.visible() == {name: sorted(rows) for name, rows in self.rows.items()}
        assert run.before.run == self.number
        assert self.hidden() == {LOCK, run.staging.name}
        if self.number:
            assert (self.out / "summary.json").read_bytes() == b"%d" % self.number
        counted = {
            table: sum(len(self.rows[name]) for name in PARTITIONS if table in name)
            for table in (FINAL, MIXED)
        }
        assert {table: run.before.rows.get(table, 0) for table in counted} == counted
        self.check_columns(run)

    def check_columns(self, run: Run) -> None:
        """See that the newest file of the table has all columns, as those after the mixed ones."""
        widths = {path: len(pq.read_schema(path)) for path in run.files(FINAL)}
        last = run.before.mixed.get(FINAL, 0)
        whole = {width for path, width in widths.items() if run_number(path) > last}
        assert whole <= {max(widths.values(), default=0)}
        assert whole or not widths

    def look(self) -> None:
        """See, in all partitions but one, the rows before or after a run, and in that one both.

        A row that is in the folder before and after the run is always there. When the manifest
        counts the run, all partitions have the rows after it.
        """
        between = 0
        done = read_manifest(self.out).run == self.number + (self.after is not self.rows)
        for name, found in self.visible().items():
            sides = [self.before[name], self.rows[name], self.after[name]]
            assert not done or found == sorted(self.after[name])
            if found not in map(sorted, sides):
                between += 1
                assert set(found) <= frozenset().union(*sides)
                assert any(set(found) >= one & other for one, other in itertools.pairwise(sides))
        assert between <= 1

    def visible(self) -> Mapping[str, list[int]]:
        """Return the rows that a reader finds in each partition."""
        found: dict[str, list[int]] = {}
        for name in PARTITIONS:
            files = visible_files(self.out / name)
            for path in files:
                if path not in self.known:
                    self.known[path] = pq.ParquetFile(path).read()["row"].to_numpy().tolist()
            found[name] = sorted(row for path in files for row in self.known[path])
        return found

    def hidden(self) -> set[str]:
        """Return the hidden names in the folder."""
        return (
            {path.name for path in self.out.iterdir() if path.name[0] == "."} if self.out.exists() else set()
        )


def write(folder: Path, rows: Iterable[int], width: int = 0, name: str = "part-0.parquet") -> None:
    """Write rows as a file, as Spark does, with more columns of nulls."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = StructType().add("row", "long")
    for number in range(width):
        columns.add(f"more_{number}", "long")
    arrow = pa.schema({field.name: pa.int64() for field in columns})
    with open_table(folder / name, arrow, {ROW_SCHEMA: columns.json().encode()}) as writer:
        writer.write_table(pa.Table.from_pylist([{"row": row} for row in sorted(rows)], arrow))


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=examples(40),
    stateful_step_count=12,
    suppress_health_check=[HealthCheck.too_slow],
)
