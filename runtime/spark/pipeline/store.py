"""Output folder of the pipeline: its tables after the last run and after the current run.

    frames/protocol=P/date=D/      captured frames, each message once, with the segment that it came from
    late/protocol=P/date=D/        the same of messages that came after their answers
    typed/P/MESSAGE/date=D/        typed tables, `_errors` among them; all three have hour=H below on request
    answers/TABLE/protocol=P/date=D/    ``run-…`` holds rows that stay, ``open-…`` rows that the next run replaces
    state/P/ANSWER/TABLE/          what the next run needs of this one
    segments/                      every segment that was looked at
    counts/                        messages and octets by tap, time, type and finding
    manifest.json, summary.json, report.html

Any Parquet reader can read a table as a folder. `Store` returns tables as DataFrames with
documented columns and partition columns, without a Spark job: the schema is in the footer of the
newest file, where Spark stores it. Earlier files may lack columns (`Manifest.mixed`), and their
rows have nulls. `View` does the same for a run before its commit: it reads committed files without
the replaced ones, and staged files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, IntegerType, StringType, StructField, StructType

from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.pipeline.commit import Area, Run, begin, visible_files
from specwire.runtime.spark.pipeline.counts import SCHEMA, read_counts
from specwire.runtime.spark.pipeline.ledger import Ledger, read_ledger
from specwire.runtime.spark.pipeline.manifest import Manifest, read_manifest
from specwire.runtime.spark.pipeline.summary import Summary, read_summary
from specwire.runtime.spark.protocols import edition_packages, load_schemas
from specwire.runtime.spark.session.executors import literal_path

FRAMES, LATE, TYPED, ANSWERS, STATE = "frames", "late", "typed", "answers", "state"

PROTOCOL = StructField("protocol", StringType(), metadata={"comment": "what the messages were read as"})
DATE = StructField("date", DateType(), metadata={"comment": "of ts, in UTC"})
HOUR = StructField("hour", IntegerType(), metadata={"comment": "of ts, in UTC, 0 to 23"})

ROW_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Key of the schema, including comments, in the metadata of Spark's Parquet files."""


class Store:
    """Output folder after its last run. It may not exist yet."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self._kept: tuple[int, Ledger, pa.Table] = (0, Ledger(), SCHEMA.empty_table())
        self._run: Run | None = None

    @contextmanager
    def begin(self) -> Iterator[Run]:
        """Begin a run; see `specwire.runtime.spark.pipeline.commit.begin`."""
        with begin(self.out) as self._run:
            try:
                yield self._run
            finally:
                self._run = None

    @property
    def manifest(self) -> Manifest:
        """The folder's manifest, read at each access; InputError if it is invalid."""
        return read_manifest(self.out)

    @property
    def ledger(self) -> Ledger:
        """All inspected segments, read again only after a run of another process."""
        return self._keep()[0]

    @property
    def counts(self) -> pa.Table:
        """The counts of all runs, read again only after a run of another process."""
        return self._keep()[1]

    def _keep(self) -> tuple[Ledger, pa.Table]:
        run = self.manifest.run
        if self._kept[0] != run:
            self._kept = (run, read_ledger(self.out), read_counts(self.out))
        return self._kept[1:]

    def remember(self, run: int, ledger: Ledger, counts: pa.Table) -> None:
        """Cache ledger and counts after a run, so that the next run does not read them."""
        self._kept = (run, ledger, counts)

    def summary(self) -> Summary | None:
        """Return the summary of the last run; None before the first."""
        return read_summary(self.out)

    def protocols(self) -> list[str]:
        """Return the protocols that have typed tables, sorted."""
        return _folder_names(self.out / TYPED)

    def tables(self) -> list[str]:
        """Return the paths of the captured frames and of the existing typed and answer tables."""
        typed = (f"{TYPED}/{name}" for name in self.protocols())
        roots = (*typed, ANSWERS)
        found = [f"{root}/{name}" for root in roots for name in _folder_names(self.out / root)]
        return [FRAMES, *found]

    def typed(self, spark: SparkSession, protocol: str) -> dict[str, DataFrame]:
        """Return a protocol's typed tables in the order of its editions, `_errors` last.

        The result is empty if the protocol has no tables.
        """
        there = _folder_names(self.out / TYPED / protocol)
        order = dict.fromkeys(
            name for one in edition_packages(protocol) for name in load_schemas(one).SCHEMAS
        )
        others = (name for name in there if name not in order and name != ERRORS)
        names = [name for name in (*order, *others, ERRORS) if name in there]
        found = {name: self.table(spark, f"{TYPED}/{protocol}/{name}") for name in names}
        return {name: table for name, table in found.items() if table is not None}

    def state(self, spark: SparkSession, protocol: str, answer: str) -> dict[str, DataFrame] | None:
        """Return the state that an answer stored for its next step; None before the first step."""
        root = f"{STATE}/{protocol}/{answer}"
        found = {name: self.table(spark, f"{root}/{name}") for name in _folder_names(self.out / root)}
        return {name: table for name, table in found.items() if table is not None} or None

    def files(self, table: str) -> list[Path]:
        """Return the committed files of a table, sorted. They are listed once in a run."""
        return self._run.files(table) if self._run else visible_files(self.out / table)

    def newest(self, table: str) -> Path | None:
        """Return the newest file of a table, which has all its columns; None if there is no file."""
        return newest_of(self.files(table))

    def lacking(self) -> dict[str, tuple[int, int]]:
        """Return the numbers of files that may lack columns, and of all files, by mixed table."""
        mixed = {table: (self.files(table), last) for table, last in self.manifest.mixed.items()}
        return {table: (len(older(files, last)), len(files)) for table, (files, last) in mixed.items()}

    def table(self, spark: SparkSession, table: str) -> DataFrame | None:
        """Return a table by its path in the folder, such as ``answers/files``; None if it has no file."""
        return read_files(spark, self.out / table, self.files(table))


