"""`specwire norfab broker`: a broker, until SIGINT or SIGTERM, or until its management says shutdown."""

from __future__ import annotations

import asyncio
import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from specwire.runtime.cli.norfab_limits import LimitOption
from specwire.runtime.cli.norfab_options import (
    DEFAULT_ENDPOINT,
    KEYS,
    CaptureOption,
    FolderOption,
    open_tap,
)
from specwire.runtime.log.form import LogForm

if TYPE_CHECKING:
    from specwire.runtime.norfab.security.keyring import Keyring
    from specwire.runtime.norfab.security.table import Table
    from specwire.runtime.norfab.serve.entrance import ServerSecurity

JOB_FAILED = 1


class Survives(Enum):
    """What a job that was acknowledged survives."""

    PROCESS = "process"
    FULL = "full"


def broker(
    context: typer.Context,
    endpoint: Annotated[
        list[str] | None,
        typer.Option(help=f"Where to listen; port * takes any. May be repeated. [{DEFAULT_ENDPOINT}]"),
    ] = None,
    back: Annotated[
        list[str] | None,
        typer.Option(help="Where workers come in, if not there too. May be repeated.", show_default=False),
    ] = None,
    folder: FolderOption = None,
    durability: Annotated[
        Survives, typer.Option(help="What jobs survive: the end of the process, or also the loss of power.")
    ] = Survives.PROCESS,
    inventory: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Serve this inventory (YAML) to workers.", show_default=False),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Serve the files in this folder as nf://.", show_default=False),
    ] = None,
    access: Annotated[
        Path | None,
        typer.Option(
            metavar="TOML",
            help="Who is let in and may do what; by default keys/access.toml in the folder, made where it is missing.",
            show_default=False,
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let in anybody, unencrypted, and let everybody do everything.")
    ] = False,
    keepalive: Annotated[
        float, typer.Option(min=0.05, metavar="SECONDS", help="Interval of signs of life.")
    ] = 2.5,
    limit: LimitOption = None,
    capture: CaptureOption = None,
    capture_keep: CaptureKeepOption = None,
    capture_max: CaptureMaxOption = None,
    capture_payload: CapturePayloadOption = "keep",
    capture_free: CaptureFreeOption = None,
    accounting: Annotated[
        bool,
        typer.Option(
            "--accounting/--no-accounting",
            help="Write who ran what to accounting.jsonl in the folder.",
            show_default=False,
        ),
    ] = True,
    verbose: Annotated[bool, typer.Option("--verbose", help="Tell of every job.")] = False,
    status: Annotated[
        bool, typer.Option("--status/--no-status", help="Answer for its status.", show_default=False)
    ] = True,
    metrics: MetricsOption = None,
    metrics_anywhere: MetricsAnywhereOption = False,
    metrics_password_file: MetricsPasswordOption = None,
    log_format: LogFormatOption = LogForm.TEXT,
    config: Annotated[Path | None, config_option("norfab.broker")] = None,
) -> None:
    """Take jobs from clients, keep them, and give them to workers."""
    from specwire.runtime.cli.norfab_limits import read_settings
    from specwire.runtime.cli.norfab_reloading import BrokerFiles, appliers_of
    from specwire.runtime.cli.norfab_running import BrokerLog, run_broker
    from specwire.runtime.cli.reloading import Reloading
    from specwire.runtime.kernel.store import StoreError
    from specwire.runtime.norfab.security.keyring import Keyring, default_folder
    from specwire.runtime.norfab.serve import NorfabBroker
    from specwire.runtime.transport.errors import ExposureError, TransportError
    from specwire.runtime.transport.keys import KeyFileError

    configured = configured_in(context)
    place = folder or default_folder(os.environ)
    log = BrokerLog(jobs=verbose, form=log_format)
    try:
        limits = read_capture_limits(capture_keep, capture_max, capture_payload, capture_free)
        shown_at = read_metrics(metrics, anywhere=metrics_anywhere, password_file=metrics_password_file)
        settings = read_settings(limit, keepalive_s=keepalive)
        ring = Keyring(place / KEYS)
        security, table = _read_security(ring, access, insecure=insecure)
        with open_tap(capture, "broker", limits) as tap:
            served = NorfabBroker(
                endpoint or [DEFAULT_ENDPOINT],
                place,
                back=back or (),
                security=security,
                access=table,
                settings=settings,
                durability=durability.value,
                files=files,
                inventory=inventory,
                insecure=insecure,
                tap=tap,
                on_event=log.tell,
                after_events=log.flush,
                log_lines=log.newest,
            )
            if accounting:
                log.keep_accounts(place, served)
            appliers, rereads = appliers_of(served, log, settings, limit), []
            if table is not None:
                read_again = BrokerFiles(served, log, table, access or ring.table_file, ring)
                appliers["access"] = read_again.take_access
                rereads.append(read_again.reread)
            reloading = Reloading(configured, log.line, appliers=appliers, rereads=rereads)
            asyncio.run(run_broker(served, log, reloading, answer_status=status, metrics=shown_at))
    except (ValueError, ExposureError, KeyFileError) as error:
        fail(str(error))
    except (TransportError, StoreError) as error:
        fail(str(error), status=JOB_FAILED)
    finally:
        log.close()


def _read_security(
    ring: Keyring, access: Path | None, *, insecure: bool
) -> tuple[ServerSecurity, Table | None]:
    """Return what peers have to prove, and who may do what; raises KeyFileError or AccessError."""
    from specwire.runtime.norfab.security.tablefile import load_table
    from specwire.runtime.transport.security import NULL

    if insecure:
        if access is not None:
            raise ValueError("--access needs keys, which --insecure does without: leave one of them out")
        return NULL, None
    ring.prepare()
    return ring.server(), load_table(access) if access is not None else ring.table()
