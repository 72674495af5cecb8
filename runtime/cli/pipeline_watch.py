"""`specwire pipeline watch`: a capture that grows, decoded and answered as it grows, with alerts."""

from __future__ import annotations

import json as json_text
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.config_option import config_option
from specwire.runtime.cli.console import fail, messages
from specwire.runtime.cli.pipeline_session import Master, Package, target_of
from specwire.runtime.cli.readiness import Readiness

if TYPE_CHECKING:
    from specwire.runtime.cli.pipeline_watch_view import View
    from specwire.runtime.spark.live.alert_table import Line
    from specwire.runtime.spark.live.work import Watch
    from specwire.runtime.spark.pipeline.manifest import Asked
    from specwire.runtime.spark.session.target import Target

JOB_FAILED = 1
BAD_INPUT = 2

ALERTING = "Alerts"


def watch(
    capture: Annotated[Path, typer.Option(help="Folder that segments are written to.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder to write; an output of `pipeline run` or `watch` goes on.", show_default=False
        ),
    ],
    protocol: Annotated[
        str | None,
        typer.Option(help="Read every message as this protocol, not as its tap stated.", show_default=False),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Take in what is there, then end.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two batches, at least.")] = 1.0,
    answers_every: Annotated[
        float,
        typer.Option(
            min=0,
            help="Seconds after which the answers follow while messages come; a tenth of it when they pause.",
        ),
    ] = 300.0,
    gap: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for a segment that is missing between two others.")
    ] = 10.0,
    alerts: Annotated[bool, typer.Option(help="Watch every conversation.", rich_help_panel=ALERTING)] = True,
    silent_after: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds after which a peer is silent.  [default: as the protocol's timers say]",
            show_default=False,
            rich_help_panel=ALERTING,
        ),
    ] = None,
    alert_lines: Annotated[
        Path | None,
        typer.Option(
            help="File to append each alert to as a line of JSON.",
            show_default=False,
            rich_help_panel=ALERTING,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print each batch and alert as a line of JSON.")
    ] = False,
    master: Master = None,
    package: Package = None,
    config: Annotated[Path | None, config_option("pipeline.watch")] = None,
) -> None:
    """Decode a capture while it grows, into the same tables and answers as `pipeline run`, until interrupted.

    An interrupt or SIGTERM lets the batch in hand end and the answers follow. Whatever ends it, the next watch
    goes on where this one was.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError:
        fail("the pipeline needs Spark: install specwire[spark]", status=JOB_FAILED)
    from specwire.runtime.capture import CaptureError
    from specwire.runtime.cli.pipeline_watch_view import Lines, Screen
    from specwire.runtime.spark.errors import InputError, PipelineError
    from specwire.runtime.spark.live.alert_table import line_writer
    from specwire.runtime.spark.live.arriving import Patience
    from specwire.runtime.spark.live.conversing import Rules
    from specwire.runtime.spark.live.work import Watch
    from specwire.runtime.spark.pipeline.request import Request

    view: View = Lines(write_line) if json else Screen(messages())
    try:
        request = Watch(
            Request(capture, _asked(out, protocol)),
            out,
            every_s=every,
            answers_s=answers_every,
            patience=Patience(gap_s=gap),
            rules=Rules(silent_s=silent_after) if alerts else None,
            once=once,
        )
        appended = line_writer(alert_lines) if alert_lines is not None else None
        with asked_to_stop() as stop, view:
            _watch(request, target_of(master, None, package), stop, view, appended)
    except (CaptureError, InputError) as error:
        fail(str(error), status=BAD_INPUT)
    except PipelineError as error:
        fail(str(error), status=JOB_FAILED)


def _asked(out: Path, protocol: str | None) -> Asked:
    """What the folder was begun with, if it was: a watch goes on with that."""
    import msgspec

    from specwire.runtime.spark.pipeline.store import Store

    before = Store(out).manifest.asked
    return before if protocol is None else msgspec.structs.replace(before, protocol=protocol)


def _watch(request: Watch, target: Target, stop: threading.Event, view: View, appended: Line | None) -> None:
    from specwire.runtime.spark.live.watch import SETTINGS, check, watch
    from specwire.runtime.spark.session.opening import open_session
    from specwire.runtime.spark.session.sharing import check_shared

    check(request)
    ready = Readiness()
    view.tell("starting Spark")

    def line(alert: Mapping[str, object]) -> None:
        view.on_alert(alert)
        if appended is not None:
            appended(alert)

    with open_session(target, SETTINGS) as spark:
        check_shared(spark, target, [], request.out)
        view.tell("watching")
        ready.tell()
        watch(spark, request, stop, listener=view, line=line)


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """Give an event that SIGINT and SIGTERM set for the time of a block; a second one changes nothing."""
    stop = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def write_line(value: Mapping[str, object]) -> None:
    """Write one line of JSON to standard output, at once."""
    sys.stdout.write(json_text.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()
