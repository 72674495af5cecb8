"""`specwire flux start`: an instance on this machine, until its command or a signal ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
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
from specwire.runtime.cli.console import BY_SIGNAL, fail, print_error
from specwire.runtime.cli.flux_options import (
    CaptureOption,
    CurveOption,
    GuestsOption,
    LetterOption,
    ProtocolOption,
    ServiceOption,
    TimerOption,
    VerboseOption,
    choose_wire,
    load_services,
    read_timers,
)
from specwire.runtime.cli.metrics_options import (
    LogFormatOption,
    MetricsAnywhereOption,
    MetricsOption,
    MetricsPasswordOption,
    read_metrics,
)
from specwire.runtime.cli.plain_log import plain_log
from specwire.runtime.forking import handle_signal
from specwire.runtime.log.form import LogForm

if TYPE_CHECKING:
    from specwire.runtime.cli.reloading import Reloading
    from specwire.runtime.flux.instance import Instance

JOB_FAILED = 1
ENDING_S = 10.0
"""How long the command may take to end when it is told to."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""How a shell says that a command was not run, and that a signal ended it."""


def start(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[--] COMMAND…",
            help="Run with FLUX_URI set; the instance ends with it, and with its exit status.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[int, typer.Option("--size", "--test-size", "-s", min=1, help="Number of brokers.")] = 1,
    fanout: Annotated[
        int, typer.Option("--fanout", "-k", min=0, help="Children of each broker; 0: all are below rank 0.")
    ] = 2,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start a broker again that ends by itself.")
    ] = False,
    curve: CurveOption = True,
    service: ServiceOption = None,
    timer: TimerOption = None,
    allow_guests: GuestsOption = False,
    letter: LetterOption = False,
    protocol: ProtocolOption = "flux",
    capture: CaptureOption = None,
    capture_keep: CaptureKeepOption = None,
    capture_max: CaptureMaxOption = None,
    capture_payload: CapturePayloadOption = "keep",
    capture_free: CaptureFreeOption = None,
    verbose: VerboseOption = False,
    metrics: MetricsOption = None,
    metrics_anywhere: MetricsAnywhereOption = False,
    metrics_password_file: MetricsPasswordOption = None,
    log_format: LogFormatOption = LogForm.TEXT,
    config: Annotated[Path | None, config_option("flux.start")] = None,
) -> None:
    """Start an instance on this machine: brokers in a tree, each a process.

    Without a command the URI of rank 0 is printed when the tree is full, and the instance runs until SIGINT or
    SIGTERM.
    """
    from specwire.runtime.cli.reloading import Reloading
    from specwire.runtime.flux.instance import BrokerEndedError, Instance, Plan
    from specwire.runtime.flux.topology import Tree

    configured = configured_in(context)
    flags = {
        "--allow-guests": allow_guests,
        "--letter": letter,
        "--verbose": verbose,
        "--quiet": not verbose,
    }
    try:
        read_timers(timer)  # told once, and not by every broker
        load_services(service)
        choose_wire(protocol, letter=letter)
        place = read_metrics(
            metrics, anywhere=metrics_anywhere, password_file=metrics_password_file, servers=size
        )
        read_capture_limits(capture_keep, capture_max, capture_payload, capture_free)
    except ValueError as error:
        fail(str(error))
    keeping = {
        "--capture-keep": capture_keep,
        "--capture-max": capture_max,
        "--capture-payload": capture_payload,
        "--capture-free": capture_free,
    }
    options = (
        *(flag for flag, wanted in flags.items() if wanted),
        *("--protocol", protocol),
        *("--log-format", log_format.value),
        *(word for name, text in keeping.items() if text is not None for word in (name, text)),
        *(word for text in timer or () for word in ("--timer", text)),
        *(word for text in service or () for word in ("--service", text)),
    )
    plan = Plan(
        Tree(size, fanout),
        options=options,
        curve=curve,
        guests=allow_guests,
        restart=restart,
        metrics=place,
        capture=str(capture.absolute()) if capture is not None else None,
    )
    try:
        with plain_log("flux-instance", log_format) as say:
            reloading = Reloading(configured, say, appliers={})
            status = asyncio.run(_run(Instance(plan, say), command or [], reloading))
    except BrokerEndedError as error:
        fail(str(error), status=JOB_FAILED)
    raise typer.Exit(status)


async def _run(instance: Instance, command: list[str], reloading: Reloading) -> int:
    from specwire.runtime.cli.readiness import Readiness
    from specwire.runtime.cli.signals import stop_requested

    stop, ready = stop_requested(), Readiness()
    _stop_at_hangup(stop)
    if sys.stdin is None or not sys.stdin.isatty():
        reloading.listen()
    starting = asyncio.create_task(instance.start())
    await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait((starting,))
        return BY_SIGNAL + signal.SIGTERM
    await starting
    reloading.begin()
    ready.tell()
    try:
        if command:
            return await _run_command(instance, command, stop)
        sys.stdout.write(f"{instance.uri}\n")
        sys.stdout.flush()
        await instance.until(stop)
        return 0
    finally:
        await instance.stop()


def _stop_at_hangup(stop: asyncio.Future[None]) -> None:
    """Stop when the terminal is closed, unless `nohup` was asked for."""

    def hang_up() -> None:
        if not stop.done():
            stop.set_result(None)

    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        handle_signal(signal.SIGHUP, hang_up)


async def _run_command(instance: Instance, command: list[str], stop: asyncio.Future[None]) -> int:
    """Run a command in the instance, and return how it has ended as a shell says it."""
    try:
        process = await asyncio.create_subprocess_exec(*command, env={**os.environ, "FLUX_URI": instance.uri})
    except OSError as error:
        print_error(f"specwire: {command[0]}: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    running = asyncio.create_task(process.wait())
    try:
        await instance.until(asyncio.create_task(_first(running, stop)))
    finally:
        await end_command(command[0], process, running)
    return BY_SIGNAL - status if (status := running.result()) < 0 else status


async def _first(running: asyncio.Task[int], stop: asyncio.Future[None]) -> None:
    """Return when the command has ended, or is to end."""
    await asyncio.wait((running, stop), return_when=asyncio.FIRST_COMPLETED)


async def end_command(name: str, process: asyncio.subprocess.Process, running: asyncio.Task[int]) -> None:
    """End a command that runs; one that does not let itself be told, as an interactive shell, is killed."""
    if running.done():
        return
    process.terminate()
    if not (await asyncio.wait((running,), timeout=ENDING_S))[0]:
        print_error(f"specwire: {name} did not end within {ENDING_S:g} s, and is killed")
        process.kill()
        await running
