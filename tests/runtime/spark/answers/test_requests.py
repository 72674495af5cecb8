"""Calls of Flux and CMB1: a small capture worked out by hand, and a random one calculated in plain Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from specwire.generated import cmb1, flux
from specwire.runtime.spark.answers.requests import GIVEN_UP_S, advance
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

ENODATA, ENOSYS = 61, 38
NORESPONSE, STREAMING = 0x04, 0x40
DAY_MS = GIVEN_UP_S * 1000


def ask(topic: str, matchtag: int, **fields: Any) -> flux.Request:
    return flux.Request(topic=topic, matchtag=matchtag, **fields)


def answer(topic: str, matchtag: int, **fields: Any) -> flux.Response:
    return flux.Response(topic=topic, matchtag=matchtag, **fields)


STORY = [
    Seen("C", ask("kvs.get", 1), 1),
    Seen("C", ask("kvs.get", 1), 2, conversation="c2"),
    Seen("S", answer("kvs.get", 1), 5),
    Seen("C", ask("kvs.put", 1), 7),
    Seen("S", answer("kvs.get", 1, errnum=ENOSYS), 8, conversation="c2"),
    Seen("S", answer("kvs.put", 1), 9.5),
    Seen("S", answer("kvs.put", 1), 10),
    Seen("C", ask("log.dmesg", 2, flags=STREAMING), 11),
    Seen("S", answer("log.dmesg", 2, flags=STREAMING), 13),
    Seen("S", answer("log.dmesg", 2, flags=STREAMING), 14),
    Seen("S", answer("log.dmesg", 2, flags=STREAMING, errnum=ENODATA), 20),
    Seen("C", ask("job.disconnect", 0, flags=NORESPONSE), 21),
    Seen("C", ask("overlay.hello", 0), 22),
    Seen("S", answer("overlay.hello", 0), 23),
    Seen("C", ask("a.b", 3), 24),
    Seen("C", ask("a.b", 3), 25),
    # The broker asks a service client on the same connection, with a tag that is in use there, for two requesters.
    Seen("S", ask("svc.x", 3, routes=("u1", "u2")), 26),
    Seen("S", ask("svc.x", 3, routes=("u3",)), 27),
    Seen("C", answer("svc.x", 3, routes=("u3",)), 28),
    Seen("C", answer("svc.x", 3, routes=("u1", "u2"), errnum=ENODATA), 30),
]
"""Milliseconds of the tap's clock beside each message."""

WORKED_OUT = [
    # seq, conversation, asker, requester, topic, responses, errnum, outcome, first_us, latency_us
    (0, "c1", "C", "", "kvs.get", 1, 0, "answered", 4000.0, 4000.0),
    (1, "c2", "C", "", "kvs.get", 1, ENOSYS, "error", 6000.0, 6000.0),
    (3, "c1", "C", "", "kvs.put", 1, 0, "answered", 2500.0, 2500.0),
    (6, "c1", "C", "", "kvs.put", 1, 0, "unasked", None, None),
    (7, "c1", "C", "", "log.dmesg", 3, ENODATA, "answered", 2000.0, 9000.0),
    (11, "c1", "C", "", "job.disconnect", 0, None, "noresponse", None, None),
    (12, "c1", "C", "", "overlay.hello", 0, None, "untagged", None, None),
    (13, "c1", "C", "", "overlay.hello", 1, 0, "untagged", None, None),
    (14, "c1", "C", "", "a.b", 0, None, "unanswered", None, None),
    (15, "c1", "C", "", "a.b", 0, None, "open", None, None),
    (16, "c1", "S", "u1!u2", "svc.x", 1, ENODATA, "error", 4000.0, 4000.0),
    (17, "c1", "S", "u3", "svc.x", 1, 0, "answered", 1000.0, 1000.0),
]

COLUMNS = (
    *("seq", "conversation", "asker", "requester", "topic", "responses", "errnum", "outcome"),
    *("first_us", "latency_us"),
)


def test_calls_worked_out_by_hand(spark: SparkSession) -> None:
    """Tags used again, streams, errors, tags in use by several requesters; no error number ends a single call well."""
    rows = capture_rows(STORY, "flux")
    typed = typed_of(spark, rows, "flux")
    found = in_order(at_once(advance, typed, "flux")["requests"])
    assert [tuple(row[name] for name in COLUMNS) for row in found] == WORKED_OUT
    # Every message is in exactly one call.
    assert sum(row["nodeid"] is not None for row in found) == sum(
        isinstance(item.message, flux.Request) for item in STORY
    )
    assert sum(row["responses"] for row in found) == sum(
        isinstance(item.message, flux.Response) for item in STORY
    )
    assert sum(row["octets"] for row in found) == sum(len(b"".join(row["frames"])) for row in rows)
    assert {row["service"] for row in found} == {"kvs", "log", "job", "overlay", "a", "svc"}
    assert [row["hops"] for row in found][-2:] == [2, 1]


