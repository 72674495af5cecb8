"""Files of FILEMQ and libfilemq: worked out by hand, and random ones as a simulated server sends them."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession

from specwire.generated import filemq, libfilemq
from specwire.runtime.spark.answers.transfers import advance
from tests.runtime.spark.answers.traffic import (
    Row,
    Seen,
    at_once,
    capture_rows,
    in_order,
    in_portions,
    portions_of,
    typed_of,
)

pytestmark = pytest.mark.spark

NAMES = (
    *("seq", "conversation", "filename", "offset", "size", "chunks", "octets", "outcome", "duration_us"),
    *("octets_per_s", "stalls", "stalled_us"),
)


def chunk(
    name: str, offset: int, octets: int, size: int | None = None, operation: int = 1
) -> filemq.Cheezburger:
    headers = () if size is None else (("size", str(size)),)
    return filemq.Cheezburger(
        sequence=0, operation=operation, filename=name, offset=offset, headers=headers, chunk=b"x" * octets
    )


def server(message: object, at_ms: float, conversation: str = "c1") -> Seen:
    return Seen("S", message, at_ms, conversation)


def client(message: object, at_ms: float, conversation: str = "c1") -> Seen:
    return Seen("C", message, at_ms, conversation)


STORY = [
    client(filemq.Ohai(), 0.5),
    client(filemq.Nom(credit=30), 1),
    server(chunk("/a", 0, 20, 50), 2),
    server(chunk("/a", 20, 10, 50), 4),  # the credit is used up, 20 octets are left
    client(filemq.Nom(credit=20), 9),
    server(chunk("/a", 30, 20, 50), 10),  # used up again, but the file is whole
    server(chunk("/a", 50, 0, 50), 12),
    client(filemq.Nom(credit=100), 13),
    server(chunk("/b", 0, 0, 0), 14),  # an empty file
    server(chunk("/c", 5, 20, 60), 15),  # resumed; the next chunk is of a new version
    server(chunk("/c", 0, 10, 10), 16),
    server(chunk("/c", 10, 0, 10), 18),
    server(chunk("/d", 0, 0, operation=2), 19),
    server(chunk("/e", 0, 5), 20),  # no size; another file follows
    server(chunk("/f", 0, 7, 100), 21),
    client(filemq.Kthxbai(), 22),
    # The tap did not see this connection begin, so its credit is not known.
    server(chunk("/g", 100, 7, 200), 23, "c2"),
    client(filemq.Nom(credit=1), 24, "c2"),
    server(chunk("/g", 107, 1, 200), 25, "c2"),
]

WORKED_OUT = [
    (2, "c1", "/a", 0, 50, 3, 50, "complete", 10_000.0, 5000.0, 1, 5000.0),
    (8, "c1", "/b", 0, 0, 0, 0, "complete", 0.0, None, 0, 0.0),
    (9, "c1", "/c", 5, 60, 1, 20, "cut", 0.0, None, 0, 0.0),
    (10, "c1", "/c", 0, 10, 1, 10, "complete", 2000.0, 5000.0, 0, 0.0),
    (12, "c1", "/d", 0, None, 0, 0, "deleted", 0.0, None, 0, 0.0),
    (13, "c1", "/e", 0, None, 1, 5, "unmarked", 0.0, None, 0, 0.0),
    (14, "c1", "/f", 0, 100, 1, 7, "ended", 0.0, None, 0, 0.0),
    (16, "c2", "/g", 100, 200, 2, 8, "open", 2000.0, 4000.0, None, None),
]


def test_files_worked_out_by_hand(spark: SparkSession) -> None:
    """Ends, cuts, resumed files, deletions, stalls; whole, and in portions that cut files in two."""
    rows = capture_rows(STORY, "filemq")
    whole = at_once(advance, typed_of(spark, rows, "filemq"), "filemq")["transfers"]
    assert [tuple(row.values()) for row in in_order(whole, *NAMES)] == WORKED_OUT
    sent = sum(len(item.message.chunk) for item in STORY if isinstance(item.message, filemq.Cheezburger))
    assert sum(row["octets"] for row in whole) == sent
    cut = in_portions(advance, portions_of(spark, rows, "filemq", 4, 10, 17), "filemq")["transfers"]
    assert in_order(cut) == in_order(whole)


def test_libfilemq_marks_the_last_chunk(spark: SparkSession) -> None:
    """With content or without; its numbers have 64 bits and more than a column of ours holds."""

    def part(name: str, offset: int, octets: int, eof: int) -> libfilemq.Cheezburger:
        return libfilemq.Cheezburger(
            sequence=0, operation=1, filename=name, offset=offset, eof=eof, headers=(), chunk=b"x" * octets
        )

    messages = [
        client(libfilemq.Ohai(), 1),
        client(libfilemq.Nom(credit=2**64 - 1, sequence=2**64 - 1), 2),
        server(part("/a", 0, 5, 0), 3),
        server(part("/a", 5, 5, 1), 4),
        server(part("/b", 0, 5, 0), 5),
        server(part("/b", 5, 0, 1), 7),
    ]
    typed = typed_of(spark, capture_rows(messages, "libfilemq"), "libfilemq")
    found = in_order(
        at_once(advance, typed, "libfilemq")["transfers"], "filename", "octets", "outcome", "stalls"
    )
    assert [tuple(row.values()) for row in found] == [("/a", 10, "complete", 0), ("/b", 5, "complete", 0)]


def test_messages_without_the_tap_s_clock(spark: SparkSession) -> None:
    """As another tool may have written them: they are counted, and take no time."""
    rows = [row | {"mono": None} for row in capture_rows(STORY, "filemq")]
    whole = at_once(advance, typed_of(spark, rows, "filemq"), "filemq")["transfers"]
    timeless = [(*row[:8], 0.0, None, row[10], None if row[11] is None else 0.0) for row in WORKED_OUT]
    assert [tuple(row.values()) for row in in_order(whole, *NAMES)] == timeless


def test_random_files_of_a_simulated_server(spark: SparkSession) -> None:
    """The server keeps to its credit and says itself how long it had none; whole and in portions."""
    chance = random.Random(8)
    messages: list[Seen] = []
    expected: list[Row] = []
    at_ms = {"c1": 0, "c2": 0}
    for conversation in at_ms:
        messages.append(client(filemq.Ohai(), 0, conversation))
    for number in range(24):
        conversation = chance.choice(("c1", "c2"))
        messages_of, truth = _send(chance, f"/{number}", conversation, at_ms)
        messages += messages_of
        expected.append(truth)
    messages.sort(key=lambda item: item.at_ms or 0)
    rows = capture_rows(messages, "filemq")
    names = ("filename", "octets", "chunks", "outcome", "stalls", "stalled_us", "duration_us")
    whole = at_once(advance, typed_of(spark, rows, "filemq"), "filemq")["transfers"]
    assert _by_name({name: row[name] for name in names} for row in whole) == _by_name(expected)
    assert sum(row["stalls"] for row in expected) > 10
    cuts = len(rows) // 3, 2 * len(rows) // 3
    cut = in_portions(advance, portions_of(spark, rows, "filemq", *cuts), "filemq")["transfers"]
    assert in_order(cut) == in_order(whole)


def _send(
    chance: random.Random, name: str, conversation: str, at_ms: dict[str, int]
) -> tuple[list[Seen], Row]:
    """Send one file against credit that is granted for it alone; each connection has its own clock, in ms."""
    size = chance.randrange(1, 60)
    messages, credit, offset, chunks, stalls, stalled = [], 0, 0, 0, 0, 0
    begun = 0

    def later() -> int:
        at_ms[conversation] += chance.randrange(1, 5)
        return at_ms[conversation]

    while offset < size:
        if credit == 0:
            before = at_ms[conversation]
            credit = chance.randrange(1, size - offset + 1)
            granted = later()
            messages.append(client(filemq.Nom(credit=credit), granted, conversation))
            if offset:
                stalls += 1
                stalled += granted - before
        octets = chance.randrange(1, credit + 1)
        sent = later()
        begun = begun or sent
        messages.append(server(chunk(name, offset, octets, size), sent, conversation))
        offset, credit, chunks = offset + octets, credit - octets, chunks + 1
    messages.append(server(chunk(name, size, 0, size), later(), conversation))
    truth = {
        "filename": name,
        "octets": size,
        "chunks": chunks,
        "outcome": "complete",
        "stalls": stalls,
        "stalled_us": stalled * 1000.0,
        "duration_us": (at_ms[conversation] - begun) * 1000.0,
    }
    if credit:  # what is left over would be the next file's
        messages.append(client(filemq.Ohai(), later(), conversation))
    return messages, truth


def _by_name(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: str(row["filename"]))
