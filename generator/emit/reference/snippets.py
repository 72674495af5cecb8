"""Example of how to build a message in Python: required arguments, and optional ones that would be absent.

The values only illustrate the types; they are valid, so the message can be encoded.
"""

from __future__ import annotations

import json
from typing import assert_never

from specwire.generator import ir


def construct(protocol: ir.Protocol, message: ir.Message) -> str:
    """Return the call that creates a message, one argument on each line if there are several."""
    arguments = [f"{field.attribute}={_many(field.type, many, protocol)}" for field, many in _given(message)]
    call = f"{protocol.name}.{message.class_name}"
    if len(arguments) < 2:
        return f"{call}({', '.join(arguments)})"
    inside = "".join(f"    {argument},\n" for argument in arguments)
    return f"{call}(\n{inside})"


def left_out(message: ir.Message) -> tuple[str, ...]:
    """Return the attributes that the call omits."""
    given = [field for field, _ in _given(message)]
    return tuple(field.attribute for field in message.fields if not field.implied and field not in given)


def _given(message: ir.Message) -> list[tuple[ir.Field, bool]]:
    """Return the fields that the call passes, and which of them hold several frames.

    Of frames that exclude each other, because different values of one bit announce them, it
    includes the first. It includes none that the specification forbids.
    """
    found: list[tuple[ir.Field, bool]] = []
    announced = 0
    for part in message.parts:
        presence = ir.Always() if isinstance(part, ir.Rest) else part.presence
        mask = presence.mask if isinstance(presence, ir.Announced) else 0
        forbidden = not isinstance(part, ir.Rest) and part.letter == "forbidden"
        fields = part.fields if isinstance(part, ir.Frame) else (part.field,)
        for field in fields:
            absent = field.default is None and not mask & announced and not forbidden
            if not field.implied and (field.required or absent):
                found.append((field, not isinstance(part, ir.Frame)))
        announced |= mask
    return found


def _many(type: ir.Type, many: bool, protocol: ir.Protocol) -> str:
    value = _value(type, protocol)
    return f"({value},)" if many else value


def _value(type: ir.Type, protocol: ir.Protocol) -> str:
    match type:
        case ir.IntegerType():
            return _integer(type, protocol)
        case ir.TextType():
            return '"text"' if type.length.kind != "fixed" else json.dumps("text"[: type.length.octets])
        case ir.KeywordType(options=options):
            return json.dumps(options[0])
        case ir.OctetsType(length=ir.Length(kind="fixed", octets=octets)):
            return f"bytes({octets})"
        case ir.OctetsType(minimum=minimum):
            return 'b"octets"' if minimum <= 6 else f"bytes({minimum})"
        case ir.JsonType():
            return "'{}'"
        case ir.ListType(element=element, minimum=minimum):
            return f"({_value(element, protocol)},){f' * {minimum}' if minimum > 1 else ''}"
        case ir.PairsType(value=value):
            text = '"value"' if value is None else _value(value, protocol)
            return f'(("name", {text}),)'
        case ir.RecordType():
            return _record(type, protocol)
        case ir.UnionType(options=options):
            return _record(options[0], protocol)
        case ir.FloatType():
            return "1.5"
        case ir.BooleanType():
            return "True"
        case ir.VarintType() | ir.DigitsType():
            return "1"
        case ir.UuidType():
            return 'uuid.UUID("12345678-1234-5678-1234-567812345678")'
        case ir.ConstantType() | ir.PaddingType() | ir.SizeType() | ir.CounterType() | ir.ChecksumType():
            return "…"
        case _:
            assert_never(type)


def _record(type: ir.RecordType, protocol: ir.Protocol) -> str:
    given = [field for field in type.fields if field.required and not field.implied]
    inside = ", ".join(f"{field.attribute}={_value(field.type, protocol)}" for field in given)
    return f"{protocol.name}.{type.class_name}({inside})"


def _integer(type: ir.IntegerType, protocol: ir.Protocol) -> str:
    for enum in protocol.enums:
        if enum.name == type.enum and enum.members:
            return f"{protocol.name}.{enum.class_name}.{enum.members[0][0]}"
    return str(type.values[0]) if type.values else "1"
