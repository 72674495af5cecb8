"""Hypothesis strategies for records and messages, from the operations of the plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import EllipsisType
from typing import Any, Literal, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from specwire.generated import plan as ops
from specwire.generated.codings import Countable, limits
from specwire.generated.errors import EncodeError
from specwire.generated.layout import Boolean, Digits, Float, Integer, ProtocolLayout, Varint
from specwire.generated.named_plan import named_plan
from specwire.generated.plan import ITEM, NAME, VALUE
from specwire.generated.strategies.choices import Choice, choose_presence, known_presence
from specwire.generated.strategies.values import (
    between,
    bits,
    divided,
    json_texts,
    lists,
    octets,
    one_of,
    one_value_of,
    pairs,
    texts,
)

T = TypeVar("T")

Given: TypeAlias = T | SearchStrategy[T] | EllipsisType
"""Argument for a field: a value, a strategy of values, or ``...`` for any value that fits."""

Split: TypeAlias = Literal["", "both", "first", "last"]

Likely: TypeAlias = Mapping[tuple[str, str], Sequence[int]]
"""Special values of a class's field, which are drawn often."""


DEEPER = 2
"""How many more records than necessary contain each other."""


class Drawing:
    """Strategies for the classes of one package.

    Args:
        layout: layout of the protocol.
        classes: messages and records by name.
        likely: special values of fields.
        shadowed: messages whose values can make them another message.
    """

    def __init__(
        self, layout: ProtocolLayout, classes: Mapping[str, Any], likely: Likely, shadowed: Sequence[str] = ()
    ) -> None:
        self.layout = layout
        self.classes = classes
        self.likely = likely
        self.shadowed = shadowed
        self.depths = _depths(layout)
        """For each class of a record, how many records contain each other in it at least."""
        self._records: dict[tuple[str, bool, int], _Values] = {}
        """Values of records by class, ``strict`` and `_Values.room`."""

    def room(self, bodies: Iterable[ops.Body]) -> int | None:
        """Return how many records may contain each other in some bodies; None if there is no limit."""
        most = self.layout.max_depth
        return min(most, DEEPER + max(_depth(body, self.depths) for body in bodies)) if most else None

    def record(self, class_name: str, strict: bool, room: int | None) -> _Values:
        """Return the values of a record of one class in which at most `room` others contain each other."""
        key = class_name, strict, -1 if room is None else room
        if key not in self._records:
            values = self._records[key] = _Values(self, class_name, strict, room)
            values.visit(named_plan(self.layout).records[class_name].body)
        return self._records[key]

    def messages(self, make: type[T], given: Mapping[str, Any]) -> SearchStrategy[T]:
        """Draw messages of one class; `given` has the argument for each field, and ``strict``."""
        class_name, strict = make.__name__, given["strict"]
        fields: dict[str, SearchStrategy[Any]] = {}
        readings: dict[int, list[str]] = {}
        tails: list[list[str]] = []
        counted: list[str] = []
        choices: list[Choice] = []
        letters: dict[str | None, list[str]] = {}
        together = class_name in self.shadowed
        parts = named_plan(self.layout).messages[class_name].parts
        room = self.room(part.body for part in parts)
        for part in parts:
            values = _Values(self, class_name, strict, room)
            if isinstance(part, ops.ManyFrames):
                values.frames(part)
            else:
                values.visit(part.body)
                tails.append(values.optional_slots)
                choices += values.choices
            names = list(values.found)
            fields |= values.found
            together = together or values.together
            if part.presence.kind == "announced":
                readings.setdefault(part.presence.mask, []).extend(names)
            elif part.presence.kind == "counted":
                counted += names
            if part.presence.kind != "always":
                letters.setdefault(part.letter, []).extend(names)
        return instances(
            make,
            {name: (given[name], strategy) for name, strategy in fields.items()},
            readings=list(readings.values()),
            tails=[names for names in (*tails, counted) if names],
            choices=choices,
            required=letters.get("required", ()) if strict else (),
            forbidden=letters.get("forbidden", ()) if strict else (),
            together=together,
        )

    def records(self, make: type[T], given: Mapping[str, Any]) -> SearchStrategy[T]:
        """Draw records of one class; arguments as for `messages`."""
        body = named_plan(self.layout).records[make.__name__].body
        return self.record(make.__name__, given["strict"], self.room([body])).instances(make, given)


