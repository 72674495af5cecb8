"""A peer that starts while it is asked to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from specwire.runtime.cli.filemq_running import is_started


def play(start: Callable[[], Coroutine[Any, Any, None]], *, stopped: bool) -> bool:
    async def story() -> bool:
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if stopped:
            stop.set_result(None)
        async with asyncio.timeout(60.0):
            return await is_started(start(), stop)

    return asyncio.run(story())


async def at_once() -> None:
    pass


async def never() -> None:
    await asyncio.Event().wait()


async def not_at_all() -> None:
    raise OSError("no such folder")


async def in_spite() -> None:
    """A start that was through when it was asked to end."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return


@pytest.mark.parametrize(
    ("start", "stopped", "is_up"),
    [(at_once, False, True), (never, True, False), (in_spite, True, True)],
)
def test_a_peer_is_up_or_it_is_not(
    start: Callable[[], Coroutine[Any, Any, None]], stopped: bool, is_up: bool
) -> None:
    """Whoever is told that it is up has to stop it."""
    assert play(start, stopped=stopped) is is_up


def test_a_start_that_fails_says_why() -> None:
    with pytest.raises(OSError, match="no such folder"):
        play(not_at_all, stopped=False)
