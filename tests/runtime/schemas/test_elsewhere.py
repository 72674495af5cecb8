"""JSON Schema and Avro of every package, judged by jsonschema and fastavro with messages as they are decoded."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any
from uuid import UUID

import fastavro
import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from specwire.generated.errors import DecodeError
from specwire.generator import ir
from specwire.generator.pipeline import compile_protocol
from specwire.runtime.cli.decode_lines import row_object
from specwire.runtime.cli.decode_message import plain
from specwire.runtime.pcap.rows import Row
from specwire.runtime.schemas.avro import avro_schema
from specwire.runtime.schemas.json_schema import json_schema
from tests.generated import strategies
from tests.generated.agreement import mutated
from tests.generated.vectors import PACKAGES, package
from tests.generator import layouts, test_foreign, value_cases
from tests.generator.packages import has_records, imported
from tests.generator.value_cases import built
from tests.golden_files import GOLDEN
from tests.runtime.cli.commands import specwire

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
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


def assert_json_fits(module: ModuleType, messages: Sequence[list[bytes]]) -> None:
    judge = json_judge(json_schema(module))
    for frames in messages:
        judge.validate(line_of(module, frames))


def assert_avro_fits(module: ModuleType, messages: Sequence[list[bytes]]) -> None:
    """What is written comes back, so no column is left out and none is cut. A NaN only prints the same."""
    rows = decoded(module, messages)
    assert repr(through_avro(module, rows)) == repr(rows)


def decoded(module: ModuleType, messages: Sequence[list[bytes]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = module.columns.decode(pa.array(messages, pa.list_(pa.binary()))).to_pylist()
    return rows


def through_avro(module: ModuleType, rows: list[dict[str, Any]]) -> list[Any]:
    schema = fastavro.parse_schema(avro_schema(module))
    file = io.BytesIO()
    fastavro.writer(file, schema, rows, strict=True)
    file.seek(0)
    return list(fastavro.reader(file))


@pytest.mark.parametrize("name", PACKAGES)
def test_lines_of_decode_fit_the_json_schema(name: str) -> None:
    assert_json_fits(package(name), drawn(package(name)))


@pytest.mark.parametrize("name", PACKAGES)
def test_decoded_rows_go_through_avro(name: str) -> None:
    assert_avro_fits(package(name), drawn(package(name)))


@pytest.fixture(scope="module")
def case_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ModuleType]]:
    """The packages of the cases with every kind of value."""
    protocols = [
        msgspec.structs.replace(case.protocol, name=f"case_{case.name}") for case in value_cases.CASES
    ]
    with imported(tmp_path_factory.mktemp("cases"), protocols, "columns") as modules:
        yield modules


@pytest.mark.parametrize("number", range(len(value_cases.CASES)))
def test_every_kind_of_value_fits_both(case_modules: list[ModuleType], number: int) -> None:
    module, case = case_modules[number], value_cases.CASES[number]
    messages = [list(frames) for frames, _ in (*case.refused, *case.also)]
    messages += [list(frames) for _, frames in case.good]
    assert_json_fits(module, messages)
    assert_avro_fits(module, messages)


NUMBERS: list[tuple[ir.Type, tuple[Any, ...], dict[str, Any], Any]] = [
    (ir.IntegerType(1, signed=True), (-128, 127), {"minimum": -128, "maximum": 127}, "int"),
    (ir.IntegerType(8, signed=True), (-(2**63), 0), {"minimum": -(2**63), "maximum": 2**63 - 1}, "long"),
    (ir.IntegerType(3, order="little"), (0, 2**24 - 1), {"minimum": 0, "maximum": 2**24 - 1}, "int"),
    (ir.IntegerType(4), (0, 2**32 - 1), {"minimum": 0, "maximum": 2**32 - 1}, "long"),
    (ir.BooleanType(2), (False, True), {"type": "boolean"}, "boolean"),
    (ir.FloatType(4), (0.5, math.inf), {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}, "float"),
    (ir.FloatType(8), (math.nan, 1e300), {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}, "double"),
    (ir.VarintType(maximum=2, signed="zigzag"), (-8192, 8191), {"minimum": -8192, "maximum": 8191}, "long"),
    (ir.VarintType(), (0, 2**64 - 1), {"minimum": 0, "maximum": 2**64 - 1}, DECIMAL),
    (ir.DigitsType(16, maximum=2), (0, 255), {"minimum": 0, "maximum": 255}, "long"),
    (ir.DigitsType(10, signed=True), (-(2**63), 1), {"minimum": -(2**63), "maximum": 2**63 - 1}, "long"),
    (ir.DigitsType(10), (0, 2**64 - 1), {"minimum": 0, "maximum": 2**64 - 1}, DECIMAL),
    (ir.UuidType("little"), (UUID(int=0), UUID(int=2**128 - 1)), {"type": "string", "format": "uuid"}, "string"),
]  # fmt: skip
"""Kinds of numbers and UUIDs, two values, and what the two schemas say."""


def test_numbers_of_every_coding(tmp_path: Path) -> None:
    fields = []
    for number, (type, *_) in enumerate(NUMBERS):
        fields += [layouts.field(f"value_{number}", type), value_cases.constant(f"end_{number}", b"\n")]
    protocol = value_cases.one_message(value_cases.constant("mark", b"\1"), *fields)
    with imported(tmp_path, [protocol], "columns") as (module,):
        messages = [
            module.Message1(**{f"value_{number}": one[1][index] for number, one in enumerate(NUMBERS)})
            for index in (0, 1)
        ]
        assert_json_fits(module, [message.encode() for message in messages])
        assert_avro_fits(module, [message.encode() for message in messages])
        properties = list(json_schema(module, "Message1")["properties"].values())
        types = [field["type"] for field in avro_schema(module, "Message1")["fields"]]
        for (_, _, said, avro), found, type in zip(NUMBERS, properties, types, strict=True):
            assert said.items() <= found.items()
            assert type == avro


def test_integers_and_booleans_that_cannot_be_sent(case_modules: list[ModuleType]) -> None:
    """Those out of range, of another type, and absent ones, whatever the other fields are."""
    alone = re.compile(r"\d+ to \d+|\d+(, \d+)* or \d+|an integer|False or True")
    tried = 0
    for module, case in zip(case_modules, value_cases.CASES, strict=True):
        for message in (message for message, fault in case.unfit if alone.fullmatch(fault.expected)):
            fields = plain(built(module, message).to_dict())
            assert not json_judge(json_schema(module, message.class_name)).is_valid(fields), fields
            tried += 1
    assert tried > 5


@pytest.fixture(scope="module")
def foreign_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ModuleType]]:
    """The packages of protocols from outside the ZeroMQ family."""
    found = [compile_protocol(GOLDEN / "family" / name).protocol for name in test_foreign.CASES]
    with imported(tmp_path_factory.mktemp("foreign"), found, "columns") as modules:
        yield dict(zip(test_foreign.CASES, modules, strict=True))


@pytest.mark.parametrize("name", test_foreign.CASES)
def test_foreign_messages_fit_both(foreign_modules: dict[str, ModuleType], name: str) -> None:
    messages = [test_foreign.frames_of(octets) for octets, _ in test_foreign.CASES[name]]
    assert_json_fits(foreign_modules[name], messages)
    assert_avro_fits(foreign_modules[name], messages)


def test_values_inside_themselves(foreign_modules: dict[str, ModuleType]) -> None:
    """JSON has all levels, by a definition that refers to itself; Avro has octets, as columns do."""
    module = foreign_modules["resp2"]
    schema = json_schema(module, "Array")
    judge = json_judge(schema)
    inner = {"_type": "array", "reply": [{"_type": "integer", "number": -(2**63)}]}
    judge.validate({"reply": [inner]})
    assert not judge.is_valid({"reply": [{"_type": "array", "reply": [{"_type": "integer", "number": "1"}]}]})
    assert not judge.is_valid({"reply": [{"_type": "other", "reply": []}]})
    assert_json_fits(module, [[b"*1\r\n" * 64 + b":1\r\n"]])
    deep = [[b"*1\r\n" * 3 + b":1\r\n"]]
    (row,) = through_avro(module, decoded(module, deep))
    assert row["Array"]["reply"][0]["array"]["reply"] == [b"*1\r\n:1\r\n"]


TIMES_GRAMMAR = """\
tick = %x01 sent created made read laps *entry
sent = 8OCTET
created = 4OCTET
laps = count *lap
count = 1OCTET
lap = 8OCTET
made = 4OCTET
read = 4OCTET
entry = key at
key = 1OCTET
at = 7OCTET
"""
TIMES_PROFILE = """
name = "times"
messages = ["tick"]
[types.sent]
type = "integer"
signed = true
timestamp = "ms"
[types.created]
type = "integer"
timestamp = "s"
[types.lap]
type = "integer"
signed = true
[types.laps]
timestamp = "us"
[types.made]
type = "float"
timestamp = "ms"
[types.read]
type = "integer"
timestamp = "ms"
epoch = "1980-01-06"
[types.key]
type = "integer"
[types.at]
type = "integer"
timestamp = "ns"
"""


def test_times(tmp_path: Path) -> None:
    """Logical types where Avro has them; in any case unit and epoch."""
    (tmp_path / "times").mkdir()
    (tmp_path / "times" / "grammar.abnf").write_text(TIMES_GRAMMAR)
    (tmp_path / "times" / "profile.toml").write_text(TIMES_PROFILE)
    protocol = compile_protocol(tmp_path / "times").protocol
    with imported(tmp_path / "packages", [protocol], "columns") as (module,):
        fields = {field["name"]: field for field in avro_schema(module, "Tick")["fields"]}
        assert fields["sent"]["type"] == {"type": "long", "logicalType": "timestamp-millis"}
        assert fields["laps"]["type"]["items"] == {"type": "long", "logicalType": "timestamp-micros"}
        assert fields["created"]["type"] == "long" and fields["created"]["timestamp"] == "s"
        assert fields["made"]["type"] == "float" and fields["made"]["timestamp"] == "ms"
        assert fields["read"]["type"] == "long" and fields["read"]["epoch"] == "1980-01-06"
        at = fields["entry"]["type"]["items"]["fields"][1]
        assert at["type"] == {"type": "long", "logicalType": "timestamp-nanos"}
        schema = json_schema(module, "Tick")
        read, at = schema["properties"]["read"], schema["$defs"]["Entry"]["properties"]["at"]
        assert read["description"] == "Read. Unit: milliseconds since 1980-01-06 UTC."
        assert at["description"] == "At. Unit: nanoseconds since 1970-01-01 UTC."
        entry = (module.Entry(key=1, at=2**55),)
        message = module.Tick(sent=-1000, created=1, made=0.5, read=2**32 - 1, laps=(1_000_000,), entry=entry)
        assert_json_fits(module, [message.encode()])
        (row,) = through_avro(module, decoded(module, [message.encode()]))
        assert row["Tick"]["sent"] == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
        assert row["Tick"]["laps"] == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]
        assert row["Tick"]["read"] == 2**32 - 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["protocols", "values"])
@settings(ONCE, max_examples=1)
@given(data=st.data())
def test_random_layouts_fit_both(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    """Records, choices, lists of lists and fields that can be left out, which our protocols have few of."""
    source = layouts.protocols if kind == "protocols" else layouts.valued() | layouts.more
    drawn_layouts = data.draw(st.lists(source, min_size=5, max_size=5))
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
    assert credit["type"] == DECIMAL
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
