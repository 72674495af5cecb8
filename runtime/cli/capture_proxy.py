"""`specwire capture proxy`: stand between two peers, pass on what they say, and write it down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specwire.runtime.cli.capture_curve import (
    ClientKeysOption,
    CurveOption,
    Keys,
    Make,
    OwnKeyOption,
    ServerKeyOption,
    choose_between,
)
from specwire.runtime.cli.capture_options import (
    CaptureFreeOption,
    CaptureKeepOption,
    CaptureMaxOption,
    CapturePayloadOption,
    read_capture_limits,
)
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
from specwire.runtime.cli.packages import Grammars, Packages, use_packages
from specwire.runtime.cli.plain_log import plain_log
from specwire.runtime.cli.readiness import Readiness
from specwire.runtime.cli.reloading import Reloading
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.text import show
from specwire.runtime.packages import load_package

if TYPE_CHECKING:
    from specwire.runtime.capture import Limits, Tap
    from specwire.runtime.capture.proxy import Proxied
    from specwire.runtime.observe.place import Place
    from specwire.runtime.observe.view import Subject
    from specwire.runtime.transport.relay import Between

JOB_FAILED = 1
CLOSE_S = 10.0


def proxy(
    context: typer.Context,
    to: Annotated[
        str, typer.Option("--to", metavar="ENDPOINT", help="Where the server listens.", show_default=False)
    ],
    capture: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder that the segments are written to.", show_default=False)
    ],
    protocol: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="What the peers speak; may be repeated, such as norfab and norfab_ascii.",
            show_default=False,
        ),
    ],
    listen: Annotated[
        str, typer.Option(metavar="ENDPOINT", help="Where clients connect instead; port * takes any.")
    ] = "tcp://127.0.0.1:*",
    max_clients: Annotated[
        int, typer.Option(min=1, help="Connections at a time; more are closed at once.")
    ] = 1000,
    packages: Packages = None,
    grammars: Grammars = None,
    capture_keep: CaptureKeepOption = None,
    capture_max: CaptureMaxOption = None,
    capture_payload: CapturePayloadOption = "keep",
    capture_free: CaptureFreeOption = None,
    curve: CurveOption = None,
    client_keys: ClientKeysOption = None,
    server_key: ServerKeyOption = None,
    own_key: OwnKeyOption = None,
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
    config: Annotated[Path | None, config_option("capture.proxy")] = None,
) -> None:
    """Pass on what two peers say, one connection for each of a client's, and write every message to a capture."""
    from specwire.runtime.transport.errors import ExposureError

    configured = configured_in(context)
    use_packages(packages, grammars, protocol)
    spoken = [load_package(name) for name in dict.fromkeys(protocol)]
    try:
        limits = read_capture_limits(capture_keep, capture_max, capture_payload, capture_free)
        require_endpoints(listen, to)
        make = choose_between(Keys(curve, client_keys, server_key, own_key), listen, insecure=insecure)
        place = read_metrics(metrics, anywhere=metrics_anywhere, password_file=metrics_password_file)
    except (ValueError, ExposureError) as error:
        fail(str(error))
    with plain_log("capture-proxy", log_format) as say, _open_taps(capture, spoken, limits) as taps:
        reloading = Reloading(configured, say, appliers={})
        counts = asyncio.run(
            _run(make, (listen, to, max_clients), taps, spoken, quiet, reloading, place, say)
        )
    counts |= {"dropped": sum(tap.dropped for tap in taps.values()), "capture": str(capture)}
    if json:
        print_json(counts)
    elif not quiet:
        _print_counts(counts)


@contextmanager
def _open_taps(folder: Path, packages: Sequence[ModuleType], limits: Limits) -> Iterator[dict[str, Tap]]:
    from specwire.runtime.capture import Tap

    with ExitStack() as stack:
        taps = {}
        for package in packages:
            name = package.__name__.rpartition(".")[2]
            tap = Tap.open(folder, protocol=name, name="proxy", edition=package.EDITION, limits=limits)
            taps[name] = stack.enter_context(tap)
        yield taps


async def _run(
    make: Make,
    where: tuple[str, str, int],
    taps: dict[str, Tap],
    packages: Sequence[ModuleType],
    quiet: bool,
    reloading: Reloading,
    place: Place | None,
    say: Callable[[str], None],
) -> dict[str, Any]:
    from specwire.runtime.capture.proxy import ProxyWatch
    from specwire.runtime.cli.signals import stop_requested
    from specwire.runtime.kernel.service import raise_descriptor_limit

    stop, ready = stop_requested(), Readiness()
    raise_descriptor_limit(say)
    reloading.listen()
    watch = ProxyWatch(taps, packages)
    listen, to, max_clients = where
    relay = make(listen, to, watch, max_clients)
    await relay.open()
    try:
        async with shown(place, lambda: _subject(relay, watch.proxied, taps), say):
            if not quiet:
                say(f"passing on {relay.endpoint} to {relay.target}")
            reloading.begin()
            ready.tell()
            await stop
    finally:
        async with asyncio.timeout(CLOSE_S):
            await relay.close()
    proxied = watch.proxied
    return {
        "connections": relay.connections,
        "refused": relay.refused,
        "messages": dict(sorted(proxied.messages.items())),
        "octets": proxied.octets,
        "unread": dict(proxied.unread),
    }


def _subject(relay: Between, proxied: Proxied, taps: dict[str, Tap]) -> Subject:
    from specwire.runtime.observe.relay import proxy_subject

    return proxy_subject(relay, proxied, [*taps.values()], [*taps])


def _print_counts(counts: dict[str, Any]) -> None:
    from specwire.runtime.quantities import show_count, show_octets

    roles = ", ".join(
        f"{number:,} of {role or 'an unknown role'}" for role, number in counts["messages"].items()
    )
    told = show_count(sum(counts["messages"].values()), "message") + (f" ({roles})" if roles else "")
    whole = (show_count(counts["connections"], "connection"), told, show_octets(counts["octets"]))
    lines = [f"{', '.join(whole)}, {counts['dropped']:,} dropped"]
    for why, number in counts["unread"].items():
        lines.append(f"{show_count(number, 'connection')} passed on and not recorded: {why}")
    if counts["refused"]:
        lines.append(f"{show_count(counts['refused'], 'connection')} closed at once")
    for line in lines:
        output().print(show(line), markup=False, soft_wrap=True)
