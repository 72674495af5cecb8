"""An output folder as it will be when a run has committed: what is there, without what goes, with what is staged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import reduce
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.spark.pipeline.commit import Area, Run, visible_files
from specwire.runtime.spark.pipeline.store import Store, read_files

COMPARED = 100_000
"""Open rows of a table and date that are compared with those of before; more count as changed."""


class View:
    """Tables as the run in hand leaves them."""

    def __init__(self, spark: SparkSession, store: Store, run: Run) -> None:
        self._spark = spark
        self._store = store
        self._run = run

    def table(
        self,
        table: str,
        *,
        since: int = 0,
        protocol: str | None = None,
        dates: Collection[str] | None = None,
    ) -> DataFrame | None:
        """Return a table's rows of the runs after `since`, of one protocol, of some dates; None where it has no file."""

        def chosen(path: Path) -> bool:
            return (protocol is None or partition(path, "protocol") == protocol) and (
                dates is None or partition_date(path) in dates
            )

        there = [path for path in self._store.files(table) if path not in self._run.replaced]
        # A table of a type that never occurred is planned as nothing, not as a file to be read.
        had = there if self._run.before.rows.get(table) else []
        roots = {self._store.out / table: [p for p in had if chosen(p) and run_number(p) > since]}
        staged = {area: visible_files(self._run.folder(area, table)) for area in Area}
        roots |= {
            self._run.folder(area, table): [p for p in files if chosen(p) and pq.read_metadata(p).num_rows]
            for area, files in staged.items()
        }
        parts = (read_files(self._spark, root, files) for root, files in roots.items())
        found = [part for part in parts if part is not None]
        if found:
            return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), found)
        return self._without_rows(table, there, staged)

    def dates(self, table: str, protocol: str) -> set[str]:
        """Return the dates at which the run adds rows of a protocol to a table, or takes some away.

        A date whose open rows are replaced by the same ones is not among them: a request without an end would
        have its day rolled up at every run.
        """
        gone = [path for path in self._run.replaced if path.is_relative_to(self._store.out / table)]
        come = [path for area in Area for path in visible_files(self._run.folder(area, table))]
        found: dict[str, tuple[list[Path], list[Path]]] = {}
        for paths, side in ((gone, 0), (come, 1)):
            for path in paths:
                if partition(path, "protocol") in ("", protocol):
                    found.setdefault(partition_date(path), ([], []))[side].append(path)
        staged = self._run.folder(Area.OPEN, table)

        def is_open(path: Path) -> bool:
            return path.is_relative_to(staged) or path.name.startswith(f"{Area.OPEN}-")

        return {
            date
            for date, (old, new) in found.items()
            if not all(map(is_open, (*old, *new))) or not _same_rows(old, new)
        }

    def _without_rows(
        self, table: str, there: list[Path], staged: dict[Area, list[Path]]
    ) -> DataFrame | None:
        """The table as it is, but for its rows; only its columns are wanted."""
        roots = {self._store.out / table: there}
        roots |= {self._run.folder(area, table): files for area, files in staged.items()}
        for root, files in roots.items():
            if files:
                whole = read_files(self._spark, root, files[-1:])
                return None if whole is None else whole.where(F.lit(False))
        return None


def _same_rows(ours: list[Path], theirs: list[Path]) -> bool:
    """Whether files have the same rows in any order; False where there are too many to compare."""
    numbers = {sum(pq.read_metadata(path).num_rows for path in paths) for paths in (ours, theirs)}
    if len(numbers) > 1 or max(numbers) > COMPARED:
        return False
    return _count_rows(ours) == _count_rows(theirs)


def _count_rows(paths: list[Path]) -> Counter[str]:
    # As texts, because lists and structures among the values cannot be counted, and NaN would differ from itself.
    rows = (row for path in paths for row in pq.ParquetFile(path).read().to_pylist())
    return Counter(repr(sorted(row.items())) for row in rows)


def partition(path: Path, name: str) -> str:
    """Return the value of a partition column in a file's path, as Spark wrote it; empty where there is none."""
    return next((part.partition("=")[2] for part in path.parts if part.startswith(f"{name}=")), "")


def partition_date(path: Path) -> str:
    """Return the date in a file's path, whatever its column is called."""
    return partition(path, "date") or partition(path, "_date")


def run_number(path: Path) -> int:
    """Return the number of the run that added a file of the output folder."""
    return int(path.name.split("-")[1])
