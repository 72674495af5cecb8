"""What a message's table has beside its fields: a column for each bit of the flags, one for JSON, no name twice."""

from __future__ import annotations

from pathlib import Path

from specwire.generator import ir
from specwire.generator.emit import columns as arrow_columns
from specwire.generator.emit import schema as spark_schema
from specwire.generator.emit.tables import Derived, columns, derived, describe_kind
from tests.generator.compiling import compiled
from tests.generator.layouts import field, message, protocol

GRAMMAR = """\
list = A / B
A = [topic] [payload / json] [note] head-a
B = head-b
topic = *VCHAR   ; ZeroMQ frame
payload = *OCTET   ; ZeroMQ frame
json = JSON   ; ZeroMQ frame
note = *VCHAR   ; ZeroMQ frame
head-a = %x01 flags flags-topic payload-json size  ; ZeroMQ frame
head-b = %x02   ; ZeroMQ frame
flags = OCTET
flags-topic = OCTET
payload-json = 2OCTET
size = 4OCTET
flag-topic = %x01   ; There is a topic.
flag-payload = %x02
flag-json = %x04
flag-note = %x08
"""
PROFILE = """
name = "demo"
[types.payload]
content = "json"
[types.size]
type = "integer"
content = "json"
"""


def test_flags_and_json_have_columns_of_their_own(tmp_path: Path) -> None:
    """A number holds no JSON, whatever the profile says; a name that is taken gets a ``_``."""
    protocol = compiled(tmp_path, GRAMMAR, PROFILE).protocol
    found = derived(protocol.messages[0], protocol)
    assert [(column.name, column.of, column.mask) for column in found] == [
        ("payload_json_", "payload", 0),
        ("json_json", "json", 0),
        ("flags_topic_", "flags", 1),
        ("flags_payload", "flags", 2),
        ("flags_json", "flags", 4),
        ("flags_note", "flags", 8),
    ]
    assert found[2] == Derived("flags_topic_", "flags", "There is a topic.", 1)
    assert derived(protocol.messages[1], protocol) == ()


def test_fields_that_every_message_has_are_required(tmp_path: Path) -> None:
    """Those of frames that can be left out are not; sizes are told."""
    protocol = compiled(tmp_path, GRAMMAR, PROFILE).protocol
    found = {column.name: column for column in columns(protocol.messages[0], protocol)}
    assert [name for name, column in found.items() if column.required] == [
        "flags", "flags_topic", "payload_json", "size",
    ]  # fmt: skip
    assert dict(found["size"].metadata)["octets"] == "4"
    assert dict(found["payload"].metadata)["content"] == "json"
    assert "octets" not in dict(found["payload"].metadata)
    (present,) = columns(protocol.messages[1], protocol)
    assert (present.name, present.required) == ("_present", True)


OPTION = ir.Option("number", 1, field="more", values=(1,))
NODE = ir.RecordType(
    "node",
    "Node",
    (
        field("mark", ir.ConstantType("2a")),
        field("children", ir.ListType(1, ir.EnclosingType("tree"))),
    ),
)
LEAF = ir.RecordType(
    "leaf", "Leaf", (field("mark", ir.ConstantType("2a2b")), field("text", ir.KeywordType(("a",))))
)
FIELDS = (
    field("version", ir.BitType(4, 29, 3, constant=2)),
    field("spare", ir.BitType(4, 28, 1, spare=True)),
    field("more", ir.BitType(4, 27, 1, announces=True)),
    field("size", ir.CounterType(ir.BitType(4, 26, 1), ("data",))),
    field("urgent", ir.BitType(4, 25, 1, boolean=True)),
    field("kind", ir.BitType(4, 17, 8)),
    field("code", ir.BitType(4, 0, 17)),
    field("extra", ir.IntegerType(8), option=OPTION),
    field("literal", ir.ConstantType("2b"), option=ir.Option("octets", 2, octets="2b")),
    field("literal_there", ir.PresentType(), option=ir.Option("octets", 2, octets="2b")),
    field("words", ir.ListType(0, ir.TextType(ir.Length("run", 1, among="61")), before="20", until="0a")),
    field("end", ir.ConstantType("0a")),
    field("data", ir.OctetsType(ir.Length("counted"))),
    field("tree", ir.UnionType("tree", (NODE, LEAF), ("2a", "2a2b"))),
)


def test_columns_of_bits_options_and_recursion() -> None:
    """What follows from other values has no column; a value inside one of its kind is octets."""
    sent = message(1, (ir.Frame("frame", FIELDS),), "00")
    demo = protocol((sent,), ir.Selector(0, 1))
    found = columns(sent, demo)
    assert [(column.name, describe_kind(column.kind), column.required) for column in found] == [
        ("urgent", "bool", True),
        ("kind", "int16", True),
        ("code", "int32", True),
        ("extra", "uint64", False),
        ("literal_there", "bool", True),
        ("words", "list of string", True),
        ("data", "binary", True),
        (
            "tree",
            "struct of (leaf: struct of (text: string), node: struct of (children: list of binary))",
            True,
        ),
    ]
    assert "pa.list_(pa.binary())" in arrow_columns.emit(demo)
    assert "ArrayType(BinaryType())" in spark_schema.emit(demo)
