"""The writer process of a tap: captured messages in by a pipe, Parquet segments out.

A process of its own, because numpy and pyarrow are three times the size of a broker, and because a Parquet
file is finished at its end: the writer outlives a killed peer and writes what the pipe still holds. It is
started by `specwire.runtime.capture.tap` as ``python -m specwire.runtime.capture.writer OPENING``, reads words (see
`specwire.runtime.capture.link`) from standard input and answers on standard output.

It ends when its input ends, and at nothing else: an interrupt at the keyboard or a service manager's SIGTERM
reaches the peer too, and the peer closes the pipe. Should another process hold the pipe open (a fork of the
peer), the writer also ends when its parent is gone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from errno import ENOSPC
from pathlib import Path

import msgspec
import pyarrow as pa

from specwire.runtime.capture.limits import Limits
from specwire.runtime.capture.link import Captured, Closing, Opening, Progress, Word, WordReader, pack_word
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.payload import make_reducer
from specwire.runtime.capture.retention import FOREVER, prune
from specwire.runtime.capture.segments import Source, build_table, write_segment
from specwire.runtime.packages import add_packages, choose_package

READ_OCTETS = 1 << 20
PARENT_CHECK_S = 1.0
PRUNE_S = 60.0
"""Time between two looks at what of the folder is too old, or too much."""

FREE_OCTETS = 256 << 20
FREE_PART = 20
"""What is left free where nothing was said: so much, or this part of a smaller disk."""


class SegmentWriter:
    """Gathers messages until a limit is reached, then writes them as one segment."""

    def __init__(self, opening: Opening, *, answer: int) -> None:
        self._folder = Path(opening.folder)
        self._limits: Limits = opening.limits
        payload = opening.limits.payload
        self._source = Source(opening.tap, opening.protocol, opening.edition, str(payload))
        if opening.package:
            add_packages(Path(opening.package))
        name = choose_package(opening.protocol, opening.edition) or opening.protocol
        self._reduce = make_reducer(name, payload)
        self._prune_at = time.monotonic()
        self._answer: int | None = answer
        self._rows: list[Captured] = []
        self._begun = 0.0
        self._octets = 0
        self._number = 0
        self._written = 0
        self._lost = 0
        self._dropped = 0
        self._stated_dropped = 0

    def add(self, row: Captured) -> None:
        """Take one message; writes the segment when it has reached its rows or octets."""
        if not self._rows:
            self._begun = time.monotonic()
        if self._reduce is not None:
            row = msgspec.structs.replace(row, frames=self._reduce(row.frames))
        self._rows.append(row)
        self._octets += sum(map(len, row.frames))
        self._dropped = row.dropped
        if len(self._rows) >= self._limits.segment_rows or self._octets >= self._limits.segment_octets:
            self.flush()

    def wait_s(self) -> float:
        """Return the time until the segment is due, never below 0, in seconds."""
        if not self._rows:
            return PARENT_CHECK_S
        # Counted from arrival, not from capture: behind a long queue every message is old, and each would
        # become a segment of its own.
        due = self._begun + self._limits.segment_s
        return min(PARENT_CHECK_S, max(0.0, due - time.monotonic()))

    def attend(self) -> None:
        """Write the segment if it is old enough, and look now and then at what of the folder is to go."""
        if self._rows and self.wait_s() <= 0.0:
            self.flush()
        if self._limits.retention != FOREVER and time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + PRUNE_S
            try:
                prune(self._folder, self._limits.retention, time.time())
            except OSError as error:
                self._tell(None, note=f"{self._folder}: old segments cannot be deleted: {error}")

    def note_dropped(self, dropped: int) -> None:
        """Take the tap's count of dropped messages."""
        self._dropped = dropped

    def finish(self) -> None:
        """Write what is left; a count of drops that no segment states yet gets a segment without rows."""
        if self._rows or self._dropped + self._lost > self._stated_dropped:
            self.flush()

    def flush(self) -> None:
        """Write the gathered messages as one segment and say so; a full disk loses them and is reported."""
        rows, self._rows, self._octets = self._rows, [], 0
        dropped = self._dropped + self._lost
        name = segment_name(self._source.tap, self._number)
        try:
            self._require_room()
            write_segment(self._folder, name, build_table(rows, self._source, dropped))
        except (OSError, pa.ArrowException) as error:
            self._lost += len(rows)
            self._tell(f"{self._folder}: {len(rows)} messages could not be written: {error}")
            return
        self._number += 1
        self._written += len(rows)
        self._stated_dropped = dropped
        self._tell(None)

    def _require_room(self) -> None:
        """OSError where writing would take what the disk is to have left, which is for the traffic itself."""
        disk = os.statvfs(self._folder)
        wanted = self._limits.free_octets
        if wanted is None:
            wanted = min(FREE_OCTETS, disk.f_blocks * disk.f_frsize // FREE_PART)
        if disk.f_bavail * disk.f_frsize < wanted:
            raise OSError(ENOSPC, f"less than {wanted >> 20} MiB of the disk are free")

    def _tell(self, fault: str | None, *, note: str | None = None) -> None:
        if self._answer is None:
            return
        try:
            os.write(self._answer, pack_word(Progress(self._written, self._lost, fault, note)))
        except BrokenPipeError:
            self._answer = None


def arrivals(source: int, wait_s: Callable[[], float], *, parent: int) -> Iterator[list[Word]]:
    """Yield the words that arrive, or none after a wait; ends when the pipe ends or the parent is gone."""
    reader = WordReader()
    poll = select.poll()
    poll.register(source, select.POLLIN)
    while True:
        if poll.poll(wait_s() * 1000):
            octets = os.read(source, READ_OCTETS)
            if not octets:
                return
            yield reader.feed(octets)
        elif os.getppid() != parent:
            return
        else:
            yield []


def run(opening: Opening, *, source: int, answer: int) -> None:
    """Write segments from the words read on `source` until it ends."""
    writer = SegmentWriter(opening, answer=answer)
    for words in arrivals(source, writer.wait_s, parent=os.getppid()):
        for word in words:
            match word:
                case Captured():
                    writer.add(word)
                case Closing(dropped=dropped):
                    writer.note_dropped(dropped)
        writer.attend()
    writer.finish()


def main() -> None:
    """Run until standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    opening = msgspec.json.decode(sys.argv[1], type=Opening)
    run(opening, source=sys.stdin.fileno(), answer=sys.stdout.fileno())


if __name__ == "__main__":
    main()
