"""`specwire flux event pub` and `event sub`: publish an event, and print those that come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.flux_client import (
    EXIT_STATUSES,
    JsonOption,
    TimeoutOption,
    UriOption,
    connected,
    patience,
    print_json_line,
    print_line,
    run,
)
from specwire.runtime.cli.flux_payload import describe_payload, on_one_line, read_content

if TYPE_CHECKING:
    from specwire.runtime.flux.handle import FluxHandle
    from specwire.runtime.flux.views import Notice

ANSWER_S = 10.0

app = typer.Typer(help="Publish events, and print those that come.", no_args_is_help=True)


@app.command(epilog=EXIT_STATUSES)
def pub(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)],
    payload: Annotated[
        list[str] | None,
        typer.Argument(metavar="PAYLOAD", help="A JSON object; words are joined.", show_default=False),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", "-r", help="Send the payload as it is.")] = False,
    synchronous: Annotated[
        bool, typer.Option("--synchronous", "-s", help="Wait until the event has its number.")
    ] = False,
    loopback: Annotated[
        bool, typer.Option("--loopback", "-l", help="Wait until the event has come back.")
    ] = False,
    private: Annotated[
        bool, typer.Option("--private", "-p", help="Only for this user and the owner of the instance.")
    ] = False,
    uri: UriOption = None,
    timeout: TimeoutOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Wait as -s does, and print the number.")] = False,
) -> None:
    """Publish an event."""
    content = read_content(payload, raw=raw)

    async def story() -> None:
        async with connected(uri) as handle, in_time(topic, patience(timeout, ANSWER_S)):
            if not (synchronous or loopback or as_json):
                await handle.announce(topic, content, private=private)
                return
            if loopback:
                number = await publish_and_meet(handle, topic, content, private=private)
            else:
                number = await handle.publish(topic, content, private=private)
        if as_json:
            print_json_line({"topic": topic, "sequence": number})

    run(story())


async def publish_and_meet(
    handle: FluxHandle, topic: str, content: str | bytes | None, *, private: bool
) -> int:
    """Publish an event and wait for it; return its number."""
    async with await handle.subscribe(topic) as events:
        number = await handle.publish(topic, content, private=private)
        async for notice in events:
            if notice.sequence == number:
                break
    return number


@asynccontextmanager
async def in_time(topic: str, timeout_s: float | None) -> AsyncIterator[None]:
    """Let what is done inside take so long; raises FluxError (ETIMEDOUT)."""
    from specwire.runtime.flux.errors import ETIMEDOUT, FluxError

    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError:
        raise FluxError(ETIMEDOUT, f"{topic}: not published in {timeout_s:g} s") from None


@app.command(epilog=EXIT_STATUSES)
def sub(
    prefixes: Annotated[
        list[str] | None,
        typer.Argument(metavar="PREFIX", help="How topics begin; all without one.", show_default=False),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-c", min=0, help="End after so many; 0: until interrupted.")
    ] = 0,
    uri: UriOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print events, one on a line: the topic, a tab, the payload."""

    async def story() -> None:
        async with connected(uri) as handle, await handle.subscribe(*(prefixes or [""])) as events:
            came = 0
            async for notice in events:
                tell(notice, as_json)
                came += 1
                if came == count:
                    return

    run(story())


def tell(notice: Notice, as_json: bool) -> None:
    """Print an event; the words for one that cannot be read are those of `flux event sub`."""
    from specwire.runtime.flux.errors import FluxError

    if as_json:
        print_json_line({"topic": notice.topic, "sequence": notice.sequence, **describe_payload(notice)})
        return
    try:
        text = notice.text if notice.payload is not None else ""
    except FluxError:
        print_line("malformed message ignored")
    else:
        print_line(f"{on_one_line(notice.topic)}\t{on_one_line(text)}")
