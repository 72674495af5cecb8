"""Fields of a run that follow from others: options, counters, checksums, and values before a trailer
of fixed size.

The profile says which fields a number counts (`counts`) or covers (`over`). They stand in the same
frame or rule; those that a number counts are adjacent and follow it. A value of open length that
only fields of fixed size follow ends where these begin.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from specwire.generator import ir
from specwire.generator.abnf.syntax import Reference, Rule
from specwire.generator.ir.names import fold, snake_case
from specwire.generator.passes.grammar import references
from specwire.generator.passes.hint_sources import HintSource
from specwire.generator.passes.layouts import fixed_octets
from specwire.generator.passes.options import settle_options
from specwire.generator.profile.tables import NOTHING_SAID, BitTable, TypeHint
from specwire.generator.support.checksums import ALGORITHMS, OCTETS

ALL = "*"
"""In place of the fields that a number counts: all after it."""


def derive_fields(reader: HintSource, fields: Sequence[ir.Field], rule: Rule) -> tuple[ir.Field, ...]:
    """Return the fields of a run with options, counters and checksums, and with the ends that follow
    from them."""
    run = _Run(reader, settle_options(reader, fields, rule), rule)
    run.counters()
    run.checksums()
    run.conditions()
    run.trailer()
    return tuple(run.fields)


class _Run:
    """Fields of one run."""

    def __init__(self, reader: HintSource, fields: list[ir.Field], rule: Rule) -> None:
        self.reader = reader
        self.fields = fields
        self.rule = rule

    def hint(self, field: ir.Field) -> TypeHint | BitTable:
        """Return what the profile says about a field."""
        return self._declared(field)[0]

    def _declared(self, field: ir.Field) -> tuple[TypeHint | BitTable, tuple[str, ...]]:
        """Return what the profile says about a field, and the path where it does."""
        if field.rule is None:
            return NOTHING_SAID, ("types", field.name)
        hint, path = self.reader.hint(Reference(field.rule, None, self.rule.name_span)), ("types", field.rule)
        bits = _bits(field.type)
        if bits is None:
            return hint, path
        tables = ((table, (*path, "bits", name)) for name, at, table in hint.bit_tables() if at == bits.shift)
        return next(tables, (NOTHING_SAID, path))

    def retype(self, position: int, type: ir.Type) -> None:
        self.fields[position] = structs.replace(self.fields[position], type=type)

    def fault(self, field: ir.Field, message: str, help: str) -> None:
        hint, path = self._declared(field)
        place = self.reader.profile.place(*path, "counts" if hint.counts else "checksum")
        self.reader.fault("E431", place, message, help)

    # Counters

    def counters(self) -> None:
        """Turn each number that counts later fields into a counter."""
        for position, field in enumerate(self.fields):
            hint = self.hint(field)
            names = [hint.counts] if isinstance(hint.counts, str) else hint.counts
            if isinstance(field.type, ir.SizeType) and position == len(self.fields) - 1:
                form = field.type.forms[0]
                self.retype(position, ir.ConstantType(form.tag + "00" * form.octets, number=0))
                continue
            if isinstance(field.type, ir.CounterType):
                names, number = list(field.type.counts), field.type.number
            elif not names:
                continue
            elif count := _count(field.type):
                number = count
            else:
                self.fault(
                    field,
                    f"'{field.name}' cannot count other fields: it is not an unsigned number",
                    "specwire cannot express `counts` or `plus` for a size in several forms; it counts all octets after it"
                    if isinstance(field.type, ir.SizeType)
                    else "make its rule octets without a range, such as OCTET or 2OCTET, and declare its `type` as "
                    '"integer", "varint", "decimal" or "hexadecimal"',
                )
                continue
            self._counter(position, number, names, hint)

    def _counter(
        self,
        position: int,
        number: ir.CountType | ir.BitType,
        names: Sequence[str],
        hint: TypeHint | BitTable,
    ) -> None:
        field = self.fields[position]
        found = self._named(field, names, position + 1)
        if hint.plus < 0 and (not found or _greatest(number) - hint.plus >= 2**64):
            self.fault(
                field,
                f"'{field.name}' cannot hold `plus`",
                "a negative `plus` needs something to count, and a number of less than 64 bits",
            )
            return
        if not found and list(names) == [ALL] and hint.plus <= _greatest(number):
            self.retype(position, _nothing(number, hint.plus))
            return
        fault = self._uncountable(position, number, found, list(names) == [ALL])
        if fault is not None:
            self.fault(field, *fault)
        elif found:
            counted = tuple(self.fields[at].name for at in found)
            self.retype(position, ir.CounterType(number, counted, hint.plus))
            if len(found) == 1:
                self._count_itself(found[0], octets=hint.counting == "octets")

    def _uncountable(
        self, position: int, number: ir.CountType | ir.BitType, found: Sequence[int], everything: bool
    ) -> tuple[str, str] | None:
        """Return why a number cannot count the fields at the positions `found`, and help."""
        field = self.fields[position]
        if not found:
            if not everything:
                return None
            return (
                f"'{field.name}' cannot hold `plus`: its greatest value is {_greatest(number)}",
                "correct `plus`",
            )
        if found != list(range(found[0], found[-1] + 1)):
            return (
                f"'{field.name}' counts fields of '{self.rule}' that are not adjacent",
                "list in `counts` all fields from the first to the last that it counts",
            )
        uncountable = [self.fields[at].name for at in found if _is_uncountable(self.fields[at].type)]
        if uncountable or field.optional:
            return (
                f"'{field.name}' cannot count '{uncountable[0]}'"
                if uncountable
                else f"'{field.name}' is optional, so it cannot count other fields",
                "specwire cannot express a number that counts a size or padding up to a multiple, or that may be absent",
            )
        if self._crosses_option(position, found):
            return (
                f"'{field.name}' counts fields of an option of which it is no part, or only some of them",
                (
                    "a number that counts one optional value belongs to the same option; "
                    "one that counts several fields must count whole options"
                ),
            )
        if self._overlaps([self.fields[at].name for at in found]):
            return (
                f"'{field.name}' counts only some of the fields that another number of '{self.rule}' counts",
                "one number must count all fields that the other counts, or none of them",
            )
        return None

    def _crosses_option(self, position: int, found: Sequence[int]) -> bool:
        """Whether a counter counts a part of an option, or is a part of one that it counts."""
        own = self.fields[position].option
        options = {self.fields[at].option for at in found} - {own}
        if len(found) == 1 or own is not None:
            return bool(options)
        return self._divides_option(found)

    def _overlaps(self, names: Sequence[str]) -> bool:
        """Whether another counter counts some but not all of the fields, or the same ones."""
        mine = set(names)
        for field in self.fields:
            if isinstance(field.type, ir.CounterType) and field.type.counts != (ALL,):
                other = set(field.type.counts)
                if mine & other and (mine == other or not (mine < other or other < mine)):
                    return True
        return False

    def _count_itself(self, position: int, *, octets: bool) -> None:
        """Give an open value that is counted alone the length or the count of its counter."""
        type = self.fields[position].type
        match type:
            case ir.TextType(length=ir.Length(kind="rest" | "run" | "until")):
                self.retype(position, structs.replace(type, length=ir.Length("counted")))
            case ir.OctetsType(length=ir.Length(kind="rest")):
                self.retype(position, structs.replace(type, length=ir.Length("counted")))
            case ir.ListType(count_octets=0) | ir.PairsType(count_octets=0) if not octets:
                self.retype(position, structs.replace(type, counted=True, until=""))
            case ir.ListType(count_octets=0) | ir.PairsType(count_octets=0):
                self.retype(position, structs.replace(type, until=""))

    def _named(self, field: ir.Field, names: Sequence[str], start: int) -> list[int]:
        """Return the positions of fields from `start` on, in order; none after E431."""
        if list(names) == [ALL]:
            return list(range(start, len(self.fields)))
        found: list[int] = []
        for name in names:
            places = [
                at
                for at, other in enumerate(self.fields)
                if at >= start and (other.name == snake_case(name) or fold(other.rule or "") == fold(name))
            ]
            whole = [
                at
                for at in places
                if _bits(self.fields[at].type) and fold(self.fields[at].rule or "") == fold(name)
            ]
            if whole and places == whole:
                found += self._integer(whole[0])
                continue
            if not places and self._is_faulty(name):
                return []
            if not places:
                self.fault(
                    field,
                    f"'{name}' is no field after '{field.name}' in '{self.rule}'",
                    f"fields: {', '.join(other.name for other in self.fields[start:]) or 'none'}",
                )
                return []
            # A rule that the run has more than once is named as often.
            places = [at for at in places if at not in found]
            if not places:
                self.fault(
                    field,
                    f"'{field.name}' names '{name}' more often than '{self.rule}' has it",
                    "name each field once",
                )
                return []
            found.append(places[0])
        covered = {at for place in found for at in self._integer(place)}
        if len(covered) > len(found):
            self.fault(
                field,
                f"'{field.name}' names some of the bits of an integer of '{self.rule}'",
                "name the rule of the integer",
            )
            return []
        return sorted(found)

    def _is_faulty(self, name: str) -> bool:
        """Whether an element of the rule with this name has no field because of another error."""
        uses = [use for use in references(self.rule.definition) if fold(use.name) == fold(name)]
        return any(map(self.reader.has_fault, uses))

    def _integer(self, position: int) -> range:
        """Return the positions of the bits of the integer that a field is part of; else its own."""
        bits = _bits(self.fields[position].type)
        if bits is None:
            return range(position, position + 1)
        first = position
        while (bits := _bits(self.fields[first].type)) and bits.shift + bits.width < 8 * bits.octets:
            first -= 1
        last = position
        while (bits := _bits(self.fields[last].type)) and bits.shift:
            last += 1
        return range(first, last + 1)

    # Checksums

    def checksums(self) -> None:
        """Turn each number with a checksum algorithm into a checksum."""
        for position, field in enumerate(self.fields):
            hint = self.hint(field)
            if not isinstance(hint, TypeHint) or hint.checksum is None:
                continue
            fault = self._no_checksum(field, hint.checksum)
            if fault is not None:
                self.fault(field, *fault)
                continue
            assert isinstance(field.type, ir.IntegerType)
            names = [hint.over] if isinstance(hint.over, str) else hint.over
            others = [at for at in range(len(self.fields)) if at != position]
            over = self._named(field, names, 0) if names else others
            if self._divides_option(over):
                self.fault(
                    field,
                    f"'{field.name}' covers only some of the fields of an option",
                    "name all fields of the option with `over`, or none of them",
                )
            elif over:
                covered = tuple(self.fields[at].name for at in over)
                self.retype(position, ir.ChecksumType(field.type, hint.checksum, covered))
        self._check_order()

    def _no_checksum(self, field: ir.Field, algorithm: str) -> tuple[str, str] | None:
        """Return why a field cannot be a checksum, and help."""
        if not isinstance(field.type, ir.IntegerType) or field.type.signed:
            return (
                f"'{field.name}' cannot be a checksum: it is not an unsigned integer",
                'declare its `type` as "integer"',
            )
        if algorithm not in ALGORITHMS and ":" not in algorithm:
            return (
                f"'{algorithm}' is no checksum",
                f"write {', '.join(sorted(ALGORITHMS))}, or module:function",
            )
        if field.optional or field.option or any(isinstance(one.type, ir.SizeType) for one in self.fields):
            return (
                f"'{field.name}' cannot be a checksum: it is optional, or '{self.rule}' has a size",
                (
                    "specwire cannot express a checksum that may be absent, or one beside a size; "
                    "name what the size covers with `counts`"
                ),
            )
        octets = OCTETS.get(algorithm, field.type.octets)
        if octets > field.type.octets:
            return (
                f"a {algorithm} has {octets} octets, but '{field.name}' has {field.type.octets}",
                "choose another algorithm, or correct the rule with an erratum",
            )
        return None

    def _divides_option(self, positions: Sequence[int]) -> bool:
        """Whether some, but not all, fields of an option are at these positions."""
        inside = {self.fields[at].option for at in positions}
        outside = {field.option for at, field in enumerate(self.fields) if at not in positions}
        return bool(inside & outside - {None})

    def _check_order(self) -> None:
        """Report the first checksum that covers itself, also through others."""
        over = {
            field.name: field.type.over for field in self.fields if isinstance(field.type, ir.ChecksumType)
        }
        for field in self.fields:
            reached: set[str] = set()
            found = [*over.get(field.name, ())]
            while found:
                name = found.pop()
                if name not in reached:
                    reached.add(name)
                    found += over.get(name, ())
            if field.name in reached:
                self.fault(
                    field,
                    f"'{field.name}' is a checksum of its own octets",
                    "name the rules that it covers with `over`",
                )
                return

    # Conditions

    def conditions(self) -> None:
        """Report options whose number is not known before their values are written."""
        for position, field in enumerate(self.fields):
            option = field.option
            if option is None or option.kind != "number" or option == self.fields[position - 1].option:
                continue
            number = next((other for other in self.fields if other.name == option.field), field)
            behind = {other.name for other in self.fields[position:]}
            match number.type:
                case ir.ChecksumType():
                    reason = f"'{number.name}' is a checksum"
                case ir.CounterType(counts=counts) if behind.intersection(counts):
                    reason = f"'{number.name}' counts what follows it"
                case _:
                    continue
            place = self.reader.profile.place("types", field.rule or field.name, "presence")
            message = f"the option of '{field.name}' in '{self.rule}': {reason}"
            self.reader.fault("E405", place, message, "name a number that is a value of its own")

    # Trailers

    def trailer(self) -> None:
        """End an open value where the fields of fixed size behind it begin."""
        for position, field in enumerate(self.fields):
            match field.type:
                case ir.TextType(length=ir.Length(kind="rest", octets=0), terminated=False):
                    pass
                case ir.OctetsType(length=ir.Length(kind="rest", octets=0)):
                    pass
                case _:
                    continue
            behind = self._behind(position)
            sizes = [
                fixed_octets(other.type) for other in behind if not other.optional and other.option is None
            ]
            if field.optional or len(sizes) < len(behind) or not behind:
                continue
            if None not in sizes:
                length = ir.Length("rest", sum(size or 0 for size in sizes))
                self.retype(position, structs.replace(field.type, length=length))

    def _behind(self, position: int) -> list[ir.Field]:
        """Return the fields after one: those that the narrowest number around it counts, or all of
        the run."""
        name = self.fields[position].name
        around = [
            field.type.counts
            for field in self.fields
            if isinstance(field.type, ir.CounterType) and name in field.type.counts
        ]
        behind = self.fields[position + 1 :]
        if around:
            narrowest = min(around, key=len)
            behind = [field for field in behind if field.name in narrowest]
        return behind


def _greatest(number: ir.CountType | ir.BitType) -> int:
    """Return the greatest value that a number can have."""
    return 2**number.width - 1 if isinstance(number, ir.BitType) else ir.bounds(number)[1]


def _bits(type: ir.Type) -> ir.BitType | None:
    found = type.number if isinstance(type, ir.CounterType) else type
    return found if isinstance(found, ir.BitType) else None


def _nothing(number: ir.CountType | ir.BitType, plus: int) -> ir.Type:
    """Return the type of a number that counts nothing: the constant `plus`."""
    match number:
        case ir.BitType():
            return structs.replace(number, constant=plus)
        case ir.IntegerType(octets=size, order=order):
            octets = plus.to_bytes(size, order)
        case ir.VarintType(order=order):
            groups = _groups(plus) if order == "big" else _groups(plus)[::-1]
            octets = bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])
        case ir.DigitsType(base=base, minimum=minimum):
            octets = format(plus, "d" if base == 10 else "x").rjust(minimum, "0").encode()
    return ir.ConstantType(octets.hex(), number=plus)


def _groups(number: int) -> list[int]:
    """Return a number in groups of 7 bits, the most significant first."""
    return [*(_groups(number >> 7) if number >> 7 else []), number & 0x7F]


def _is_uncountable(type: ir.Type) -> bool:
    return isinstance(type, ir.SizeType) or (isinstance(type, ir.PaddingType) and bool(type.multiple))


def _count(type: ir.Type) -> ir.CountType | ir.BitType | None:
    """Return a type that can count; None for any other."""
    match type:
        case ir.BitType(boolean=False):
            return type
        case ir.IntegerType(signed=False, bitmask=False, enum=None):
            return type
        case ir.VarintType(signed=None) | ir.DigitsType(signed=False):
            return type
    return None
