"""The octets that libzmq holds: counted while a view of them lives, and shared so that all stay below a budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from specwire.runtime.transport.freight import PIECE_OCTETS, Freight

BUDGET = 64 << 20
FRAME = 512 * 1024


def run(story: Callable[[Freight, list[bytes]], Awaitable[None]]) -> None:
    async def tell() -> None:
        taken: list[bytes] = []
        await story(Freight(taken.append, budget_octets=BUDGET), taken)

    asyncio.run(tell())


def fill(freight: Freight, peer: bytes) -> list[memoryview]:
    """Send to a peer that takes nothing what it may be sent."""
    views: list[memoryview] = []
    while room := freight.room(peer, FRAME):
        views.append(memoryview(bytes(room)))
        freight.add(peer, views[-1])
    return views


async def let_the_loop_turn() -> None:
    """What other threads have handed to the loop is done when this returns."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon_threadsafe(done.set)
    await done.wait()


def test_frame_counts_until_its_view_is_gone() -> None:
    async def story(freight: Freight, taken: list[bytes]) -> None:
        content = bytes(100_000)
        view, same = memoryview(content), memoryview(content)
        freight.add(b"a", view)
        freight.add(b"b", same)  # the same octets are two frames all the same
        assert freight.total == 200_000
        del view
        await let_the_loop_turn()
        assert (freight.total, taken) == (100_000, [b"a"])
        await asyncio.to_thread(same.release)  # not gone: released only
        del same
        await let_the_loop_turn()
        assert (freight.total, taken) == (0, [b"a", b"b"])

    run(story)


@pytest.mark.parametrize("count", [1, 2, 50, 2000])
def test_peers_that_take_nothing_stay_below_the_budget_together(count: int) -> None:
    """But for the least that each is offered."""

    async def story(freight: Freight, taken: list[bytes]) -> None:
        views = [fill(freight, number.to_bytes(4)) for number in range(count)]
        assert all(views), "each was offered something"
        assert freight.total <= BUDGET + count * PIECE_OCTETS
        assert freight.room(b"one more", FRAME) >= PIECE_OCTETS

    run(story)


def test_one_peer_has_two_frames_on_the_way_at_least() -> None:
    async def story(freight: Freight, taken: list[bytes]) -> None:
        views = fill(freight, b"a")
        assert len(views) >= 2
        before = freight.total
        views.pop()
        await let_the_loop_turn()
        assert freight.total < before
        assert freight.room(b"a", FRAME) == FRAME
        assert taken == [b"a"]

    run(story)


def test_slow_peers_leave_others_most_of_the_budget() -> None:
    async def story(freight: Freight, taken: list[bytes]) -> None:
        slow = [fill(freight, bytes([number])) for number in range(5)]
        assert slow
        assert freight.room(b"quick", FRAME) == FRAME
        assert freight.total < BUDGET // 3

    run(story)


def test_fifty_peers_get_large_frames() -> None:
    """Small ones cost each side as much as large ones."""

    async def story(freight: Freight, taken: list[bytes]) -> None:
        views = [fill(freight, bytes([number])) for number in range(30)]
        assert all(view.nbytes == FRAME for each in views for view in each)
        del views
        await let_the_loop_turn()
        for number in range(50):
            assert freight.room(bytes([number]), FRAME) == FRAME
            freight.promise(bytes([number]), FRAME)

    run(story)


def test_what_is_promised_counts_until_it_is_redeemed() -> None:
    async def story(freight: Freight, taken: list[bytes]) -> None:
        share = freight.room(b"a", BUDGET)
        freight.promise(b"a", share)
        assert (freight.total, freight.room(b"a", 1)) == (share, 0)
        freight.redeem(b"a", share)
        assert (freight.total, taken) == (0, [])
        assert freight.room(b"a", BUDGET) == share

    run(story)
