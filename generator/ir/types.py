"""Fields of the IR: the types of their values, and when they are present."""

from __future__ import annotations

from typing import Literal

import msgspec

Order = Literal["big", "little"]
"""Byte order: the most or the least significant octet first."""


class Length(msgspec.Struct, frozen=True):
    """Number of octets of a value.

    ``prefix``: a number before the value counts them: `number`, or without it a big-endian unsigned
    integer of `octets` octets (1 to 8). ``fixed``: always `octets`. ``rest``: the rest of the run
    but its last `octets` octets. ``until``: up to the first occurrence of the octets `until`
    (hexadecimal), which are the constant after the value (text only). ``run``: the longest
    possible run of the octets `among` (hexadecimal, in ascending order), at least `octets` of them
    (text only). ``counted``: a `CounterType` of the same run counts them.
    """

    kind: Literal["prefix", "fixed", "rest", "until", "run", "counted"]
    octets: int = 0
    until: str = ""
    among: str = ""
    number: CountType | None = None

    @property
    def prefix(self) -> CountType | None:
        """The number directly before the value that counts its octets; None if there is none."""
        if self.kind != "prefix":
            return None
        return IntegerType(self.octets) if self.number is None else self.number


class ConstantType(msgspec.Struct, frozen=True, tag="constant", tag_field="type"):
    """Octets that are always the same; `text` or `number` is their value as a word or an
    integer.

    `folded`: ASCII letters are read in either case, and written as in `hex`.
    """

    hex: str
    text: str | None = None
    number: int | None = None
    folded: bool = False

    @property
    def octets(self) -> bytes:
        """The octets on the wire."""
        return bytes.fromhex(self.hex)


class KeywordType(msgspec.Struct, frozen=True, tag="keyword", tag_field="type"):
    """One of several constants that fill a frame; a text field, the first option its default.

    `folded`: ASCII letters are read in either case; the value is spelled as in `options`.
    """

    options: tuple[str, ...]
    folded: bool = False


class IntegerType(msgspec.Struct, frozen=True, tag="integer", tag_field="type"):
    """An integer of `octets` octets, 1 to 8; a signed one is in two's complement.

    `enum` names the enumeration of the permitted values. `values` are permitted values without
    names (``%x00 / %x01``); empty for any value.
    """

    octets: int
    enum: str | None = None
    bitmask: bool = False
    values: tuple[int, ...] = ()
    order: Order = "big"
    signed: bool = False
    open: bool = False
    """Values that `enum` does not name are permitted, too."""


class BitType(msgspec.Struct, frozen=True, tag="bits", tag_field="type"):
    """`width` bits of an unsigned integer of `octets` octets; `shift` is the number of bits below
    them.

    The fields of one integer are adjacent in their run, the most significant bits first, and cover
    it. With `boolean`, which has one bit, the value is a bool. `constant` is the only allowed
    value. The bits of `spare` have no meaning: any are read, and 0 is written. `announces`: the bit
    says whether the fields with an `Option` that names it are present, so it is computed. `enum`,
    `values` and `open` are as in `IntegerType`.
    """

    octets: int
    shift: int
    width: int
    order: Order = "big"
    boolean: bool = False
    constant: int | None = None
    spare: bool = False
    announces: bool = False
    enum: str | None = None
    values: tuple[int, ...] = ()
    open: bool = False


class FloatType(msgspec.Struct, frozen=True, tag="float", tag_field="type"):
    """A floating-point number of IEEE 754 in 4 or 8 octets."""

    octets: Literal[4, 8]
    order: Order = "big"


class BooleanType(msgspec.Struct, frozen=True, tag="boolean", tag_field="type"):
    """An integer of `octets` octets that is 0 for False or 1 for True."""

    octets: int = 1
    order: Order = "big"


