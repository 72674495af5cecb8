"""How types, presences and places are named in a comparison."""

from __future__ import annotations

from specwire.generator import ir


def describe(type: ir.Type) -> str:
    """Return a type in a few words, with all that decides its octets."""
    match type:
        case ir.ConstantType(hex=octets, text=text):
            return f"constant {text!r}" if text else f"constant 0x{octets}" if octets else "nothing"
        case ir.KeywordType(options=options):
            return " or ".join(map(repr, options))
        case ir.IntegerType(octets=octets, enum=enum, bitmask=bitmask):
            kind = "bits" if bitmask else "integer"
            return f"{kind}, {count_octets(octets)}" + (f", one of {enum}" if enum else "")
        case ir.TextType(length=length, terminated=terminated):
            return f"text, {_length(length)}" + (", NUL at the end" if terminated else "")
        case ir.OctetsType(length=length, minimum=minimum):
            return f"octets, {_length(length)}" + (f", at least {minimum}" if minimum else "")
        case ir.JsonType():
            return "JSON text, rest of the frame"
        case ir.ListType(count_octets=count, element=element):
            return f"list, count in {count_octets(count)}, of: {describe(element)}"
        case ir.PairsType(count_octets=count, name=name, value=value, split=split):
            entry = f"{describe(name)}, divided at its {split} '='" if value is None else (
                f"{describe(name)}; {describe(value)}"
            )  # fmt: skip
            return f"dictionary, count in {count_octets(count)}, of: {entry}"
    return str(type)


def describe_presence(part: ir.Part) -> str:
    """Return when a part is there."""
    if isinstance(part, ir.Rest):
        return "all frames that are left"
    match part.presence:
        case ir.Always(mask=0):
            return "always"
        case ir.Always(mask=mask, value=value):
            return f"always, and flags & 0x{mask:02x} is 0x{value:02x}"
        case ir.Announced(mask=mask, value=value):
            return f"where flags & 0x{mask:02x} is 0x{value:02x}"
        case ir.Counted():
            return "may be left out"


def describe_part(part: ir.Part) -> str:
    """Return a part with its kind and the names of its fields."""
    if isinstance(part, ir.Stack):
        return f"frames up to an empty one, {describe_presence(part)}"
    if isinstance(part, ir.Rest):
        return describe_presence(part)
    return f"frame of {', '.join(field.name for field in part.fields)}, {describe_presence(part)}"


def _length(length: ir.Length) -> str:
    if length.kind == "prefix":
        return f"length in {count_octets(length.octets)}"
    return count_octets(length.octets) if length.kind == "fixed" else "rest of the frame"


def count_octets(count: int) -> str:
    return f"{count} octet{'' if count == 1 else 's'}"


def describe_default(field: ir.Field) -> str:
    """Return what a field is where a writer leaves it out."""
    if field.required:
        return "required"
    return "absent by default" if field.default is None else f"default {field.default!r}"


def listed(items: tuple[str, ...] | list[str]) -> str:
    """Return items with commas, ``nothing`` where there is none."""
    return ", ".join(items) or "nothing"
