"""`specwire filemq subscribe`: keep a folder equal to what a server publishes, until SIGINT or SIGTERM.

Disk work that was begun is finished then, and the rest comes with the next start. A subscriber that the server
refuses ends with status 1.
"""

from __future__ import annotations

import asyncio
import os
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
    require_folder,
)
from specwire.runtime.cli.filemq_running import JOB_FAILED, Manner, attended, conclude, takes_of
from specwire.runtime.cli.metrics_options import (
    LogFormatOption,
    MetricsAnywhereOption,
    MetricsOption,
    MetricsPasswordOption,
    read_metrics,
)
from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.reloading import Reloading, Take
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.filemq import FilemqClient, InboxError
from specwire.runtime.filemq.credentials import PASSWORD_VARIABLE, read_client_security
from specwire.runtime.filemq.inbox import DEFAULT_RULES
from specwire.runtime.filemq.policy import InboxRules
from specwire.runtime.kernel.descriptors import raise_descriptor_limit
from specwire.runtime.log.form import LogForm
from specwire.runtime.transport.errors import TransportError

DAY_S = 24 * 3600.0


def subscribe(
    context: typer.Context,
    server: Annotated[str, typer.Argument(help="Endpoint of the server.", show_default=False)],
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Virtual paths; / is everything.")],
    inbox: Annotated[Path, typer.Option(help="Folder that receives the files.", show_default=False)],
    protocol: ProtocolOption = DEFAULT_PROTOCOL,
    capture: CaptureOption = None,
    capture_keep: CaptureKeepOption = None,
    capture_max: CaptureMaxOption = None,
    capture_payload: CapturePayloadOption = "keep",
    capture_free: CaptureFreeOption = None,
    curve: CurveOption = None,
    server_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="With --curve: the public key that the server has to prove, or its .key file. May be repeated, for a "
            "server that is about to change its key; the first names it to the inbox.",
            show_default=False,
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Name for a server that asks for passwords; the password is in the variable "
            f"{PASSWORD_VARIABLE}, or in a file.",
            show_default=False,
        ),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File with the password of --user in its first line.", show_default=False
        ),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The inbox knows the server by this: its endpoint before it has moved, without CURVE. Only the "
            "server that sent a file may have it deleted.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            help="Take the SHA-1 of each file while it comes, and refuse one that is not what was announced. Without "
            "it large files come faster over a fast network; with --curve no change on the way goes unnoticed all "
            "the same.",
        ),
    ] = True,
    delete_share: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Withhold deletions that would take away more than this share of the files within ten "
            "minutes. Ten files may always be deleted.",
        ),
    ] = DEFAULT_RULES.delete_share,
    delete_files: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Withhold deletions that would take away more than this number of files within ten minutes.",
        ),
    ] = DEFAULT_RULES.delete_files,
    accept_deletions: Annotated[
        bool,
        typer.Option(
            "--accept-deletions",
            help="Perform the deletions that are withheld, and all others until none came for ten minutes.",
        ),
    ] = False,
    trash_days: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="DAYS",
            help="Keep deleted and replaced files so long in .specwire-inbox/trash; 0 for not at all.",
        ),
    ] = DEFAULT_RULES.trash_s / DAY_S,
    check_every: Annotated[
        float,
        typer.Option(
            min=0.1,
            metavar="SECONDS",
            help="How often to compare the inbox with what was received, and to ask again for what differs.",
        ),
    ] = DEFAULT_RULES.check_s,
    report_every: ReportOption = REPORT_EVERY_S,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    status: StatusOption = True,
    metrics: MetricsOption = None,
    metrics_anywhere: MetricsAnywhereOption = False,
    metrics_password_file: MetricsPasswordOption = None,
    log_format: LogFormatOption = LogForm.TEXT,
    config: Annotated[Path | None, config_option("filemq.subscribe")] = None,
) -> None:
    """Keep a folder equal to what a server publishes under the paths."""
    configured = configured_in(context)
    log = PeerLog(quiet=quiet, role="filemq-subscriber", form=log_format)
    try:
        manner = Manner(
            report_every,
            as_json,
            status,
            read_metrics(metrics, anywhere=metrics_anywhere, password_file=metrics_password_file),
        )
        limits = read_capture_limits(capture_keep, capture_max, capture_payload, capture_free)
        security = read_client_security(
            curve=curve,
            server_key=server_key,
            user=user,
            password_file=password_file,
            environment=os.environ,
        )
        require_folder(inbox, "--inbox")
        with open_tap(capture, "client", protocol, limits) as tap:
            client = FilemqClient(
                server,
                inbox,
                paths,
                tap=tap,
                protocol=protocol,
                security=security,
                origin=origin,
                check=check,
                rules=InboxRules(
                    delete_share=delete_share,
                    delete_files=delete_files,
                    accept_deletions=accept_deletions,
                    trash_s=trash_days * DAY_S,
                    check_s=check_every,
                ),
                on_event=log.tell,
            )
            reloading = Reloading(
                configured, log.line, takes={**takes_of(manner, log), **takes_accept(client)}
            )
            reason = asyncio.run(_subscribe(client, reloading, manner, log))
    except ValueError as error:
        fail(str(error))
    except (InboxError, TransportError) as error:
        fail(str(error), status=JOB_FAILED)
    finally:
        log.close()
    if reason is not None:
        fail(reason, status=JOB_FAILED)


def takes_accept(client: FilemqClient) -> dict[str, Take]:
    """Return the function that performs withheld deletions when a reload sets the option."""

    def take(accept: bool) -> None:
        if accept:
            client.accept_deletions()

    return {"accept_deletions": take}


async def _subscribe(client: FilemqClient, reloading: Reloading, manner: Manner, log: PeerLog) -> str | None:
    """Run until asked to stop; return the reason where the server ended it for good."""
    stop, ready = stop_requested(), Readiness()
    raise_descriptor_limit()
    reloading.listen()
    async with client, attended(client, manner, log):
        reloading.begin()
        ready.tell()
        await asyncio.wait((stop, client.finished), return_when=asyncio.FIRST_COMPLETED)
        reason = client.finished.result() if client.finished.done() else None
        log.line("stopping")
    conclude(client.status(), manner, log)
    return reason
