"""Merging of many small files of a partition into one.

A run adds a file to each partition for which it has rows, and a stream runs every second. Without
merging there would be 86,400 files a day for each message type, and every reader of a day would
open all of them. A run that updates the answers therefore copies the rows of small files to one
file, which replaces them when the run commits.

Files are merged with files of similar size, `MERGED_AFTER` of a tier at a time. Each row is thus
written once a tier, and a partition keeps at most `MERGED_AFTER` files of each tier, besides the
files above the last tier.

Arrow copies the rows, a few megabytes at a time, without Spark. Only files with exactly the schema
of the newest file of their table are merged: readers take a table's columns from the newest file,
so a merged file must not have an older schema.

A run may bring a new column to a table, or a wider type. Then the earlier files of the table lack
columns, and the table is *mixed*. Many engines take the columns of a table from its first file, and
would ignore the new ones. So runs write the earlier files again, in the order of their paths. A run
writes only a limited amount, so that its cost does not depend on the size of the folder. The
manifest stores which tables are mixed, so no run looks for them in the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import VariantType

from specwire.runtime.spark.pipeline.commit import Area, Run
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA, newest_of, older, stored_schema
from specwire.runtime.spark.pipeline.writing import open_table

MERGED_AFTER = 32
"""Number of files of one tier in a partition that are merged into one."""

TIERS_OCTETS = (64 << 10, 1 << 20, 16 << 20, 128 << 20)
"""Upper size limit of each tier, exclusive. Larger files are not merged."""

MERGED_OCTETS = 1 << 30
"""Octets of merged files after which a run leaves the other groups to the next run."""

REWRITTEN_OCTETS = 256 << 20
"""Octets of mixed tables after which a run leaves the other files to the next one: a few seconds."""

LEAST_OCTETS = 128 << 10
"""Octets that a smaller file counts, because opening and syncing a file takes as long."""

GROUP_OCTETS = 32 << 20
"""Octets, in Arrow's representation, that are collected for one row group."""

BATCH_ROWS = 1024
"""Rows that are read at once. Arrow repeats a value for each row; a file may store it once."""


def find_mixed(run: Run, tables: Iterable[str]) -> dict[str, int]:
    """Return the mixed tables after a run that has staged its rows, as in the manifest."""
    mixed = dict(run.before.mixed)
    for table in tables:
        earlier, new = newest_of(run.kept(table)), newest_of(run.staged(table))
        if earlier and new and _columns(earlier) != _columns(new):
            mixed[table] = run.before.run
    return mixed


def rewrite(run: Run, mixed: Mapping[str, int], octets: int = REWRITTEN_OCTETS) -> dict[str, int]:
    """Stage files of mixed tables again with all columns; return the tables that are still mixed.

    The run stops when the files that it wrote reach `octets`, so it writes one at least. Tables with
    few files come first.
    As for `merge_small`, the answers must already include every earlier file.
    """
    left = dict(mixed)
    pending = {table: older(run.kept(table), last) for table, last in mixed.items()}
    for table, files in sorted(pending.items(), key=lambda item: len(item[1])):
        newest = newest_of(run.staged(table)) or newest_of(run.kept(table))
        for number, path in enumerate(files):
            if octets <= 0:
                return left
            octets -= max(path.stat().st_size, LEAST_OCTETS)
            place = run.folder(Area.ADDED, path.parent.relative_to(run.out).as_posix())
            _copy(run, [path], place / f"rewritten-{number:06d}.parquet", _complete(path, newest or path))
        del left[table]
    return left


def _columns(path: Path) -> list[tuple[str, str, bool]]:
    """Return the columns of a file as names, types and nullability, without comments."""
    return [(field.name, field.dataType.simpleString(), field.nullable) for field in stored_schema(path)]


