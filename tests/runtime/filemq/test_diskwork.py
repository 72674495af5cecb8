"""Disk work: everything in order, in batches that are bounded in number and in octets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from specwire.runtime.filemq.actions import (
    CompleteFile,
    DeleteFile,
    DiskAction,
    Outcome,
    Stored,
    WriteChunk,
    Wrote,
)
from specwire.runtime.filemq.diskwork import BATCH, BATCH_OCTETS, DiskWork


def run(orders: list[DiskAction]) -> tuple[list[list[DiskAction]], list[Outcome]]:
    """Order everything in one turn of the loop; return the batches and the outcomes."""
    batches: list[list[DiskAction]] = []
    outcomes: list[Outcome] = []
    late: list[Outcome] = []

    def perform(batch: Sequence[DiskAction]) -> list[Outcome]:
        """Bring the outcomes of completed files with the next batch, as an inbox may."""
        batches.append(list(batch))
        now, late[:] = (
            late[:],
            [Stored(1, action.name, 0, "", False) for action in batch if isinstance(action, CompleteFile)],
        )
        return now + [Wrote(action.connection, 0) for action in batch if isinstance(action, WriteChunk)]

    async def work() -> None:
        disk = DiskWork(
            perform,
            pending=lambda: bool(late),
            on_outcomes=outcomes.extend,
            on_fault=lambda error: pytest.fail(str(error)),
        )
        for action in orders:
            disk.order(action)
        await disk.close()

    asyncio.run(work())
    return batches, outcomes


def test_large_content_goes_at_once_and_then_in_small_batches() -> None:
    half = bytes(BATCH_OCTETS // 2)
    orders: list[DiskAction] = [WriteChunk(1, "/a", len(half) * number, half) for number in range(5)]
    batches, outcomes = run(orders)
    assert [len(batch) for batch in batches] == [1, 2, 2]
    assert [action for batch in batches for action in batch] == orders
    assert len(outcomes) == len(orders)


def test_many_small_pieces_come_in_batches_of_a_number() -> None:
    orders: list[DiskAction] = [DeleteFile(1, f"/{number}") for number in range(BATCH + 1)]
    batches, _ = run(orders)
    assert batches == [orders[:BATCH], orders[BATCH:]]


def test_outcomes_that_are_missing_at_the_end_are_asked_for() -> None:
    """The disk is still busy with a file when there is nothing more to write."""
    orders: list[DiskAction] = [CompleteFile(1, f"/{number}", 0, None) for number in range(BATCH + 1)]
    batches, outcomes = run(orders)
    assert batches == [orders[:BATCH], orders[BATCH:], []]
    assert outcomes == [Stored(1, f"/{number}", 0, "", False) for number in range(BATCH + 1)]
