"""The stores of a broker, a worker and a client as data: tables, types, and rules of a sound store.

`storetools` reads stores by these descriptions. One row is sound if it has the types of its `TableLayout`;
rows together are sound if no `Rule` finds one. The rules follow from the order of commits:

- Broker: the record of a job comes before all others of its uuid. Retention deletes every row of a uuid.
  A DELETE replaces them by a deletion; records that were queued behind it may follow. A worker has one
  record.
- Worker: a result has the number of its job. Deleting a job deletes its result.
- Client: a state that has ended may outlive its job, until it is deleted by age. Everything else belongs
  to a job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from specwire.runtime.norfab.records import AssignedRecord, JobRecord, WorkerRecord, worker_key
from specwire.runtime.norfab.rows import ASSIGNED, DELETED, EVENT, JOB, RESULT, WORKER, read_record

Row = dict[str, Any]


class TableLayout(msgspec.Struct, frozen=True):
    """Rows that are one kind of record.

    Attributes:
        name: of the table.
        kind: of the record; empty where `decode` returns it.
        select: all rows, with a column ``uuid``.
        key: columns of `select`, unique together, whose ascending order is the order of writing.
        fields: columns that are checked and exported, with their types.
        decode: returns kind and fields of the record in a row; raises ValueError.
    """

    name: str
    kind: str
    select: str
    key: tuple[str, ...]
    fields: Mapping[str, type]
    decode: Callable[[Row], tuple[str, Row]] | None = None


class Rule(msgspec.Struct, frozen=True):
    """A fault, and the query that finds it: name and uuid of each row at fault."""

    fault: str
    select: str


class Kind(msgspec.Struct, frozen=True):
    """One kind of store.

    Attributes:
        peer: whose store it is.
        file: name of the database.
        version: its `PRAGMA user_version`.
        tables: in the order of an export.
        rules: of rows together.
        counts: queries for the numbers of a summary.
    """

    peer: str
    file: str
    version: int
    tables: tuple[TableLayout, ...]
    rules: tuple[Rule, ...]
    counts: Mapping[str, str]


def decode_record(row: Row) -> tuple[str, Row]:
    """Return kind and fields of a broker's record; raises ValueError."""
    record = read_record(row["kind"], row["octets"], row["body"])
    fields: Row = {"number": row["number"], **msgspec.to_builtins(record, builtin_types=(bytes,))}
    if record.uuid != row["uuid"]:
        raise ValueError(f"its uuid is {record.uuid}")
    if fields.get("slot", "") != row["slot"]:
        raise ValueError(f"its slot is {fields.get('slot', '')}")
    if isinstance(record, WorkerRecord) and record.uuid != worker_key(record.name):
        raise ValueError(f"its worker is {record.name}")
    return type(record).__name__.removesuffix("Record").lower(), fields


def slots_of(kind: int, octets: bytes) -> str:
    """Return a JSON list of the slots in a job or assignment of a broker; an SQL function."""
    try:
        record = read_record(kind, octets, b"")
    except ValueError:
        return "[]"
    parts = record.tasks if isinstance(record, JobRecord | AssignedRecord) else ()
    return msgspec.json.encode([part.slot for part in parts]).decode()


def _table(name: str, kind: str, *key: str, also: str = "", **fields: type) -> TableLayout:
    """Return a table whose fields are its columns; `also` are more columns to select."""
    return TableLayout(
        name, kind, f"SELECT {', '.join(fields)}{also and f', {also}'} FROM {name}", key, fields
    )


_PARTS = f"""SELECT record.uuid, slots.value FROM record, json_each(slots_of(kind, octets)) AS slots
    WHERE kind IN ({JOB}, {ASSIGNED})"""
_RESULTS = f"SELECT uuid, slot FROM record WHERE kind = {RESULT}"
_JOBS = f"SELECT count(DISTINCT uuid) FROM record WHERE kind = {JOB}"
_UNFINISHED = f"""(uuid NOT IN (SELECT uuid FROM ({_RESULTS}))
    OR uuid IN (SELECT uuid FROM ({_PARTS} EXCEPT {_RESULTS})))"""

BROKER = Kind(
    "broker",
    "broker.sqlite3",
    2,
    (
        TableLayout(
            "record",
            "",
            "SELECT number, uuid, kind, slot, octets, body FROM record",
            ("number",),
            {"number": int, "uuid": str, "kind": int, "slot": str, "octets": bytes},
            decode_record,
        ),
    ),
    (
        Rule(
            "the store has no job of this uuid before it",
            f"""SELECT 'record ' || number, uuid FROM record WHERE kind IN ({ASSIGNED}, {RESULT}, {EVENT})
            AND NOT EXISTS (SELECT 1 FROM record AS job WHERE job.uuid = record.uuid
            AND job.number < record.number AND job.kind IN ({JOB}, {DELETED}))""",
        ),
        Rule(
            "a second job, deletion or worker of this uuid",
            f"""SELECT 'record ' || number, uuid FROM record WHERE kind IN ({JOB}, {DELETED}, {WORKER})
            AND EXISTS (SELECT 1 FROM record AS first WHERE first.uuid = record.uuid
            AND first.number < record.number AND first.kind IN ({JOB}, {DELETED}, {WORKER}))""",
        ),
        Rule(
            "a second result of the same part",
            f"""SELECT 'record ' || number, uuid FROM record WHERE kind = {RESULT} AND number NOT IN
            (SELECT min(number) FROM record WHERE kind = {RESULT} GROUP BY uuid, slot)""",
        ),
        Rule(
            "a result of a part that the job does not have",
            f"""SELECT 'record ' || number, uuid FROM record WHERE kind = {RESULT}
            AND uuid IN (SELECT uuid FROM record WHERE kind = {JOB}) AND (uuid, slot) NOT IN ({_PARTS})
            AND NOT (slot = '' AND uuid NOT IN (SELECT uuid FROM ({_PARTS})))""",
        ),
    ),
    {
        "open": f"{_JOBS} AND {_UNFINISHED}",
        "ended": f"{_JOBS} AND NOT {_UNFINISHED}",
        "deleted": f"SELECT count(*) FROM record WHERE kind = {DELETED}",
        "workers": f"SELECT count(*) FROM record WHERE kind = {WORKER}",
    },
)

