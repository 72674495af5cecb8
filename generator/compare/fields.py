"""What changed in the fields of a message: which there are, where they stand, what they hold."""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator import ir
from specwire.generator.compare.comparison import (
    ALIKE,
    NAME_ONLY,
    NOT_STORED,
    Change,
    Judgement,
    Kind,
    Readings,
    TableJudgement,
    Texts,
    change,
    depends,
    each,
    no,
    yes,
)
from specwire.generator.compare.context import Context
from specwire.generator.compare.matching import MessageMatch, Pair, Place, fields_of, in_order
from specwire.generator.compare.tables import REWRITE_VALUES, column_of, judge_column
from specwire.generator.compare.values import can_be_empty, is_nothing, reads
from specwire.generator.compare.wording import describe, describe_default, listed

_DEFAULT = yes("a default is written like any value; whoever leaves the field out writes another one")
_SENTINEL = depends(
    "read as meant where the value is none of these: an edition without the name takes it literally"
)
_OTHER_WORD = depends(
    "the octets are the same; as meant where the new name is another word for the same thing"
)
_UNIT = no("the same number is another amount")


def field_changes(match: MessageMatch, context: Context) -> Iterator[Change]:
    """Yield how the fields of a message changed, in the order of the old edition, then those that are new.

    A field that came or went with its whole part is told with the part.
    """
    moved = _moved(match)
    for pair in match.fields:
        if pair.old and pair.new:
            yield from _changed(match, context, pair.old, pair.new, pair in moved)
        elif _stays(match, pair):
            yield _lone(match, context, pair)


def _change(
    match: MessageMatch,
    kind: Kind | None,
    name: str,
    texts: Texts,
    readings: Readings,
    tables: TableJudgement,
) -> Change:
    return change(match.label, "field", name, texts, readings, tables, kind)


def _tables(match: MessageMatch, context: Context, pair: Pair[Place]) -> TableJudgement:
    old, new = (place.field if place else None for place in (pair.old, pair.new))
    return judge_column(column_of(old, match.old, context.old), column_of(new, match.new, context.new))


# A field that came or went


def _stays(match: MessageMatch, pair: Pair[Place]) -> bool:
    """Whether the part of a field that came or went is in both editions."""
    if pair.old:
        return pair.old.part in match.same_parts
    return pair.new is not None and pair.new.part in match.same_parts.values()


def _lone(match: MessageMatch, context: Context, pair: Pair[Place]) -> Change:
    place, texts = pair.either, each(_describe, pair.old, pair.new)
    without, with_it = _reads_surplus(place), _reads_missing(match, place, added=pair.old is None)
    readings = (with_it, without) if pair.old else (without, with_it)
    return _change(match, None, place.field.name, texts, readings, _tables(match, context, pair))


def _describe(place: Place) -> str:
    return describe(place.field.type)


def _reads_surplus(place: Place) -> Judgement:
    """How a reader that lacks the field reads data that has it."""
    if is_nothing(place.field.type):
        return ALIKE
    if place.from_end > 1:
        return no("all that follows it is read at the wrong place")
    if can_be_empty(place.field.type):
        return depends("read as meant where it is empty: a reader refuses octets that are left over")
    return no("its octets are left over, and the reader refuses them or takes them for another field's")


def _reads_missing(match: MessageMatch, place: Place, *, added: bool) -> Judgement:
    """How a reader that has the field reads data that lacks it; `added` where that reader is the new one."""
    if is_nothing(place.field.type):
        return ALIKE
    if place.from_end == 1 and can_be_empty(place.field.type) and _is_covered(match, place, added):
        return yes("it is read as empty")
    return no("the reader misses its octets, or takes those of another field for them")


def _is_covered(match: MessageMatch, place: Place, added: bool) -> bool:
    """Whether every field of the writer's frame is in the reader's too, so that no octets are left for `place`."""
    numbers = match.same_parts if not added else {new: old for old, new in match.same_parts.items()}
    part = numbers[place.part]
    for pair in match.fields:
        writer, reader = (pair.old, pair.new) if added else (pair.new, pair.old)
        if writer and writer.part == part and (reader is None or reader.part != place.part):
            return False
    return True


# A field in another place


def _moved(match: MessageMatch) -> set[Pair[Place]]:
    """The fields that are in another part, or another order, than before: as few as explain the new order."""
    moved: set[Pair[Place]] = set()
    inside: dict[int, list[Pair[Place]]] = {}
    for pair in match.fields:
        if pair.old and pair.new:
            if match.same_parts.get(pair.old.part) == pair.new.part:
                inside.setdefault(pair.old.part, []).append(pair)
            else:
                moved.add(pair)
    for pairs in inside.values():
        before = [pair.old.index for pair in pairs if pair.old]
        after = {pair.old.index: pair.new.index for pair in pairs if pair.old and pair.new}
        steady = in_order(before, sorted(before, key=lambda index: after[index]))
        moved |= {pair for pair in pairs if pair.old and pair.old.index not in steady}
    return moved


