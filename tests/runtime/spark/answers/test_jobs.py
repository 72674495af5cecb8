"""NORFAB jobs in both dialects: worked out by hand, and random ones whose course is known."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from specwire.generated import norfab, norfab_ascii
from specwire.runtime.spark.answers.jobs import advance
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

JOB = ("uuid", "client", "service", "target", "task", "workers", "results", "failed", "status", "outcome")
TIMES = ("dispatch_us", "first_us", "latency_us")
PART = (
    "uuid",
    "worker",
    "started_by",
    "status",
    "outcome",
    "queue_us",
    "run_us",
    "latency_us",
    "stated_run_s",
)

STARTED, COMPLETED = "Fri Nov 20 17:03:06 2026", "Fri Nov 20 17:03:08 2026"


def body(**said: Any) -> bytes:
    return json.dumps(said).encode()


def result(worker: str, *, failed: bool = False) -> bytes:
    entry = {"result": {"deep": {"failed": True}}, "failed": failed, "errors": []}
    return json.dumps({worker: entry | {"task_started": STARTED, "task_completed": COMPLETED}}).encode()


class Tap:
    """Makes the messages of jobs as a broker's tap sees them, in one dialect."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def from_client(self, kind: str, at_ms: float, uuid: str, content: bytes, **fields: str) -> Seen:
        made = getattr(self._package, f"{kind}Client")
        fields = {"service": "echo"} | fields
        message = made(uuid=uuid, body=content, **fields)
        sender = "B" if kind in ("Response", "Event") else "C"
        return Seen(sender, message, at_ms, "s-client-636c69", b"cli".hex())

    def of_worker(
        self, kind: str, at_ms: float, uuid: str, worker: str, content: bytes, **fields: str
    ) -> Seen:
        made = getattr(self._package, f"{kind}Worker")
        message = made(client_address=b"cli", uuid=uuid, body=content, **fields)
        sender = "W" if kind in ("Response", "Event") else "B"
        label = worker.encode().hex()
        return Seen(sender, message, at_ms, f"s-worker-{label}", label)


def story(package: Any) -> list[Seen]:
    """Return a job for two workers, one of whom waits; one that is refused; one that nobody answers."""
    tap = Tap(package)
    post = body(task="add", kwargs={})
    accepted, dispatched = (
        body(worker="w1", status="ACCEPTED"),
        body(workers=["w1", "w2"], status="DISPATCHED"),
    )
    return [
        tap.from_client("Post", 1, "a", post, target="all"),
        tap.from_client("Response", 2, "a", dispatched, status="202"),
        tap.of_worker("Post", 3, "a", "w1", post),
        tap.of_worker("Post", 4, "a", "w2", post),
        tap.of_worker("Response", 5, "a", "w1", accepted, status="201"),
        tap.from_client("Response", 5.5, "a", accepted, status="201"),
        tap.of_worker("Response", 6, "a", "w2", body(worker="w2", status="ACCEPTED"), status="201"),
        tap.of_worker("Event", 8, "a", "w1", body(worker="w1", event_type="progress"), status="200"),
        tap.of_worker("Get", 9, "a", "w2", post),
        tap.of_worker("Response", 9.5, "a", "w2", body(worker="w2", status="STARTED"), status="300"),
        tap.of_worker("Response", 18, "a", "w1", result("w1"), status="200"),
        tap.from_client("Get", 19, "a", post, target="all"),
        tap.of_worker("Response", 21, "a", "w2", result("w2", failed=True), status="200"),
        tap.from_client("Response", 22, "a", result("w1"), status="200"),
        tap.from_client("Response", 23, "a", result("w2", failed=True), status="200"),
        tap.from_client("Post", 24, "b", post, service="ghost", target="any"),
        tap.from_client(
            "Response",
            26,
            "b",
            body(workers=None, status="FAILED", errors=["no"]),
            service="ghost",
            status="400",
        ),
        tap.from_client("Post", 27, "c", b"no JSON", target='["w1"]'),
        tap.from_client("Get", 28, "d", post, target="all"),
    ]


