"""Many small files of a partition become few: what a run leaves behind it in the tables of the folder.

A run adds a file to each partition that it has rows for, and a stream runs each second. Left alone they were
86,400 a day and message type, and every reader of a day would open them all. So a run that brings the answers up to
date writes the rows of small files anew, into one that takes their place when the run commits.

Files are merged with those of about their size, `MERGED_AFTER` of a tier at a time: each row is written again once a
tier, and a partition has at most `MERGED_AFTER` files of each tier for long, beside those of `LARGE_OCTETS` and more.

The rows go from file to file through Arrow, a few megabytes at a time, without Spark. Merged are files that have the
very schema of their table's newest one: readers take a table's columns from that, so it must not be made to look older.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.spark.pipeline.commit import Area, Run, visible_files
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA
from specwire.runtime.spark.pipeline.writing import open_table

MERGED_AFTER = 32
"""Files of one tier in a partition that become one."""

TIERS_OCTETS = (64 << 10, 1 << 20, 16 << 20, 128 << 20)
"""What the files of each tier are smaller than; those beyond the last stay as they are."""

RUN_OCTETS = 1 << 30
"""Octets of files that one run writes anew; what is left waits for the next."""

GROUP_OCTETS = 32 << 20
"""Octets that are gathered for one group of rows, as Arrow holds them."""

BATCH_ROWS = 1024
"""Rows that are read at once; Arrow holds a value as often as it occurs, however often the file has it."""


def merge_small(run: Run, tables: Iterable[str]) -> None:
    """Stage merged files for tables, given by their paths in the output folder, and have the small ones removed.

    Files that hold open rows, or that the run replaces, are left out. Every file that is there before the run must
    be known to the answers, because a merged file has the number of this run.
    """
    left = RUN_OCTETS
    for table in tables:
        for folder, files in _find_crowded(run, table):
            octets = sum(path.stat().st_size for path in files)
            if octets > left:
                return
            left -= octets
            _merge(run, folder, files)


def _find_crowded(run: Run, table: str) -> Iterator[tuple[Path, list[Path]]]:
    """Give the files of each tier of which a partition has too many, with the partition's folder in the table."""
    there = [path for path in visible_files(run.out / table) if path not in run.replaced]
    tiers: dict[tuple[Path, int], list[Path]] = {}
    for path in there:
        if path.name.startswith(f"{Area.ADDED}-"):
            tiers.setdefault((path.parent, _tier(path)), []).append(path)
    crowded = {key: files for key, files in tiers.items() if len(files) >= MERGED_AFTER}
    if not crowded:
        return
    schema = _schema(
        max([*there, *run.staged(table)], key=lambda path: (run.staging in path.parents, path.name))
    )
    for (parent, tier), files in sorted(crowded.items()):
        alike = [path for path in files if tier < len(TIERS_OCTETS) and _schema(path).equals(schema, True)]
        if len(alike) >= MERGED_AFTER:
            yield parent.relative_to(run.out), alike


def _tier(path: Path) -> int:
    size = path.stat().st_size
    return sum(size >= octets for octets in TIERS_OCTETS)


def _schema(path: Path) -> pa.Schema:
    """The columns of a file, and of what is said of it what Spark says of the columns, whoever wrote it down."""
    schema = pq.read_schema(path)
    said = msgspec.json.decode((schema.metadata or {}).get(ROW_SCHEMA, b"null"))
    return schema.with_metadata({ROW_SCHEMA: msgspec.json.encode(said, order="sorted")})


def _merge(run: Run, folder: Path, files: Sequence[Path]) -> None:
    """Stage the rows of files as one in their partition's folder."""
    place = run.folder(Area.ADDED, folder.as_posix())
    place.mkdir(parents=True, exist_ok=True)
    target = place / f"merged-{len(list(place.glob('merged-*'))):04d}.parquet"
    schema = pq.read_schema(files[0])
    with open_table(target, schema, schema.metadata or {}) as writer:
        for rows in _gather(files):
            writer.write_table(rows, row_group_size=rows.num_rows)
    run.replace(files)


def _gather(files: Iterable[Path]) -> Iterator[pa.Table]:
    """Give the rows of files in parts that are worth a group of rows each."""
    held: list[pa.RecordBatch] = []
    octets = 0
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS):
                held.append(batch)
                octets += batch.nbytes
                if octets >= GROUP_OCTETS:
                    yield pa.Table.from_batches(held)
                    held, octets = [], 0
    if held:
        yield pa.Table.from_batches(held)
