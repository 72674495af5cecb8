"""The messages of a capture folder, in the order of their times; of one that grows, those that come too.

Segments are opened in the order of their first times, each when its time has come: a folder of any size takes the memory of
the segments of a moment.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.names import read_name
from specwire.runtime.capture.segments import COLUMNS, Segment, list_files, read_footer
from specwire.runtime.package_search import AT
from specwire.runtime.packages import package_names
from specwire.runtime.pcap.choosing import Chooser
from specwire.runtime.pcap.rows import Row

PORTION_ROWS = 256

KEPT = "keep"
"""The policy by which a tap writes payloads as they are."""

Find = Callable[[str | None, str], Sequence[ModuleType]]
"""Function from the protocol that a row states, and the edition of its segment, to the packages to try."""


class CaptureRows:
    """Reads capture folders.

    Args:
        find: returns the packages that read the rows of a protocol and edition.
        note: takes a sentence about a file that is passed over.
    """

    def __init__(self, find: Find, note: Callable[[str], None]) -> None:
        self._find = find
        self._note = note
        self._choosers: dict[tuple[str | None, str, str], tuple[Chooser, str]] = {}
        self._seen: set[Path] = set()
        self._highest: dict[str, int] = {}
        self._dropped: dict[str, int] = {}
        self._policies: dict[str, str] = {}

    def read(self, source: Path) -> Iterator[Row]:
        """Yield the messages in a folder's segments, or in one segment, that were not read before.

        Raises:
            CaptureError: there is no capture there.
        """
        found: list[tuple[int, Segment]] = []
        for path in list_files(source) if source.is_dir() else [source]:
            if path in self._seen or self._is_known(path.name):
                continue
            self._seen.add(path)
            segment = self._look_at(path, is_alone=path == source)
            if segment is not None:
                tap = segment.source.tap if segment.source else path.name
                self._dropped[tap] = max(segment.dropped, self._dropped.get(tap, 0))
                if segment.source and segment.source.payload != KEPT:
                    self._policies[tap] = segment.source.payload
                found.append((_begins(path), segment))
        yield from self._merge(sorted(found, key=lambda item: (item[0], item[1].path)))

    def _merge(self, segments: Sequence[tuple[int, Segment]]) -> Iterator[Row]:
        """The rows by time; a segment is opened when its time has come, so that few are held at once."""
        held: list[tuple[int, int, Row, Iterator[Row]]] = []
        waiting = deque(segments)
        number = 0
        while held or waiting:
            while waiting and (not held or waiting[0][0] <= held[0][0]):
                rows = self._rows(waiting.popleft()[1])
                number += 1
                _hold(held, number, rows)
            if held:
                _, order, row, rows = heapq.heappop(held)
                yield row
                _hold(held, order, rows)

    def notes(self) -> list[str]:
        """Say what is missing from what was read."""
        dropped = [f"tap {tap} dropped {count:,} messages" for tap, count in self._dropped.items() if count]
        return dropped + [
            f"tap {tap} wrote payloads as {policy!r}, so they are not what was sent"
            for tap, policy in self._policies.items()
        ]

    def _is_known(self, name: str) -> bool:
        """Whether a segment stands for others that were read before; keeps what a name says."""
        read = read_name(name)
        if read is None:
            return False
        highest = self._highest.get(read.tap, -1)
        self._highest[read.tap] = max(highest, read.last)
        return read.compacted and read.last <= highest

    def _look_at(self, path: Path, *, is_alone: bool) -> Segment | None:
        try:
            return read_footer(path)
        except CaptureError as error:
            if is_alone:
                raise
            self._note(str(error))
            return None

    def _rows(self, segment: Segment) -> Iterator[Row]:
        """The rows of a segment; the file is open only while one of its row groups is read."""
        edition = segment.source.edition if segment.source else ""
        try:
            for group in range(pq.read_metadata(segment.path).num_row_groups):
                with pq.ParquetFile(segment.path) as file:
                    table = file.read_row_group(group, columns=COLUMNS.names)
                for batch in table.to_batches(max_chunksize=PORTION_ROWS):
                    moments = batch.column("ts").cast(pa.int64()).to_pylist()
                    rows = batch.drop_columns(["ts"]).to_pylist()
                    yield from map(self._row, rows, moments, repeat(edition))
        except (OSError, pa.ArrowException) as error:
            raise CaptureError(f"{segment.path}: the segment cannot be read: {error}") from error

    def _row(self, item: dict[str, Any], ts: int | None, stated: str) -> Row:
        frames = tuple(frame or b"" for frame in item["frames"] or ())
        conversation = str(item["conversation"] or "")
        chooser, edition = self._chooser(item["protocol"], conversation, stated)
        reading = chooser.decode(frames, item["sender"])
        return Row(
            ts=ts,
            mono=item["mono"] or 0,
            protocol=reading.protocol,
            edition=edition,
            conversation=conversation,
            sender=str(item["sender"] or ""),
            peer=str(item["peer"] or ""),
            frames=frames,
            message=reading.message,
            error=reading.error,
        )

    def _chooser(self, protocol: str | None, conversation: str, stated: str) -> tuple[Chooser, str]:
        """Return what decodes a row, and its edition if that is known before."""
        # Each conversation finds its protocol separately only if its rows do not state one.
        key = (protocol, "" if protocol else conversation, stated)
        if key not in self._choosers:
            packages = self._find(protocol, stated)
            edition = str(packages[0].EDITION) if len(packages) == 1 else ""
            unknown = f"{protocol}{AT}{stated}" if protocol in package_names() else protocol
            self._choosers[key] = Chooser(packages, unknown=unknown), edition
        return self._choosers[key]


def _begins(path: Path) -> int:
    """The time of a segment's first message as its footer says, in microseconds since 1970; 0 where it does not."""
    footer = pq.read_metadata(path)
    at = footer.schema.to_arrow_schema().get_field_index("ts")
    groups = (footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups))
    least = [int(known.min_raw) for known in groups if known is not None and known.min_raw is not None]
    return min(least) if least and len(least) == footer.num_row_groups else 0


def _hold(held: list[tuple[int, int, Row, Iterator[Row]]], number: int, rows: Iterator[Row]) -> None:
    row = next(rows, None)
    if row is not None:
        heapq.heappush(held, (row.ts or 0, number, row, rows))
