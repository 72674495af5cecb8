"""A published grammar alone, nothing declared: ZRE's gives the layout that its package has."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from specwire.generator import ir
from specwire.generator.pipeline import compile_protocol

ZRE = Path(__file__).parents[2] / "grammars" / "zre"


def wire_layout(protocol: ir.Protocol) -> list[dict[str, Any]]:
    """What a peer can see: messages, tags and parts, without words, defaults and who sends what."""
    shown: list[dict[str, Any]] = []
    for message in protocol.messages:
        parts = msgspec.to_builtins(message.parts)
        for part in parts:
            for field in part.get("fields", [part.get("field")]):
                for key in ("doc", "unit", "default", "required", "line"):
                    field.pop(key)
        shown.append({"name": message.name, "tags": message.tags, "parts": parts})
    return shown


def test_zre_compiles_from_its_grammar_alone(tmp_path: Path) -> None:
    """The same messages, octet for octet; no layout had to be assumed."""
    folder = tmp_path / "zre"
    folder.mkdir()
    shutil.copyfile(ZRE / "grammar.abnf", folder / "grammar.abnf")
    bare, declared = compile_protocol(folder), compile_protocol(ZRE)
    assert wire_layout(bare.protocol) == wire_layout(declared.protocol)
    assert [message.class_name for message in bare.protocol.messages] == [
        "Hello", "Whisper", "Shout", "Join", "Leave", "Ping", "PingOk",
    ]  # fmt: skip
    assert not [warning for warning in bare.warnings if warning.code.startswith("W4")]
