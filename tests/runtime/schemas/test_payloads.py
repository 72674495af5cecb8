"""Payloads with a JSON Schema become columns of the types that it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from specwire.generated import filemq, flux, norfab
from specwire.runtime.schemas.json_types import JsonTypeError, struct_of
from specwire.runtime.schemas.payloads import PayloadError, load_payloads, with_payloads
from tests.runtime.cli.commands import specwire

GRAMMARS = Path(__file__).parents[3] / "grammars"

ALLOC = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "wait": {"type": ["number", "null"]},
        "user": {"$ref": "#/$defs/user"},
        "ranks": {"type": "array", "items": {"type": "integer"}},
        "state": {"enum": ["run", "stop"]},
        "more": {},
    },
    "$defs": {"user": {"properties": {"name": {"type": "string"}, "root": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}}},
}  # fmt: skip
COLUMNS = pa.struct(
    [
        ("id", pa.int64()),
        ("wait", pa.float64()),
        ("user", pa.struct([("name", pa.string()), ("root", pa.bool_())])),
        ("ranks", pa.list_(pa.int64())),
        ("state", pa.string()),
        ("more", pa.string()),
    ]
)


def profile(folder: Path, text: str, schema: object = ALLOC) -> Path:
    """Write a profile with its schema beside it."""
    (folder / "alloc.json").write_text(json.dumps(schema))
    path = folder / "profile.toml"
    path.write_text(text)
    return path


def decoded(*messages: Any) -> pa.RecordBatch:
    """Return rows of Flux."""
    rows = [message if isinstance(message, list) else message.encode() for message in messages]
    batch: pa.RecordBatch = flux.columns.decode(pa.array(rows, pa.list_(pa.binary())))
    return batch


def test_a_schema_gives_columns() -> None:
    assert struct_of(ALLOC) == COLUMNS


def test_alternatives_beside_properties_decide_nothing() -> None:
    schema = {
        "properties": {"kind": {"type": "string"}, "pid": {"type": "integer"}},
        "oneOf": [{"required": ["pid"]}, {"properties": {"kind": {"const": "end"}}}],
    }
    assert struct_of(schema) == pa.struct([("kind", pa.string()), ("pid", pa.int64())])


def test_payloads_of_the_flux_profile_are_columns() -> None:
    payloads = {one.column: one for one in load_payloads(GRAMMARS / "flux" / "profile.toml", flux)}
    exec_request = flux.Request(topic="rexec.exec", payload=b'{"cmd":{"cmdline":["ls"]},"flags":3}\0')
    started = flux.Response(topic="rexec.exec", payload=b'{"type":"started","pid":7}\0')
    batch = with_payloads(decoded(exec_request, started), tuple(payloads.values()))
    rows: list[list[Any]] = [
        batch[f"_payload_rexec_exec_{name}"].to_pylist() for name in ("request", "response")
    ]
    request, response = rows
    assert (request[0]["cmd"]["cmdline"], request[0]["flags"], request[1]) == (["ls"], 3, None)
    assert (response[0], response[1]["type"], response[1]["pid"]) == (None, "started", 7)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "array"}, "object"),
        ({}, "object"),
        (True, "object"),
        ({"properties": {"a": {"$ref": "#/$defs/no"}}}, "not there"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "not in the schema itself"),
        ({"properties": {"a": {"$ref": "#"}}}, "refers to itself"),
    ],
)
def test_a_schema_without_columns_is_refused(schema: object, told: str) -> None:
    with pytest.raises(JsonTypeError, match=told):
        struct_of(schema)


def test_properties_stand_in_a_column_of_their_own(tmp_path: Path) -> None:
    """With NUL at the end or without; other topics, other messages and what is no JSON have null there."""
    path = profile(tmp_path, '[[payload]]\ntopic = "sched.alloc"\njson-schema = "alloc.json"\n')
    payloads = load_payloads(path, flux)
    full = {
        "id": 7,
        "wait": 2,
        "user": {"name": "ann", "root": False},
        "ranks": [1, 2],
        "state": "run",
        "more": [1],
    }
    batch = decoded(
        flux.Request(topic="sched.alloc", payload=json.dumps(full).encode() + b"\0"),
        flux.Response(topic="sched.alloc", payload=b'{"id": 8}'),
        flux.Request(topic="sched.free", payload=b'{"id": 9}'),
        flux.Request(topic="sched.alloc", payload=b"[1]"),
        flux.Request(topic="sched.alloc", payload=b"\xff"),
        flux.Request(topic="sched.alloc"),
        flux.Control(),
        [b"no message"],
    )
    found = with_payloads(batch, payloads)
    assert found.schema.field("_payload_sched_alloc").type == COLUMNS
    nothing = dict.fromkeys(full)
    assert found["_payload_sched_alloc"].to_pylist() == [
        full | {"more": "[1]"},
        nothing | {"id": 8},
        *[None] * 6,
    ]
    assert flux.columns.encode(found) == flux.columns.encode(batch)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", "7"), ("id", 1.5), ("id", True), ("id", 2**63), ("wait", "2"), ("wait", False), ("user", []), ("user", "ann"),
        ("ranks", {}), ("user", {"root": 1}),
    ],
)  # fmt: skip
def test_what_is_not_of_its_type_is_null(tmp_path: Path, key: str, value: object) -> None:
    path = profile(tmp_path, '[[payload]]\ntopic = "a"\njson-schema = "alloc.json"\n')
    batch = decoded(flux.Request(topic="a", payload=json.dumps({key: value, "state": "run"}).encode()))
    row: Any = with_payloads(batch, load_payloads(path, flux))["_payload_a"].to_pylist()[0]
    assert row["state"] == "run"
    assert row[key] in (None, {"name": None, "root": None})


def test_a_pattern_a_name_and_one_message_only(tmp_path: Path) -> None:
    path = profile(
        tmp_path,
        '[[payload]]\ntopic = "kvs.*"\nname = "store"\nmessage = "Response"\njson-schema = "alloc.json"\n',
    )
    batch = decoded(
        flux.Request(topic="kvs.get", payload=b'{"id": 1}'),
        flux.Response(topic="kvs.get", payload=b'{"id": 2}'),
        flux.Response(topic="kvsXget", payload=b'{"id": 3}'),
    )
    column = with_payloads(batch, load_payloads(path, flux))["_payload_store"].to_pylist()
    assert [row and row["id"] for row in column] == [None, 2, None]


def test_another_field_may_say_which_kind_it_is(tmp_path: Path) -> None:
    """Jobs of NORFAB have a service, not a topic."""
    path = profile(tmp_path, '[[payload]]\ntopic = "cli"\nby = "service"\njson-schema = "alloc.json"\n')
    (payload,) = load_payloads(path, norfab)
    assert ("PostClient", "body") in payload.places
    assert all(class_name != "PostWorker" for class_name, _ in payload.places)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[payload]\n", "payload is `topic`"),
        ('[[payload]]\ntopic = "a"\n', "json-schema"),
        ('[[payload]]\ntopic = "a"\njson-schema = "none.json"\n', "none.json cannot be read"),
        ('[[payload]]\ntopic = "a"\njson-schema = "alloc.json"\ntopics = 1\n', "topics"),
        ('[[payload]]\ntopic = "a"\nmessage = "No"\njson-schema = "alloc.json"\n', "no message of Flux v1"),
        ('[[payload]]\ntopic = "*"\njson-schema = "alloc.json"\n', "add `name`"),
        ('[[payload]]\ntopic = "a"\njson-schema = "alloc.json"\n' * 2, "two payloads"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_file(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(PayloadError, match=told) as caught:
        load_payloads(profile(tmp_path, text), flux)
    assert str(tmp_path) in str(caught.value)


def test_a_protocol_without_topics_says_so(tmp_path: Path) -> None:
    path = profile(tmp_path, '[[payload]]\ntopic = "a"\njson-schema = "alloc.json"\n')
    with pytest.raises(PayloadError, match="no message of FILEMQ v2 has 'topic'"):
        load_payloads(path, filemq)


def test_the_command_shows_the_columns(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Beside those of the messages; what cannot be used is told in a sentence."""
    path = profile(tmp_path, '[[payload]]\ntopic = "a"\njson-schema = "alloc.json"\n')
    shown = specwire(capfd, "schema", "flux", "--format", "arrow", "--payloads", str(path))
    assert shown.status == 0 and "_payload_a: struct<id: int64, wait: double" in shown.out
    refused = specwire(capfd, "schema", "filemq", "--format", "arrow", "--payloads", str(path))
    assert refused.status == 2 and "no message of FILEMQ v2" in refused.err
    elsewhere = specwire(capfd, "schema", "flux", "--payloads", str(path))
    assert elsewhere.status == 2 and "--format arrow" in elsewhere.err


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
@pytest.mark.parametrize("name", ["/dev/zero", "."])
def test_a_schema_that_is_no_file(tmp_path: Path, name: str) -> None:
    path = profile(tmp_path, f'[[payload]]\ntopic = "t"\njson-schema = "{name}"\n')
    with pytest.raises(PayloadError, match="is not a file"):
        load_payloads(path, flux)


def test_a_schema_is_read_up_to_a_bound(tmp_path: Path) -> None:
    """4 MiB; blanks around JSON mean nothing."""
    path = profile(tmp_path, '[[payload]]\ntopic = "t"\njson-schema = "alloc.json"\n')
    text = json.dumps(ALLOC)
    (tmp_path / "alloc.json").write_text(text.ljust(4 * 1024 * 1024))
    assert len(load_payloads(path, flux)) == 1
    (tmp_path / "alloc.json").write_text(text.ljust(4 * 1024 * 1024 + 1))
    with pytest.raises(PayloadError, match=r"more than 4,194,304 octets"):
        load_payloads(path, flux)


def test_a_profile_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(PayloadError, match="is not a file"):
        load_payloads(tmp_path, flux)