class VarintType(msgspec.Struct, frozen=True, tag="varint", tag_field="type"):
    """An integer of one to `maximum` octets, at most 10, with 7 bits in each; the high bit is set
    but in the last.

    `order` is that of the groups of 7 bits: ``little`` is LEB128, as in MQTT and Protocol Buffers.
    `signed`: ``zigzag`` maps 0, -1, 1, -2 to 0, 1, 2, 3; ``complement`` is signed LEB128.
    """

    order: Order = "little"
    maximum: int = 10
    signed: Literal["zigzag", "complement"] | None = None


class DigitsType(msgspec.Struct, frozen=True, tag="digits", tag_field="type"):
    """An integer as text: `minimum` to `maximum` digits, at most 20, up to the first octet that is
    not a digit.

    `base` is 10 or 16; a signed number may begin with ``-``. It is written with leading zeros only
    up to `minimum` digits, hexadecimal ones in lower case.
    """

    base: Literal[10, 16] = 10
    minimum: int = 1
    maximum: int = 20
    signed: bool = False


class UuidType(msgspec.Struct, frozen=True, tag="uuid", tag_field="type"):
    """A UUID of 16 octets (RFC 9562); with ``little``, its first three parts are little-endian."""

    order: Order = "big"


class TextType(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    """UTF-8 text.

    `pattern` is the grammar's character class as a regular expression over octets; only ``strict``
    decoding applies it, to the octets without padding. `terminated`: the specification ends the
    text with NUL; by default it is read with or without the NUL and written without it. `padding`:
    the octet after the content of a text of fixed length; the value is the text without this
    padding.
    """

    length: Length
    pattern: str | None = None
    terminated: bool = False
    padding: str | None = None


class OctetsType(msgspec.Struct, frozen=True, tag="octets", tag_field="type"):
    """Opaque octets, at least `minimum` of them and at most `maximum` (None: no maximum)."""

    length: Length
    minimum: int = 0
    maximum: int | None = None


class PaddingType(msgspec.Struct, frozen=True, tag="padding", tag_field="type"):
    """Octets without meaning: any value is read; `octets` times the octet `fill` is written.

    With `multiple`, there are as many as it takes for the position to be a multiple of it, from the
    start of the innermost frame, record, or octets that a number counts; `octets` is 0.
    """

    octets: int
    fill: str = "00"
    multiple: int = 0


class SizeForm(msgspec.Struct, frozen=True):
    """One form of a size: the octets `tag` (empty if there is only one form), then an integer."""

    tag: str
    octets: int


class SizeType(msgspec.Struct, frozen=True, tag="size", tag_field="type"):
    """Number of all the octets that follow in the run.

    Encoding computes the size and uses the first of `forms` whose integer can hold it; decoding
    reads every form. Forms can be distinguished: no tag begins with another. The integer is
    big-endian.
    """

    forms: tuple[SizeForm, ...]


class CounterType(msgspec.Struct, frozen=True, tag="counter", tag_field="type"):
    """Number of octets, or of items, of the adjacent fields `counts` that follow in the run, plus
    `plus`. The number may be some of the bits of an integer.

    One field of text or octets has the length ``counted``, and a list or pairs have `counted`. Of
    several fields, or one of another type, the octets are counted; the last of them may be open.
    """

    number: CountType | BitType
    counts: tuple[str, ...]
    plus: int = 0


class ChecksumType(msgspec.Struct, frozen=True, tag="checksum", tag_field="type"):
    """Checksum of the octets of the fields `over` of the same run, in the order of the run.

    `algorithm` is a name of `specwire.generated.checksums`, or ``module:function`` for a function
    from octets to an integer.
    """

    number: IntegerType
    algorithm: str
    over: tuple[str, ...]


class PresentType(msgspec.Struct, frozen=True, tag="present", tag_field="type"):
    """Whether the constants with the same `Option` are present: a bool. It has no octets."""


class JsonType(msgspec.Struct, frozen=True, tag="json", tag_field="type"):
    """The rest of a frame as UTF-8 JSON text, kept as text; ``strict`` decoding requires an
    object."""


class ListType(msgspec.Struct, frozen=True, tag="list", tag_field="type"):
    """A count of `count_octets` octets, then so many elements; at least `minimum`.

    With `number`, the count is written as that says, and `count_octets` is the least number of its
    octets. Without a count (`count_octets` is 0) the elements continue to the end of the run, or up
    to the octet `until`, with which the constant after the list begins. An element has at least one
    octet, and its layout defines its end. The constant octets `before` and `after` surround each
    element. All octets are hexadecimal.
    """

    count_octets: int
    element: Element
    minimum: int = 0
    counted: bool = False
    """A `CounterType` of the run counts the elements."""
    number: CountType | None = None
    until: str = ""
    before: str = ""
    after: str = ""


class PairsType(msgspec.Struct, frozen=True, tag="pairs", tag_field="type"):
    """A dictionary: a count of `count_octets` octets, then so many (name, value) pairs in wire
    order.

    `number`, `until`, `before` and `after` are as in `ListType`, and so is the end of pairs without
    a count (`count_octets` is 0). The constant octets `between` separate name and value. With
    `split`, name and value are one text, split at its first or last ``=``, and `value` is None.
    `rule` is the grammar's rule for one entry, or None.
    """

    count_octets: int
    name: TextType
    value: TextType | OctetsType | None = None
    split: Literal["first", "last"] | None = None
    rule: str | None = None
    minimum: int = 0
    counted: bool = False
    """A `CounterType` of the run counts the pairs."""
    number: CountType | None = None
    until: str = ""
    before: str = ""
    between: str = ""
    after: str = ""


class RecordType(msgspec.Struct, frozen=True, tag="record", tag_field="type"):
    """A run of fields inside another run, as one value.

    Its end is defined: no field is open, or a `SizeType` precedes the open one. `rule` is the
    grammar's rule for it; None for a group in place.
    """

    name: str
    class_name: str
    fields: tuple[Field, ...]
    rule: str | None = None
    doc: str = ""


class UnionType(msgspec.Struct, frozen=True, tag="union", tag_field="type"):
    """One of several records, distinguished by the octets with which each begins.

    `tags` has one entry for each option; the longest that fits decides. `folded`: ASCII letters of
    the tags are read in either case.
    """

    name: str
    options: tuple[RecordType, ...]
    tags: tuple[str, ...]
    folded: bool = False


class EnclosingType(msgspec.Struct, frozen=True, tag="enclosing", tag_field="type"):
    """The record or union that contains this value, again: its class name or its name.

    `Protocol.max_depth` limits how many records may contain each other.
    """

    name: str


CountType = IntegerType | VarintType | DigitsType
"""Numbers that can count octets or items; they are unsigned."""

NumberType = IntegerType | FloatType | BooleanType | VarintType | DigitsType


def count_of(type: ListType | PairsType) -> CountType | None:
    """Return the number directly before items that counts them; None if there is none."""
    if not type.count_octets:
        return None
    return IntegerType(type.count_octets) if type.number is None else type.number


def bounds(type: IntegerType | BooleanType | VarintType | DigitsType) -> tuple[int, int]:
    """Return the least and the greatest value that a number can have in its octets, if any is
    allowed."""
    match type:
        case IntegerType(octets=octets, signed=signed):
            bits = 8 * octets
        case BooleanType():
            return 0, 1
        case VarintType(maximum=maximum):
            bits, signed = min(7 * maximum, 64), type.signed is not None
        case DigitsType(base=base, maximum=maximum, signed=signed):
            widest = 2**63 if signed else 2**64
            return max(1 - base**maximum, -widest) if signed else 0, min(base**maximum, widest) - 1
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


Element = (
    NumberType | UuidType | TextType | OctetsType | ListType | PairsType | RecordType | UnionType
    | EnclosingType
)  # fmt: skip
"""The types of list elements."""

Type = (
    ConstantType | KeywordType | PaddingType | SizeType | CounterType | ChecksumType | BitType | PresentType
    | JsonType | Element
)  # fmt: skip


class Option(msgspec.Struct, frozen=True):
    """Condition for fields inside a frame.

    Adjacent fields with equal options are present together; `number` distinguishes two options of
    one run. They are present if

    - ``octets``: the next octets are `octets` (hexadecimal), with which these fields begin
    - ``number``: the number in the earlier field `field` of the run, and `mask` if it is not 0, is
      one of `values`
    - ``left``: more than `left` octets are left in the run, those of the fields after them
    """

    kind: Literal["octets", "number", "left"]
    number: int = 0
    octets: str = ""
    folded: bool = False
    """ASCII letters of `octets` are read in either case."""
    field: str = ""
    mask: int = 0
    values: tuple[int, ...] = ()
    left: int = 0


TimeUnit = Literal["s", "ms", "us", "ns"]
"""Units of timestamps."""

_TIME_UNITS: dict[TimeUnit, str] = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}


