"""The main job, step by step: files, transfer, check, decode, check again.

Everything goes to one folder, which belongs to the job: `MARK` in it says so, and an earlier run's is
replaced. A folder without the mark is left alone.

    OUT/published/          the files that are distributed
    OUT/inboxes/CLIENT/     what each client received
    OUT/capture/            every message of every peer, as Parquet segments
    OUT/result/             captured frames, typed tables, answers, summary.json, report.html
    OUT/job.json            what the peers did, and what does not hold (nothing, if all is well)
"""

from __future__ import annotations

import asyncio
import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.job.files import LARGE_OCTETS, SMALL_FILES, make_files
from specwire.runtime.job.findings import compare_counts, compare_files
from specwire.runtime.job.transfer import CLIENTS, Transfer, transfer

if TYPE_CHECKING:
    from specwire.runtime.spark.pipeline.summary import Summary

MARK = "job.json"

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many steps of it are done, and how many there are."""


class JobFolderError(Exception):
    """The folder for the job's output cannot be used; the text says why."""


class Result(msgspec.Struct, frozen=True):
    """What the job did; `faults` is empty where everything held."""

    files: int
    transfer: Transfer
    faults: tuple[str, ...]


def run_job(
    out: Path,
    *,
    master: str = "local[*]",
    small_files: int = SMALL_FILES,
    large_octets: int = LARGE_OCTETS,
    timeout_s: float = 300.0,
    progress: Progress,
) -> tuple[Result, Summary]:
    """Run the job in `out`; return what the peers did and what Spark found.

    Raises:
        JobFolderError: `out` holds something that is not an earlier run.
        TimeoutError: the files had not arrived after `timeout_s` seconds.
        CaptureError, JobError: the capture could not be written, or Spark failed.
    """
    with _own_folder(out):
        return _run(out, master, small_files, large_octets, timeout_s, progress)


def _run(
    out: Path, master: str, small_files: int, large_octets: int, timeout_s: float, progress: Progress
) -> tuple[Result, Summary]:
    from specwire.runtime.spark.pipeline.request import Request
    from specwire.runtime.spark.pipeline.run import run as run_pipeline

    published, capture = out / "published", out / "capture"
    inboxes = {name: out / "inboxes" / name for name in CLIENTS}
    progress("making files", 0, 1)
    files = make_files(published, small_files=small_files, large_octets=large_octets)
    for folder in (capture, *inboxes.values()):
        folder.mkdir(parents=True)
    moved = asyncio.run(
        transfer(
            published, inboxes, capture, timeout_s=timeout_s,
            progress=lambda done, total: progress("transferring files", done, total),
        )
    )  # fmt: skip
    progress("comparing files", 0, 1)
    faults = list(compare_files(published, inboxes))
    summary = run_pipeline(Request(capture), out / "result", target=master, progress=progress)
    assert summary is not None, "the job's folder was empty, so everything in the capture is new"
    faults += compare_counts(moved, summary)
    result = Result(files, moved, tuple(faults))
    _write_mark(out, msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    return result, summary


@contextmanager
def _own_folder(out: Path) -> Iterator[None]:
    """Empty the folder of an earlier run, mark it as the job's, and keep other runs out of it meanwhile."""
    _check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / MARK).open("a+b") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobFolderError(f"another run is at work in {out}; name another folder with --out") from None
        for path in out.iterdir():
            if path.name != MARK:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        _write_mark(out, b'{"running": true}\n')
        yield


def _write_mark(out: Path, text: bytes) -> None:
    """Write into the file that is there: a new one in its place would have no lock."""
    with (out / MARK).open("r+b") as mark:
        mark.truncate()
        mark.write(text)


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise JobFolderError(f"{out} is a file; name a folder with --out")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise JobFolderError(f"{out} is not empty and not the output of an earlier run; it is left alone")
