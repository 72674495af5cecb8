"""`specwire flux overlay lookup`, `parentof` and `disconnect`: which rank is which host, and where in the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail, print_error, print_json
from specwire.runtime.cli.flux_client import (
    JsonOption,
    TimeoutOption,
    UriOption,
    connected,
    give_up,
    patience,
    print_line,
    run,
)

if TYPE_CHECKING:
    from specwire.runtime.flux.handle import FluxHandle

ANSWER_S = 10.0

RankArgument = Annotated[str, typer.Argument(metavar="RANK", help="A rank or a host.", show_default=False)]


def lookup(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="Such as 0,2-3 or node[1-4].", show_default=False)
    ],
    uri: UriOption = None,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the hosts of some ranks, or the ranks of some hosts."""

    async def story() -> None:
        from specwire.runtime.flux.inquiry import get_hosts
        from specwire.runtime.log.text import show

        async with connected(uri) as handle:
            hosts = await get_hosts(handle, patience(timeout, ANSWER_S))
        found = translate(target, hosts)
        if as_json:
            print_json(found)
        else:
            print_line(show(found))

    run(story())


def translate(target: str, hosts: list[str]) -> str:
    """Return the hosts of a set of ranks, or the ranks of a list of hosts; ends the command where there is none."""
    from specwire.runtime.flux.hostlist import compress, expand
    from specwire.runtime.flux.ranks import format_ranks, parse_ranks

    try:
        if target not in hosts and not target.strip("0123456789,-"):
            return compress(hosts[rank] for rank in parse_ranks(target, len(hosts)))
        names = expand(target, len(hosts))
    except ValueError as error:
        fail(str(error))
    if absent := [name for name in names if name not in hosts]:
        fail(f"{absent[0]!r} is no host of the instance; `specwire flux getattr hostlist` lists them")
    return format_ranks(rank for rank, host in enumerate(hosts) if host in names)


def parentof(
    rank: RankArgument, uri: UriOption = None, timeout: TimeoutOption = None, as_json: JsonOption = False
) -> None:
    """Print the rank above another in the tree."""

    async def story() -> None:
        from specwire.runtime.flux.inquiry import get_parent

        wait_s = patience(timeout, ANSWER_S)
        async with connected(uri) as handle:
            parent = await get_parent(handle, await _find(handle, rank, wait_s), wait_s)
        if as_json:
            print_json(parent)
        else:
            print_line(str(parent))

    run(story())


def disconnect(
    target: RankArgument,
    parent: Annotated[
        str | None,
        typer.Option("--parent", "-r", metavar="RANK", help="Whose child it is, if not by the topology."),
    ] = None,
    uri: UriOption = None,
    timeout: TimeoutOption = None,
) -> None:
    """Cut a broker that hangs, and all below it, off the tree: its parent is asked to let it go."""

    async def story() -> None:
        from specwire.runtime.flux.errors import FluxError
        from specwire.runtime.flux.inquiry import get_hosts, get_parent
        from specwire.runtime.log.text import show

        wait_s = patience(timeout, ANSWER_S)
        async with connected(uri) as handle:
            rank = await _find(handle, target, wait_s)
            above = await (
                get_parent(handle, rank, wait_s) if parent is None else _find(handle, parent, wait_s)
            )
            hosts = dict(enumerate(await get_hosts(handle, wait_s)))
            print_error(
                f"flux-overlay: asking {show(hosts.get(above, ''))} (rank {above}) "
                f"to disconnect child {show(hosts.get(rank, ''))} (rank {rank})"
            )
            try:
                await handle.rpc("overlay.disconnect-subtree", {"rank": rank}, nodeid=above, timeout_s=wait_s)
            except FluxError as error:
                give_up(error, f"rank {rank}")

    run(story())


async def _find(handle: FluxHandle, word: str, timeout_s: float | None) -> int:
    """Return the rank that is meant; one that is none ends the command."""
    from specwire.runtime.flux.inquiry import find_node

    node = await find_node(handle, word, timeout_s)
    if node.upstream or node.name == "any":
        fail(f"{word}: a rank or a host is wanted")
    return node.nodeid
