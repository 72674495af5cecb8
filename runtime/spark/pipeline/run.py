"""The pipeline in a Spark session of its own, begun only when a run has something to do."""

from __future__ import annotations

from pathlib import Path

from specwire.runtime.spark.pipeline.advance import carry_out, is_few
from specwire.runtime.spark.pipeline.request import Request, check_request, find_work
from specwire.runtime.spark.pipeline.steps import Progress
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.pipeline.summary import Summary
from specwire.runtime.spark.reading.paths import find_inputs
from specwire.runtime.spark.session.interrupts import heeded_interrupts
from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.sharing import check_shared
from specwire.runtime.spark.session.target import Target

BRIEF_JAVA = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""How Java runs where its work is done before its better compiler has begun to pay."""


def run(
    request: Request, out: Path, *, target: Target | str | None = None, progress: Progress | None = None
) -> Summary | None:
    """Work the segments of a capture that are new into an output folder; return None where there are none.

    `target` says where Spark runs, a master URL or more. Raises CaptureError for a capture that cannot be
    read, InputError for a request that cannot be met or a folder that is not ours, and JobError where Spark
    fails or the disk is full; the folder is then as it was.

    Where it is interrupted, Spark ends before what was staged is removed: a task that still ran would write it
    anew.
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
