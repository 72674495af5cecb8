"""Disk work: everything in order, in batches that are bounded in number and in octets."""

from __future__ import annotations

from collections.abc import Sequence

from specwire.runtime.filemq.diskwork import (
    BATCH,
    BATCH_OCTETS,
    AwaitFiles,
    Deleted,
    DeleteFile,
    DiskAction,
    DiskBatch,
    DiskQueue,
    Held,
    Holdings,
    Stored,
    WriteChunk,
)
from specwire.runtime.kernel.effects import Return


def batches(orders: Sequence[DiskAction]) -> list[int]:
    """Return the sizes of the batches of orders that have gathered; each order is in one of them, in order."""
    queue, taken = DiskQueue(), list[tuple[DiskAction, ...]]()
    for order in orders:
        queue.add(order)
    while (batch := queue.next_batch(gather=False)) is not None:
        assert queue.next_batch(gather=False) is None, "one at a time"
        taken.append(batch.orders)
        queue.end_batch(pending=False)
    assert [order for batch in taken for order in batch] == [*orders]
    assert queue.is_idle
    return [len(batch) for batch in taken]


def test_large_content_comes_in_small_batches() -> None:
    half = bytes(BATCH_OCTETS // 2)
    assert batches([WriteChunk(1, "/a", len(half) * number, half) for number in range(5)]) == [2, 2, 1]


def test_many_small_orders_come_in_batches_of_a_number() -> None:
    assert batches([DeleteFile(1, f"/{number}") for number in range(BATCH + 1)]) == [BATCH, 1]


def test_missing_outcomes_are_asked_for_with_an_empty_batch() -> None:
    """The disk is still busy with a file when nothing else is ordered."""
    queue = DiskQueue()
    queue.add(DeleteFile(1, "/a"))
    assert queue.next_batch(gather=False) == DiskBatch((DeleteFile(1, "/a"),))
    queue.end_batch(pending=True)
    assert (queue.is_ready, queue.is_idle) == (True, False)
    assert queue.next_batch(gather=False) == DiskBatch(())
    queue.end_batch(pending=False)
    assert (queue.is_ready, queue.is_idle) == (False, True)


def test_after_a_fault_nothing_is_left() -> None:
    queue = DiskQueue()
    for name in ("/a", "/b"):
        queue.add(DeleteFile(1, name))
        queue.next_batch(gather=False)
    queue.fail()
    assert queue.is_idle


def test_holdings_are_compared_without_empty_folders() -> None:
    holdings = Holdings()
    holdings.wait(7, AwaitFiles({"/a": "AA"}, 60.0), 0.0)
    holdings.apply(Held(1, "/", {"/d/": "00", "/b": "BB"}))
    holdings.apply(Stored(1, "/e/", 0, "00", verified=True))
    holdings.apply(Stored(1, "/a", 1, "AA", verified=True))
    assert [*holdings.answers(1.0)] == []
    holdings.apply(Deleted(1, "/b"))
    assert [*holdings.answers(2.0)] == [Return(7)]
    assert holdings.digests == {"/a": "AA"}
