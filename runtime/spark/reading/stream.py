"""Stream over a growing capture folder: the choice of the next segments, and Spark's reader.

`FolderStream` chooses the next files on the driver. Tasks read them with a function of the caller,
which yields decoded messages (`specwire.runtime.spark.reading.source`) or the columns that alerts
need. Its offsets are positions, so it needs no log besides Spark's checkpoint.

Answers carry state from one segment of a tap to the next, so a tap's segments are read in the order
of their numbers. A capture that is copied from another machine may grow in another order, and a
file that is being copied is incomplete. So a segment is held back

- while an earlier one of its tap is missing, for at most `gap_s` after it appeared. If the earlier
  one appears later, it is read then;
- while it is incomplete (Parquet has its footer at the end), for at most `settle_s` after its last
  change. Then the reader reports it as damaged. If it becomes complete later, it is read again.

No file is skipped for its age.

Spark's own file source is not used, for four reasons. One truncated file ends its query. It ignores
files older than `maxFileAge`. It reads a tap's segments in the order of their changes. Its list of
known files grows without bound.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.names import find_replaced, is_compacted, is_visible, read_name
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.reading.position import Position

MAGIC = b"PAR1"
"""Last octets of a whole Parquet file, after the length of its footer."""


class SegmentPart(msgspec.Struct, frozen=True):
    """Messages of one segment that a batch reads.

    Attributes:
        name: the file.
        after: read only messages with a greater `seq`; None if the messages read before are
            unknown.
        upto: read only messages with this `seq` or a smaller one; None for all.
    """

    name: str
    after: int | None = -1
    upto: int | None = None


class NewFile(msgspec.Struct, frozen=True):
    """File of the folder that was not read yet.

    Attributes:
        changed_s: the time when it appeared or changed in the folder, in seconds since 1970.
        complete: whether it has the end of a Parquet file.
    """

    name: str
    changed_s: float
    octets: int
    complete: bool


class StreamOptions(msgspec.Struct, frozen=True):
    """Options of a stream: how long segments are held back, and how much a batch reads.

    Attributes:
        gap_s: time to wait for an earlier segment of a tap, in seconds.
        settle_s: time to wait for the rest of an incomplete file, in seconds.
        segments: maximum number of files in a batch.
        octets: maximum size of the files in a batch; a larger file is a batch of one.
    """

    gap_s: Annotated[float, msgspec.Meta(ge=0)] = 10.0
    settle_s: Annotated[float, msgspec.Meta(ge=0)] = 5.0
    segments: Annotated[int, msgspec.Meta(ge=1)] = 256
    octets: Annotated[int, msgspec.Meta(ge=1)] = 256 << 20


def list_names(folder: Path) -> list[str]:
    """Return the names of all segments in a folder, sorted; raise CaptureError if it is unreadable.

    Segments that a compacted segment replaces are skipped.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if is_visible(entry.name) and entry.is_file())
    except OSError as error:
        raise CaptureError(f"{folder}: the capture cannot be read: {error.strerror}") from error
    replaced = find_replaced(names)
    return [name for name in names if name not in replaced]


def find_new_files(folder: Path, names: Iterable[str]) -> list[NewFile]:
    """Return size, time and state of each file, except files that were removed."""
    return [found for name in names if (found := _find_new_file(folder / name)) is not None]


def _find_new_file(path: Path) -> NewFile | None:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            file.seek(-min(8, status.st_size), os.SEEK_END)
            tail = file.read()
    except FileNotFoundError:
        return None
    except OSError:
        return NewFile(path.name, 0.0, 0, complete=True)  # The task that reads it reports the error.
    footer = int.from_bytes(tail[:4], "little")
    complete = len(tail) == 8 and tail[4:] == MAGIC and footer + 12 <= status.st_size
    return NewFile(path.name, status.st_ctime, status.st_size, complete)


def choose_files(files: Sequence[NewFile], read: Position, options: StreamOptions, now_s: float) -> list[str]:
    """Return the names of the next batch, in order for each tap, and the oldest first.

    `read` is what was read before; `now_s` is in seconds since 1970.
    """
    chosen: list[str] = []
    octets = 0
    for _, file in sorted(_ready(files, read, options, now_s), key=lambda found: found[0]):
        if len(chosen) == options.segments or (chosen and octets + file.octets > options.octets):
            break
        chosen.append(file.name)
        octets += file.octets
    return chosen


def _ready(
    files: Sequence[NewFile], read: Position, options: StreamOptions, now_s: float
) -> Iterator[tuple[float, NewFile]]:
    """Yield the files that are not held back, each with the time since which it waits.

    That is its own time, or that of an earlier segment of its tap that is younger.
    """

    def is_settling(file: NewFile) -> bool:
        return not file.complete and now_s - file.changed_s < options.settle_s

    taps: dict[str, list[tuple[int, int, NewFile]]] = {}
    for file in files:
        named = read_name(file.name)
        if named is not None:
            taps.setdefault(named.tap, []).append((named.first, named.last, file))
        elif not is_settling(file):
            yield file.changed_s, file
    for tap, numbered in taps.items():
        last, since_s = read.last(tap), 0.0
        for number, end, file in sorted(numbered, key=lambda item: item[:2]):
            follows_gap = number > last + 1 and now_s - file.changed_s < options.gap_s
            if follows_gap or is_settling(file):
                break
            last, since_s = max(last, end), max(since_s, file.changed_s)
            yield since_s, file


STREAM_OPTIONS = StreamOptions.__struct_fields__


