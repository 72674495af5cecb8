"""Conversations one after the other, each in its messages' order, for what two columns would take half as long again.

Spark sorts by one number with a radix sort; where two columns decide, it compares rows in memory, one with another, which
takes about half of what the exchange does. So a row has a *rank*: the upper bits of its conversation's hash, then the
block of the tap's count that its message is in. Spark sorts by rank, and the worker, which has the columns as arrays,
puts the few rows of each rank in order. A conversation of any length still streams through: what is kept is one block
of it.

Two conversations may share the upper bits of their hashes. The first that is seen goes on as if it were alone, and the
others wait until those bits are over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.dialogs.batches import Flags
from specwire.runtime.spark.answers.dialogs.narrow import BEFORE_ALL
from specwire.runtime.spark.answers.dialogs.texts import Longs

BLOCK_BITS = 24
"""Of a rank; the other bits are of the hash. Conversations share them as good as never: a million in one partition do so
in one of two partitions."""
MESSAGES_BITS = 16
"""A block is so many messages of a tap, 2 ** 16. What comes after 2 ** 40 messages is all in the last one."""

_HASH = -(1 << BLOCK_BITS)
_LAST_BLOCK = (1 << BLOCK_BITS) - 1
_FARTHEST = 1 << 62


def ranked(rows: DataFrame) -> DataFrame:
    """Return narrow rows with each conversation in one partition, by rank."""
    counted = F.greatest("seq", F.lit(0).cast("long"))
    block = F.least(F.shiftright(counted, MESSAGES_BITS), F.lit(_LAST_BLOCK).cast("long"))
    rank = F.col("place").bitwiseAND(F.lit(_HASH).cast("long")).bitwiseOR(block)
    return rows.repartition("place").sortWithinPartitions(rank)


def in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition that are sorted by rank by `place` and `seq`; only conversations are in no order."""
    sharing = _Sharing()
    for rows in _whole_ranks(batches):
        yield from sharing.take(rows)
    yield from sharing.rest()


def _whole_ranks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in other batches, so that all rows of a rank are in one."""
    waiting: list[pa.RecordBatch] = []
    last = None
    for rows in batches:
        if not rows.num_rows:
            continue
        place, seq = _places_and_counts(rows)
        ranks = place & _HASH | np.minimum(np.maximum(seq, 0) >> MESSAGES_BITS, _LAST_BLOCK)
        begin = int(np.searchsorted(ranks, ranks[-1]))
        if not begin and ranks[0] == last:
            waiting.append(rows)
            continue
        if begin or waiting:
            yield _concat([*waiting, rows.slice(0, begin)])
        waiting, last = [rows.slice(begin)], ranks[-1]
    if waiting:
        yield _concat(waiting)


class _Sharing:
    """Conversations that share the upper bits of their hashes, of which one goes on."""

    def __init__(self) -> None:
        self._shared: int | None = None
        self._going_on = 0
        self._aside: list[pa.RecordBatch] = []

    def take(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield what can go on, of the next rows."""
        place, seq = _places_and_counts(rows)
        shared = place & _HASH
        order = _order(shared, place, seq)
        if order is not None:
            rows, place = _take(rows, order), place[order]  # `shared` is in order
        ends = 0 if shared[0] != self._shared else int(np.searchsorted(shared, shared[0], side="right"))
        begins = int(np.searchsorted(shared, shared[-1]))
        waits = np.zeros(len(place), np.bool_)
        waits[:ends] = place[:ends] != self._going_on
        if ends < len(place):
            self._shared, self._going_on = int(shared[-1]), int(place[begins])
            waits[begins:] = place[begins:] != self._going_on
        if self._aside or waits.any():
            yield from self._part(rows, waits, ends)
        else:
            yield rows

    def _part(self, rows: pa.RecordBatch, waits: Flags, ends: int) -> Iterator[pa.RecordBatch]:
        """Put aside what waits; `ends` is where the rows are over that share their bits with those before."""
        parts = [(rows.slice(0, ends), waits[:ends]), (rows.slice(ends), waits[ends:])]
        for number, (part, wait) in enumerate(parts):
            if number and part.num_rows:
                yield from self.rest()
            if wait.any():
                self._aside.append(part.filter(pa.array(wait)))
            yield part.filter(pa.array(~wait))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield what waits, and forget it."""
        if self._aside:
            rows = _concat(self._aside)
            place, seq = _places_and_counts(rows)
            yield _take(rows, np.lexsort((seq, place)))
            self._aside = []


def _order(shared: Longs, place: Longs, seq: Longs) -> Longs | None:
    """Return the rows by `shared`, in which they are already, `place` and `seq`; None where all of them are in order."""
    changes, moves = shared[1:] != shared[:-1], place[1:] != place[:-1]
    if (moves & ~changes).any():
        return np.lexsort((seq, place, shared))
    if (changes | (seq[1:] >= seq[:-1])).all():
        return None
    number = np.append(0, np.cumsum(changes, dtype=np.int64))
    is_state = seq == BEFORE_ALL
    least, most = int(seq.min(initial=0, where=~is_state)) - 1, int(seq.max(initial=0))
    if (int(number[-1]) + 1) * (most - least + 1) >= _FARTHEST:
        return np.lexsort((seq, number))
    # Two columns take six times as long as one number of both.
    return np.argsort(number * (most - least + 1) + (np.where(is_state, least, seq) - least), kind="stable")


def _concat(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    arrow: Any = pa  # its stubs do not know of the function
    found: pa.RecordBatch = batches[0] if len(batches) == 1 else arrow.concat_batches(batches)
    return found


def _take(rows: pa.RecordBatch, order: Longs) -> pa.RecordBatch:
    return rows.take(pa.array(order, pa.int64()))


def _places_and_counts(rows: pa.RecordBatch) -> tuple[Longs, Longs]:
    return rows.column("place").to_numpy(), rows.column("seq").to_numpy()
