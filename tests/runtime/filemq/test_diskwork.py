"""Disk work: everything in order, in batches that are bounded in number and in octets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from specwire.runtime.filemq.actions import DeleteFile, DiskAction, Outcome, WriteChunk, Wrote
from specwire.runtime.filemq.diskwork import BATCH, BATCH_OCTETS, DiskWork


def run(orders: list[DiskAction]) -> tuple[list[list[DiskAction]], list[Outcome]]:
    """Order everything in one turn of the loop; return the batches and the outcomes."""
    batches: list[list[DiskAction]] = []
    outcomes: list[Outcome] = []

    def perform(batch: Sequence[DiskAction]) -> list[Outcome]:
        batches.append(list(batch))
        return [Wrote(action.connection, 0) for action in batch]

    async def work() -> None:
        disk = DiskWork(perform, on_outcomes=outcomes.extend, on_fault=lambda error: pytest.fail(str(error)))
        for action in orders:
            disk.order(action)
        await disk.close()

    asyncio.run(work())
    return batches, outcomes


def test_large_content_comes_in_small_batches() -> None:
    half = bytes(BATCH_OCTETS // 2)
    orders: list[DiskAction] = [WriteChunk(1, "/a", len(half) * number, half) for number in range(5)]
    batches, outcomes = run(orders)
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert [action for batch in batches for action in batch] == orders
    assert len(outcomes) == len(orders)


def test_many_small_pieces_come_in_batches_of_a_number() -> None:
    orders: list[DiskAction] = [DeleteFile(1, f"/{number}") for number in range(BATCH + 1)]
    batches, _ = run(orders)
    assert batches == [orders[:BATCH], orders[BATCH:]]
