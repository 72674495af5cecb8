"""Requests of tools to brokers: attributes, the host of a rank, and the status of the tree.

The replies of deployed brokers have these fields and may have more.
"""

from __future__ import annotations

import msgspec

from specwire.generated.flux import NODEID_ANY
from specwire.runtime.flux.client import HIGHEST_RANK
from specwire.runtime.flux.errors import EINVAL, ENOENT, EPROTO, FluxError
from specwire.runtime.flux.handle import FluxHandle
from specwire.runtime.flux.hostlist import expand

FULL = "full"
"""Status of a subtree in which all brokers are connected."""

MAX_HOSTS = 1_000_000
"""Host names that are told apart; they may be written in a few octets."""


class Attribute(msgspec.Struct):
    """An attribute of a broker; flag 1 says that it never changes."""

    value: str
    flags: int = 0


class AttributeNames(msgspec.Struct):
    """The attributes that a broker has."""

    names: list[str]


class ChildHealth(msgspec.Struct):
    """How well the subtree of a child is, and since how many seconds.

    Our brokers say more than that: why it is lost, and that it has been silent for too long.
    """

    rank: int
    status: str
    duration: float
    error: str = ""
    torpid: bool = False


class Health(msgspec.Struct):
    """How well the subtree of a broker is."""

    rank: int
    status: str
    duration: float
    children: list[ChildHealth]


class Topology(msgspec.Struct):
    """The shape of a subtree; `size` counts its brokers."""

    rank: int
    size: int
    children: list[Topology]


class Pong(msgspec.Struct):
    """The answer to a ping: what was sent, the way that it went, and whose it was when it came there."""

    seq: int
    pad: str
    route: str
    userid: int
    rolemask: int
    rank: int


class Node(msgspec.Struct, frozen=True):
    """Whom a request is for, as `rpc` takes it, and as the user has called it."""

    nodeid: int = NODEID_ANY
    upstream: bool = False
    name: str = "any"


async def get_attribute(handle: FluxHandle, name: str, timeout_s: float | None = None) -> Attribute:
    """Return an attribute of the broker; raises FluxError (ENOENT)."""
    return (await handle.rpc("attr.get", {"name": name}, timeout_s=timeout_s)).read(Attribute)


async def find_attribute(handle: FluxHandle, name: str, timeout_s: float | None = None) -> str | None:
    """Return the value of an attribute; None if it has none (the broker answers ENOENT)."""
    try:
        return (await get_attribute(handle, name, timeout_s)).value
    except FluxError as error:
        if error.errnum != ENOENT:
            raise
        return None


async def get_number(handle: FluxHandle, name: str, timeout_s: float | None = None) -> int:
    """Return an attribute that is a number, such as rank and size; raises FluxError."""
    value = (await get_attribute(handle, name, timeout_s)).value
    if not value.isdecimal():
        raise FluxError(EPROTO, f"{name} is {value!r}, and no number")
    return int(value)


async def get_hosts(handle: FluxHandle, timeout_s: float | None = None) -> list[str]:
    """Return the host names by rank; raises FluxError."""
    value = (await get_attribute(handle, "hostlist", timeout_s)).value
    try:
        return expand(value, MAX_HOSTS)
    except ValueError as error:
        raise FluxError(EPROTO, f"hostlist: {error}") from None


async def find_node(handle: FluxHandle, word: str, timeout_s: float | None = None) -> Node:
    """Return whom `word` means: any, upstream, a host or a rank.

    Raises:
        FluxError: EINVAL where it means nobody, and what the broker answers.
    """
    if word == "any":
        return Node()
    if word == "upstream":
        return Node(await get_number(handle, "rank", timeout_s), upstream=True, name=word)
    is_rank = word.isdecimal() and int(word) <= HIGHEST_RANK
    try:
        hosts = await get_hosts(handle, timeout_s)
    except FluxError as error:
        if not is_rank or error.errnum not in (ENOENT, EPROTO):
            raise
        hosts = []
    if word in hosts:
        return Node(hosts.index(word), name=word)
    if is_rank:
        return Node(int(word), name=str(int(word)))
    raise FluxError(EINVAL, f"{word!r} is no rank, no host of the instance, and neither any nor upstream")


async def get_health(handle: FluxHandle, rank: int, timeout_s: float | None = None) -> Health:
    """Return how well the subtree of a rank is; raises FluxError."""
    return (await handle.rpc("overlay.health", nodeid=rank, timeout_s=timeout_s)).read(Health)


async def get_parent(handle: FluxHandle, rank: int, timeout_s: float | None = None) -> int:
    """Return the rank above another; raises FluxError (EINVAL where there is none)."""
    waiting = [await get_topology(handle, timeout_s)]
    if rank == waiting[0].rank:
        raise FluxError(EINVAL, f"rank {rank} has no parent")
    while waiting:
        shape = waiting.pop()
        if any(child.rank == rank for child in shape.children):
            return shape.rank
        waiting.extend(shape.children)
    raise FluxError(EINVAL, f"rank {rank} is not in the tree")


async def get_topology(handle: FluxHandle, timeout_s: float | None = None) -> Topology:
    """Return the shape of the whole tree, as rank 0 tells it; raises FluxError."""
    return (await handle.rpc("overlay.topology", {"rank": 0}, nodeid=0, timeout_s=timeout_s)).read(Topology)
