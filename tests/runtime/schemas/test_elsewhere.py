"""JSON Schema and Avro of every package, judged by jsonschema and fastavro with messages as they are decoded."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError
from specwire.generator import ir
from specwire.runtime.cli.decode_lines import row_object
from specwire.runtime.pcap.rows import Row
from specwire.runtime.schemas.avro import avro_schema
from specwire.runtime.schemas.json_schema import json_schema
from tests.generated import strategies
from tests.generated.agreement import mutated
from tests.generated.vectors import PACKAGES, package
from tests.generator import layouts
from tests.generator.packages import has_records, imported
from tests.runtime.cli.commands import specwire

EXAMPLES = 20
ONCE = settings(
    max_examples=EXAMPLES, derandomize=True, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
)  # fmt: skip


@cache
def drawn(module: ModuleType) -> tuple[list[bytes], ...]:
    """Return the frames of messages of a package, and of such that something was done to."""
    found: list[list[bytes]] = []

    @ONCE
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        found.append(data.draw(strategies.messages(module)).encode())

    draw()
    chance = Random(1)
    return (*found, *([*mutated(tuple(frames), chance)] for frames in found))


def line_of(module: ModuleType, frames: list[bytes]) -> dict[str, Any]:
    """Return what `specwire decode --json` prints for frames."""
    try:
        row = Row(frames=tuple(frames), message=module.decode(frames))
    except DecodeError as error:
        row = Row(frames=tuple(frames), error=error)
    line: dict[str, Any] = json.loads(json.dumps(row_object(row)))
    return line


def json_judge(schema: dict[str, Any]) -> Any:
    """Return a validator; its library takes seconds to import, in every worker that collects tests."""
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def assert_json_fits(module: ModuleType, messages: tuple[list[bytes], ...]) -> None:
    judge = json_judge(json_schema(module))
    for frames in messages:
        judge.validate(line_of(module, frames))


def assert_avro_fits(module: ModuleType, messages: tuple[list[bytes], ...]) -> None:
    """What is written comes back, so no column is left out and none is cut."""
    schema = fastavro.parse_schema(avro_schema(module))
    rows = module.columns.decode(pa.array(messages, pa.list_(pa.binary()))).to_pylist()
    file = io.BytesIO()
    fastavro.writer(file, schema, rows, strict=True)
    file.seek(0)
    assert list(fastavro.reader(file)) == rows


@pytest.mark.parametrize("name", PACKAGES)
def test_lines_of_decode_fit_the_json_schema(name: str) -> None:
    assert_json_fits(package(name), drawn(package(name)))


@pytest.mark.parametrize("name", PACKAGES)
def test_decoded_rows_go_through_avro(name: str) -> None:
    assert_avro_fits(package(name), drawn(package(name)))


@pytest.mark.slow
@settings(ONCE, max_examples=1)
@given(st.lists(layouts.protocols, min_size=5, max_size=5))
def test_random_layouts_fit_both(
    tmp_path_factory: pytest.TempPathFactory, drawn_layouts: list[ir.Protocol]
) -> None:
    """Records, choices, lists of lists and fields that can be left out, which our protocols have few of."""
    assume(has_records(drawn_layouts))
    named = [
        msgspec.structs.replace(protocol, name=f"demo{number}")
        for number, protocol in enumerate(drawn_layouts)
    ]
    with imported(tmp_path_factory.mktemp("packages"), named, "strategies", "columns") as modules:
        for module in modules:
            messages = drawn(module)
            assert_json_fits(module, messages)
            assert_avro_fits(module, messages)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"credit": 2**64}, "maximum"),
        ({"credit": -1}, "minimum"),
        ({"credit": "1"}, "integer"),
        ({}, "required"),
        ({"credit": 1, "more": 2}, "Additional"),
    ],
)
def test_what_is_no_message_does_not_fit(fields: dict[str, Any], told: str) -> None:
    judge = json_judge(json_schema(package("filemq"), "Nom"))
    judge.validate({"credit": 2**64 - 1})
    (error,) = judge.iter_errors(fields)
    assert told in str(error)


def test_a_line_is_a_message_or_a_fault_and_not_both() -> None:
    judge = json_judge(json_schema(package("filemq")))
    nom = {"message": "Nom", "fields": {"credit": 1}}
    fault = {"message": None, "fields": None, "error": {"text": "why"}, "frames": ["00"]}
    assert judge.is_valid(nom) and judge.is_valid(fault)
    assert not judge.is_valid(nom | {"message": "Hugz"})
    assert not judge.is_valid(nom | {"error": {"text": "why"}, "frames": ["00"]})
    assert not judge.is_valid(fault | {"frames": ["0"]})


def test_what_avro_says_about_a_field() -> None:
    """Words and unit of the specification; 20 digits hold 2 ** 64 - 1; only what can be absent is nullable."""
    credit = avro_schema(package("filemq"), "Nom")["fields"][0]
    assert credit["type"] == {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
    assert credit["unit"] == "octets" and "grammar line" in credit["source"]
    request = {field["name"]: field for field in avro_schema(package("flux"), "Request")["fields"]}
    assert request["topic"]["type"] == ["null", "string"] and request["topic"]["default"] is None
    assert request["routes"]["type"] == ["null", {"type": "array", "items": "string"}]
    assert request["matchtag"]["type"] == "long"


@pytest.mark.parametrize(("format", "key"), [("json-schema", "$defs"), ("avro", "namespace")])
def test_the_command_prints_them(capfd: pytest.CaptureFixture[str], format: str, key: str) -> None:
    outcome = specwire(capfd, "schema", "flux", "--format", format)
    assert outcome.status == 0 and key in json.loads(outcome.out)
    same = specwire(capfd, "schema", "flux", "--format", format, "--json")
    assert same.out == outcome.out
    one = json.loads(specwire(capfd, "schema", "flux", "--format", format, "--message", "Control").out)
    assert "sequence" not in json.dumps(one) and "userid" in json.dumps(one)


def test_the_grammar_of_somebody_else(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A package that is made now, of rules alone."""
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "grammar.abnf").write_text(
        "protocol = open / close\nopen = %xAA.01 note\nclose = %xAA.02\nnote = *VCHAR\n"
    )
    outcome = specwire(
        capfd, "schema", "demo", "--grammars", str(tmp_path), "--format", "avro", "--message", "Open"
    )
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["fields"][0]["type"] == "string"
