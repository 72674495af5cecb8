"""Where the system gives no more sockets: it is said so, nothing is left open, and a later try may succeed."""

from __future__ import annotations

import asyncio
from errno import EMFILE
from typing import Any

import pytest
import zmq

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.errors import ShortageError

NEEDED = 2
"""Sockets of a `Dealer`: its own, and the one by which it is watched."""


class Scarce:
    """A zmq context of a process with descriptors for so many sockets."""

    def __init__(self, context: Any, sockets: int) -> None:
        self._context, self._left = context, sockets

    def socket(self, kind: int) -> Any:
        if self._left == 0:
            raise zmq.ZMQError(EMFILE)
        self._left -= 1
        return self._context.socket(kind)

    def term(self) -> None:
        self._context.term()


def connect(context: TransportContext) -> Dealer:
    return Dealer(
        context,
        "tcp://127.0.0.1:1",
        on_message=lambda frames: None,
        on_sent=lambda frames: None,
        on_lost=lambda reason: None,
    )


@pytest.mark.parametrize("sockets", range(NEEDED))
def test_a_dealer_that_gets_too_few_leaves_none_open(sockets: int) -> None:
    async def story() -> None:
        context = TransportContext()
        plenty = context.zmq
        context.zmq = Scarce(plenty, sockets)  # type: ignore[assignment]
        with pytest.raises(ShortageError, match="no socket can be made: Too many open files"):
            connect(context)
        context.zmq = plenty
        connect(context).close()
        async with asyncio.timeout(60.0):
            await context.close()  # waits for each socket that is open

    asyncio.run(story())


def test_a_dealer_that_cannot_be_watched_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by libzmq's events nor by the loop."""

    def refuse(*_: object) -> None:
        raise zmq.ZMQError(EMFILE)

    def refuse_reader(*_: object) -> None:
        raise OSError(EMFILE, "Too many open files")

    async def story() -> None:
        context = TransportContext()
        with monkeypatch.context() as patch:
            patch.setattr(zmq.Socket, "monitor", refuse)
            with pytest.raises(ShortageError, match="a socket cannot be watched: Too many"):
                connect(context)
        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "add_reader", refuse_reader)
            with pytest.raises(ShortageError, match="no socket can be watched: Too many"):
                connect(context)
        async with asyncio.timeout(60.0):
            await context.close()

    asyncio.run(story())
