"""A ZeroMQ context that a service owns: its I/O threads, and an end that waits for what is still to be sent.

What would surprise: a ROUTER numbers the peers that bring no routing id of their own, from a start that libzmq takes
from the C library's `rand`. libzmq never seeds it, so every process would begin at the same number. Who knows it
can bring the next number as a routing id of its own: ZMTP forbids such ids, libzmq takes them, and ends the process
(an assertion) when it comes to give that number to another. So `rand` is seeded here with what nobody knows.

The I/O threads are of the system's class for batches (SCHED_BATCH), which differs from the usual one in one thing: who
is woken does not take the processor from who is at work. Where all processors are busy, a thread that is given message
after message else takes it for each of them, and each message costs two switches and a write to the network of its own.
"""

from __future__ import annotations

import asyncio
import ctypes
import os

import zmq

from specwire.runtime.transport.messages import take_back


class TransportContext:
    """The I/O threads of one service; its sockets are made from it and closed before it.

    A context of its own, not the process's shared one: ending it is then bounded by the linger time of its
    sockets, and tells that the last words (a KTHXBAI) have left.
    """

    def __init__(self, *, io_threads: int = 1) -> None:
        ctypes.CDLL(None).srand(ctypes.c_uint(int.from_bytes(os.urandom(4))))
        self.zmq: zmq.Context[zmq.Socket[bytes]] = zmq.Context(io_threads)
        if _may_change_class():
            self.zmq.set(zmq.THREAD_SCHED_POLICY, os.SCHED_BATCH)

    async def close(self) -> None:
        """End the context off the loop; returns when queued messages have left or their linger time is over."""
        await asyncio.to_thread(self.zmq.term)
        take_back()  # nothing is with libzmq any more, and nobody may be there to take it back


def _may_change_class() -> bool:
    """Whether threads may be put into the class for batches, tried with this one: libzmq ends the process where not.

    Where somebody has put this one into another class, that was done on purpose, and nothing is changed.
    """
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    try:
        for policy in (os.SCHED_BATCH, os.SCHED_OTHER):
            os.sched_setscheduler(0, policy, os.sched_param(0))
    except OSError:
        return False
    return True
