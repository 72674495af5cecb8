"""Packet captures as input of a run: each new file becomes one staged segment.

Reassembling TCP and ZMTP is sequential work over one file. Each file therefore takes one process,
and connections are followed within a file. Taps are named after the file's content, so reading a
file again, or a copy of it, adds no message twice.

A file is read once, when it is complete. A file that changes during reading is quarantined, and the
next run reads it. A file that has grown since a run read it is also quarantined, because the start
of its new messages depends on packets that were missing. The reason says so, and no message is
duplicated or lost silently. A different file under a known name is read.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.names import SUFFIX
from specwire.runtime.capture.segments import COLUMNS
from specwire.runtime.pcap.recording import PacketFile, digest_file
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.pipeline.inspection import Holding, Inspected
from specwire.runtime.spark.pipeline.ledger import Entry, Ledger, Outcome
from specwire.runtime.spark.reading.capture import packages_of

FOLDER = "packets"
"""Folder of the staged segments in a run's staging folder. They are not committed."""


class Staged(msgspec.Struct, frozen=True):
    """A packet capture as a segment.

    Attributes:
        path: path of the segment.
        state: size and modification time of the packet capture, before it was read.
        inspected: content of the segment; None if the file cannot be read.
        reason: why the file, or a part of it, cannot be read.
    """

    path: Path
    state: tuple[int, int]
    inspected: Inspected | None
    reason: str = ""


def stage_packets(
    paths: Sequence[Path],
    ledger: Ledger,
    folder: Path,
    protocol: str | None,
    progress: Callable[[int, int], None],
) -> dict[Path, Staged]:
    """Write new packet captures as segments into a folder; return them by the captures' paths.

    Other files are ignored. Raises JobError if a process dies.
    """
    fresh = [path for path in paths if path.suffix != SUFFIX and not _is_known(path, ledger)]
    if not fresh:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(path, folder / path.name, ledger.latest(path.name), protocol) for path in fresh]
    if len(jobs) == 1:
        progress(0, 1)
        return {fresh[0]: stage(*jobs[0])}
    found: dict[Path, Staged] = {}
    with _processes(min(len(jobs), os.cpu_count() or 1)) as pool:
        waiting = {pool.submit(stage, *job): job[0] for job in jobs}
        progress(0, len(jobs))
        try:
            for done in as_completed(waiting):
                found[waiting[done]] = done.result()
                progress(len(found), len(jobs))
        except BrokenProcessPool as error:
            raise JobError(
                "a process that reads packet captures died: memory may be short, or the program "
                "calls this outside `if __name__ == '__main__'`"
            ) from error
    return found


@contextmanager
def _processes(number: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a process pool for the block; an interrupt ends its processes at once."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    pool.shutdown()


def stage(path: Path, target: Path, before: Entry | None, protocol: str | None) -> Staged:
    """Write one packet capture as a segment.

    `before` is the latest ledger entry of a file with its name.
    """
    state = 0, 0
    try:
        state = _state(path)
        if before is not None and _has_grown(path, before):
            raise CaptureError(
                f"{path}: it has grown since run {before.run} read {before.rows} messages of it; a packet capture is "
                "read once, when it is complete: record into files that are closed (tcpdump -G or -C)"
            )
        inspected, notes = _write(path, target, protocol)
        if _state(path) != state:
            raise CaptureError(f"{path}: it changed while it was read; a run reads it when it is complete")
    except CaptureError as error:
        return Staged(target, state, None, str(error))
    return Staged(target, state, inspected, "; ".join(notes))


def _write(path: Path, target: Path, protocol: str | None) -> tuple[Inspected, list[str]]:
    file = PacketFile(path, packages_of(protocol))
    rows: dict[str, int] = {}
    protocols: set[str] = set()
    times: list[int] = []
    with pq.ParquetWriter(
        target, COLUMNS, compression="zstd", compression_level=1, use_dictionary=False
    ) as out:
        for table in file.read():
            out.write_table(table)
            tap = table["tap"][0].as_py()
            rows[tap] = rows.get(tap, 0) + table.num_rows
            protocols.add(table["protocol"][0].as_py())
            micros = table["ts"].cast(pa.int64())
            times += [pc.min(micros).as_py(), pc.max(micros).as_py()]
    return (
        Inspected(
            rows=sum(rows.values()),
            holdings=tuple(Holding(tap, ((0, count - 1),), count) for tap, count in sorted(rows.items())),
            protocols=tuple(sorted(protocols)),
            tap=None,
            dropped=0,
            edition="",
            first=min(times, default=None),
            last=max(times, default=None),
        ),
        file.notes,
    )


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise CaptureError(f"{path}: the packet capture cannot be read: {error.strerror}") from error
    return found.st_size, found.st_mtime_ns


def _is_known(path: Path, ledger: Ledger) -> bool:
    try:
        return ledger.has(path.name, *_state(path))
    except CaptureError:
        return False


def _has_grown(path: Path, before: Entry) -> bool:
    """Return whether a file begins with the whole content of an earlier run, and is longer."""
    if before.outcome == Outcome.QUARANTINED or not before.taps or before.size >= _state(path)[0]:
        return False
    digest = before.taps[0].rpartition("-")[2]
    return digest_file(path, before.size) == digest
