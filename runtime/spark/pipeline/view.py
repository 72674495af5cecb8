"""An output folder as it will be when a run has committed: what is there, without what goes, with what is staged."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.spark.pipeline.commit import Area, Run, visible_files
from specwire.runtime.spark.pipeline.store import Store, read_files


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
        roots = {self._store.out / table: [p for p in there if chosen(p) and run_number(p) > since]}
        staged = {area: visible_files(self._run.folder(area, table)) for area in Area}
        roots |= {
            self._run.folder(area, table): [p for p in files if chosen(p)] for area, files in staged.items()
        }
        parts = (read_files(self._spark, root, files) for root, files in roots.items())
        found = [part for part in parts if part is not None]
        if found:
            return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), found)
        return self._without_rows(table, there, staged)

    def dates(self, table: str, protocol: str) -> set[str]:
        """Return the dates at which the run adds rows of a protocol to a table, or takes some away."""
        paths = [path for path in self._run.replaced if path.is_relative_to(self._store.out / table)]
        for area in Area:
            paths += visible_files(self._run.folder(area, table))
        return {partition_date(path) for path in paths if partition(path, "protocol") in ("", protocol)}

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


def partition(path: Path, name: str) -> str:
    """Return the value of a partition column in a file's path, as Spark wrote it; empty where there is none."""
    return next((part.partition("=")[2] for part in path.parts if part.startswith(f"{name}=")), "")


def partition_date(path: Path) -> str:
    """Return the date in a file's path, whatever its column is called."""
    return partition(path, "date") or partition(path, "_date")


def run_number(path: Path) -> int:
    """Return the number of the run that added a file of the output folder."""
    return int(path.name.split("-")[1])