class Timestamp(msgspec.Struct, frozen=True):
    """Meaning of a number: the time in `unit` since `epoch`.

    `epoch` is a date (``1970-01-01``) or a date and time in UTC (``1980-01-06T12:00:00Z``) in
    ISO 8601.
    """

    unit: TimeUnit
    epoch: str

    @property
    def words(self) -> str:
        """The meaning as a unit, such as ``milliseconds since 1970-01-01 UTC``."""
        utc = "" if self.epoch.endswith("Z") else " UTC"
        return f"{_TIME_UNITS[self.unit]} since {self.epoch}{utc}"


Default = int | float | bool | str | tuple[()] | None


class Field(msgspec.Struct, frozen=True):
    """A value inside a frame.

    `name` is the grammar's, in snake case. `attribute` is the Python spelling, which differs if the
    name is a keyword or a method. `rule` is the grammar rule of the type; None for a literal in
    place. `line` counts from 1 in grammar.abnf; 0 if only the profile defines the field.
    """

    name: str
    attribute: str
    type: Type
    rule: str | None
    line: int
    doc: str
    unit: str | None = None
    default: Default = None
    required: bool = True
    nullable: bool = False
    """May be None: the part that holds it can be absent."""
    sentinels: tuple[str, ...] = ()
    """Names of constants with a special meaning in this field."""
    optional: bool = False
    """The frame may end before this field, which is then None; all fields after it are optional,
    too.

    Encoding rejects an empty value, because it could not be distinguished from an absent one.
    """
    option: Option | None = None
    """The field is present only under a condition, and is None otherwise; it is `nullable`, too."""
    content: Literal["json"] | None = None
    """Format of text or octets for readers of tables; one NUL may follow the content."""
    timestamp: Timestamp | None = None
    """Time that a number means, or each number of a list. `unit` has the same in words."""

    @property
    def constant(self) -> bool:
        """Whether the grammar fixes the value: a class variable, not a field of the message."""
        return isinstance(self.type, ConstantType)

    @property
    def implied(self) -> bool:
        """Whether the octets follow from the rest of the message, so that the class has no such
        field."""
        if isinstance(self.type, BitType):
            return self.type.constant is not None or self.type.spare or self.type.announces
        return isinstance(self.type, ConstantType | PaddingType | SizeType | CounterType | ChecksumType)


class Always(msgspec.Struct, frozen=True, tag="always", tag_field="presence"):
    """The part is in every message; if a flag announces it anyway, ``flags & mask == value``."""

    mask: int = 0
    value: int = 0


class Announced(msgspec.Struct, frozen=True, tag="announced", tag_field="presence"):
    """The part is present if ``flags & mask == value``."""

    mask: int
    value: int


class Counted(msgspec.Struct, frozen=True, tag="counted", tag_field="presence"):
    """The part is present if the message has enough frames: trailing parts are optional."""


Presence = Always | Announced | Counted
Letter = Literal["required", "forbidden"] | None
"""Requirement of the specification's prose for an announced part, checked only by ``strict``
decoding."""
