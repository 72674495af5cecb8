"""Verdicts against the wire: what one edition writes is read by the other with a naive interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from hypothesis import HealthCheck, assume, example, given, settings

from specwire.generator import ir
from specwire.generator.compare import compare
from specwire.generator.compare.comparison import Verdict, worst
from specwire.generator.compare.matching import Pair, Place, match_layouts
from tests.examples import examples
from tests.generator.editions import editions, field, message, protocol, text
from tests.generator.interpreter import Chosen, Content, Contents, Refused, decode, encode, read, write

OCTETS = tuple(bytes(range(0x61, 0x61 + size)) for size in range(9))
"""Contents of every size, UTF-8."""
CANDIDATES = (
    *OCTETS[1:],
    *(b"\xff" * size for size in range(1, 9)),
    *(b"", b"\x00", b"\x01", b"\x02", b"\x07", b"\x09", b"\x0a", b"\x11", b"\x19"),
    *(octets[:-1] + end for octets in OCTETS[1:5] for end in (b" ", b".")),
)

Pairs = tuple[Pair[Place], ...]


def fits(owner: ir.Protocol, type: ir.Type, content: Content) -> bool:
    """Whether `content` is one of the type, on its own."""
    try:
        return read(owner, type, write(owner, type, content)) == (content, b"")
    except (Refused, AssertionError):
        return False


def contents_of(owner: ir.Protocol, type: ir.Type) -> list[Content]:
    """Contents of a type: its edges and some between."""
    match type:
        case ir.ConstantType():
            return [type.octets]
        case ir.PaddingType():
            return [b""]
        case ir.ListType(element=element):
            inside = contents_of(owner, element)
            found = [tuple((inside * 2)[:2]), (), *((item,) for item in inside), tuple((inside * 3)[:3])]
            return [content for content in found if fits(owner, type, content)]
        case ir.RecordType():
            return list(records_of(owner, type))
        case ir.UnionType(options=options):
            return [
                Chosen(option.name, contents) for option in options for contents in records_of(owner, option)
            ]
        case ir.PairsType():
            return [((b"name", b"value"), (b"n", b"v")), (), ((b"\xc3\xa9", b""),)]
        case ir.IntegerType(octets=octets, values=values):
            listed = [value.to_bytes(octets, "big") for value in values]
            sized = [*listed, bytes(range(0x31, 0x31 + octets)), b"\x01" * octets, bytes(octets)]
            return [content for content in (*sized, *CANDIDATES) if fits(owner, type, content)]
    return [content for content in CANDIDATES if fits(owner, type, content)]


def records_of(owner: ir.Protocol, type: ir.RecordType) -> Iterator[dict[str, Content]]:
    """Contents of a record: each content of each field in turn, the others their first."""
    choices = {one.name: contents_of(owner, one.type) for one in type.fields}
    base = {name: found[0] for name, found in choices.items()}
    yield base
    for name, found in choices.items():
        yield from ({**base, name: content} for content in found[1:])


def other_types(pairs: Pairs, writes_old: bool) -> dict[str, ir.Type]:
    """For the name of a field of the writer, its type for the reader."""
    ends = ((pair.old, pair.new) if writes_old else (pair.new, pair.old) for pair in pairs)
    return {writer.field.name: reader.field.type for writer, reader in ends if writer and reader}


def agreeable(
    writer: ir.Protocol, written: ir.Message, reader: ir.Protocol, types: dict[str, ir.Type]
) -> Contents:
    """Contents that both editions have a value for, as far as there are any: the best that a writer can do."""
    chosen: dict[str, Content] = {}
    for one in written.fields:
        choices = contents_of(writer, one.type)
        type = types.get(one.name)
        if type is None:
            choices = sorted(choices, key=lambda content: len(write(writer, one.type, content)))
        elif (
            isinstance(type, ir.ConstantType) and (content := content_of(writer, one.type, type)) is not None
        ):
            choices = [content]
        elif type is not None:
            choices = [c for c in choices if fits(reader, type, c)] or choices
        chosen[one.name] = choices[0]
    return chosen


def content_of(owner: ir.Protocol, type: ir.Type, constant: ir.ConstantType) -> Content | None:
    """The content whose octets are those of a constant, length and all; None where none is."""
    try:
        content, rest = read(owner, type, constant.octets)
    except Refused:
        return None
    return None if rest else content


def distinctive(owner: ir.Protocol, written: ir.Message) -> Contents:
    """Contents that cannot be mistaken for one another, and are not empty: no misreading goes unseen by luck."""
    numbers, members = cycle(range(0x21, 0x7F)), cycle(range(2, 9))
    used: set[int] = set()

    def fresh(type: ir.Type) -> Content:
        match type:
            case ir.ConstantType():
                return type.octets
            case ir.PaddingType():
                return b""
            case ir.RecordType(fields=fields):
                return {one.name: fresh(one.type) for one in fields}
            case ir.UnionType(options=options):
                contents = fresh(options[-1])
                assert isinstance(contents, dict)
                return Chosen(options[-1].name, contents)
            case ir.ListType(element=element):
                return fresh(element), fresh(element), fresh(element)
            case ir.IntegerType(octets=octets, values=values) if values:
                chosen = next((value for value in values if value not in used | {0}), values[-1])
                used.add(chosen)
                return chosen.to_bytes(octets, "big")
            case ir.PairsType(name=name, value=ir.TextType() as value):
                return ((fresh(name), fresh(value)),)
            case ir.IntegerType(enum=str()):
                return bytes((next(members),))
            case ir.IntegerType(octets=octets):
                return bytes(next(numbers) for _ in range(octets))
            case ir.TextType(length=length) | ir.OctetsType(length=length):
                most = (type.maximum if isinstance(type, ir.OctetsType) else None) or 5
                size = length.octets if length.kind == "fixed" else min(most, 5)
                return bytes(next(numbers) for _ in range(size))
        raise NotImplementedError(type)

    return {one.name: fresh(one.type) for one in written.fields}


def is_mistakable(contents: Contents, written: ir.Message) -> bool:
    """Whether two fields have one number, as they must where both may have few."""
    numbers = [contents[one.name] for one in written.fields if isinstance(one.type, ir.IntegerType)]
    return len(set(map(str, numbers))) < len(numbers)


def as_meant(
    writer: ir.Protocol, reader: ir.Protocol, pairs: Pairs, writes_old: bool, wrote: Contents, got: Contents
) -> bool:
    """Whether the reader has every content of the writer, and none besides.

    A constant has no content apart from its octets: where it stands for a field with a length, that length is in it.
    """
    for pair in pairs:
        sent, seen = (pair.old, pair.new) if writes_old else (pair.new, pair.old)
        types = [place.field.type for place in (sent, seen) if place]
        if any(isinstance(type, ir.PaddingType) for type in types):
            continue  # It means nothing, or is not looked at.
        told = wrote[sent.field.name] if sent else b""
        heard = got[seen.field.name] if seen else b""
        if sent and seen and any(isinstance(type, ir.ConstantType) for type in types):
            told = write(writer, sent.field.type, told)
            heard = write(reader, seen.field.type, heard)
        if told != heard:
            return False
    return True


def is_read(
    writer: ir.Protocol, reader: ir.Protocol, pairs: Pairs, writes_old: bool, contents: Contents
) -> bool:
    try:
        found, got = decode(reader, encode(writer, writer.messages[0], contents))
    except Refused:
        return False
    return found is reader.messages[0] and as_meant(writer, reader, pairs, writes_old, contents, got)


def samples(writer: ir.Protocol, reader: ir.Protocol, pairs: Pairs, writes_old: bool) -> Iterator[Contents]:
    """The agreeable contents, then each content of each field in turn, the others agreeable."""
    written = writer.messages[0]
    base = agreeable(writer, written, reader, other_types(pairs, writes_old))
    yield base
    for one in written.fields:
        for content in contents_of(writer, one.type):
            yield {**base, one.name: content}


def check_direction(
    writer: ir.Protocol, reader: ir.Protocol, verdict: Verdict, pairs: Pairs, writes_old: bool
) -> None:
    """Hold `verdict` against what happens."""
    seen = [
        is_read(writer, reader, pairs, writes_old, one) for one in samples(writer, reader, pairs, writes_old)
    ]
    distinct = distinctive(writer, writer.messages[0])
    telling = is_read(writer, reader, pairs, writes_old, distinct)
    match verdict:
        case Verdict.YES:
            assert all(seen) and telling, "something is refused or misread"
        case Verdict.DEPENDS:
            assert any(seen), "nothing is read as meant"
            assert not all(seen), "everything is read as meant"
        case Verdict.NO:
            mistakable = is_mistakable(distinct, writer.messages[0])
            assert not telling or mistakable, "contents that cannot be mistaken are read as meant"


def of_enum(place: Place | None) -> bool:
    return (
        place is not None
        and isinstance(place.field.type, ir.IntegerType)
        and place.field.type.enum is not None
    )


EMPTY = message("other", 2)


@given(editions())
@example(
    (
        protocol(message("demo", 1, field("alpha", text(1))), EMPTY),
        protocol(
            message("demo", 1, field("alpha", text(1)), field("beta", ir.OctetsType(ir.Length("rest")))),
            EMPTY,
        ),
    )
)
@example(
    (
        protocol(message("demo", 1, field("alpha", ir.OctetsType(ir.Length("rest")))), EMPTY),
        protocol(message("demo", 1, field("beta", ir.TextType(ir.Length("rest")))), EMPTY),
    )
)
@example(
    (
        protocol(message("demo", 1, field("alpha", ir.OctetsType(ir.Length("prefix", 1)))), EMPTY),
        protocol(message("demo", 1, field("alpha", ir.ConstantType("0568656c6c6f"))), EMPTY),
    )
)
@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_verdicts_are_what_happens_on_the_wire(pair: tuple[ir.Protocol, ir.Protocol]) -> None:
    old, new = pair
    comparison = compare(old, new)
    pairs = match_layouts(old.messages[0], new.messages[0]).fields
    # Padding gone and something else come can be the same octets: zeros are a length too, and nothing on the wire tells.
    gone = [pair.old for pair in pairs if pair.old and pair.new is None]
    come = [pair.new for pair in pairs if pair.new and pair.old is None]
    assume(not (gone and come and any(isinstance(place.field.type, ir.PaddingType) for place in gone + come)))
    # Whether another name means another thing is not on the wire.
    changes = [change for change in comparison.changes if change.kind != "renamed"]
    if not any(of_enum(pair.old) and of_enum(pair.new) for pair in pairs):
        changes = [change for change in changes if change.subject != "enumeration"]
    check_direction(new, old, worst(change.old_reads_new.verdict for change in changes), pairs, False)
    check_direction(old, new, worst(change.new_reads_old.verdict for change in changes), pairs, True)


@given(editions())
@settings(max_examples=examples(40), deadline=None)
def test_the_other_way_round_the_readers_change_places(pair: tuple[ir.Protocol, ir.Protocol]) -> None:
    forth, back = compare(*pair), compare(*pair[::-1])
    assert (forth.old_reads_new, forth.new_reads_old) == (back.new_reads_old, back.old_reads_new)
    assert len(forth.changes) == len(back.changes)


@given(editions())
@settings(max_examples=examples(50), deadline=None)
def test_nothing_changed_in_itself(pair: tuple[ir.Protocol, ir.Protocol]) -> None:
    for edition in pair:
        assert compare(edition, edition).verdict == "same"