def _reads_moved(match: MessageMatch, old: Place, new: Place) -> Judgement:
    """Constants of the same octets may change places unseen, and what is between them stands where it stood."""
    before = [one.type for one in fields_of(match.old.parts[old.part])]
    after = [one.type for one in fields_of(match.new.parts[new.part])]
    if match.same_parts.get(old.part) == new.part:
        if before[: old.index] == after[: new.index]:
            return ALIKE
        swapped = before[new.index : new.index + 1] + after[old.index : old.index + 1]
        if old.field.constant and swapped == [old.field.type] * 2:
            return ALIKE
    return no("its octets are read as another field's")


def _where(place: Place, message: ir.Message) -> str:
    return f"{message.parts[place.part].name}, field {place.index}"


# A field that holds something else


def _changed(match: MessageMatch, context: Context, old: Place, new: Place, moved: bool) -> Iterator[Change]:
    before, after = old.field, new.field
    tables = _tables(match, context, Pair(old, new))
    name = before.name
    if name != after.name:
        why = _reads_renamed(before, after)
        yield _change(match, "renamed", name, (name, after.name), (why, why), tables)
    if moved:
        why = _reads_moved(match, old, new)
        yield _change(
            match, "moved", name, (_where(old, match.old), _where(new, match.new)), (why, why), NOT_STORED
        )
    if (kind := _kind(before.type, after.type, context)) is not None:
        readings = (
            reads(after.type, before.type, context.words),
            reads(before.type, after.type, context.words.reversed()),
        )
        yield _change(match, kind, name, _texts(before.type, after.type), readings, tables)
    yield from _declared(match, before, after)


def _reads_renamed(old: ir.Field, new: ir.Field) -> Judgement:
    """A constant is only a constant; of other values the comments say whether they are the same thing."""
    return NAME_ONLY if old.constant or (old.doc and old.doc == new.doc) else _OTHER_WORD


def _declared(match: MessageMatch, old: ir.Field, new: ir.Field) -> Iterator[Change]:
    """What the profile says of a field, and the octets do not."""
    defaults = describe_default(old), describe_default(new)
    if defaults[0] != defaults[1]:
        yield _change(match, "default", old.name, defaults, (_DEFAULT, _DEFAULT), NOT_STORED)
    if set(old.sentinels) != set(new.sentinels):
        texts = listed(old.sentinels), listed(new.sentinels)
        yield _change(match, "sentinels", old.name, texts, (_SENTINEL, _SENTINEL), NOT_STORED)
    if old.unit != new.unit:
        silent = old.unit is None or new.unit is None
        why = yes("only one edition says it") if silent else _UNIT
        tables = NOT_STORED if silent else REWRITE_VALUES
        yield _change(match, "unit", old.name, (old.unit, new.unit), (why, why), tables)


def _texts(old: ir.Type, new: ir.Type) -> tuple[str, str]:
    texts = describe(old), describe(new)
    if texts[0] == texts[1] and isinstance(old, ir.TextType) and isinstance(new, ir.TextType):
        return old.pattern or "any characters", new.pattern or "any characters"
    return texts


def _kind(old: ir.Type, new: ir.Type, context: Context) -> Kind | None:
    """What to call the difference of two types; None where there is none that is the field's own."""
    if _without_words(old, new, context):
        return None
    match old, new:
        case ir.ConstantType(), ir.ConstantType():
            return "value"
        case ir.KeywordType(), ir.KeywordType():
            return "value"
        case ir.TextType(), ir.TextType() if old.length == new.length:
            return "characters" if old.terminated == new.terminated else "retyped"
        case ir.IntegerType(), ir.IntegerType() if old.octets == new.octets:
            return "retyped"
    return "resized" if type(old) is type(new) else "retyped"


def _without_words(old: ir.Type, new: ir.Type, context: Context) -> bool:
    """Whether two types differ in nothing, or in no more than the names of one enumeration and of an entry's rule."""
    match old, new:
        case ir.IntegerType(), ir.IntegerType() if context.words.share(new, old):
            return old.octets == new.octets
        case ir.PairsType(), ir.PairsType():
            return _shape(old) == _shape(new)
    return old == new


def _shape(pairs: ir.PairsType) -> tuple[object, ...]:
    return pairs.count_octets, pairs.name, pairs.value, pairs.split
