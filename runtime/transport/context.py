"""A ZeroMQ context that a service owns: its I/O threads, and an end that waits for what is still to be sent."""

from __future__ import annotations

import asyncio

import zmq


class TransportContext:
    """The I/O threads of one service; its sockets are made from it and closed before it.

    A context of its own, not the process's shared one: ending it is then bounded by the linger time of its
    sockets, and tells that the last words (a KTHXBAI) have left.
    """

    def __init__(self, *, io_threads: int = 1) -> None:
        self.zmq: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads)

    async def close(self) -> None:
        """End the context off the loop; returns when queued messages have left or their linger time is over."""
        await asyncio.to_thread(self.zmq.term)
