"""Payloads of a profile: types of JSON Schemas, classes of packages, changes between editions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.compare import compare
from specwire.generator.diagnostics import SpecError
from specwire.generator.packages import package_files
from specwire.generator.pipeline import Compilation, compile_protocol
from specwire.generator.targets import choose_targets
from tests.generator.packages import imported

GRAMMAR = """\
ticker  = request / tick
request = %x01 topic body
tick    = %x02 topic body
topic   = size *VCHAR
size    = OCTET
body    = *OCTET
"""
PROFILE = 'name = "ticker"\n[types.body]\ncontent = "json"\n'
TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def table(topic: str, **keys: str) -> str:
    more = "".join(f"{key.replace('_', '-')} = {json.dumps(value)}\n" for key, value in keys.items())
    return f"[[payload]]\ntopic = {json.dumps(topic)}\n{more}"


def compiled(folder: Path, schemas: Mapping[str, Any], profile: str = "") -> Compilation:
    """Compile a ticker with a payload of each topic in `schemas`."""
    place = folder / "ticker"
    place.mkdir(parents=True, exist_ok=True)
    (place / "grammar.abnf").write_text(GRAMMAR)
    tables = ""
    for number, (topic, schema) in enumerate(schemas.items()):
        (place / f"{number}.json").write_text(json.dumps(schema))
        tables += table(topic, json_schema=f"{number}.json")
    (place / "profile.toml").write_text(PROFILE + tables + profile)
    return compile_protocol(place)


def type_of(folder: Path, schema: Any) -> ir.PayloadType:
    (payload,) = compiled(folder, {"a": schema}).protocol.payloads.payloads
    return payload.type


STRING, INTEGER = ir.ScalarPayload("string"), ir.ScalarPayload("integer")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (TEXT, STRING),
        ({}, ir.AnyPayload()),
        ({"type": "integer", "minimum": 1}, ir.ScalarPayload("integer", limits=(("minimum", 1),))),
        ({"type": "array", "items": TEXT}, ir.ListPayload(STRING)),
        ({"type": "array"}, ir.ListPayload(ir.AnyPayload())),
        ({"type": "object"}, ir.MapPayload(ir.AnyPayload())),
        ({"type": "object", "additionalProperties": TEXT}, ir.MapPayload(STRING)),
        (
            {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
            ir.MapPayload(ir.AnyPayload()),
        ),
        ({"enum": ["a", "b"]}, ir.ScalarPayload("string", ("a", "b"))),
        ({"const": 3}, ir.ScalarPayload("integer", (3,))),
        ({"enum": ["a", 3]}, ir.AnyPayload()),
        ({"type": ["string", "null"]}, ir.UnionPayload((STRING,), null=True)),
        ({"type": ["string", "integer"]}, ir.UnionPayload((STRING, INTEGER))),
        ({"anyOf": [TEXT, {"type": "null"}]}, ir.UnionPayload((STRING,), null=True)),
        ({"anyOf": [TEXT, {"enum": ["a"]}]}, ir.AnyPayload()),  # JSON does not distinguish them
        ({"$ref": "#/$defs/a", "$defs": {"a": TEXT}}, STRING),
        ({"$ref": "#/$defs/b", "$defs": {"a": TEXT}}, ir.AnyPayload()),
        ({"$ref": "#"}, ir.AnyPayload()),  # never ends
    ],
)
def test_type_of_a_schema(tmp_path: Path, schema: Any, expected: ir.PayloadType) -> None:
    assert type_of(tmp_path, schema) == expected


def test_object_has_keys(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "description": "A trade.",
        "properties": {"price": NUMBER, "by": TEXT},
        "required": ["price"],
        "additionalProperties": False,
    }
    payloads = compiled(tmp_path, {"trade.*": schema}).protocol.payloads
    keys = ir.PayloadKey("price", ir.ScalarPayload("number"), True), ir.PayloadKey("by", STRING, False)
    assert payloads.classes == (ir.PayloadObject("Trade", keys, "A trade.", closed=True),)
    (payload,) = payloads.payloads
    assert (payload.topic, payload.by) == ("trade.*", "topic")
    assert payload.places == (("Request", "body"), ("Tick", "body"))


def test_equal_definitions_of_two_schemas_are_one_class(tmp_path: Path) -> None:
    def schema(definition: Any) -> Any:
        keys = {"by": {"$ref": "#/$defs/user"}}
        return {"type": "object", "properties": keys, "$defs": {"user": definition}}

    user = {"type": "object", "properties": {"name": TEXT}}
    other = {"type": "object", "properties": {"name": NUMBER}}
    schemas = {"a": schema(user), "b": schema(user), "c": schema(other)}
    classes = compiled(tmp_path, schemas).protocol.payloads.classes
    assert [one.class_name for one in classes] == ["User", "A", "B", "User2", "C"]


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
def test_file_that_is_no_schema_is_an_error(tmp_path: Path, text: str) -> None:
    compiled(tmp_path, {"a": TEXT})
    (tmp_path / "ticker" / "0.json").write_text(text)
    with pytest.raises(SpecError, match=r"profile.toml:6:1: error\[E510\]"):
        compile_protocol(tmp_path / "ticker")


@pytest.mark.parametrize("keys", [{"message": "Trade"}, {"by": "subject"}, {"field": "content"}])
def test_payload_that_no_message_has_is_reported(tmp_path: Path, keys: dict[str, str]) -> None:
    (tmp_path / "ticker").mkdir()
    (tmp_path / "ticker" / "x.json").write_text("{}")
    found = compiled(tmp_path, {}, table("a", json_schema="x.json", **keys))
    assert [warning.code for warning in found.warnings] == ["W425"]
    assert found.protocol.payloads == ir.Payloads()


TRADE = {
    "type": "object",
    "properties": {
        "price": {"type": "number", "minimum": 0},
        "class": {"enum": ["a", "b"]},
        "2nd": TEXT,
        "tree": {"$ref": "#/$defs/tree"},
    },
    "required": ["price"],
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        }
    },
}
STATE = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": "open"}, "at": NUMBER},
            "required": ["kind", "at"],
        },
        {"type": "object", "properties": {"kind": {"const": "closed"}}, "required": ["kind"]},
    ]
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("payloads")
    protocol = compiled(
        folder, {"trade": TRADE, "state": STATE, "names": {"type": "array", "items": TEXT}}
    ).protocol
    with imported(folder / "out", [protocol], "package") as (found,):
        yield found


def read(package: ModuleType, topic: str, body: bytes) -> Any:
    return package.payloads.read(package.Tick(topic=topic, body=body))


def test_payload_is_read_as_its_class(package: ModuleType) -> None:
    payloads = package.payloads
    found = read(package, "trade", b'{"price": 1, "class": "b", "2nd": "x", "more": 0}')
    assert (found.topic, found.field, found.fault) == ("trade", "body", "")
    assert found.value == {"price": 1, "class": "b", "2nd": "x", "more": 0}
    assert found.typed == payloads.Trade(price=1.0, class_="b", key_2nd="x")
    assert msgspec.json.encode(found.typed) == b'{"price":1.0,"class":"b","2nd":"x"}'


def test_class_may_contain_itself(package: ModuleType) -> None:
    found = read(package, "trade", b'{"price": 1, "tree": {"below": [{"below": []}, {}]}}')
    tree = package.payloads.Tree
    assert found.typed.tree == tree(below=[tree(below=[]), tree()])


def test_constant_key_chooses_the_class(package: ModuleType) -> None:
    assert read(package, "state", b'{"kind": "open", "at": 2}').typed == package.payloads.StateOpen(at=2.0)
    assert read(package, "state", b'{"kind": "closed"}').typed == package.payloads.StateClosed()


@pytest.mark.parametrize(
    ("topic", "body", "fault"),
    [
        ("trade", b"{}", "Object missing required field `price`"),
        ("trade", b'{"price": -1}', "Expected `float` >= 0.0 - at `$.price`"),
        ("trade", b'{"price": "1"}', "Expected `float`, got `str` - at `$.price`"),
        ("trade", b'{"price": 1, "class": "c"}', "Invalid enum value 'c' - at `$.class`"),
        ("state", b'{"kind": "lost"}', "Invalid value 'lost' - at `$.kind`"),
        ("names", b"[1]", "Expected `str`, got `int` - at `$[0]`"),
        ("trade", b'{"price": 1', "Input data was truncated"),
    ],
)
def test_payload_that_does_not_fit_says_why(package: ModuleType, topic: str, body: bytes, fault: str) -> None:
    found = read(package, topic, body)
    assert found.typed is None
    assert found.fault == f"payload does not fit {topic}: {fault}"


@pytest.mark.parametrize(("topic", "body"), [("other", b"{}"), ("trade", b""), ("trade", b"no such thing")])
def test_other_payloads_are_not_judged(package: ModuleType, topic: str, body: bytes) -> None:
    assert read(package, topic, body) is None


def test_package_without_payloads_has_no_module(tmp_path: Path) -> None:
    files = package_files([compiled(tmp_path, {}).protocol], choose_targets(["package"]))
    assert "ticker/payloads.py" not in files
    assert "payloads" not in files["ticker/__init__.py"]


def changes(tmp_path: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, ...]]:
    editions = (compiled(tmp_path / name, schemas).protocol for name, schemas in (("1", old), ("2", new)))
    return [
        (one.subject, one.kind, one.name, str(one.old_reads_new.verdict), str(one.new_reads_old.verdict))
        for one in compare(*editions).changes
    ]


def keys(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"a": {"type": "object", "properties": properties, "required": required}}


def test_equal_payloads_are_no_change(tmp_path: Path) -> None:
    assert changes(tmp_path, keys(["x"], x=TEXT), keys(["x"], x=TEXT)) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"a": TEXT}, ("payload", "added", "a (Request, Tick)", "yes", "yes")),
        ({"a": TEXT}, {}, ("payload", "removed", "a (Request, Tick)", "yes", "yes")),
        ({"a": TEXT}, {"a": NUMBER}, ("payload", "retyped", "a (Request, Tick)", "depends", "depends")),
        (keys([], x=TEXT), keys([], x=TEXT, y=TEXT), ("key", "added", "y", "yes", "yes")),
        (keys([], x=TEXT), keys(["y"], x=TEXT, y=TEXT), ("key", "added", "y", "yes", "depends")),
        (keys(["y"], x=TEXT, y=TEXT), keys([], x=TEXT), ("key", "removed", "y", "depends", "yes")),
        (keys([], x=TEXT), keys(["x"], x=TEXT), ("key", "presence", "x", "yes", "depends")),
        (keys([], x=TEXT), keys([], x=NUMBER), ("key", "retyped", "x", "depends", "depends")),
    ],
)
def test_change_of_a_payload(tmp_path: Path, old: Any, new: Any, expected: tuple[str, ...]) -> None:
    assert changes(tmp_path, old, new) == [expected]
