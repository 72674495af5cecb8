"""Protocols of every kind of layout, drawn at random: what the IR allows, in names that Python finds awkward."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from specwire.generator import ir
from specwire.generator.ir.names import attribute

T = TypeVar("T")
NAMES = (
    "alpha", "class", "frames", "frame", "at", "self", "encode", "octets", "size", "count", "name", "value",
    "replace", "items", "strict", "copy", "head", "pair", "entry", "sized", "padded", "type",
    "id", "end", "text", "count_2", "message", "record", "bytes", "len", "tuple",
)  # fmt: skip
PREFIXES = (1, 2, 3, 4, 8)
DEEPEST = 2
ENUM = ir.Enum("kind", "Kind", (("LOW", 1), ("MIDDLE", 2), ("HIGH", 200)))
FIXED = st.integers(1, 4)
LETTERS = bytes(range(0x61, 0x7B)).hex()
PRINTABLE = bytes(range(0x21, 0x7F)).hex()


class Layouts:
    """Draws types; class names are given once, field names once in a run."""

    def __init__(self, draw: st.DrawFn, *, values: bool = False, more: bool = False) -> None:
        self.draw = draw
        self.values = values
        """Draw numbers of every coding, counters, checksums, trailers and padding, too."""
        self.more = more
        """Draw bits, options, items up to octets, and runs of octets, too."""
        self.records = 0

    def one_of(self, *choices: T) -> T:
        return self.draw(st.sampled_from(choices))

    def maybe(self) -> bool:
        return self.draw(st.booleans())

    # Values without values inside

    def number(self) -> ir.NumberType | ir.UuidType:
        """A number of any coding, or a UUID."""
        order, octets = self.order(), self.draw(st.integers(1, 8))
        match self.draw(st.integers(0, 6)):
            case 0:
                return ir.IntegerType(octets, values=(0, 1, 127), order=order, signed=self.maybe())
            case 1:
                return ir.FloatType(8 if self.maybe() else 4, order)
            case 2:
                return ir.BooleanType(self.one_of(1, 1, 2, 3, 4), order)
            case 3:
                maximum = self.one_of(1, 4, 9, 10)
                return ir.VarintType(order, maximum, self.one_of(None, "zigzag", "complement"))
            case 4:
                digits = self.draw(st.integers(1, 16))
                return ir.DigitsType(self.one_of(10, 16), digits, digits, self.maybe())
            case 5:
                return ir.UuidType(order)
        return ir.IntegerType(octets, order=order, signed=self.maybe())

    def order(self) -> ir.Order:
        return "little" if self.maybe() else "big"

    def integer(self) -> ir.IntegerType:
        octets = self.draw(st.integers(1, 8))
        match self.draw(st.integers(0, 3)):
            case 0:
                return ir.IntegerType(octets, values=(0, 1, 2, 256**octets - 1))
            case 1:
                return ir.IntegerType(octets, enum="kind")
        return ir.IntegerType(octets)

    def prefix(self) -> ir.Length:
        return ir.Length("prefix", self.one_of(*PREFIXES))

    def text(self) -> ir.TextType:
        if self.maybe():
            return ir.TextType(self.prefix())
        padding = self.one_of(None, "00", "20")
        return ir.TextType(ir.Length("fixed", self.draw(FIXED)), padding=padding)

    def octets(self) -> ir.OctetsType:
        if self.maybe():
            return ir.OctetsType(ir.Length("fixed", self.draw(FIXED)))
        minimum = self.one_of(0, 0, 1, 3)
        return ir.OctetsType(self.prefix(), minimum, self.one_of(None, minimum, minimum + 2))

    def constant(self) -> ir.ConstantType:
        return ir.ConstantType(self.one_of("0a", "1112", "05" + b"hello".hex()))

    # Values with values inside

    def element(self, depth: int) -> ir.Element:
        """A value that takes an octet or more and says itself where it ends."""
        makers: list[Callable[[], ir.Element]] = [self.integer, self.text, self.octets]
        makers += [self.number] if self.values else []
        if depth < DEEPEST:
            makers += [
                lambda: self.list_of(depth + 1),
                lambda: self.record(depth + 1),
                lambda: self.union(depth + 1),
            ]
            makers += [lambda: self.pairs(self.one_of(1, 2))]
        return self.one_of(*makers)()

    def list_of(self, depth: int, *, counted: bool = True) -> ir.ListType:
        return ir.ListType(
            self.one_of(*PREFIXES) if counted else 0, self.element(depth), self.one_of(0, 0, 1, 2)
        )

    def pairs(self, count: int) -> ir.PairsType:
        minimum = self.one_of(0, 0, 1)
        if self.maybe():
            name = ir.TextType(self.prefix())
            return ir.PairsType(count, name, split=self.one_of("first", "last"), rule="pair", minimum=minimum)
        value = self.text() if self.maybe() else self.octets()
        return ir.PairsType(count, self.text(), value, minimum=minimum)

    def record(self, depth: int, head: str = "") -> ir.RecordType:
        """A record; one whose last value is open, or may be left out, has a size."""
        self.records += 1
        number, rule = self.records, f"record-{self.records}"
        fields = self.run(depth, head, closed=True)
        return ir.RecordType(f"record_{number}", f"Record{number}", fields, self.one_of(rule, None))

    def union(self, depth: int) -> ir.UnionType:
        tags = self.one_of(("01", "02"), ("01", "0200", "0201"), ("4142", "43"))
        options = tuple(self.record(depth, tag) for tag in tags)
        return ir.UnionType("choice", options, tags)

    # Runs

    def run(self, depth: int, head: str, *, closed: bool = False) -> tuple[ir.Field, ...]:
        """The constant `head` as the field ``mark``, then fields; the last may be open where the run is not `closed` or has a size."""
        names = iter(self.draw(st.lists(st.sampled_from(NAMES), min_size=6, max_size=6, unique=True)))
        fields = [field("mark", ir.ConstantType(head))] if head else []
        fields += [field(next(names), self.closed(depth)) for _ in range(self.draw(st.integers(0, 2)))]
        if self.maybe() and self.maybe():
            self.records += 1
            fields += self.delimited(self.records)
        if self.values and self.maybe():
            fields += self.derived(depth)
        for _ in range(self.draw(st.integers(0, 2)) if self.more else 0):
            fields += self.one_of(
                self.packed, self.conditional, self.prefaced, self.said, self.lines, self.tokens, self.wrapped
            )(depth)
        if self.maybe() and self.maybe():
            self.records += 1
            fields.append(field(f"length_{self.records}", self.size()))
            closed = False
            fields += [field(next(names), self.closed(depth)) for _ in range(self.draw(st.integers(0, 2)))]
        if not closed and self.more and self.maybe() and self.maybe():
            fields += self.left(depth)
        elif not closed and self.values and self.maybe() and self.maybe():
            fields += self.trailed()
        elif not closed and self.maybe():
            fields += self.tail(depth, next(names), next(names))
        return tuple(fields) or (field(next(names), self.integer()),)

    def derived(self, depth: int) -> list[ir.Field]:
        """Values counted by a number that need not be next to them, padding, and a checksum of some of them."""
        self.records += 1
        n = self.records
        counter, plus = self.counter(), self.one_of(0, 0, 3)
        open_ = ir.Length("counted")
        counted: list[ir.Type] = [
            ir.TextType(open_), ir.OctetsType(open_, self.one_of(0, 1)),
            ir.ListType(0, self.element(depth + 1), counted=True),
            ir.PairsType(0, ir.TextType(self.prefix()), self.text(), counted=True),
            ir.ListType(0, self.element(depth + 1)), ir.TextType(ir.Length("rest")), self.element(depth),
        ]  # fmt: skip
        value = field(f"counted_{n}", self.one_of(*counted))
        also = [field(f"also_{n}", self.octets())] if self.maybe() else []
        names = (*(one.name for one in also), value.name)
        between = [field(f"between_{n}", self.closed(depth))] if self.maybe() else []
        if also and isinstance(value.type, ir.TextType | ir.OctetsType):
            value = field(value.name, ir.OctetsType(ir.Length("rest")))
        if also and isinstance(value.type, ir.ListType | ir.PairsType):
            value = field(value.name, ir.ListType(0, self.integer()))
        # Without it, a digit of the next value would belong to the number.
        space = [field(f"space_{n}", ir.ConstantType("20"))] * isinstance(counter, ir.DigitsType)
        counts = field(f"counter_{n}", ir.CounterType(counter, names, plus))
        found = [counts, *space, *between, *also, value]
        if also and self.maybe():
            # One of the fields in the region has a length that stands before the region, too.
            also_open = ir.OctetsType(ir.Length("counted"))
            found[found.index(also[0])] = field(also[0].name, also_open)
            own = ir.CounterType(ir.IntegerType(self.one_of(1, 2)), (also[0].name,))
            found.insert(0, field(f"own_{n}", own))
        if also and self.maybe():
            # The checksum is inside the region and covers octets before it.
            found += self.summed(n, found, counts)
            return found
        if self.maybe():
            found.append(field(f"pad_{n}", ir.PaddingType(0, "2d", self.one_of(2, 4, 8))))
        if self.maybe():
            algorithm, octets = self.one_of(("crc32", 4), ("crc16-ccitt", 2), ("adler32", 4), ("sum8", 1))
            over = [one.name for one in found if one not in between or self.maybe()]
            sum_ = ir.ChecksumType(ir.IntegerType(octets, order=self.order()), algorithm, tuple(over))
            place = self.one_of(0, len(found))
            found.insert(place, field(f"sum_{n}", sum_))
        return found

    def summed(self, n: int, found: list[ir.Field], counts: ir.Field) -> list[ir.Field]:
        """A checksum of all, as the last field of the region that `counts` counts."""
        sum_ = field(
            f"sum_{n}", ir.ChecksumType(ir.IntegerType(4), "crc32", tuple(one.name for one in found))
        )
        assert isinstance(counts.type, ir.CounterType)
        wider = msgspec.structs.replace(counts.type, counts=(*counts.type.counts, sum_.name))
        last = found[-1]
        body = ir.OctetsType(ir.Length("rest", 4))
        found[-1] = field(last.name, body)
        found[found.index(counts)] = field(counts.name, wider)
        return [sum_]

    def counter(self) -> ir.IntegerType | ir.VarintType | ir.DigitsType:
        """An unsigned number that counts."""
        match self.draw(st.integers(0, 3)):
            case 0:
                return ir.VarintType(self.order(), self.one_of(1, 4))
            case 1:
                return ir.DigitsType(self.one_of(10, 16), self.one_of(1, 2), self.one_of(2, 5))
        return ir.IntegerType(self.one_of(1, 2, 3, 8), order=self.order())

    def trailed(self) -> list[ir.Field]:
        """A value up to a trailer of fixed size."""
        self.records += 1
        n = self.records
        size = self.draw(FIXED)
        trailer = [field(f"trailer_{n}", ir.OctetsType(ir.Length("fixed", size)))]
        if self.maybe():
            trailer.append(field(f"number_{n}", ir.IntegerType(2, order=self.order())))
            size += 2
        length = ir.Length("rest", size)
        body = ir.TextType(length) if self.maybe() else ir.OctetsType(length, self.one_of(0, 1))
        return [field(f"body_{n}", body), *trailer]

    def delimited(self, number: int) -> list[ir.Field]:
        """A text, and the constant that ends it."""
        end = self.one_of("20", "0d0a", "2d2d", "00")
        text = ir.TextType(ir.Length("until", until=end))
        return [field(f"text_{number}", text), field(f"end_{number}", ir.ConstantType(end))]

    # Bits and options

    def next(self) -> int:
        self.records += 1
        return self.records

    def packed(self, depth: int) -> list[ir.Field]:
        """An integer that is made of bits, and the values that some of them count or announce."""
        n, octets, order = self.next(), self.one_of(1, 2, 2, 3, 4, 8), self.order()
        bits: list[ir.Field] = []
        behind: list[ir.Field] = []
        shift = 8 * octets
        while shift:
            width = self.one_of(shift, 1, 1, 2, 3, 4, 8, 12) if len(bits) < 5 else shift
            width = min(width, shift)
            shift -= width
            name = f"bits_{n}_{len(bits)}"
            part = ir.BitType(octets, shift, width, order)
            found, values = self.bits(name, part, depth)
            bits.append(found)
            behind += values
        return [*bits, *behind]

    def bits(self, name: str, part: ir.BitType, depth: int) -> tuple[ir.Field, list[ir.Field]]:
        """Some bits, and the values behind their integer that depend on them."""
        most = 2**part.width - 1
        match self.draw(st.integers(0, 8)):
            case 0:
                return field(name, msgspec.structs.replace(part, constant=self.one_of(0, 1, most))), []
            case 1:
                return field(name, msgspec.structs.replace(part, values=(0, most))), []
            case 2:
                return field(name, msgspec.structs.replace(part, spare=True)), []
            case 3 if part.width == 1:
                return field(name, msgspec.structs.replace(part, boolean=True)), []
            case 4 if part.width == 1:
                option = ir.Option("number", self.next(), field=name, values=(1,))
                announcing = msgspec.structs.replace(part, announces=True)
                groups = self.group(option, depth)
                if self.maybe():
                    groups.append(field(f"between_{self.next()}", self.integer()))
                    groups += self.group(msgspec.structs.replace(option, number=self.next()), depth)
                return field(name, announcing), groups
            case 5 | 6 if part.width > 1:
                values = self.counted(f"counted_{name}", depth)
                plus = self.one_of(0, 0, 1)
                return field(name, ir.CounterType(part, (values[0].name,), plus)), values
            case 7:
                option = ir.Option("number", self.next(), field=name, values=tuple(sorted({1, most})))
                return field(name, part), self.group(option, depth)
        return field(name, part), []

    def counted(self, name: str, depth: int) -> list[ir.Field]:
        """A value that a number anywhere before it counts."""
        open_ = ir.Length("counted")
        counted: tuple[ir.Type, ...] = (
            ir.TextType(open_), ir.OctetsType(open_), ir.ListType(0, self.element(depth + 1), counted=True),
            ir.ListType(0, self.integer()),
        )  # fmt: skip
        return [field(name, self.one_of(*counted))]

    def group(self, option: ir.Option, depth: int) -> list[ir.Field]:
        """Fields that are there together."""
        n = self.next()
        found = [field(f"option_{n}", self.element(depth + 1), option=option)]
        if self.maybe():
            found.insert(0, field(f"constant_{n}", self.constant(), option=option))
        if self.maybe():
            counter = ir.CounterType(ir.IntegerType(self.one_of(1, 2)), (f"counted_{n}",))
            found.append(field(f"counter_{n}", counter, option=option))
            found.append(field(f"counted_{n}", ir.OctetsType(ir.Length("counted")), option=option))
        elif self.maybe():
            found.append(field(f"other_{n}", self.integer(), option=option))
        return found

    def conditional(self, depth: int) -> list[ir.Field]:
        """A number, and fields that are there for some of its values."""
        n, mask = self.next(), self.one_of(0, 1, 0x80)
        types: tuple[ir.Type, ...] = (
            ir.IntegerType(self.one_of(1, 2, 8), order=self.order(), signed=self.maybe()),
            ir.VarintType("little", 2), ir.IntegerType(1, values=(0, 1, 2, 128)),
            ir.DigitsType(10, 3, 3),
        )  # fmt: skip
        number = field(f"number_{n}", self.one_of(*types))
        values = self.one_of((mask,), (0,)) if mask else self.one_of((0,), (1, 2))
        found = [number]
        for _ in range(self.one_of(1, 1, 2)):
            option = ir.Option("number", self.next(), field=number.name, mask=mask, values=values)
            found += self.group(option, depth)
            if self.maybe():
                found.append(field(f"between_{self.next()}", self.integer()))
        return found

    def prefaced(self, depth: int) -> list[ir.Field]:
        """A text behind a constant, or nothing; then a value that does not begin with the constant."""
        n, end = self.next(), self.one_of("20", "3a")
        folded = self.maybe()
        head = self.one_of("23", "23" + b"To".hex())
        option = ir.Option("octets", self.next(), octets=head, folded=folded)
        found = [field(f"head_{n}", ir.ConstantType(head, folded=folded), option=option)]
        text = ir.TextType(ir.Length("until", until=end))
        found.append(field(f"headed_{n}", text, option=option))
        found.append(field(f"end_{n}", ir.ConstantType(end), option=option))
        return self.in_region([*found, *self.token()])

    def in_region(self, fields: list[ir.Field]) -> list[ir.Field]:
        """Fields, now and then behind the number of their octets."""
        if not self.maybe() or not self.maybe():
            return fields
        names = tuple(one.name for one in fields)
        number = self.one_of(ir.IntegerType(1), ir.IntegerType(2))
        return [field(f"octets_{self.next()}", ir.CounterType(number, names)), *fields]

    def said(self, depth: int) -> list[ir.Field]:
        """Whether a constant is there."""
        n, folded = self.next(), self.maybe()
        head = b" noREPLY".hex()
        option = ir.Option("octets", n, octets=head, folded=folded)
        found = [field(f"literal_{n}", ir.ConstantType(head, folded=folded), option=option)]
        found.insert(self.one_of(0, 1), field(f"present_{n}", ir.PresentType(), option=option))
        return self.in_region([*found, *self.token()])

    def left(self, depth: int) -> list[ir.Field]:
        """Fields that are there if more is left than the trailer."""
        size, n = self.draw(st.integers(0, 3)), self.next()
        found: list[ir.Field] = []
        for number in range(self.one_of(1, 1, 2)):
            option = ir.Option("left", self.next(), left=size)
            found += self.group(option, depth)
            if number == 0 and self.maybe():
                found.append(field(f"more_{n}", ir.IntegerType(1), option=option))
        trailer = field(f"trailer_{n}", ir.OctetsType(ir.Length("fixed", size)))
        return [*found, trailer] if size else found

    # Runs of octets, and items up to octets

    def token(self) -> list[ir.Field]:
        """A text of letters, and a constant behind it."""
        n = self.next()
        text = ir.TextType(ir.Length("run", self.one_of(0, 1, 2), among=LETTERS))
        return [
            field(f"token_{n}", text),
            field(f"end_{n}", ir.ConstantType(self.one_of("00", "20", "0d0a"))),
        ]

    def tokens(self, depth: int) -> list[ir.Field]:
        """Words, each behind a space or before it, up to the end of the line."""
        n, behind = self.next(), self.maybe()
        text = ir.TextType(ir.Length("run", 1, among=self.one_of(LETTERS, PRINTABLE)))
        before, after = ("", "20") if behind else ("20", "")
        minimum = self.one_of(0, 0, 1)
        words = ir.ListType(0, text, minimum, before=before, after=after, until="0d0a")
        return [field(f"words_{n}", words), field(f"end_{n}", ir.ConstantType("0d0a"))]

    def lines(self, depth: int) -> list[ir.Field]:
        """Names and values in lines, up to an empty line."""
        n, minimum = self.next(), self.one_of(0, 0, 1)
        name = ir.TextType(ir.Length("until", until="3a"))
        value: ir.TextType | ir.OctetsType = ir.TextType(ir.Length("until", until="0a"))
        if self.maybe():
            pairs = ir.PairsType(0, name, value, minimum=minimum, between="3a", after="0a", until="0a")
        else:
            value = self.text() if self.maybe() else self.octets()
            pairs = ir.PairsType(0, name, value, minimum=minimum, between="3a", until="0a")
        return [field(f"pairs_{n}", pairs), field(f"end_{n}", ir.ConstantType("0a"))]

    def wrapped(self, depth: int) -> list[ir.Field]:
        """Items with constants around them, counted or up to a constant."""
        n, end = self.next(), self.one_of("fe", "feff")
        before, after = self.one_of("", "01", "0102"), self.one_of("", "03", "0304")
        if self.maybe():
            # Two items of one octet could be what ends the items.
            before = before or "01" * (len(end) > 2)
            element = self.element(depth + 1)
            items: ir.Type = ir.ListType(0, element, before=before, after=after, until=end)
            return [field(f"items_{n}", items), field(f"end_{n}", ir.ConstantType(end))]
        value = self.text() if self.maybe() else self.octets()
        pairs = ir.PairsType(
            self.one_of(*PREFIXES),
            self.text(),
            value,
            before=before,
            between=self.one_of("", "3d"),
            after=after,
        )
        return [field(f"items_{n}", pairs)]

    def closed(self, depth: int) -> ir.Type:
        makers: list[Callable[[], ir.Type]] = [lambda: self.element(depth), self.constant]
        makers += [lambda: ir.PaddingType(self.draw(FIXED), self.one_of("00", "ff"))]
        maker = self.one_of(*makers)
        return maker()

    def size(self) -> ir.SizeType:
        forms = self.one_of(
            (("", 1),), (("", 2),), (("", 8),), (("f0", 1), ("f1", 8)), (("f0", 1), ("f1", 2), ("f2f3", 4)),
            (("", 1), ("ff", 8)),
        )  # fmt: skip
        return ir.SizeType(tuple(ir.SizeForm(tag, octets) for tag, octets in forms))

    def last(self) -> ir.Type:
        rest = ir.Length("rest")
        types: tuple[ir.Type, ...] = (self.integer(), ir.OctetsType(rest, 1), ir.TextType(rest))
        return self.one_of(*types)

    def tail(self, depth: int, name: str, other: str) -> list[ir.Field]:
        """What goes on to the end of the run, or may be left out there."""
        rest = ir.Length("rest")
        match self.draw(st.integers(0, 5)):
            case 0:
                return [field(name, ir.TextType(rest, terminated=self.maybe()))]
            case 1:
                return [field(name, ir.OctetsType(rest, self.one_of(0, 1), self.one_of(None, 3)))]
            case 2:
                return [field(name, self.list_of(depth, counted=False))]
            case 3:
                return [field(name, self.pairs(0))]
            case 4:
                return [field(name, self.element(depth), optional=True)]
        return [field(name, self.element(depth), optional=True), field(other, self.last(), optional=True)]


def field(
    name: str,
    type: ir.Type,
    *,
    optional: bool = False,
    nullable: bool = False,
    option: ir.Option | None = None,
) -> ir.Field:
    absent = optional or nullable or (option is not None and not isinstance(type, ir.PresentType))
    return ir.Field(
        name,
        attribute(name),
        type,
        rule=None,
        line=0,
        doc="",
        required=not absent,
        nullable=absent,
        optional=optional,
        option=option,
    )


def message(
    number: int, parts: tuple[ir.Part, ...], tag: str, shapes: tuple[ir.Shape, ...] = ()
) -> ir.Message:
    name = f"MESSAGE-{number}"
    return ir.Message(
        name=name,
        rule=name,
        class_name=f"Message{number}",
        doc="",
        line=0,
        senders=(),
        parts=parts,
        tags=() if shapes else (tag,),
        shapes=shapes,
    )


def protocol(
    messages: tuple[ir.Message, ...],
    selector: ir.Selector | None,
    flags: tuple[ir.FlagBit, ...] = (),
    *,
    folded: bool = False,
    max_depth: int = 0,
) -> ir.Protocol:
    """Return the protocol of messages; without a selector, they have shapes."""
    selectors = () if selector is None else (selector,)
    return ir.Protocol(
        ir_version=ir.IR_VERSION, name="demo", title="Demo", edition="Demo v1", source="", digest="0" * 64, roles=(),
        messages=messages, selectors=selectors, rules=(), flags=flags, enums=(ENUM,), constants=(), timers=(),
        answers=(), unexpected=(), dialogs=(), folded=folded, max_depth=max_depth,
    )  # fmt: skip


@st.composite
def one_frame(draw: st.DrawFn) -> ir.Protocol:
    """Two messages of one frame."""
    layouts = Layouts(draw)
    messages = tuple(
        message(
            number, (ir.Frame(f"MESSAGE-{number}", layouts.run(0, f"aaa1{number:02x}")),), f"aaa1{number:02x}"
        )
        for number in (1, 2)
    )
    return protocol(messages, ir.Selector(0, 3))


@st.composite
def several_frames(draw: st.DrawFn) -> ir.Protocol:
    """A header in front, then frames: always there, left out at the end, or all that are left."""
    layouts = Layouts(draw)
    parts: list[ir.Part] = [ir.Frame("MESSAGE-1", layouts.run(0, "aaa101"))]
    parts += [ir.Frame("body", (field("body", whole(layouts)),)) for _ in range(draw(st.integers(0, 1)))]
    match draw(st.integers(0, 2)):
        case 0:
            parts.append(
                ir.Rest("content", field("content", ir.OctetsType(ir.Length("rest"), layouts.one_of(0, 1))))
            )
        case 1:
            parts += [
                ir.Frame(name, (field(name, whole(layouts), nullable=True),), presence=ir.Counted())
                for name in ("first", "second")
            ]
    other = ir.Frame("MESSAGE-2", layouts.run(0, "aaa102"))
    return protocol((message(1, tuple(parts), "aaa101"), message(2, (other,), "aaa102")), ir.Selector(0, 3))


def whole(layouts: Layouts) -> ir.Type:
    """A value that fills its frame."""
    rest = ir.Length("rest")
    types: tuple[ir.Type, ...] = (
        ir.TextType(rest), ir.TextType(rest, terminated=True), ir.OctetsType(rest, 1, 4), ir.OctetsType(rest),
        ir.JsonType(), ir.KeywordType(("GET", "PUT")), ir.IntegerType(4), layouts.list_of(1),
        layouts.list_of(1, counted=False), layouts.record(1), layouts.union(1), layouts.pairs(0),
    )  # fmt: skip
    return layouts.one_of(*types)


@st.composite
def announced(draw: st.DrawFn) -> ir.Protocol:
    """Frames that flags in a header at the end announce, behind a stack up to an empty frame."""
    layouts = Layouts(draw)
    bits = (
        ir.FlagBit("ROUTE", 8, "", "routes"), ir.FlagBit("TOPIC", 1, "", "topic"), ir.FlagBit("BODY", 2, "", "body"),
        ir.FlagBit("OTHER", 4, ""),
    )  # fmt: skip
    element: ir.Type = ir.OctetsType(ir.Length("rest"))
    if draw(st.booleans()):
        element = ir.TextType(ir.Length("rest"), terminated=True)
    flags = field("flags", ir.IntegerType(1, bitmask=True))

    def made(number: int, *parts: ir.Part) -> ir.Message:
        head, *rest = layouts.run(1, f"8e{number:02x}")
        return message(number, (*parts, ir.Frame("header", (head, flags, *rest))), f"8e{number:02x}")

    stack = ir.Stack("routes", field("routes", element, nullable=True), ir.Announced(8, 8))
    topic = ir.Frame("topic", (field("topic", whole(layouts), nullable=True),), ir.Announced(1, 1))
    body = ir.Frame("body", (field("body", whole(layouts), nullable=True),), ir.Announced(2, 2))
    return protocol((made(1, stack, topic, body), made(2, topic)), ir.Selector(-1, 2), bits)


@st.composite
def patterned(draw: st.DrawFn) -> ir.Protocol:
    """Commands with sizes, told apart by how they begin; one has a name that is still open."""
    layouts = Layouts(draw)
    forms = ir.SizeType((ir.SizeForm("04", 1), ir.SizeForm("06", 8)))
    size = field("length", forms)
    named = field("word", ir.ConstantType("05" + b"READY".hex()))
    ready = (size, named, *layouts.run(1, ""))
    other = (size, field("word", ir.TextType(ir.Length("prefix", 1))), *layouts.run(1, ""))
    fixed = (
        field("mark", ir.ConstantType("ff00")),
        field("filler", ir.PaddingType(2)),
        field("number", layouts.integer()),
    )
    starts = "04??", "06" + "??" * 8
    messages = (
        msg(1, other, ("04", "06"), shadowed=True),
        msg(2, ready, tuple(f"{start}05{b'READY'.hex()}" for start in starts)),
        msg(3, fixed, ("ff00",)),
    )
    return protocol(messages, ir.Selector(0, 0, pattern=True))


def msg(
    number: int, fields: tuple[ir.Field, ...], tags: tuple[str, ...], *, shadowed: bool = False
) -> ir.Message:
    name = f"MESSAGE-{number}"
    return ir.Message(
        name=name, rule=name, class_name=f"Message{number}", doc="", line=0, senders=(),
        parts=(ir.Frame(name, fields),), tags=tags, shadowed=shadowed,
    )  # fmt: skip


@st.composite
def valued(draw: st.DrawFn) -> ir.Protocol:
    """Two messages of one frame with every kind of value."""
    layouts = Layouts(draw, values=True)
    messages = tuple(
        message(
            number, (ir.Frame(f"MESSAGE-{number}", layouts.run(0, f"aaa1{number:02x}")),), f"aaa1{number:02x}"
        )
        for number in (1, 2)
    )
    return protocol(messages, ir.Selector(0, 3))


@st.composite
def optioned(draw: st.DrawFn) -> ir.Protocol:
    """Two messages of one frame with bits, options, items up to octets, and runs of octets."""
    layouts = Layouts(draw, values=draw(st.booleans()), more=True)
    parts = [(ir.Frame(f"MESSAGE-{n}", layouts.run(0, f"aaa1{n:02x}")),) for n in (1, 2)]
    messages = tuple(message(n, found, f"aaa1{n:02x}") for n, found in enumerate(parts, 1))
    return protocol(messages, ir.Selector(0, 3))


@st.composite
def folded(draw: st.DrawFn) -> ir.Protocol:
    """Commands with names in letters of either case, and a union of such."""
    layouts = Layouts(draw, more=True)
    names = "GET ", "Put ", "end "
    found: list[ir.Message] = []
    for number, name in enumerate(names, 1):
        word = field("mark", ir.ConstantType(name.encode().hex(), text=name, folded=True))
        fields = [word]
        if draw(st.booleans()):
            tags = b"a:".hex(), b"ab:".hex(), b"AB".hex()
            options = tuple(folded_record(layouts, tag) for tag in tags)
            fields.append(field("chosen", ir.UnionType("letter", options, tags, folded=True)))
        fields += layouts.run(1, "")
        parts: tuple[ir.Part, ...] = (ir.Frame(f"MESSAGE-{number}", tuple(fields)),)
        if draw(st.booleans()):
            keyword = ir.KeywordType(("Yes", "NO"), folded=True)
            parts += (ir.Frame("answer", (field("answer", keyword),)),)
        found.append(message(number, parts, name.lower().encode().hex()))
    return protocol(tuple(found), ir.Selector(0, 4), folded=True)


def folded_record(layouts: Layouts, tag: str) -> ir.RecordType:
    """A record that begins with letters of either case, and does not go on like a longer tag."""
    found = layouts.record(2)
    mark = field("mark", ir.ConstantType(tag + "2e", folded=True))
    return msgspec.structs.replace(found, fields=(mark, *found.fields))


@st.composite
def stacked(draw: st.DrawFn) -> ir.Protocol:
    """Frames up to a delimiter, some more, and all that are left."""
    layouts = Layouts(draw, more=True)
    delimiter = draw(st.sampled_from((b"<|>", b"", b"\0\0")))
    rest = ir.Length("rest")
    elements: tuple[ir.Type, ...] = (
        ir.OctetsType(rest), ir.TextType(rest), ir.TextType(rest, terminated=not delimiter),
    )  # fmt: skip
    element = layouts.one_of(*elements)
    parts: list[ir.Part] = [ir.Stack("route", field("route", element), delimiter=delimiter.hex())]
    parts += [ir.Frame(name, (field(name, whole(layouts)),)) for name in ("first", "second")]
    if draw(st.booleans()):
        parts.append(ir.Frame("last", (field("last", whole(layouts), nullable=True),), presence=ir.Counted()))
    elif draw(st.booleans()):
        parts.append(ir.Rest("buffers", field("buffers", ir.OctetsType(rest))))
    shape = ir.Shape((), 3, None)
    return protocol((message(1, tuple(parts), "", (shape,)),), None)


@st.composite
def recursive(draw: st.DrawFn) -> ir.Protocol:
    """Values that contain themselves."""
    layouts = Layouts(draw, more=True)
    tags = draw(st.sampled_from((("2b", "2a", "2d"), ("24", "242d", "24232b"))))
    again = ir.EnclosingType("value")
    plain = layouts.record(2, tags[0] + "3a")
    items: ir.Type = ir.ListType(1, again)
    if draw(st.booleans()):
        items = ir.ListType(0, again, before="2c", until="3b")
    many = [field("mark", ir.ConstantType(tags[1])), field("items", items)]
    if isinstance(items, ir.ListType) and items.until:
        many.append(field("end", ir.ConstantType("3b")))
    option = ir.Option("octets", 1, octets="7e")
    pair = (
        field("mark", ir.ConstantType(tags[2])), field("key", again),
        field("tilde", ir.ConstantType("7e"), option=option), field("value", again, option=option),
        field("end", ir.ConstantType("29")),
    )  # fmt: skip
    options = (plain, record(layouts, tuple(many)), record(layouts, pair))
    value = ir.UnionType("value", options, tags)
    chain = layouts.records + 1
    number = field("more", ir.BitType(1, 7, 1, announces=True))
    rest = field("number", ir.BitType(1, 0, 7))
    following = ir.Option("number", 1, field="more", values=(1,))
    next_ = field("next", ir.EnclosingType(f"Record{chain}"), option=following)
    linked = record(layouts, (number, rest, next_))
    fields = [field("mark", ir.ConstantType("aaa101")), field("value", value)]
    if draw(st.booleans()):
        fields.append(field("chain", linked))
    depth = draw(st.integers(1, 5))
    return protocol(
        (message(1, (ir.Frame("MESSAGE-1", tuple(fields)),), "aaa101"),), ir.Selector(0, 3), max_depth=depth
    )


def record(layouts: Layouts, fields: tuple[ir.Field, ...]) -> ir.RecordType:
    number = layouts.next()
    return ir.RecordType(f"record_{number}", f"Record{number}", fields, f"record-{number}")


more = st.one_of(optioned(), optioned(), folded(), stacked(), recursive())
"""Layouts with bits, options, items up to octets, runs of octets, letters of either case, delimiters, and values
that contain themselves."""

protocols = st.one_of(one_frame(), several_frames(), announced(), patterned())