def _depths(layout: ProtocolLayout) -> dict[str, int]:
    """Return how many records contain each other at least, in a record of each class and with it."""
    records = named_plan(layout).records if layout.max_depth else {}
    depths = dict.fromkeys(records, layout.max_depth + 1)
    while True:
        found = {name: min(depths[name], 1 + _depth(record.body, depths)) for name, record in records.items()}
        if found == depths:
            return depths
        depths = found


def _depth(body: ops.Body, depths: Mapping[str, int]) -> int:
    """Return how many records contain each other at least in a body; `depths` are those of records."""
    found = [0]
    for op in body:
        match op:
            case ops.Nest(record=record):
                found.append(depths[record])
            case ops.Choose(options=options):
                found.append(min(depths[record] for _, record in options))
            case ops.Loop(body=inside, minimum=minimum) if minimum:
                found.append(_depth(inside, depths))
            case ops.Sized(body=inside) | ops.Region(body=inside):
                found.append(_depth(inside, depths))
    return max(found)


class _Values(ops.Visitor):
    """Strategies for the values of a run, by their slots."""

    def __init__(self, drawing: Drawing, class_name: str, strict: bool, room: int | None) -> None:
        self.drawing = drawing
        self.class_name = class_name
        self.strict = strict
        self.room = room
        """How many records may contain each other in these values; None for any number."""
        self.found: dict[str, SearchStrategy[Any]] = {}
        self.optional_slots: list[str] = []
        """First slots of what the end of the octets may omit."""
        self.choices: list[Choice] = []
        self.together = False
        """Whether values that fit can be too long together, or no octets where some are needed."""
        self._numbers: dict[str, tuple[int, int, tuple[int, ...]]] = {}
        """Slot -> the least and the largest integer in it, and those that it may be if not all may."""
        self._least = 0
        """Octets of a value that must not be empty: 1 if nothing would mean that it is omitted."""
        self._change: int | None = None
        """Number of octets from which on the size before them has another form."""
        self._split: Split = ""
        """How the text in the innermost loop is split."""

    def frames(self, part: ops.ManyFrames) -> None:
        """Add the strategy of the frames of a part; a frame like the delimiter would end a stack."""
        self.together = self.together or bool(part.delimiter)
        self.found[part.slot] = lists(self._item(part.body, least=int(part.delimiter == b""))[ITEM])

    def instances(self, make: type[T], given: Mapping[str, Any]) -> SearchStrategy[T]:
        """Draw records whose fields have these values."""
        fields = {name: (given.get(name, ...), strategy) for name, strategy in self.found.items()}
        tails = [self.optional_slots] if self.optional_slots else ()
        return instances(make, fields, tails=tails, choices=self.choices)

    def _item(self, body: ops.Body, least: int = 0, split: Split = "") -> dict[str, SearchStrategy[Any]]:
        """Return the strategies of the slots of one of many values."""
        values = _Values(self.drawing, self.class_name, self.strict, self.room)
        values._least, values._split = least, split
        values.visit(body)
        self.together = self.together or values.together
        return values.found

    def _most(self, slot: str, plus: int) -> int:
        """Return the largest number of octets or items that a hidden number can say."""
        return self._numbers[slot][1] - plus

    def _has_room(self, body: ops.Body) -> bool:
        """Return whether there is room for the records in a body."""
        return self.room is None or _depth(body, self.drawing.depths) <= self.room

    def expect(self, op: ops.Expect) -> None:
        """Constants have no value."""

    def pad(self, op: ops.Pad) -> None:
        """Padding has no value."""

    def mark(self, op: ops.Mark) -> None:
        """Positions have no value."""

    def verify(self, op: ops.Verify) -> None:
        """Checksums are computed."""

    def number(self, op: ops.Number) -> None:
        """Draw numbers that are not computed."""
        if isinstance(op.coding, Countable):
            members = op.coding.members if isinstance(op.coding, Integer) else ()
            self._numbers[op.slot] = (*limits(op.coding), members)
        for bit in op.bits:
            self._bit(bit)
        if not op.counts and not op.checks and not op.bits:
            self.found[op.slot] = self._number(op)

    def _bit(self, bit: ops.Bit) -> None:
        self._numbers[bit.slot] = 0, (1 << bit.width) - 1, bit.members
        if ops.is_hidden(bit):
            return
        if bit.boolean:
            self.found[bit.slot] = st.booleans()
        elif bit.members:
            self.found[bit.slot] = one_value_of(bit.members)
        else:
            likely = self.drawing.likely.get((self.class_name, bit.slot), ())
            self.found[bit.slot] = between(0, (1 << bit.width) - 1, likely)

    def _number(self, op: ops.Number) -> SearchStrategy[Any]:
        match op.coding:
            case Integer(octets=width) if op.flags:
                return bits(width, self.drawing.layout.announcing)
            case Integer(members=members) if members:
                return one_value_of(members)
            case Float(octets=width):
                return st.floats(width=32 if width == 4 else 64, allow_nan=False)
            case Boolean():
                return st.booleans()
            case Integer() | Varint() | Digits() as coding:
                return between(*limits(coding), self.drawing.likely.get((self.class_name, op.slot), ()))

    def word(self, op: ops.Word) -> None:
        """Draw one of the words."""
        self.found[op.slot] = one_value_of(op.options)

    def text(self, op: ops.TakeText) -> None:
        """Draw texts, or the two sides of a text that is split."""
        extent, limit, least = op.extent, {}, 0
        match extent.kind:
            case "fixed":
                limit["exactly"] = extent.octets
            case "slot":
                limit["most"] = self._most(extent.slot, extent.plus)
            case "rest" | "until":
                least = self._least
            case "run":
                least = max(self._least, extent.octets)
        if op.json:
            self.found[op.slot] = json_texts(self._least, strict=self.strict)
        elif self._split == "first" or self._split == "last":
            self.found[op.slot] = divided(
                self._split, until=extent.until, among=extent.among, pattern=op.pattern,
                strict=self.strict, **limit,
            )  # fmt: skip
        else:
            self.found[op.slot] = texts(
                least=least, padding=op.padding or b"", until=extent.until, among=extent.among,
                terminated=op.terminated, pattern=op.pattern, strict=self.strict, **limit,
            )  # fmt: skip

    def octets(self, op: ops.TakeOctets) -> None:
        """Draw octets or UUIDs."""
        least, most = op.minimum, op.maximum
        match op.extent.kind:
            case "fixed":
                least = most = op.extent.octets
            case "slot":
                counted = self._most(op.extent.slot, op.extent.plus)
                most = counted if most is None else min(most, counted)
            case "rest":
                least = max(least, self._least)
        around = self._change if op.extent.kind == "rest" and most is None else None
        self.found[op.slot] = st.uuids() if op.uuid else octets(least, most, around=around)

    def loop(self, op: ops.Loop) -> None:
        """Draw tuples of items, or of pairs."""
        least, most = op.minimum, None
        if op.count:
            most = self._most(op.count, op.plus)
        else:
            least = max(least, self._least)
        # An item may begin with what ends the items.
        self.together = self.together or bool(op.until)
        if not self._has_room(op.body):
            self.found[op.slot] = st.just(())
            return
        item = self._item(op.body, split=op.pairs)
        if op.pairs == "both":
            self.found[op.slot] = pairs(item[NAME], item[VALUE], least, most)
        else:
            # Limit elements that contain many elements themselves, as drawing them would take too long.
            flat = not any(isinstance(one, ops.Loop | ops.Nest | ops.Choose) for one in op.body)
            self.found[op.slot] = lists(item[ITEM], least, most, full=flat)

    def nest(self, op: ops.Nest) -> None:
        """Draw records."""
        self.found[op.slot] = self._record(op.record)

    def choose(self, op: ops.Choose) -> None:
        """Draw one of several records."""
        records = [record for _, record in op.options]
        if self.room is not None:
            records = [record for record in records if self.drawing.depths[record] <= self.room]
        self.found[op.slot] = one_of(map(self._record, records))

    def _record(self, class_name: str) -> SearchStrategy[Any]:
        room = None if self.room is None else self.room - 1
        values = self.drawing.record(class_name, self.strict, room)
        self.together = self.together or values.together
        return values.instances(self.drawing.classes[class_name], {})

    def optional(self, op: ops.Optional) -> None:
        """Draw values that are present or None; one that an empty value could be must not be empty."""
        slots, possible = (op.slot, *op.others), self._has_room(op.body)
        if op.when.kind == "left":
            self.optional_slots.append(op.slot)
            filled = any(ops.fixed_octets(one) for one in op.body)
            self.together = self.together or any(isinstance(one, ops.Nest | ops.Choose) for one in op.body)
            self._least = int(not filled)
        numbers = self._numbers_for(op.when) if op.when.kind == "number" else None
        self.choices.append(Choice(slots, op.when, op.boolean, possible, numbers))
        if possible:
            self.visit(op.body)
        else:
            self.found |= dict.fromkeys(slots, st.none())
        if op.boolean:
            self.found[op.slot] = st.just(True)
        self._least = 0

    def _numbers_for(self, when: ops.When) -> SearchStrategy[int]:
        """Draw numbers for which a condition holds, of those that its slot may have."""
        least, most, members = self._numbers[when.slot]
        if members or not when.mask:
            allowed = [
                number for number in members or when.values if least <= number <= most and when.fits(number)
            ]
            return st.sampled_from(allowed) if allowed else st.nothing()
        some = st.tuples(st.integers(least, most), st.sampled_from(when.values))
        masked = some.map(lambda pair: pair[0] & ~when.mask | pair[1])
        return masked.filter(lambda number: least <= number <= most)

    def sized(self, op: ops.Sized) -> None:
        """Draw the values after a size."""
        self._change = 256 ** op.forms[0][1] - 1 if len(op.forms) > 1 else None
        self.together = self.together or max(octets for _, octets in op.forms) <= 2
        self.visit(op.body)

    def region(self, op: ops.Region) -> None:
        """Draw the values that a number counts."""
        self.together = True
        self.visit(op.body)


