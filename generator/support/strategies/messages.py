"""Hypothesis strategies for records and messages, from the operations of the plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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

    def messages(self, make: type[T], given: Mapping[str, Any]) -> SearchStrategy[T]:
        """Draw messages of one class; `given` has the argument for each field, and ``strict``."""
        class_name, strict = make.__name__, given["strict"]
        fields: dict[str, SearchStrategy[Any]] = {}
        readings: dict[int, list[str]] = {}
        tails: list[list[str]] = []
        counted: list[str] = []
        letters: dict[str | None, list[str]] = {}
        together = class_name in self.shadowed
        for part in named_plan(self.layout).messages[class_name].parts:
            values = _Values(self, class_name, strict)
            if isinstance(part, ops.ManyFrames):
                values.frames(part)
            else:
                values.visit(part.body)
                tails.append(values.optional_slots)
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
            required=letters.get("required", ()) if strict else (),
            forbidden=letters.get("forbidden", ()) if strict else (),
            together=together,
        )

    def records(self, make: type[T], given: Mapping[str, Any]) -> SearchStrategy[T]:
        """Draw records of one class; arguments as for `messages`."""
        values = _Values(self, make.__name__, given["strict"])
        values.visit(named_plan(self.layout).records[make.__name__].body)
        return values.instances(make, given)


class _Values(ops.Visitor):
    """Strategies for the values of a run, by their slots."""

    def __init__(self, drawing: Drawing, class_name: str, strict: bool) -> None:
        self.drawing = drawing
        self.class_name = class_name
        self.strict = strict
        self.found: dict[str, SearchStrategy[Any]] = {}
        self.optional_slots: list[str] = []
        self.together = False
        """Whether values that fit can be too long together, or no octets where some are needed."""
        self._numbers: dict[str, ops.Number] = {}
        """Hidden numbers by their slots."""
        self._least = 0
        """Octets of a value that must not be empty: 1 if nothing would mean that it is omitted."""
        self._change: int | None = None
        """Number of octets from which on the size before them has another form."""
        self._split: Split = ""
        """How the text in the innermost loop is split."""

    def frames(self, part: ops.ManyFrames) -> None:
        """Add the strategy of the frames of a part; an empty frame would end a stack."""
        self.found[part.slot] = lists(self._item(part.body, least=int(part.delimited))[ITEM])

    def instances(self, make: type[T], given: Mapping[str, Any]) -> SearchStrategy[T]:
        """Draw records whose fields have these values."""
        fields = {name: (given.get(name, ...), strategy) for name, strategy in self.found.items()}
        return instances(make, fields, tails=[self.optional_slots] if self.optional_slots else ())

    def _item(self, body: ops.Body, least: int = 0, split: Split = "") -> dict[str, SearchStrategy[Any]]:
        """Return the strategies of the slots of one of many values."""
        values = _Values(self.drawing, self.class_name, self.strict)
        values._least, values._split = least, split
        values.visit(body)
        self.together = self.together or values.together
        return values.found

    def _most(self, slot: str, plus: int) -> int:
        """Return the largest number of octets or items that a hidden number can say."""
        coding = self._numbers[slot].coding
        assert isinstance(coding, Countable)
        return limits(coding)[1] - plus

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
        if op.counts or op.checks:
            self._numbers[op.slot] = op
        else:
            self.found[op.slot] = self._number(op)

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
        extent, limit = op.extent, {}
        match extent.kind:
            case "fixed":
                limit["exactly"] = extent.octets
            case "slot":
                limit["most"] = self._most(extent.slot, extent.plus)
        if op.json:
            self.found[op.slot] = json_texts(self._least, strict=self.strict)
        elif self._split == "first" or self._split == "last":
            self.found[op.slot] = divided(
                self._split, until=extent.until, pattern=op.pattern, strict=self.strict, **limit
            )
        else:
            self.found[op.slot] = texts(
                least=self._least if extent.kind in ("rest", "until") else 0, padding=op.padding or b"",
                until=extent.until, terminated=op.terminated, pattern=op.pattern, strict=self.strict, **limit,
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
        self.found[op.slot] = one_of(self._record(record) for _, record in op.options)

    def _record(self, class_name: str) -> SearchStrategy[Any]:
        values = _Values(self.drawing, class_name, self.strict)
        values.visit(named_plan(self.drawing.layout).records[class_name].body)
        self.together = self.together or values.together
        return values.instances(self.drawing.classes[class_name], {})

    def optional(self, op: ops.Optional) -> None:
        """Draw a value that is not empty: without octets, it could not be distinguished from an omitted one."""
        self.optional_slots.append(op.slot)
        self._least = 1
        self.together = self.together or any(isinstance(one, ops.Nest | ops.Choose) for one in op.body)
        self.visit(op.body)

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
        required: those of these fields that must be present.
        forbidden: those of these fields that must be absent.
        together: whether values that fit their fields can be too long together, or match another
            message.
    """
    found = _instances(make, fields, readings, tails, required, forbidden)
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
        found |= dict.fromkeys(draw(_cut_off(names, found, required, forbidden)))
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
