"""Inspection of one segment by its footer: taps, protocols and times of its messages.

Parquet stores the least and the greatest value of each column. A segment of a tap has one tap, one
protocol and as many rows as its `seq` spans, so only the footer is read. A file that another tool
wrote may differ. In that case the columns are read, but never `frames`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.segments import read_footer
from specwire.runtime.spark.reading.position import Stretch, join

DATES_MOST = 366
"""Maximum number of dates in one segment; each becomes a folder."""

_DAY_US = 86_400_000_000

PLACED = ("tap", "seq", "ts")
"""Columns without nulls: they identify a message and its place."""


class Holding(msgspec.Struct, frozen=True):
    """Messages of one tap in one segment.

    Attributes:
        stretches: the `seq` of these messages.
        rows: number of rows, including repeated ones.
    """

    tap: str
    stretches: tuple[Stretch, ...]
    rows: int


class Inspected(msgspec.Struct, frozen=True):
    """Content of a readable segment.

    Attributes:
        rows: number of messages.
        holdings: messages by tap.
        protocols: protocols that the rows state, with None if a row states none. Without rows, the
            protocol that the metadata states.
        first, last: least and greatest `ts` in microseconds since 1970; None without rows.
        tap: tap in the metadata. It may have dropped messages even if it has none in this segment.
        dropped: messages that this tap had dropped when it wrote the segment.
        edition: edition of the specification, as the tap stated it.
    """

    rows: int
    holdings: tuple[Holding, ...]
    protocols: tuple[str | None, ...]
    first: int | None
    last: int | None
    tap: str | None = None
    dropped: int = 0
    edition: str = ""


def inspect(path: Path) -> Inspected:
    """Return the content of a segment; CaptureError with the reason if the segment is unusable."""
    segment = read_footer(path)
    source = segment.source
    if segment.rows:
        found = _read_statistics(path) or _read_columns(path)
    else:
        found = Inspected(0, (), (source.protocol,) if source else (), None, None)
    return msgspec.structs.replace(
        found,
        tap=source.tap if source else None,
        dropped=segment.dropped,
        edition=source.edition if source else "",
    )


def _read_statistics(path: Path) -> Inspected | None:
    """Return the content as the footer states it; None if the columns must be read."""
    footer = pq.read_metadata(path)
    paths = [footer.schema.column(at).path for at in range(footer.num_columns)]
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    ranges: list[tuple[Any, Any]] = []
    for name in (*PLACED, "protocol"):
        parts: list[Any] = [group.column(paths.index(name)).statistics for group in groups]
        if not all(part and part.has_min_max and part.null_count == 0 for part in parts):
            return None
        try:
            ranges.append((min(part.min for part in parts), max(part.max for part in parts)))
        except (OverflowError, ValueError):
            return None
    (tap, last_tap), seq, times, (protocol, last_protocol) = ranges
    first, last = (_micros(time) for time in times)
    rows = seq[1] - seq[0] + 1
    if (tap, protocol, rows) != (last_tap, last_protocol, footer.num_rows):
        return None
    if last - first > DATES_MOST * _DAY_US:
        return None
    return Inspected(rows, (Holding(tap, (seq,), rows),), (protocol,), first, last)


def _micros(time: datetime) -> int:
    return (time - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def _read_columns(path: Path) -> Inspected:
    try:
        table = pq.read_table(path, columns=[*PLACED, "protocol"])
    except (OSError, pa.ArrowException) as error:
        raise CaptureError(f"{path}: the segment's columns cannot be read: {error}") from error
    for name in PLACED:
        if table[name].null_count:
            raise CaptureError(f"{path}: a row has no {name!r}, so its messages cannot be told apart")
    try:
        pc.min_max(table["ts"]).as_py()
    except (OverflowError, ValueError) as error:
        raise CaptureError(f"{path}: a row's 'ts' is no value that there can be: {error}") from error
    times = table["ts"].cast(pa.int64()).to_numpy()
    # A clock may jump by years, but a file with messages at hundreds of dates is not a capture.
    if (dates := np.unique(times // _DAY_US).size) > DATES_MOST:
        raise CaptureError(
            f"{path}: its messages have {dates} dates, more than the {DATES_MOST} that are read"
        )
    holdings = []
    for tap in map(str, _distinct(path, table, "tap")):
        seqs = table["seq"].filter(pc.equal(table["tap"], pa.scalar(tap))).to_numpy().tolist()
        holdings.append(Holding(tap, join((seq, seq) for seq in seqs), len(seqs)))
    protocols = _distinct(path, table, "protocol")
    return Inspected(table.num_rows, tuple(holdings), protocols, int(times.min()), int(times.max()))


def _distinct(path: Path, table: pa.Table, name: str) -> tuple[str | None, ...]:
    """Return the distinct texts of a column, None first; CaptureError if one is not UTF-8."""
    try:
        found = table[name].unique().to_pylist()
    except UnicodeDecodeError as error:
        raise CaptureError(f"{path}: a row's {name!r} is not UTF-8: {error}") from error
    return tuple(sorted(found, key=lambda text: (text is not None, text)))
