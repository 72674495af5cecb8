"""`specwire flux rpc` and `flux stats`: ask any service anything, and print what it answers."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specwire.runtime.cli.console import fail, print_json
from specwire.runtime.cli.flux_client import (
    TimeoutOption,
    UriOption,
    connected,
    give_up,
    patience,
    print_line,
    run,
)
from specwire.runtime.cli.flux_payload import on_one_line, read_content

if TYPE_CHECKING:
    from specwire.runtime.flux.views import Reply

STATS_S = 10.0

NodeidOption = Annotated[
    str, typer.Option("--nodeid", "-N", metavar="RANK", help="Whom to ask: a rank, a host, any, upstream.")
]


def rpc(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)],
    payload: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="JSON",
            help="An object; without it standard input is read, if that is no terminal.",
            show_default=False,
        ),
    ] = None,
    nodeid: NodeidOption = "any",
    raw: Annotated[
        bool, typer.Option("--raw", "-r", help="Send octets as they are, and write so those that come.")
    ] = False,
    noresponse: Annotated[
        bool, typer.Option("--noresponse", "-n", help="Send the request and wait for nothing.")
    ] = False,
    streaming: Annotated[
        bool, typer.Option("--streaming", "-s", help="Print responses until the service ends them.")
    ] = False,
    uri: UriOption = None,
    timeout: TimeoutOption = None,
) -> None:
    """Ask a service, and print the payload of its response, which usually is JSON."""
    if noresponse and streaming:
        fail("--noresponse and --streaming exclude each other")
    content = read_content(payload, raw=raw, from_input=True)

    async def story() -> None:
        from specwire.runtime.flux.errors import FluxError
        from specwire.runtime.flux.inquiry import find_node

        wait_s = patience(timeout, None)
        async with connected(uri) as handle:
            node = await find_node(handle, nodeid, wait_s)
            whom: dict[str, Any] = {"nodeid": node.nodeid, "upstream": node.upstream}
            try:
                if noresponse:
                    await handle.tell(topic, content, **whom)
                elif streaming:
                    async with aclosing(handle.stream(topic, content, timeout_s=wait_s, **whom)) as replies:
                        async for reply in replies:
                            tell(reply, raw=raw)
                else:
                    tell(await handle.rpc(topic, content, timeout_s=wait_s, **whom), raw=raw)
            except FluxError as error:
                give_up(error, topic)

    run(story())


def tell(reply: Reply, *, raw: bool) -> None:
    """Print the payload of a response, if it has one."""
    if reply.payload is None:
        return
    if raw:
        sys.stdout.buffer.write(reply.payload)
        sys.stdout.buffer.flush()
    else:
        print_line(on_one_line(reply.text))


def stats(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="Such as broker, heartbeat.")] = "broker",
    nodeid: NodeidOption = "any",
    uri: UriOption = None,
    timeout: TimeoutOption = None,
) -> None:
    """Print as JSON what a service has counted."""

    async def story() -> None:
        from specwire.runtime.flux.errors import FluxError
        from specwire.runtime.flux.inquiry import find_node

        wait_s = patience(timeout, STATS_S)
        async with connected(uri) as handle:
            node = await find_node(handle, nodeid, wait_s)
            topic = f"{service}.stats-get"
            try:
                reply = await handle.rpc(topic, nodeid=node.nodeid, upstream=node.upstream, timeout_s=wait_s)
                told = reply.read(object)
            except FluxError as error:
                give_up(error, topic)
        print_json(told)

    run(story())
