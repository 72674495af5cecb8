"""Roll-ups: latency, traffic, errors, nodes and edges add up to the tables that they are made from."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from datetime import UTC
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from specwire.generated import flux, norfab
from specwire.runtime.spark.answers import durations, jobs, requests, traffic
from specwire.runtime.spark.answers.answer import Frames
from tests.runtime.spark.answers.traffic import Row, Seen, as_dicts, capture_rows, typed_of

pytestmark = pytest.mark.spark

MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Random calls of three topics over five minutes, from two clients at a server's tap and one at a client's."""
    chance = random.Random(8)
    messages = []
    for number in range(250):
        at_ms = chance.randrange(5 * MINUTE_MS) + 1
        tag, topic = number + 1, chance.choice(("kvs.get", "kvs.put", "job.submit"))
        peer = chance.choice(("u1", "u2", "tcp://h:1"))
        tap = "client-7-abc" if peer == "tcp://h:1" else "broker-0-7-abc"
        where: dict[str, Any] = {"conversation": f"c-{peer}", "peer": peer, "tap": tap}
        messages.append(Seen("C", flux.Request(topic=topic, matchtag=tag), at_ms, **where))
        if chance.random() < 0.9:
            errnum = chance.choice((0, 0, 0, 2))
            answer = flux.Response(topic=topic, matchtag=tag, errnum=errnum, payload=b"x" * number)
            messages.append(Seen("S", answer, at_ms + chance.randrange(1, 500), **where))
        if number % 25 == 0:
            messages.append(Seen("C", [b"\x8e\x01\x01"], at_ms, **where))
    messages.append(
        Seen(
            "C", flux.Request(topic="a.b", matchtag=1, routes=("u9", "u1")), 1, "c-u1", "u1", "broker-0-7-abc"
        )
    )
    return capture_rows(sorted(messages, key=lambda item: item.at_ms or 0), "flux")


@pytest.fixture(scope="module")
def typed(spark: SparkSession, rows: list[Row]) -> dict[str, DataFrame]:
    return typed_of(spark, rows, "flux")


SUMS = {sums.name: sums for sums in traffic.SUMS}


def summed(typed: Frames, answers: Frames, protocol: str) -> dict[str, DataFrame]:
    """Return all sums of these messages and rows."""
    return {
        name: sums.add_up(sums.select(typed, answers, protocol), protocol)
        for name, sums in SUMS.items()
        if (typed if sums.reads(protocol) else answers)
    }


@pytest.fixture(scope="module")
def calls(typed: dict[str, DataFrame]) -> DataFrame:
    """The table `requests` of this traffic."""
    return requests.advance(typed, "flux").whole()["requests"]


