"""`specwire filemq serve` and `specwire filemq subscribe`: distribute a folder, keep a copy of one.

Both run until SIGINT or SIGTERM, and then stop cleanly: the peer is told, disk work that was begun is finished,
and what was left out comes with the next start. A subscriber that the server refuses ends with status 1.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail
from specwire.runtime.filemq import FilemqClient, FilemqServer, InboxError, Publication
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.credentials import (
    PASSWORD_VARIABLE,
    read_client_security,
    read_server_security,
)
from specwire.runtime.filemq.dialect import FILEMQ
from specwire.runtime.filemq.dialects import DIALECTS, find_dialect
from specwire.runtime.filemq.narration import Narrator
from specwire.runtime.transport.errors import ExposureError, TransportError

if TYPE_CHECKING:
    from specwire.runtime.capture import Tap

app = typer.Typer(help="Serve a folder to FILEMQ clients, or fetch one.", no_args_is_help=True)

DEFAULT_ENDPOINT = "tcp://127.0.0.1:5670"
"""FILEMQ's registered port, on loopback: serving others is to be asked for."""

JOB_FAILED = 1

DEFAULT_PROTOCOL = FILEMQ.name

ProtocolOption = Annotated[
    str,
    typer.Option(
        help="Wire format that the other side speaks: "
        + ", ".join(f"{dialect.name} ({dialect.title})" for dialect in DIALECTS.values())
        + "."
    ),
]

CaptureOption = Annotated[
    Path | None,
    typer.Option(help="Write every message to capture segments in this folder.", show_default=False),
]

CurveOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Encrypt, and prove who this is, with this secret key (.key_secret; `specwire keys` makes one).",
        show_default=False,
    ),
]


@app.callback()
def filemq() -> None:
    """Serve a folder to FILEMQ clients, or fetch one."""


@app.command()
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
) -> None:
    """Publish folders, and send every change to the clients that subscribed."""
    narrator = Narrator(log, time.monotonic)
    try:
        security, known = read_server_security(curve=curve, clients=clients, plain=plain)
        publications = [read_publication(text, alone=len(folders) == 1) for text in folders]
        with open_tap(capture, "server", protocol) as tap:
            server = FilemqServer(
                publications,
                endpoint,
                tap=tap,
                protocol=protocol,
                security=security,
                clients=known,
                insecure=insecure,
                on_event=narrator.tell,
            )
            asyncio.run(_serve(server))
    except (ValueError, ExposureError) as error:
        fail(str(error))
    except TransportError as error:
        fail(str(error), status=JOB_FAILED)


@app.command()
def subscribe(
    server: Annotated[str, typer.Argument(help="Endpoint of the server.", show_default=False)],
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Virtual paths; / is everything.")],
    inbox: Annotated[Path, typer.Option(help="Folder that receives the files.", show_default=False)],
    protocol: ProtocolOption = DEFAULT_PROTOCOL,
    capture: CaptureOption = None,
    curve: CurveOption = None,
    server_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="With --curve: the public key that the server has to prove, or its .key file.",
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
) -> None:
    """Keep a folder equal to what a server publishes under the paths."""
    narrator = Narrator(log, time.monotonic)
    try:
        security = read_client_security(
            curve=curve,
            server_key=server_key,
            user=user,
            password_file=password_file,
            environment=os.environ,
        )
        require_folder(inbox, "--inbox")
        with open_tap(capture, "client", protocol) as tap:
            client = FilemqClient(
                server, inbox, paths, tap=tap, protocol=protocol, security=security, on_event=narrator.tell
            )
            reason = asyncio.run(_subscribe(client))
    except ValueError as error:
        fail(str(error))
    except (InboxError, TransportError) as error:
        fail(str(error), status=JOB_FAILED)
    if reason is not None:
        fail(reason, status=JOB_FAILED)


def read_publication(text: str, *, alone: bool) -> Publication:
    """Return the publication that ``FOLDER`` or ``FOLDER=/PATH`` means; raises ValueError."""
    name, separator, path = text.rpartition("=/")
    folder = Path(name if separator and not Path(text).is_dir() else text)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    if str(folder) == name:
        return Publication(folder.resolve(), f"/{path}")
    return Publication(folder.resolve(), "/" if alone else f"/{folder.resolve().name}")


def require_folder(path: Path, option: str) -> None:
    """Raise ValueError where what `option` names is there and no folder."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{option}: {path} is not a folder")


@contextmanager
def open_tap(folder: Path | None, name: str, protocol: str) -> Iterator[Tap | None]:
    """Open a tap for a capture in `folder`, None where there is none; raises CaptureError or ValueError."""
    dialect = find_dialect(protocol)
    if folder is None:
        yield None
        return
    require_folder(folder, "--capture")
    from specwire.runtime.capture import Tap

    tap = Tap.open(folder, protocol=dialect.name, name=name, edition=dialect.edition)
    try:
        yield tap
    finally:
        tap.close()


def log(line: str) -> None:
    """Write one line to standard error, with the time."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


async def _serve(server: FilemqServer) -> None:
    stop = stop_requested()
    async with server:
        log(f"serving {len(server.digests()):,} files on {server.endpoint}")
        await stop
        log("stopping")
    _log_counters(server.counters)


async def _subscribe(client: FilemqClient) -> str | None:
    """Run until asked to stop; return the reason where the server ended it for good."""
    stop = stop_requested()
    async with client:
        await asyncio.wait(
            (asyncio.ensure_future(stop), client.finished), return_when=asyncio.FIRST_COMPLETED
        )
        reason = client.finished.result() if client.finished.done() else None
        log("stopping")
    _log_counters(client.counters)
    return reason


def stop_requested() -> Awaitable[None]:
    """Return what is done when SIGINT or SIGTERM comes; from then on a second one changes nothing."""
    loop = asyncio.get_running_loop()
    requested = loop.create_future()

    def request() -> None:
        if not requested.done():
            requested.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, request)
    return requested


def _log_counters(counters: Counters) -> None:
    log(
        f"{counters.messages_in:,} messages in, {counters.messages_out:,} out, {counters.chunks:,} chunks, "
        f"{counters.content_octets:,} octets of content, {counters.files:,} files, {counters.refusals:,} refusals"
    )
