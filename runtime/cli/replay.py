"""`specwire replay`: one side of a capture, played again against a live peer whose answers are compared."""

from __future__ import annotations

import asyncio
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, print_error, print_json
from specwire.runtime.cli.packages import Grammars, Packages, use_packages
from specwire.runtime.cli.peer_options import (
    FAILED,
    AnywhereOption,
    CurveOption,
    IdentityOption,
    JsonOption,
    PatienceOption,
    ServerKeyOption,
    check_identity,
    choose_endpoint,
    read_security,
)
from specwire.runtime.packages import load_package

if TYPE_CHECKING:
    from specwire.runtime.rehearsal.replay.playing import Outcome, Performance

EXIT_STATUSES = (
    "Exit status: 0; 1 where answers are not as recorded, or none came; 2 for usage and bad input."
)

_SPEED = re.compile(r"([0-9]*\.?[0-9]+)[x×]")  # noqa: RUF001 - people write either
MARK_BITS = 60


def command(
    capture: Annotated[Path, typer.Argument(help="Folder of the capture.", show_default=False)],
    side: Annotated[str, typer.Option(help="Letter of the role that is played again.", show_default=False)],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="ENDPOINT",
            help="Where the live peer listens; local://PATH is a Flux broker's socket.",
            show_default=False,
        ),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option(
            metavar="ENDPOINT",
            help="Where to listen, on this machine, for live peers to connect: each gets the next conversation.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(min=0.1, metavar="SECONDS", help="With --bind: how long to wait for the next peer."),
    ] = 60.0,
    protocol: Annotated[
        str | None, typer.Option(help="Which, where the capture has several.", show_default=False)
    ] = None,
    tap: Annotated[
        str | None,
        typer.Option(help="Which tap is read, where the capture has several.", show_default=False),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="At most so many messages a second and conversation.", show_default=False
        ),
    ] = None,
    pace: Annotated[
        str | None,
        typer.Option(
            metavar="real|Nx",
            help="With the time between messages as recorded, or N times as fast; else as soon as answers are there.",
            show_default=False,
        ),
    ] = None,
    messages: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Messages of the capture that are read at most.")
    ] = 10_000,
    at_once: Annotated[int, typer.Option(min=1, max=1000, help="Conversations at a time.")] = 16,
    patience: PatienceOption = 5.0,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MESSAGE.FIELD",
            help="Not compared, such as Response.payload.rank, or *.userid in any message. May be repeated.",
            show_default=False,
        ),
    ] = None,
    new_keys: Annotated[
        bool,
        typer.Option(
            "--new-keys", help="Say other matchtags or uuids than recorded, for a peer that knows those."
        ),
    ] = False,
    packages: Packages = None,
    grammars: Grammars = None,
    identity: IdentityOption = None,
    curve: CurveOption = None,
    server_key: ServerKeyOption = None,
    anywhere: AnywhereOption = False,
    as_json: JsonOption = False,
) -> None:
    """Play a recorded side against a live peer, and compare its answers with the recorded ones."""
    from specwire.runtime.cli.replay_view import describe_outcome, print_outcome
    from specwire.runtime.rehearsal.errors import RehearsalError
    from specwire.runtime.rehearsal.language import Language
    from specwire.runtime.rehearsal.replay.nature import Ignored
    from specwire.runtime.rehearsal.replay.part import Pace
    from specwire.runtime.rehearsal.replay.playing import Outcome, Performance
    from specwire.runtime.rehearsal.replay.recording import read_recording

    endpoint = choose_endpoint(to, bind, curve, anywhere=anywhere, connecting="--to")
    if identity is not None:
        check_identity(identity)
    chosen = Pace(rate, _read_speed(pace), patience)
    try:
        use_packages(packages, grammars, [protocol] if protocol else [])
        recording = read_recording(capture, protocol=protocol, tap=tap, messages=messages)
        performance = Performance(
            Language(load_package(recording.protocol)),
            recording,
            side,
            endpoint,
            chosen,
            Ignored(frozenset(ignore or ())),
            at_once,
            identity,
            read_security(curve, server_key),
            new_keys,
            secrets.randbits(MARK_BITS),
        )
        outcome = Outcome()
        asyncio.run(_play(performance, outcome, None if bind is None else wait))
    except RehearsalError as error:
        fail(str(error))
    if not outcome.live and (outcome.lost or not outcome.conversations):
        reasons = "; ".join(outcome.lost) or "nobody came"
        fail(f"nothing was heard at {endpoint}: {reasons}", status=FAILED)
    if as_json:
        print_json(describe_outcome(performance, outcome))
    else:
        print_outcome(performance, outcome)
    if outcome.failed:
        raise typer.Exit(FAILED)


async def _play(performance: Performance, outcome: Outcome, wait_s: float | None) -> None:
    from specwire.runtime.cli.replay_view import shown_progress
    from specwire.runtime.cli.signals import stop_requested
    from specwire.runtime.rehearsal.replay.playing import play

    stop, requested = asyncio.Event(), stop_requested()
    requested.add_done_callback(lambda _: stop.set())
    try:
        with shown_progress(performance, outcome):
            if wait_s is None:
                await play(performance, outcome, stop)
            else:
                await _stand(performance, outcome, stop, wait_s)
    finally:
        requested.cancel()


async def _stand(performance: Performance, outcome: Outcome, stop: asyncio.Event, wait_s: float) -> None:
    from specwire.runtime.rehearsal.replay.hosting import Stand

    stand = Stand(performance, outcome, stop, wait_s)
    try:
        print_error(f"listening on {stand.bind(performance.endpoint)}")
        await stand.run()
    finally:
        await stand.close()


def _read_speed(pace: str | None) -> float | None:
    if pace is None:
        return None
    if pace == "real":
        return 1.0
    match = _SPEED.fullmatch(pace)
    if match is None or float(match[1]) <= 0:
        fail(f"--pace {pace}: real is wanted, or a number and x, such as 10x")
    return float(match[1])
