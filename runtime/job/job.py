"""The main job, step by step: files, transfer, check, decode, check again.

Everything goes to one folder, which belongs to the job (`folder`):

    OUT/published/          the files that are distributed
    OUT/inboxes/CLIENT/     what each client received
    OUT/capture/            every message of every peer, as Parquet segments
    OUT/result/             captured frames, typed tables, answers, summary.json, report.html
    OUT/job.json            what the peers did, and what does not hold (nothing, if all is well)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.job.files import LARGE_OCTETS, SMALL_FILES, make_files
from specwire.runtime.job.findings import compare_counts, compare_files
from specwire.runtime.job.folder import own_folder, write_mark
from specwire.runtime.job.transfer import CLIENTS, Transfer, transfer

if TYPE_CHECKING:
    from specwire.runtime.spark.pipeline.summary import Summary

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many steps of it are done, and how many there are."""


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
    with own_folder(out):
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
    write_mark(out, msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    return result, summary
