"""Messages from a packet capture as a capture folder, so that all that reads captures reads them, Spark too.

Each address that was listened at becomes a tap: what a tap at that server would have recorded, as far as the packets
tell. Times are those of the packets. This module imports pyarrow.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.identity import make_tap_id
from specwire.runtime.capture.limits import Limits
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, write_segment
from specwire.runtime.pcap.rows import Row


class _Tap:
    """The segments of one listener and protocol."""

    def __init__(self, folder: Path, name: str, protocol: str, edition: str) -> None:
        self._folder = folder
        self._source = Source(make_tap_id(name), protocol, edition)
        self._rows: list[Captured] = []
        self._octets = 0
        self._seq = 0
        self._number = 0

    def add(self, row: Row, limits: Limits) -> None:
        frames = row.frames
        word = Captured(
            row.ts or 0, row.mono, self._seq, row.conversation, row.sender, row.peer, frames, dropped=0
        )
        self._seq += 1
        self._rows.append(word)
        self._octets += sum(map(len, frames))
        if len(self._rows) >= limits.segment_rows or self._octets >= limits.segment_octets:
            self.flush()

    def flush(self) -> None:
        if not self._rows:
            return
        rows, self._rows, self._octets = self._rows, [], 0
        name = segment_name(self._source.tap, self._number)
        try:
            write_segment(self._folder, name, build_table(rows, self._source, dropped=0))
        except OSError as error:
            raise CaptureError(f"{self._folder}: a segment cannot be written: {error.strerror}") from error
        self._number += 1


class Recording:
    """Writes rows to a capture folder, which it makes.

    Attributes:
        written: messages by protocol.
        left_out: rows that are no message of a known protocol.

    Raises:
        CaptureError: the folder holds segments already, or cannot be made; from `add` and `flush`, it cannot be written.
    """

    def __init__(self, folder: Path, *, limits: Limits | None = None) -> None:
        self.written: Counter[str] = Counter()
        self.left_out = 0
        self._folder = folder
        self._limits = limits or Limits()
        self._taps: dict[tuple[str, str], _Tap] = {}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_taken = any(folder.glob("*.parquet"))
        except OSError as error:
            raise CaptureError(f"{folder}: the capture folder cannot be made: {error.strerror}") from error
        if is_taken:
            raise CaptureError(f"{folder}: there is a capture in this folder; name an empty one")

    def add(self, row: Row, edition: str) -> None:
        """Take one row; `edition` is that of its protocol."""
        if row.protocol is None or not row.frames:
            self.left_out += 1
            return
        key = row.protocol, row.listener
        if key not in self._taps:
            name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{row.protocol} {row.listener}").strip("-")
            self._taps[key] = _Tap(self._folder, name, row.protocol, edition)
        self._taps[key].add(row, self._limits)
        self.written[row.protocol] += 1

    def flush(self) -> None:
        """Write what was taken."""
        for tap in self._taps.values():
            tap.flush()
