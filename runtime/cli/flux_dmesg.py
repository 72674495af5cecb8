"""`specwire flux dmesg`: the log of a broker."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

import typer

from specwire.runtime.cli.console import fail
from specwire.runtime.cli.flux_client import (
    ColorOption,
    JsonOption,
    TimeoutOption,
    UriOption,
    connected,
    give_up,
    patience,
    print_json_line,
    print_line,
    run,
    wants_colour,
)
from specwire.runtime.cli.flux_log import LogWriter, parse_line

ANSWER_S = 10.0


def dmesg(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with lines as they come.")] = False,
    new: Annotated[bool, typer.Option("--new", "-n", help="Leave out the lines that are there.")] = False,
    clear: Annotated[bool, typer.Option("--clear", "-C", help="Forget all lines, and print none.")] = False,
    read_clear: Annotated[
        bool, typer.Option("--read-clear", "-c", help="Forget all lines when they are printed.")
    ] = False,
    human: Annotated[
        bool, typer.Option("--human", "-H", help="Print minutes, and seconds since the first line of each.")
    ] = False,
    delta: Annotated[
        bool, typer.Option("--delta", "-d", help="With --human: the seconds since the line before.")
    ] = False,
    color: ColorOption = "auto",
    uri: UriOption = None,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the log of the broker."""
    if clear and (follow or new or read_clear):
        fail("--clear prints nothing, so --follow, --new and --read-clear have no sense with it")
    if delta and not human:
        fail("--delta has no sense without --human")
    writer = LogWriter(in_colour=wants_colour(color), human=human, deltas=delta)

    async def story() -> None:
        from specwire.runtime.flux.errors import FluxError

        wait_s = patience(timeout, None if follow else ANSWER_S)
        async with connected(uri) as handle:
            try:
                if not clear:
                    wanted = {"follow": follow, "nobacklog": new}
                    async with aclosing(handle.stream("log.dmesg", wanted, timeout_s=wait_s)) as lines:
                        async for line in lines:
                            tell(line.text, None if as_json else writer)
                if clear or read_clear:
                    await handle.rpc("log.clear", timeout_s=wait_s)
            except FluxError as error:
                give_up(error, "log.clear" if clear else "log.dmesg")

    run(story())


def tell(text: str, writer: LogWriter | None) -> None:
    """Print a line, as JSON where there is no writer."""
    if writer is not None:
        print_line(writer.write(text))
        return
    line = parse_line(text)
    print_json_line({"text": text} if line is None else line._asdict())
