"""Rows by rank, as Spark sorts them, against the same rows sorted by conversation and count."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.answers.dialogs import ordering
from specwire.runtime.spark.answers.dialogs.narrow import BEFORE_ALL

Row = tuple[int, int]
"""A place and a count."""

FARTHEST = (1 << 63) - 1


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows with a text each, by which a row that was mixed up is told."""
    place, seq = (pa.array([row[column] for row in rows], pa.int64()) for column in (0, 1))
    text = pa.array([f"{row[0]}/{row[1]}" for row in rows], pa.string())
    return pa.RecordBatch.from_arrays([place, seq, text], names=["place", "seq", "text"])


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Return the rows of batches whose texts are theirs."""
    rows = [row for found in batches for row in found.to_pylist()]
    assert all(row["text"] == f"{row['place']}/{row['seq']}" for row in rows)
    return [(row["place"], row["seq"]) for row in rows]


def assert_in_order(found: Sequence[Row], given: Iterable[Row]) -> None:
    """Each conversation is there once, in one piece, by count."""
    assert sorted(found) == sorted(given)
    places = [place for place, _ in groupby(row[0] for row in found)]
    assert len(places) == len(set(places))
    for _, rows in groupby(found, key=lambda row: row[0]):
        counts = [seq for _, seq in rows]
        assert counts == sorted(counts)


def cut(rows: Sequence[Row], sizes: Iterator[int]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of these sizes."""
    begin = 0
    while begin < len(rows):
        end = begin + next(sizes)
        yield batch(rows[begin:end])
        begin = end


@pytest.mark.parametrize("most", [1, 3, 50, 1000])
@pytest.mark.parametrize("seed", range(12))
def test_ranks_become_conversations(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever rows share a rank, and conversations the upper bits of their hashes, in batches of any size.

    Two bits of a rank are a block of four messages, so a conversation is in several blocks, and its hash is one of
    four with up to four conversations each.
    """
    monkeypatch.setattr(ordering, "_HASH", -4)
    monkeypatch.setattr(ordering, "_LAST_BLOCK", 3)
    monkeypatch.setattr(ordering, "MESSAGES_BITS", 2)
    chance = random.Random(seed)
    places = chance.sample(range(-8, 8), chance.randrange(1, 17))
    rows = [(chance.choice(places), seq) for seq in range(chance.randrange(1, 120))]
    rows += [(place, BEFORE_ALL) for place in places if chance.random() < 0.3]
    rows += [(place, -1) for place in places if chance.random() < 0.3]
    chance.shuffle(rows)
    by_rank = sorted(rows, key=lambda row: (row[0] // 4, min(max(row[1], 0) // 4, 3)))
    sizes = iter(lambda: chance.randrange(1, most + 1), 0)
    assert_in_order(rows_of(ordering.in_order(cut(by_rank, sizes))), rows)


def test_a_long_conversation_streams_through() -> None:
    """No more than a block is held back, though the conversation never ends and another one shares its upper bits."""
    block = 1 << ordering.MESSAGES_BITS
    given = 0

    def endless() -> Iterator[pa.RecordBatch]:
        nonlocal given
        for seq in range(0, 4 * block, 1000):
            rows = [(7, count) for count in range(seq, seq + 999)]
            given += 1000
            yield batch([*rows, (9, seq + 999)])

    found: list[Row] = []
    for rows in ordering.in_order(endless()):
        found += rows_of([rows])
        if len(found) < 3 * block:
            assert given - len(found) <= block + 1000 + given // 1000
    assert_in_order(found, found)
    assert len(found) == given


def test_no_rows() -> None:
    """Of nothing comes nothing, and empty batches do not matter."""
    nothing = batch([])
    assert not rows_of(ordering.in_order([]))
    assert not rows_of(ordering.in_order([nothing]))
    assert rows_of(ordering.in_order([nothing, batch([(1, 2)]), nothing])) == [(1, 2)]


def test_counts_that_are_far_apart() -> None:
    """From a state to the greatest count there is."""
    counts = [BEFORE_ALL, -1, 0, 1 << 40, FARTHEST]
    rows = [(place, seq) for place in (0, 1 << 30) for seq in counts]
    assert rows_of(ordering.in_order([batch([(0, 0), (0, BEFORE_ALL)])])) == [(0, BEFORE_ALL), (0, 0)]
    shuffled = [rows[at] for at in (3, 1, 4, 2, 0, 9, 7, 5, 8, 6)]
    by_rank = sorted(
        shuffled,
        key=lambda row: (row[0], min(max(row[1], 0) >> ordering.MESSAGES_BITS, 2**24 - 1)),
    )
    assert rows_of(ordering.in_order([batch(by_rank)])) == rows


def test_spark_sorts_as_the_worker_reads(spark: SparkSession) -> None:
    """What Spark takes for a row's rank, the worker does: conversations over many blocks, with all kinds of counts."""
    chance = random.Random(3)
    places = [chance.randrange(-(1 << 63), 1 << 63) for _ in range(40)]
    places += [place ^ 1 for place in places[:10]]
    counts = [
        0,
        1,
        5,
        (1 << 16) - 1,
        1 << 16,
        3 << 16,
        (1 << 40) - 1,
        1 << 40,
        1 << 50,
        FARTHEST,
        -1,
        BEFORE_ALL,
    ]
    rows = [(place, seq) for place in places for seq in counts]
    chance.shuffle(rows)
    frame = spark.createDataFrame(
        [(place, seq, f"{place}/{seq}") for place, seq in rows], "place long, seq long, text string"
    )

    def ordered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from ordering.in_order(batches)

    sorted_rows = ordering.ranked(frame).mapInArrow(ordered, frame.schema)
    found = [(row["place"], row["seq"]) for row in sorted_rows.collect()]
    assert_in_order(found, rows)
