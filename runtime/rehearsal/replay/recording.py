"""The conversations of a capture, as one tap saw them.

Both sides of a connection may have been tapped, and then every message is in the capture twice: so one tap is read.
Its processes (it may have been started again) count as one. What is read is bounded; a longer capture is played up to
there, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from specwire.runtime.capture.identity import tap_name
from specwire.runtime.capture.segments import Segment, find_segments, list_protocols
from specwire.runtime.rehearsal.errors import RehearsalError

BATCH_ROWS = 1000
MOST_OCTETS = 256 << 20
"""Octets of frames that are read."""

COLUMNS = ("mono", "seq", "protocol", "tap", "conversation", "sender", "peer", "frames")
KEPT = "keep"


class Said(msgspec.Struct, frozen=True):
    """One message: by the monotonic clock in nanoseconds, from the side with this letter."""

    mono: int
    sender: str
    frames: list[bytes]


class Script(msgspec.Struct):
    """One conversation, in its order."""

    conversation: str
    peer: str
    said: list[Said]


class Recording(msgspec.Struct, frozen=True):
    """What was read of a capture; `cut` says that there is more in it."""

    protocol: str
    tap: str
    scripts: list[Script]
    messages: int
    cut: bool


def read_recording(folder: Path, *, protocol: str | None, tap: str | None, messages: int) -> Recording:
    """Read the first `messages` messages of a tap.

    Args:
        protocol: which, where the capture has several.
        tap: the name of the tap, where it has several.

    Raises:
        CaptureError: it cannot be read.
        RehearsalError: it is not said which of several is meant, or payloads were not kept.
    """
    segments = find_segments(folder)
    chosen = _choose("protocol", protocol, list_protocols(segments), folder)
    found = _read(segments, chosen, tap, messages, folder)
    rows: list[dict[str, Any]] = []
    octets, cut = 0, False
    for row in found:
        octets += sum(map(len, row["frames"]))
        if len(rows) >= messages or octets > MOST_OCTETS:
            cut = True
            break
        rows.append(row)
    if not rows:
        raise RehearsalError(f"{folder} has no messages of {chosen}" + (f" by the tap {tap}" if tap else ""))
    rows.sort(key=lambda row: (row["tap"], row["seq"]))
    return Recording(chosen, tap_name(rows[0]["tap"]), _conversations(rows), len(rows), cut)


def _read(
    segments: Sequence[Segment], protocol: str, tap: str | None, messages: int, folder: Path
) -> Iterator[dict[str, Any]]:
    names: set[str] = set()
    for segment in segments:
        if segment.source is not None and segment.source.payload != KEPT:
            raise RehearsalError(
                f"{segment.path}: payloads were not kept ({segment.source.payload}), so it cannot be played again"
            )
        for batch in pq.ParquetFile(segment.path).iter_batches(BATCH_ROWS, columns=list(COLUMNS)):
            for row in batch.to_pylist():
                if row["protocol"] != protocol or not row["frames"]:
                    continue
                name = tap_name(row["tap"])
                if tap is not None and tap not in (name, row["tap"]):
                    continue
                names.add(name)
                if len(names) > 1:
                    _choose("tap", None, sorted(names), folder)
                yield row


def _choose(what: str, wanted: str | None, there: list[str], folder: Path) -> str:
    if wanted is not None and wanted in there:
        return wanted
    if wanted is None and len(there) == 1:
        return there[0]
    listed = ", ".join(there)
    if wanted is not None:
        raise RehearsalError(f"{folder} has no {what} {wanted!r}; it has {listed}")
    raise RehearsalError(f"{folder} has several: name one with --{what}, of {listed}")


def _conversations(rows: Sequence[dict[str, Any]]) -> list[Script]:
    """Return the rows by conversation, in the order in which they begin."""
    scripts: dict[tuple[str, str], Script] = {}
    for row in rows:
        key = (row["tap"], row["conversation"])
        script = scripts.setdefault(key, Script(row["conversation"], row["peer"] or "", []))
        script.said.append(Said(row["mono"], row["sender"], [bytes(frame) for frame in row["frames"]]))
    return list(scripts.values())