def read_files(
    spark: SparkSession, root: Path, files: Iterable[Path], columns: StructType | None = None
) -> DataFrame | None:
    """Return files of one table, from partition folders below `root`; None without files.

    The columns are by default those of the newest file. Columns that a file lacks are null, and
    narrower types are converted. The partition columns come last.
    """
    paths = list(files)
    if not paths:
        return None
    columns = columns or table_columns(root, paths)
    reader = spark.read.schema(columns).option("basePath", str(root.resolve()))
    return reader.parquet(*map(literal_path, paths))


def table_columns(root: Path, files: Iterable[Path]) -> StructType:
    """Return the columns of the newest file, and the partition columns in its path below `root`."""
    newest = max(files, key=lambda path: path.name)
    return StructType([*stored_schema(newest), *partition_fields(newest.relative_to(root))])


def newest_of(files: Iterable[Path]) -> Path | None:
    """Return the file of the latest run; None without files."""
    return max(files, key=lambda path: path.name, default=None)


def older(files: Iterable[Path], last: int) -> list[Path]:
    """Return the files of the runs up to number `last`."""
    return [path for path in files if run_number(path) <= last]


def stored_schema(path: Path) -> StructType:
    """Return the Spark schema with which a Parquet file was written."""
    metadata = pq.read_metadata(path).metadata or {}
    return StructType.fromJson(msgspec.json.decode(metadata[ROW_SCHEMA]))


def partition_fields(path: Path) -> list[StructField]:
    """Return the partition columns in the path of a file below its table's folder."""
    names = [part.partition("=")[0] for part in path.parts[:-1]]
    known = {field.name: field for field in (PROTOCOL, DATE, HOUR)}
    fields = [(name, known[name.removeprefix("_")]) for name in names]
    return [StructField(name, field.dataType, True, field.metadata) for name, field in fields]


def _folder_names(folder: Path) -> list[str]:
    """Return the folders that hold a table, including `_errors`, which other readers ignore."""
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")


COMPARED = 100_000
"""Maximum rows of a table and date to compare with earlier ones; more count as changed."""


class Choice(NamedTuple):
    """Choice of files: of the runs after `since`, and of one protocol, some dates and one area if given."""

    since: int = 0
    protocol: str | None = None
    dates: Collection[str] | None = None
    area: Area | None = None


EVERYTHING = Choice()


