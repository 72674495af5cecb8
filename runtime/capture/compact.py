"""Merge the segments of closed days: a tap writes one a second, and a day of them is better read as one file.

A day is closed when it is over by UTC. Of each tap, segments whose numbers follow each other without a gap and whose
last messages are of the same day become one file, in their order, with nothing changed in the rows. Its name says which
segments it stands for (`specwire.runtime.capture.names`), so readers pass over those from the moment at which it is there,
and it may be killed at any moment: messages are neither lost nor read twice, and the next time the rest is deleted.

A pipeline that has read the segments finds each message of the merged file known, by tap and `seq`; one that has not read
them, or only some, takes what it does not know. So a file that is damaged, missing or foreign is never merged, and
ends what can be merged in front of it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.names import compacted_name, read_name
from specwire.runtime.capture.segments import (
    COLUMNS,
    Segment,
    Source,
    Unsound,
    list_all,
    placing,
    read_footer,
    stating_schema,
    survey_segments,
    sync_folder,
)
from specwire.runtime.capture.times import Span, read_span

LOCK = ".compact.lock"
FILE_OCTETS = 1 << 30
"""Segments that are larger together become several files."""

GROUP_OCTETS = 32 << 20
"""Octets in memory that make a row group."""

LEVEL = 6
"""Of zstd: this is done once, and read often."""

REPEATING: Any = ["protocol", "tap", "conversation", "sender", "peer"]
"""The columns that are written with a dictionary; frames have little repetition."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, and with how many files of how many."""


class Merged(msgspec.Struct, frozen=True):
    """Segments that became one file, or would."""

    tap: str
    day: str
    name: str
    segments: int
    messages: int
    octets_before: int
    octets: int
    """Of the new file; 0 where nothing was written."""


class Compacted(msgspec.Struct, frozen=True):
    """What was done: files made, segments deleted, and files that cannot be merged, with the reason."""

    merged: tuple[Merged, ...]
    deleted: int
    waiting: int
    """Segments that another file stands for, and that are kept for readers for a time."""
    left: tuple[Unsound, ...]


class _Part(msgspec.Struct, frozen=True):
    """One segment, and where it belongs."""

    path: Path
    source: Source
    dropped: int
    rows: int
    number: int
    octets: int
    modified_ns: int
    day: str


def compact(
    folder: Path,
    *,
    now_s: float,
    grace_s: float = 0.0,
    file_octets: int = FILE_OCTETS,
    pretend: bool = False,
    progress: Progress | None = None,
) -> Compacted:
    """Merge what can be merged in a capture folder, and delete the segments that merged files stand for.

    Args:
        now_s: the time, in seconds since 1970; days that ended before are closed.
        grace_s: how long the segments stay beside the file that stands for them, for readers that have listed them.
        file_octets: segments that are larger together become several files.
        pretend: change nothing.
        progress: told how far it is.

    Raises:
        CaptureError: there is no such capture, another process compacts it, or the disk is full; no message is lost.
    """
    try:
        with nullcontext() if pretend else _alone(folder):
            return _compact(folder, now_s, grace_s, file_octets, pretend, progress or _tell_nobody)
    except OSError as error:
        raise CaptureError(
            f"{folder}: cannot be compacted: {error.strerror or error}; no message is lost"
        ) from error


