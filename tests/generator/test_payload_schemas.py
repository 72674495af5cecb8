"""Any JSON Schema: the classes can be imported, and accept what the schema accepts."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.generator.diagnostics import SpecError
from specwire.generator.emit.payloads import emit
from specwire.generator.passes.payloads import MAX_NESTING
from specwire.generator.pipeline import compile_protocol
from tests.generator.test_payload_types import compiled

NAME = "payloads_of_a_test"


@contextmanager
def classes(folder: Path, schema: Any) -> Iterator[Any]:
    """Run the module of payloads for a schema of the topic ``a``."""
    source = emit(compiled(folder, {"a": schema}).protocol)
    module = ModuleType(NAME)
    sys.modules[NAME] = module
    try:
        exec(compile(source, NAME, "exec"), module.__dict__)  # noqa: S102
        yield module
    finally:
        del sys.modules[NAME]


class Tick:
    """A message with a payload."""

    def __init__(self, value: Any) -> None:
        self.topic = "a"
        self.body = json.dumps(value).encode()


def fault(module: Any, value: Any) -> str:
    found = module.read(Tick(value))
    assert found is not None
    return str(found.fault)


KEYS = st.sampled_from(["a", "b", "list", "None", "class", "2", "", "\n", '"', "\\", "ä", "_x", "a-b", "a_b"])
TEXTS = st.sampled_from(["", "a", "b", '"""', "\\", "\n", "ä", "a.", '"'])
NUMBERS = st.sampled_from([0, 1, -1, 3, 2**63, 1.5])
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(KEYS, inner, min_size=1, max_size=3)
    keywords = {
        "description": TEXTS,
        "items": inner,
        "required": st.lists(KEYS, max_size=2, unique=True),
        "additionalProperties": st.one_of(st.booleans(), inner),
        "minimum": NUMBERS,
        "exclusiveMinimum": NUMBERS,
        "maximum": NUMBERS,
        "minLength": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "(", "."]),
    }
    typed = st.fixed_dictionaries(
        {"type": st.one_of(TYPES, st.lists(TYPES, min_size=1, max_size=3, unique=True))}, optional=keywords
    )
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": properties},
        optional={key: keywords[key] for key in ("required", "additionalProperties", "description")},
    )
    return st.one_of(
        typed,
        objects,
        st.fixed_dictionaries({"const": SCALARS}),
        st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"anyOf": st.lists(objects, min_size=1, max_size=3)}),
        st.just({"$ref": "#"}),
    )


SCHEMAS: st.SearchStrategy[Any] = st.recursive(st.just({}), schemas, max_leaves=5)


@settings(max_examples=60, deadline=None)
@given(schema=SCHEMAS, values=st.lists(VALUES, min_size=1, max_size=12))
def test_classes_accept_what_the_schema_accepts(schema: Any, values: list[Any]) -> None:
    from jsonschema import Draft202012Validator

    try:
        valid = [value for value in values if Draft202012Validator(schema).is_valid(value)]
    except (re.error, RecursionError):  # an invalid pattern, or a reference without an end
        valid = []
    with tempfile.TemporaryDirectory() as folder, classes(Path(folder), schema) as module:
        for value in valid:
            assert fault(module, value) == "", (schema, value)
        for value in values:
            fault(module, value)


@pytest.mark.parametrize("other", [{"type": "object"}, {"type": "array"}])
def test_pattern_beside_a_list_or_an_object_is_not_checked(tmp_path: Path, other: Any) -> None:
    """msgspec 0.22 crashes on such a union."""
    schema = {"anyOf": [{"type": "string", "pattern": "^a"}, other]}
    with classes(tmp_path, schema) as module:
        assert fault(module, {"a": 1} if other["type"] == "object" else [1]) == ""
        assert fault(module, "b") == ""
        assert fault(module, 1) != ""


def test_references_that_double_at_each_level_end(tmp_path: Path) -> None:
    """A schema of thirty definitions has a thousand million paths."""
    definitions = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
    with classes(tmp_path, {"$ref": "#/$defs/d0", "$defs": definitions}) as module:
        assert fault(module, 1) == ""


def test_schema_with_too_many_levels_is_an_error(tmp_path: Path) -> None:
    schema: Any = {}
    for _ in range(MAX_NESTING):
        schema = {"items": schema}
    with pytest.raises(SpecError, match=r"E510.*more than 100 levels"):
        compiled(tmp_path, {"a": schema})


def test_half_characters_are_any_text(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"\ud800": {}, "b": {"enum": ["\ud800"], "description": "\ud800"}},
    }
    with classes(tmp_path, schema) as module:
        assert fault(module, {"b": "x"}) == ""


def test_payload_of_the_base_is_inherited(tmp_path: Path) -> None:
    compiled(tmp_path, {"a": {"type": "integer"}})
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast" / "profile.toml").write_text('name = "fast"\nbase = "ticker"\n')
    protocol = compile_protocol(tmp_path / "fast").protocol
    assert [one.topic for one in protocol.payloads.payloads] == ["a"]
