"""NORFAB jobs: from a client's POST to the results of its workers, in both dialects.

A job is known by its uuid, in messages of two legs: client and broker, broker and worker. A
broker's tap sees both, the others one. Spark's JSON functions read the bodies (the task, the
workers that it went to, each worker's result) and give Python short JSON texts: for a list column
that is mostly null Spark weighs each batch again with every row. In Python, a worker applies the
messages of each job in order (`specwire.runtime.spark.answers.job_state`).

A worker's name comes from the bodies on the client's leg; on its own leg it is the peer of a
broker's tap. A worker's tap knows its broker's endpoint only, so there the worker is the one
connection, and gets its name from its result.
"""

from __future__ import annotations

from specwire.runtime.spark.answers.answer import (
    MOMENT,
    STORED,
    TAP,
    Continued,
    Frames,
    Step,
    table_schema,
)
from specwire.runtime.spark.answers.incremental import state_schema, track
from specwire.runtime.spark.answers.job_state import JobTracker
from specwire.runtime.spark.answers.messages import present, select, union
from specwire.runtime.spark.answers.protocol_specifics import specifics_of
from specwire.runtime.spark.protocols import load_schemas

_JOB = table_schema(*STORED, TAP, "uuid STRING: id of the job, as its client chose it")

JOBS = table_schema(
    *_JOB,
    "conversation STRING: the client's connection; null at a worker's tap",
    "client STRING: name of the client; null where the tap does not see it",
    "service STRING: the service that was asked for",
    "target STRING: all, any, a name or a list, as the client wrote it",
    "task STRING: the task, from the body",
    *MOMENT,
    "last_mono BIGINT (nanoseconds): when the latest word on it came, the tap's clock",
    "workers BIGINT: workers that the broker said it went to, or that were seen with it",
    "results BIGINT: workers of which a result came",
    "failed BIGINT: results that say the task failed, and refusals of a worker",
    "events BIGINT: EVENT messages about it, each leg by itself",
    "polls BIGINT: GET messages of the client",
    "status BIGINT: the status that ended it: 200, or the first that says why not",
    "outcome STRING: done (a result of every worker, none failed), failed (a worker's task failed), "
    "refused (by the broker), open (not over yet), unanswered (too long ago), unasked (the tap did not "
    "see its POST)",
    "dispatch_us BIGINT (microseconds): from the POST to the broker's word that it went to workers (202)",
    "first_us BIGINT (microseconds): from the POST to the first worker's result",
    "latency_us BIGINT (microseconds): from the POST to the last result, or to the refusal",
)

JOB_PARTS = table_schema(
    *_JOB,
    "conversation STRING: the client's connection; null at a worker's tap",
    "worker STRING: name of the worker; its connection's name where the tap does not learn it",
    "service STRING: the service that was asked for",
    "task STRING: the task, from the body",
    *MOMENT,
    "sent_mono BIGINT (nanoseconds): when the broker gave it to the worker; null at a client's tap",
    "accepted_mono BIGINT (nanoseconds): when the worker's acceptance came",
    "started_mono BIGINT (nanoseconds): when the first sign came that the task runs",
    "ended_mono BIGINT (nanoseconds): when the worker's result came",
    "started_by STRING: that sign: event, status (102 or 300), else accepted or sent; null before",
    "status BIGINT: the status of the result",
    "failed BOOLEAN: whether the result says that the task failed",
    "outcome STRING: done, failed, open, unanswered",
    "queue_us BIGINT (microseconds): from the client's POST (at a worker's tap the broker's) to the "
    "sign that it runs",
    "run_us BIGINT (microseconds): from that sign to the result",
    "latency_us BIGINT (microseconds): from the POST to the result",
    "stated_run_s BIGINT (seconds): task_completed less task_started as the worker states them",
)

KEYS = ("tap", "uuid")
STATE = "jobs_known"
TABLES = {"jobs": JOBS, "job_parts": JOB_PARTS}

KINDS = {
    # between client and broker
    "PostClient": "post",
    "GetClient": "get",
    "DeleteClient": "delete",
    "MmiClient": "post",
    "ResponseClient": "response",
    "MmiBroker": "response",
    "EventClient": "event",
    # between broker and worker
    "PostWorker": "post",
    "GetWorker": "get",
    "MmiWorker": "post",
    "ResponseWorker": "response",
    "EventWorker": "event",
}
"""Meaning of each message for a job."""

NO_FIELDS = dict.fromkeys(
    ("status", "worker", "word", "workers", "entries", "task", "client", "service", "target"),
    "cast(null as string)",
) | {"status": "cast(null as bigint)"}
"""SQL of the columns that some messages have."""

BODY = "cast(body as string)"

ENTRIES = f"map_filter(from_json({BODY}, 'map<string,string>'), (k, v) -> v like '{{%')"
"""The members of a body that are objects: `{worker: {"result": …, "failed": …}}`."""

ENTRY = "from_json(e.value, 'struct<failed: boolean, task_started: string, task_completed: string>')"

IS_RESULT = (
    "coalesce(array_contains(json_object_keys(e.value), 'failed') "
    "or array_contains(json_object_keys(e.value), 'result'), false)"
)
"""Whether an entry is a worker's result and no other object."""


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the tables `jobs` and `job_parts`."""
    messages = union(
        select(typed, protocol, message, NO_FIELDS | _fields(protocol, message))
        for message in _reads(protocol)
        if message in typed
    )
    messages = messages.drop("octets", "sender")
    return track(messages, protocol, KEYS, JobTracker, TABLES, STATE, state)


def _fields(protocol: str, message: str) -> dict[str, str]:
    """Return the SQL of what a job reads of a message."""
    columns = load_schemas(protocol).SCHEMAS[message].fieldNames()
    kind, to_worker = KINDS[message], "client_address" in columns
    fields = {
        "uuid": "uuid",
        "kind": f"'{kind}'",
        "leg": "'worker'" if to_worker else "'client'",
        "name": "if(peer like '%://%', null, coalesce(try_validate_utf8(try_to_binary(peer, 'hex')), peer))",
    }
    if kind == "response":
        run_s = f"{_seconds('task_completed')} - {_seconds('task_started')}"
        result = f"struct(e.key as worker, {ENTRY}.failed as failed, {run_s} as run_s, {IS_RESULT} as ok)"
        return fields | {
            "status": "try_cast(substring(status, 1, 3) as bigint)",
            "worker": _member("worker"),
            "word": _member("status"),
            "workers": _member("workers"),
            "entries": f"to_json(filter(transform(map_entries({ENTRIES}), e -> {result}), e -> e.ok))",
        }
    fields["task"] = _member("task")
    if kind == "event":
        return fields | {"worker": _member("worker")}
    if to_worker:
        fields["client"] = "try_validate_utf8(cast(client_address as string))"
    return fields | {name: name for name in ("service", "target") if name in columns}


def _member(name: str) -> str:
    return f"get_json_object({BODY}, '$.{name}')"


def _seconds(member: str) -> str:
    """Return the time of an entry in seconds; null if it is not written as by C's `ctime`."""
    text = f"regexp_replace(substring({ENTRY}.{member}, 5), ' +', ' ')"
    return f"unix_timestamp(try_to_timestamp({text}, 'MMM d HH:mm:ss yyyy'))"


def _reads(protocol: str) -> tuple[str, ...]:
    return present(protocol, KINDS) if specifics_of(protocol).jobs else ()


CONTINUED = Continued("jobs", _reads, TABLES, {STATE: state_schema(KEYS)}, advance)