def test_calls_that_are_given_up(spark: SparkSession) -> None:
    """After a day of the tap's clock a call is over, and what comes then answers nothing; in portions as well."""
    messages = [
        Seen("C", ask("a.b", 1), 1),
        Seen("C", ask("a.c", 2), 2),
        Seen("S", answer("a.b", 1), 2 + DAY_MS),
        Seen("C", ask("a.d", 1), 3 + DAY_MS),
    ]
    rows = capture_rows(messages, "flux")
    typed = typed_of(spark, rows, "flux")
    names = ("seq", "topic", "outcome")
    expected = [(0, "a.b", "unanswered"), (1, "a.c", "unanswered"), (2, "a.b", "unasked"), (3, "a.d", "open")]
    for found in (
        at_once(advance, typed, "flux"),
        in_portions(advance, portions_of(spark, rows, "flux", 2, 3), "flux"),
    ):
        assert [tuple(row.values()) for row in in_order(found["requests"], *names)] == expected


def test_identities_of_cmb1_are_octets(spark: SparkSession) -> None:
    """They are shown in hex where they are no UUID, and pair requests with responses all the same."""
    routes = (bytes.fromhex("00ff"), b"0f38f44e-8d4a-4a3d-8d0b-3b8a5f0d0d2c")
    messages = [
        Seen("C", cmb1.Request(topic="a.b", matchtag=1, routes=routes), 1),
        Seen("S", cmb1.Response(topic="a.b", matchtag=1, routes=routes), 2),
    ]
    rows = capture_rows(messages, "cmb1")
    typed = typed_of(spark, rows, "cmb1")
    (row,) = at_once(advance, typed, "cmb1")["requests"]
    assert row["requester"] == "00ff!0f38f44e-8d4a-4a3d-8d0b-3b8a5f0d0d2c"
    assert (row["outcome"], row["latency_us"]) == ("answered", 1000.0)


def test_random_traffic_whole_and_in_portions(spark: SparkSession) -> None:
    """Two taps, few tags, much reuse: as a plain dict per requester tells it, and the same in three portions."""
    messages = _random_messages(random.Random(8), 400)
    rows = capture_rows(messages, "flux")
    typed = typed_of(spark, rows, "flux")
    whole = in_order(at_once(advance, typed, "flux")["requests"])
    names = ("tap", "seq", "asker", "requester", "outcome", "responses", "errnum", "latency_us")
    assert in_order(whole, *names) == in_order(_pair(messages, rows), *names)
    assert {row["outcome"] for row in whole} == {
        *("answered", "error", "open", "unanswered", "unasked", "noresponse", "untagged"),
    }
    assert (
        in_order(in_portions(advance, portions_of(spark, rows, "flux", 60, 130), "flux")["requests"]) == whole
    )


def _random_messages(chance: random.Random, count: int) -> list[Seen]:
    messages = []
    at_ms = 0.0
    for _ in range(count):
        at_ms += chance.random()
        side, tag = chance.choice("CS"), chance.choice((0, 1, 1, 2, 3))
        routes = chance.choice(((), ("r1",), ("r1", "r2")))
        flags = chance.choice((0, 0, STREAMING))
        if chance.random() < 0.5:
            flags = NORESPONSE if chance.random() < 0.1 else flags
            message: Any = ask("s.t", tag, routes=routes, flags=flags)
        else:
            message = answer("s.t", tag, routes=routes, flags=flags, errnum=chance.choice((0, 0, 1, ENODATA)))
        tap = chance.choice(("tap-1-0", "tap-2-0"))
        messages.append(Seen(side, message, round(at_ms, 3), chance.choice(("c1", "c2")), "p", tap))
    return messages


def _pair(messages: Sequence[Seen], rows: Sequence[Row]) -> list[Row]:
    """Pair requests and responses one after the other, with the open call of each requester in a dict."""
    calls: list[Row] = []
    open_calls: dict[tuple[Any, ...], Row] = {}

    def begin(item: Seen, row: Row, asker: str, outcome: str) -> Row:
        message = item.message
        call = {
            "tap": row["tap"],
            "seq": row["seq"],
            "mono": row["mono"],
            "asker": asker,
            "outcome": outcome,
            "requester": "!".join(message.routes),
            "responses": 0,
            "errnum": None,
            "latency_us": None,
        }
        calls.append(call)
        return call

    for item, row in zip(messages, rows, strict=True):
        message = item.message
        asks = isinstance(message, flux.Request)
        asker = item.sender if asks else {"C": "S", "S": "C"}[item.sender]
        key = (item.tap, item.conversation, asker, message.routes, message.matchtag)
        if asks and message.flags & NORESPONSE:
            begin(item, row, asker, "noresponse")
        elif message.matchtag == 0:
            call = begin(item, row, asker, "untagged")
            if not asks:
                call |= {"responses": 1, "errnum": message.errnum}
        elif asks:
            if key in open_calls and open_calls[key]["outcome"] == "open":
                open_calls[key]["outcome"] = "unanswered"
            open_calls[key] = begin(item, row, asker, "open") | {"streaming": bool(message.flags & STREAMING)}
            calls[-1] = open_calls[key]
        else:
            call = open_calls.get(key) or begin(item, row, asker, "unasked")
            open_calls[key] = call
            call["responses"] += 1
            if message.errnum or not message.flags & STREAMING:
                del open_calls[key]
                call["errnum"] = message.errnum
                if call["outcome"] == "open":
                    well = message.errnum == 0 or (message.errnum == ENODATA and call["streaming"])
                    call["outcome"] = "answered" if well else "error"
                    call["latency_us"] = (row["mono"] - call["mono"]) / 1000
    for call in open_calls.values():
        call["outcome"] = "open"  # a stream whose request was not seen may go on, too
    return calls
