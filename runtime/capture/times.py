"""When the messages of a segment were seen, from its footer where that says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specwire.runtime.capture.errors import CaptureError


class Span(msgspec.Struct, frozen=True):
    """The least and the greatest `ts`, in microseconds since 1970."""

    first_us: int
    last_us: int


def read_span(path: Path) -> Span | None:
    """Return the times of a segment's messages, None where it has none.

    Raises CaptureError where they cannot be read, and FileNotFoundError where the file has gone.
    """
    try:
        with pq.ParquetFile(path) as file:
            ends = _ends_of_groups(file)
            if ends is None:
                found = pc.min_max(_micros(file.read(columns=["ts"])["ts"]))
                ends = [found["min"].as_py(), found["max"].as_py()]
    except FileNotFoundError:
        raise
    except (OSError, OverflowError, ValueError, pa.ArrowException) as error:
        raise CaptureError(f"{path}: the times of its messages cannot be read: {error}") from error
    known = [end for end in ends if end is not None]
    return Span(min(known), max(known)) if known else None


def _ends_of_groups(file: pq.ParquetFile) -> list[int] | None:
    """The extremes of each row group; None where the footer does not say them."""
    footer = file.metadata
    at = footer.schema.to_arrow_schema().get_field_index("ts")
    ends: list[int] = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        statistics = group.column(at).statistics
        if not group.num_rows:
            continue
        if statistics is None or not statistics.has_min_max:
            return None
        values: Any = _micros(pa.array([statistics.min, statistics.max], pa.timestamp("us", tz="UTC")))
        ends += values.to_pylist()
    return ends


def _micros(times: Any) -> Any:
    return times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
