"""How many octets libzmq holds for each peer, which it does not tell, and how many more it is to get.

libzmq bounds its queues in messages, and so bounds memory only together with their size. But a large frame is
given to it by reference, and is let go of when it has left for the network. We give it a view that nobody else
holds, and count the octets until that view is gone. Small frames are not counted: with them the bound in messages
will do.

What a peer may have on its way is a sixteenth of what the others leave of a common budget, in frames as large as it
likes: it is cheaper to wait for a large one than to send many small ones. So one peer alone gets plenty, fifty get a
large frame each, very many get small ones, and the sum stays below the budget; what a peer that takes nothing has got
by then is all that it costs, and the others share the rest. What is being prepared counts from when it is promised.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count

from specwire.runtime.transport.messages import COPY_LIMIT_OCTETS

BUDGET_OCTETS = 64 << 20
SHARE = 16
"""A peer may have this part of what is left."""

PIECE_OCTETS = 16 * 1024
"""The least that a peer is offered when nothing is on its way to it: with very many peers the sum is theirs of this."""


def view_largest(frames: Sequence[bytes]) -> tuple[Sequence[bytes | memoryview], memoryview | None]:
    """Return `frames` with the large one among the last two as a view, and that view; None where neither is large.

    A protocol has its content in the last frame, or in front of a short one that ends the message.
    """
    if frames and len(frames[-1]) >= COPY_LIMIT_OCTETS:
        at = -1
    elif len(frames) > 1 and len(frames[-2]) >= COPY_LIMIT_OCTETS:
        at = -2
    else:
        return frames, None
    view = memoryview(frames[at])
    viewed: list[bytes | memoryview] = [*frames]
    viewed[at] = view
    return viewed, view


class Freight:
    """The octets that libzmq holds, by peer.

    Args:
        on_taken: called on the event loop with the peer when the network has taken a frame of it.
    """

    def __init__(self, on_taken: Callable[[bytes], None], *, budget_octets: int = BUDGET_OCTETS) -> None:
        self._on_taken, self._budget = on_taken, budget_octets
        self._loop = asyncio.get_running_loop()
        self._by_peer: dict[bytes, int] = {}
        # By number: in a set, references to views with the same octets would be the same.
        self._views: dict[int, weakref.ref[memoryview]] = {}
        self._numbers = count()
        self.total = 0

    def room(self, peer: bytes, wanted: int) -> int:
        """Return how much of `wanted` octets may be sent to `peer` now in a frame; 0 where some must leave first."""
        held = self._by_peer.get(peer, 0)
        share = max(PIECE_OCTETS, (self._budget - self.total + held) // SHARE)
        piece = min(wanted, share)
        return 0 if held and held + piece > share else piece

    def promise(self, peer: bytes, octets: int) -> None:
        """Count what is being prepared for `peer`, until `redeem`."""
        self.total += octets
        self._by_peer[peer] = self._by_peer.get(peer, 0) + octets

    def redeem(self, peer: bytes, octets: int) -> None:
        """What was promised is here, to be sent now, or will never be."""
        self.total -= octets
        left = self._by_peer.get(peer, 0) - octets
        if left:
            self._by_peer[peer] = left
        else:
            self._by_peer.pop(peer, None)

    def add(self, peer: bytes, view: memoryview) -> None:
        """Count a frame that libzmq has taken; the caller lets go of `view`."""
        size = view.nbytes
        self.promise(peer, size)
        number = next(self._numbers)
        self._views[number] = weakref.ref(view, partial(self._let_go, peer, size, number))

    def _let_go(self, peer: bytes, size: int, number: int, view: weakref.ref[memoryview]) -> None:
        """Called in whichever thread gave up the view last."""
        with suppress(RuntimeError):  # the loop is closed: nobody counts any more
            self._loop.call_soon_threadsafe(self._forget, peer, size, number)

    def _forget(self, peer: bytes, size: int, number: int) -> None:
        del self._views[number]
        self.redeem(peer, size)
        self._on_taken(peer)