JOBS = [
    ("a", "cli", "echo", "all", "add", 2, 2, 1, 200, "failed", 1000.0, 17_000.0, 20_000.0),
    ("b", "cli", "ghost", "any", "add", 0, 0, 0, 400, "refused", None, None, 2000.0),
    ("c", "cli", "echo", '["w1"]', None, 0, 0, 0, None, "open", None, None, None),
    ("d", "cli", "echo", None, None, 0, 0, 0, None, "open", None, None, None),
]
PARTS = [
    ("a", "w1", "event", 200, "done", 7000.0, 10_000.0, 17_000.0, 2),
    ("a", "w2", "status", 200, "failed", 8500.0, 11_500.0, 20_000.0, 2),
]


@pytest.mark.parametrize("package", [norfab, norfab_ascii])
def test_jobs_worked_out_by_hand(spark: SparkSession, package: Any) -> None:
    """Queueing apart from execution, a refusal, bad JSON, a GET whose POST was not seen; whole and in portions."""
    protocol = package.__name__.rpartition(".")[2]
    rows = capture_rows(story(package), protocol)
    whole = at_once(advance, typed_of(spark, rows, protocol), protocol)
    assert [tuple(row[name] for name in (*JOB, *TIMES)) for row in in_order(whole["jobs"])] == JOBS
    found = [tuple(row[name] for name in PART) for row in in_order(whole["job_parts"])]
    assert sorted(found) == PARTS
    (first,) = (row for row in whole["jobs"] if row["uuid"] == "a")
    assert (first["events"], first["polls"]) == (1, 1)
    if package is norfab:
        cut = in_portions(advance, portions_of(spark, rows, protocol, 3, 12), protocol)
        assert {name: in_order(rows) for name, rows in cut.items()} == {
            name: in_order(rows) for name, rows in whole.items()
        }


def test_a_job_at_the_taps_of_client_and_worker(spark: SparkSession) -> None:
    """A client's tap learns the workers from bodies, a worker's its own name from its answer; `any` needs one."""
    tap = Tap(norfab)
    endpoint = "tcp://10.0.0.1:5555"
    post = body(task="add")
    at_client = [
        tap.from_client("Post", 1, "a", post, target="any"),
        tap.from_client("Response", 2, "a", body(workers=["w1", "w2"]), status="202"),
        tap.from_client("Response", 9, "a", result("w2"), status="200"),
        tap.from_client("Get", 70_000, "a", post, target="any"),
    ]
    at_worker = [
        tap.of_worker("Post", 1, "a", "", post),
        tap.of_worker("Response", 2, "a", "", body(worker="w2", status="ACCEPTED"), status="202"),
        tap.of_worker("Response", 8, "a", "", result("w2"), status="200"),
    ]
    messages = [
        *(item._replace(peer=endpoint, tap="client-1-0") for item in at_client),
        *(item._replace(peer=endpoint, tap="worker-1-0", conversation="c9") for item in at_worker),
    ]
    found = at_once(advance, typed_of(spark, capture_rows(messages, "norfab"), "norfab"), "norfab")
    names = ("tap", "client", "workers", "results", "outcome", "latency_us")
    assert [tuple(row.values()) for row in in_order(found["jobs"], *names)] == [
        ("client-1-0", None, 2, 1, "done", 8000.0),
        ("client-1-0", None, 0, 0, "open", None),  # asked after a minute: of a job that is over
        ("worker-1-0", "cli", 1, 1, "done", 7000.0),
    ]
    names = ("tap", "worker", "started_by", "queue_us", "run_us", "outcome")
    assert [tuple(row.values()) for row in in_order(found["job_parts"], *names)] == [
        ("client-1-0", "w1", None, None, None, "unanswered"),
        ("client-1-0", "w2", None, None, None, "done"),
        ("worker-1-0", "w2", "accepted", 1000.0, 6000.0, "done"),
    ]


STRANGE_BODIES = {
    "nothing": b"",
    "no text": b"\xff{",
    "a list": b"[1, 2]",
    "deep": b"[" * 5000 + b"]" * 5000,
    "wrong types": b'{"w1": {"failed": 7, "task_started": [], "task_completed": {}}, "w1": {"failed": false}}',
    "wrong words": b'{"workers": 7, "status": {}, "worker": ["w1"], "task": null}',
}


