"""Emitter of ``codec.py``: a class for each message, and `decode`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

from specwire.generator import ir
from specwire.generator.emit.bodies import (
    annotation_of,
    choice_function,
    choices,
    lends_slices,
    record_function,
    run_expression,
    run_names,
    strict_matters,
)
from specwire.generator.emit.decoding import (
    choice_reader,
    copy_parameter,
    decode_function,
    kept_heads,
    keyword_only,
    record_reader,
)
from specwire.generator.emit.encoding import choice_writer, encode_body, record_writer
from specwire.generator.emit.python import (
    annotation,
    constant_value,
    default,
    frame_fields,
    octets_literal,
    paragraph,
    sentence,
)
from specwire.generator.emit.records import enclosing, records, unions
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.ir.names import snake_case
from specwire.generator.passes.shapes import readers, takes_sender
from specwire.generator.plan import plan_of
from specwire.generator.plan.layouts import announcing_bits, selected
from specwire.generator.support.octets import pattern_atom
from specwire.generator.support.plan import Choose, Plan
from specwire.generator.support.words import number_of

_HELPERS = {
    "specwire.generated.checksums": ("compute_checksum",),
    "specwire.generated.numbers": ("read_digits", "read_varint", "write_digits", "write_varint"),
    "specwire.generated.octets": (
        "OCTETS", "as_octets", "bits_of", "index_of", "padded", "run_end", "sized", "terminated",
        "twos_complement", "unsigned", "view_of", "without_nul",
    ),
}  # fmt: skip
"""Modules and names that encoders and decoders can use."""


@dataclass(frozen=True, slots=True)
class _Class:
    """Message class for the template; every attribute is Python source."""

    name: str
    doc: str
    options: str
    constants: tuple[str, ...]
    fields: tuple[str, ...]
    wire_flags: str
    encode: str
    """Statements that assign ``frames``; for a message without fields, the frames themselves."""
    fixed: bool
    """The message has no fields, so its frames are constant."""
    decoder: str
    decode: str
    copy: str
    """Parameter of the decoder that says whether to copy octets, if any message has slices of a frame."""
    only: str
    """For a message whose values could match another message: the condition that they do."""
    sender: str
    """Argument with the sending role, if only the sender distinguishes the message."""


@dataclass(frozen=True, slots=True)
class _Record:
    """Class and two functions of a record, or the two functions of a union, as Python source."""

    function: str
    annotation: str
    read: str
    write: str
    doc: str = ""
    options: str = ""
    constants: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's codec module."""
    structs: dict[str, str] = {}
    plan = plan_of(protocol)
    inner = [_record(record, protocol, plan, structs) for record in records(protocol)]
    choosing = [_choice(choice, plan) for choice in choices(plan)]
    classes = [_class(message, protocol, plan, structs) for message in protocol.messages]
    bodies = "\n".join(entry.encode + entry.decode for entry in classes)
    bodies += "\n".join(entry.read + entry.write for entry in inner)
    pattern = any(selector.pattern for selector in protocol.selectors)
    widths = sorted({int(width) for width in re.findall(r"_U(\d+)\.", bodies)})
    return render(
        "codec.py.j2",
        header=header(protocol, f"{protocol.edition}: message classes, encoder and decoder."),
        name=protocol.name,
        edition=protocol.edition,
        enum_bases=[*(["IntEnum"] if protocol.enums else []), *(["IntFlag"] if protocol.flags else [])],
        enums=protocol.enums,
        flags=[(bit.name, f"0x{bit.value:02x}", paragraph(bit.doc, 4)) for bit in protocol.flags],
        constants=[(c.name, c.value, paragraph(c.doc)) for c in protocol.constants],
        messages=[message.class_name for message in protocol.messages],
        classes=classes,
        structs=[
            *((f"_U{width}", f">{ {8: 'B', 16: 'H', 32: 'I', 64: 'Q'}[width] }") for width in widths),
            *structs.items(),
        ],
        dispatch=_dispatch(protocol, lends=lends_slices(plan)),
        entries=_entries(protocol),
        enum_checks=[(f"_{enum.name.upper()}", tuple(v for _, v in enum.members)) for enum in protocol.enums],
        keyword_only=any(
            [keyword_only(one) for one in protocol.messages]
            + [keyword_only(one) for one in records(protocol)]
        ),
        helpers=[
            (module, name)
            for module, names in _HELPERS.items()
            for name in names
            if re.search(rf"\b{name}\b", bodies)
        ],
        uuids="UUID" in bodies,
        unpacks='unpack("' in bodies,
        records=inner,
        functions=[*inner, *choosing],
        reading=", depth: int" if plan.max_depth else "",
        writing=(", strict: bool" if strict_matters(plan) else "")
        + (", depth: int" if plan.max_depth else ""),
        heads=_heads(protocol) if pattern else "",
        folded=protocol.folded,
        runs=[(name, run_expression(among)) for among, name in run_names(plan).items()],
        shapes=not protocol.selectors,
        by_sender=takes_sender(protocol),
        kept_heads=f", heads={kept}" if (kept := kept_heads(protocol, plan)) else "",
        copied=", copy" if lends_slices(plan) else "",
        frame="Any" if lends_slices(plan) else "bytes",
        answers=_answers(protocol),
        unexpected=protocol.unexpected,
        roles=[role.letter for role in protocol.roles],
    )