WORKER_STORE = Kind(
    "worker",
    "worker.sqlite3",
    2,
    (
        _table(
            "job",
            "job",
            "number",
            number=int,
            uuid=str,
            client=bytes,
            task=str,
            body=bytes,
            accepted_at=float,
            held=bool,
        ),
        _table(
            "result",
            "result",
            "number",
            number=int,
            body=bytes,
            ended_at=float,
            failed=bool,
            fault=bool,
            deleted=bool,
            also="coalesce((SELECT uuid FROM job WHERE job.number = result.number), '') AS uuid",
        ),
        _table("begun", "begun", "one", number=int, also="one, '' AS uuid"),
    ),
    (
        Rule(
            "a result of a job that the store does not have",
            "SELECT 'result ' || number, '' FROM result WHERE number NOT IN (SELECT number FROM job)",
        ),
        Rule(
            "a second job of this uuid",
            """SELECT 'job ' || number, uuid FROM job
            WHERE number NOT IN (SELECT min(number) FROM job GROUP BY uuid)""",
        ),
        Rule(
            "a second number of the job that began last",
            "SELECT 'begun ' || one, '' FROM begun WHERE one <> 1",
        ),
    ),
    {
        "open": "SELECT count(*) FROM job WHERE number NOT IN (SELECT number FROM result)",
        "ended": "SELECT count(*) FROM job WHERE number IN (SELECT number FROM result WHERE NOT deleted)",
        "deleted": "SELECT count(*) FROM job WHERE number IN (SELECT number FROM result WHERE deleted)",
    },
)

_STATES = "'NEW', 'SUBMITTING', 'DISPATCHED', 'STARTED', 'COMPLETED', 'FAILED', 'STALE'"
_ENDED = "'COMPLETED', 'FAILED', 'STALE'"
_UNKNOWN = "NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.uuid = {0}.uuid)"
_NUMBER = "rowid AS number"
_NO_JOB = "its job is not in the store"

CLIENT = Kind(
    "client",
    "client.db",
    2,
    (
        _table(
            "jobs",
            "job",
            "created_at",
            "uuid",
            uuid=str,
            service=str,
            task=str,
            target=str,
            body=bytes,
            created_at=float,
            deadline=float,
        ),
        _table(
            "states",
            "state",
            "uuid",
            uuid=str,
            state=str,
            workers=str,
            deadline=float,
            code=int,
            error=str,
            ended_at=float,
            octets=int,
        ),
        _table(
            "results", "result", "number", uuid=str, worker=str, code=int, entry=bytes, at=float, also=_NUMBER
        ),
        _table("events", "event", "number", uuid=str, at=float, body=bytes, also=_NUMBER),
    ),
    (
        Rule(
            _NO_JOB,
            f"""SELECT 'states ' || uuid, uuid FROM states
            WHERE {_UNKNOWN.format("states")} AND coalesce(ended_at, 0) = 0""",
        ),
        *(
            Rule(
                _NO_JOB,
                f"""SELECT '{table} ' || rowid, uuid FROM {table} WHERE {_UNKNOWN.format(table)}
                AND NOT EXISTS (SELECT 1 FROM states WHERE states.uuid = {table}.uuid)""",
            )
            for table in ("results", "events")
        ),
        Rule(
            "an unknown state", f"SELECT 'states ' || uuid, uuid FROM states WHERE state NOT IN ({_STATES})"
        ),
        Rule(
            "the state and the time of the end contradict each other",
            f"SELECT 'states ' || uuid, uuid FROM states WHERE (state IN ({_ENDED})) <> (ended_at > 0)",
        ),
        Rule(
            "the list of workers is not JSON",
            "SELECT 'states ' || uuid, uuid FROM states WHERE NOT json_valid(workers)",
        ),
        Rule(
            "a completed job without the result of a worker",
            """SELECT 'states ' || uuid, uuid FROM states WHERE state = 'COMPLETED' AND EXISTS (SELECT 1
            FROM json_each(CASE WHEN json_valid(workers) THEN workers ELSE '[]' END) AS listed
            WHERE NOT EXISTS (SELECT 1 FROM results
            WHERE results.uuid = states.uuid AND worker = listed.value))""",
        ),
    ),
    {
        "open": "SELECT count(*) FROM jobs WHERE uuid NOT IN (SELECT uuid FROM states WHERE ended_at > 0)",
        "ended": "SELECT count(*) FROM jobs WHERE uuid IN (SELECT uuid FROM states WHERE ended_at > 0)",
    },
)

KINDS = (BROKER, WORKER_STORE, CLIENT)
