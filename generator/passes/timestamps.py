"""Numbers that the profile declares as times: ``timestamp = "ms"``, and ``epoch`` where it is not 1970.

A number or a list of numbers can be a time if it is a field of a message or record. A declaration that
applies to no such field is E402, because it would have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator import ir
from specwire.generator.ir.names import fold
from specwire.generator.passes.hint_sources import TimeSource
from specwire.generator.profile.tables import TypeHint
from specwire.generator.profile.value_checks import read_epoch


def read_timestamp(hint: TypeHint, type: ir.Type) -> ir.Timestamp | None:
    """Return the time that a value means; None if it is no number, or nothing is declared."""
    number = type.element if isinstance(type, ir.ListType) else type
    if hint.timestamp is None or not _can_be_time(number):
        return None
    return ir.Timestamp(hint.timestamp, read_epoch(hint.epoch))


def _can_be_time(type: ir.Type) -> bool:
    if isinstance(type, ir.BitType):
        return not (type.boolean or type.spare or type.constant is not None)
    return isinstance(type, ir.IntegerType | ir.FloatType | ir.VarintType | ir.DigitsType)


def check_timestamps(reader: TimeSource) -> None:
    """Report declarations that apply to no field that was read (E402)."""
    for path in _declared(reader):
        name = path[-1]
        if "/".join(map(fold, path)) not in reader.times and reader.grammar.rule(path[0].rpartition(".")[2]):
            inside = ("bits", *path[1:]) if path[1:] else ()
            reader.fault(
                "E402",
                reader.profile.place("types", path[0], *inside, "timestamp"),
                f"no field '{name}' is a number, so it cannot be a timestamp",
                "declare it for the rule of a number, or of a list of numbers, that is a field",
            )


def _declared(reader: TimeSource) -> Iterator[tuple[str, ...]]:
    """Yield the rule, or the rule and the name of its bits, of each declaration."""
    for rule, hint in reader.profile.profile.types.items():
        if hint.timestamp is not None:
            yield (rule,)
        yield from ((rule, name) for name, _, bits in hint.bit_tables() if bits.timestamp is not None)
