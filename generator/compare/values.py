"""Check whether a value written as one type is read correctly as another, judged by the octets alone.

Three questions decide: how a reader finds the end of the value (`_span`), which octets can be
written if that is a short list (`_options`: constants, keywords, enumerations), and what else the
reader requires (UTF-8, a minimum). Characters that only ``strict`` decoding checks are ignored.
Numbers, UUIDs, counters and checksums are also compared by the value of their octets (`numerals`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from specwire.generator import ir
from specwire.generator.compare.bits import reads_bits
from specwire.generator.compare.comparison import ALIKE, Judgement, Verdict, depends, no, yes
from specwire.generator.compare.numerals import number_in, reads_numeral
from specwire.generator.compare.structure import bare_option, structure
from specwire.generator.compare.wording import count_octets
from specwire.generator.emit.python import fixed_size

Enclosing = ir.RecordType | ir.UnionType
Named = ir.IntegerType | ir.BitType
"""Types whose values an enumeration may name."""

Members = Mapping[str, tuple[int, ...]]
"""The values of each enumeration of an edition."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The enumerations of both editions.

    `same` has those that are one enumeration in both editions: its changes are listed once, with
    the enumeration, and not again with every field.
    """

    writer: Members = field(default_factory=dict)
    reader: Members = field(default_factory=dict)
    same: frozenset[tuple[str, str]] = frozenset()
    around: frozenset[tuple[str, str]] = frozenset()
    """Names of the records and unions around the compared values, which these values may contain again."""

    def reversed(self) -> Vocabulary:
        """Return the vocabulary for the other direction."""
        same, around = (frozenset((b, a) for a, b in pairs) for pairs in (self.same, self.around))
        return Vocabulary(self.reader, self.writer, same, around)

    def inside(self, writer: Enclosing, reader: Enclosing) -> Vocabulary:
        """Return the vocabulary for what is inside two records or unions."""
        return replace(self, around=self.around | {(_name(writer), _name(reader))})

    def share(self, writer: ir.Type, reader: ir.Type) -> bool:
        """Whether both are numbers of one enumeration."""
        return (
            isinstance(writer, Named)
            and isinstance(reader, Named)
            and (writer.enum or "", reader.enum or "") in self.same
        )

    def repeats(self, writer: ir.Type, reader: ir.Type) -> bool:
        """Whether both are values like the same one around them."""
        return (
            isinstance(writer, ir.EnclosingType)
            and isinstance(reader, ir.EnclosingType)
            and (writer.name, reader.name) in self.around
        )


def _name(type: Enclosing) -> str:
    return type.class_name if isinstance(type, ir.RecordType) else type.name


def reads(writer: ir.Type, reader: ir.Type, words: Vocabulary) -> Judgement:
    """Return whether values written as `writer` are read correctly as `reader`."""
    if structure(writer) == structure(reader) or words.repeats(writer, reader):
        return ALIKE
    if isinstance(number_in(writer), ir.BitType) or isinstance(number_in(reader), ir.BitType):
        return _reads_bits(writer, reader, words)
    if (found := reads_numeral(writer, reader)) is not None:
        return found
    shared = words.share(writer, reader)
    if shared and _is_open(writer) and not _is_open(reader):
        return depends("correct if the value is one of the enumeration")
    written = None if shared else _options(writer, words.writer)
    known = None if shared else _options(reader, words.reader)
    if written is not None:
        return _reads_case(writer, reader, _reads_one_of(written, reader, known))
    if known is not None:
        possible = sorted(octets for octets in known if _is_value(writer, octets))
        return depends(f"read only where the value is {_show(possible)}") if possible else no(_APART)
    match writer, reader:
        case ir.ListType(), ir.ListType():
            return _counted(writer, reader, reads(writer.element, reader.element, words))
        case ir.PairsType(), ir.PairsType():
            return _counted(writer, reader, _reads_entries(writer, reader, words))
        case ir.SizeType(), ir.SizeType():
            return _reads_size(writer, reader)
        case ir.RecordType(), ir.RecordType():
            return _reads_run(writer.fields, reader.fields, words.inside(writer, reader))
        case ir.UnionType(), ir.UnionType():
            return _reads_union(writer, reader, words)
    return _reads_span(writer, reader)


def _reads_bits(writer: ir.Type, reader: ir.Type, words: Vocabulary) -> Judgement:
    if words.share(number_in(writer), number_in(reader)):
        return reads_bits(writer, reader, None, None)
    return reads_bits(writer, reader, _bit_values(writer, words.writer), _bit_values(reader, words.reader))


_APART = "no value that one edition writes can be read by the other"


def _options(type: ir.Type, members: Members) -> frozenset[bytes] | None:
    """Return the octets of every value, if the type lists its values; else None."""
    match type:
        case ir.ConstantType():
            return frozenset({type.octets})
        case ir.KeywordType(options=options):
            return frozenset(option.encode() for option in options)
        case ir.IntegerType(enum=str(enum), open=False):
            return _spellings(type, members.get(enum, ()))
        case ir.IntegerType(values=values) if values:
            return _spellings(type, values)
        case ir.BooleanType(octets=octets, order=order):
            return _spellings(ir.IntegerType(octets, order=order), (0, 1))
    return None


def _is_open(type: ir.Type) -> bool:
    return isinstance(type, ir.IntegerType) and type.open


def _is_folded(type: ir.Type) -> bool:
    return isinstance(type, ir.ConstantType | ir.KeywordType | ir.UnionType) and type.folded


def _reads_case(writer: ir.Type, reader: ir.Type, found: Judgement) -> Judgement:
    """Return how words are read whose letters one edition reads in either case."""
    if found.verdict is Verdict.YES and _is_folded(writer) and not _is_folded(reader):
        return depends("correct if the letters are written in the case of the specification")
    return found


def _bit_values(type: ir.Type, members: Members) -> frozenset[int] | None:
    """Return the allowed values of some bits; None if any is allowed, or for another type."""
    found = number_in(type)
    if not isinstance(found, ir.BitType) or found.open:
        return None
    if found.constant is not None:
        return frozenset({found.constant})
    values = members.get(found.enum, ()) if found.enum else found.values
    return frozenset(values) or None


def _spellings(type: ir.IntegerType, values: Iterable[int]) -> frozenset[bytes]:
    return frozenset(value.to_bytes(type.octets, type.order, signed=type.signed) for value in values)


def _reads_one_of(written: frozenset[bytes], reader: ir.Type, known: frozenset[bytes] | None) -> Judgement:
    if known is not None and _is_folded(reader):
        known = frozenset(octets.lower() for octets in known)
        accepted = {octets for octets in written if octets.lower() in known}
    elif known is not None:
        accepted = {octets for octets in written if octets in known}
    else:
        accepted = {octets for octets in written if _is_value(reader, octets)}
    if accepted == written:
        return yes("every value that is written can be read")
    return depends(f"read only where the value is {_show(sorted(accepted))}") if accepted else no(_APART)


def _is_value(type: ir.Type, octets: bytes) -> bool:
    """Whether `octets` are exactly one value of a type with a span.

    Lists and dictionaries are not looked into.
    """
    span = _span(type)
    if span is None:
        return False
    if span.kind == "prefix":
        if span.number is not None and structure(span.number) != ir.IntegerType(span.octets):
            return False
        length, octets = octets[: span.octets], octets[span.octets :]
        if len(length) < span.octets or int.from_bytes(length, "big") != len(octets):
            return False
    if span.kind == "fixed" and len(octets) != span.octets:
        return False
    if span.kind == "until" and bytes.fromhex(span.until) in octets:
        return False
    if span.kind == "run" and (len(octets) < span.octets or set(octets) - set(bytes.fromhex(span.among))):
        return False
    most = _maximum(type)
    if len(octets) < _minimum(type) or (most is not None and len(octets) > most):
        return False
    if (fill := _padding(type)) and octets.endswith(bytes.fromhex(fill)):
        return False
    if isinstance(type, ir.DigitsType):
        return set(octets.decode("latin-1").lower()) <= set(_DIGITS[: type.base])
    return not _is_text(type) or _is_utf8(octets)


_DIGITS = "0123456789abcdef"


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def _show(values: list[bytes], most: int = 4) -> str:
    shown = [f"0x{octets.hex()}" for octets in values[:most]]
    return " or ".join(shown + [f"one of {len(values) - most} more"] * (len(values) > most))


Repeated = ir.ListType | ir.PairsType


def _counted(writer: Repeated, reader: Repeated, entries: Judgement) -> Judgement:
    if writer.counted != reader.counted:
        return no("only in one edition another field counts the entries")
    if writer.number != reader.number and writer.count_octets == reader.count_octets:
        return no("the count is written in another way")
    if writer.count_octets != reader.count_octets:
        if not writer.count_octets or not reader.count_octets:
            return no("one edition counts the entries; in the other they continue to the end")
        return no(
            f"the count is written in {count_octets(writer.count_octets)} and read from {reader.count_octets}"
        )
    if _surroundings(writer) != _surroundings(reader):
        return no("other octets surround or follow the entries")
    if entries.verdict is not Verdict.YES:
        return Judgement(entries.verdict, f"in each entry: {entries.why}")
    if reader.minimum > writer.minimum:
        return depends(f"correct if there are at least {reader.minimum} entries")
    return yes("every number of entries that is written can be read")


def _surroundings(type: Repeated) -> tuple[str, ...]:
    between = type.between if isinstance(type, ir.PairsType) else ""
    return type.until, type.before, between, type.after


def _reads_size(writer: ir.SizeType, reader: ir.SizeType) -> Judgement:
    common = [form for form in writer.forms if form in reader.forms]
    if common == list(writer.forms):
        return yes("every form of the size that is written can be read")
    if not common:
        return no("the size is written in a form that the reader does not know")
    shown = " or ".join(
        f"{count_octets(f.octets)} after 0x{f.tag}" if f.tag else count_octets(f.octets) for f in common
    )
    return depends(f"read only where the size is written in {shown}")


def _reads_run(writer: Sequence[ir.Field], reader: Sequence[ir.Field], words: Vocabulary) -> Judgement:
    """Return how two records are read: their fields must be in the same order."""
    inside = [
        (one.name, reads(one.type, other.type, words)) for one, other in zip(writer, reader, strict=False)
    ]
    name, worst = max(inside, key=lambda row: _badness(row[1]), default=("", ALIKE))
    if worst.verdict is Verdict.NO:
        return no(f"{name}: {worst.why}")
    if any(
        bare_option(one.option) != bare_option(other.option)
        for one, other in zip(writer, reader, strict=False)
    ):
        return depends("correct where both editions find the same fields present")
    if not all(field.optional for field in (*writer[len(reader) :], *reader[len(writer) :])):
        return no("the records have different fields, so what follows is read at the wrong place")
    if len(writer) > len(reader):
        return depends(f"correct if {writer[len(reader)].name} is absent")
    return worst if worst.verdict is Verdict.YES else Judgement(worst.verdict, f"{name}: {worst.why}")


def _reads_union(writer: ir.UnionType, reader: ir.UnionType, words: Vocabulary) -> Judgement:
    words = words.inside(writer, reader)
    known = dict(zip(reader.tags, reader.options, strict=True))
    rows = [(tag, option) for tag, option in zip(writer.tags, writer.options, strict=True) if tag in known]
    inside = [(option.name, reads(option, known[tag], words)) for tag, option in rows]
    good = [name for name, found in inside if found.verdict is Verdict.YES]
    if len(good) == len(writer.options):
        return _reads_case(writer, reader, yes("every record that is written can be read"))
    if not rows or all(found.verdict is Verdict.NO for _, found in inside):
        return no("no record that is written can be read")
    return depends(f"read only where it is {' or '.join(good) or 'one of those that both know'}")


def _reads_entries(writer: ir.PairsType, reader: ir.PairsType, words: Vocabulary) -> Judgement:
    names = reads(writer.name, reader.name, words)
    if writer.value is None and reader.value is None:
        if names.verdict is Verdict.YES and writer.split != reader.split:
            return depends("correct if there is one '=': with more, name and value are split at another one")
        return names
    if writer.value is None or reader.value is None:
        return no("name and value are one text in one edition and two in the other")
    return max((names, reads(writer.value, reader.value, words)), key=_badness)


def _badness(judgement: Judgement) -> int:
    return list(Verdict).index(judgement.verdict)


def _span(type: ir.Type) -> ir.Length | None:
    """Return how a reader finds the end of a value; None for a type with several parts."""
    match type:
        case ir.IntegerType() | ir.FloatType() | ir.BooleanType() | ir.DigitsType() | ir.UuidType():
            octets = fixed_size(type)
            return None if octets is None else ir.Length("fixed", octets)
        case ir.CounterType(number=number) | ir.ChecksumType(number=number):
            return _span(number)
        case ir.PaddingType(octets=octets, multiple=0):
            return ir.Length("fixed", octets)
        case ir.TextType(length=length) | ir.OctetsType(length=length):
            return length
        case ir.JsonType():
            return ir.Length("rest")
    return None


def _minimum(type: ir.Type) -> int:
    return type.minimum if isinstance(type, ir.OctetsType) else 0


def _maximum(type: ir.Type) -> int | None:
    return type.maximum if isinstance(type, ir.OctetsType) else None


def _is_text(type: ir.Type) -> bool:
    return isinstance(type, ir.TextType | ir.JsonType | ir.DigitsType)


def _reads_span(writer: ir.Type, reader: ir.Type) -> Judgement:
    written, read = _span(writer), _span(reader)
    if written is None or read is None:
        return no("the value has another layout")
    conditions: list[str] = []
    if written != read:
        if written.kind == "rest" and read.kind == "fixed":
            conditions.append(f"it has {count_octets(read.octets)}")
        elif written.kind == "run" and read.kind == "run":
            conditions += _run_conditions(written, read)
        elif {written.kind, read.kind} == {"run", "until"}:
            conditions.append("it ends at the same octet for both editions")
        elif not (written.kind == "fixed" and read.kind == "rest"):
            return no("the value ends elsewhere, so what follows it is read at the wrong place")
    least = written.octets if written.kind == "fixed" else _minimum(writer)
    if _minimum(reader) > least:
        conditions.append(f"it has at least {count_octets(_minimum(reader))}")
    most, written_most = _maximum(reader), written.octets if written.kind == "fixed" else _maximum(writer)
    if most is not None and (written_most is None or written_most > most):
        conditions.append(f"it has at most {count_octets(most)}")
    conditions += _text_conditions(writer, reader)
    if isinstance(reader, ir.DigitsType):
        conditions.append(f"it consists of digits of base {reader.base}")
    if conditions:
        return depends(f"correct if {' and '.join(conditions)}")
    return yes("the octets are the same, and the reader accepts all of them")


def _run_conditions(written: ir.Length, read: ir.Length) -> list[str]:
    """Return the conditions under which two runs of characters have the same end."""
    found = []
    if written.among != read.among:
        found.append("it and the octet after it are among the characters of both editions, or of neither")
    if written.octets < read.octets:
        found.append(f"it has at least {count_octets(read.octets)}")
    return found


def _text_conditions(writer: ir.Type, reader: ir.Type) -> list[str]:
    ends, ended = _terminated(reader), _terminated(writer)
    found: list[str] = []
    if _is_text(reader) and not _is_text(writer):
        found.append("it is UTF-8")
    if ends and not ended:
        found.append("it contains no NUL")
    if ended and not ends:
        found.append("the writer omits the NUL at the end")
    return found + _padding_conditions(writer, reader)


def _padding_conditions(writer: ir.Type, reader: ir.Type) -> list[str]:
    """Return the conditions under which both editions read the same octets as padding."""
    filled, stripped = _padding(writer), _padding(reader)
    if filled == stripped or isinstance(reader, ir.PaddingType):
        return []
    found = ["it fills its place"] if filled else []
    return found + ([f"it does not end with 0x{stripped}"] if stripped else [])


def _padding(type: ir.Type) -> str | None:
    return type.padding if isinstance(type, ir.TextType) else None


def _terminated(type: ir.Type) -> bool:
    return isinstance(type, ir.TextType) and type.terminated


def is_nothing(type: ir.Type) -> bool:
    """Whether every value of the type has no octets: a constant of an empty frame, or only a presence."""
    return isinstance(type, ir.PresentType) or (isinstance(type, ir.ConstantType) and not type.octets)


def can_be_empty(type: ir.Type) -> bool:
    """Whether a value of the type can have no octets at all."""
    span = _span(type)
    if isinstance(type, ir.ListType | ir.PairsType):
        return type.count_octets == 0 and type.minimum == 0
    open_end = span is not None and (
        span.kind in ("rest", "until", "counted") or (span.kind == "run" and not span.octets)
    )
    return open_end and _minimum(type) == 0
