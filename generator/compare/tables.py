"""What a change means for tables that hold rows of the old edition, from the columns of both editions.

The columns are those that the schemas are written from (`specwire.generator.emit.tables`). Rows of an older
edition lack a newer column, which reads as null; and the other way round. Only another type, or another
meaning under the same number, touches what is stored already.
"""

from __future__ import annotations

from collections.abc import Iterable

from specwire.generator import ir
from specwire.generator.compare.comparison import Effect, TableJudgement
from specwire.generator.emit.tables import Column, columns

SAME_COLUMN = TableJudgement(Effect.APPEND, "the column stays as it is")
REWRITE_VALUES = TableJudgement(
    Effect.REWRITE, "stored values mean something else now, and cannot stand beside new ones as they are"
)


def column_of(field: ir.Field | None, message: ir.Message, protocol: ir.Protocol) -> Column | None:
    """Return the column that holds `field`, None for a constant or no field."""
    found = (column for column in columns(message, protocol) if field and column.name == field.name)
    return None if field is None or field.constant else next(found, None)


def judge_column(old: Column | None, new: Column | None) -> TableJudgement:
    """Return what it takes to append rows with `new` to a table with `old`."""
    if new is None:
        why = "no column holds it" if old is None else f"the column {old.name} is null in new rows"
        return TableJudgement(Effect.APPEND, why)
    if old is None:
        return TableJudgement(Effect.COLUMN, f"the column {new.name}, null in old rows")
    if old.name != new.name:
        return TableJudgement(
            Effect.COLUMN, f"the column {new.name} beside {old.name}: columns go by their names"
        )
    if (old.kind, old.repeated) != (new.kind, new.repeated):
        return TableJudgement(
            Effect.REWRITE, f"the column {new.name} changes from {_type(old)} to {_type(new)}"
        )
    return SAME_COLUMN


def _type(column: Column) -> str:
    return f"list of {column.kind}" if column.repeated else column.kind


def judge_message(old: ir.Message | None, new: ir.Message | None) -> TableJudgement:
    """Return what a message that came, went or was renamed asks: each has a column, and a table, of its own."""
    if new is None:
        return TableJudgement(
            Effect.APPEND, "its column is null in new rows, and its table gets no more rows"
        )
    if old is None or old.class_name != new.class_name:
        return TableJudgement(Effect.COLUMN, f"the column {new.class_name}, and a table of its own")
    return SAME_COLUMN


def hardest(judgements: Iterable[TableJudgement]) -> TableJudgement:
    """Return the judgement that asks the most."""
    return max(judgements, key=lambda judgement: list(Effect).index(judgement.effect), default=SAME_COLUMN)