def _complete(path: Path, newest: Path) -> pa.Schema:
    """Return the columns of the newest file for the rows of a file.

    A column is nullable if it is so in this file, or missing. A Variant keeps the layout that it has
    in this file: version 0.1 chose it by the rows, and a cast would lose values.
    """
    own = {field.name: field for field in pq.read_schema(path)}
    variants = {field.name for field in stored_schema(path) if isinstance(field.dataType, VariantType)}
    columns = pq.read_schema(newest)
    for at, field in enumerate(columns):
        nullable = field.name not in own or own[field.name].nullable or field.nullable
        kind = own[field.name].type if field.name in variants else field.type
        columns = columns.set(at, pa.field(field.name, kind, nullable))
    return columns


def merge_small(run: Run, tables: Iterable[str], octets: int = MERGED_OCTETS) -> None:
    """Stage merged files for tables, and mark the small ones as replaced.

    The run stops when the files that it merged reach `octets`, so it merges one group at least.

    Tables are given by their paths in the output folder. Files with open rows and files that the
    run replaces are skipped. The answers must already include every earlier file, because a merged
    file has the number of this run.
    """
    for table in tables:
        for folder, files in _find_crowded(run, table):
            if octets <= 0:
                return
            octets -= sum(path.stat().st_size for path in files)
            _merge(run, folder, files)


def _find_crowded(run: Run, table: str) -> Iterator[tuple[Path, list[Path]]]:
    """Yield the files of each tier of which a partition has too many, with its folder."""
    there = run.kept(table)
    partitions: dict[Path, list[Path]] = {}
    for path in there:
        if path.name.startswith(f"{Area.ADDED}-"):
            partitions.setdefault(path.parent, []).append(path)
    crowded = {folder: files for folder, files in partitions.items() if len(files) >= MERGED_AFTER}
    if not crowded:
        return
    newest = newest_of(run.staged(table)) or newest_of(there)
    assert newest is not None
    schema = _schema(newest)
    for folder, files in crowded.items():
        tiers: list[list[Path]] = [[] for _ in (*TIERS_OCTETS, "larger")]
        for path in files:
            size = path.stat().st_size
            tiers[sum(size >= octets for octets in TIERS_OCTETS)].append(path)
        for tier in tiers[:-1]:
            if len(tier) < MERGED_AFTER:
                continue
            alike = [path for path in tier if _schema(path).equals(schema, True)]
            if len(alike) >= MERGED_AFTER:
                yield folder.relative_to(run.out), alike


def _schema(path: Path) -> pa.Schema:
    """Return the schema of a file with Spark's row schema, in canonical form, as only metadata."""
    schema = pq.read_schema(path)
    said = msgspec.json.decode((schema.metadata or {}).get(ROW_SCHEMA, b"null"))
    return schema.with_metadata({ROW_SCHEMA: msgspec.json.encode(said, order="sorted")})


def _merge(run: Run, folder: Path, files: Sequence[Path]) -> None:
    """Stage the rows of files as one file in their partition's folder."""
    place = run.folder(Area.ADDED, folder.as_posix())
    target = place / f"merged-{len(list(place.glob('merged-*'))):04d}.parquet"
    _copy(run, files, target, pq.read_schema(files[0]))


def _copy(run: Run, files: Sequence[Path], target: Path, columns: pa.Schema) -> None:
    """Stage the rows of files as one file with these columns, which replaces them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_table(target, columns, columns.metadata or {}) as writer:
        for rows in _gather(files):
            writer.write_table(_in_columns(rows, columns), row_group_size=rows.num_rows)
    run.replace(files)


def _in_columns(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return rows in these columns; columns that they lack are null."""
    there = set(rows.column_names)
    values = [
        rows[field.name].cast(field.type) if field.name in there else pa.nulls(rows.num_rows, field.type)
        for field in columns
    ]
    return pa.table(values, schema=columns)


def _gather(files: Iterable[Path]) -> Iterator[pa.Table]:
    """Yield the rows of files in parts, one for each row group."""
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
