"""Stream over a growing capture folder: the choice of the next segments, and Spark's reader.

`FolderStream` chooses the next files on the driver. Tasks read them with a function of the caller,
which yields decoded messages (`specwire.runtime.spark.reading.source`) or the columns that alerts
need. Its offsets are positions, so it needs no log besides Spark's checkpoint.

Answers carry state from one segment of a tap to the next, so a tap's segments are read in the order
of their numbers. A capture that is copied from another machine does not always grow in that order,
and a file that is copied in place exists before it is whole. So a segment is held back

- while an earlier one of its tap is missing, for `gap_s` after it appeared: then it is read; the
  earlier one counts as late if it comes;
- while it is not whole (Parquet has its index at the end), for `settle_s` after its last change:
  then it is read, and the reader reports it as damaged. If it becomes whole later, it is read
  again.

No file is skipped for its age. Late segments are read when they come.

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
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.names import find_replaced, is_compacted, is_visible, read_name
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.reading.position import Position

MAGIC = b"PAR1"
"""Last octets of a whole Parquet file, after the length of its footer."""


class Wanted(msgspec.Struct, frozen=True):
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


ReadFile = Callable[[Path, Wanted], Iterator[Any]]
"""Function that yields the rows of one segment."""


class Arrival(msgspec.Struct, frozen=True):
    """File of the folder that was not read yet.

    `changed_s` is the time when it appeared or changed in the folder, in seconds since 1970.
    """

    name: str
    changed_s: float
    octets: int
    whole: bool


class Patience(msgspec.Struct, frozen=True):
    """Settings: how long segments are held back, and how much is read at once.

    Attributes:
        gap_s: time to wait for an earlier segment of a tap, in seconds.
        settle_s: time to wait until a file that is not whole becomes whole, in seconds.
        segments: maximum number of files read at once.
        octets: maximum size of the files read at once; a single larger file is read alone.
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


def look_at(folder: Path, names: Iterable[str]) -> list[Arrival]:
    """Return the `Arrival` of each file of a folder, except files removed in the meantime."""
    return [arrival for name in names if (arrival := _look_at(folder / name)) is not None]


def _look_at(path: Path) -> Arrival | None:
    """Return the `Arrival` of a file; None if it was removed in the meantime."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            file.seek(-min(8, found.st_size), os.SEEK_END)
            tail = file.read()
    except FileNotFoundError:
        return None
    except OSError:
        return Arrival(path.name, 0.0, 0, whole=True)  # its reader reports the fault
    footer = int.from_bytes(tail[:4], "little")
    whole = len(tail) == 8 and tail[4:] == MAGIC and footer + 12 <= found.st_size
    return Arrival(path.name, found.st_ctime, found.st_size, whole)


def choose(arrivals: Sequence[Arrival], given: Position, patience: Patience, now_s: float) -> list[str]:
    """Return the names to read now, in order for each tap; `now_s` is in seconds since 1970."""
    chosen: list[str] = []
    octets = 0
    for arrival in _by_age(list(_ready(arrivals, given, patience, now_s))):
        if len(chosen) == patience.segments or (chosen and octets + arrival.octets > patience.octets):
            break
        chosen.append(arrival.name)
        octets += arrival.octets
    return chosen


def _ready(
    arrivals: Sequence[Arrival], given: Position, patience: Patience, now_s: float
) -> Iterator[Arrival]:
    """Yield the files that are not held back, in order for each tap."""

    def is_unsettled(arrival: Arrival) -> bool:
        return not arrival.whole and now_s - arrival.changed_s < patience.settle_s

    taps: dict[str, list[tuple[int, int, Arrival]]] = {}
    for arrival in arrivals:
        named = read_name(arrival.name)
        if named is not None:
            taps.setdefault(named.tap, []).append((named.first, named.last, arrival))
        elif not is_unsettled(arrival):
            yield arrival
    for tap, numbered in taps.items():
        last = given.last(tap)
        for number, end, arrival in sorted(numbered, key=lambda item: item[:2]):
            missing = number > last + 1 and now_s - arrival.changed_s < patience.gap_s
            if missing or is_unsettled(arrival):
                break
            last = max(last, end)
            yield arrival


def _by_age(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Return the oldest files first, so that no tap waits for another; keep each tap's order."""
    reached: dict[str, float] = {}
    ages: dict[str, float] = {}
    for arrival in arrivals:
        named = read_name(arrival.name)
        tap = named.tap if named else arrival.name
        reached[tap] = ages[arrival.name] = max(reached.get(tap, 0.0), arrival.changed_s)
    return sorted(arrivals, key=lambda arrival: ages[arrival.name])


PATIENCE = Patience.__struct_fields__
"""Options of a stream."""


