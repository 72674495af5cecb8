"""Names that travel as one text: in Java's words and in Python's, back as what they were."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.dialogs.alphabet import Alphabet
from specwire.runtime.spark.answers.dialogs.narrow import narrow_rows
from specwire.runtime.spark.answers.dialogs.texts import (
    LONGEST,
    join,
    join_one,
    more_of,
    name,
    names_of,
    names_of_one,
    symbols_of,
)

Said = tuple[int, str, str, str, str | None]
"""Symbol, tap, conversation, peer, and one text more."""

SAID: tuple[Said, ...] = (
    (0, "server-1", "4711-01f7d6ab", "01f7d6ab", None),
    (-1, "server-1", "4711-01f7d6ab", "01f7d6ab", '{"messages":3}'),
    (32767, "tap", "same", "same", "X"),
    (-32768, "tap", "ends", "longer than ends", None),
    (5, "tap", "one", "two", ""),
    (6, "", "", "", None),
    (7, "tap", "", "p", "more"),
    (8, "tap", "c", "", None),
    (9, "añ", "größer-é", "é", "ü"),
    (10, "a\0b", "c\0d", "d", None),
    (11, "😀" * LONGEST, "😀" * LONGEST, "😀" * LONGEST, "😀"),
)


def test_names_come_back_from_java(spark: SparkSession) -> None:
    """And Python joins them as Java does; a row among others and alone, and out of a part of a batch."""
    rows = spark.createDataFrame(
        SAID, "symbol int, tap string, conversation string, peer string, more string"
    ).coalesce(1)
    names = tuple(name(F.col(each)) for each in ("tap", "conversation", "peer"))
    said, text = join(F.col("symbol"), names, F.col("more"))
    found = rows.select(said.alias("said"), text.alias("text")).toArrow().combine_chunks()
    rows_found: list[dict[str, Any]] = found.to_pylist()
    for row, one in zip(SAID, rows_found, strict=True):
        symbol, *own, more = row
        assert (one["said"], one["text"]) == join_one(symbol, tuple(own), more)
        assert list(names_of_one(**one)) == own
        assert more_of(**one) == more
    assert symbols_of(found["said"].to_numpy()).tolist() == [row[0] for row in SAID]
    for begin in (0, 3):
        part = found.slice(begin).to_batches()[0]
        columns = names_of(part["said"].to_numpy(), part["text"])
        given = [(tap, conversation, peer or None) for _, tap, conversation, peer, _ in SAID[begin:]]
        assert list(zip(*(column.to_pylist() for column in columns), strict=True)) == given
        assert all(column.type == pa.string() for column in columns)


@pytest.mark.parametrize(
    ("conversation", "peer", "text"),
    [
        ("4711-01f7", "01f7", "t4711-01f7"),
        ("01f7", "01f7", "t01f7"),
        ("01f7", "4711-01f7", "t01f74711-01f7"),
        ("01f7-4711", "01f7", "t01f7-471101f7"),
    ],
)
def test_a_peer_at_the_end_of_its_conversations_name_is_said_once(
    conversation: str, peer: str, text: str
) -> None:
    assert join_one(3, ("t", conversation, peer))[1] == text


@pytest.mark.parametrize(("protocol", "has_keys"), [("filemq", False), ("flux", True)])
def test_keys_travel_where_a_protocol_has_them(spark: SparkSession, protocol: str, has_keys: bool) -> None:
    columns = "tap string, conversation string, sender string, peer string, seq long, ts timestamp, mono long"
    message = Alphabet(protocol).messages[0]
    rows = narrow_rows({message: spark.createDataFrame([], columns)}, Alphabet(protocol))
    assert ("key" in rows.columns) == has_keys
