"""Changes in the parts of a message: its frames, the stack of routes, the frames at its end."""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator import ir
from specwire.generator.compare.comparison import (
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
from specwire.generator.compare.matching import MessageMatch, Pair, PartPlace, fields_of, in_order
from specwire.generator.compare.tables import SAME_COLUMN, column_of, hardest, judge_column
from specwire.generator.compare.wording import describe_delimiter, describe_part, describe_presence

_LETTER = yes("only strict decoding checks it")
_OTHER_END = no("the reader does not find the frame that ends the stack")


def part_changes(match: MessageMatch, context: Context) -> Iterator[Change]:
    """Yield the changes of a message's parts in the order of the old edition, then the new parts."""
    steady = _steady(match)
    for pair in match.parts:
        if pair.old is None or pair.new is None:
            yield _lone(match, context, pair)
            continue
        yield from _changed(match, context, pair.old.part, pair.new.part)
        if pair.old.number not in steady:
            why = no("its frame is read as another one")
            numbers = f"frame {pair.old.number}", f"frame {pair.new.number}"
            yield _change(match, "moved", pair.old.part.name, numbers, (why, why), SAME_COLUMN)


def _change(
    match: MessageMatch,
    kind: Kind | None,
    name: str,
    texts: Texts,
    readings: Readings,
    tables: TableJudgement,
) -> Change:
    return change(match.label, "part", name, texts, readings, tables, kind)


def _steady(match: MessageMatch) -> set[int]:
    """Return the parts that kept their order, by their numbers in the old edition."""
    same = match.same_parts
    return in_order(list(same), sorted(same, key=lambda number: same[number]))


def _lone(match: MessageMatch, context: Context, pair: Pair[PartPlace]) -> Change:
    """Return the change of a part that was added or removed."""
    old, new = (place.part if place else None for place in (pair.old, pair.new))
    texts = each(_describe, pair.old, pair.new)
    readings, tables = context.presence(match, old, new), _tables(match, context, old, new)
    return _change(match, None, pair.either.part.name, texts, readings, tables)


def _describe(place: PartPlace) -> str:
    return describe_part(place.part)


def _changed(match: MessageMatch, context: Context, old: ir.Part, new: ir.Part) -> Iterator[Change]:
    # A frame without a name has the name of its message.
    names = old.name, new.name
    if old.name != new.name and names != (match.old.name, match.new.name):
        yield _change(match, "renamed", old.name, names, (NAME_ONLY, NAME_ONLY), NOT_STORED)
    if type(old) is not type(new):
        texts = describe_part(old), describe_part(new)
        readings = _reads_kind(new, old), _reads_kind(old, new)
        yield _change(match, "retyped", old.name, texts, readings, _tables(match, context, old, new))
        return
    shown = describe_presence(old), describe_presence(new)
    if shown[0] != shown[1]:
        yield _change(match, "presence", old.name, shown, context.presence(match, old, new), SAME_COLUMN)
    if isinstance(old, ir.Stack) and isinstance(new, ir.Stack) and old.delimiter != new.delimiter:
        shown = describe_delimiter(old), describe_delimiter(new)
        yield _change(match, "value", old.name, shown, (_OTHER_END, _OTHER_END), SAME_COLUMN)
    letters = _letter(old), _letter(new)
    if letters[0] != letters[1]:
        yield _change(match, "letter", old.name, letters, (_LETTER, _LETTER), NOT_STORED)


def _letter(part: ir.Part) -> ir.Letter:
    return None if isinstance(part, ir.Rest) else part.letter


def _reads_kind(writer: ir.Part, reader: ir.Part) -> Judgement:
    """Return how one kind of part is read as another: a frame equals the rest if there is one frame."""
    if isinstance(writer, ir.Stack) or isinstance(reader, ir.Stack):
        return no("a frame ends a stack, and no other part")
    one = isinstance(writer, ir.Frame) and isinstance(writer.presence, ir.Always)
    if one and isinstance(reader, ir.Rest) and len(fields_of(writer)) == 1:
        return yes("one frame is one item of the rest")
    return depends("correct if there is one frame with one value")


def _tables(
    match: MessageMatch, context: Context, old: ir.Part | None, new: ir.Part | None
) -> TableJudgement:
    """Return the effect on tables of the fields of a part that was added or removed."""
    before = [column_of(field, match.old, context.old) for field in (fields_of(old) if old else ())]
    after = [column_of(field, match.new, context.new) for field in (fields_of(new) if new else ())]
    known = {column.name: column for column in before if column}
    if any(after):
        return hardest(judge_column(known.get(column.name), column) for column in after if column)
    return hardest(judge_column(column, None) for column in before)
