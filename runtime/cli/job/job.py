"""Job of `specwire run`: peers of four protocols, one capture, one pipeline, one report.

The job owns its output folder (`workspace`):

    OUT/published/          files that FILEMQ distributes
    OUT/inboxes/CLIENT/     files that each FILEMQ client received
    OUT/norfab/             stores of the NORFAB broker and workers
    OUT/ticker.md           specification of the protocol that is compiled during the job
    OUT/grammars/, wire/    its grammar and its generated package
    OUT/capture/            all messages of all peers, as Parquet segments
    OUT/result/             frames, typed tables, answers, summary.json, report.html
    OUT/job.json            counts of the peers, and failed checks (none if all is well)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.cli.job.checks import (
    check_filemq,
    check_flux,
    check_norfab,
    check_ticker,
    compare_files,
    compare_taps,
)
from specwire.runtime.cli.job.filemq_part import CLIENTS, FilemqResult, run_filemq
from specwire.runtime.cli.job.flux_part import FluxResult, run_flux
from specwire.runtime.cli.job.norfab_part import NorfabResult, run_norfab
from specwire.runtime.cli.job.taps import Recorded, Taps
from specwire.runtime.cli.job.ticker_part import TickerResult, compile_ticker, run_ticker
from specwire.runtime.cli.job.workspace import LARGE_OCTETS, SMALL_FILES, make_files, own_folder, write_mark

if TYPE_CHECKING:
    from specwire.runtime.spark.pipeline.summary import Summary

Progress = Callable[[str, int, int], None]
"""Called before each step, with its name, the number of steps done, and the number of steps."""


class Peers(msgspec.Struct, frozen=True):
    """Counts of the peers of each protocol, and of the taps."""

    filemq: FilemqResult
    flux: FluxResult
    norfab: NorfabResult
    ticker: TickerResult
    taps: tuple[Recorded, ...]


class Result(msgspec.Struct, frozen=True):
    """Number of distributed files, counts of the peers, and one sentence for each failed check."""

    files: int
    peers: Peers
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
    """Run the job in `out`; return the counts of the peers and the summary of the tables.

    Raises:
        JobFolderError: `out` is not empty and not the folder of an earlier job, or another job runs
            in it.
        TimeoutError: FILEMQ had not finished after `timeout_s` seconds, or another peer after twice
            as many.
        CaptureError: the capture could not be written.
        FluxError: a call failed unexpectedly.
        JobError: Spark failed.
    """
    with own_folder(out):
        return _run(out, master, small_files, large_octets, timeout_s, progress)


def _run(
    out: Path, master: str, small_files: int, large_octets: int, timeout_s: float, progress: Progress
) -> tuple[Result, Summary]:
    from specwire.runtime.spark.pipeline.advance import run as run_pipeline
    from specwire.runtime.spark.pipeline.request import Request
    from specwire.runtime.spark.report.page import draw_report

    published, capture, result = out / "published", out / "capture", out / "result"
    inboxes = {name: out / "inboxes" / name for name in CLIENTS}
    progress("compiling ticker", 0, 1)
    ticker = compile_ticker(out)
    progress("making files", 0, 1)
    files = make_files(published, small_files=small_files, large_octets=large_octets)
    for folder in (capture, *inboxes.values()):
        folder.mkdir(parents=True)
    peers = asyncio.run(_run_peers(out, ticker, inboxes, capture, timeout_s, progress))
    progress("comparing files", 0, 1)
    faults = list(compare_files(published, inboxes))
    summary = run_pipeline(Request(capture), result, target=master, progress=progress, draw=draw_report)
    assert summary is not None, "the output folder was empty, so every segment is new"
    faults += compare_taps(peers.taps, summary)
    faults += check_filemq(peers.filemq, peers.taps, summary)
    faults += check_flux(peers.flux, result)
    faults += check_norfab(peers.norfab, result)
    faults += check_ticker(peers.ticker, result)
    job = Result(files, peers, tuple(faults))
    write_mark(out, msgspec.json.format(msgspec.json.encode(job), indent=2) + b"\n")
    return job, summary


async def _run_peers(
    out: Path,
    ticker: ModuleType,
    inboxes: dict[str, Path],
    capture: Path,
    timeout_s: float,
    progress: Progress,
) -> Peers:
    """Run the peers of all protocols at the same time, recorded to one capture."""

    def show(done: int, total: int) -> None:
        progress("running peers", done, total)

    with Taps(capture) as taps:
        try:
            async with asyncio.timeout(2 * timeout_s), asyncio.TaskGroup() as group:
                filemq = group.create_task(
                    run_filemq(out / "published", inboxes, taps, timeout_s=timeout_s, progress=show)
                )
                flux = group.create_task(run_flux(taps))
                norfab = group.create_task(run_norfab(out / "norfab", taps))
                quotes = group.create_task(run_ticker(ticker, taps))
        except TimeoutError as error:
            raise TimeoutError(f"the peers had not finished after {2 * timeout_s:g} s") from error
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures
    return Peers(filemq.result(), flux.result(), norfab.result(), quotes.result(), taps.counts())