def read_patience(options: Mapping[str, str]) -> Patience:
    """Return the limits that options state; InputError for one that is no number, or too small."""
    stated = {name: options[name] for name in PATIENCE if name in options}
    try:
        return msgspec.convert(stated, Patience, strict=False)
    except msgspec.ValidationError as error:
        name = next((name for name in stated if f"`$.{name}`" in str(error)), "")
        raise InputError(
            f"option {name!r} is {stated.get(name)!r}; it must be a number, 0 or more for seconds, 1 or more for sizes"
        ) from error


def state_options(folder: Path, patience: Patience) -> dict[str, str]:
    """Return the options of a stream over a folder."""
    return {"path": str(folder.resolve())} | {name: str(getattr(patience, name)) for name in PATIENCE}


@dataclass
class StreamFiles(InputPartition):
    """Files that one task reads."""

    files: tuple[Wanted, ...]


class FolderStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark stream reader of the segments of a folder.

    Args:
        read_file: yields the rows of one segment; called in a worker.
        tasks: maximum number of tasks that read one batch.
    """

    def __init__(self, folder: Path, patience: Patience, read_file: ReadFile, *, tasks: int = 1) -> None:
        self.folder = folder
        self.patience = patience
        self._read_file = read_file
        self._tasks = tasks
        self._wanted: frozenset[str] | None = None
        self._given: frozenset[str] = frozenset()

    def initialOffset(self) -> dict[str, Any]:
        """Return the position before all segments."""
        return Position().to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the position after the files that are read next, or `start` if there are none."""
        given = _position(start)
        present = list_names(self.folder)
        again = look_at(self.folder, given.unwhole)
        arrivals = [found for found in again if found.whole and given.unwhole[found.name] != found.changed_s]
        arrivals += look_at(self.folder, self._fresh(present, given))
        patience = self.patience
        if self._wanted is not None:
            arrivals = [arrival for arrival in arrivals if arrival.name in self._wanted]
            patience = msgspec.structs.replace(patience, gap_s=0.0)
        names = choose(arrivals, given, patience, time.time())
        if not names:
            return start
        unwhole = {
            found.name: found.changed_s
            for found in arrivals
            if found.name in names and (not found.whole or found.name in given.unwhole)
        }
        return given.forget_missing(present).add(names, unwhole, _last_seqs(self.folder, names)).to_json()

    def _fresh(self, present: Sequence[str], given: Position) -> list[str]:
        """Return the names that were not read; names known to be read are not looked up again.

        This matters for speed. A tap writes 86,400 segments a day, and the folder is listed every
        second.
        """
        known = self._given.intersection(present)
        fresh: list[str] = []
        found: list[str] = []
        for name in present:
            if name not in known:
                (found if given.has(name) else fresh).append(name)
        self._given = known.union(found)
        return fresh

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return no limit, because `Patience` limits each batch."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the stream to the files that exist now, without waiting for missing ones."""
        arrivals = look_at(self.folder, list_names(self.folder))
        settle_s = self.patience.settle_s
        now_s = time.time()
        self._wanted = frozenset(
            arrival.name for arrival in arrivals if arrival.whole or now_s - arrival.changed_s >= settle_s
        )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return tasks for the files between two positions; one task if there are no files."""
        files = self._files(_position(start), _position(end))
        return [
            StreamFiles(tuple(files[at :: self._tasks])) for at in range(min(self._tasks, max(1, len(files))))
        ]

    def _files(self, start: Position, end: Position) -> list[Wanted]:
        """Return the files, and the messages in them, to read between two positions.

        When a batch runs again after a crash, its segments may have been compacted in the meantime.
        Then the messages between the two positions are read from the compacted segment.
        """
        names = end.names_since(start)
        gone = [name for name in names if not (self.folder / name).exists()]
        covering = [name for name in list_names(self.folder) if is_compacted(name)] if gone else []
        files: list[Wanted] = []
        for name in names:
            cover = (
                next((one for one in covering if find_replaced([one, name])), None) if name in gone else None
            )
            if cover is None:
                files.append(Wanted(name, start.seq_before(name)))
                continue
            read = read_name(name)
            assert read is not None, "only files with such names are replaced"
            after = start.seqs.get(read.tap) if read.tap in start.taps else -1
            wanted = Wanted(
                cover, after if start.last(read.tap) < read.first else None, end.seqs.get(read.tap)
            )
            if wanted not in files:
                files.append(wanted)
        return files

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of a task's files."""
        assert isinstance(partition, StreamFiles)
        for wanted in partition.files:
            yield from self._read_file(self.folder / wanted.name, wanted)


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
        read = read_name(name)
        if read is None:
            continue
        try:
            footer = pq.read_metadata(folder / name)
            at = footer.schema.to_arrow_schema().get_field_index("seq")
            groups: list[Any] = [
                footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)
            ]
        except (OSError, pa.ArrowException, IndexError):
            continue  # the reader reports it
        last = [int(group.max) for group in groups if group is not None and group.has_min_max]
        found[read.tap] = max([*last, found.get(read.tap, -1)])
    return found
