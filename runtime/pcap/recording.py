"""Messages of packet captures in the columns of a capture.

Each address that accepted connections becomes a tap: what a tap at that server would have recorded,
as far as the packets tell. Times are those of the packets. `Recording` writes a capture folder,
`PacketFile` reads one file.

A `PacketFile` names its taps after the file's content, so reading a file again, or a copy of it,
gives the same messages under the same tap and `seq`. TCP connections are put together within the
file. This module imports pyarrow.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.identity import make_tap_id
from specwire.runtime.capture.limits import Limits
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, write_segment
from specwire.runtime.pcap.choosing import protocol_name
from specwire.runtime.pcap.errors import PcapError
from specwire.runtime.pcap.packets import PacketReader
from specwire.runtime.pcap.rows import Row
from specwire.runtime.pcap.traffic import Traffic
from specwire.runtime.quantities import show_count

PORTION_OCTETS = 1 << 20
DIGEST_DIGITS = 16
"""Hexadecimal digits of a file's SHA-256 that its taps are named after."""


class RecordedTap:
    """Messages of one listener and protocol that were not taken yet.

    Attributes:
        source: what its segments state.
        number: how many times rows were taken.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.number = 0
        self._rows: list[Captured] = []
        self._octets = 0
        self._seq = 0

    def add(self, row: Row) -> None:
        """Add the next message."""
        frames, ts = row.frames, row.ts or 0
        self._rows.append(
            Captured(ts, row.mono, self._seq, row.conversation, row.sender, row.peer, frames, dropped=0)
        )
        self._seq += 1
        self._octets += sum(map(len, frames))

    def is_full(self, limits: Limits) -> bool:
        """Return whether the messages fill a segment."""
        return len(self._rows) >= limits.segment_rows or self._octets >= limits.segment_octets

    def take(self) -> pa.Table | None:
        """Return the messages in the columns of a capture; None if there are none."""
        if not self._rows:
            return None
        rows, self._rows, self._octets = self._rows, [], 0
        self.number += 1
        return build_table(rows, self.source, dropped=0)


class RecordedTaps:
    """Sorts rows by the tap that would have recorded them.

    Args:
        identify: returns the id of a tap by its name.

    Attributes:
        written: messages by protocol.
        left_out: rows that are no message of a known protocol.
    """

    def __init__(self, identify: Callable[[str], str], limits: Limits | None = None) -> None:
        self.written: Counter[str] = Counter()
        self.left_out = 0
        self._identify = identify
        self._limits = limits or Limits()
        self._taps: dict[tuple[str, str, str], RecordedTap] = {}

    def __iter__(self) -> Iterator[RecordedTap]:
        return iter(self._taps.values())

    def add(self, row: Row, edition: str) -> RecordedTap | None:
        """Take one row; return its tap if that is full. `edition` is that of the protocol."""
        if row.protocol is None or not row.frames:
            self.left_out += 1
            return None
        key = row.protocol, edition, row.listener
        if key not in self._taps:
            name = re.sub(r"[^A-Za-z0-9._]+", "-", f"{row.protocol} {row.listener}").strip("-")
            self._taps[key] = RecordedTap(Source(self._identify(name), row.protocol, edition))
        tap = self._taps[key]
        tap.add(row)
        self.written[row.protocol] += 1
        return tap if tap.is_full(self._limits) else None


class Recording:
    """Writes rows to a capture folder, which it makes.

    Raises:
        CaptureError: the folder holds segments already, or cannot be made; from `add` and `flush`,
        it cannot be written.
    """

    def __init__(self, folder: Path, *, limits: Limits | None = None) -> None:
        self.taps = RecordedTaps(make_tap_id, limits)
        self._folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_taken = any(folder.glob("*.parquet"))
        except OSError as error:
            raise CaptureError(f"{folder}: the capture folder cannot be made: {error.strerror}") from error
        if is_taken:
            raise CaptureError(f"{folder}: there is a capture in this folder; name an empty one")

    def add(self, row: Row, edition: str) -> None:
        """Take one row; `edition` is that of its protocol."""
        full = self.taps.add(row, edition)
        if full is not None:
            self._write(full)

    def flush(self) -> None:
        """Write what was taken."""
        for tap in self.taps:
            self._write(tap)

    def _write(self, tap: RecordedTap) -> None:
        name = segment_name(tap.source.tap, tap.number)
        table = tap.take()
        if table is None:
            return
        try:
            write_segment(self._folder, name, table)
        except OSError as error:
            raise CaptureError(f"{self._folder}: a segment cannot be written: {error.strerror}") from error


class PacketFile:
    """Reads one packet capture (pcap, pcapng).

    Args:
        packages: the protocols that come into question, in the order of preference.

    Attributes:
        notes: after `read`, a sentence for each thing that could not be read, as `specwire decode`
            prints them.
    """

    def __init__(self, path: Path, packages: Sequence[ModuleType], *, limits: Limits | None = None) -> None:
        self.path = path
        self.notes: list[str] = []
        self._packages = packages
        self._limits = limits

    def read(self) -> Iterator[pa.Table]:
        """Yield the messages in the columns of a capture, each table of one tap, in the order of `seq`.

        Raises CaptureError if the file cannot be read, or is damaged.
        """
        digest = digest_file(self.path)
        taps = RecordedTaps(lambda name: f"{name}-0-{digest}", self._limits)
        editions = {protocol_name(package): str(package.EDITION) for package in self._packages}
        for row in self._rows():
            full = taps.add(row, editions.get(row.protocol or "", ""))
            if full is not None and (table := full.take()) is not None:
                yield table
        yield from (table for tap in taps if (table := tap.take()) is not None)
        if taps.left_out:
            self.notes.append(f"{show_count(taps.left_out, 'message')} of no known protocol")

    def _rows(self) -> Iterator[Row]:
        reader, traffic = PacketReader(), Traffic(lambda opener, listener: self._packages)
        try:
            with self.path.open("rb") as file:
                while portion := file.read(PORTION_OCTETS):
                    for packet in reader.feed(portion):
                        yield from traffic.take(packet)
        except (OSError, PcapError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise CaptureError(f"{self.path}: {reason}") from error
        yield from traffic.end()
        self.notes += [note for note in (reader.end(), *traffic.notes()) if note]


def digest_file(path: Path, octets: int | None = None) -> str:
    """Return the digest of a file, or of its first octets, in `DIGEST_DIGITS` digits.

    CaptureError if it cannot be read.
    """
    digest, left = hashlib.sha256(), octets
    try:
        with path.open("rb") as file:
            while portion := file.read(PORTION_OCTETS if left is None else min(PORTION_OCTETS, left)):
                digest.update(portion)
                left = None if left is None else left - len(portion)
    except OSError as error:
        raise CaptureError(f"{path}: the packet capture cannot be read: {error.strerror}") from error
    return digest.hexdigest()[:DIGEST_DIGITS]
