"""One run of the pipeline: new segments are added to frames, typed tables and answers.

    segments --take in--> portions --sort out--> rows --keep----> frames/, late/
                                                      --decode--> typed/ --continue, roll up--> answers/, state/
                                                           \\--count--> counts/, summary.json, report.html

Everything that a run writes is staged and committed at once
(`specwire.runtime.spark.pipeline.commit`). A run without new segments starts no Spark session. It
writes nothing but earlier files that lack columns (`specwire.runtime.spark.pipeline.merging`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.spark.pipeline.answering import Answering, lacks_answers
from specwire.runtime.spark.pipeline.commit import Area, Progress, Run, Steps
from specwire.runtime.spark.pipeline.counts import write_counts
from specwire.runtime.spark.pipeline.ledger import TABLE as SEGMENTS
from specwire.runtime.spark.pipeline.ledger import Entry, write_entries
from specwire.runtime.spark.pipeline.merging import find_mixed, merge_small, rewrite
from specwire.runtime.spark.pipeline.request import Request, Work, check_request, find_work
from specwire.runtime.spark.pipeline.store import (
    ANSWERS,
    FRAMES,
    LATE,
    STATE,
    TYPED,
    Store,
    View,
    partition_date,
    run_number,
)
from specwire.runtime.spark.pipeline.summary import NAME as SUMMARY
from specwire.runtime.spark.pipeline.summary import UNKNOWN, Summary, Transfer
from specwire.runtime.spark.pipeline.summing import find_transfers, sum_up
from specwire.runtime.spark.pipeline.taking import Sorted, Taking, sort_out
from specwire.runtime.spark.pipeline.writing import GATHERED_OCTETS, table_settings
from specwire.runtime.spark.reading.paths import find_inputs
from specwire.runtime.spark.session.executors import check_shared
from specwire.runtime.spark.session.java import Interrupts
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.target import Target

REPORT = "report.html"

Draw = Callable[[Summary, Callable[[str], DataFrame | None]], str]
"""Function from the summary and a reader of the answers by name to the report as HTML."""

FEW_MESSAGES = 20_000
"""Maximum new messages of a small run."""
FEW_EARLIER = 300_000
"""Maximum rows of earlier runs that a small run reads: messages and state."""
FEW_OCTETS = 512 << 20
"""Maximum octets of segments of a small run."""


def advance(
    spark: SparkSession,
    store: Store,
    paths: Sequence[Path],
    request: Request,
    *,
    progress: Progress | None = None,
    draw: Draw | None = None,
) -> Summary | None:
    """Process new segments and return the folder's summary; None if there is no summary yet.

    Segments and messages that earlier runs processed are skipped. `draw` draws the report
    (`specwire.runtime.spark.report.page.draw_report`); without it none is written.

    Raises InputError and CaptureError as `check_request` and `find_work` do, and JobError if the
    disk is full or message counts differ. Errors of Spark are not caught.
    """
    check_request(request, store.out)
    with store.begin() as run:
        work = find_work(request, paths, store, run)
        if work.nothing:
            commit_without_rows(store, run)
            return store.summary()
        return carry_out(spark, store, run, work, progress=progress, draw=draw)


def carry_out(
    spark: SparkSession,
    store: Store,
    run: Run,
    work: Work,
    *,
    progress: Progress | None = None,
    draw: Draw | None = None,
) -> Summary:
    """Do the work of a run that has begun, and commit it."""
    begun, request = time.monotonic(), work.request
    sorted_out = sort_out(work, request, run.number, store.files(LATE))
    new = sorted_out.protocols(request.asked.protocol)
    answered = find_unanswered(store, run, request, sorted_out)
    extent = measure(store, run, sorted_out, answered)
    with table_settings(spark, few=extent.few):
        steps = Steps(progress, 2 + 2 * len(new) + len(answered))
        counted = Taking(spark, store, run, request, sorted_out, steps, few=extent.few).take()
        counts, ledger = write_counts(run, store.counts, counted), work.ledger.add(sorted_out.entries)
        if request.answering:
            octets = extent.octets + sum(pc.sum(part["octets"]).as_py() or 0 for part in counted)
            few = extent.few and octets <= GATHERED_OCTETS
            Answering(spark, store, run, steps, rebuild=sorted_out.rebuild, few=few).answer_all(answered)
        steps.begin("writing the report")
        write_entries(run, sorted_out.entries)
        summary = sum_up(
            capture=request.capture,
            run=run.number,
            counts=counts,
            ledger=ledger,
            rows=run.count_rows(),
            transfers=_find_transfers(View(spark, store, run), store.summary(), request),
            elapsed_s=time.monotonic() - begun,
        )
        run.write(SUMMARY, summary.to_json())
        if draw is not None and request.answers:  # Otherwise a later run updates the report.
            page = draw(summary, partial(_read_answer, View(spark, store, run)))
            run.write(REPORT, page.encode())
    mixed = find_mixed(run, [LATE, *(table for table in store.tables() if not table.startswith(ANSWERS))])
    if request.answering or ANSWERS not in request.asked.layers:
        # Otherwise the next update of the answers would take the rows of these files for new ones.
        merge_small(run, [*store.tables(), SEGMENTS])
        mixed = rewrite(run, mixed)
    run.commit(
        msgspec.structs.replace(
            run.before,
            asked=request.asked,
            answered=run.number if request.answering else run.before.answered,
            mixed=mixed,
        )
    )
    store.remember(run.number, ledger, counts)
    return summary


def commit_without_rows(store: Store, run: Run) -> None:
    """Commit a run without new segments: it writes files of mixed tables again, if there are any."""
    before = run.before
    mixed = rewrite(run, before.mixed) if before.settled else before.mixed
    if run.replaced or mixed != before.mixed:
        kept = store.ledger, store.counts
        answered = run.number if before.answered == before.run else before.answered
        run.commit(msgspec.structs.replace(before, answered=answered, mixed=mixed))
        store.remember(run.number, *kept)


def rewrite_all(out: Path, progress: Progress | None = None) -> None:
    """Do runs without new segments until no table is mixed; each needs space for what it writes.

    Stops if another program has added rows in the meantime that are not in the answers.
    """
    store, total = Store(out), 0
    with Interrupts():
        while store.manifest.mixed:
            left = sum(files for files, _ in store.lacking().values())
            total = total or left
            if progress:
                progress("rewriting earlier files", total - left, total)
            with store.begin() as run:
                if not run.before.settled:
                    return
                commit_without_rows(store, run)


def find_unanswered(store: Store, run: Run, request: Request, work: Sorted) -> list[str]:
    """Return the protocols whose answers a run updates.

    These have messages since the last answers, or lack answers. A rebuild updates all.
    """
    new, since = work.protocols(request.asked.protocol), run.before.answered
    return [
        protocol
        for protocol in sorted({*new, *store.protocols()} - {UNKNOWN})
        if request.answering
        and (
            work.rebuild
            or protocol in new
            or any(run_number(path) > since for path in store.files(f"{TYPED}/{protocol}"))
            or lacks_answers(store, protocol)
        )
    ]


class Extent(NamedTuple):
    """How much a run reads.

    Attributes:
        few: whether it is so little that the settings `BRIEF` suit it.
        octets: octets of what earlier runs left, uncompressed; if there are many, of some.
    """

    few: bool
    octets: int


def measure(store: Store, run: Run, work: Sorted, answered: Iterable[str]) -> Extent:
    """Return how much a run reads; `answered` are the protocols whose answers it updates.

    For these it reads, besides its own messages, those that earlier runs left unanswered, the open
    state, and the sums of each date that has new messages. In a rebuild, and for a protocol that
    lacks answers, it reads all messages.
    """
    rows = octets = 0
    dates = {day for entry in work.entries for day in _dates(entry)}
    for protocol in answered:
        since = 0 if work.rebuild or lacks_answers(store, protocol) else run.before.answered
        read = [path for path in store.files(f"{TYPED}/{protocol}") if run_number(path) > since]
        for path in store.files(f"{STATE}/{protocol}"):
            if path.name.startswith(f"{Area.OPEN}-") or partition_date(path) in dates:
                read.append(path)
        for path in read:
            if rows > FEW_EARLIER:
                break
            footer = pq.read_metadata(path)
            rows += footer.num_rows
            octets += sum(footer.row_group(at).total_byte_size for at in range(footer.num_row_groups))
    new = sum(entry.size for entry in work.entries)
    few = work.messages <= FEW_MESSAGES and new <= FEW_OCTETS and rows <= FEW_EARLIER
    return Extent(few, octets)


def _dates(entry: Entry) -> Iterator[str]:
    """Yield the dates from the first message of a segment to its last, in UTC."""
    if entry.first is not None and entry.last is not None:
        first, last = (datetime.fromtimestamp(at / 1e6, UTC).toordinal() for at in (entry.first, entry.last))
        yield from (str(date.fromordinal(day)) for day in range(first, last + 1))


def _read_answer(view: View, name: str) -> DataFrame | None:
    """Return an answer table, or the captured frames, for the report; None if it has no rows."""
    table = name if name == FRAMES else f"{ANSWERS}/{name}"
    return view.table(table) if view.files(table) else None


def _find_transfers(view: View, before: Summary | None, request: Request) -> tuple[Transfer, ...]:
    """Return the largest transfers, those of the summary before the run if they are the same."""
    if before is not None and not (request.answers and view.changes(f"{ANSWERS}/transfers")):
        return before.transfers
    return find_transfers(view)


BRIEF_JAVA = {
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    )
}
"""Java options for small runs, which end before the optimising compiler pays off.

