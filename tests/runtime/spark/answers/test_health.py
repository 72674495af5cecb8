"""Silences and reconnects: worked out by hand, and calculated in plain Python from random traffic."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from specwire.generated import filemq, flux
from specwire.runtime.spark.answers.health import GIVEN_UP_S, OVER_S, advance, silent_after
from tests.runtime.spark.answers.traffic import (
    Row,
    Seen,
    as_dicts,
    at_once,
    capture_rows,
    in_order,
    in_portions,
    portions_of,
    typed_of,
)

pytestmark = pytest.mark.spark

BEAT = flux.Control(type_=0)
BYE = flux.Request(topic="overlay.goodbye", matchtag=0)
HELLO = flux.Request(topic="overlay.hello", matchtag=0)
PULSE = flux.Event(topic="heartbeat.pulse")
DAY_S = GIVEN_UP_S


def at(second: float, sender: str, message: object, conversation: str = "c1", peer: str = "p1") -> Seen:
    return Seen(sender, message, second * 1000, conversation, peer)


STORY = [
    at(1, "C", HELLO),
    at(1, "S", PULSE),
    at(2, "C", BEAT),
    at(30, "S", PULSE),
    at(32, "C", BEAT),  # 30 s: as long as is let pass
    at(63, "C", HELLO),  # 31 s, with two heartbeats before
    at(64, "C", BYE),
    at(70, "C", HELLO, "c2"),
    at(70, "S", PULSE, "c3", "p2"),
    at(100, "S", PULSE, "c3", "p2"),
    at(120, "S", [b"\xff"], "c3", "p2"),  # what does not decode is a sign of life as well
]
"""Seconds of the tap's clock; Flux lets 30 s pass."""


def test_silences_and_reconnects_worked_out_by_hand(spark: SparkSession) -> None:
    """Whole, and in portions that cut through every silence and beside every greeting."""
    rows = capture_rows(STORY, "flux")
    typed = typed_of(spark, rows, "flux")
    for found in (
        at_once(advance, typed, "flux"),
        in_portions(advance, portions_of(spark, rows, "flux", 5, 6), "flux"),
    ):
        names = ("seq", "sender", "until_seq", "silent_s", "threshold_s", "beats", "missed", "outcome")
        assert [tuple(row.values()) for row in in_order(found["silences"], *names)] == [
            (3, "S", None, 90.0, 30.0, 2, 45, "silent"),
            (4, "C", 5, 31.0, 30.0, 2, 15, "again"),
            (7, "C", None, 50.0, 30.0, 0, 25, "silent"),
        ]
        came = ("seq", "peer", "conversation", "kind", "before", "away_s")
        assert [tuple(row.values()) for row in in_order(found["reconnects"], *came)] == [
            (5, "p1", "c1", "greeting", "c1", 31.0),
            (7, "p1", "c2", "connection", "c1", 6.0),
        ]


def test_sides_that_are_given_up(spark: SparkSession) -> None:
    """After a day of the tap's clock a side is gone; one that comes later is a new one."""
    messages = [
        at(1, "C", BEAT),
        at(2, "C", BEAT, "c2", "p2"),
        at(2 + DAY_S, "C", BEAT),
        at(4 + DAY_S, "C", BEAT, "c3", "p3"),
        at(40 + DAY_S, "C", BEAT),
    ]
    rows = capture_rows(messages, "flux")
    typed = typed_of(spark, rows, "flux")
    expected = [
        (0, "c1", float(DAY_S), 1, "gone"),
        (1, "c2", float(DAY_S), 1, "gone"),
        (2, "c1", 38.0, 1, "again"),
        (3, "c3", 36.0, 1, "silent"),
    ]
    for found in (
        at_once(advance, typed, "flux"),
        in_portions(advance, portions_of(spark, rows, "flux", 2, 3), "flux"),
    ):
        names = ("seq", "conversation", "silent_s", "beats", "outcome")
        assert [tuple(row.values()) for row in in_order(found["silences"], *names)] == expected
        assert found["reconnects"] == []


def test_a_connection_that_was_silent_for_an_hour_is_over(spark: SparkSession) -> None:
    """What speaks after it under the old name is a new connection; one that was silent for less is beside the other.

    Also in portions that begin before the first message of the second peer and before each of the last three.
    """
    messages = [
        at(1, "C", BEAT),
        at(10, "C", BEAT, "c2"),
        at(2, "C", BEAT, "d1", "p2"),
        at(11, "C", BEAT, "d2", "p2"),
        at(2 + OVER_S, "C", BEAT, "d1", "p2"),
        at(9 + OVER_S, "C", BEAT),
        at(15 + OVER_S, "C", BEAT, "c2"),
    ]
    messages.sort(key=lambda item: item.at_ms or 0)
    rows = capture_rows(messages, "flux")
    for found in (
        at_once(advance, typed_of(spark, rows, "flux"), "flux"),
        in_portions(advance, portions_of(spark, rows, "flux", 1, 4, 5, 6), "flux"),
    ):
        names = ("seq", "conversation", "before", "away_s")
        assert [tuple(row.values()) for row in in_order(found["reconnects"], *names)] == [
            (2, "c2", "c1", 9.0),
            (5, "c1", "c2", OVER_S - 1.0),
            (6, "c2", "c1", 6.0),
        ]


