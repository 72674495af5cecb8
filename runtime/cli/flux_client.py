"""What the commands that talk to a broker have in common: where it is, how long they wait, what they say when it fails.

The commands ask for what those of flux-core ask for, in the same order, and print the same; only errors are ours,
one sentence on standard error that begins with `specwire:`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from specwire.runtime.cli.console import fail

if TYPE_CHECKING:
    from specwire.runtime.flux.errors import FluxError
    from specwire.runtime.flux.handle import FluxHandle

JOB_FAILED = 1
CONNECT_S = 10.0
EXIT_STATUSES = "Exit status: 0; 1 when there is no broker or it answers with an error; 2 for usage."


def read_duration(text: str) -> float:
    """Return seconds; raises typer.BadParameter."""
    from specwire.runtime.flux.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


UriOption = Annotated[
    str | None,
    typer.Option(
        "--uri", metavar="local://PATH", help="The broker to ask; default: FLUX_URI.", show_default=False
    ),
]

TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        "-t",
        metavar="DURATION",
        parser=read_duration,
        help="Longest time until an answer: 1.5, 500ms, 2m; 0: no limit.",
        show_default=False,
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

ColorOption = Annotated[
    str,
    typer.Option("--color", "-L", metavar="WHEN", help="Colour: always, never, or auto: on a terminal."),
]


def run(story: Coroutine[Any, Any, None]) -> None:
    """Run what a command does; it can be interrupted."""
    import asyncio

    asyncio.run(story)


@asynccontextmanager
async def connected(uri: str | None) -> AsyncIterator[FluxHandle]:
    """Connect to a broker; what fails in the meantime ends the command with a sentence."""
    from specwire.runtime.flux.errors import EPERM, FluxError
    from specwire.runtime.flux.handle import connect
    from specwire.runtime.flux.uri import local_path

    try:
        local_path(uri)
    except FluxError as error:
        fail(f"{error}; give --uri, or run this in an instance: specwire flux start -- COMMAND")
    async with AsyncExitStack() as stack:
        try:
            handle = await stack.enter_async_context(connect(uri, timeout_s=CONNECT_S))
        except FluxError as error:
            denied = error.errnum == EPERM
            step = "its owner can --allow-guests" if denied else "`specwire flux start` starts an instance"
            give_up(error, step=step)
        try:
            yield handle
        except FluxError as error:
            give_up(error)


def give_up(error: FluxError, about: str = "", *, step: str = "") -> NoReturn:
    """End the command: `about` has failed. `step` says what to do next, where that is known better than here."""
    from specwire.runtime.log.text import show

    reason = show(str(error))
    if about:
        topic, separator, rest = reason.partition(": ")
        is_said = separator and (about == topic or about.endswith(f"!{topic}"))
        reason = f"{about}: {rest if is_said else reason}"
    step = step or next_step(error)
    fail(f"{reason}; {step}" if step else reason, status=JOB_FAILED)


def next_step(error: FluxError) -> str:
    """Return what to do about an error, where the number alone says so."""
    from specwire.runtime.flux import errors

    match error.errnum:
        case errors.EHOSTUNREACH:
            return "`specwire flux overlay status` shows which ranks are there"
        case errors.ETIMEDOUT:
            return "--timeout allows it longer"
        case errors.EPERM if not error.text:
            return "the owner of the instance may do this"
        case _:
            return ""


def patience(timeout_s: float | None, default_s: float | None) -> float | None:
    """Return how long an answer may take, None for no limit: what the user says, where 0 is no limit too."""
    return (default_s if timeout_s is None else timeout_s) or None


def wants_colour(when: str) -> bool:
    """Tell whether to write in colour; a wrong word ends the command."""
    match when:
        case "always":
            return True
        case "never":
            return False
        case "auto":
            return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        case _:
            fail(f"--color {when}: always, never or auto is wanted")


def print_line(line: str) -> None:
    """Write a line to standard output at once, for whoever reads what comes in the course of time.

    What the terminal's encoding lacks is escaped.
    """
    if not is_printable(line):
        encoding = sys.stdout.encoding
        line = line.encode(encoding, "backslashreplace").decode(encoding)
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def is_printable(text: str) -> bool:
    """Tell whether standard output's encoding has all of `text`."""
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True


def print_json_line(value: object) -> None:
    """Write a value as one line of JSON at once."""
    import msgspec

    from specwire.runtime.log.text import show_json

    print_line(show_json(msgspec.json.encode(value).decode()))
