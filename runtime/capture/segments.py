"""Capture segments as files: their columns, how one is written, and how to tell that a file is one.

A capture is a folder of Parquet files. A reader must never see half of one, so a segment is written under a
name that starts with a full stop (Spark and Arrow pass over such files), synced, and renamed in its folder;
then the folder is synced. A process that dies in between leaves a hidden file and nothing else.

This module imports pyarrow; peers must not import it (they use `specwire.runtime.capture.tap`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import SUFFIX, find_replaced, is_visible

_TYPES: list[tuple[str, pa.DataType]] = [
    ("ts", pa.timestamp("us", tz="UTC")),
    ("mono", pa.int64()),
    ("seq", pa.int64()),
    ("protocol", pa.string()),
    ("tap", pa.string()),
    ("conversation", pa.string()),
    ("sender", pa.string()),
    ("peer", pa.string()),
    ("frames", pa.list_(pa.binary())),
]

COLUMNS = pa.schema(_TYPES)

METADATA_PREFIX = "specwire."


class Source(msgspec.Struct, frozen=True):
    """Which tap a segment comes from, and what it wrote of payloads (see `policy`); kept in the file's metadata."""

    tap: str
    protocol: str
    edition: str
    payload: str = "keep"


class Segment(msgspec.Struct, frozen=True):
    """What the footer of one segment says.

    Attributes:
        path: the file.
        source: the tap, or None where the metadata was lost (a file rewritten by another tool).
        dropped: messages that this tap had dropped when the segment was written.
        rows: messages in the file.
    """

    path: Path
    source: Source | None
    dropped: int
    rows: int


class Unsound(msgspec.Struct, frozen=True):
    """A file that should be a segment and is none; `reason` is one sentence that names it."""

    path: Path
    reason: str


class Survey(msgspec.Struct, frozen=True):
    """The files of a capture, told apart by what their footers say, each in the order of the names.

    `replaced` are files that are not read, because a compacted segment holds what they hold (see `names`).
    """

    sound: tuple[Segment, ...]
    unsound: tuple[Unsound, ...]
    replaced: tuple[Path, ...] = ()


def build_table(rows: Sequence[Captured], source: Source, dropped: int) -> pa.Table:
    """Return the rows in the columns of a segment, with the metadata."""
    values: dict[str, list[object]] = {
        "ts": [row.ts for row in rows],
        "mono": [row.mono for row in rows],
        "seq": [row.seq for row in rows],
        "protocol": [source.protocol] * len(rows),
        "tap": [source.tap] * len(rows),
        "conversation": [row.conversation for row in rows],
        "sender": [row.sender for row in rows],
        "peer": [row.peer for row in rows],
        "frames": [list(row.frames) for row in rows],
    }
    return pa.table(values, schema=stating_schema(source, dropped))


def stating_schema(source: Source, dropped: int) -> pa.Schema:
    """Return the columns with what a segment's metadata says."""
    metadata = {**msgspec.to_builtins(source), "dropped": str(dropped)}
    return COLUMNS.with_metadata({METADATA_PREFIX + key: text for key, text in metadata.items()})


def write_segment(folder: Path, name: str, table: pa.Table) -> Path:
    """Write a table so that `name` either does not exist or is whole and on the disk; OSError if not."""
    with placing(folder, name) as file:
        # Dictionaries only cost time here: zstd finds the repetition, frames have little of it.
        pq.write_table(table, file, compression="zstd", compression_level=1, use_dictionary=False)
    return folder / name


@contextmanager
def placing(folder: Path, name: str) -> Iterator[IO[bytes]]:
    """Give a file to write to, and put it in its place when it is whole and on the disk; nothing stays where it fails."""
    aside = folder / f".{name}.tmp"
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.rename(folder / name)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def find_segments(folder: Path) -> list[Segment]:
    """Return the segments of a capture in the order of their names, each one's footer checked.

    Raises CaptureError for a folder that is missing or holds no segment, and for the first file that ends in
    ``.parquet`` and is not a whole segment. Hidden files and files of other kinds are passed over.
    """
    return [read_footer(path) for path in list_files(folder)]


def survey_segments(folder: Path, progress: Callable[[int, int], None] | None = None) -> Survey:
    """Return the sound segments of a capture, and of each other file that ends in ``.parquet`` what is wrong.

    `progress` is told how many files were looked at, of how many. Raises CaptureError for a folder that is missing or holds no such file at all.
    """
    return survey_files(*list_all(folder), progress)