def instances(
    make: Callable[..., T],
    fields: Mapping[str, tuple[object, SearchStrategy[Any]]],
    *,
    readings: Sequence[Sequence[str]] = (),
    tails: Sequence[Sequence[str]] = (),
    choices: Sequence[Choice] = (),
    required: Sequence[str] = (),
    forbidden: Sequence[str] = (),
    together: bool = False,
) -> SearchStrategy[T]:
    """Draw records or messages.

    What the caller passed is used unchanged, and the drawn values adapt to it.

    Args:
        make: class to instantiate.
        fields: for each field, the caller's argument, and the strategy used if that is ``...``.
        readings: groups of fields of which at most one is present; the others are None.
        tails: groups of fields that may be omitted from any of them on: that field and all later
            ones are None.
        choices: fields of each `Optional`, which are present together; the others are None.
        required: those of these fields that must be present.
        forbidden: those of these fields that must be absent.
        together: whether values that fit their fields can be too long together, or match another
            message.
    """
    found = _instances(make, fields, readings, tails, choices, required, forbidden)
    given = frozenset(name for name, (given, _) in fields.items() if given is not ...)
    return found.filter(lambda made: _fits(made, given)) if together else found


def _fits(made: Any, given: AbstractSet[str]) -> bool:
    """Return whether a message can be encoded, or fails only because of what the caller passed."""
    try:
        made.encode()
    except EncodeError as error:
        name = re.split(r"[.\[]", error.field or "", maxsplit=1)[0]
        return bool({name, f"{name}_"} & given)
    return True