def _tell_nobody(step: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def _compact(
    folder: Path, now_s: float, grace_s: float, file_octets: int, pretend: bool, progress: Progress
) -> Compacted:
    survey = survey_segments(folder, partial(progress, "looking at segments"))
    left = list(survey.unsound)
    today = _day_of(now_s)
    runs = [run for run in _find_runs(_place(survey.sound, left), file_octets) if len(run) > 1]
    runs = sorted((run for run in runs if run[0].day < today), key=lambda run: run[0].day)
    merged: list[Merged] = []
    total, done = sum(map(len, runs)), 0
    for run in runs:
        try:
            merged.append(_describe(run) if pretend else _merge(folder, run))
        except (pa.ArrowException, FileNotFoundError) as error:
            left.append(Unsound(run[0].path, f"{run[0].path} and what follows cannot be merged: {error}"))
        done += len(run)
        progress("merging segments", done, total)
    deleted, waiting = (0, 0) if pretend else _delete_replaced(folder, now_s, grace_s)
    return Compacted(tuple(merged), deleted, waiting, tuple(left))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    import fcntl  # Not on Windows.

    list_all(folder)  # or a folder that is no capture would be left with a lock in it
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise CaptureError(f"{folder}: another process compacts this capture; wait for it") from None
    finally:
        os.close(descriptor)


def _place(segments: Iterable[Segment], left: list[Unsound]) -> Iterator[_Part]:
    """Say of each segment that a tap has written where it belongs; foreign files and merged ones are passed over."""
    for segment in segments:
        name = read_name(segment.path.name)
        if name is None or name.compacted or segment.source is None or segment.source.tap != name.tap:
            continue
        try:
            span = read_span(segment.path)
            state = segment.path.stat()
        except FileNotFoundError:
            continue
        except CaptureError as error:
            left.append(Unsound(segment.path, str(error)))
            continue
        yield _Part(
            path=segment.path,
            source=segment.source,
            dropped=segment.dropped,
            rows=segment.rows,
            number=name.first,
            octets=state.st_size,
            modified_ns=state.st_mtime_ns,
            day=_day_of(_end_s(span, state.st_mtime)),
        )


def _end_s(span: Span | None, otherwise_s: float) -> float:
    return otherwise_s if span is None else span.last_us / 1e6


def _day_of(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).date().isoformat()


def _find_runs(parts: Iterable[_Part], file_octets: int) -> list[list[_Part]]:
    """Group segments of one tap and one day whose numbers follow each other, up to a size."""
    runs: list[list[_Part]] = []
    octets = 0
    for part in sorted(parts, key=lambda part: (part.source.tap, part.number)):
        before = runs[-1][-1] if runs else None
        follows = (
            before is not None
            and (before.source, before.day, before.number + 1) == (part.source, part.day, part.number)
            and octets + part.octets <= file_octets
        )
        if not follows:
            runs.append([])
            octets = 0
        runs[-1].append(part)
        octets += part.octets
    return runs


def _describe(run: Sequence[_Part], octets: int = 0) -> Merged:
    first, last = run[0], run[-1]
    return Merged(
        tap=first.source.tap,
        day=first.day,
        name=compacted_name(first.source.tap, first.number, last.number),
        segments=len(run),
        messages=sum(part.rows for part in run),
        octets_before=sum(part.octets for part in run),
        octets=octets,
    )


def _merge(folder: Path, run: Sequence[_Part]) -> Merged:
    made = _describe(run)
    schema = stating_schema(run[0].source, max(part.dropped for part in run))
    modified_ns = max(part.modified_ns for part in run)
    (folder / f".{made.name}.tmp").unlink(missing_ok=True)  # of one that was killed: the lock is ours
    with placing(folder, made.name) as file:
        with pq.ParquetWriter(
            file, schema, compression="zstd", compression_level=LEVEL, use_dictionary=REPEATING
        ) as writer:
            for table in _group(run):
                writer.write_table(table.replace_schema_metadata(schema.metadata), len(table) or None)
        file.flush()
        _take_after(file.fileno(), run[-1].path.stat())
        # Its age is that of what it holds: retention goes by it.
        os.utime(file.fileno(), ns=(modified_ns, modified_ns))
        _check(folder / f".{made.name}.tmp", made.messages)
    return _describe(run, (folder / made.name).stat().st_size)


def _take_after(descriptor: int, model: os.stat_result) -> None:
    """Let those read the file who could read what it holds, whoever compacts."""
    with suppress(PermissionError):
        os.fchown(descriptor, model.st_uid, model.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(model.st_mode))


def _group(run: Sequence[_Part]) -> Iterator[pa.Table]:
    """The rows of segments, in portions that make a row group."""
    tables: list[pa.Table] = []
    octets = 0
    for part in run:
        with pq.ParquetFile(part.path) as file:
            table = file.read(columns=COLUMNS.names).cast(COLUMNS)
        tables.append(table)
        octets += table.nbytes
        if octets >= GROUP_OCTETS:
            yield pa.concat_tables(tables)
            tables, octets = [], 0
    if tables:
        yield pa.concat_tables(tables)


def _check(path: Path, rows: int) -> None:
    """ArrowException where a file does not have as many rows as went into it: a segment has changed meanwhile."""
    found = pq.read_metadata(path).num_rows
    if found != rows:
        raise pa.ArrowInvalid(f"{rows} messages went in and {found} are there")


def _delete_replaced(folder: Path, now_s: float, grace_s: float) -> tuple[int, int]:
    """Delete the segments that whole merged files stand for; return how many, and how many have to wait."""
    paths, replaced = list_all(folder)
    settled: dict[str, list[tuple[int, int]]] = {}
    for path in paths:
        name = read_name(path.name)
        if name is not None and name.compacted and _is_settled(path, now_s, grace_s):
            settled.setdefault(name.tap, []).append((name.first, name.last))
    deleted = 0
    for path in replaced:
        name = read_name(path.name)
        assert name is not None, "only files with such names are replaced"
        if any(first <= name.first and name.last <= last for first, last in settled.get(name.tap, ())):
            path.unlink(missing_ok=True)
            deleted += 1
    if deleted:
        sync_folder(folder)
    return deleted, len(replaced) - deleted


def _is_settled(path: Path, now_s: float, grace_s: float) -> bool:
    """Whether a merged file is whole, and has been there for so long that readers know of it."""
    try:
        read_footer(path)
        # When it came to its place: its time of change is that of what it holds.
        return grace_s <= 0 or now_s - path.stat().st_ctime >= grace_s
    except (CaptureError, FileNotFoundError):
        return False
