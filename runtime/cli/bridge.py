"""`specwire bridge`: let clients that speak one dialect of a protocol use a server that speaks another."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specwire.runtime.cli.config_option import config_option, configured_in
from specwire.runtime.cli.console import fail, output, print_json
from specwire.runtime.cli.endpoints import require_endpoints
from specwire.runtime.cli.metrics_options import (
    LogFormatOption,
    MetricsAnywhereOption,
    MetricsOption,
    MetricsPasswordOption,
    read_metrics,
)
from specwire.runtime.cli.metrics_showing import shown
from specwire.runtime.cli.plain_log import plain_log
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.reloading import Reloading
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from specwire.runtime.bridge.bridging import Bridged
    from specwire.runtime.bridge.translation import Translation
    from specwire.runtime.observe.place import Place
    from specwire.runtime.observe.view import Subject
    from specwire.runtime.transport.relay import Relay

EXIT_STATUSES = "Exit status: 0 after SIGINT or SIGTERM; 1 where it cannot listen; 2 for usage and bad input."
CLOSE_S = 10.0


def command(
    context: typer.Context,
    clients: Annotated[
        str, typer.Argument(metavar="CLIENTS", help="What those who connect speak.", show_default=False)
    ],
    server: Annotated[
        str, typer.Argument(metavar="SERVER", help="What the one who listens speaks.", show_default=False)
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="ENDPOINT", help="Where the server listens.", show_default=False)
    ],
    listen: Annotated[
        str, typer.Option(metavar="ENDPOINT", help="Where clients connect instead; port * takes any.")
    ] = "tcp://127.0.0.1:*",
    max_clients: Annotated[
        int, typer.Option(min=1, help="Connections at a time; more are closed at once.")
    ] = 1000,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Listen beyond this machine: whoever connects reaches the server."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Tell only of what went wrong.")] = False,
    json: Annotated[bool, typer.Option("--json", help="At the end, print the counts as JSON.")] = False,
    metrics: MetricsOption = None,
    metrics_anywhere: MetricsAnywhereOption = False,
    metrics_password_file: MetricsPasswordOption = None,
    log_format: LogFormatOption = LogForm.TEXT,
    config: Annotated[Path | None, config_option("bridge")] = None,
) -> None:
    """Translate between two dialects: flux, cmb1 and cmb1_json; filemq and libfilemq; norfab and norfab_ascii.

    Between NULL or PLAIN peers; each client has a connection of its own to the server, under its own identity.
    """
    from specwire.runtime.bridge.pairs import find_bridge
    from specwire.runtime.transport.errors import ExposureError
    from specwire.runtime.transport.security import NULL, refuse_exposure

    configured = configured_in(context)
    try:
        make_translation = find_bridge(clients, server)
        require_endpoints(listen, to)
        refuse_exposure(listen, NULL, insecure=insecure)
        place = read_metrics(metrics, anywhere=metrics_anywhere, password_file=metrics_password_file)
    except (ValueError, ExposureError) as error:
        fail(str(error))
    with plain_log("bridge", log_format) as say:
        reloading = Reloading(configured, say, appliers={})
        counts = asyncio.run(
            _run(make_translation, listen, to, max_clients, quiet, reloading, place, (clients, server), say)
        )
    if json:
        print_json(counts)
    elif not quiet:
        _print_counts(counts)


async def _run(
    make_translation: Callable[[], Translation],
    listen: str,
    to: str,
    max_clients: int,
    quiet: bool,
    reloading: Reloading,
    place: Place | None,
    protocols: Sequence[str],
    say: Callable[[str], None],
) -> dict[str, Any]:
    from specwire.runtime.bridge.bridging import BridgeWatch
    from specwire.runtime.cli.signals import stop_requested
    from specwire.runtime.kernel.service import raise_descriptor_limit
    from specwire.runtime.transport.relay import Relay

    stop, ready = stop_requested(), Readiness()
    raise_descriptor_limit(say)
    reloading.listen()
    watch = BridgeWatch(make_translation)
    relay = Relay(listen, to, watch, max_connections=max_clients)
    await relay.open()
    try:
        async with shown(place, lambda: _subject(relay, watch.bridged, protocols), say):
            if not quiet:
                say(f"bridging {relay.endpoint} to {relay.target}")
            reloading.begin()
            ready.tell()
            await stop
    finally:
        async with asyncio.timeout(CLOSE_S):
            await relay.close()
    bridged = watch.bridged
    return {
        "connections": relay.connections,
        "refused": relay.refused,
        "to_server": bridged.to_listener,
        "to_clients": bridged.to_opener,
        "not_passed_on": dict(bridged.unsaid),
        "ended": bridged.ended,
    }


def _subject(relay: Relay, bridged: Bridged, protocols: Sequence[str]) -> Subject:
    from specwire.runtime.observe.relay import bridge_subject

    return bridge_subject(relay, bridged, protocols)


def _print_counts(counts: dict[str, Any]) -> None:
    from specwire.runtime.quantities import show_count

    whole = (show_count(counts["connections"], "connection"), show_count(counts["to_server"], "message"))
    lines = [f"{', '.join(whole)} to the server, {counts['to_clients']:,} to clients"]
    lines += [f"not passed on: {number:,} ({why})" for why, number in counts["not_passed_on"].items()]
    if counts["ended"]:
        lines.append(f"{show_count(counts['ended'], 'connection')} ended, which cannot be read")
    if counts["refused"]:
        lines.append(f"{show_count(counts['refused'], 'connection')} closed at once")
    for line in lines:
        output().print(show(line), markup=False, soft_wrap=True)
