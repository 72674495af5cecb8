"""Small files of a partition become few, and no row of them is lost or comes twice.

Runs that merge and are killed are in `test_histories`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specwire.runtime.spark.pipeline import merging
from specwire.runtime.spark.pipeline.commit import Area, begin, visible_files
from specwire.runtime.spark.pipeline.manifest import read_manifest
from specwire.runtime.spark.pipeline.merging import merge_small, write_again
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA
from specwire.runtime.spark.pipeline.writing import open_table

MANY = 4
TABLE = "typed/filemq/Nom"
DAY, NEXT_DAY = "2026-01-02", "2026-01-03"


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge a few files already."""
    monkeypatch.setattr(merging, "MERGED_AFTER", MANY)


def add(
    out: Path, *rows: int, day: str = DAY, area: Area = Area.ADDED, stated: bytes = b"{}", merge: bool = True
) -> None:
    """Have a run add a file of a few rows, and merge what is too many."""
    with begin(out) as run:
        folder = run.folder(area, TABLE) / f"date={day}"
        folder.mkdir(parents=True)
        columns = {"row": pa.array(rows, pa.int64()), "octets": [bytes([row % 256]) * 5 for row in rows]}
        table = pa.table(columns)
        with open_table(folder / "part-0.parquet", table.schema, {ROW_SCHEMA: stated}) as writer:
            writer.write_table(table)
        if merge:
            merge_small(run, [TABLE])
        run.commit(run.before)


def rows_of(out: Path, day: str = DAY) -> list[tuple[int, bytes]]:
    """Return the rows that a reader of a partition sees."""
    found: list[tuple[int, bytes]] = []
    for path in visible_files(out / TABLE / f"date={day}"):
        found += ((row["row"], row["octets"]) for row in pq.read_table(path, partitioning=None).to_pylist())
    return sorted(found)


def wanted(count: int) -> list[tuple[int, bytes]]:
    """Return the rows that so many runs have added, one each."""
    return [(row, bytes([row % 256]) * 5) for row in range(count)]


def test_many_runs_leave_few_files(tmp_path: Path) -> None:
    """Of three times as many runs as are merged, and every row is there once; each partition by itself."""
    out = tmp_path / "out"
    runs = 3 * MANY
    for number in range(runs):
        add(out, number)
        assert len(visible_files(out / TABLE)) <= MANY + 1
    add(out, 7, day=NEXT_DAY)
    assert rows_of(out) == wanted(runs)
    assert len(visible_files(out / TABLE / f"date={NEXT_DAY}")) == 1
    assert read_manifest(out).rows == {TABLE: runs + 1}
    schemas = {path: pq.read_schema(path) for path in visible_files(out / TABLE)}
    assert {schema.metadata[ROW_SCHEMA] for schema in schemas.values()} == {b"{}"}


def test_open_rows_and_other_tiers_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the next run replaces is not merged, nor a large file with small ones."""
    monkeypatch.setattr(merging, "TIERS_OCTETS", (2000, 100_000))
    out = tmp_path / "out"
    add(out, *range(1000), merge=False)
    (large,) = visible_files(out / TABLE)
    assert large.stat().st_size > 2000
    for number in range(MANY):
        add(out, number, area=Area.OPEN)
    assert len(visible_files(out / TABLE)) == MANY + 1
    for number in range(MANY + 1):
        add(out, number)
    names = [path.name for path in visible_files(out / TABLE)]
    assert large.name in names
    assert sum(name.startswith("open-") for name in names) == MANY
    assert sum(name.startswith("run-") for name in names) == 3, (
        "the large, the merged, and that of the last run"
    )


def test_files_of_an_older_schema_are_left_alone(tmp_path: Path) -> None:
    """Merged, they would be the newest file, of which readers take the columns."""
    out = tmp_path / "out"
    for number in range(MANY + 3):
        add(out, number, merge=False)
    add(out, 99, stated=b'{"newer": true}')
    files = visible_files(out / TABLE)
    assert len(files) == MANY + 4
    newest = max(files, key=lambda path: path.name)
    assert pq.read_schema(newest).metadata[ROW_SCHEMA] == b'{"newer": true}'


def test_a_run_merges_so_much_and_leaves_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that was left alone for long does not make one run endless."""
    out = tmp_path / "out"
    for number in range(MANY):
        add(out, number, merge=False)
    with monkeypatch.context() as patched:
        patched.setattr(merging, "RUN_OCTETS", 10)
        add(out, MANY)
    assert len(visible_files(out / TABLE)) == MANY + 1
    add(out, MANY + 1)
    assert len(visible_files(out / TABLE)) == 2
    assert rows_of(out) == wanted(MANY + 2)


