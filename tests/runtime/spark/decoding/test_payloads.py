"""Payloads with a schema of their own: Spark makes the columns that Arrow makes, as docs/how-to/payloads.md shows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from specwire.generated import flux
from specwire.runtime.schemas import payloads as arrow
from specwire.runtime.spark import tables, with_payloads
from specwire.runtime.spark.errors import InputError

pytestmark = pytest.mark.spark

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "wait": {"type": "number"},
        "user": {"type": "object", "properties": {"name": {"type": "string"}, "root": {"type": "boolean"}}},
        "ranks": {"type": "array", "items": {"type": "integer"}},
        "users": {
            "type": "array",
            "items": {"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
        },
        "more": {},
    },
}
PAYLOADS = [
    b'{"id": 1, "wait": 2.5, "user": {"name": "ann", "root": true}, "ranks": [1, 2], "more": {"a": [1]}}\0',
    b'{"id": 1, "wait": 2, "more": "text"}',
    b'{"id": "1", "wait": "2", "user": [], "ranks": {}, "more": null}',
    b'{"id": 1.5, "user": {"name": null, "root": 1}, "ranks": [1, "2"], "unknown": 1}',
    b'{"id": 9223372036854775808, "wait": true}',
    b'{"users": [{"name": "ann", "age": 7}, {"age": 8}]}',
    b'{"users": [{"name": "ann", "age": "7"}], "id": 2}',
    b'{"users": [{"name": "ann"}, 5], "id": 2}',
    b'{"users": [{"name": "ann"}, null], "ranks": [null], "id": -5}',
    b'  {"id": 3}  ',
    b'{"id": 4',
    b"[1]",
    b"7",
    b"",
    b"\xff",
    '{"user": {"name": "\u00e9\U0001f600"}}'.encode(),
]
TOPICS = ["sched.alloc", "sched.alloc\n", "xsched.alloc", "sched.free", "schedXfree"]


def test_the_same_columns_as_arrow_makes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "alloc.json").write_text(json.dumps(SCHEMA))
    profile = tmp_path / "profile.toml"
    profile.write_text(
        '[[payload]]\ntopic = "sched.alloc"\njson-schema = "alloc.json"\n'
        '[[payload]]\ntopic = "sched.*"\nname = "any"\nmessage = "Response"\njson-schema = "alloc.json"\n'
    )
    payloads = arrow.load_payloads(profile, flux)
    messages = [flux.Request(topic="sched.alloc", payload=payload).encode() for payload in PAYLOADS]
    messages += [flux.Response(topic=topic, payload=PAYLOADS[0]).encode() for topic in TOPICS]
    messages += [flux.Control().encode(), [b"no message"]]
    batch = flux.columns.decode(pa.array(messages, pa.list_(pa.binary())))
    wanted = arrow.with_payloads(batch, payloads)
    found = with_payloads(spark.createDataFrame(pa.Table.from_batches([batch])), payloads)
    names = [payload.column for payload in payloads]
    rows = [row.asDict(recursive=True) for row in found.select(*names).collect()]
    assert rows == wanted.select(names).to_pylist()
    assert sum(row["_payload_any"] is not None for row in rows) == 3
    assert "sched" in found.schema["_payload_sched_alloc"].metadata["comment"]
    typed = tables(found, "flux")
    assert names == [name for name in typed["Response"].columns if name.startswith("_payload")]
    assert [name for name in typed["Control"].columns if name.startswith("_payload")] == []
    ids = typed["Request"].select("_payload_sched_alloc.id").where("id is not null").collect()
    assert [row.id for row in ids] == [1, 1, 2, 2, -5, 3]


def test_rows_without_the_messages_are_refused(spark: SparkSession) -> None:
    payload = arrow.Payload(
        "_payload_a", pa.struct([("a", pa.int64())]), "topic", "a", (("Request", "payload"),)
    )
    with pytest.raises(InputError, match="no column 'Request'"):
        with_payloads(spark.range(1), [payload])
