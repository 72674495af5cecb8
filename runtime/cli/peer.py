"""`specwire peer`: a peer that holds random valid conversations, and tells what the other side did against the machine."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, print_error, print_json
from specwire.runtime.cli.packages import Grammars, Packages, complete_protocol, use_packages
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
    from specwire.runtime.rehearsal.stage import Stage
    from specwire.runtime.transport.security import Security

EXIT_STATUSES = "Exit status: 0; 1 where the other side broke the protocol, or nothing was heard of it; 2 for usage and bad input."
FAULT_SHARE = 0.2
SEED_BITS = 32


def command(
    protocol: Annotated[
        str, typer.Argument(help="Name of the protocol, such as filemq.", autocompletion=complete_protocol)
    ],
    role: Annotated[str, typer.Option(help="Letter of the role that this peer plays.", show_default=False)],
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Decides what is said; by default another one each time.", show_default=False
        ),
    ] = None,
    connect: Annotated[
        str | None,
        typer.Option(
            metavar="ENDPOINT",
            help="Where the other side listens; local://PATH is a Flux broker's socket.",
            show_default=False,
        ),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option(
            metavar="ENDPOINT",
            help="Where to listen, on this machine, for whoever connects.",
            show_default=False,
        ),
    ] = None,
    dialog: Annotated[
        str | None,
        typer.Option(help="Which dialog, where the role speaks in several.", show_default=False),
    ] = None,
    faults: Annotated[
        bool, typer.Option("--faults", help="Also say broken messages, and note how each is answered.")
    ] = False,
    messages: Annotated[
        int, typer.Option(min=1, help="Messages to say at most; answers come on top.")
    ] = 1000,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to talk at most.")] = 10.0,
    peers: Annotated[int, typer.Option(min=1, max=1000, help="With --connect: conversations at a time.")] = 1,
    rate: Annotated[
        float, typer.Option(min=0.01, max=1e6, help="Messages a second and conversation, on average.")
    ] = 200.0,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="MESSAGE.FIELD=VALUE",
            help="What a field is, instead of anything. May be repeated; of several values one is taken each time.",
            show_default=False,
        ),
    ] = None,
    loose: Annotated[
        bool,
        typer.Option(
            "--loose", help="Say whatever can be encoded, not only what the specification's letter allows."
        ),
    ] = False,
    patience: PatienceOption = 5.0,
    require_answers: Annotated[
        bool, typer.Option("--require-answers", help="Exit status 1 also where a request got no answer.")
    ] = False,
    packages: Packages = None,
    grammars: Grammars = None,
    identity: IdentityOption = None,
    curve: CurveOption = None,
    server_key: ServerKeyOption = None,
    anywhere: AnywhereOption = False,
    as_json: JsonOption = False,
) -> None:
    """Hold random valid conversations with a peer, and report what it did against the protocol's machine."""
    _keep_hypothesis_at_home()
    from specwire.runtime.cli.peer_view import describe_report, print_report
    from specwire.runtime.rehearsal.drawing import Deck
    from specwire.runtime.rehearsal.errors import RehearsalError
    from specwire.runtime.rehearsal.givens import read_givens
    from specwire.runtime.rehearsal.language import Language, own_names
    from specwire.runtime.rehearsal.manner import Budget, Manner
    from specwire.runtime.rehearsal.stage import Stage
    from specwire.runtime.rehearsal.tally import Tally

    endpoint = choose_endpoint(connect, bind, curve, anywhere=anywhere, connecting="--connect")
    seed = secrets.randbits(SEED_BITS) if seed is None else seed
    manner = Manner(messages, seconds, rate, patience_s=patience, fault_share=FAULT_SHARE if faults else 0.0)
    # Another one each time: a server may still know that of the run before, and be done with it.
    identity = f"specwire-peer-{secrets.token_hex(4)}" if identity is None else identity
    check_identity(identity)
    try:
        use_packages(packages, grammars, [protocol])
        language = Language(load_package(protocol))
        dialogs = language.choose_dialogs(role, dialog)
        deck = Deck(language, role, seed, givens=read_givens(language, given or ()), strict=not loose)
        deck.prepare({name for word in dialogs for name in own_names(language.dialog(word), role)})
        stage = Stage(language, role, deck, random.Random(seed), manner, Budget(manner), Tally())
        if bind is not None:
            asyncio.run(_host(stage, dialogs, endpoint))
        else:
            security = read_security(curve, server_key)
            asyncio.run(_call(stage, dialogs, endpoint, peers, security, identity))
    except RehearsalError as error:
        fail(str(error))
    tally = stage.tally
    if not tally.received and not tally.unreadable:
        reasons = "; ".join(tally.losses)
        fail(f"nothing was heard at {endpoint}" + (f": {reasons}" if reasons else ""), status=FAILED)
    report = describe_report(stage, seed, endpoint)
    if as_json:
        print_json(report)
    else:
        print_report(report)
    if tally.failed or (require_answers and tally.unanswered):
        raise typer.Exit(FAILED)


async def _call(
    stage: Stage, dialogs: tuple[str, ...], endpoint: str, peers: int, security: Security, identity: str
) -> None:
    from specwire.runtime.cli.peer_view import shown_progress
    from specwire.runtime.rehearsal.meeting import call

    with _stopping(stage), shown_progress(stage):
        await call(stage, endpoint, dialogs, peers=peers, security=security, identity=identity)


async def _host(stage: Stage, dialogs: tuple[str, ...], endpoint: str) -> None:
    from specwire.runtime.cli.peer_view import shown_progress
    from specwire.runtime.rehearsal.meeting import Host

    host = Host(stage, dialogs)
    try:
        print_error(f"listening on {host.bind(endpoint)}")
        with _stopping(stage), shown_progress(stage):
            await host.run()
    finally:
        await host.close()


@contextmanager
def _stopping(stage: Stage) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the talk early; the report comes all the same."""
    from specwire.runtime.cli.signals import stop_requested

    requested = stop_requested()
    requested.add_done_callback(lambda _: stage.budget.stop())
    try:
        yield
    finally:
        requested.cancel()


def _keep_hypothesis_at_home() -> None:
    """Let hypothesis keep what it works out about characters in the user's cache, and not in the working directory."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(cache) / "specwire" / "hypothesis"))