def test_rows_are_gathered_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small what is held at once, all rows arrive."""
    monkeypatch.setattr(merging, "GROUP_OCTETS", 1)
    monkeypatch.setattr(merging, "BATCH_ROWS", 1)
    out = tmp_path / "out"
    for number in range(MANY):
        add(out, 2 * number, 2 * number + 1, merge=False)
    add(out, 2 * MANY)
    merged = max(visible_files(out / TABLE), key=lambda path: pq.read_metadata(path).num_rows)
    assert pq.read_metadata(merged).num_row_groups == 2 * MANY
    assert rows_of(out) == wanted(2 * MANY + 1)


def add_columns(out: Path, day: str, columns: dict[str, Any], since: int) -> None:
    """Have a run add a file, and write again the files whose columns differ from it."""
    with begin(out) as run:
        folder = run.folder(Area.ADDED, TABLE) / f"date={day}"
        folder.mkdir(parents=True)
        with open_table(folder / "part-0.parquet", pa.table(columns).schema, {ROW_SCHEMA: b"{}"}) as writer:
            writer.write_table(pa.table(columns))
        write_again(run, [TABLE], since)
        run.commit(run.before)


def test_a_new_column_is_written_into_earlier_files(tmp_path: Path) -> None:
    """And a wider type; a run that brings none writes no earlier file."""
    out = tmp_path / "out"
    for number, day in enumerate((DAY, DAY, NEXT_DAY)):
        add_columns(out, day, {"row": pa.array([number], pa.int32())}, since=number)
    assert [path.name for path in visible_files(out / TABLE)] == [
        "run-000001-0000.parquet",
        "run-000002-0000.parquet",
        "run-000003-0000.parquet",
    ]
    more = {"row": pa.array([2**40]), "volume": pa.array([500])}
    add_columns(out, NEXT_DAY, more, since=3)
    files = visible_files(out / TABLE)
    assert {str(pq.ParquetFile(file).schema).partition("\n")[2] for file in files} == {
        str(pq.ParquetFile(files[-1]).schema).partition("\n")[2]
    }
    assert [path.name[:10] for path in files] == ["run-000004"] * 4
    rows = sorted(
        tuple(row.values()) for file in files for row in pq.read_table(file, partitioning=None).to_pylist()
    )
    assert rows == [(0, None), (1, None), (2, None), (2**40, 500)]
    assert read_manifest(out).rows == {TABLE: 4}


def test_runs_that_left_files_as_they_are(tmp_path: Path) -> None:
    """Their files are looked at by the next one that may write again: here those since run 1."""
    out = tmp_path / "out"
    old, new = {"row": pa.array([1])}, {"row": pa.array([2]), "volume": pa.array([500])}
    add_columns(out, DAY, old, since=0)
    with begin(out) as run:
        folder = run.folder(Area.ADDED, TABLE) / f"date={DAY}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table(new), folder / "part-0.parquet")
        run.commit(run.before)
    assert len({pq.read_schema(file) for file in visible_files(out / TABLE)}) == 2
    add_columns(out, NEXT_DAY, new, since=1)
    assert {tuple(pq.read_schema(file).names) for file in visible_files(out / TABLE)} == {("row", "volume")}
