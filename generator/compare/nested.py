"""Changes inside a value: the fields of records and the options of unions, by their paths.

A nested change is listed at its path (``properties[].value``), not as another type of the whole
field. This requires the same structure around it in both editions: two records, two lists with
counts of the same size, or two unions. A record is compared like a frame: a field that was added or
removed moves everything after it, unless it is optional and at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from specwire.generator import ir
from specwire.generator.compare.bits import reads_lone_bits
from specwire.generator.compare.comparison import (
    ALIKE,
    NAME_ONLY,
    Judgement,
    Kind,
    Readings,
    Texts,
    Verdict,
    depends,
    no,
    yes,
)
from specwire.generator.compare.matching import Pair, in_order, pair_up, same
from specwire.generator.compare.numerals import Numeral
from specwire.generator.compare.structure import bare_option, structure
from specwire.generator.compare.values import Vocabulary, is_nothing, reads
from specwire.generator.compare.wording import describe, describe_option
from specwire.generator.emit.python import fixed_size

_MOVED = no("its octets are read as another field")
_BEHIND = no("everything after it is read at the wrong place")
_UNKNOWN = depends("correct for all others: the reader rejects this one")
_UNUSED = yes("it does not occur")
_OTHER_TAG = no("the reader does not know the tag, or reads it as another record")
_IF_ABSENT = depends("correct if it is absent")
_IF_NOT_FOUND = depends("correct where the reader finds it absent, too")
_ONE_CASE = depends("correct if the letters of the tag are written in the case of the specification")
_BOTH_CASES = yes("the reader accepts the letters in either case")
_OTHER_WORD = depends("the octets are the same; correct if the new name has the same meaning")


@dataclass(frozen=True, slots=True)
class Inside:
    """A change inside a value: its path from the field on, and whether a column holds it."""

    path: str
    kind: Kind | None
    texts: Texts
    readings: Readings
    stored: bool


def is_alike(old: ir.Type, new: ir.Type) -> bool:
    """Whether both types have the same outer structure."""
    match old, new:
        case (ir.RecordType(), ir.RecordType()) | (ir.UnionType(), ir.UnionType()):
            return True
        case ir.ListType(), ir.ListType():
            same_count = (ir.count_of(old), old.counted) == (ir.count_of(new), new.counted)
            same_ends = (old.until, old.before, old.after) == (new.until, new.before, new.after)
            return same_count and same_ends and is_alike(old.element, new.element)
    return False


def changes_inside(path: str, old: ir.Type, new: ir.Type, words: Vocabulary) -> Iterator[Inside]:
    """Yield the differences inside two types with the same outer structure (`is_alike`)."""
    match old, new:
        case ir.ListType(), ir.ListType():
            yield from _minimum(path, old, new)
            yield from changes_inside(f"{path}[]", old.element, new.element, words)
        case ir.RecordType(), ir.RecordType():
            yield from _fields(path, old.fields, new.fields, words.inside(new, old))
        case ir.UnionType(), ir.UnionType():
            yield from _letter_case(path, old, new)
            yield from _options(path, old, new, words.inside(new, old))


def _minimum(path: str, old: ir.ListType, new: ir.ListType) -> Iterator[Inside]:
    if old.minimum != new.minimum:
        needs = depends(f"correct if there are at least {max(old.minimum, new.minimum)} entries")
        fine = yes("every number of entries that is written can be read")
        readings = (needs, fine) if old.minimum > new.minimum else (fine, needs)
        texts = f"at least {old.minimum}", f"at least {new.minimum}"
        yield Inside(path, "resized", texts, readings, stored=False)


def _letter_case(path: str, old: ir.UnionType, new: ir.UnionType) -> Iterator[Inside]:
    if old.folded != new.folded:
        readings = (_ONE_CASE, _BOTH_CASES) if new.folded else (_BOTH_CASES, _ONE_CASE)
        texts = describe(old), describe(new)
        yield Inside(path, "value", texts, readings, stored=False)


def _fields(
    path: str, old: tuple[ir.Field, ...], new: tuple[ir.Field, ...], words: Vocabulary
) -> Iterator[Inside]:
    pairs = pair_up(tuple(enumerate(old)), tuple(enumerate(new)), same(_name), same(_place))
    both = [(pair.old[0], pair.new[0]) for pair in pairs if pair.old and pair.new]
    steady = in_order([one for one, _ in both], [one for one, _ in sorted(both, key=lambda row: row[1])])
    for pair in pairs:
        name = f"{path}.{pair.either[1].name}"
        if pair.old and pair.new:
            if pair.old[0] not in steady:
                places = f"field {pair.old[0]}", f"field {pair.new[0]}"
                yield Inside(name, "moved", places, (_MOVED, _MOVED), stored=False)
            yield from _changed(name, pair.old[1], pair.new[1], words)
        else:
            yield _lone(name, pair, (old, new))


def reads_unit(old: ir.Field, new: ir.Field) -> Judgement | None:
    """Return how a number with another unit, or another epoch, is read; None if it has the same."""
    if old.unit == new.unit:
        return None
    if old.unit is None or new.unit is None:
        return yes("only one edition declares it")
    if (old.timestamp is None) != (new.timestamp is None):
        return depends("correct if the unit is the same")
    return no("the same number is a different quantity")


def _name(numbered: tuple[int, ir.Field]) -> str:
    return numbered[1].name


def _place(numbered: tuple[int, ir.Field]) -> tuple[int, ir.Type]:
    return numbered[0], structure(numbered[1].type)


def _changed(path: str, old: ir.Field, new: ir.Field, words: Vocabulary) -> Iterator[Inside]:
    stored = not (old.implied and new.implied)
    if old.name != new.name:
        known = NAME_ONLY if old.implied or (old.doc and old.doc == new.doc) else _OTHER_WORD
        yield Inside(path, "renamed", (old.name, new.name), (known, known), stored)
    if (why := reads_unit(old, new)) is not None:
        yield Inside(path, "unit", (old.unit, new.unit), (why, why), stored=why.verdict is Verdict.NO)
    if is_alike(old.type, new.type):
        yield from changes_inside(path, old.type, new.type, words)
    elif (kind := kind_of(old.type, new.type, words)) is not None:
        readings = reads(new.type, old.type, words), reads(old.type, new.type, words.reversed())
        yield Inside(path, kind, texts_of(old.type, new.type), readings, stored)
    if is_present_otherwise(old, new):
        readings = reads_presence(new, old), reads_presence(old, new)
        yield Inside(path, "presence", (describe_option(old), describe_option(new)), readings, stored=False)


def is_present_otherwise(old: ir.Field, new: ir.Field) -> bool:
    """Whether the condition for a field inside a frame or record differs."""
    return old.optional != new.optional or bare_option(old.option) != bare_option(new.option)


def reads_presence(writer: ir.Field, reader: ir.Field) -> Judgement:
    """Return how a field is read whose presence another condition decides for the reader."""
    if reader.option is not None:
        return depends("correct where both editions find it present, or both absent")
    if writer.option is not None or (writer.optional and not reader.optional):
        return depends("correct if it is present")
    return yes("it is present, or optional for the reader")


def _lone(
    path: str, pair: Pair[tuple[int, ir.Field]], runs: tuple[tuple[ir.Field, ...], tuple[ir.Field, ...]]
) -> Inside:
    """Return the change of a field that only one edition has."""
    index, field = pair.either
    with_it, without = runs if pair.old else runs[::-1]
    last = index >= len(without) and all(later.optional for later in with_it[index:])
    bits = (reads_lone_bits(field, without, written=written) for written in (True, False))
    over, lacking = bits
    if is_nothing(field.type):
        surplus = missing = ALIKE
    elif over and lacking:
        surplus, missing = over, lacking
    elif field.option is not None:
        surplus, missing = _IF_ABSENT, _IF_NOT_FOUND
    elif field.optional and last:
        surplus, missing = depends("correct if it is absent"), yes("it may be absent")
    else:
        surplus = missing = _BEHIND
    texts = (describe(field.type), None) if pair.old else (None, describe(field.type))
    return Inside(
        path, None, texts, (missing, surplus) if pair.old else (surplus, missing), not field.implied
    )


Tagged = tuple[str, ir.RecordType]


def _options(path: str, old: ir.UnionType, new: ir.UnionType, words: Vocabulary) -> Iterator[Inside]:
    before = tuple(zip(old.tags, old.options, strict=True))
    after = tuple(zip(new.tags, new.options, strict=True))
    for pair in pair_up(before, after, same(_tag), same(_option)):
        name = f"{path}.{pair.either[1].name}"
        if pair.old is None or pair.new is None:
            readings = (_UNUSED, _UNKNOWN) if pair.old else (_UNKNOWN, _UNUSED)
            shown = f"0x{pair.either[0]} {describe(pair.either[1])}"
            yield Inside(name, None, (shown, None) if pair.old else (None, shown), readings, stored=True)
            continue
        if pair.old[0] != pair.new[0]:
            tags = f"0x{pair.old[0]}", f"0x{pair.new[0]}"
            yield Inside(name, "tag", tags, (_OTHER_TAG, _OTHER_TAG), stored=False)
        if pair.old[1].name != pair.new[1].name:
            names = pair.old[1].name, pair.new[1].name
            yield Inside(name, "renamed", names, (NAME_ONLY, NAME_ONLY), stored=True)
        yield from changes_inside(name, pair.old[1], pair.new[1], words)


def _tag(option: Tagged) -> str:
    return option[0]


def _option(option: Tagged) -> str:
    return option[1].name


def texts_of(old: ir.Type, new: ir.Type) -> tuple[str, str]:
    """Return both types in words; for texts that differ only in their characters, the characters."""
    texts = describe(old), describe(new)
    if texts[0] == texts[1] and isinstance(old, ir.TextType) and isinstance(new, ir.TextType):
        return old.pattern or "any characters", new.pattern or "any characters"
    return texts


def kind_of(old: ir.Type, new: ir.Type, words: Vocabulary) -> Kind | None:
    """Return the kind of the difference between two types; None if the field itself does not differ."""
    if _without_words(old, new, words):
        return None
    match old, new:
        case (ir.ConstantType(), ir.ConstantType()) | (ir.KeywordType(), ir.KeywordType()):
            return "value"
        case ir.PaddingType(), ir.PaddingType() if old.octets == new.octets:
            return "value"
        case ir.TextType(), ir.TextType() if old.length == new.length:
            same_ends = (old.terminated, old.padding) == (new.terminated, new.padding)
            return "characters" if same_ends else "retyped"
        case ir.BitType(), ir.BitType() if (old.shift, old.width) == (new.shift, new.width):
            return "value" if old.octets == new.octets and old.order == new.order else "retyped"
        case ir.CounterType(number=ir.BitType()), ir.CounterType(number=ir.BitType()):
            return "retyped" if old.number == new.number else "resized"
        case ir.IntegerType(), ir.IntegerType() if old.octets == new.octets:
            same_number = (old.order, old.signed) == (new.order, new.signed)
            return "value" if old.values and new.values and same_number else "retyped"
    same_width = isinstance(old, Numeral) and fixed_size(old) == fixed_size(new)
    return "resized" if type(old) is type(new) and not same_width else "retyped"


def _without_words(old: ir.Type, new: ir.Type, words: Vocabulary) -> bool:
    """Whether two types are equal except for the names of enumerations and of entries' rules."""
    match old, new:
        case ir.IntegerType(), ir.IntegerType() if words.share(new, old):
            forms = ((one.octets, one.order, one.signed, one.open) for one in (old, new))
            return next(forms) == next(forms)
        case ir.BitType(), ir.BitType() if words.share(new, old):
            return msgspec.structs.replace(old, enum=new.enum) == new
        case ir.EnclosingType(), ir.EnclosingType():
            return words.repeats(new, old)
        case ir.ListType(), ir.ListType() if words.repeats(new.element, old.element):
            return msgspec.structs.replace(old, element=new.element) == new
    return structure(old) == structure(new)
