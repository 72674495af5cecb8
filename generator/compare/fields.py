"""Changes in the fields of a message: added, removed, moved, or with another type."""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator import ir
from specwire.generator.compare.bits import reads_lone_bits
from specwire.generator.compare.comparison import (
    ALIKE,
    NAME_ONLY,
    NOT_STORED,
    Change,
    Effect,
    Judgement,
    Kind,
    Readings,
    TableJudgement,
    Texts,
    Verdict,
    change,
    depends,
    each,
    no,
    yes,
)
from specwire.generator.compare.context import Context
from specwire.generator.compare.matching import MessageMatch, Pair, Place, fields_of, in_order
from specwire.generator.compare.nested import (
    changes_inside,
    is_alike,
    is_present_otherwise,
    kind_of,
    reads_presence,
    reads_unit,
    texts_of,
)
from specwire.generator.compare.tables import REWRITE_VALUES, column_of, judge_column
from specwire.generator.compare.values import can_be_empty, is_nothing, reads
from specwire.generator.compare.wording import describe, describe_default, describe_option, listed

_DEFAULT = yes("a default is written like any other value; a program that omits the field writes another one")
_SENTINEL = depends("correct if the value is none of these: an edition without the name reads it literally")
_OTHER_WORD = depends("the octets are the same; correct if the new name has the same meaning")
_TIME_COLUMN = TableJudgement(Effect.COLUMN, "a column for the time, null in old rows")


