"""Example of how to build a message in Python: required arguments, and optional ones that would be absent.

The values only illustrate the types; they are valid, so the message can be encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import assert_never

from specwire.generator import ir


def construct(protocol: ir.Protocol, message: ir.Message) -> str:
    """Return the call that creates a message, one argument on each line if there are several."""
    given = _given(message, protocol)
    arguments = [f"{field.attribute}={_many(field.type, many, protocol)}" for field, many in given]
    call = f"{protocol.name}.{message.class_name}"
    if len(arguments) < 2:
        return f"{call}({', '.join(arguments)})"
    inside = "".join(f"    {argument},\n" for argument in arguments)
    return f"{call}(\n{inside})"


def left_out(protocol: ir.Protocol, message: ir.Message) -> tuple[str, ...]:
    """Return the attributes that the call omits."""
    given = [field for field, _ in _given(message, protocol)]
    return tuple(field.attribute for field in message.fields if not field.implied and field not in given)


def _given(message: ir.Message, protocol: ir.Protocol) -> list[tuple[ir.Field, bool]]:
    """Return the fields that the call passes, and which of them hold several frames.

    Of frames that exclude each other, because different values of one bit announce them, it
    includes the first. It includes none that the specification forbids, and no optional field inside
    a frame unless a number in the frame says that it is there.
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
            absent = absent and (field.option is None or _holds(field.option, fields, protocol))
            if not field.implied and (field.required or absent):
                found.append((field, not isinstance(part, ir.Frame)))
        announced |= mask
    return found


def _holds(option: ir.Option, fields: Sequence[ir.Field], protocol: ir.Protocol) -> bool:
    """Return whether the number in the example's field of an option says that its fields are present."""
    for field in fields:
        if option.kind == "number" and field.name == option.field and not field.implied:
            number = _example(field.type, protocol)
            return (number & option.mask if option.mask else number) in option.values
    return False


def _example(type: ir.Type, protocol: ir.Protocol) -> int:
    """Return the number that illustrates a type."""
    if isinstance(type, ir.IntegerType | ir.BitType):
        members = (enum.members[0][1] for enum in protocol.enums if enum.name == type.enum and enum.members)
        return next(members, type.values[0] if type.values else 1)
    return 1


def _many(type: ir.Type, many: bool, protocol: ir.Protocol) -> str:
    value = _value(type, protocol)
    return f"({value},)" if many else value


def _value(type: ir.Type, protocol: ir.Protocol) -> str:
    match type:
        case ir.BitType(boolean=True) | ir.PresentType():
            return "True"
        case ir.IntegerType() | ir.BitType():
            return _integer(type, protocol)
        case ir.TextType(length=ir.Length(kind="run") as length):
            return json.dumps(_run(length))
        case ir.TextType():
            return '"text"' if type.length.kind != "fixed" else json.dumps("text"[: type.length.octets])
        case ir.KeywordType(options=options):
            return json.dumps(options[0])
        case ir.OctetsType(length=ir.Length(kind="fixed", octets=octets)):
            return f"bytes({octets})"
        case ir.OctetsType(minimum=minimum, maximum=maximum):
            fits = minimum <= 6 and (maximum is None or maximum >= 6)
            return 'b"octets"' if fits else f"bytes({minimum})"
        case ir.JsonType():
            return "'{}'"
        case ir.ListType(element=element, minimum=0) if _repeats(element):
            return "()"
        case ir.ListType(element=element, minimum=minimum):
            return f"({_value(element, protocol)},){f' * {minimum}' if minimum > 1 else ''}"
        case ir.PairsType(name=name, value=value):
            text = '"value"' if value is None else _value(value, protocol)
            limited = name.length.kind in ("fixed", "run")
            first = _value(name, protocol) if limited else '"name"'
            return f"(({first}, {text}),)"
        case ir.RecordType():
            return _record(type, protocol)
        case ir.UnionType(options=options):
            return _record(next((one for one in options if not _repeats(one)), options[0]), protocol)
        case ir.EnclosingType(name=name):
            types = (field.type for message in protocol.messages for field in message.fields)
            found = (inner for type in types for inner in _inside(type))
            again = next(one for one in found if _is_named(one, name))
            return _value(again, protocol)
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


def _run(length: ir.Length) -> str:
    """Return a text of the characters that a length allows."""
    among = bytes.fromhex(length.among)
    if set(b"text") <= set(among) and length.octets <= 4:
        return "text"
    return among[:1].decode("latin-1") * max(length.octets, 1)


def _inside(type: ir.Type) -> Iterator[ir.Type]:
    """Yield a type and all types inside it."""
    yield type
    match type:
        case ir.ListType(element=element):
            yield from _inside(element)
        case ir.RecordType(fields=fields):
            for field in fields:
                yield from _inside(field.type)
        case ir.UnionType(options=options):
            for option in options:
                yield from _inside(option)


def _is_named(type: ir.Type, name: str) -> bool:
    """Return whether a value of the type is what an `ir.EnclosingType` of this name repeats."""
    match type:
        case ir.RecordType(class_name=own) | ir.UnionType(name=own):
            return own == name
    return False


def _repeats(type: ir.Type) -> bool:
    """Return whether values of a type contain values like one around them."""
    return any(isinstance(inner, ir.EnclosingType) for inner in _inside(type))


def _record(type: ir.RecordType, protocol: ir.Protocol) -> str:
    given = [
        field
        for field in type.fields
        if not field.implied
        and (field.required or (field.option and _holds(field.option, type.fields, protocol)))
    ]
    inside = ", ".join(f"{field.attribute}={_value(field.type, protocol)}" for field in given)
    return f"{protocol.name}.{type.class_name}({inside})"


def _integer(type: ir.IntegerType | ir.BitType, protocol: ir.Protocol) -> str:
    for enum in protocol.enums:
        if enum.name == type.enum and enum.members:
            return f"{protocol.name}.{enum.class_name}.{enum.members[0][0]}"
    return str(_example(type, protocol))
