"""Whether a value written as one type is read as meant by another: by the octets alone.

Three questions decide. How does a reader find the end of the value (`_span`)? Which octets can be written,
where that is a short list (`_options`: constants, keywords, enumerations)? What else does the reader demand
of them (UTF-8, a minimum)? Characters that only ``strict`` checks decide nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specwire.generator import ir
from specwire.generator.compare.comparison import ALIKE, Judgement, Verdict, depends, no, yes
from specwire.generator.compare.wording import count_octets

Members = Mapping[str, tuple[int, ...]]
"""The values of each enumeration of an edition."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The enumerations of both editions.

    `same` has those that are one enumeration in two editions: what changed in it is told once, with the
    enumeration, not again with every field.
    """

    writer: Members = field(default_factory=dict)
    reader: Members = field(default_factory=dict)
    same: frozenset[tuple[str, str]] = frozenset()

    def reversed(self) -> Vocabulary:
        """Return the vocabulary for the other direction."""
        return Vocabulary(self.reader, self.writer, frozenset((b, a) for a, b in self.same))

    def share(self, writer: ir.Type, reader: ir.Type) -> bool:
        """Whether both are integers of one enumeration."""
        return (
            isinstance(writer, ir.IntegerType)
            and isinstance(reader, ir.IntegerType)
            and (writer.enum or "", reader.enum or "") in self.same
        )


def reads(writer: ir.Type, reader: ir.Type, words: Vocabulary) -> Judgement:
    """Return whether values written as `writer` are read as meant by a reader of `reader`."""
    if writer == reader:
        return ALIKE
    shared = words.share(writer, reader)
    written = None if shared else _options(writer, words.writer)
    known = None if shared else _options(reader, words.reader)
    if written is not None:
        return _reads_one_of(written, reader, known)
    if known is not None:
        possible = sorted(octets for octets in known if _is_value(writer, octets))
        return depends(f"read only where the value is {_show(possible)}") if possible else no(_APART)
    if isinstance(writer, ir.ListType) and isinstance(reader, ir.ListType):
        return _counted(
            writer.count_octets, reader.count_octets, reads(writer.element, reader.element, words)
        )
    if isinstance(writer, ir.PairsType) and isinstance(reader, ir.PairsType):
        return _counted(writer.count_octets, reader.count_octets, _reads_entries(writer, reader, words))
    return _reads_span(writer, reader)


_APART = "none of the values that one edition writes is one that the other reads"


def _options(type: ir.Type, members: Members) -> frozenset[bytes] | None:
    """The octets of every value, where the type lists its values."""
    match type:
        case ir.ConstantType():
            return frozenset({type.octets})
        case ir.KeywordType(options=options):
            return frozenset(option.encode() for option in options)
        case ir.IntegerType(octets=octets, enum=str(enum)):
            return frozenset(value.to_bytes(octets, "big") for value in members.get(enum, ()))
    return None


def _reads_one_of(written: frozenset[bytes], reader: ir.Type, known: frozenset[bytes] | None) -> Judgement:
    accepted = {octets for octets in written if octets in known} if known is not None else {
        octets for octets in written if _is_value(reader, octets)
    }  # fmt: skip
    if accepted == written:
        return yes("every value that is written is one that is read")
    return depends(f"read only where the value is {_show(sorted(accepted))}") if accepted else no(_APART)


def _is_value(type: ir.Type, octets: bytes) -> bool:
    """Whether `octets` are exactly one value of a type with a span; lists and dictionaries are not looked into."""
    span = _span(type)
    if span is None:
        return False
    if span.kind == "prefix":
        length, octets = octets[: span.octets], octets[span.octets :]
        if len(length) < span.octets or int.from_bytes(length, "big") != len(octets):
            return False
    if span.kind == "fixed" and len(octets) != span.octets:
        return False
    return len(octets) >= _minimum(type) and (not _is_text(type) or _is_utf8(octets))


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def _show(values: list[bytes], most: int = 4) -> str:
    shown = [f"0x{octets.hex()}" for octets in values[:most]]
    return " or ".join(shown + [f"one of {len(values) - most} more"] * (len(values) > most))


def _counted(writer: int, reader: int, entries: Judgement) -> Judgement:
    if writer != reader:
        return no(f"the count is written in {count_octets(writer)} and read from {reader}")
    if entries.verdict is Verdict.YES:
        return entries
    return Judgement(entries.verdict, f"in each entry: {entries.why}")


def _reads_entries(writer: ir.PairsType, reader: ir.PairsType, words: Vocabulary) -> Judgement:
    names = reads(writer.name, reader.name, words)
    if writer.value is None and reader.value is None:
        if names.verdict is Verdict.YES and writer.split != reader.split:
            return depends(
                "read as meant where there is one '=': with more, name and value are divided elsewhere"
            )
        return names
    if writer.value is None or reader.value is None:
        return no("name and value share one text in one edition and are two in the other")
    return max((names, reads(writer.value, reader.value, words)), key=_badness)


def _badness(judgement: Judgement) -> int:
    return list(Verdict).index(judgement.verdict)


def _span(type: ir.Type) -> ir.Length | None:
    """How a reader finds the end of a value; None where the type has parts of its own."""
    match type:
        case ir.IntegerType(octets=octets):
            return ir.Length("fixed", octets)
        case ir.TextType(length=length) | ir.OctetsType(length=length):
            return length
        case ir.JsonType():
            return ir.Length("rest")
    return None


def _minimum(type: ir.Type) -> int:
    return type.minimum if isinstance(type, ir.OctetsType) else 0


def _is_text(type: ir.Type) -> bool:
    return isinstance(type, ir.TextType | ir.JsonType)


def _reads_span(writer: ir.Type, reader: ir.Type) -> Judgement:
    written, read = _span(writer), _span(reader)
    if written is None or read is None:
        return no("the value is laid out in another way")
    conditions: list[str] = []
    if written != read:
        if written.kind == "rest" and read.kind == "fixed":
            conditions.append(f"it has {count_octets(read.octets)}")
        elif not (written.kind == "fixed" and read.kind == "rest"):
            return no("the value ends elsewhere, and what follows it is read at the wrong place")
    least = written.octets if written.kind == "fixed" else _minimum(writer)
    if _minimum(reader) > least:
        conditions.append(f"it has at least {count_octets(_minimum(reader))}")
    conditions += _text_conditions(writer, reader)
    if conditions:
        return depends(f"read as meant where {' and '.join(conditions)}")
    return yes("the octets are the same, and the reader takes all of them")


def _text_conditions(writer: ir.Type, reader: ir.Type) -> list[str]:
    ends, ended = _terminated(reader), _terminated(writer)
    found: list[str] = []
    if _is_text(reader) and not _is_text(writer):
        found.append("it is UTF-8")
    if ends and not ended:
        found.append("it holds no NUL")
    if ended and not ends:
        found.append("the writer leaves out the NUL at the end")
    return found


def _terminated(type: ir.Type) -> bool:
    return isinstance(type, ir.TextType) and type.terminated


def is_nothing(type: ir.Type) -> bool:
    """Whether every value of the type has no octets: a constant of an empty frame."""
    return isinstance(type, ir.ConstantType) and not type.octets


def can_be_empty(type: ir.Type) -> bool:
    """Whether a value of the type can have no octets at all."""
    span = _span(type)
    return span is not None and span.kind == "rest" and _minimum(type) == 0
