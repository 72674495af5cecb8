"""How well the tree is, broker by broker: each is asked about itself and its children, from the top down.

A broker without children is not asked: its parent has told of it. What is below a broker that is gone cannot be asked;
it is filled in from the shape of the tree, as a ghost with the status of the one that is gone.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import aclosing

import msgspec

from specwire.runtime.flux.errors import ENODATA, ETIMEDOUT, FluxError
from specwire.runtime.flux.handle import FluxHandle
from specwire.runtime.flux.inquiry import (
    FULL,
    ChildHealth,
    Health,
    Topology,
    get_health,
    get_hosts,
    get_number,
    get_topology,
)

GONE = ("offline", "lost")
STATUSES = (FULL, "partial", "degraded", *GONE)


class Branch(msgspec.Struct):
    """What was found of a broker, and below it.

    Attributes:
        duration: seconds since the status is so; None where nobody knows.
        error: why it is gone, or could not be asked.
        torpid: its parent has not heard of it for too long.
        asked_ms: how long its answer took; None for one that was not asked.
        ghost: nobody told of it; it is below one that is gone.
    """

    rank: int
    host: str
    status: str
    duration: float | None = None
    error: str = ""
    torpid: bool = False
    asked_ms: float | None = None
    ghost: bool = False
    children: list[Branch] = []


class Survey:
    """One look at a tree.

    Args:
        handle: the connection to one of the brokers.
        timeout_s: the longest time until a broker answers.
        leaves: ask brokers without children, too.
        ghosts: fill in what is below a broker that is gone.
        down: look only at what is not full.
    """

    def __init__(
        self,
        handle: FluxHandle,
        timeout_s: float | None,
        *,
        leaves: bool = False,
        ghosts: bool = True,
        down: bool = False,
    ) -> None:
        self._handle, self._timeout_s = handle, timeout_s
        self._leaves, self._ghosts, self._down = leaves, ghosts, down
        self._hosts: list[str] = []
        self._shapes: dict[int, Topology] = {}

    async def look(self, rank: int) -> Branch:
        """Return what is found at `rank` and below; raises FluxError."""
        size = await get_number(self._handle, "size", self._timeout_s)
        began = time.monotonic()
        health = await get_health(self._handle, rank, self._timeout_s)
        asked_ms = _ms_since(began)
        topology = await get_topology(self._handle, self._timeout_s)
        self._shapes = {shape.rank: shape for shape in _shapes(topology)}
        self._hosts = (await get_hosts(self._handle, self._timeout_s))[:size]
        return await self._branch(health, asked_ms)

    async def _branch(self, health: Health, asked_ms: float) -> Branch:
        branch = self._new(health.rank, health.status)
        branch.duration, branch.asked_ms = health.duration, asked_ms
        branch.children = [
            await self._child(child)
            for child in health.children
            if not self._down or child.status != FULL or child.torpid
        ]
        return branch

    async def _child(self, child: ChildHealth) -> Branch:
        branch = self._new(child.rank, child.status)
        branch.duration, branch.error, branch.torpid = child.duration, child.error, child.torpid
        shape = self._shapes.get(child.rank)
        if child.status in GONE:
            branch.children = self._haunt(shape, child.status)
            return branch
        if not self._leaves and (shape is None or not shape.children):
            return branch
        began = time.monotonic()
        try:
            health = await get_health(self._handle, child.rank, self._timeout_s)
        except FluxError as error:
            branch.duration, branch.error, branch.asked_ms = None, str(error), _ms_since(began)
            branch.children = self._haunt(shape, child.status)
            return branch
        return await self._branch(health, _ms_since(began))

    def _haunt(self, shape: Topology | None, status: str) -> list[Branch]:
        if shape is None or not self._ghosts:
            return []
        ghosts = []
        for child in shape.children:
            ghost = self._new(child.rank, status)
            ghost.ghost, ghost.children = True, self._haunt(child, status)
            ghosts.append(ghost)
        return ghosts

    def _new(self, rank: int, status: str) -> Branch:
        return Branch(rank, self._hosts[rank] if rank < len(self._hosts) else "", status, children=[])


async def await_status(handle: FluxHandle, rank: int, status: str, timeout_s: float | None) -> None:
    """Return when the subtree of `rank` has this status; raises FluxError."""
    try:
        async with (
            asyncio.timeout(timeout_s),
            aclosing(handle.stream("overlay.health", nodeid=rank)) as replies,
        ):
            async for reply in replies:
                if reply.read(Health).status == status:
                    return
    except TimeoutError:
        raise FluxError(ETIMEDOUT, f"the subtree was not {status} in {timeout_s:g} s") from None
    raise FluxError(ENODATA, f"the broker ends its answer, and the subtree was not {status}")


def each(top: Branch) -> Iterator[Branch]:
    """Yield a branch and all below it, from the top down."""
    waiting = deque([top])
    while waiting:
        branch = waiting.popleft()
        yield branch
        waiting.extend(branch.children)


def _ms_since(began: float) -> float:
    return (time.monotonic() - began) * 1000


def _shapes(top: Topology) -> Iterator[Topology]:
    waiting = [top]
    while waiting:
        shape = waiting.pop()
        yield shape
        waiting.extend(shape.children)
