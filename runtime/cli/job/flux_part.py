"""A Flux instance of three brokers: RPCs over one hop, RPCs that fail, and events to every rank.

The service runs in the broker of rank 0. Clients of ranks 1 and 2 call it, so each request and its
response cross the overlay network once.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import AsyncExitStack
from math import isqrt
from pathlib import Path

import msgspec

from specwire.generated import flux
from specwire.runtime.cli.job.taps import Taps
from specwire.runtime.flux import FluxBroker, FluxError, FluxHandle, ServiceRequest, connect
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.errors import EINVAL
from specwire.runtime.flux.topology import Tree
from specwire.runtime.transport.keys import load_keys, make_keys

SIZE = 3
SERVICE = "calculator"
SQUARE, ROOT = f"{SERVICE}.square", f"{SERVICE}.root"
CALLS = 100
"""Calls of each method by each client."""
TOPIC = "story.chapter"
EVENTS = 50


class _Number(msgspec.Struct):
    number: int


class FluxResult(msgspec.Struct, frozen=True):
    """Counts of RPCs by outcome, of events published and received, and a list of wrong results."""

    answered: int
    failed: int
    published: int
    received: int
    faults: tuple[str, ...]


class _Calculator:
    """Service that squares integers, and computes roots of perfect squares only."""

    async def square(self, request: ServiceRequest) -> dict[str, int]:
        return {"number": request.read(_Number).number ** 2}

    async def root(self, request: ServiceRequest) -> dict[str, int]:
        number = request.read(_Number).number
        if number < 0 or isqrt(number) ** 2 != number:
            raise FluxError(EINVAL, f"{number} is not a perfect square")
        return {"number": isqrt(number)}


async def run_flux(taps: Taps) -> FluxResult:
    """Start the instance, call the service, publish events, and stop the instance."""
    async with AsyncExitStack() as stack:
        # The address of a local socket holds about 100 octets: too few for the path of some jobs.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specwire-")))
        tree = Tree(SIZE)
        settings = Settings(tree, owner=os.getuid())
        _, secret = make_keys(folder, "instance")
        brokers: list[FluxBroker] = []
        for rank in range(SIZE):
            broker = FluxBroker(
                settings,
                rank,
                local=str(folder / f"local-{rank}"),
                bind=f"ipc://{folder}/tree-{rank}" if tree.children(rank) else None,
                parent=brokers[0].endpoint if rank else None,
                keys=load_keys(secret),
                services={SERVICE: _Calculator()} if rank == 0 else None,
                tap=taps.open("flux", f"flux-broker-{rank}", flux.EDITION),
            )
            await broker.start()
            stack.push_async_callback(broker.stop)
            brokers.append(broker)
        handles = [await stack.enter_async_context(connect(broker.uri)) for broker in brokers]
        async for reply in handles[0].stream("overlay.health"):
            if reply.json()["status"] == "full":
                break
        for handle in handles[1:]:  # a broker notices a moment later that its parent let it in
            await handle.rpc("state-machine.wait")
        return await _use(handles)


async def _use(handles: list[FluxHandle]) -> FluxResult:
    """Call the service from every rank but 0, and publish events from rank 0 to all others."""
    answered = failed = received = 0
    faults: list[str] = []
    for handle in handles[1:]:
        for number in range(CALLS):
            squared = (await handle.rpc(SQUARE, {"number": number})).json()["number"]
            answered += 1
            if squared != number**2:
                faults.append(f"{SQUARE} of {number} returned {squared}")
            try:
                root = (await handle.rpc(ROOT, {"number": number})).json()["number"]
            except FluxError:
                failed += 1
            else:
                answered += 1
                if root**2 != number:
                    faults.append(f"{ROOT} of {number} returned {root}")
    async with AsyncExitStack() as stack:
        subscriptions = [await stack.enter_async_context(await one.subscribe(TOPIC)) for one in handles[1:]]
        for number in range(EVENTS):
            await handles[0].publish(f"{TOPIC}.{number}", {"number": number})
        for events in subscriptions:
            for number in range(EVENTS):
                event = await anext(events)
                received += 1
                if event.topic != f"{TOPIC}.{number}":
                    faults.append(f"the event {TOPIC}.{number} was received as {event.topic}")
    return FluxResult(answered, failed, EVENTS, received, tuple(faults))
