"""`specwire filemq serve`: publish folders until SIGINT or SIGTERM, and then stop cleanly.

Clients are told, and what was left for them comes when they ask the next server.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from specwire.runtime.cli.filemq_running import (
    JOB_FAILED,
    Manner,
    attended,
    conclude,
    is_started,
)
from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.filemq import FilemqServer, Publication
from specwire.runtime.filemq.access import Clients
from specwire.runtime.filemq.credentials import read_clients_again, read_server_security
from specwire.runtime.filemq.quantities import count
from specwire.runtime.transport.errors import ExposureError, TransportError

if TYPE_CHECKING:
    from specwire.runtime.filemq.digeststore import DigestStore

DEFAULT_ENDPOINT = "tcp://127.0.0.1:5670"
"""FILEMQ's registered port, on loopback: serving others is to be asked for."""


ReadClients = Callable[[], Clients | None]


def serve(
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
    digests: DigestsOption = None,
    no_digests: NoDigestsOption = False,
    report_every: ReportOption = REPORT_EVERY_S,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    status: StatusOption = True,
) -> None:
    """Publish folders, and send every change to the clients that subscribed."""
    log = PeerLog(quiet=quiet)
    manner = Manner(report_every, as_json, status)
    try:
        security, known = read_server_security(curve=curve, clients=clients, plain=plain)
        with (
            open_digests(digests, none=no_digests) as store,
            open_tap(capture, "server", protocol) as tap,
        ):
            publications = [
                read_publication(text, alone=len(folders) == 1, digests=store) for text in folders
            ]
            server = FilemqServer(
                publications,
                endpoint,
                tap=tap,
                protocol=protocol,
                security=security,
                clients=known,
                insecure=insecure,
                on_event=log.tell,
            )
            reading = partial(read_clients_again, clients=clients, plain=plain)
            asyncio.run(_serve(server, reading if known is not None else None, manner, log))
    except (ValueError, ExposureError) as error:
        fail(str(error))
    except TransportError as error:
        fail(str(error), status=JOB_FAILED)
    finally:
        log.close()


def read_publication(text: str, *, alone: bool, digests: DigestStore | None = None) -> Publication:
    """Return the publication that ``FOLDER`` or ``FOLDER=/PATH`` means; raises ValueError."""
    name, separator, path = text.rpartition("=/")
    folder = Path(name if separator and not Path(text).is_dir() else text)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    if str(folder) != name:
        path = "" if alone else folder.resolve().name
    return Publication(folder.resolve(), f"/{path}", digests=digests)


def take_clients(server: FilemqServer, read_clients: ReadClients, log: PeerLog) -> None:
    """Read the list of clients again; one that cannot be used changes nothing."""
    try:
        clients = read_clients()
        if clients is not None:
            server.replace_clients(clients)
            log.line(f"the list of clients was read again: {count(len(clients), 'client')}")
    except ValueError as error:
        log.line(f"the list of clients stays as it was: {error}")


async def _serve(
    server: FilemqServer, read_clients: ReadClients | None, manner: Manner, log: PeerLog
) -> None:
    stop = stop_requested()
    if not await is_started(server.start(), stop):
        log.line("stopped before the folders were read")
        return
    try:
        log.line(f"serving {len(server.digests()):,} files on {server.endpoint}")
        if read_clients is not None:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, take_clients, server, read_clients, log)
        async with attended(server.status, manner, log):
            await stop
            log.line("stopping")
    finally:
        await server.stop()
    conclude(server.status(), manner, log)
