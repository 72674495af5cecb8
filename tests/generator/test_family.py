"""Specifications of the ZeroMQ family that nobody looked at while the generator was written.

A case in tests/golden/family with a document is the rules of a published specification, without its words, and what a reader of the
rules takes for the messages: ``messages.txt`` was derived by hand from the published text, and is never blessed.
Each line is a message: its constants in hexadecimal, its fields with their types, ``+`` between frames, ``*`` before
what takes the rest of the frames. ``text1`` has its length in one octet before it, ``octets`` goes on to the end, and
``(72)`` are that many octets that are always the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.generator import ir
from specwire.generator.documents.importing import import_document
from specwire.generator.documents.store import write_imported
from specwire.generator.pipeline import compile_protocol
from tests.golden_files import cases

DOCUMENTS = [case for case in cases("family") if (case / "document.markdown").exists()]


@pytest.mark.parametrize("case", DOCUMENTS, ids=lambda case: case.name)
def test_messages_of_an_unseen_specification(case: Path, tmp_path: Path) -> None:
    folder = tmp_path / "family"
    write_imported(import_document(case / "document.markdown", "family", folder=folder), folder)
    compiled = compile_protocol(folder).protocol
    lines = [f"{message.name} = {_parts(message)}".strip() for message in compiled.messages]
    expected = (case / "messages.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(expected)


def _parts(message: ir.Message) -> str:
    return " + ".join(_part(part) for part in message.parts)


def _part(part: ir.Part) -> str:
    if not isinstance(part, ir.Frame):
        return f"*{part.name}"
    words: list[str] = []
    for field in part.fields:
        words += _field(field)
    joined = " ".join(words)
    # Signature and number are written as one, as specifications show them.
    first, _, rest = joined.partition(" ")
    second, _, more = rest.partition(" ")
    return f"{first}{second} {more}".strip() if len(first) == 4 and len(second) == 2 else joined


def _field(field: ir.Field) -> list[str]:
    match field.type:
        case ir.ConstantType(hex=octets):
            return [octets.upper() or "empty"] if len(octets) < 40 else [f"({len(octets) // 2})"]
        case ir.PaddingType(octets=octets):
            return [f"({octets})"]
        case ir.RecordType(fields=fields):
            return [word for inner in fields for word in _field(inner)]
    return [f"{field.attribute.rstrip('_')}:{_type(field.type)}"]


def _type(type: ir.Type) -> str:
    match type:
        case ir.IntegerType(octets=octets):
            return f"u{8 * octets}"
        case ir.TextType(length=length):
            return f"text{_length(length)}"
        case ir.OctetsType(length=length):
            return f"octets{_length(length)}"
        case ir.ListType(count_octets=octets, element=ir.RecordType() as element):
            return f"list{octets}({' '.join(_type(field.type) for field in element.fields)})"
        case ir.ListType(count_octets=octets, element=element):
            return f"list{octets}({_type(element)})"
        case ir.PairsType(count_octets=octets, name=name, value=None):
            return f"pairs{octets}({_type(name)})"
        case ir.PairsType(count_octets=octets, name=name, value=value):
            return f"pairs{octets}({_type(name)}={_type(value)})" if value else ""
    return type.__class__.__name__


def _length(length: ir.Length) -> str:
    return {"prefix": str(length.octets), "fixed": f"({length.octets})", "rest": ""}[length.kind]
