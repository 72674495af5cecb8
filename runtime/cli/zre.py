"""`specwire zre`: join groups of a ZRE network, talk to it, and ask who is there.

`join` prints each event on standard output, and performs each line of standard input. It runs until SIGINT
or SIGTERM; the end of the input does not stop it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from specwire.runtime.cli.console import fail, print_error
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.cli.status_asking import NoAnswerError, ask_all, describe_status
from specwire.runtime.kernel.log import EventLog
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.text import show
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import (
    address_in,
    list_addresses,
    locate_status_folder,
    open_status_folder,
)
from specwire.runtime.transport.status_socket import StatusSocket
from specwire.runtime.zre import ZreError, ZrePeer, ZreSettings, ZreStatus

if TYPE_CHECKING:
    from specwire.runtime.capture import Tap

ROLE = "zre-peer"
HELP = "/peers, /groups, /join GROUP, /leave GROUP, /shout GROUP TEXT, /whisper NAME TEXT"

app = typer.Typer(help="Join a ZRE network, and talk to its peers.", no_args_is_help=True)


@app.callback()
def zre() -> None:
    """Join a ZRE network, and talk to its peers."""


@app.command(
    epilog="Exit status: 0 after SIGINT or SIGTERM; 1 where it cannot listen; 2 for usage and bad input."
)
def join(
    groups: Annotated[list[str] | None, typer.Argument(metavar="[GROUP]...", help="Groups to join.")] = None,
    endpoint: Annotated[
        list[str] | None,
        typer.Option(metavar="ENDPOINT", help="Mailbox of another peer (repeatable).", show_default=False),
    ] = None,
    bind: Annotated[
        str, typer.Option(metavar="ENDPOINT", help="Mailbox of this peer, with the address that others use.")
    ] = "tcp://127.0.0.1:*",
    name: Annotated[str, typer.Option(help="Public name; default: the beginning of the UUID.")] = "",
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Property for every peer (repeatable).", show_default=False),
    ] = None,
    evasive: Annotated[float, typer.Option(metavar="SECONDS", help="Ping a peer silent for so long.")] = 5.0,
    expired: Annotated[
        float, typer.Option(metavar="SECONDS", help="Disconnect a peer silent for so long.")
    ] = 30.0,
    capture: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Record every message.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a JSON object.")] = False,
) -> None:
    """Join groups, print what happens, and send lines from standard input.

    A line is sent to the first group. Commands: /peers, /groups, /join GROUP, /leave GROUP, /shout GROUP
    TEXT, /whisper NAME TEXT.
    """
    log = EventLog(print_line, ROLE, LogForm.JSON if as_json else LogForm.TEXT)
    try:
        options = {
            "bind": bind,
            "endpoint": endpoint or [],
            "name": name,
            "headers": dict(read_header(one) for one in header or ()),
            "groups": groups or [],
            "evasive_s": evasive,
            "expired_s": expired,
        }
        settings = msgspec.convert(options, ZreSettings)
        with nullcontext() if capture is None else open_tap(capture) as tap:
            peer = ZrePeer(settings, on_event=log.emit, tap=tap)
            asyncio.run(run_peer(peer, log))
    except (ValueError, msgspec.ValidationError) as error:
        fail(str(error))
    finally:
        log.close()


@app.command(epilog="Exit status: 0; 1 when a peer does not answer; 2 for usage.")
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of JSON documents.")] = False,
) -> None:
    """Print the status of your ZRE peers on this machine, with the peers that each knows."""
    answers = ask_all(list_addresses(locate_status_folder(os.environ)), (ROLE,), ZreStatus)
    found = [answer for answer in answers if isinstance(answer, ZreStatus)]
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(found), indent=2))
    for number, one in enumerate(() if as_json else found):
        typer.echo("\n" * (number > 0) + "\n".join(describe_status(one)))
    if not answers:
        print_error("none of your ZRE peers runs on this machine")
    if silent := [str(answer) for answer in answers if isinstance(answer, NoAnswerError)]:
        fail("; ".join(silent), status=1)


async def run_peer(peer: ZrePeer, log: EventLog) -> None:
    """Run a peer until SIGINT or SIGTERM."""
    stop, ready = stop_requested(), Readiness()
    lines = read_lines()
    async with peer:
        own = peer.status()
        log.line(f"{own.name} listens on {own.endpoint}")
        answering = await answer_status(peer, log)
        ready.tell()
        while not stop.done():
            line = asyncio.ensure_future(lines.get())
            await asyncio.wait((stop, line), return_when=asyncio.FIRST_COMPLETED)
            if line.done():
                for text in await perform(peer, line.result()):
                    log.line(text)
            line.cancel()
        if answering is not None:
            await answering.close()


async def perform(peer: ZrePeer, line: str) -> Sequence[str]:
    """Perform a line of the input; return what to print."""
    own = peer.status()
    try:
        match line.split(maxsplit=2) if line.startswith("/") else ["", line]:
            case ["/peers"]:
                return [f"{one.name} {one.uuid} {one.endpoint}" for one in own.peers] or ["no peers"]
            case ["/groups"]:
                return [", ".join(own.groups) or "no groups"]
            case ["/join", group]:
                await peer.join(group)
            case ["/leave", group]:
                await peer.leave(group)
            case ["/shout", group, text]:
                return describe_reach(await peer.shout(group, [text.encode()]), group)
            case ["/whisper", name, text]:
                named = next((one.uuid for one in own.peers if name in (one.name, one.uuid)), name)
                await peer.whisper(named, [text.encode()])
            case ["", text] if not own.groups:
                return ["no group to send this to; /join one"]
            case ["", text]:
                return describe_reach(await peer.shout(own.groups[0], [text.encode()]), own.groups[0])
            case _:
                return [f"unknown command; the commands are {HELP}"]
    except ZreError as error:
        return [str(error)]
    return []


def describe_reach(peers: int, group: str) -> list[str]:
    """Return a line where a message reached nobody."""
    return [] if peers else [f"nobody else is in {group}"]


def read_lines() -> asyncio.Queue[str]:
    """Return a queue that gets each line of standard input, from a thread."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        for line in sys.stdin:
            if text := line.strip():
                loop.call_soon_threadsafe(lines.put_nowait, text)

    threading.Thread(target=read, name="standard input", daemon=True).start()
    return lines


async def answer_status(peer: ZrePeer, log: EventLog) -> StatusSocket | None:
    """Answer `specwire zre status`; a peer that cannot be asked works all the same."""
    folder = locate_status_folder(os.environ)
    try:
        open_status_folder(folder)
        path = address_in(folder, ROLE, os.getpid()).path
        answering = StatusSocket(path, lambda: msgspec.json.encode(peer.status()))
        await answering.open()
    except TransportError as error:
        log.line(f"`specwire zre status` will not find this peer: {error}")
        return None
    return answering


def read_header(text: str) -> tuple[str, str]:
    """Return name and value of a header; raises ValueError."""
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise ValueError(f"--header {text!r}: write NAME=VALUE")
    return name, value


def open_tap(folder: Path) -> Tap:
    """Open a capture; raises CaptureError."""
    from specwire.generated.zre import EDITION
    from specwire.runtime.capture import Tap

    return Tap.open(folder, protocol="zre", name="peer", edition=EDITION)


def print_line(line: str) -> None:
    """Write a line to standard output at once."""
    sys.stdout.write(show(line) + "\n")
    sys.stdout.flush()