def _class(message: ir.Message, protocol: ir.Protocol, plan: Plan, structs: dict[str, str]) -> _Class:
    own = next(one for one in plan.messages if one.class_name == message.class_name)
    encode, written = encode_body(message, own, protocol, plan)
    decode, read = decode_function(message, own, protocol, plan)
    structs |= read | written
    fixed = not list(frame_fields(message)) and len(encode.splitlines()) == 1
    return _Class(
        name=message.class_name,
        doc=class_doc(message, protocol),
        options=_class_options(message),
        constants=tuple(_constants(message, protocol)),
        fields=tuple(_fields(message, protocol)),
        wire_flags=wire_flags(message),
        encode=encode.strip().removeprefix("frames = ") if fixed else encode,
        fixed=fixed,
        decoder=f"_decode_{snake_case(message.name)}",
        decode=decode,
        copy=f", {copy_parameter(message)}: bool" if lends_slices(plan) else "",
        only=_spells_another(message, protocol),
        sender=_argument(readers(message, protocol)[0]),
    )


def _record(record: ir.RecordType, protocol: ir.Protocol, plan: Plan, structs: dict[str, str]) -> _Record:
    own = next(one for one in plan.records if one.class_name == record.class_name)
    read, reading = record_reader(record, own, protocol, plan)
    write, writing = record_writer(record, own, protocol, plan)
    structs |= reading | writing
    constants = [f"NAME: ClassVar[str] = {record.name!r}"]
    if any(record in union.options for union in unions(protocol)):
        constants.append("TAGGED: ClassVar[bool] = True")
    for found in record.fields:
        if isinstance(found.type, ir.ConstantType) and found.type.hex:
            kind, value = constant_value(found.type)
            constants.append(f"{found.attribute}: ClassVar[{kind}] = {value}")
    if keyword_only(record):
        constants.append(_match_args(record))
    return _Record(
        function=record_function(record.class_name),
        annotation=record.class_name,
        options=_class_options(record),
        read=read,
        write=write,
        doc=record_doc(record, protocol),
        constants=tuple(constants),
        fields=tuple(_field(found, False, protocol) for found in record.fields if not found.implied),
    )


def record_doc(record: ir.RecordType, protocol: ir.Protocol) -> str:
    """Return name, meaning and source of a record."""
    meaning = sentence(record.doc) or sentence(f"a run of fields of {protocol.title}")
    source = (
        f"Source: {protocol.edition}, rule {record.rule}." if record.rule else f"Source: {protocol.edition}."
    )
    return f"{paragraph(f'{record.name}: {meaning}', 4)}\n\n    {source}"


def _choice(choice: Choose, plan: Plan) -> _Record:
    return _Record(
        function=choice_function(choice.options),
        annotation=annotation_of(choice),
        read=choice_reader(choice, plan),
        write=choice_writer(choice, plan),
    )


def class_doc(message: ir.Message, protocol: ir.Protocol) -> str:
    """Return name, meaning and source of a message. Each field has its own docstring."""
    meaning = sentence(message.doc) or f"Message {message.name} of {protocol.title}."
    line = f", grammar line {message.line}" if message.line else ""
    return f"{paragraph(f'{message.name}: {meaning}', 4)}\n\n    Source: {protocol.edition}, rule {message.rule}{line}."


def _constants(message: ir.Message, protocol: ir.Protocol) -> list[str]:
    lines = [f"NAME: ClassVar[str] = {message.name!r}", f"PROTOCOL: ClassVar[str] = {protocol.name!r}"]
    for found in message.fields:
        if isinstance(found.type, ir.ConstantType) and found.type.hex:
            kind, value = constant_value(found.type)
            lines.append(f"{found.attribute}: ClassVar[{kind}] = {value}")
    if keyword_only(message):
        lines.append(_match_args(message))
    return lines


