"""A service that answers at once, in pieces or not at all, and says so; and how a request to it fails."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.handle import FluxHandle
from specwire.runtime.flux.service import allow
from specwire.runtime.flux.views import ServiceRequest

WAITS, GONE = "the desk waits", "the desk hears that a client is gone"


class Desk:
    """The service; what it does slowly is to be seen in the log of its broker.

    Attributes:
        waiting: set while a request waits for ever.
        gone: the routes of clients that are gone.
    """

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.gone: asyncio.Queue[tuple[str, ...]] = asyncio.Queue()

    @allow(guests=True)
    async def double(self, request: ServiceRequest) -> dict[str, int]:
        """Answer at once."""
        return {"n": 2 * int(request.json()["n"])}

    async def count(self, request: ServiceRequest) -> AsyncIterator[dict[str, int]]:
        """Answer in pieces."""
        for n in range(int(request.json()["n"])):
            yield {"n": n}

    async def wait(self, request: ServiceRequest) -> None:
        """Never answer."""
        self.waiting.set()
        print(WAITS, file=sys.stderr, flush=True)
        await asyncio.Event().wait()

    async def disconnect(self, request: ServiceRequest) -> None:
        """Hear that a client is gone."""
        self.gone.put_nowait(request.route)
        print(GONE, file=sys.stderr, flush=True)


async def errnum_of(handle: FluxHandle, topic: str, nodeid: int) -> int:
    """Return the error number that a request is answered with."""
    with pytest.raises(FluxError) as caught:
        await handle.rpc(topic, {}, nodeid=nodeid)
    return caught.value.errnum