def field_changes(match: MessageMatch, context: Context) -> Iterator[Change]:
    """Yield the changes of a message's fields in the order of the old edition, then the new fields.

    A field that was added or removed with its whole part is listed with the part.
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


# A field that was added or removed


def _stays(match: MessageMatch, pair: Pair[Place]) -> bool:
    """Whether both editions have the part of a field that was added or removed."""
    if pair.old:
        return pair.old.part in match.same_parts
    return pair.new is not None and pair.new.part in match.same_parts.values()


def _lone(match: MessageMatch, context: Context, pair: Pair[Place]) -> Change:
    place, texts = pair.either, each(_describe, pair.old, pair.new)
    others = _others(match, place, added=pair.old is None)
    without = reads_lone_bits(place.field, others, written=True) or _reads_surplus(place)
    with_it = reads_lone_bits(place.field, others, written=False) or _reads_missing(
        match, place, added=pair.old is None
    )
    readings = (with_it, without) if pair.old else (without, with_it)
    return _change(match, None, place.field.name, texts, readings, _tables(match, context, pair))


def _others(match: MessageMatch, place: Place, *, added: bool) -> tuple[ir.Field, ...]:
    """Return the fields of the same part in the edition that lacks a field."""
    if not added:
        return fields_of(match.new.parts[match.same_parts[place.part]])
    numbers = {new: old for old, new in match.same_parts.items()}
    return fields_of(match.old.parts[numbers[place.part]])


def _describe(place: Place) -> str:
    return describe(place.field.type)


def _reads_surplus(place: Place) -> Judgement:
    """Return how a reader without the field reads data with it."""
    if is_nothing(place.field.type):
        return ALIKE
    if place.field.option is not None:
        return depends("correct if it is absent")
    if place.field.optional:
        return depends("correct if it is absent: a reader rejects surplus octets")
    if place.from_end > 1:
        return no("everything after it is read at the wrong place")
    if can_be_empty(place.field.type):
        return depends("correct if it is empty: a reader rejects surplus octets")
    return no("the reader rejects its octets, or reads them as another field")


def _reads_missing(match: MessageMatch, place: Place, *, added: bool) -> Judgement:
    """Return how a reader with the field reads data without it; `added` if that reader is the new one."""
    if is_nothing(place.field.type):
        return ALIKE
    if place.field.option is not None:
        return depends("correct where the reader finds it absent, too")
    if place.field.optional and _is_covered(match, place, added):
        return yes("it may be absent")
    if place.from_end == 1 and can_be_empty(place.field.type) and _is_covered(match, place, added):
        return yes("it is read as empty")
    return no("the reader lacks its octets, or reads those of another field instead")


def _is_covered(match: MessageMatch, place: Place, added: bool) -> bool:
    """Whether the reader's frame has every field of the writer's, so that no octets remain for `place`."""
    numbers = match.same_parts if not added else {new: old for old, new in match.same_parts.items()}
    part = numbers[place.part]
    for pair in match.fields:
        writer, reader = (pair.old, pair.new) if added else (pair.new, pair.old)
        if writer and writer.part == part and (reader is None or reader.part != place.part):
            return False
    return True


# A field at another place


def _moved(match: MessageMatch) -> set[Pair[Place]]:
    """Return the fields that moved to another part or in the order; as few as explain the new order."""
    moved: set[Pair[Place]] = set()
    inside: dict[int, list[Pair[Place]]] = {}
    same_parts = match.same_parts
    for pair in match.fields:
        if pair.old and pair.new:
            if same_parts.get(pair.old.part) == pair.new.part:
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
    """Return how moved fields are read: equal constants or padding may be exchanged without effect."""
    before = [one.type for one in fields_of(match.old.parts[old.part])]
    after = [one.type for one in fields_of(match.new.parts[new.part])]
    if match.same_parts.get(old.part) == new.part:
        if before[: old.index] == after[: new.index]:
            return ALIKE
        swapped = before[new.index : new.index + 1] + after[old.index : old.index + 1]
        if old.field.implied and swapped == [old.field.type] * 2:
            return ALIKE
        between = slice(min(old.index, new.index), max(old.index, new.index) + 1)
        if all(isinstance(one, ir.PaddingType) for one in (*before[between], *after[between])):
            return ALIKE
    return no("its octets are read as another field")


def _where(place: Place, message: ir.Message) -> str:
    return f"{message.parts[place.part].name}, field {place.index}"


# A field with another type


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
    if is_alike(before.type, after.type):
        for inside in changes_inside(name, before.type, after.type, context.words):
            stored = REWRITE_VALUES if inside.kind == "unit" else tables
            effect = stored if inside.stored else NOT_STORED
            yield _change(match, inside.kind, inside.path, inside.texts, inside.readings, effect)
    elif (kind := kind_of(before.type, after.type, context.words)) is not None:
        readings = (
            reads(after.type, before.type, context.words),
            reads(before.type, after.type, context.words.reversed()),
        )
        yield _change(match, kind, name, texts_of(before.type, after.type), readings, tables)
    if is_present_otherwise(before, after):
        words = describe_option(before), describe_option(after)
        readings = reads_presence(after, before), reads_presence(before, after)
        yield _change(match, "presence", name, words, readings, NOT_STORED)
    yield from _declared(match, before, after)


def _reads_renamed(old: ir.Field, new: ir.Field) -> Judgement:
    """Return how a renamed field is read: constants are equal, other values if the comments are."""
    return NAME_ONLY if old.constant or (old.doc and old.doc == new.doc) else _OTHER_WORD


def _declared(match: MessageMatch, old: ir.Field, new: ir.Field) -> Iterator[Change]:
    """Yield the changes of declarations in the profile that do not affect the octets."""
    defaults = describe_default(old), describe_default(new)
    if defaults[0] != defaults[1]:
        yield _change(match, "default", old.name, defaults, (_DEFAULT, _DEFAULT), NOT_STORED)
    if set(old.sentinels) != set(new.sentinels):
        texts = listed(old.sentinels), listed(new.sentinels)
        yield _change(match, "sentinels", old.name, texts, (_SENTINEL, _SENTINEL), NOT_STORED)
    if (why := reads_unit(old, new)) is not None:
        tables = REWRITE_VALUES if why.verdict is Verdict.NO else NOT_STORED
        if old.timestamp is None and new.timestamp is not None:
            tables = _TIME_COLUMN
        yield _change(match, "unit", old.name, (old.unit, new.unit), (why, why), tables)
