"""A context ends, whatever its peers do at that moment."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from typing import Any

import zmq

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.router import Router

TIMEOUT_S = 60.0
DEAF_ROUNDS = 15
ROUNDS, PEERS = 200, 20


def router_in(context: TransportContext) -> tuple[Router, asyncio.Queue[bytes]]:
    """Return a router, and the names of those whose messages have come."""
    came: asyncio.Queue[bytes] = asyncio.Queue()
    router = Router(
        context,
        on_message=lambda peer, frames: came.put_nowait(peer),
        on_sent=lambda peer, frames: None,
        on_room=lambda peer: None,
        on_gone=lambda peer, reason: None,
    )
    return router, came


def peer_of(context: Any, endpoint: str, name: bytes, **options: int) -> Any:
    """Return a connected socket that has said something."""
    peer = context.socket(zmq.DEALER)
    peer.setsockopt(zmq.ROUTING_ID, name)
    for option, value in options.items():
        peer.setsockopt(getattr(zmq, option), value)
    peer.connect(endpoint)
    peer.send(b"here")
    return peer


def end(context: TransportContext, peers: Any) -> None:
    """End the contexts; of a thread that nobody waits for where the first does not end, so that the test can fail."""
    ending = threading.Thread(target=context.zmq.term, daemon=True)
    ending.start()
    ending.join(TIMEOUT_S)
    assert not ending.is_alive(), "the context does not end"
    peers.destroy(linger=0)


def test_peer_that_does_not_read_when_its_endpoint_is_let_go_of() -> None:
    """What it is owed is tried for a bounded time."""

    async def story() -> None:
        for _ in range(DEAF_ROUNDS):
            context, peers = TransportContext(), zmq.Context()
            router, came = router_in(context)
            endpoint = router.bind("tcp://127.0.0.1:*")
            deaf = peer_of(peers, endpoint, b"deaf", RCVHWM=1, RCVBUF=4096)
            name = await asyncio.wait_for(came.get(), TIMEOUT_S)
            while router.ready(name):
                router.send(name, [bytes(100_000)])
            router.link.unbind(endpoint)
            router.close(linger_s=0.1)
            assert not deaf.closed
            end(context, peers)

    asyncio.run(story())


def test_peers_that_hang_up_while_they_are_told_something_and_the_server_ends() -> None:
    """The moments are tried out: hanging up, telling and ending within half a millisecond of each other."""

    async def story() -> None:
        draw = random.Random(1)
        for _ in range(ROUNDS):
            context, peers = TransportContext(), zmq.Context()
            router, came = router_in(context)
            endpoint = router.bind("tcp://127.0.0.1:*")
            names = [b"peer-%d" % number for number in range(PEERS)]
            sockets = [peer_of(peers, endpoint, name) for name in names]
            for _ in names:
                await asyncio.wait_for(came.get(), TIMEOUT_S)
            for socket in sockets:
                socket.close(linger=0)
            until = time.perf_counter() + draw.random() / 2000
            while time.perf_counter() < until:
                pass
            for name in names:
                router.send(name, [b"goodbye"])
            router.close(linger_s=0.5)
            end(context, peers)

    asyncio.run(story())