def _class_options(one: ir.Message | ir.RecordType) -> str:
    more = ", kw_only=True, metaclass=KeywordOnly" if keyword_only(one) else ""
    return f", frozen=True, gc=False{more}"


def _match_args(one: ir.Message | ir.RecordType) -> str:
    return f"__match_args__ = {tuple(found.attribute for found in one.fields if not found.implied)!r}"


def _fields(message: ir.Message, protocol: ir.Protocol) -> list[str]:
    return [_field(found, many, protocol) for found, many in frame_fields(message)]


def _field(found: ir.Field, many: bool, protocol: ir.Protocol) -> str:
    value = default(found, protocol.constants)
    type = annotation(found, many=many, enclosing=enclosing(protocol))
    line = f"{found.attribute}: {type}" + (f" = {value}" if value is not None else "")
    doc = paragraph(field_doc(found, many, announcing_bits(protocol)), 4)
    return f'{line}\n    """{doc}"""'


def field_doc(found: ir.Field, many: bool, announcing: int) -> str:
    """Return the meaning of a field, and what its type does not show: range, unit, sentinels, absence."""
    words = sentence(found.doc) or sentence(found.name.replace("_", " "))
    facts: list[str] = []
    match found.type:
        case ir.IntegerType(bitmask=True) if announcing:
            facts.append(
                f"without the bits 0x{announcing:02x}, which are computed from the other fields; `wire_flags` has all bits"
            )
        case ir.IntegerType(enum=None, values=()) | ir.VarintType() | ir.DigitsType():
            facts.append(_range(*ir.bounds(found.type)))
        case ir.FloatType(octets=4):
            facts.append("in single precision")
        case ir.BitType(enum=None, values=(), boolean=False, width=width):
            facts.append(_range(0, 2**width - 1))
        case ir.IntegerType(enum=str() as enum) | ir.BitType(enum=str() as enum):
            facts.append(f"a value of `{''.join(part.capitalize() for part in enum.split('_'))}`")
        case ir.IntegerType(values=values) | ir.BitType(values=values) if values:
            facts.append(" or ".join(map(str, values)))
        case ir.TextType(length=ir.Length(prefix=number)) if number is not None:
            facts.append(f"at most {_power(ir.bounds(number)[1])} octets of UTF-8")
        case ir.TextType(length=ir.Length(kind="until", until=until)):
            facts.append(f"without the terminator 0x{until}")
        case ir.TextType(length=ir.Length(kind="run", octets=least)) if least:
            facts.append(f"at least {number_of(least, 'octet')}")
        case ir.TextType(length=ir.Length(kind="fixed", octets=octets), padding=padding):
            facts.append(f"{'at most' if padding else 'exactly'} {octets} octets of UTF-8")
        case ir.OctetsType(length=ir.Length(kind="fixed", octets=octets)):
            facts.append(f"exactly {octets} octets")
        case ir.OctetsType(maximum=int() as maximum):
            facts.append(f"at most {maximum} octets")
        case ir.PairsType():
            facts.append("(name, value) pairs in wire order")
        case ir.KeywordType(options=options):
            facts.append(" or ".join(options))
        case ir.PresentType():
            facts.append("whether the optional octets are present")
    if many:
        facts.append("one item for each frame")
    if found.unit:
        facts.append(f"in {found.unit}")
    facts.extend(f"`{name}` is special" for name in found.sentinels)
    if found.optional:
        facts.append("None if the frame ends before it")
    elif found.option and found.nullable:
        facts.append(f"None unless {_condition(found.option)}")
    elif found.nullable:
        facts.append("None if the message has no such frame")
    return f"{words} {sentence('; '.join(facts))}".strip()


def _condition(option: ir.Option) -> str:
    """Return the condition for the fields of an option as text."""
    match option.kind:
        case "left":
            return (
                f"more than {number_of(option.left, 'octet')} are left" if option.left else "octets are left"
            )
        case "octets":
            return f"the octets 0x{option.octets} are there"
        case "number":
            mask = f" & 0x{option.mask:02x}" if option.mask else ""
            return f"`{option.field}`{mask} is {' or '.join(map(str, option.values))}"


def _range(least: int, most: int) -> str:
    """Return the values of a number as text."""
    return f"{_power(least)} to {_power(most)}"


