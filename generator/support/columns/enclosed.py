"""Values inside records and unions of the same kind, which columns hold as octets.

A column type cannot contain itself. So the outermost value of a record that contains itself has
columns, and a value of the same kind inside it has one column with its octets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from types import ModuleType
from typing import Any
from uuid import UUID

import msgspec
import numpy as np

from specwire.generated import plan as ops
from specwire.generated.columns.arrow import Mask, buffer_of
from specwire.generated.columns.frames import Frames
from specwire.generated.columns.pieces import Pieces
from specwire.generated.columns.reader import Reader as ColumnReader
from specwire.generated.columns.runs import Run
from specwire.generated.columns.slots import Enclosed, Records, records_of
from specwire.generated.errors import DecodeError
from specwire.generated.layout import ProtocolLayout
from specwire.generated.named_plan import NamedMessage, NamedPlan, named_plan
from specwire.generated.plan import ITEM, NAME, VALUE, is_hidden
from specwire.generated.reader import Reader
from specwire.generated.refusal import check_message
from specwire.generated.selection import find_message


def enclosed_octets(
    layout: ProtocolLayout, frames: Sequence[bytes], sender: str | None = None
) -> Iterator[bytes]:
    """Return the octets of the values in a message that columns hold as octets, in order."""
    plan, octets = _marked(layout), list(frames)
    reader = _OctetsReader(plan, find_message(plan, octets, sender), octets, strict=False)
    check_message(reader)
    return iter(reader.found)


@lru_cache(maxsize=64)
def _marked(layout: ProtocolLayout) -> NamedPlan:
    """Return the plan of a protocol with `Enclosed` in the bodies of records."""
    plan = named_plan(layout)
    bodies = records_of(plan).bodies
    records = {
        name: msgspec.structs.replace(record, body=bodies[name]) for name, record in plan.records.items()
    }
    return msgspec.structs.replace(plan, records=records)


class _OctetsReader(Reader):
    """Reader that keeps the octets of the outermost enclosed values."""

    def __init__(self, plan: NamedPlan, message: NamedMessage, frames: list[bytes], strict: bool) -> None:
        super().__init__(plan, message, frames, strict)
        self.found: list[bytes] = []
        self._enclosed = 0
        """Number of enclosed values around this position."""

    def operation(self, op: ops.Op | Enclosed) -> Iterator[ops.Body] | None:
        """Call the method of one operation."""
        return self.enclosed(op) if isinstance(op, Enclosed) else super().operation(op)

    def enclosed(self, op: Enclosed) -> Iterator[ops.Body]:
        """Keep the octets of a value, unless it is inside another."""
        start = self.at
        self._enclosed += 1
        yield (op.value,)
        self._enclosed -= 1
        if not self._enclosed:
            self.found.append(self.frame[start : self.at])


def wrong_values(
    plan: NamedPlan, records: Records, op: Enclosed, pieces: Pieces, depth: int, *, strict: bool
) -> Mask:
    """Return the mask of elements that are not exactly one value each, inside `depth` records."""
    wrong = np.ones(len(pieces.offsets) - 1, np.bool_)
    if not strict:
        wrong = ~_are_values(records, op, pieces, depth)
    for number in np.flatnonzero(wrong).tolist():
        octets = pieces.data[pieces.offsets[number] : pieces.offsets[number + 1]].tobytes()
        reader = _InnerReader(plan, _any_message(plan), [octets], strict, depth)
        with suppress(DecodeError):
            _read(reader, op, "")
            wrong[number] = False
    return wrong


def _are_values(records: Records, op: Enclosed, pieces: Pieces, depth: int) -> Mask:
    """Return the mask of elements that are exactly one value each; others can be, too."""
    bounds = pieces.offsets.astype(np.int64)
    frames = Frames(pieces.data, buffer_of(pieces.data), bounds, np.arange(len(bounds)))
    run = Run(frames, bounds[:-1], bounds[1:])
    ColumnReader(run, records, depth=depth).operation(op)
    return run.ok & np.asarray(run.at == run.end, np.bool_)


def read_value(plan: NamedPlan, op: Enclosed, octets: bytes, home: ModuleType, path: str) -> Any:
    """Return the value that octets are; `home` has the classes, `path` is for errors.

    Raises:
        DecodeError: the octets are not exactly one value.
    """
    reader = _ValueReader(plan, _any_message(plan), octets, home)
    _read(reader, op, path)
    return reader.values[ITEM]


def _read(reader: Reader, op: Enclosed, path: str) -> None:
    reader.open(None, path)
    reader.visit((msgspec.structs.replace(op.value, slot=ITEM),))
    reader.ends()


def _any_message(plan: NamedPlan) -> NamedMessage:
    """Return a message; each knows all records."""
    return next(iter(plan.messages.values()))


class _InnerReader(Reader):
    """Reader that begins inside `depth` records."""

    def __init__(
        self, plan: NamedPlan, message: NamedMessage, frames: list[bytes], strict: bool, depth: int
    ) -> None:
        super().__init__(plan, message, frames, strict)
        self._depth = depth


class _ValueReader(Reader):
    """Reader that makes the values."""

    def __init__(self, plan: NamedPlan, message: NamedMessage, octets: bytes, home: ModuleType) -> None:
        super().__init__(plan, message, [octets], strict=False)
        self.home = home
        self.values: dict[str, Any] = {}
        """Values of the current record or item, by slot."""
        self._items: list[Any] = []
        self._made: Any = None

    def number(self, op: ops.Number) -> None:
        """Keep a number, or those of its bits that are not hidden."""
        super().number(op)
        for one in op.bits or (op,):
            if not is_hidden(one):
                number = self._run.numbers[one.slot][0]
                self.values[one.slot] = bool(number) if isinstance(one, ops.Bit) and one.boolean else number

    def text(self, op: ops.TakeText) -> None:
        """Keep a text, or the name and the value that it is divided into."""
        start = self.at
        super().text(op)
        raw = self.frame[start : self.at]
        if op.padding is not None:
            raw = raw.rstrip(op.padding)
        text = raw.decode()
        if op.terminated:
            text = text.removesuffix("\0")
        name, _, value = text.rpartition("=") if self.split == "last" else text.partition("=")
        self.values[op.slot] = (name, value) if self.split in ("first", "last") else text

    def octets(self, op: ops.TakeOctets) -> None:
        """Keep octets, or the UUID that they are."""
        start = self.at
        super().octets(op)
        raw = self.frame[start : self.at]
        uuid = {"big": lambda: UUID(bytes=raw), "little": lambda: UUID(bytes_le=raw)}
        self.values[op.slot] = uuid[op.uuid]() if op.uuid else raw

    def word(self, op: ops.Word) -> None:
        """Keep a word as the options spell it."""
        start = self.at
        super().word(op)
        found = self.frame[start : self.at].decode()
        self.values[op.slot] = next(
            option
            for option in op.options
            if option == found or (op.folded and option.lower() == found.lower())
        )

    def loop(self, op: ops.Loop) -> Iterator[ops.Body]:
        """Keep the items."""
        outer, self.values, items, self._items = self.values, {}, self._items, []
        yield from super().loop(op)
        outer[op.slot] = tuple(self._items)
        self.values, self._items = outer, items

    def items(self, op: ops.Loop, numbers: Iterable[int]) -> Iterator[int]:
        """Move to each item of a loop; keep it afterwards."""
        for number in super().items(op, numbers):
            yield number
            values = self.values
            self._items.append((values[NAME], values[VALUE]) if op.pairs == "both" else values[ITEM])

    def nest(self, op: ops.Nest) -> Iterator[ops.Body]:
        """Keep a record."""
        yield from super().nest(op)
        self.values[op.slot] = self._made

    def choose(self, op: ops.Choose) -> Iterator[ops.Body]:
        """Keep the record that begins here."""
        yield from super().choose(op)
        self.values[op.slot] = self._made

    def _record(self, class_name: str) -> Iterator[ops.Body]:
        outer, self.values = self.values, {}
        yield from super()._record(class_name)
        self._made = vars(self.home)[class_name](**self.values)
        self.values = outer

    def optional(self, op: ops.Optional) -> Iterator[ops.Body]:
        """Keep the values of an option; None if it is absent."""
        start = self.at
        yield from super().optional(op)
        if op.boolean:
            self.values[op.slot] = self.at > start
        for slot in (op.slot, *op.others):
            self.values.setdefault(slot, None)
