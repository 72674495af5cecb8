"""`specwire filemq serve`: publish folders until SIGINT or SIGTERM, and then stop cleanly.

Clients are told, and what was left for them comes when they ask the next server.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from specwire.runtime.cli.filemq_digests import DigestsOption, NoDigestsOption, open_digests
from specwire.runtime.cli.filemq_options import (
    DEFAULT_PROTOCOL,
    REPORT_EVERY_S,
    CaptureOption,
    CurveOption,
    JsonOption,
    ProtocolOption,
    QuietOption,
    ReportOption,
    StatusOption,
    open_tap,
)
from specwire.runtime.cli.filemq_reloading import ServerFiles
from specwire.runtime.cli.filemq_running import (
    JOB_FAILED,
    Manner,
    attended,
    conclude,
    is_started,
    takes_of,
)
from specwire.runtime.cli.inflow_options import MessageOctetsOption, UndeliveredOctetsOption
from specwire.runtime.cli.metrics_options import (
    LogFormatOption,
    MetricsAnywhereOption,
    MetricsOption,
    MetricsPasswordOption,
    read_metrics,
)
from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.reloading import Reloading
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.filemq import FilemqServer, Publication
from specwire.runtime.filemq.credentials import read_server_security
from specwire.runtime.filemq.entrance import BOUNDS
from specwire.runtime.filemq.policy import PublicationRules
from specwire.runtime.filemq.publication import DEFAULT_RULES
from specwire.runtime.kernel.descriptors import raise_descriptor_limit
from specwire.runtime.log.form import LogForm
from specwire.runtime.quantities import show_count
from specwire.runtime.transport.errors import ExposureError, TransportError

if TYPE_CHECKING:
    from specwire.runtime.filemq.digeststore import DigestStore

DEFAULT_SETTLE_S = 1.0

DEFAULT_ENDPOINT = "tcp://127.0.0.1:5670"
"""FILEMQ's registered port, on loopback: serving others is to be asked for."""


def serve(
    context: typer.Context,
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="FOLDER[=/PATH]",
            help="Folders to publish. A single one is published at /, several each at its own name.",
            show_default=False,
        ),
    ],
    endpoint: Annotated[str, typer.Option(help="Where to listen; port * takes any.")] = DEFAULT_ENDPOINT,
    protocol: ProtocolOption = DEFAULT_PROTOCOL,
    capture: CaptureOption = None,
    capture_keep: CaptureKeepOption = None,
    capture_max: CaptureMaxOption = None,
    capture_payload: CapturePayloadOption = "keep",
    capture_free: CaptureFreeOption = None,
    curve: CurveOption = None,
    clients: Annotated[
        Path | None,
        typer.Option(
            metavar="TOML",
            help="With --curve: let in only these clients, each with a table [NAME], its key and its paths.",
            show_default=False,
        ),
    ] = None,
    plain: Annotated[
        Path | None,
        typer.Option(
            metavar="TOML",
            help="Ask for passwords: for each user a table [NAME] with password and paths. Not encrypted.",
            show_default=False,
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond this machine even without --curve.")
    ] = False,
    accept_empty: Annotated[
        bool,
        typer.Option(
            "--accept-empty",
            help="Withdraw the files that the first walk does not find, although a folder that held files is "
            "empty, or lies on another device than before. Without it they stay listed.",
        ),
    ] = False,
    settle: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Publish a file that is still growing when it has not changed for so long; 0 for at once.",
        ),
    ] = DEFAULT_SETTLE_S,
    message_octets: MessageOctetsOption = BOUNDS.message_octets,
    undelivered_octets: UndeliveredOctetsOption = BOUNDS.undelivered_octets,
    digests: DigestsOption = None,
    no_digests: NoDigestsOption = False,
    report_every: ReportOption = REPORT_EVERY_S,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    status: StatusOption = True,
    metrics: MetricsOption = None,
    metrics_anywhere: MetricsAnywhereOption = False,
    metrics_password_file: MetricsPasswordOption = None,
    log_format: LogFormatOption = LogForm.TEXT,
    config: Annotated[Path | None, config_option("filemq.serve")] = None,
) -> None:
    """Publish folders, and send every change to the clients that subscribed."""
    configured = configured_in(context)
    log = PeerLog(quiet=quiet, role="filemq-server", form=log_format)
    try:
        manner = Manner(
            report_every,
            as_json,
            status,
            read_metrics(metrics, anywhere=metrics_anywhere, password_file=metrics_password_file),
        )
        limits = read_capture_limits(capture_keep, capture_max, capture_payload, capture_free)
        security, known = read_server_security(curve=curve, clients=clients, plain=plain)
        with (
            open_digests(digests, none=no_digests) as store,
            open_tap(capture, "server", protocol, limits) as tap,
        ):
            rules = PublicationRules(accept_empty=accept_empty, settle_s=settle)
            publications = [
                read_publication(text, alone=len(folders) == 1, digests=store, rules=rules)
                for text in folders
            ]
            server = FilemqServer(
                publications,
                endpoint,
                tap=tap,
                protocol=protocol,
                security=security,
                clients=known,
                insecure=insecure,
                bounds=msgspec.structs.replace(
                    BOUNDS, message_octets=message_octets, undelivered_octets=undelivered_octets
                ),
                on_event=log.tell,
            )
            files = ServerFiles(server, log, security, curve=curve, clients=clients, plain=plain)
            reloading = Reloading(
                configured,
                log.line,
                takes={**takes_of(manner, log), **files.takes, "accept_empty": partial(take_accept, server)},
                rereads=[files.reread] if files.any else [],
            )
            asyncio.run(_serve(server, reloading, manner, log))
    except (ValueError, ExposureError) as error:
        fail(str(error))
    except TransportError as error:
        fail(str(error), status=JOB_FAILED)
    finally:
        log.close()


def take_accept(server: FilemqServer, accept: bool) -> None:
    """Withdraw what is missing now, where the configuration says so since it was read again."""
    if accept:
        server.accept_empty()


def read_publication(
    text: str,
    *,
    alone: bool,
    digests: DigestStore | None = None,
    rules: PublicationRules = DEFAULT_RULES,
) -> Publication:
    """Return the publication that ``FOLDER`` or ``FOLDER=/PATH`` means; raises ValueError."""
    name, separator, path = text.rpartition("=/")
    folder = Path(name if separator and not Path(text).is_dir() else text)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    if str(folder) != name:
        path = "" if alone else folder.resolve().name
    return Publication(folder.resolve(), f"/{path}", digests=digests, rules=rules)


async def _serve(server: FilemqServer, reloading: Reloading, manner: Manner, log: PeerLog) -> None:
    stop, ready = stop_requested(), Readiness()
    raise_descriptor_limit(log.line)
    reloading.listen()
    if not await is_started(server.start(), stop):
        log.line("stopped before the folders were read")
        return
    try:
        reloading.begin()
        async with attended(server, manner, log):
            log.line(f"serving {show_count(len(server.digests()), 'file')} on {server.endpoint}")
            ready.tell()
            await stop
            log.line("stopping")
    finally:
        await server.stop()
    conclude(server.status(), manner, log)
