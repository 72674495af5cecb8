"""`specwire flux ping`: is it there, how long does it take, and which way does it go."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from specwire.runtime.cli.console import fail
from specwire.runtime.cli.flux_client import (
    JOB_FAILED,
    JsonOption,
    TimeoutOption,
    UriOption,
    connected,
    give_up,
    patience,
    print_line,
    read_duration,
    run,
)

if TYPE_CHECKING:
    from specwire.runtime.flux.handle import FluxHandle
    from specwire.runtime.flux.inquiry import Node, Pong

ANSWER_S = 10.0
USUAL_INTERVAL_S = 1.0
MAX_PAD_OCTETS = 16_000_000
"""What brokers take in one message, less what else is in a ping."""
MAX_UNDER_WAY = 1000
"""Pings that wait for their answers; the next one is sent when there are fewer."""


def ping(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="RANK, HOST, SERVICE, or RANK!SERVICE.", show_default=False),
    ],
    rank: Annotated[
        str | None,
        typer.Option("--rank", "-r", metavar="RANK", help="Where TARGET is: a rank, a host, any, upstream."),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-c", min=0, help="How many; 0: until interrupted.", show_default=False)
    ] = 0,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            "-i",
            metavar="DURATION",
            parser=read_duration,
            help="From one to the next, usually 1; 0: no pause.",
            show_default=False,
        ),
    ] = None,
    pad: Annotated[
        int, typer.Option("--pad", "-p", min=0, max=MAX_PAD_OCTETS, help="Octets sent along.")
    ] = 0,
    batch: Annotated[
        bool, typer.Option("--batch", "-b", help="Print nothing until all are sent; --count is wanted.")
    ] = False,
    userid: Annotated[bool, typer.Option("--userid", "-u", help="Print whose request it was, too.")] = False,
    uri: UriOption = None,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send pings to a service of a broker, and print how long each took and which way it went."""
    if batch and not count:
        fail("--batch wants --count, or there would never be anything to print")
    where, what = split_target(target, rank)
    pinging = Pinging(what, pad, userid, as_json, patience(timeout, ANSWER_S))
    if not batch:
        pinging.may_print.set()
    run(pinging.run(uri, where, count, USUAL_INTERVAL_S if interval is None else interval))


def split_target(target: str, rank: str | None) -> tuple[str, str]:
    """Return where and what is to be pinged; nothing for the one that is not said."""
    where, separator, what = target.partition("!")
    if separator:
        if rank is not None:
            fail(f"--rank and {target!r} both say where")
        if not where or not what:
            fail(f"{target!r}: RANK!SERVICE is wanted")
        return where, what
    return (rank, target) if rank is not None else (target, "")


class Pinging:
    """The pings of one command; `service` is empty where TARGET may be a rank, a host or a service.

    Attributes:
        may_print: when answers are told: at once, or when all is sent.
    """

    def __init__(
        self, service: str, pad: int, with_userid: bool, as_json: bool, timeout_s: float | None
    ) -> None:
        self._service, self._pad = service, "p" * pad
        self._with_userid, self._as_json, self._timeout_s = with_userid, as_json, timeout_s
        self._room = asyncio.Semaphore(MAX_UNDER_WAY)
        self.may_print = asyncio.Event()

    async def run(self, uri: str | None, where: str, count: int, interval_s: float) -> None:
        """Send them, each at its time, whether the one before was answered or not."""
        async with connected(uri) as handle:
            node = await self._find(handle, where)
            if not self._as_json:
                print_line(f"flux-ping {node.name}!{self._service}{note(node)}")
            try:
                async with asyncio.TaskGroup() as under_way:
                    await self._send(
                        handle, node, range(count) if count else itertools.count(), interval_s, under_way
                    )
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from None

    async def _find(self, handle: FluxHandle, where: str) -> Node:
        """Return who is to be asked; a target that is no rank and no host is a service, wherever it is."""
        from specwire.runtime.flux.errors import EINVAL, FluxError
        from specwire.runtime.flux.inquiry import Node, find_node

        try:
            node = await find_node(handle, where, self._timeout_s)
        except FluxError as error:
            if error.errnum != EINVAL or self._service or where.isdecimal():
                raise
            self._service = where
            return Node()
        self._service = self._service or "broker"
        return node

    async def _send(
        self,
        handle: FluxHandle,
        node: Node,
        numbers: Iterable[int],
        interval_s: float,
        under_way: asyncio.TaskGroup,
    ) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        for number in numbers:
            if number:
                due += interval_s
                await asyncio.sleep(due - clock())
            await self._room.acquire()
            under_way.create_task(self._ping(handle, node, number))
        self.may_print.set()

    async def _ping(self, handle: FluxHandle, node: Node, number: int) -> None:
        from specwire.runtime.flux.errors import FluxError
        from specwire.runtime.flux.inquiry import Pong

        topic = f"{self._service}.ping"
        began_ns = time.monotonic_ns()
        seconds, rest_ns = divmod(began_ns, 1_000_000_000)
        payload = {"seq": number, "time.tv_sec": seconds, "time.tv_nsec": rest_ns, "pad": self._pad}
        try:
            reply = await handle.rpc(
                topic, payload, nodeid=node.nodeid, upstream=node.upstream, timeout_s=self._timeout_s
            )
            took_ms = (time.monotonic_ns() - began_ns) / 1e6
            line = self._describe(topic, reply.read(Pong), took_ms)
        except FluxError as error:
            give_up(error, topic if node.name == "any" else f"{node.name}!{topic}")
        finally:
            self._room.release()
        await self.may_print.wait()
        print_line(line)

    def _describe(self, topic: str, pong: Pong, took_ms: float) -> str:
        """Return the line about an answer."""
        import msgspec

        from specwire.runtime.log.text import show, show_json

        if pong.pad != self._pad:
            fail(f"{pong.rank}!{topic}: the octets that were sent along came back changed", status=JOB_FAILED)
        if self._as_json:
            told = {"topic": topic, "time_ms": took_ms, **msgspec.structs.asdict(pong)}
            return show_json(msgspec.json.encode(told).decode())
        whose = f" userid={pong.userid} rolemask={pong.rolemask:#x}" if self._with_userid else ""
        return f"{pong.rank}!{topic} pad={len(pong.pad)}{whose} seq={pong.seq} time={took_ms:0.3f} ms ({show(pong.route)})"


def note(node: Node) -> str:
    """Return what is said of a host: its rank."""
    return "" if node.name in ("any", "upstream", str(node.nodeid)) else f" (rank {node.nodeid})"
