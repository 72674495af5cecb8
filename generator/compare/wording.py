"""Words for types, presences and places in a comparison."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.reference.boxes import condition_text


def describe(type: ir.Type) -> str:
    """Return a type in a few words, with everything that determines its octets."""
    match type:
        case ir.ConstantType(hex=octets, text=text, folded=folded):
            words = f"constant {text!r}" if text else f"constant 0x{octets}" if octets else "nothing"
            return words + _either_case(folded)
        case ir.KeywordType(options=options, folded=folded):
            return " or ".join(map(repr, options)) + _either_case(folded)
        case ir.PaddingType(octets=count, fill=fill, multiple=multiple):
            number = (
                f"to a multiple of {count_octets(multiple)}, filled with"
                if multiple
                else f"{count_octets(count)} of"
            )
            return f"padding, {number} 0x{fill}"
        case ir.SizeType(forms=forms):
            return f"size of what follows, in {' or '.join(map(_form, forms))}"
        case ir.CounterType(number=number, counts=counts, plus=plus):
            more = f" plus {plus}" if plus else ""
            words = _bits(number) if isinstance(number, ir.BitType) else _number(number)
            return f"count of {' and '.join(counts)}{more}: {words}"
        case ir.BitType():
            return _bits(type)
        case ir.PresentType():
            return "whether the constants with the same condition are present"
        case ir.EnclosingType(name=name):
            return f"{name} again"
        case ir.ChecksumType(number=number, algorithm=algorithm, over=over):
            return f"{algorithm} of {', '.join(over)}: {_number(number)}"
        case ir.IntegerType() | ir.FloatType() | ir.BooleanType() | ir.VarintType() | ir.DigitsType():
            return _number(type)
        case ir.UuidType(order=order):
            return f"UUID{_order(order, 16)}"
        case ir.TextType(length=length, terminated=terminated, padding=padding):
            extra = ", NUL at the end" if terminated else ""
            return f"text, {_length(length)}{extra}" + (f", filled up with 0x{padding}" if padding else "")
        case ir.OctetsType(length=length, minimum=minimum, maximum=maximum):
            least = f", at least {minimum}" if minimum else ""
            return f"octets, {_length(length)}{least}" + ("" if maximum is None else f", at most {maximum}")
        case ir.JsonType():
            return "JSON text, rest of the frame"
        case ir.ListType(element=element):
            return f"list, {_count(type)}, of: {_around(type, describe(element))}"
        case ir.PairsType(name=name, value=value, split=split):
            entry = (
                f"{describe(name)}, split at its {split} '='"
                if value is None
                else f"{describe(name)}; {_between(type)}{describe(value)}"
            )
            return f"dictionary, {_count(type)}, of: {_around(type, entry)}"
        case ir.RecordType(fields=fields):
            return f"record ({'; '.join(map(_field, fields))})"
        case ir.UnionType(options=options, tags=tags, folded=folded):
            rows = zip(tags, options, strict=True)
            words = " or ".join(f"0x{tag} {option.name}" for tag, option in rows)
            return f"one of {words}{_either_case(folded)}"


def _field(field: ir.Field) -> str:
    when = f" {condition_text(field.option)}" if field.option else ""
    return f"{field.name}: {describe(field.type)}{when}"


def describe_option(field: ir.Field) -> str:
    """Return in words when a field inside a frame or record is present."""
    if field.option is not None:
        return condition_text(field.option)
    return "optional" if field.optional else "always"


def _bits(type: ir.BitType) -> str:
    whole = f"{count_octets(type.octets)}{_order(type.order, type.octets)}"
    kind = "boolean in bit" if type.boolean else "spare bits" if type.spare else "integer in bits"
    where = f"{kind} {_bit_numbers(type)} of {whole}"
    if type.constant is not None:
        return f"{where}, always {type.constant}"
    if type.announces:
        return f"{where}, whether fields are present"
    if type.values:
        return f"{where}, one of {', '.join(map(str, type.values))}"
    return where + (f", one of {type.enum}{' or another' * type.open}" if type.enum else "")


def _bit_numbers(type: ir.BitType) -> str:
    last = type.shift + type.width - 1
    return str(last) if type.width == 1 else f"{last} to {type.shift}"


def _either_case(folded: bool) -> str:
    return " in either case" if folded else ""


def _around(type: ir.ListType | ir.PairsType, entry: str) -> str:
    """Return an entry in words with the constant octets around it."""
    before, after = (f"0x{octets}" if octets else "" for octets in (type.before, type.after))
    return " ".join(filter(None, (before, entry, after)))


def _between(type: ir.PairsType) -> str:
    return f"0x{type.between} " if type.between else ""


def _number(type: ir.NumberType) -> str:
    match type:
        case ir.IntegerType():
            return _integer(type)
        case ir.FloatType(octets=octets, order=order):
            return f"floating-point number, {count_octets(octets)}{_order(order, octets)}"
        case ir.BooleanType(octets=octets, order=order):
            return f"boolean, {count_octets(octets)}{_order(order, octets)}"
        case ir.VarintType(order=order, maximum=maximum, signed=signed):
            sign = f", signed ({signed})" if signed else ""
            return f"integer, at most {count_octets(maximum)} of 7 bits, {order}-endian{sign}"
        case ir.DigitsType(base=base, minimum=minimum, maximum=maximum, signed=signed):
            number = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
            return f"integer, {number} digits of base {base}" + (", signed" if signed else "")


def _integer(type: ir.IntegerType) -> str:
    kind = "bits" if type.bitmask else "signed integer" if type.signed else "integer"
    among = f", one of {type.enum}{' or another' * type.open}" if type.enum else ""
    if type.values:
        among = f", one of {', '.join(map(str, type.values))}"
    return f"{kind}, {count_octets(type.octets)}{_order(type.order, type.octets)}{among}"


def _order(order: ir.Order, octets: int) -> str:
    return ", little-endian" if order == "little" and octets > 1 else ""


def _form(form: ir.SizeForm) -> str:
    return count_octets(form.octets) + (f" after 0x{form.tag}" if form.tag else "")


def _count(type: ir.ListType | ir.PairsType) -> str:
    words = "counted" if type.counted else f"up to 0x{type.until}" if type.until else "to the end"
    if number := ir.count_of(type):
        words = f"count in {_width(number)}"
    return words + (f", at least {type.minimum}" if type.minimum else "")


def _width(number: ir.CountType) -> str:
    """Return a plain number by its octets only."""
    if isinstance(number, ir.IntegerType) and not _order(number.order, number.octets):
        return count_octets(number.octets)
    return describe(number)


def describe_presence(part: ir.Part) -> str:
    """Return in words when a part is present."""
    if isinstance(part, ir.Rest):
        return "all remaining frames"
    match part.presence:
        case ir.Always(mask=0):
            return "always"
        case ir.Always(mask=mask, value=value):
            return f"always, and flags & 0x{mask:02x} is 0x{value:02x}"
        case ir.Announced(mask=mask, value=value):
            return f"where flags & 0x{mask:02x} is 0x{value:02x}"
        case ir.Counted():
            return "optional"


def describe_part(part: ir.Part) -> str:
    """Return a part with its kind and the names of its fields."""
    if isinstance(part, ir.Stack):
        return f"frames up to {describe_delimiter(part)}, {describe_presence(part)}"
    if isinstance(part, ir.Rest):
        return describe_presence(part)
    return f"frame of {', '.join(field.name for field in part.fields)}, {describe_presence(part)}"


def describe_delimiter(stack: ir.Stack) -> str:
    """Return in words the frame that ends a stack."""
    return f"one of 0x{stack.delimiter}" if stack.delimiter else "an empty one"


def _length(length: ir.Length) -> str:
    if length.prefix:
        return f"length in {_width(length.prefix)}"
    if length.kind == "run":
        return f"at least {count_octets(length.octets)} among 0x{length.among}"
    if length.kind == "until":
        return f"up to 0x{length.until}"
    if length.kind == "counted":
        return "counted"
    if length.kind == "fixed":
        return count_octets(length.octets)
    return "rest of the frame" + (f" but its last {count_octets(length.octets)}" if length.octets else "")


def count_octets(count: int) -> str:
    return f"{count} octet{'' if count == 1 else 's'}"


def describe_default(field: ir.Field) -> str:
    """Return in words the value of a field that a writer omits."""
    if field.required:
        return "required"
    return "absent by default" if field.default is None else f"default {field.default!r}"


def listed(items: tuple[str, ...] | list[str]) -> str:
    """Return items with commas, or ``nothing`` if there is none."""
    return ", ".join(items) or "nothing"
