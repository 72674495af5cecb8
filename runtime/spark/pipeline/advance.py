"""One run of the pipeline: new segments are added to frames, typed tables and answers.

    segments --take in--> portions --sort out--> rows --keep----> frames/, late/
                                                      --decode--> typed/ --continue, roll up--> answers/, state/
                                                           \\--count--> counts/, summary.json, report.html

Everything that a run writes is staged and committed at once
(`specwire.runtime.spark.pipeline.commit`). A run without new segments writes nothing and starts no
Spark session.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from specwire.runtime.spark.pipeline.answering import Answering
from specwire.runtime.spark.pipeline.commit import Progress, Run, Steps
from specwire.runtime.spark.pipeline.counts import write_counts
from specwire.runtime.spark.pipeline.ledger import write_entries
from specwire.runtime.spark.pipeline.manifest import Manifest
from specwire.runtime.spark.pipeline.merging import merge_small, write_again
from specwire.runtime.spark.pipeline.request import Request, Work, check_request, find_work
from specwire.runtime.spark.pipeline.store import ANSWERS, FRAMES, LATE, TYPED, Store, View
from specwire.runtime.spark.pipeline.summary import NAME as SUMMARY
from specwire.runtime.spark.pipeline.summary import UNKNOWN, Summary, Transfer
from specwire.runtime.spark.pipeline.summing import find_transfers, sum_up
from specwire.runtime.spark.pipeline.taking import Taking, sort_out
from specwire.runtime.spark.pipeline.writing import GATHERED_OCTETS, table_settings
from specwire.runtime.spark.reading.paths import find_inputs
from specwire.runtime.spark.report.findings import Findings, collect
from specwire.runtime.spark.report.page import render_report
from specwire.runtime.spark.session.interrupts import heeded_interrupts
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.sharing import check_shared
from specwire.runtime.spark.session.target import Target

REPORT = "report.html"

FEW_MESSAGES = 20_000
"""Maximum messages of a small run. If the run updates answers, all messages of the folder count."""
FEW_OCTETS = 512 << 20
"""Maximum octets of segments of a small run."""


def advance(
    spark: SparkSession,
    store: Store,
    paths: Sequence[Path],
    request: Request,
    *,
    batch: tuple[str, int] | None = None,
    progress: Progress | None = None,
) -> Summary | None:
    """Process new segments and return the folder's summary; None if there is no summary yet.

    Segments and messages that earlier runs processed are skipped. `batch` is the id of a stream and
    the number of one of its batches. The manifest stores it for information only. Processed content
    is recognised by segments, not by batch numbers: if a power cut truncates the checkpoint of a
    stream, the stream uses the number again, with more segments.

    Raises InputError and CaptureError as `check_request` and `find_work` do, and JobError if the
    disk is full or message counts differ. Errors of Spark are not caught.
    """
    check_request(request, store.out)
    with store.begin() as run:
        work = find_work(request, paths, store, run)
        if work.nothing:
            if batch and run.before.batches.get(batch[0], -1) < batch[1]:
                kept = store.ledger, store.counts
                run.commit(_next_manifest(run, work.request, batch, nothing=True))
                store.remember(run.number, *kept)
            return store.summary()
        return carry_out(spark, store, run, work, batch=batch, progress=progress)


def carry_out(
    spark: SparkSession,
    store: Store,
    run: Run,
    work: Work,
    *,
    batch: tuple[str, int] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Do the work of a run that has begun, and commit it."""
    begun, request = time.monotonic(), work.request
    sorted_out = sort_out(work, request, run.number, store.files(LATE))
    new = sorted_out.protocols(request.asked.protocol)
    octets = sum(entry.size for entry in sorted_out.entries)
    few = is_few(run, request, sorted_out.messages, octets)
    with table_settings(spark, few=few):
        answered = [name for name in sorted({*new, *store.protocols()}) if name != UNKNOWN]
        steps = Steps(progress, 2 + 2 * len(new) + (len(answered) if request.answering else 0))
        counted = Taking(spark, store, run, request, sorted_out, steps, few=few).take()
        counts, ledger = write_counts(run, store.counts, counted), work.ledger.add(sorted_out.entries)
        if request.answering:
            small = few and (pc.sum(counts["octets"]).as_py() or 0) <= GATHERED_OCTETS
            Answering(spark, store, run, steps, rebuild=sorted_out.rebuild, few=small).answer_all(answered)
        steps.begin("writing the report")
        write_entries(run, sorted_out.entries)
        summary = sum_up(
            capture=request.capture,
            run=run.number,
            counts=counts,
            ledger=ledger,
            rows=run.count_rows(),
            transfers=_find_transfers(spark, store, run, request),
            elapsed_s=time.monotonic() - begun,
        )
        run.write(SUMMARY, summary.to_json())
        if _reporting(request):
            findings = _collect_findings(View(spark, store, run))
            run.write(REPORT, render_report(summary, findings).encode())
    if request.answering or ANSWERS not in request.asked.layers:
        # Without answers, no run is the last whose messages they have.
        since = run.before.answered if request.answering else run.before.run
        write_again(run, [LATE, *(table for table in store.tables() if not table.startswith(ANSWERS))], since)
        merge_small(run, store.tables())
    run.commit(_next_manifest(run, request, batch))
    store.remember(run.number, ledger, counts)
    return summary