def test_bodies_are_not_to_be_trusted(spark: SparkSession) -> None:
    """Whatever they say, each job has one row, and its status counts; each body is at a tap of its own."""
    tap = Tap(norfab)
    messages = [
        message._replace(tap=name)
        for name, content in STRANGE_BODIES.items()
        for message in (
            tap.from_client("Post", 1, "a", content, target="all"),
            tap.from_client("Response", 2, "a", content, status="202"),
            tap.of_worker("Post", 3, "a", "w1", content),
            tap.of_worker("Event", 4, "a", "w1", content, status="200"),
            tap.of_worker("Response", 5, "a", "w1", content, status="200"),
        )
    ]
    found = at_once(advance, typed_of(spark, capture_rows(messages, "norfab"), "norfab"), "norfab")
    jobs = in_order(found["jobs"], "tap", "outcome", "latency_us", "events")
    assert [tuple(job.values()) for job in jobs] == [
        (name, "done", 4000.0, 1) for name in sorted(STRANGE_BODIES)
    ]
    parts = in_order(found["job_parts"], "tap", "worker", "run_us")
    assert [tuple(part.values()) for part in parts] == [
        (name, "w1", 1000.0) for name in sorted(STRANGE_BODIES)
    ]


def test_messages_without_the_tap_s_clock(spark: SparkSession) -> None:
    """As another tool may have written them: the jobs are told, and take no time."""
    rows = [row | {"mono": None} for row in capture_rows(story(norfab), "norfab")]
    whole = at_once(advance, typed_of(spark, rows, "norfab"), "norfab")
    timeless = [(*job[:10], *(None if time is None else 0.0 for time in job[10:])) for job in JOBS]
    assert [tuple(row[name] for name in (*JOB, *TIMES)) for row in in_order(whole["jobs"])] == timeless


def test_random_jobs_whose_course_is_known(spark: SparkSession) -> None:
    """Many at once, in any order of their messages; whole and in portions."""
    chance = random.Random(8)
    tap = Tap(norfab_ascii)
    messages: list[Seen] = []
    jobs: list[Row] = []
    parts: list[Row] = []
    for number in range(40):
        uuid, begun = f"{number:032x}", chance.randrange(1, 400) * 10 + number / 100
        workers = chance.sample(("w1", "w2", "w3"), chance.randrange(1, 4))
        post = body(task="t")
        messages.append(tap.from_client("Post", begun, uuid, post, target="all"))
        messages.append(tap.from_client("Response", begun + 1, uuid, body(workers=workers), status="202"))
        ends, failures = [], 0
        for worker in workers:
            sent = begun + 2 + chance.randrange(1, 50)
            ended, failed = sent + chance.randrange(1, 500), chance.random() < 0.3
            answered = chance.random() < 0.9
            messages.append(tap.of_worker("Post", sent, uuid, worker, post))
            if answered:
                content = result(worker, failed=failed)
                messages.append(tap.of_worker("Response", ended, uuid, worker, content, status="200"))
                ends.append(ended)
                failures += failed
            outcome = "open" if not answered else "failed" if failed else "done"
            took = round((ended - sent) * 1000) if answered else None
            parts.append({"uuid": uuid, "worker": worker, "outcome": outcome, "run_us": took})
        whole = len(ends) == len(workers)
        jobs.append(
            {
                "uuid": uuid,
                "workers": len(workers),
                "results": len(ends),
                "failed": failures,
                "outcome": "open" if not whole else "failed" if failures else "done",
                "latency_us": round((max(ends) - begun) * 1000) if whole else None,
            }
        )
    messages.sort(key=lambda item: item.at_ms or 0)
    rows = capture_rows(messages, "norfab_ascii")
    found = at_once(advance, typed_of(spark, rows, "norfab_ascii"), "norfab_ascii")
    assert _chosen(found["jobs"], jobs, "uuid") == _chosen(jobs, jobs, "uuid")
    assert _chosen(found["job_parts"], parts, "uuid", "worker") == _chosen(parts, parts, "uuid", "worker")
    assert {row["outcome"] for row in jobs} == {"open", "failed", "done"}
    portions = portions_of(spark, rows, "norfab_ascii", len(rows) // 4, len(rows) // 2)
    cut = in_portions(advance, portions, "norfab_ascii")
    assert {name: in_order(rows) for name, rows in cut.items()} == {
        name: in_order(rows) for name, rows in found.items()
    }


def _chosen(rows: list[Row], like: list[Row], *key: str) -> list[Row]:
    """Return the columns that the expected rows have, in the order of a key; durations in whole microseconds."""
    chosen = [
        {name: round(row[name]) if isinstance(row[name], float) else row[name] for name in like[0]}
        for row in rows
    ]
    return sorted(chosen, key=lambda row: [str(row[name]) for name in key])
