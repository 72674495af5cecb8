"""The IR as JSON: what other programs read of a protocol."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from specwire.generator import ir
from specwire.generator.pipeline import compile_protocol

GRAMMARS = Path(__file__).resolve().parents[3] / "grammars"


@pytest.mark.parametrize("folder", sorted(GRAMMARS.iterdir()), ids=lambda folder: folder.name)
def test_a_protocol_reads_back_equal_and_is_written_alike(folder: Path) -> None:
    protocol = compile_protocol(folder).protocol
    text = msgspec.json.encode(protocol)
    assert msgspec.json.decode(text, type=ir.Protocol) == protocol
    assert msgspec.json.encode(compile_protocol(folder, shown="elsewhere").protocol) == text
    assert json.loads(text)["ir_version"] == ir.IR_VERSION


def test_there_is_a_json_schema() -> None:
    schema = msgspec.json.schema(ir.Protocol)
    assert set(ir.Protocol.__struct_fields__) == set(schema["$defs"]["Protocol"]["properties"])
