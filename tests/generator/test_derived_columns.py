"""What a message's table has beside its fields: a column for each bit of the flags, one for JSON, no name twice."""

from __future__ import annotations

from pathlib import Path

from specwire.generator.emit.tables import Derived, columns, derived
from tests.generator.compiling import compiled

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
