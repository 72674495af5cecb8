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
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec
import typer

from specwire.generated.zre import EDITION
from specwire.runtime.cli.capture_options import open_capture
from specwire.runtime.cli.config_sections import load_section
from specwire.runtime.cli.console import fail, print_error
from specwire.runtime.cli.metrics_options import read_metrics
from specwire.runtime.cli.metrics_showing import shown
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.reloading import Apply, Reloading
from specwire.runtime.cli.settings_command import settings_command
from specwire.runtime.cli.signals import stop_requested
from specwire.runtime.cli.status_asking import NoAnswerError, ask_all, describe_status
from specwire.runtime.kernel.log import EventLog
from specwire.runtime.kernel.settings import Setting
from specwire.runtime.kernel.settings_groups import CaptureSettings, MetricsSettings
from specwire.runtime.kernel.settings_sources import ServerConfiguration
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.text import show
from specwire.runtime.observe.place import Place
from specwire.runtime.observe.zre import zre_subject
from specwire.runtime.transport.backoff import ReconnectPolicy
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.status_folder import (
    address_in,
    list_addresses,
    locate_status_folder,
    open_status_folder,
)
from specwire.runtime.transport.status_socket import StatusSocket
from specwire.runtime.zre import ZreError, ZrePeer, ZreSettings, ZreStatus

ROLE = "zre-peer"
MAX_LINES = 100
"""Lines of standard input that wait to be performed."""

HELP = "/peers, /groups, /join GROUP, /leave GROUP, /shout GROUP TEXT, /whisper NAME TEXT"

app = typer.Typer(help="Join a ZRE network, and talk to its peers.", no_args_is_help=True)


class JoinSettings(ZreSettings, frozen=True, kw_only=True):
    """Join groups, print what happens, and send lines from standard input."""

    capture: CaptureSettings = CaptureSettings()
    metrics: MetricsSettings = MetricsSettings()
    json: Annotated[bool, Setting(help="Print each event as a JSON object.")] = False


@app.callback()
def zre() -> None:
    """Join a ZRE network, and talk to its peers."""


def join(settings: JoinSettings, configuration: ServerConfiguration) -> None:
    """Run a peer until a signal comes."""
    log = EventLog(print_line, ROLE, LogForm.JSON if settings.json else LogForm.TEXT)
    metrics = settings.metrics
    try:
        place = read_metrics(metrics.address, anywhere=metrics.anywhere, password_file=metrics.password_file)
        with open_capture(settings.capture, "zre", EDITION, "peer") as tap:
            peer = ZrePeer(settings, on_event=log.emit, tap=tap)
            changes = Changes(peer, settings, log)
            reloading = Reloading(configuration, log.line, appliers=changes.appliers)
            asyncio.run(run_peer(peer, log, reloading, place))
    except ValueError as error:
        fail(str(error))
    finally:
        log.close()


app.command(
    "join",
    epilog="Exit status: 0 after SIGINT or SIGTERM; 1 where it cannot listen; 2 for usage and bad input.\n\n"
    f"A line of the input is sent to the first group. Other commands: {HELP}.",
)(settings_command(load_section("zre.join"), join))


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


class Changes:
    """Applies changed settings to a running peer.

    Settings whose host names cannot be resolved are applied later, unless other settings follow.
    """

    def __init__(self, peer: ZrePeer, settings: ZreSettings, log: EventLog) -> None:
        self._peer, self._settings, self._log = peer, settings, log
        self._applying: asyncio.Task[None] | None = None

    @property
    def appliers(self) -> dict[str, Apply]:
        """Functions that apply a setting."""
        names = ("groups", "endpoint", "evasive_after", "expired_after")
        return {name: partial(self._change, name) for name in names}

    def _change(self, name: str, value: Any) -> str:
        self._settings = msgspec.structs.replace(self._settings, **{name: value})
        if self._applying is not None:
            self._applying.cancel()
        self._applying = asyncio.ensure_future(self._apply())
        return f"{name.replace('_', '-')} changes once the host names of the endpoints are resolved"

    async def _apply(self) -> None:
        policy, clock = ReconnectPolicy(longest_s=60.0), asyncio.get_running_loop().time
        while True:
            try:
                await self._peer.reload(self._settings)
                return
            except ValueError as error:
                self._log.line(f"the settings stay as they were: {error}")
                return
            except TransportError as error:
                retry_at, text = policy.fail(str(error), clock(), answered=False)
                if text:
                    self._log.line(f"not applied yet: {text}")
            await asyncio.sleep(retry_at - clock())


async def run_peer(peer: ZrePeer, log: EventLog, reloading: Reloading, place: Place | None) -> None:
    """Run a peer until SIGINT or SIGTERM, and show its metrics at `place`; raises TransportError."""
    stop, ready = stop_requested(), Readiness()
    reloading.listen()
    # Not `sys.stdin`: Python closes it at exit, and aborts while the thread reads from it.
    lines = read_lines(open(0, "rb", closefd=False))  # noqa: SIM115, ASYNC230
    async with peer:
        own = peer.status()
        log.line(f"{own.name} listens on {own.endpoint}")
        answering = await answer_status(peer, log)
        try:
            async with shown(place, lambda: zre_subject(peer), log.line):
                reloading.begin()
                ready.tell()
                while not stop.done():
                    line = asyncio.ensure_future(anext(lines))
                    await asyncio.wait((stop, line), return_when=asyncio.FIRST_COMPLETED)
                    if line.done():
                        for text in await perform(peer, line.result()):
                            log.line(text)
                    line.cancel()
        finally:
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


async def read_lines(source: Iterable[bytes], limit: int = MAX_LINES) -> AsyncIterator[str]:
    """Yield each line of `source`, which a thread reads; never ends.

    The thread waits while `limit` lines are not taken. Octets that are no UTF-8 are replaced.
    """
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str]()
    room = threading.Semaphore(limit)

    def read() -> None:
        for line in source:
            if text := line.decode(errors="replace").strip():
                room.acquire()
                try:
                    loop.call_soon_threadsafe(lines.put_nowait, text)
                except RuntimeError:  # the event loop is closed
                    return

    threading.Thread(target=read, name="standard input", daemon=True).start()
    while True:
        line = await lines.get()
        room.release()
        yield line


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


def print_line(line: str) -> None:
    """Write a line to standard output at once."""
    sys.stdout.write(show(line) + "\n")
    sys.stdout.flush()
