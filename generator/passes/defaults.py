"""Defaults that the profile declares, in the form of the IR: the name of a constant becomes its number."""

from __future__ import annotations

from collections.abc import Mapping

from specwire.generator import ir
from specwire.generator.ir.names import constant_name


class Misfit(ValueError):
    """Raised for a default that the field cannot have, with the reason."""


def read_default(
    value: object,
    type: ir.Type,
    *,
    many: bool,
    constants: Mapping[str, ir.Constant],
    enums: Mapping[str, ir.Enum],
) -> ir.Default:
    """Return the default `value` of a field of `type`; `many` for a field that is a tuple of frames.

    Raises:
        Misfit: the field cannot have that value.
    """
    if many or isinstance(type, ir.PairsType | ir.ListType):
        if value != []:
            raise Misfit("only an empty collection can be a default: []")
        return ()
    match type, value:
        case ir.IntegerType(), bool():
            raise Misfit("the field is an integer")
        case ir.IntegerType(), str(name) if constant_name(name) in constants:
            return constants[constant_name(name)].value
        case ir.IntegerType(octets=octets, enum=enum), int() | str():
            members = dict(enums[enum].members) if enum else {}
            number = members.get(constant_name(value)) if isinstance(value, str) else value
            if number is None:
                raise Misfit("no constant of the grammar has that name")
            least = -(256**octets) // 2 if type.signed else 0
            if not least <= number < 256**octets + least or (
                members and not type.open and number not in members.values()
            ):
                raise Misfit("the field cannot hold that number")
            return number
        case ir.BitType(boolean=True), bool():
            return value
        case ir.BitType(width=width, enum=enum, boolean=False), int() | str() if not isinstance(value, bool):
            members = dict(enums[enum].members) if enum else {}
            number = members.get(constant_name(value)) if isinstance(value, str) else value
            if number is None or not 0 <= number < 2**width:
                raise Misfit("the bits cannot hold that value")
            return number
        case ir.PresentType(), bool():
            return value
        case ir.FloatType(), int() | float() if not isinstance(value, bool):
            return float(value)
        case ir.BooleanType(), bool():
            return value
        case ((ir.VarintType(signed=signed) | ir.DigitsType(signed=signed)), int()) if not isinstance(
            value, bool
        ):
            if value < 0 and not signed:
                raise Misfit("the field cannot hold that number")
            return value
        case ir.KeywordType(options=options), str(text):
            if text not in options:
                raise Misfit(f"the field is one of {', '.join(options)}")
            return text
        case ir.TextType(length=length), str(text):
            if length.kind == "prefix" and len(text.encode()) >= 256**length.octets:
                raise Misfit("the text is too long for the field")
            return text
        case ir.JsonType(), str(text):
            return text
        case ir.OctetsType(minimum=0), "":
            return ""
        case ir.OctetsType(), _:
            raise Misfit(
                'the only default for octets is the empty value, "", and only if the field may be empty'
            )
        case ir.ConstantType(), _:
            raise Misfit("the field is a constant")
    raise Misfit("its type is not that of the field")
