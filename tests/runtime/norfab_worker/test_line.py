"""The worker's line to a broker that reads nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from specwire.runtime.norfab import commands, wire
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.norfab.worker.line import HIGH_WATER, MAX_EVENTS_WAITING, Line
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import NULL

LARGE = b"x" * 20_000


def test_progress_does_not_take_the_room_of_results(tmp_path: Path) -> None:
    """More of it than can be sent is left out, and the result behind it arrives."""

    async def story() -> None:
        got: list[Command] = []
        came = asyncio.Event()

        def take(peer: bytes, frames: list[bytes]) -> None:
            got.append(wire.decode([bytes(frame) for frame in frames]).command)
            if isinstance(got[-1], commands.Response):
                came.set()

        context = TransportContext()
        broker = Router(
            context,
            on_message=take,
            on_sent=lambda peer, frames: None,
            on_room=lambda peer: None,
            on_gone=lambda peer, reason: None,
        )
        endpoint = broker.bind(f"ipc://{tmp_path}/b")
        broker.pause()
        line = Line(
            [endpoint],
            "w1",
            [NULL],
            dialect=Dialect.DEPLOYED,
            tap=None,
            max_frame_octets=1 << 20,
            on_command=lambda command: None,
            on_malformed=lambda reason: None,
            on_lost=lambda reason: None,
        )
        line.open(0, named=True)
        asked = HIGH_WATER + 2 * MAX_EVENTS_WAITING
        for _ in range(asked):
            line.send(commands.Event("j1", 200, LARGE, client=b"c1"))
        line.send(commands.Response("j1", 200, b"{}", client=b"c1"))
        broker._link.resume()
        await asyncio.wait_for(came.wait(), 60)
        events = sum(1 for command in got if isinstance(command, commands.Event))
        assert events < asked
        assert isinstance(got[-1], commands.Response)
        await line.close()
        broker.close()
        await context.close()

    asyncio.run(story())