@st.composite
def _instances(
    draw: st.DrawFn,
    make: Callable[..., T],
    fields: Mapping[str, tuple[object, SearchStrategy[Any]]],
    readings: Sequence[Sequence[str]],
    tails: Sequence[Sequence[str]],
    choices: Sequence[Choice],
    required: Sequence[str],
    forbidden: Sequence[str],
) -> T:
    found = {
        name: draw(given) if isinstance(given, SearchStrategy) else given
        for name, (given, _) in fields.items()
        if given is not ...
    }
    for names in readings:
        found |= dict.fromkeys(draw(_left_out(names, found, required, forbidden)))
    for names in tails:
        known = found | known_presence(choices, found)
        found |= dict.fromkeys(draw(_cut_off(names, known, required, forbidden)))
    choose_presence(draw, choices, {name: fit for name, (_, fit) in fields.items()}, found)
    return make(**{name: found[name] if name in found else draw(fit) for name, (_, fit) in fields.items()})


def _left_out(
    names: Sequence[str], found: Mapping[str, object], required: Sequence[str], forbidden: Sequence[str]
) -> SearchStrategy[list[str]]:
    """Draw, of several readings of one frame, those that are absent."""
    open_ = [name for name in names if name not in found]
    if any(found.get(name) is not None for name in names):
        return st.just(open_)
    choices: list[str | None] = [name for name in open_ if name not in forbidden]
    if not choices or not set(names) & set(required):
        choices.insert(0, None)
    return st.sampled_from(choices).map(lambda chosen: [name for name in open_ if name != chosen])


def _cut_off(
    names: Sequence[str], found: Mapping[str, object], required: Sequence[str], forbidden: Sequence[str]
) -> SearchStrategy[list[str]]:
    """Draw, of the fields that may be omitted at the end, those that are absent."""
    there = [n for n, name in enumerate(names) if found.get(name) is not None or name in required]
    gone = [n for n, name in enumerate(names) if found.get(name, ...) is None or name in forbidden]
    least = max(there, default=-1) + 1
    most = max(least, min(gone, default=len(names)))
    return st.integers(least, most).map(lambda count: [name for name in names[count:] if name not in found])