def is_few(run: Run, request: Request, messages: int, octets: int) -> bool:
    """Return whether a run is small enough for the settings `BRIEF`.

    `octets` is the size of its segments. If the run updates answers, the messages in the folder
    count as well.
    """
    earlier = (rows for path, rows in run.before.rows.items() if path.startswith(f"{TYPED}/"))
    whole = messages + (sum(earlier) if request.answering else 0)
    return whole <= FEW_MESSAGES and octets <= FEW_OCTETS


def _collect_findings(view: View) -> Findings:
    """Collect the findings for the report from the answers as this run leaves them."""
    return collect(lambda name: view.table(name if name == FRAMES else f"{ANSWERS}/{name}"))


def _reporting(request: Request) -> bool:
    """Return whether a run updates the report; otherwise a later run does, with the answers."""
    return request.answers


def _find_transfers(spark: SparkSession, store: Store, run: Run, request: Request) -> tuple[Transfer, ...]:
    before = store.summary()
    if before is not None and not _reporting(request):
        return before.transfers
    return find_transfers(View(spark, store, run))


def _next_manifest(
    run: Run, request: Request, batch: tuple[str, int] | None, *, nothing: bool = False
) -> Manifest:
    batches = dict(run.before.batches)
    if batch:
        stream, number = batch
        batches[stream] = max(batches.get(stream, -1), number)
    up_to_date = request.answering or (nothing and run.before.answered == run.before.run)
    answered = run.number if up_to_date else run.before.answered
    return msgspec.structs.replace(run.before, asked=request.asked, batches=batches, answered=answered)


BRIEF_JAVA = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Java options for small runs, which end before the optimising compiler pays off."""


def run(
    request: Request, out: Path, *, target: Target | str | None = None, progress: Progress | None = None
) -> Summary | None:
    """Process the new segments of a capture into an output folder; return None if there are none.

    `target` says where Spark runs: a master URL, or a `Target` with more settings.

    Raises CaptureError if the capture cannot be read, InputError if the request is invalid or the
    folder is not a pipeline output, and JobError if Spark fails or the disk is full. The folder is
    then unchanged.

    After an interrupt, Spark stops before the staged files are removed: a running task could write
    them again.
    """
    check_request(request, out)
    where = target if isinstance(target, Target) else Target(master=target)
    store = Store(out)
    inputs = find_inputs([request.capture])
    paths = [*inputs.segments, *inputs.packets]
    with heeded_interrupts() as interrupts, store.begin() as begun:

        def tell(step: str, done: int, total: int) -> None:
            interrupts.heed()
            if progress:
                progress(step, done, total)

        work = find_work(request, paths, store, begun, tell)
        if work.nothing:
            return None
        tell("starting Spark", 0, 1)
        octets = sum(entry.size for entry in work.intake.entries)
        brief = where.local and is_few(begun, request, work.intake.rows, octets)
        with open_session(where, BRIEF_JAVA if brief else None) as spark:
            check_shared(spark, where, paths, out)
            return carry_out(spark, store, begun, work, progress=tell)
