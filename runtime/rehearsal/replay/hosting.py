"""The recorded side that listened, played again for whoever connects: each peer gets a conversation of its own.

A peer that goes by its name gets the conversation that was recorded with that name; others get them in the order in which
they began. Who comes when all are taken hears nothing.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from specwire.runtime.rehearsal.lines import LINGER_S
from specwire.runtime.rehearsal.replay.part import Part
from specwire.runtime.rehearsal.replay.playing import (
    Outcome,
    Performance,
    begin_part,
    choose_scripts,
    conclude_part,
)
from specwire.runtime.rehearsal.replay.recording import Script
from specwire.runtime.transport.arrivals import Arrivals
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.inflow import Inflow, InflowBounds
from specwire.runtime.transport.link import MAX_FRAMES
from specwire.runtime.transport.router import MAX_FRAME_OCTETS, Router

logger = logging.getLogger(__name__)

BOUNDS = InflowBounds(legal_octets=MAX_FRAMES * MAX_FRAME_OCTETS)
LOOK_S = 0.1


class Stand:
    """Listens, and plays.

    Args:
        wait_s: how long to wait for the next peer when nobody is here.

    Raises:
        RehearsalError: nothing of this side is recorded.
    """

    def __init__(
        self, performance: Performance, outcome: Outcome, stop: asyncio.Event, wait_s: float
    ) -> None:
        self._performance, self._outcome, self._stop, self._wait_s = performance, outcome, stop, wait_s
        self._waiting = choose_scripts(performance)
        self._parts: dict[bytes, Part] = {}
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._context = TransportContext()
        self._router = Router(
            self._context,
            on_message=self._take,
            on_sent=lambda _peer, _frames: None,
            on_room=lambda _peer: None,
            on_gone=self._lose,
        )
        self._arrivals = Arrivals(
            self._context,
            self._router.link,
            lambda reason: None,
            inflow=Inflow(self._router.link, BOUNDS, logger.warning),
        )

    def bind(self, endpoint: str) -> str:
        """Listen, and return the endpoint as it is; raises TransportError."""
        return self._router.bind(endpoint)

    async def run(self) -> None:
        """Play until every conversation was played, or nobody comes any more."""
        alone_since = self._loop.time()
        while not self._stop.is_set():
            wakes_at = self._loop.time() + LOOK_S
            playing = self._act()
            for part in playing:
                wakes_at = min(wakes_at, part.wakes_at())
            if playing:
                alone_since = self._loop.time()
            elif not self._waiting or self._loop.time() - alone_since > self._wait_s:
                break
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wakes_at - self._loop.time())):
                    await self._changed.wait()
        for part in self._parts.values():
            conclude_part(self._performance, part, self._outcome)
        self._outcome.stopped += len(self._waiting)

    async def close(self) -> None:
        """Listen no more."""
        self._arrivals.close()
        self._router.close(linger_s=LINGER_S)
        await self._context.close()

    def _act(self) -> list[Part]:
        """Say what is to be said now; return the parts that go on."""
        now = self._loop.time()
        for peer, part in self._parts.items():
            for frames in part.act(now):
                self._router.send(peer, frames)
        return [part for part in self._parts.values() if not part.over]

    def _take(self, peer: bytes, frames: list[bytes]) -> None:
        now = self._loop.time()
        part = self._parts.get(peer)
        if part is None:
            script = self._choose(peer)
            if script is None:
                return
            part = self._parts[peer] = begin_part(self._performance, script, now)
        part.hear([bytes(frame) for frame in frames], now)
        self._changed.set()

    def _choose(self, peer: bytes) -> Script | None:
        named = self._performance.language.habits.named
        own = next((script for script in self._waiting if named and script.peer == peer.hex()), None)
        chosen = own or next(iter(self._waiting), None)
        if chosen is not None:
            self._waiting.remove(chosen)
        return chosen

    def _lose(self, peer: bytes, reason: str) -> None:
        if peer in self._parts:
            self._parts[peer].lost(reason)
            self._changed.set()
