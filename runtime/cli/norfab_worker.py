"""`specwire norfab worker`: offer the tasks of a plugin at a broker, until SIGINT or SIGTERM.

The command line itself takes more memory than an idle worker, so it gives its place to `norfab_worker_process`, which
does the work: the process stays the same.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from specwire.runtime.cli.capture_options import (
    CaptureFreeOption,
    CaptureKeepOption,
    CaptureMaxOption,
    CapturePayloadOption,
    read_capture_limits,
)
from specwire.runtime.cli.config_option import config_option, configured_in
from specwire.runtime.cli.console import fail
from specwire.runtime.cli.metrics_options import (
    LogFormatOption,
    MetricsAnywhereOption,
    MetricsOption,
    MetricsPasswordOption,
    read_metrics,
)
from specwire.runtime.cli.norfab_options import (
    DEFAULT_ENDPOINT,
    CaptureOption,
    InsecureOption,
    KeysOption,
)
from specwire.runtime.cli.norfab_worker_options import PROCESS, USER, WorkerOptions
from specwire.runtime.log.form import LogForm
from specwire.runtime.norfab.names import InvalidNameError, check_service, worker_name


def worker(
    context: typer.Context,
    service: Annotated[str, typer.Option(help="Name of the service.", show_default=False)],
    plugin: Annotated[
        str,
        typer.Option(
            metavar="MODULE:CLASS",
            help="Class whose methods marked with @task are the service; found as Python finds modules, from here on.",
            show_default=False,
        ),
    ],
    name: Annotated[str, typer.Option(help="Name of this worker, by which jobs are meant for it.")],
    broker: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENDPOINT",
            help=f"Where the broker is, by default {DEFAULT_ENDPOINT}; again for others to move on to.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Jobs that run at a time.")] = 1,
    job_timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=7 * 86400,
            metavar="SECONDS",
            help="How long a job may take that states no time of its own, by default 600.",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="How long a job may go on whose time is over before its place is given to another, "
            "by default 10.",
            show_default=False,
        ),
    ] = None,
    drain: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="How long what runs may take to end when the worker is told to stop, by default 30.",
            show_default=False,
        ),
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What this worker manages; again for more.", show_default=False),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps its jobs; by default one of its name in specwire/norfab in your data folder.",
            show_default=False,
        ),
    ] = None,
    durability: Annotated[
        Literal["process", "full"],
        typer.Option(help="What is acknowledged outlives the process, or the loss of power too."),
    ] = "process",
    keys: KeysOption = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="USER",
            help=f"Whose key of that folder is used; by default the worker's name where it has one, else {USER}.",
            show_default=False,
        ),
    ] = None,
    insecure: InsecureOption = False,
    protocol: Annotated[
        Literal["norfab_ascii", "norfab"],
        typer.Option(help="How it writes: as deployed peers do, or as the specification says."),
    ] = "norfab_ascii",
    capture: CaptureOption = None,
    capture_keep: CaptureKeepOption = None,
    capture_max: CaptureMaxOption = None,
    capture_payload: CapturePayloadOption = "keep",
    capture_free: CaptureFreeOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No lines for single jobs that go well.")] = False,
    metrics: MetricsOption = None,
    metrics_anywhere: MetricsAnywhereOption = False,
    metrics_password_file: MetricsPasswordOption = None,
    log_format: LogFormatOption = LogForm.TEXT,
    config: Annotated[Path | None, config_option("norfab.worker")] = None,
) -> None:
    """Offer the tasks of a plugin at a NORFAB broker."""
    configured_in(context)
    try:
        check_service(service)
        worker_name(name.encode("utf-8", "surrogateescape"))
        read_capture_limits(capture_keep, capture_max, capture_payload, capture_free)
        read_metrics(metrics, anywhere=metrics_anywhere, password_file=metrics_password_file)
    except (InvalidNameError, ValueError) as error:
        fail(str(error))
    options = WorkerOptions(
        service=service,
        plugin=plugin,
        name=name,
        brokers=tuple(broker or (DEFAULT_ENDPOINT,)),
        concurrency=concurrency,
        job_timeout=job_timeout,
        grace=grace,
        drain=drain,
        resources=tuple(resource or ()),
        folder=None if folder is None else os.fspath(folder),
        durability=durability,
        keys=None if keys is None else os.fspath(keys),
        user=user,
        insecure=insecure,
        protocol=protocol,
        capture=None if capture is None else os.fspath(capture),
        capture_keep=capture_keep,
        capture_max=capture_max,
        capture_payload=capture_payload,
        capture_free=capture_free,
        quiet=quiet,
        metrics=metrics,
        metrics_anywhere=metrics_anywhere,
        metrics_password_file=str(metrics_password_file.absolute()) if metrics_password_file else "",
        log_format=log_format.value,
        config=None if config is None else os.fspath(config),
        command=() if config is None else tuple(sys.argv[1:]),
    )
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", PROCESS, msgspec.json.encode(options).decode()])