Most of a small run is the start of Spark. So Java does not verify the classes of the installed Spark
again at each start, which takes a sixth of it.
"""


def run(
    request: Request,
    out: Path,
    *,
    target: Target | str | None = None,
    progress: Progress | None = None,
    draw: Draw | None = None,
) -> Summary | None:
    """Process the new segments of a capture into an output folder; return None if there are none.

    A run without new segments starts no Spark session; see `commit_without_rows`.

    `target` says where Spark runs: a master URL, or a `Target` with more settings. `draw` draws the
    report, see `advance`.

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
    with Interrupts() as interrupts, store.begin() as begun:

        def tell(step: str, done: int, total: int) -> None:
            interrupts.heed()
            if progress:
                progress(step, done, total)

        work = find_work(request, paths, store, begun, tell)
        if work.nothing:
            commit_without_rows(store, begun)
            return None
        tell("starting Spark", 0, 1)
        sorted_out = sort_out(work, work.request, begun.number, store.files(LATE))
        answered = find_unanswered(store, begun, work.request, sorted_out)
        brief = where.local and measure(store, begun, sorted_out, answered).few
        with open_session(where, BRIEF_JAVA if brief else None) as spark:
            check_shared(spark, where, paths, out)
            return carry_out(spark, store, begun, work, progress=tell, draw=draw)