def survey_files(
    paths: Sequence[Path], replaced: Sequence[Path] = (), progress: Callable[[int, int], None] | None = None
) -> Survey:
    """Return what `survey_segments` does, of files that the caller has listed."""
    sound: list[Segment] = []
    unsound: list[Unsound] = []
    for done, path in enumerate(paths):
        if progress is not None:
            progress(done, len(paths))
        try:
            sound.append(read_footer(path))
        except CaptureError as error:
            unsound.append(Unsound(path, str(error)))
    return Survey(tuple(sound), tuple(unsound), tuple(replaced))


def list_files(folder: Path) -> list[Path]:
    """Return the files of a capture that should be segments, in the order of their names, unread.

    Those that a compacted segment stands for are passed over. Raises CaptureError for a folder that is missing or holds
    none.
    """
    return list_all(folder)[0]


def list_all(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return what `list_files` does, and the files that compacted segments stand for."""
    if folder.exists() and not folder.is_dir():
        raise CaptureError(f"{folder}: a file; name the folder that holds the capture's segments")
    if not folder.is_dir():
        raise CaptureError(f"{folder}: there is no such capture folder")
    try:
        names = sorted(name for name in os.listdir(folder) if is_visible(name))
    except OSError as error:
        raise CaptureError(f"{folder}: the capture cannot be read: {error.strerror}") from error
    if not names:
        raise CaptureError(f"{folder}: the capture folder holds no segments (no *{SUFFIX} files)")
    replaced = find_replaced(names)
    return (
        [folder / name for name in names if name not in replaced],
        [folder / name for name in names if name in replaced],
    )


def read_footer(path: Path) -> Segment:
    """Return what a segment's footer says; CaptureError if the file is cut off or is not a segment."""
    if not path.is_file() and path.exists():  # a pipe would have us wait
        raise CaptureError(f"{path}: not a file, so not a segment")
    try:
        footer = pq.read_metadata(path)
        schema = footer.schema.to_arrow_schema()
    except OSError as error:
        raise CaptureError(f"{path}: the segment cannot be read: {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise CaptureError(f"{path}: not a whole Parquet file, it was cut off or damaged") from error
    _check_columns(path, schema)
    metadata = {key.decode(): text.decode(errors="replace") for key, text in (footer.metadata or {}).items()}
    known = {key.removeprefix(METADATA_PREFIX): text for key, text in metadata.items()}
    return Segment(path, _read_source(path, known), _read_dropped(path, known), footer.num_rows)


def _read_source(path: Path, metadata: Mapping[str, str]) -> Source | None:
    if "tap" not in metadata:
        return None
    try:
        stated = metadata["tap"], metadata["protocol"], metadata["edition"]
        return Source(*stated, metadata.get("payload", "keep"))
    except KeyError as error:
        raise CaptureError(f"{path}: not a capture segment, its metadata has no {error.args[0]}") from error


def _read_dropped(path: Path, metadata: Mapping[str, str]) -> int:
    try:
        return int(metadata.get("dropped", "0"))
    except ValueError as error:
        raise CaptureError(
            f"{path}: not a capture segment, its metadata has no number of dropped messages"
        ) from error


def _check_columns(path: Path, schema: pa.Schema) -> None:
    for column in COLUMNS:
        at = schema.get_field_index(column.name)
        if at < 0:
            raise CaptureError(f"{path}: not a capture segment, it has no column {column.name!r}")
        found = schema.field(at).type
        if found != column.type:
            raise CaptureError(
                f"{path}: not a capture segment, column {column.name!r} is {found} instead of {column.type}"
            )


def list_protocols(segments: Sequence[Segment]) -> list[str]:
    """Return the protocols whose messages the segments hold, sorted, as the rows state them.

    Raises CaptureError for a segment with a row that states none.
    """
    found: set[str] = set()
    for segment in segments:
        stated = _protocols_of(segment.path)
        if None in stated:
            raise CaptureError(
                f"{segment.path}: a message in it states no protocol; name one with --protocol"
            )
        found.update(name for name in stated if name is not None)
    return sorted(found)


def _protocols_of(path: Path) -> set[str | None]:
    """What stands in the protocol column: from the statistics where they settle it, else from the rows."""
    footer = pq.read_metadata(path)
    at = footer.schema.to_arrow_schema().get_field_index("protocol")
    found: set[str | None] = set()
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(at).statistics
        if (
            statistics is None
            or not statistics.has_min_max
            or statistics.null_count
            or statistics.min != statistics.max
        ):
            return set(pq.read_table(path, columns=["protocol"])["protocol"].unique().to_pylist())
        found.add(str(statistics.min))
    return found


def read_segments(folder: Path) -> pa.Table:
    """Return all messages of a capture as one Arrow table, in the order of tap and `seq`."""
    tables = [pq.read_table(segment.path).cast(COLUMNS) for segment in find_segments(folder)]
    return pa.concat_tables(tables).sort_by([("tap", "ascending"), ("seq", "ascending")])
