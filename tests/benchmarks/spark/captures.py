"""Captures of millions of messages in seconds, laid out as taps write them.

The columns are made with numpy and pyarrow, a segment at a time; no Python runs for a row. Payloads are random, so
that a file has the size that it would have. Segments are of `SEGMENT_ROWS` rows each: Spark gives a row group to
one core, so a part of a capture is some whole segments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from specwire.generated.messages import Message
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import COLUMNS, METADATA_PREFIX

SEGMENT_ROWS = 250_000
FRAMES = pa.list_(pa.binary())
TAP = "bench"
PAYLOAD = 64
"""Octets of a Flux payload."""
CONVERSATIONS = 1000
STARTED_US = 1_780_000_000_000_000
"""When the first message was seen; one follows each ten microseconds."""

Frames = Callable[[int, int], "pa.Array[Any]"]
"""Makes the frames of so many messages from a number on: ``make(begin, count)``."""


def write_capture(folder: Path, protocol: str, rows: int, make: Frames) -> list[Path]:
    """Write a capture of at least `rows` messages of `protocol` and return its segments, in order."""
    folder.mkdir(parents=True)
    segments: list[Path] = []
    for begin in range(0, rows, SEGMENT_ROWS):
        table = _segment(protocol, begin, make(begin, SEGMENT_ROWS))
        segments.append(folder / segment_name(TAP, len(segments)))
        pq.write_table(table, segments[-1], compression="zstd", compression_level=1, use_dictionary=False)
    return segments


def in_segments(rows: float) -> int:
    """Return the least number of rows, at least `rows`, that fill whole segments."""
    return max(1, ceil(rows / SEGMENT_ROWS)) * SEGMENT_ROWS


def flux_requests(begin: int, count: int) -> pa.Array[Any]:
    """Return Flux requests without route and topic: a payload of 64 octets, and the header."""
    message = np.zeros((count, PAYLOAD + 20), np.uint8)
    message[:, :PAYLOAD] = np.random.default_rng(begin).integers(0, 256, (count, PAYLOAD), np.uint8)
    message[:, PAYLOAD : PAYLOAD + 4] = (0x8E, 0x01, 0x01, 0x02)
    numbers = np.arange(begin, begin + count)
    for place, values in enumerate((numbers % 97, 1, numbers % 1024, numbers)):
        at = PAYLOAD + 4 + 4 * place
        message[:, at : at + 4] = _big_endian(np.broadcast_to(np.asarray(values), count))
    return _lists(message, (PAYLOAD, 20))


def _big_endian(values: NDArray[Any]) -> NDArray[np.uint8]:
    return values.astype(">u4").view(np.uint8).reshape(-1, 4)


def _lists(messages: NDArray[np.uint8], sizes: Sequence[int]) -> pa.Array[Any]:
    """Return messages, one a row of octets, as lists of frames of these sizes."""
    ends = np.cumsum(sizes)
    starts = np.arange(len(messages))[:, None] * messages.shape[1]
    bounds = np.append(0, (starts + ends).ravel()).astype(np.int32)
    buffers = [None, pa.py_buffer(bounds.data), pa.py_buffer(messages.data)]
    frames = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)
    rows = np.arange(len(messages) + 1, dtype=np.int32) * len(sizes)
    return pa.ListArray.from_arrays(pa.array(rows, pa.int32()), frames)


def repeating(messages: Sequence[Message]) -> Frames:
    """Return what makes these messages again and again."""
    once = pa.array([message.encode() for message in messages], FRAMES)
    return lambda begin, count: once.take(pa.array(np.arange(begin, begin + count) % len(once), pa.int64()))


def _segment(protocol: str, begin: int, frames: pa.Array[Any]) -> pa.Table:
    numbers = np.arange(begin, begin + len(frames))
    talk = numbers % CONVERSATIONS
    columns = {
        "ts": pa.array(STARTED_US + numbers * 10).cast(COLUMNS.field("ts").type),
        "mono": pa.array(numbers * 10_000),
        "seq": pa.array(numbers),
        "protocol": _alike(protocol, len(frames)),
        "tap": _alike(TAP, len(frames)),
        "conversation": _taken([f"c{n:04d}" for n in range(CONVERSATIONS)], talk),
        "sender": _taken(["C", "S"], numbers // CONVERSATIONS % 2),
        "peer": _taken([f"peer{n:04d}" for n in range(CONVERSATIONS)], talk),
        "frames": frames,
    }
    source = {"tap": TAP, "protocol": protocol, "edition": "", "dropped": "0"}
    metadata = {METADATA_PREFIX + key: text for key, text in source.items()}
    return pa.table(columns, schema=COLUMNS.with_metadata(metadata))


def _alike(text: str, count: int) -> pa.Array[Any]:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _taken(texts: list[str], numbers: NDArray[Any]) -> pa.Array[Any]:
    return pa.array(texts, pa.string()).take(pa.array(numbers))