def test_of_a_peer_that_comes_again_and_again_an_hour_is_kept(spark: SparkSession) -> None:
    """Every ten minutes for 140 minutes: of 15 connections seven are not over, and one more is the last that is."""
    rows = capture_rows([at(1 + 600 * n, "C", BEAT, f"c{n:02}") for n in range(15)], "flux")
    expected = [(n, f"c{n:02}", f"c{n - 1:02}", 600.0) for n in range(1, 15)]
    portions = portions_of(spark, rows, "flux", 9)
    state, closed = None, []
    for typed in portions:
        step = advance(typed, "flux", state)
        closed += as_dicts(step.closed["reconnects"])
        still = as_dicts(step.open["reconnects"])
        state = {
            name: spark.createDataFrame(frame.toArrow(), frame.schema) for name, frame in step.state.items()
        }
        step.release()
    assert state is not None
    assert sorted(row["conversation"] for row in as_dicts(state["connections"])) == [
        f"c{n:02}" for n in range(7, 15)
    ]
    names = ("seq", "conversation", "before", "away_s")
    assert [tuple(row.values()) for row in in_order(closed, *names)] == expected[:8]
    assert [tuple(row.values()) for row in in_order(still, *names)] == expected[8:]


def test_random_traffic_whole_and_in_portions(spark: SparkSession) -> None:
    """Against a plain loop over the messages, with another threshold than the protocol's."""
    chance = random.Random(8)
    messages, at_s = [], 0.0
    for _ in range(300):
        at_s += round(chance.expovariate(2), 3)
        message = chance.choice((filemq.Hugz(), filemq.HugzOk(), filemq.Nom(credit=1), filemq.Ohai()))
        number = chance.randrange(2) + int(at_s / 40) * 2
        messages.append(at(at_s, chance.choice("CS"), message, f"c{number}", f"p{number % 4}"))
    messages.append(at(at_s + 1, "C", filemq.Kthxbai(), messages[-1].conversation, messages[-1].peer))
    rows = capture_rows(messages, "filemq")
    typed = typed_of(spark, rows, "filemq")
    answer = silent_after(2.0)
    found = at_once(answer, typed, "filemq")
    assert in_order(found["silences"], "seq", "sender", "silent_s", "beats", "outcome") == _silences(
        messages, rows
    )
    assert in_order(found["reconnects"], "seq", "kind", "before", "away_s") == _reconnects(messages, rows)
    again = in_portions(answer, portions_of(spark, rows, "filemq", 100, 210), "filemq")
    for name, whole in found.items():
        assert whole
        assert in_order(again[name]) == in_order(whole)


def _silences(messages: list[Seen], rows: list[Row]) -> list[Row]:
    latest: dict[tuple[str, str], tuple[Seen, Row, int]] = {}
    found = []
    for item, row in zip(messages, rows, strict=True):
        key = item.conversation, item.sender
        beats = 0
        if key in latest:
            before, was, beats = latest[key]
            silent_s = (row["mono"] - was["mono"]) / 1e9
            if silent_s > 2 and not isinstance(before.message, filemq.Kthxbai):
                found.append(_silence(was, silent_s, beats, "again"))
        latest[key] = item, row, beats + isinstance(item.message, filemq.Hugz | filemq.HugzOk)
    for item, row, beats in latest.values():
        silent_s = (rows[-1]["mono"] - row["mono"]) / 1e9
        if silent_s > 2 and not isinstance(item.message, filemq.Kthxbai):
            found.append(_silence(row, silent_s, beats, "silent"))
    return sorted(found, key=lambda row: int(row["seq"]))


def _silence(row: Row, silent_s: float, beats: int, outcome: str) -> Row:
    return {
        "seq": row["seq"],
        "sender": row["sender"],
        "silent_s": silent_s,
        "beats": beats,
        "outcome": outcome,
    }


def _reconnects(messages: list[Seen], rows: list[Row]) -> list[Row]:
    found = []
    for number, (item, row) in enumerate(zip(messages, rows, strict=True)):
        earlier = [*zip(messages[:number], rows[:number], strict=True)]
        same = [(one, its) for one, its in earlier if one.conversation == item.conversation]
        if isinstance(item.message, filemq.Ohai):
            own = [(one, its) for one, its in same if one.sender == item.sender]
            if any(isinstance(one.message, filemq.Ohai) for one, _ in own):
                found.append(_reconnect(row, "greeting", item.conversation, own[-1][1]))
        before = [(one, its) for one, its in earlier if one.peer == item.peer]
        if not same and before:
            others = {one.conversation for one, _ in before}
            if not any(one.conversation in others for one in messages[number:]):
                found.append(_reconnect(row, "connection", before[-1][0].conversation, before[-1][1]))
    return found


def _reconnect(row: Row, kind: str, before: str, was: Row) -> Row:
    return {
        "seq": row["seq"],
        "kind": kind,
        "before": before,
        "away_s": (row["mono"] - was["mono"]) / 1e9,
    }
