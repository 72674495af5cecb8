"""Small protocols of one-frame messages, and random small edits of them, as a new edition would make."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from hypothesis import strategies as st

from specwire.generator import ir

SIGNATURE = ir.ConstantType("aaa3")
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
ENUM = ir.Enum("kind", "Kind", tuple((f"KIND_{number}", number) for number in range(1, 9)))

Fields = tuple[ir.Field, ...]


def field(name: str, type: ir.Type, **settings: object) -> ir.Field:
    """Return a field with a comment of its own."""
    made = ir.Field(name=name, attribute=name, type=type, rule=None, line=0, doc=f"The {name}.")
    return msgspec.structs.replace(made, **settings)


def message(name: str, number: int, *fields: ir.Field) -> ir.Message:
    """Return a message of one frame: signature, number, then `fields`."""
    head = field("signature", SIGNATURE), field("id", ir.ConstantType(f"{number:02x}", number=number))
    return ir.Message(
        name=name, rule=name, class_name=name.capitalize(), doc="", line=0, senders=(),
        parts=(ir.Frame(name, (*head, *fields)),), tags=(f"aaa3{number:02x}",),
    )  # fmt: skip


def protocol(*messages: ir.Message, **settings: object) -> ir.Protocol:
    """Return a protocol that tells its messages apart by the first three octets."""
    made = ir.Protocol(
        ir_version=ir.IR_VERSION, name="demo", title="Demo", edition="Demo v1", source="", digest="", roles=(),
        messages=messages, selectors=(ir.Selector(0, 3),), rules=(), flags=(), enums=(ENUM,), constants=(),
        timers=(), answers=(), unexpected=(), dialogs=(),
    )  # fmt: skip
    return msgspec.structs.replace(made, **settings)


def text(octets: int) -> ir.TextType:
    return ir.TextType(ir.Length("prefix", octets))


integers = st.integers(1, 8).map(ir.IntegerType)
spans = st.one_of(
    st.sampled_from((1, 2, 4)).map(lambda octets: ir.Length("prefix", octets)),
    st.integers(1, 5).map(lambda octets: ir.Length("fixed", octets)),
)
scalars: st.SearchStrategy[ir.Type] = st.one_of(
    integers,
    st.just(ir.IntegerType(1, enum="kind")),
    spans.map(ir.OctetsType),
    st.sampled_from((1, 2, 4)).map(text),
    st.sampled_from((b"\x0a", b"\x11\x12", b"\x05hello")).map(lambda octets: ir.ConstantType(octets.hex())),
    st.integers(1, 4).map(ir.PaddingType),
    st.integers(1, 4).map(lambda octets: ir.TextType(ir.Length("fixed", octets), padding="20")),
    st.sampled_from(((0, 17, 18, 19), (17, 25))).map(lambda values: ir.IntegerType(1, values=values)),
    st.sampled_from((3, 6)).map(lambda most: ir.OctetsType(ir.Length("prefix", 1), 0, most)),
)
elements: st.SearchStrategy[ir.IntegerType | ir.TextType | ir.OctetsType] = st.one_of(
    integers, spans.map(ir.OctetsType), st.sampled_from((1, 2)).map(text)
)
types: st.SearchStrategy[ir.Type] = st.one_of(
    scalars,
    st.builds(ir.ListType, st.sampled_from((1, 2)), elements),
    st.builds(ir.ListType, st.sampled_from((1, 2)), elements, st.sampled_from((0, 1, 2))),
    st.builds(ir.PairsType, st.just(1), st.just(text(1)), st.sampled_from((text(1), text(4)))),
    st.builds(lambda *inside: record(*inside), elements, elements),
    st.builds(lambda *inside: ir.ListType(1, record(*inside)), elements, elements),
    st.builds(lambda *inside: union(*inside), elements, elements),
)


def record(*inside: ir.Type) -> ir.RecordType:
    """Return a record of fields that are named by their places."""
    return ir.RecordType("pair", "Pair", tuple(field(f"item_{n}", type) for n, type in enumerate(inside)))


def union(*inside: ir.Type) -> ir.UnionType:
    """Return one of several records, each a tag and a value."""
    tags = tuple(f"{number:02x}" for number, _ in enumerate(inside, start=0x41))
    options = tuple(
        msgspec.structs.replace(
            record(ir.ConstantType(tag), type), name=f"option_{tag}", class_name=f"Option{tag}"
        )
        for tag, type in zip(tags, inside, strict=True)
    )
    return ir.UnionType("choice", options, tags)


rests: st.SearchStrategy[ir.Type] = st.one_of(
    st.integers(0, 2).map(lambda minimum: ir.OctetsType(ir.Length("rest"), minimum)),
    st.just(ir.TextType(ir.Length("rest"))),
)


def ends_frame(type: ir.Type) -> bool:
    """Whether nothing can follow."""
    return isinstance(type, ir.TextType | ir.OctetsType) and type.length.kind == "rest"


@st.composite
def layouts(draw: st.DrawFn) -> Fields:
    """One to five fields, the last perhaps the rest of the frame."""
    names = draw(st.lists(st.sampled_from(NAMES[:5]), min_size=1, max_size=5, unique=True))
    fields = [field(name, draw(types)) for name in names]
    if draw(st.booleans()):
        fields[-1] = field(names[-1], draw(rests))
    return tuple(fields)


def _free_name(fields: Fields) -> str:
    return next(name for name in NAMES if name not in {field.name for field in fields})


def _append(draw: st.DrawFn, fields: Fields) -> Fields:
    if fields and ends_frame(fields[-1].type):
        return _insert(draw, fields)
    return (*fields, field(_free_name(fields), draw(st.one_of(types, rests))))


def _insert(draw: st.DrawFn, fields: Fields) -> Fields:
    at = draw(st.integers(0, max(len(fields) - 1, 0)))
    return (*fields[:at], field(_free_name(fields), draw(types)), *fields[at:])


def _remove(draw: st.DrawFn, fields: Fields) -> Fields:
    at = draw(st.integers(0, len(fields) - 1)) if fields else 0
    return (*fields[:at], *fields[at + 1 :])


def _swap(draw: st.DrawFn, fields: Fields) -> Fields:
    movable = [number for number, one in enumerate(fields) if not ends_frame(one.type)]
    if len(movable) < 2:
        return fields
    i, j = draw(st.lists(st.sampled_from(movable), min_size=2, max_size=2, unique=True))
    order = list(fields)
    order[i], order[j] = order[j], order[i]
    return tuple(order)


def _rename(draw: st.DrawFn, fields: Fields) -> Fields:
    return _edit_one(draw, fields, lambda one: msgspec.structs.replace(one, name=_free_name(fields)))


def _retype(draw: st.DrawFn, fields: Fields) -> Fields:
    def other(one: ir.Field) -> ir.Field:
        last = one is fields[-1]
        return msgspec.structs.replace(one, type=draw(st.sampled_from(_neighbours(one.type, last))))

    return _edit_one(draw, fields, other)


def _edit_one(draw: st.DrawFn, fields: Fields, edit: Callable[[ir.Field], ir.Field]) -> Fields:
    if not fields:
        return fields
    at = draw(st.integers(0, len(fields) - 1))
    return (*fields[:at], edit(fields[at]), *fields[at + 1 :])


def _neighbours(type: ir.Type, last: bool) -> Sequence[ir.Type]:
    """Types that a new edition might give the field instead; only the last field may take the rest."""
    rest: list[ir.Type] = [ir.OctetsType(ir.Length("rest")), ir.TextType(ir.Length("rest"))] if last else []
    match type:
        case ir.ConstantType(hex=octets):
            size = len(octets) // 2
            return [
                ir.ConstantType("7f" * size),
                ir.IntegerType(size),
                ir.OctetsType(ir.Length("fixed", size)),
            ]
        case ir.IntegerType(octets=octets):
            wider = ir.IntegerType(octets % 8 + 1)
            return [wider, ir.ConstantType("01" * octets), ir.OctetsType(ir.Length("fixed", octets)), *rest]
        case ir.OctetsType(length=length, minimum=minimum):
            more = (
                []
                if length.kind == "fixed"
                else [ir.OctetsType(length, minimum + 2), ir.OctetsType(length, 0, 2)]
            )
            return [ir.TextType(length), *more, ir.OctetsType(ir.Length("prefix", 2)), *rest]
        case ir.PaddingType(octets=octets):
            return [ir.PaddingType(octets + 1), ir.PaddingType(octets, "ff"), ir.IntegerType(octets)]
        case ir.TextType(length=length, padding=str()):
            return [ir.TextType(length), ir.OctetsType(length), ir.TextType(length, padding="2e"), *rest]
        case ir.TextType(length=length):
            return [
                ir.OctetsType(length),
                ir.OctetsType(length, 1),
                ir.TextType(ir.Length("prefix", 3)),
                *rest,
            ]
        case ir.ListType(count_octets=octets, element=element):
            return [
                ir.ListType(octets + 1, element),
                ir.ListType(octets, ir.OctetsType(ir.Length("prefix", 1))),
                ir.ListType(octets, element, 1),
                *(ir.ListType(octets, one) for one in _inner(element)),
            ]
        case ir.RecordType() | ir.UnionType():
            return _inner(type)
        case ir.PairsType(count_octets=octets, name=name, value=value):
            return [ir.PairsType(octets + 1, name, value), ir.PairsType(octets, name, text(2))]
    return [type]


def _inner(type: ir.Type) -> list[ir.RecordType | ir.UnionType]:
    """The type with a value inside it changed, added or removed; nothing where it has none."""
    match type:
        case ir.RecordType(fields=fields):
            inside = [one.type for one in fields]
            changed = [record(*inside[:-1], other) for other in _neighbours(inside[-1], False)]
            return [
                *changed,
                record(*inside, ir.IntegerType(2)),
                *([record(*inside[:-1])] if inside[1:] else []),
            ]
        case ir.UnionType(options=options):
            inside = [option.fields[1].type for option in options]
            others = [union(*inside[:-1], other) for other in _neighbours(inside[-1], False)]
            return [
                *others,
                union(*inside, ir.IntegerType(2)),
                *([union(*inside[:-1])] if inside[1:] else []),
            ]
    return []


EDITS = (_append, _insert, _remove, _swap, _rename, _retype)
enums = st.sampled_from(
    (
        ENUM,
        msgspec.structs.replace(ENUM, members=(*ENUM.members, ("KIND_9", 9))),
        msgspec.structs.replace(ENUM, members=ENUM.members[:6]),
    )
)


@st.composite
def editions(draw: st.DrawFn) -> tuple[ir.Protocol, ir.Protocol]:
    """An edition, and the next one: one or two edits of one message, perhaps of the enumeration."""
    before = after = draw(layouts())
    for _ in range(draw(st.integers(1, 2))):
        after = draw(st.sampled_from(EDITS))(draw, after)
    other = message("other", 2)
    number = draw(st.sampled_from((1, 1, 1, 1, 3)))
    new = protocol(message("demo", number, *after), other, enums=(draw(enums),))
    return protocol(message("demo", 1, *before), other), new