def _power(value: int) -> str:
    """Return an integer as text; a long one that is near a power of two as that power."""
    if abs(value) < 2**32:
        return str(value)
    if value == -(2 ** (value.bit_length() - 1)):
        return f"-2**{value.bit_length() - 1}"
    return f"2**{value.bit_length()} - 1" if value == 2 ** value.bit_length() - 1 else str(value)


def wire_flags(message: ir.Message) -> str:
    """Return the expression for the complete flags octet; empty for a message without one."""
    flags = next((f for f in message.fields if isinstance(f.type, ir.IntegerType) and f.type.bitmask), None)
    if flags is None:
        return ""
    terms = [f"self.{flags.attribute}"]
    for part in message.parts:
        if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Counted) or not part.presence.value:
            continue
        name = part.fields[0].attribute if isinstance(part, ir.Frame) else part.field.attribute
        bits = f"0x{part.presence.value:02x}"
        always = isinstance(part.presence, ir.Always)
        terms.append(bits if always else f"({bits} if self.{name} is not None else 0)")
    return " | ".join(terms)


def _dispatch(protocol: ir.Protocol, *, lends: bool) -> str:
    """Return the expression that finds the decoder of a message."""
    if not protocol.selectors:
        return f"class_of(LAYOUT, given{', sender' if takes_sender(protocol) else ''})"
    if any(selector.pattern for selector in protocol.selectors):
        return "head and head.lastindex"
    parts = [
        f"given[{selector.frame}]" + ("" if selector.octets is None else f"[:{selector.octets}]")
        for selector in protocol.selectors
    ]
    if lends:
        # A view of mutable memory is not hashable.
        parts = [f"bytes({part})" for part in parts]
    if protocol.folded:
        parts = [f"{part}.lower()" for part in parts]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _entries(protocol: ir.Protocol) -> list[tuple[str, str]]:
    """Return the rows of the dispatch table: a value of the `_dispatch` expression, and the decoder."""
    rows: list[tuple[str, str]] = []
    if not protocol.selectors:
        return [(f'"{m.class_name}"', f"_decode_{snake_case(m.name)}") for m in protocol.messages]
    if any(selector.pattern for selector in protocol.selectors):
        return [
            (str(number), f"_decode_{snake_case(message.name)}")
            for number, (_, message) in enumerate(_patterns(protocol), start=1)
        ]
    for message in protocol.messages:
        for pieces in selected(message, protocol):
            spelled = [octets_literal(piece) for piece in pieces]
            key = spelled[0] if len(spelled) == 1 else f"({', '.join(spelled)})"
            rows.append((key, f"_decode_{snake_case(message.name)}"))
    return rows


def _patterns(protocol: ir.Protocol) -> list[tuple[str, ir.Message]]:
    """Return every pattern with its message, the longest first: the first match applies."""
    rows = [(tag, message) for message in protocol.messages for tag in message.tags]
    return sorted(rows, key=lambda row: -len(row[0]))


def _heads(protocol: ir.Protocol) -> str:
    """Return a regular expression whose alternatives are the patterns."""
    return "|".join(f"({_expression(tag)})" for tag, _ in _patterns(protocol))


def _expression(tag: str) -> str:
    octets = (tag[at : at + 2] for at in range(0, len(tag), 2))
    found = ""
    for octet, run in groupby(octets):
        count = len(list(run))
        atom = pattern_atom(octet)
        found += f"{atom}{{{count}}}" if count > 2 else atom * count
    return found


def _spells_another(message: ir.Message, protocol: ir.Protocol) -> str:
    if not message.shadowed:
        return ""
    if not protocol.selectors:
        return " or ".join(
            f'class_of(LAYOUT, frames{_argument(sender)}) != "{message.class_name}"'
            for sender in readers(message, protocol)
        )
    rows = [n for n, (_, other) in enumerate(_patterns(protocol), start=1) if other is message]
    return (
        f"(head := _HEADS.match(frames[0])) is None or head.lastindex not in {{{', '.join(map(str, rows))}}}"
    )


def _argument(sender: str | None) -> str:
    return "" if sender is None else f', "{sender}"'


def _answers(protocol: ir.Protocol) -> list[str]:
    """Return the rows of the answers table: role, message, field, kind, reply."""
    rows: list[str] = []
    for answer in protocol.answers:
        reply = answer.reply or "None"
        rows.append(f"({answer.role!r}, {answer.message!r}, {answer.field!r}, {answer.kind!r}, {reply})")
    return rows


EMITTER = Emitter("codec.py", emit, requires=("layout", "package"))
