"""Small sound stores of a broker, a worker and a client."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from specwire.runtime.norfab import brokerstore
from specwire.runtime.norfab.client import store as clientstore
from specwire.runtime.norfab.records import (
    AssignedRecord,
    DeletedRecord,
    EventRecord,
    JobRecord,
    Record,
    ResultRecord,
    TaskRecord,
    WorkerRecord,
    worker_key,
)
from specwire.runtime.norfab.rows import INSERT, make_row
from specwire.runtime.norfab.worker import store as workerstore

BROKER, WORKER, CLIENT = "broker", "worker", "client"
FILES = {BROKER: "broker.sqlite3", WORKER: "worker.sqlite3", CLIENT: "client.db"}
SCHEMAS = {BROKER: brokerstore.SCHEMA, WORKER: workerstore.SCHEMA, CLIENT: clientstore.SCHEMA}


def job(uuid: str, *slots: str, body: bytes = b"{}") -> JobRecord:
    """Return a job whose parts are given to the workers of that name."""
    parts = tuple(TaskRecord(slot, slot, 1) for slot in slots)
    return JobRecord(uuid, b"c1", "ada", "svc", "all", body, 1.5, 2.5, parts)


BROKER_RECORDS: tuple[Record, ...] = (
    WorkerRecord(worker_key("w1"), "w1", "svc"),
    job("a", "w1", "w2"),
    ResultRecord("a", "w1", 200, b'{"w1": 1}', 3.25),
    EventRecord("a", 3.0, b"\xff\x00"),
    ResultRecord("a", "w2", 200, b"{}", 3.5),
    job("b"),
    AssignedRecord("b", (TaskRecord("w1", "w2", 2),)),
    job("c"),
    ResultRecord("c", "", 408, b"{}", 4.0),  # no worker was found
    DeletedRecord("d", "svc", 4.5),
    EventRecord("d", 4.5, b"{}"),  # was queued before the deletion
    ResultRecord("d", "w1", 200, b"{}", 4.5),
    job("e", "w1"),
)
"""Jobs a and c have ended, b and e are open, d was deleted."""


def make_store(folder: Path, kind: str) -> Path:
    """Create a sound store, and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILES[kind]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for statement in SCHEMAS[kind].statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMAS[kind].version}")
    if kind == BROKER:
        add(path, BROKER_RECORDS)
    elif kind == WORKER:
        _fill_worker(path)
    else:
        _fill_client(path)
    return path


def add(path: Path, records: Iterable[Record]) -> None:
    """Append records to the store of a broker."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(f"{INSERT} (?, ?, ?, ?, ?)", [make_row(record) for record in records])


def change(path: Path, *statements: str) -> None:
    """Execute SQL."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def _fill_worker(path: Path) -> None:
    change(
        path,
        """INSERT INTO job VALUES (1, 'a', x'ff01', 'paint', x'', 1.5, 0), (2, 'b', x'6332', 'paint', x'', 1.5, 0),
        (3, 'c', x'6332', 'paint', x'7b7d', 2.5, 0), (4, 'd', x'6332', 'paint', x'7b7d', 2.5, 1)""",
        "INSERT INTO result VALUES (1, x'7b7d', 3.5, 0, 1, 0), (2, x'', 4.5, 0, 0, 1)",
        "INSERT INTO begun VALUES (1, 3)",
    )


def _fill_client(path: Path) -> None:
    change(
        path,
        """INSERT INTO jobs VALUES ('z', 'svc', 'paint', 'all', x'7b7d', 1.5, 9.5),
        ('a', 'svc', 'paint', 'any', x'7b7d', 2.5, 9.5), ('n', 'svc', 'paint', 'any', x'7b7d', 3.5, 9.5)""",
        """INSERT INTO states VALUES ('z', 'COMPLETED', '["w1","w2"]', 9.5, 200, '', 5.5, 4),
        ('a', 'STARTED', '["w1"]', 9.5, 200, '', 0.0, 0), ('old', 'STALE', '[]', 9.5, 408, 'late', 5.5, 0)""",
        "INSERT INTO results VALUES ('z', 'w2', 200, x'7b7d', 4.5), ('z', 'w1', 200, x'7b7d', 5.5)",
        "INSERT INTO events VALUES ('a', 3.5, x'7b7d'), ('z', 4.5, x'fe')",
    )
