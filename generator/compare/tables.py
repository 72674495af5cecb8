"""Effects of a change on tables with rows of the old edition, from the columns of both editions.

The columns are those of the generated schemas (`specwire.generator.emit.tables`). A column that one
edition lacks is null in its rows. Only another type, or another meaning of the same number, affects
stored rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specwire.generator import ir
from specwire.generator.compare.comparison import Effect, TableJudgement
from specwire.generator.emit.tables import (
    Column,
    Kind,
    Many,
    Options,
    Struct,
    column,
    describe_kind,
)

SAME_COLUMN = TableJudgement(Effect.APPEND, "the column stays as it is")
REWRITE_VALUES = TableJudgement(
    Effect.REWRITE, "stored values have another meaning now, so they cannot be mixed with new ones"
)


def column_of(field: ir.Field | None, message: ir.Message, protocol: ir.Protocol) -> Column | None:
    """Return the column of `field`, or None if it has none."""
    if field is None or field.implied:
        return None
    wholes = (part.field.name for part in message.parts if not isinstance(part, ir.Frame))
    return column(field, message, protocol, many=field.name in wholes)


def judge_column(old: Column | None, new: Column | None) -> TableJudgement:
    """Return what is needed to append rows with `new` to a table with `old`."""
    if new is None:
        why = "no column holds it" if old is None else f"the column {old.name} is null in new rows"
        return TableJudgement(Effect.APPEND, why)
    if old is None:
        return TableJudgement(Effect.COLUMN, f"the column {new.name}, null in old rows")
    if old.name != new.name:
        return TableJudgement(
            Effect.COLUMN, f"the column {new.name} in addition to {old.name}: columns are matched by name"
        )
    shown = describe_kind(old.kind), describe_kind(new.kind)
    match _growth(old.kind, new.kind):
        case Effect.APPEND:
            return (
                SAME_COLUMN
                if shown[0] == shown[1]
                else TableJudgement(
                    Effect.APPEND, f"the columns removed inside {new.name} are null in new rows"
                )
            )
        case Effect.COLUMN:
            return TableJudgement(Effect.COLUMN, f"columns inside {new.name}, null in old rows")
    return TableJudgement(Effect.REWRITE, f"the column {new.name} changes from {shown[0]} to {shown[1]}")


def _growth(old: Kind, new: Kind) -> Effect:
    """Return the effect of values of the kind `new` on a column of the kind `old`."""
    match old, new:
        case Many(element=before), Many(element=after):
            return _growth(before, after)
        case Struct(), Struct():
            return _grown({c.name: c.kind for c in old.columns}, {c.name: c.kind for c in new.columns})
        case Options(), Options():
            return _grown({o.name: o.struct for o in old.options}, {o.name: o.struct for o in new.options})
    return Effect.APPEND if old == new else Effect.REWRITE


def _grown(old: Mapping[str, Kind], new: Mapping[str, Kind]) -> Effect:
    found = [_growth(old[name], kind) if name in old else Effect.COLUMN for name, kind in new.items()]
    return max(found, key=list(Effect).index, default=Effect.APPEND)


def judge_message(old: ir.Message | None, new: ir.Message | None) -> TableJudgement:
    """Return the effect of a message that was added, removed or renamed on its column and its table."""
    if new is None:
        return TableJudgement(
            Effect.APPEND, "its column is null in new rows, and its table gets no more rows"
        )
    if old is None or old.class_name != new.class_name:
        return TableJudgement(Effect.COLUMN, f"the column {new.class_name}, and a new table")
    return SAME_COLUMN


def hardest(judgements: Iterable[TableJudgement]) -> TableJudgement:
    """Return the judgement with the greatest effect."""
    return max(judgements, key=lambda judgement: list(Effect).index(judgement.effect), default=SAME_COLUMN)
