"""`specwire pipeline watch`: tables, answers and alerts from a growing capture."""

from __future__ import annotations

import json as json_text
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NamedTuple

from specwire.runtime.cli.config_option import config_option
from specwire.runtime.cli.console import fail, messages
from specwire.runtime.cli.packages import Grammars, Packages, use_packages
from specwire.runtime.cli.pipeline_payloads import Payloads, read_payloads
from specwire.runtime.cli.pipeline_session import Master, Package, Remote, target_of
from specwire.runtime.cli.pipeline_watch_options import (
    AlertLines,
    Alerts,
    AnswersEvery,
    Capture,
    Every,
    Gap,
    Json,
    Once,
    Out,
    Protocol,
    SilentAfter,
)
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.log.text import show_json

if TYPE_CHECKING:
    from specwire.runtime.cli.pipeline_watch_view import View
    from specwire.runtime.spark.live.work import Watch
    from specwire.runtime.spark.pipeline.manifest import Asked
    from specwire.runtime.spark.session.target import Target

JOB_FAILED = 1
BAD_INPUT = 2


def watch(
    capture: Capture,
    out: Out,
    protocol: Protocol = None,
    payloads: Payloads = None,
    once: Once = False,
    every: Every = 1.0,
    answers_every: AnswersEvery = 300.0,
    gap: Gap = 10.0,
    alerts: Alerts = True,
    silent_after: SilentAfter = None,
    alert_lines: AlertLines = None,
    json: Json = False,
    packages: Packages = None,
    grammars: Grammars = None,
    master: Master = None,
    remote: Remote = None,
    package: Package = None,
    config: Annotated[Path | None, config_option("pipeline.watch")] = None,
) -> None:
    """Decode a capture while it grows, into the same tables and answers as `pipeline run`, until interrupted.

    An interrupt or SIGTERM lets the batch in hand end and the answers follow. The next watch
    continues where this one ended, even after a crash.
    """
    from specwire.runtime.capture import CaptureError
    from specwire.runtime.cli.pipeline_watch_view import Lines, Screen
    from specwire.runtime.spark.errors import InputError, PipelineError

    use_packages(packages, grammars)
    view: View = Lines(write_line) if json else Screen(messages())
    timing = _Timing(every, answers_every, gap, once)
    try:
        asked = asked_of(out, protocol, payloads)
        request = _request(
            capture,
            out,
            asked,
            timing,
            alerts=alerts,
            silent_after=silent_after,
            alert_lines=alert_lines,
        )
        with asked_to_stop() as stop, view:
            _watch(request, target_of(master, remote, package), stop, view)
    except (CaptureError, InputError) as error:
        fail(str(error), status=BAD_INPUT)
    except PipelineError as error:
        fail(str(error), status=JOB_FAILED)


class _Timing(NamedTuple):
    every: float
    answers_every: float
    gap: float
    once: bool


def _request(
    capture: Path,
    out: Path,
    asked: Asked,
    timing: _Timing,
    *,
    alerts: bool,
    silent_after: float | None,
    alert_lines: Path | None,
) -> Watch:
    from specwire.runtime.spark.live.conversations import Rules
    from specwire.runtime.spark.live.work import Watch
    from specwire.runtime.spark.pipeline.request import Request
    from specwire.runtime.spark.reading.stream import StreamOptions

    return Watch(
        Request(capture, asked),
        out,
        every_s=timing.every,
        answers_s=timing.answers_every,
        stream=StreamOptions(gap_s=timing.gap),
        rules=Rules(silent_s=silent_after) if alerts else None,
        alert_lines=alert_lines,
        once=timing.once,
    )


def asked_of(out: Path, protocol: str | None, payloads: list[Path] | None) -> Asked:
    """Return the settings of the folder, or defaults, with the given options in their place.

    Raises InputError if the folder or a profile cannot be used.
    """
    import msgspec

    from specwire.runtime.spark.pipeline.store import Store

    asked = Store(out).manifest.asked
    if protocol is not None:
        asked = msgspec.structs.replace(asked, protocol=protocol)
    if payloads:
        asked = msgspec.structs.replace(asked, payloads=read_payloads(payloads, asked.protocol))
    return asked


def _watch(request: Watch, target: Target, stop: threading.Event, view: View) -> None:
    from specwire.runtime.spark.live.watch import check, watch
    from specwire.runtime.spark.reading.stream import list_names
    from specwire.runtime.spark.session.executors import check_shared
    from specwire.runtime.spark.session.opening import open_session

    check(request)
    ready = Readiness()
    view.tell("starting Spark")

    with open_session(target) as spark:
        segments = [request.capture / name for name in list_names(request.capture)]
        check_shared(spark, target, segments, request.out)
        view.tell("watching")
        ready.tell()
        watch(spark, request, stop, listener=view)


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set in the block; a second signal has no effect."""
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
    """Write one line of JSON to standard output, and flush it."""
    sys.stdout.write(show_json(json_text.dumps(value, ensure_ascii=False)) + "\n")
    sys.stdout.flush()
