"""Options in the middle of a frame or rule: which condition says whether they are present.

The profile may name a number of the run (`presence`). Otherwise an option that begins with a
constant is present if these octets come next, and one before values of fixed size if more octets
than theirs are left. An option whose condition is not defined is E405; one that the octets after it
could be mistaken for, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import structs

from specwire.generator import ir
from specwire.generator.abnf.syntax import Rule
from specwire.generator.diagnostics import Span
from specwire.generator.ir.names import fold, snake_case
from specwire.generator.passes.field_names import shown
from specwire.generator.passes.firsts import first_octets
from specwire.generator.passes.hint_sources import HintSource
from specwire.generator.passes.layouts import fixed_octets


def settle_options(reader: HintSource, fields: Sequence[ir.Field], rule: Rule) -> list[ir.Field]:
    """Return the fields of a run with the conditions of their options."""
    run = _Options(reader, rule, list(fields))
    for number, group in groupby(range(len(fields)), key=lambda at: _number_of(fields[at])):
        if number:
            run.settle(list(group))
    run.announce()
    return run.fields


def is_settled(fields: Sequence[ir.Field]) -> bool:
    """Whether every condition of a run names a field of it: a rule that is a part of a run may name another."""
    names = {field.name for field in fields}
    return all(
        field.option is None or not field.option.field or field.option.field in names for field in fields
    )


def _number_of(field: ir.Field) -> int:
    return field.option.number if field.option else 0


class _Undefined(Exception):
    """Raised for an option without a condition, with the reason and help."""


class _Options:
    """The fields of one run, and their options."""

    def __init__(self, reader: HintSource, rule: Rule, fields: list[ir.Field]) -> None:
        self.reader = reader
        self.rule = rule
        self.fields = fields

    def settle(self, places: list[int]) -> None:
        """Give the fields at `places`, which are one option, their condition."""
        first = next(self.fields[at] for at in places if not isinstance(self.fields[at].type, ir.PresentType))
        option = first.option
        assert option is not None
        try:
            if option.field:
                found = self._by_number(places, option)
            elif isinstance(first.type, ir.ConstantType):
                found = self._by_octets(places, option)
            else:
                found = self._by_length(places, option)
        except _Undefined as fault:
            self._report(places, *fault.args)
            return
        for place in places:
            self.fields[place] = structs.replace(self.fields[place], option=found)

    def _by_number(self, places: list[int], option: ir.Option) -> ir.Option:
        before = self.fields[: places[0]]
        exact = [at for at, field in enumerate(before) if _is_called(field, option.field)]
        ending = f"_{snake_case(option.field)}"
        ends = [at for at, field in enumerate(before) if field.name.endswith(ending)]
        position = exact[0] if exact else ends[0] if len(ends) == 1 else None
        if position is None:
            known = ", ".join(field.name for field in self.fields[: places[0]]) or "none"
            raise _Undefined(f"there is no field '{option.field}' before it", f"fields: {known}")
        field = self.fields[position]
        values = option.values or ((option.mask,) if option.mask else ())
        if isinstance(field.type, ir.BitType):
            if field.type.constant is not None or field.type.spare:
                raise _Undefined(f"'{option.field}' has a fixed value", "name another number")
            values = values or ((1,) if field.type.width == 1 else ())
        elif not isinstance(field.type, ir.IntegerType | ir.VarintType | ir.DigitsType):
            raise _Undefined(f"'{option.field}' is no number", "name a number of the same run")
        if field.option is not None or field.optional:
            raise _Undefined(f"'{option.field}' may be absent", "name a number that is always present")
        if not values:
            help = "write `values`, the numbers for which it is present, or a `mask`"
            raise _Undefined(f"nothing says for which values of '{option.field}' it is present", help)
        return structs.replace(option, kind="number", field=field.name, values=values)

    def announce(self) -> None:
        """Mark the bits that only say whether options are present: encoding computes them."""
        for position, field in enumerate(self.fields):
            values = {
                other.option.values
                for other in self.fields
                if other.option and other.option.field == field.name
            }
            if isinstance(field.type, ir.BitType) and field.type.width == 1 and values == {(1,)}:
                announced = structs.replace(field.type, announces=True, boolean=False)
                self.fields[position] = structs.replace(field, type=announced)

    def _by_octets(self, places: list[int], option: ir.Option) -> ir.Option:
        octets, folded = self._head(places)
        if self._may_follow(octets, places[-1] + 1):
            help = "name a number that says whether it is present with `presence`, or correct the rule"
            raise _Undefined("what follows it may begin with the same octets", help)
        return structs.replace(option, kind="octets", octets=octets.hex(), folded=folded)

    def _may_follow(self, octets: bytes, start: int) -> bool:
        """Whether an option from the field `start` on, or the field after them, may begin like `octets`."""
        for position in range(start, len(self.fields)):
            field = self.fields[position]
            if position > start and field.option and field.option == self.fields[position - 1].option:
                continue
            head, _ = self._head(range(position, len(self.fields)))
            size = min(len(octets), len(head))
            if head and octets[:size].lower() == head[:size].lower():
                return True
            if not head:
                first = frozenset(octets[:1].lower() + octets[:1].upper())
                return bool(first & first_octets(self.fields[position:]))
            if field.option is None:
                return False
        return False

    def _head(self, places: Sequence[int]) -> tuple[bytes, bool]:
        """Return the constants at the start of the fields at `places`, and whether they are folded."""
        octets, folded = b"", False
        for place in places:
            type = self.fields[place].type
            if self.fields[place].option != self.fields[places[0]].option:
                break
            if isinstance(type, ir.ConstantType):
                octets += type.octets
                folded = folded or type.folded
            elif not isinstance(type, ir.PresentType):
                break
        return octets, folded

    def _by_length(self, places: list[int], option: ir.Option) -> ir.Option:
        later = self.fields[places[-1] + 1 :]
        behind = [field for field in later if not _is_left(field)]
        sizes = [fixed_octets(field.type) for field in behind]
        if None in sizes or any(field.optional or field.option for field in behind):
            help = (
                "name the number that says so with `presence` under [types] in the profile; without it, "
                "specwire can express an option that begins with a constant, and one before values of fixed size"
            )
            raise _Undefined("nothing says whether it is present", help)
        return structs.replace(option, kind="left", left=sum(size or 0 for size in sizes))

    def _report(self, places: list[int], reason: str, help: str) -> None:
        names = ", ".join(shown(self.fields[place]) for place in places)
        message = f"the option of {names} in '{self.rule}': {reason}"
        self.reader.fault("E405", self._place(places), message, help)

    def _place(self, places: list[int]) -> Span:
        for place in places:
            rule = self.fields[place].rule
            for name in (f"{self.rule.name}.{rule}", rule) if rule else ():
                if name in self.reader.profile.profile.types:
                    return self.reader.profile.place("types", name, "presence")
        return self.rule.name_span


def _is_called(field: ir.Field, name: str) -> bool:
    """Whether `name` is the name of a field, or of its rule."""
    return field.name == snake_case(name) or fold(field.rule or "") == fold(name)


def _is_left(field: ir.Field) -> bool:
    """Whether the octets left decide if a field is present; so it will be if nothing else is declared."""
    return field.option is not None and field.option.kind == "left" and not field.option.field