def test_latency_by_minute(typed: dict[str, DataFrame], calls: DataFrame) -> None:
    """Against quantiles of sorted lists: the value given for p is the first that p of all do not exceed."""
    table = as_dicts(durations.latency({}, {"requests": calls}, "flux")["latency"])
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for call in as_dicts(calls):
        minute = call["ts"].replace(second=0, microsecond=0)
        groups[minute, call["tap"], call["topic"], call["peer"]].append(call)
    assert len(table) == len(groups) > 30
    for row in table:
        group = groups[row["minute"], row["tap"], row["topic"], row["peer"]]
        took = sorted(call["latency_us"] for call in group if call["latency_us"] is not None)
        assert (row["kind"], row["service"]) == ("rpc", row["topic"].split(".")[0])
        assert (row["begun"], row["answered"]) == (len(group), len(took))
        assert row["errors"] == sum(call["outcome"] == "error" for call in group)
        assert row["octets"] == sum(call["octets"] for call in group)
        for name, p in (("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99)):
            assert row[name] == (took[math.ceil(p * len(took)) - 1] if took else None)
        assert row["max_us"] == (took[-1] if took else None)


def test_topics_by_day(typed: dict[str, DataFrame], calls: DataFrame) -> None:
    """Counts as those of the calls; a quantile is never below the true one, and less than 2.4 % above it."""
    table = durations.topics(summed({}, {"requests": calls}, "flux"), {}, "flux")["topics"]
    groups: dict[str, list[Row]] = defaultdict(list)
    for call in as_dicts(calls):
        groups[call["topic"]].append(call)
    rows = {row["topic"]: row for row in as_dicts(table)}
    assert rows.keys() == groups.keys() == {"kvs.get", "kvs.put", "job.submit", "a.b"}
    for topic, row in rows.items():
        group = groups[topic]
        took = sorted(call["latency_us"] for call in group if call["latency_us"] is not None)
        assert (row["kind"], row["service"]) == ("rpc", topic.split(".")[0])
        assert (row["begun"], row["answered"]) == (len(group), len(took))
        assert row["errors"] == sum(call["outcome"] == "error" for call in group)
        assert row["unanswered"] == sum(call["outcome"] == "unanswered" for call in group)
        assert row["octets"] == sum(call["octets"] for call in group)
        bins = Counter(next(b for b in range(700) if us < 10 ** ((b + 1) / 100)) for us in took)
        assert {item["bin"]: item["count"] for item in row["spread"]} == bins
        assert [item["bin"] for item in row["spread"]] == sorted(bins)
        for name, p in (("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99)):
            if took:
                true = took[math.ceil(p * len(took)) - 1]
                assert true <= row[name] <= min(true * 1.024, took[-1])
            else:
                assert row[name] is None


def test_topics_of_several_days_are_those_of_all_their_calls(calls: DataFrame) -> None:
    """Whatever way the calls are cut: here by the parity of `seq`, and added up."""
    parts = [
        durations.topics(summed({}, {"requests": calls.where(f"seq % 2 = {odd}")}, "flux"), {}, "flux")[
            "topics"
        ]
        for odd in (0, 1)
    ]
    (whole,) = as_dicts(
        durations.sum_topics(
            durations.topics(summed({}, {"requests": calls}, "flux"), {}, "flux")["topics"], "kind"
        )
    )
    (added,) = as_dicts(durations.sum_topics(parts[0].unionByName(parts[1]), "kind"))
    spreads: list[Counter[int]] = []
    for row in (whole, added):
        spreads.append(Counter())
        for item in row.pop("spread"):
            spreads[-1][item["bin"]] += item["count"]
    assert added == pytest.approx(whole)
    assert spreads[0] == spreads[1] and sum(spreads[0].values()) == whole["answered"] > 200


def test_traffic_and_errors_add_up(typed: dict[str, DataFrame], rows: list[Row]) -> None:
    """Messages in are typed messages and errors, octet for octet."""
    made = summed(typed, {}, "flux")
    by_minute = as_dicts(made["traffic"])
    counts = {name: table.count() for name, table in typed.items()}
    assert sum(counts.values()) == len(rows)
    by_message: Counter[str] = Counter()
    for row in by_minute:
        by_message[row["message"]] += row["messages"]
    assert by_message == Counter({name: count for name, count in counts.items() if count})
    assert sum(row["octets"] for row in by_minute) == sum(len(b"".join(row["frames"])) for row in rows)
    assert sum(row["errors"] for row in by_minute) == counts["_errors"] == 10
    assert {row["topic"] for row in by_minute} == {"kvs.get", "kvs.put", "job.submit", "a.b", None}
    first = min(row["ts"] for row in rows)
    assert min(row["minute"].astimezone(UTC) for row in by_minute) == first.replace(second=0, microsecond=0)
    found = as_dicts(made["errors"])
    assert sum(row["messages"] for row in found) == 10
    assert sum(row["octets"] for row in found) == 30
    assert {(row["tap"], row["sender"]) for row in found} <= {("client-7-abc", "C"), ("broker-0-7-abc", "C")}
    assert all(row["text"] and row["kind"] for row in found)


def test_graph_adds_up(typed: dict[str, DataFrame], calls: DataFrame, rows: list[Row]) -> None:
    """Edges are what peers sent, by who listens where; nodes are sums of edges; services are asked."""
    made = traffic.graph(summed(typed, {"requests": calls}, "flux"), {}, "flux")
    edges, nodes = as_dicts(made["edges"]), as_dicts(made["nodes"])
    sent: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        listens = row["sender"] == "S"
        ends = ("broker-0", row["peer"]) if row["tap"].startswith("broker") else (row["peer"], "client")
        source, target = ends if listens else ends[::-1]
        sent[source, row["sender"], target, "C" if listens else "S"] += 1
    names = ("source", "source_role", "target", "target_role")
    messages = {
        tuple(row[name] for name in names): row["messages"] for row in edges if row["kind"] == "messages"
    }
    assert messages == dict(sent)
    octets = sum(len(b"".join(row["frames"])) for row in rows)
    peers = [row for row in nodes if row["role"] != "service"]
    assert sum(row["sent_octets"] for row in peers) == sum(row["received_octets"] for row in peers) == octets
    assert sum(row["errors"] for row in peers) == 10
    asked = [row for row in edges if row["kind"] != "messages"]
    assert sum(row["requests"] for row in asked) == 251
    assert sum(row["messages"] for row in asked) == len(rows) - 10
    assert [(row["source"], row["target"], row["requests"]) for row in asked if row["kind"] == "relayed"] == [
        ("u1", "a", 1)
    ]
    by_service = {row["node"]: row["received_messages"] for row in nodes if row["role"] == "service"}
    assert by_service.keys() == {"kvs", "job", "a"}


def test_jobs_in_latency_and_graph(spark: SparkSession) -> None:
    """A job leads from client to service to worker; its time is the worker's."""
    worker, client = b"w1".hex(), b"cli".hex()
    post, result = b'{"task": "add"}', b'{"w1": {"failed": true}}'
    messages = [
        Seen(
            "C", norfab.PostClient(service="echo", target="w1", uuid="a", body=post), 1, "s-client-x", client
        ),
        Seen("B", norfab.PostWorker(client_address=b"cli", uuid="a", body=post), 2, "s-worker-x", worker),
        Seen(
            "W",
            norfab.ResponseWorker(client_address=b"cli", uuid="a", status="200", body=result),
            5,
            "s-worker-x",
            worker,
        ),
    ]
    typed = typed_of(spark, capture_rows(messages, "norfab"), "norfab")
    answers = jobs.advance(typed, "norfab").whole()
    (row,) = as_dicts(durations.latency({}, answers, "norfab")["latency"])
    assert (row["kind"], row["service"], row["topic"], row["peer"]) == ("job", "echo", "add", "w1")
    assert (row["begun"], row["answered"], row["errors"], row["p50_us"]) == (1, 1, 1, 4000.0)
    (row,) = as_dicts(durations.topics(summed({}, answers, "norfab"), {}, "norfab")["topics"])
    assert (row["kind"], row["service"], row["topic"], row["errors"]) == ("job", "echo", "add", 1)
    assert (row["spread"], row["p50_us"]) == ([{"bin": 360, "count": 1}], 4000.0)
    made = traffic.graph(summed(typed, answers, "norfab"), {}, "norfab")
    names = ("kind", "source", "source_role", "target", "target_role", "messages", "requests", "errors")
    assert sorted(tuple(row[name] for name in names) for row in as_dicts(made["edges"])) == [
        ("calls", "cli", "C", "echo", "service", None, 1, 1),
        ("calls", "echo", "service", "w1", "W", None, 1, 1),
        ("messages", "cli", "C", "tap", "B", 1, 0, 0),
        ("messages", "tap", "B", "w1", "W", 1, 0, 0),
        ("messages", "w1", "W", "tap", "B", 1, 0, 0),
    ]
