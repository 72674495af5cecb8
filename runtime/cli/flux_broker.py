"""`specwire flux broker`: one broker, until SIGINT or SIGTERM. `specwire flux start` starts these."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path
from typing import Annotated

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
from specwire.runtime.cli.flux_options import (
    MESSAGE_OCTETS,
    UNDELIVERED_OCTETS,
    CaptureOption,
    CurveOption,
    GuestsOption,
    LetterOption,
    MessageOctetsOption,
    ProtocolOption,
    QuietOption,
    ServiceOption,
    TimerOption,
    UndeliveredOctetsOption,
    VerboseOption,
    choose_wire,
    load_services,
    open_tap,
    read_timers,
)
from specwire.runtime.cli.metrics_options import (
    LogFormatOption,
    MetricsAnywhereOption,
    MetricsOption,
    MetricsPasswordOption,
    read_metrics,
)
from specwire.runtime.log.form import LogForm

JOB_FAILED = 1
KEY_FILE = "instance.key_secret"


def broker(
    context: typer.Context,
    rank: Annotated[int, typer.Option(min=0, help="Place in the tree.", show_default=False)],
    size: Annotated[int, typer.Option(min=1, help="Brokers of the instance.", show_default=False)],
    local: Annotated[
        Path, typer.Option(metavar="PATH", help="Socket for clients: local://PATH.", show_default=False)
    ],
    fanout: Annotated[int, typer.Option(min=0, help="Children of each broker; 0: all are below rank 0.")] = 2,
    bind: Annotated[
        str | None, typer.Option(metavar="ENDPOINT", help="Where children connect to.", show_default=False)
    ] = None,
    parent: Annotated[
        str | None,
        typer.Option(metavar="ENDPOINT", help="Where the parent is listening.", show_default=False),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help=f"Holds the keys of the instance, {KEY_FILE}; `specwire keys instance` makes them.",
            show_default=False,
        ),
    ] = None,
    curve: CurveOption = True,
    hosts: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Host names by rank; default: this one's.", show_default=False),
    ] = None,
    service: ServiceOption = None,
    timer: TimerOption = None,
    allow_guests: GuestsOption = False,
    letter: LetterOption = False,
    protocol: ProtocolOption = "flux",
    message_octets: MessageOctetsOption = MESSAGE_OCTETS,
    undelivered_octets: UndeliveredOctetsOption = UNDELIVERED_OCTETS,
    capture: CaptureOption = None,
    capture_keep: CaptureKeepOption = None,
    capture_max: CaptureMaxOption = None,
    capture_payload: CapturePayloadOption = "keep",
    capture_free: CaptureFreeOption = None,
    until_eof: Annotated[
        bool, typer.Option("--until-eof", help="Stop, too, when standard input ends.")
    ] = False,
    rundir: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Removed when standard input has ended.", show_default=False, hidden=True
        ),
    ] = None,
    status: Annotated[
        bool, typer.Option("--status/--no-status", help="Answer for the status.", show_default=False)
    ] = True,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    metrics: MetricsOption = None,
    metrics_anywhere: MetricsAnywhereOption = False,
    metrics_password_file: MetricsPasswordOption = None,
    log_format: LogFormatOption = LogForm.TEXT,
    config: Annotated[Path | None, config_option("flux.broker")] = None,
) -> None:
    """Run one broker of an instance; its URI goes to standard output when clients can connect."""
    import asyncio

    from specwire.runtime.cli.flux_reloading import appliers_of, choose_level, rereads_of
    from specwire.runtime.cli.flux_running import BrokerLog, run_broker
    from specwire.runtime.cli.reloading import Reloading
    from specwire.runtime.flux.config import Settings
    from specwire.runtime.flux.errors import FluxError
    from specwire.runtime.flux.serve import FluxBroker
    from specwire.runtime.flux.topology import Tree
    from specwire.runtime.transport.errors import ExposureError, TransportError
    from specwire.runtime.transport.keys import KeyFileError, load_keys

    configured = configured_in(context)
    if curve and keys is None and size > 1:
        fail("--keys is wanted, the keys of the instance; or --no-curve, on this machine alone")
    try:
        limits = read_capture_limits(capture_keep, capture_max, capture_payload, capture_free)
        wire = choose_wire(protocol, letter=letter)
        settings = Settings(
            Tree(size, fanout),
            owner=os.getuid(),
            allow_guests=allow_guests,
            hosts=tuple(hosts.split(",")) if hosts else (socket.gethostname(),),
            timers=read_timers(timer),
            attributes=describe_places(local, bind, parent),
            wire=wire,
            message_octets=message_octets,
            undelivered_octets=undelivered_octets,
        )
        level = choose_level(quiet=quiet, verbose=verbose)
        place = read_metrics(metrics, anywhere=metrics_anywhere, password_file=metrics_password_file)
        key_file = keys / KEY_FILE if keys is not None and curve else None
        pair = None if key_file is None else load_keys(key_file)
        with (
            closing(BrokerLog(rank, level, log_format)) as log,
            open_tap(capture, f"broker-{rank}", wire, limits) as tap,
        ):
            running = FluxBroker(
                settings,
                rank,
                local=str(local.absolute()),
                bind=bind,
                parent=parent,
                keys=pair,
                services=load_services(service),
                tap=tap,
                on_event=log.tell,
            )
            reloading = Reloading(
                configured,
                log.line,
                appliers=appliers_of(running, log, quiet=quiet, verbose=verbose),
                rereads=rereads_of(running, log, pair, key_file),
            )
            running_until = run_broker(
                running,
                log,
                reloading,
                until_eof=until_eof,
                answer_status=status,
                metrics=place,
                rundir=rundir,
            )
            asyncio.run(running_until)
    except (ValueError, KeyFileError, ExposureError, FluxError) as error:
        fail(str(error))
    except TransportError as error:
        fail(str(error), status=JOB_FAILED)


def describe_places(local: Path, bind: str | None, parent: str | None) -> dict[str, str]:
    """Return the attributes that say where this broker and its neighbours are."""
    places = {"local-uri": f"local://{local.absolute()}", "rundir": str(local.absolute().parent)}
    if bind is not None:
        places["tbon.endpoint"] = bind
    if parent is not None:
        places["tbon.parent-endpoint"] = parent
    return places