class View:
    """Tables as the current run leaves them."""

    def __init__(self, spark: SparkSession, store: Store, run: Run) -> None:
        self._spark = spark
        self._store = store
        self._run = run

    def table(self, table: str, choice: Choice = EVERYTHING) -> DataFrame | None:
        """Return the rows of `files`, in a table without rows if there are none.

        Return None if the table has no file at all.
        """
        there = {self._run.folder(area, table): self._run.staged(table, area) for area in Area}
        there[self._store.out / table] = self._run.kept(table)
        # The first files have all columns: earlier runs may have left files that lack some.
        first = next((root for root, paths in there.items() if paths), None)
        if first is None:
            return None
        columns = table_columns(first, there[first])
        chosen = self.files(table, choice)
        parts = (
            read_files(self._spark, root, [path for path in chosen if path.is_relative_to(root)], columns)
            for root in there
        )
        if found := [part for part in parts if part is not None]:
            return reduce(DataFrame.unionByName, found)
        none = read_files(self._spark, first, there[first][:1], columns)
        return none if none is None else none.where(F.lit(False))

    def files(self, table: str, choice: Choice = EVERYTHING) -> list[Path]:
        """Return the files of a table that have rows."""
        since, protocol, dates, area = choice

        def chosen(path: Path) -> bool:
            return (protocol is None or partition(path, "protocol") == protocol) and (
                dates is None or partition_date(path) in dates
            )

        areas = [*Area] if area is None else [area]
        # A table without rows is omitted from the plan: its file is not read.
        had = self._run.kept(table) if self._run.before.rows.get(table) else []
        there = [path for path in had if run_number(path) > since and path.name.split("-")[0] in areas]
        staged = (path for area in areas for path in self._run.staged(table, area))
        return [
            *filter(chosen, there),
            *(path for path in staged if chosen(path) and pq.read_metadata(path).num_rows),
        ]

    def changes(self, table: str) -> bool:
        """Return whether the run adds or removes files of a table."""
        root = self._store.out / table
        return any(path.is_relative_to(root) for path in self._run.replaced) or any(
            self._run.staged(table, area) for area in Area
        )

    def changed_files(self, table: str, protocol: str) -> list[Path]:
        """Return the files that add or remove rows of a protocol in a table in this run.

        The files of a date whose rows are replaced by the same rows are omitted. Otherwise every
        run would roll up the day of a request that never ends.
        """
        gone = [path for path in self._run.replaced if path.is_relative_to(self._store.out / table)]
        come = [path for area in Area for path in visible_files(self._run.folder(area, table))]
        found: dict[str, tuple[list[Path], list[Path]]] = {}
        for paths, side in ((gone, 0), (come, 1)):
            for path in paths:
                if partition(path, "protocol") in ("", protocol):
                    found.setdefault(partition_date(path), ([], []))[side].append(path)
        return [path for old, new in found.values() if not _same_rows(old, new) for path in (*old, *new)]


def _same_rows(ours: list[Path], theirs: list[Path]) -> bool:
    """Return whether files have the same rows in any order; False if there are too many."""
    numbers = {sum(pq.read_metadata(path).num_rows for path in paths) for paths in (ours, theirs)}
    if len(numbers) > 1 or max(numbers) > COMPARED:
        return False
    return _count_rows(ours) == _count_rows(theirs)


def _count_rows(paths: list[Path]) -> Counter[str]:
    # As texts: lists and structures are not hashable, and NaN differs from itself.
    rows = (row for path in paths for row in pq.ParquetFile(path).read().to_pylist())
    return Counter(repr(sorted(row.items())) for row in rows)


def partition(path: Path, name: str) -> str:
    """Return the value of a partition column in a file's path, as Spark wrote it; empty if none.

    The folder nearest to the file counts, because the output folder may be in a partition of
    another table.
    """
    return next((part.partition("=")[2] for part in reversed(path.parts) if part.startswith(f"{name}=")), "")


def partition_date(path: Path) -> str:
    """Return the date in a file's path, from the column ``date`` or ``_date``."""
    return partition(path, "date") or partition(path, "_date")


def run_number(path: Path) -> int:
    """Return the number of the run that added a file of the output folder."""
    return int(path.name.split("-")[1])
