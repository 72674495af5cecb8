"""Settings, states and errors of a host; `Service`, the base of asynchronous services, and its `Tasks`.

The settings name the listeners, the connections and the store of a host, with their limits. The limit of
open files of the process bounds the connections of a server (`raise_descriptor_limit`).
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum
from types import TracebackType
from typing import Any, Self

import msgspec

from specwire.runtime.kernel.commits import StoreSettings
from specwire.runtime.transport.inflow import InflowBounds
from specwire.runtime.transport.security import NULL, CurveServer, PlainServer, Security

STOP_S = 10.0
Handler = Callable[[Any], Awaitable[Any]]
FRAME_OCTETS = 1 << 20


class HostStoppedError(Exception):
    """The host has stopped, or cannot be called yet."""


class HandlerError(Exception):
    """A handler of `Ask` cannot do what was asked; `str()` is the reason that the story gets."""


class HostState(Enum):
    """State of a host."""

    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Service:
    """Base class of asynchronous services with `start` and `stop`; ``async with`` calls both."""

    async def start(self) -> None:
        """Begin."""
        raise NotImplementedError

    async def stop(self) -> None:
        """End; returns when nothing is left."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


class Tasks:
    """Background work of a service.

    The event loop's exception handler gets what fails, so that no service continues silently
    without a part.

    Args:
        service: name for error messages.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Begin a piece of work."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    async def close(self) -> None:
        """Cancel what still runs, and wait for its end."""
        for task in self._tasks:
            task.cancel()
        await self.finish()

    async def finish(self) -> None:
        """Wait for the end of what still runs."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": f"a part of {self._service} has failed", "exception": error, "task": task}
            asyncio.get_running_loop().call_exception_handler(context)


class ListenerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A ROUTER and its limits. See `Router`, `Guard`, `Inflow` and `refuse_exposure`.

    Attributes:
        endpoint: where to bind; the port may be ``*``.
        max_frames: frames of a message that are kept; the codec gets no others.
        handover: a new connection with the routing id of an older one replaces it.
        names: name of each client by its public key.
        any_key: admit clients whose key is not in `names`.
    """

    endpoint: str
    security: Security = NULL
    insecure: bool = False
    names: Mapping[str, str] | None = None
    any_key: bool = False
    passwords: Mapping[str, str] | None = None
    bounds: InflowBounds = InflowBounds(message_octets=FRAME_OCTETS, legal_octets=FRAME_OCTETS)
    frame_octets: int = FRAME_OCTETS
    max_frames: int = 16
    high_water: int = 1000
    max_waiting: int = 10_000
    max_waiting_octets: int = 256 << 20
    backlog: int = 1024
    give_up_s: float | None = None
    handover: bool = False


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The DEALERs of a host and their limits; see `Dealer`."""

    security: Security = NULL
    frame_octets: int = FRAME_OCTETS
    max_frames: int = 16
    high_water: int = 1000
    max_waiting: int = 10_000
    give_up_s: float | None = None
    connect_s: float | None = None


class HostSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a host opens for its engine.

    Attributes:
        listeners: by the name of the socket. One guard admits the clients of all of them, so those
            with PLAIN or CURVE have equal `names`, `any_key` and `passwords`; other settings raise
            ValueError.
        connections: settings of every `Connect`.
        store: None for an engine that emits no `Commit`.
        handlers: function that performs an `Ask`, by the type of the request.
        stop_s: how long the engine may take to end after `Stopping`.
    """

    listeners: Mapping[str, ListenerSettings] = {}
    connections: ConnectionSettings = ConnectionSettings()
    store: StoreSettings | None = None
    handlers: Mapping[type, Handler] = {}
    stop_s: float = STOP_S

    def __post_init__(self) -> None:
        clients = [
            (one.names, one.any_key, one.passwords)
            for one in self.listeners.values()
            if isinstance(one.security, PlainServer | CurveServer)
        ]
        if any(one != clients[0] for one in clients):
            raise ValueError("listeners with PLAIN or CURVE need equal `names`, `any_key` and `passwords`")


LOW_DESCRIPTOR_LIMIT = 4096
"""A server with a lower limit logs it."""


def descriptor_limit() -> int:
    """Return the soft limit; `resource.RLIM_INFINITY` means no limit."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_descriptor_limit(warn: Callable[[str], None] | None = None) -> None:
    """Raise the soft limit of this process to the hard one; call `warn` if it is still low.

    Every server calls this at its start. Its child processes inherit the limit.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        # A sandbox may forbid it; the warning below then states the unchanged limit.
        reason = f" ({error})"
    else:
        reason = ""
    limit = descriptor_limit()
    if warn is not None and limit != resource.RLIM_INFINITY and limit < LOW_DESCRIPTOR_LIMIT:
        warn(
            f"this process may use {limit:,} descriptors{reason}, and each connection takes one: "
            "raise the limit of open files (ulimit -n)"
        )
