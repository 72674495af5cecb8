"""Names of grammars as Python has them, and what is in their way there."""

from __future__ import annotations

import pytest

from specwire.generator.ir.names import (
    attribute,
    class_name,
    constant_name,
    construct_name,
    enum_name,
    fold,
    snake_case,
)


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("ICANHAZ-OK", "IcanhazOk"), ("C:request", "Request"), ("fmq_msg", "FmqMsg"), ("none", "None_"),
        ("message", "Message_"), ("struct", "Struct_"), ("flags", "Flags_"), ("A", "A"), ("int-enum", "IntEnum_"),
    ],
)  # fmt: skip
def test_classes(rule: str, name: str) -> None:
    assert class_name(rule) == name


@pytest.mark.parametrize(
    ("rule", "field", "python"),
    [
        ("hash-count", "hash_count", "hash_count"), ("class", "class", "class_"), ("Hash", "hash", "hash_"),
        ("encode", "encode", "encode_"), ("schema", "schema", "schema_"), ("match", "match", "match_"),
    ],
)  # fmt: skip
def test_fields(rule: str, field: str, python: str) -> None:
    assert (snake_case(rule), attribute(snake_case(rule))) == (field, python)


def test_constants_enumerations_and_constructs() -> None:
    assert constant_name("nodeid-any") == "NODEID_ANY"
    assert enum_name("content-type") == "ContentType"
    assert [construct_name(rule) for rule in ("C:request", "hash-count", "cs", "MESSAGES", "in")] == [
        "C_request", "hash_count", "cs_", "MESSAGES_", "in_",
    ]  # fmt: skip
    assert fold("Flag_Topic") == fold("FLAG-topic")