def read_stream_options(given: Mapping[str, str]) -> StreamOptions:
    """Return the options of a stream; InputError for one that is no number, or too small."""
    stated = {name: given[name] for name in STREAM_OPTIONS if name in given}
    try:
        return msgspec.convert(stated, StreamOptions, strict=False)
    except msgspec.ValidationError as error:
        name = next((name for name in stated if f"`$.{name}`" in str(error)), "")
        raise InputError(
            f"option {name!r} is {stated.get(name)!r}; it must be a number, 0 or more for seconds, 1 or more for sizes"
        ) from error


@dataclass
class StreamFiles(InputPartition):
    """Files that one task reads."""

    parts: tuple[SegmentPart, ...]


class FolderStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark stream reader of the segments of a folder.

    Args:
        read_file: yields the rows of one segment; called in a worker.
        tasks: maximum number of tasks that read one batch.
    """

    def __init__(
        self,
        folder: Path,
        options: StreamOptions,
        read_file: Callable[[Path, SegmentPart], Iterator[Any]],
        *,
        tasks: int = 1,
    ) -> None:
        self._folder = folder
        self._options = options
        self._read_file = read_file
        self._tasks = tasks
        self._available: frozenset[str] | None = None
        self._read_before: frozenset[str] = frozenset()

    def initialOffset(self) -> dict[str, Any]:
        """Return the position before all segments."""
        return Position().to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the position after the files that are read next, or `start` if there are none."""
        read = _position(start)
        present = list_names(self._folder)
        incomplete = find_new_files(self._folder, read.incomplete)
        files = [
            file for file in incomplete if file.complete and read.incomplete[file.name] != file.changed_s
        ]
        files += find_new_files(self._folder, self._unread(present, read))
        options = self._options
        if self._available is not None:
            files = [file for file in files if file.name in self._available]
            options = msgspec.structs.replace(options, gap_s=0.0)
        names = choose_files(files, read, options, time.time())
        if not names:
            return start
        changes = {
            file.name: file.changed_s
            for file in files
            if file.name in names and (not file.complete or file.name in read.incomplete)
        }
        return read.forget_missing(present).add(names, changes, _last_seqs(self._folder, names)).to_json()

    def _unread(self, present: Sequence[str], read: Position) -> list[str]:
        """Return the names that were not read.

        Names known to be read are not looked up again, for speed: a tap writes 86,400 segments a
        day, and the folder is listed every second.
        """
        known = self._read_before.intersection(present)
        unread = [name for name in present if name not in known and not read.has(name)]
        self._read_before = frozenset(present).difference(unread)
        return unread

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the stream to the files that exist now, without waiting for missing ones."""
        files = find_new_files(self._folder, list_names(self._folder))
        settled_s = time.time() - self._options.settle_s
        self._available = frozenset(
            file.name for file in files if file.complete or file.changed_s <= settled_s
        )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return tasks for the files between two positions; one task if there are no files."""
        parts = self.parts(_position(start), _position(end))
        tasks = min(self._tasks, max(1, len(parts)))
        return [StreamFiles(tuple(parts[at :: self._tasks])) for at in range(tasks)]

    def parts(self, start: Position, end: Position) -> list[SegmentPart]:
        """Return the files, and the messages in them, to read between two positions.

        When a batch runs again after a crash, its segments may have been compacted in the meantime.
        Then the messages between the two positions are read from the compacted segment.
        """
        names = end.names_since(start)
        gone = [name for name in names if not (self._folder / name).exists()]
        compacted = [name for name in list_names(self._folder) if is_compacted(name)] if gone else []
        parts: dict[SegmentPart, None] = {}
        for name in names:
            replacing = (one for one in compacted if name in gone and find_replaced([one, name]))
            if (replacement := next(replacing, None)) is None:
                parts[SegmentPart(name, start.seq_before(name))] = None
                continue
            named = read_name(name)
            assert named is not None, "only files with such names are replaced"
            after = start.seqs.get(named.tap) if named.tap in start.taps else -1
            known = start.last(named.tap) < named.first
            parts[SegmentPart(replacement, after if known else None, end.seqs.get(named.tap))] = None
        return list(parts)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task's files."""
        assert isinstance(partition, StreamFiles)
        for part in partition.parts:
            yield from self._read_file(self._folder / part.name, part)


class FailedStream(DataSourceStreamReader):
    """Reader that raises an error as soon as Spark uses it."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        """Raise the error."""
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Raise the error."""
        raise self._error


def _position(offset: dict[str, Any]) -> Position:
    try:
        return Position.from_json(offset)
    except msgspec.ValidationError as error:
        raise InputError(
            f"the checkpoint is not of this stream (its offset is {str(offset)[:80]}): follow() of specwire 0.1 was "
            "another stream; begin with a new checkpoint"
        ) from error


def _last_seqs(folder: Path, names: Iterable[str]) -> dict[str, int]:
    """Return the greatest `seq` of each tap in these files, from their footers."""
    found: dict[str, int] = {}
    for name in names:
        named = read_name(name)
        if named is None:
            continue
        try:
            footer = pq.read_metadata(folder / name)
            at = footer.schema.to_arrow_schema().get_field_index("seq")
            groups: list[Any] = [
                footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)
            ]
        except (OSError, pa.ArrowException, IndexError):
            continue  # The task that reads the file reports the error.
        last = [int(group.max) for group in groups if group is not None and group.has_min_max]
        found[named.tap] = max([*last, found.get(named.tap, -1)])
    return found
