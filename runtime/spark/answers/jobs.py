"""NORFAB jobs: from a client's POST to the results of its workers, in both dialects.

A job is known by its uuid, in messages of two legs: client and broker, broker and worker. A
broker's tap sees both, the others one. What the bodies say (the task, the workers that it went to,
each worker's result) is read by Spark's JSON functions and goes to Python as short JSON texts: for
a list column that is mostly null Spark weighs each batch again with every row. There a worker folds
the words of each job in order (`specwire.runtime.spark.answers.jobfold`).

A worker's name comes from the bodies on the client's leg; on its own leg it is the peer of a
broker's tap. A worker's tap knows its broker's endpoint only, so there the worker is the one
connection, and gets its name from its result.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from specwire.runtime.spark.answers.folding import fold, state_schema
from specwire.runtime.spark.answers.jobfold import KEYS, JobFolder
from specwire.runtime.spark.answers.messages import take, together
from specwire.runtime.spark.answers.particulars import particulars_of
from specwire.runtime.spark.answers.registry import Continued
from specwire.runtime.spark.answers.schemas.jobs import JOB_PARTS, JOBS
from specwire.runtime.spark.answers.step import Frames, Step
from specwire.runtime.spark.protocols import load_schemas

CLIENT_LEG = {
    "PostClient": "post",
    "GetClient": "get",
    "DeleteClient": "delete",
    "MmiClient": "post",
    "ResponseClient": "response",
    "MmiBroker": "response",
    "EventClient": "event",
}
WORKER_LEG = {
    "PostWorker": "post",
    "GetWorker": "get",
    "MmiWorker": "post",
    "ResponseWorker": "response",
    "EventWorker": "event",
}
"""Meaning of each message for a job."""

ENTRY = "struct<failed: boolean, task_started: string, task_completed: string>"

TEXT = "cast(body as string)"

ENTRIES = f"map_filter(from_json({TEXT}, 'map<string,string>'), (k, v) -> v like '{{%')"
"""The members of a body that are objects: `{worker: {"result": …, "failed": …}}`."""

SECONDS = (
    "unix_timestamp(try_to_timestamp(regexp_replace(substring(t, 5), ' +', ' '), 'MMM d HH:mm:ss yyyy'))"
)
"""The time of C's `ctime`, as workers write it, in seconds; null where it is none."""


def advance(typed: Frames, protocol: str, state: Frames | None = None) -> Step:
    """Continue the tables `jobs` and `job_parts`."""
    tables = {"jobs": JOBS, "job_parts": JOB_PARTS}
    return fold(_words(typed, protocol), state, KEYS, JobFolder, protocol, tables, "jobs_known")


def _words(typed: Frames, protocol: str) -> DataFrame:
    there = load_schemas(protocol).SCHEMAS
    asked = [
        take(typed, protocol, message, _asking(kind, there[message].fieldNames()))
        for message, kind in {**CLIENT_LEG, **WORKER_LEG}.items()
        if message in there and kind != "response"
    ]
    answered = [
        take(typed, protocol, message, _answering(there[message].fieldNames()))
        for message, kind in {**CLIENT_LEG, **WORKER_LEG}.items()
        if message in there and kind == "response"
    ]
    return together([*asked, *answered]).drop("octets", "sender")


def _shared(fields: list[str]) -> dict[str, str]:
    leg = "worker" if "client_address" in fields else "client"
    return {
        "uuid": "uuid",
        "leg": f"'{leg}'",
        "name": "if(peer like '%://%', null, coalesce(try_validate_utf8(try_to_binary(peer, 'hex')), peer))",
    }


def _asking(kind: str, fields: list[str]) -> dict[str, str]:
    words = _shared(fields) | {"kind": f"'{kind}'", "task": f"get_json_object({TEXT}, '$.task')"}
    if kind == "event":
        return words | {"worker": f"get_json_object({TEXT}, '$.worker')"}
    words |= {name: name for name in ("service", "target") if name in fields}
    if "client_address" in fields:
        words["client"] = "try_validate_utf8(cast(client_address as string))"
    return words


def _answering(fields: list[str]) -> dict[str, str]:
    entry = f"from_json(e.value, '{ENTRY}')"
    started, completed = (
        SECONDS.replace("(t,", f"({entry}.{name},") for name in ("task_started", "task_completed")
    )
    said = f"struct(e.key as worker, {entry}.failed as failed, {completed} - {started} as run_s, {_is_result()} as ok)"
    return _shared(fields) | {
        "kind": "'response'",
        "status": "try_cast(substring(status, 1, 3) as bigint)",
        "worker": f"get_json_object({TEXT}, '$.worker')",
        "word": f"get_json_object({TEXT}, '$.status')",
        "workers": f"get_json_object({TEXT}, '$.workers')",
        "entries": f"to_json(filter(transform(map_entries({ENTRIES}), e -> {said}), e -> e.ok))",
    }


def _is_result() -> str:
    """Return the SQL that distinguishes a worker's entry from other objects in an answer."""
    return (
        "coalesce(array_contains(json_object_keys(e.value), 'failed') "
        "or array_contains(json_object_keys(e.value), 'result'), false)"
    )


def _reads(protocol: str) -> tuple[str, ...]:
    there = load_schemas(protocol).SCHEMAS
    return tuple(message for message in {**CLIENT_LEG, **WORKER_LEG} if message in there)


CONTINUED = (
    Continued(
        name="jobs",
        applies=lambda protocol: particulars_of(protocol).jobs,
        reads=_reads,
        writes={"jobs": JOBS, "job_parts": JOB_PARTS},
        keeps={"jobs_known": state_schema(KEYS)},
        advance=advance,
    ),
)
