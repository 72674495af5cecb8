"""Gaps in numbering: worked out by hand, and calculated in plain Python from random numbers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from specwire.generated import filemq, flux, zre
from specwire.runtime.spark.answers.gaps import advance
from tests.runtime.spark.answers.traffic import (
    Seen,
    at_once,
    capture_rows,
    in_order,
    in_portions,
    portions_of,
    typed_of,
)

pytestmark = pytest.mark.spark

NAMES = ("seq", "sender", "expected", "found", "missing", "kind", "filtered")


def event(sequence: int, conversation: str = "c1") -> Seen:
    return Seen("S", flux.Event(topic="a.b", sequence=sequence), None, conversation)


def test_events_of_flux(spark: SparkSession) -> None:
    """Lost ones, a repeat, one that comes late; a client that subscribed; bare events, which have number 0."""
    messages = [
        event(7),
        event(8),
        Seen("C", flux.Event(topic="a.b", sequence=0)),
        event(11),
        event(11),
        event(9),
        Seen("C", flux.Request(topic="event.subscribe", matchtag=1), None, "c2"),
        event(11, "c2"),
        event(20, "c2"),
        event(10),
    ]
    rows = capture_rows(messages, "flux")
    typed = typed_of(spark, rows, "flux")
    expected = [
        (3, "S", 9, 11, 2, "gap", False),
        (4, "S", 12, 11, 0, "repeat", False),
        (5, "S", 12, 9, 0, "back", False),
        (8, "S", 12, 20, 8, "gap", True),
    ]
    for found in (
        at_once(advance, typed, "flux"),
        in_portions(advance, portions_of(spark, rows, "flux", 4, 7), "flux"),
    ):
        assert [tuple(row.values()) for row in in_order(found["gaps"], *NAMES)] == expected


def test_numbers_of_filemq_begin_anew_with_a_greeting(spark: SparkSession) -> None:
    """A client that greets again is a new one to the server, whose numbers then begin at 0."""

    def chunk(sequence: int) -> Seen:
        fields: dict[str, Any] = {"operation": 1, "filename": "/a", "offset": 0, "headers": (), "chunk": b"x"}
        return Seen("S", filemq.Cheezburger(sequence=sequence, **fields))

    messages = [chunk(4), chunk(5), Seen("C", filemq.Ohai()), chunk(0), chunk(2)]
    rows = capture_rows(messages, "filemq")
    typed = typed_of(spark, rows, "filemq")
    (row,) = in_order(at_once(advance, typed, "filemq")["gaps"], *NAMES)
    assert tuple(row.values()) == (4, "S", 1, 2, 1, "gap", False)


def test_random_numbers_of_zre(spark: SparkSession) -> None:
    """Two octets count round: after 65535 comes 0; whole and in portions, against a plain loop."""
    chance = random.Random(8)
    messages = []
    numbers = {"c1": 65_400, "c2": 10}
    for _ in range(300):
        name = chance.choice(("c1", "c2"))
        numbers[name] = (numbers[name] + chance.choice((1, 1, 1, 1, 0, 3, -2))) % 65_536
        message = zre.Join if chance.random() < 0.5 else zre.Ping
        fields: dict[str, Any] = {"group": "g", "status": 1} if message is zre.Join else {}
        messages.append(Seen("P", message(version=2, sequence=numbers[name], **fields), None, name))
    messages.insert(
        200, Seen("P", zre.Hello(sequence=1, endpoint="tcp://a:1", groups=(), status=0, name="n"), None, "c1")
    )
    rows = capture_rows(messages, "zre")
    typed = typed_of(spark, rows, "zre")
    expected = []
    before: dict[str, int] = {}
    for seq, item in enumerate(messages):
        number, was = item.message.sequence, before.get(item.conversation)
        before[item.conversation] = number
        if was is None or isinstance(item.message, zre.Hello) or number == (was + 1) % 65_536:
            continue
        ahead = (number - was - 1) % 65_536
        kind = "repeat" if number == was else "gap" if ahead < 32_768 else "back"
        missing = ahead if kind == "gap" else 0
        expected.append((seq, "P", (was + 1) % 65_536, number, missing, kind, False))
    found = in_order(at_once(advance, typed, "zre")["gaps"])
    assert [tuple(row[name] for name in NAMES) for row in found] == expected
    assert in_order(in_portions(advance, portions_of(spark, rows, "zre", 90, 210), "zre")["gaps"]) == found
