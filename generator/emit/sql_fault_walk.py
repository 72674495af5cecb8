"""Faults of one message in Spark SQL: one pass over its flags, parts and fields.

The pass is the same as in the slow path of the codec. The message is already selected, so the
frames at its selectors exist. Faults are listed in the order of their checks, and the first one
that applies is the fault of the row.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.sql_fault_fields import FrameFaults
from specwire.generator.emit.sql_fault_places import Place
from specwire.generator.emit.sql_faults import as_text, counted
from specwire.generator.emit.sql_fields import octets_of
from specwire.generator.emit.sql_numbers import by_text
from specwire.generator.emit.sql_text import Lets, NotCovered, Sum, frame_at, quoted
from specwire.generator.support.words import either

ITEM = "item"


class Walk:
    """Pass over the frames of one message; raises NotCovered for what SQL cannot check."""

    def __init__(self, message: ir.Message, protocol: ir.Protocol, lets: Lets) -> None:
        self.message, self.protocol, self.lets = message, protocol, lets
        self.place = Place(message, protocol, lets)
        self.header = any(selector.frame < 0 for selector in protocol.selectors)
        self.count = lets.let("count", "size(_frames)")
        self.last = Sum(-1, (self.count,))

    def faults(self) -> list[str]:
        """Return every fault as a condition and a value, for a CASE."""
        self.flags = self._flags()
        place = self.place
        place.frame = Sum()
        for index, part in enumerate(self.message.parts):
            place.there = ""
            self._enter(part)
            if isinstance(part, ir.Rest):
                first = place.frame.plus(1)
                items = f"slice(_frames, {first}, greatest({self.count} - ({place.frame}), 0))"
                self._items(part.field, self.lets.let(part.field.name, items), stack=False)
                if index + 1 < len(self.message.parts):
                    raise NotCovered
                return place.rows
            self._part(part, index)
        if not self.header:
            place.there = ""
            self._surplus(place.frame)
        return place.rows

    def _enter(self, part: ir.Part) -> None:
        """Name a part after its field; a frame of several fields has its own name."""
        if isinstance(part, ir.Frame) and len(part.fields) > 1:
            self.place.enter(quoted(part.name), None)
        else:
            field = part.fields[0] if isinstance(part, ir.Frame) else part.field
            self.place.enter(quoted(field.name), field.rule)

    def _part(self, part: ir.Frame | ir.Stack, index: int) -> None:
        place, last = self.place, index == len(self.message.parts) - 1
        place.there = self._there(part.presence, part.name, index)
        if self.header and last:
            field, rule = place.field, place.rule
            self._surplus(place.frame.plus(1))
            place.enter(field, rule)
        path = part.name if isinstance(part, ir.Frame) and len(part.fields) > 1 else _field(part).name
        what = f"a frame with {path}" if isinstance(part, ir.Frame) else f"an empty frame that ends {path}"
        behind = 1 if self.header and not last else 0
        if not self._is_selected(place.frame):
            place.refuse(
                f"{place.frame.plus(behind)} >= {self.count}", "frames", quoted(what), found=self._frames(),
                frame=f"least({place.frame}, {self.count})",
            )  # fmt: skip
        if isinstance(part, ir.Stack):
            self._stack(part)
            return
        behind_it = place.frame.plus(place.there or 1)
        octets = frame_at(place.frame)
        if self.header and last:
            octets, place.frame = frame_at(-1), self.last
        FrameFaults(place, self.lets.let("frame", octets), self._known(index)).read(part.fields)
        place.frame = behind_it

    def _is_selected(self, frame: Sum) -> bool:
        """Return whether a frame exists, because a selector matched in it or in a later frame."""
        last = max(selector.frame for selector in self.protocol.selectors)
        return not self.header and not frame.terms and frame.fixed <= last

    def _surplus(self, wanted: Sum) -> None:
        """Add the fault that there are too many frames."""
        self.place.enter_message()
        self.place.refuse(
            f"{self.count} > {wanted}", "frames", counted(wanted, "frame"), found=as_text(self.count)
        )

    def _frames(self) -> str:
        return counted(Sum(0, (self.count,)), "frame")

    def _stack(self, part: ir.Stack) -> None:
        place = self.place
        if place.frame != Sum():
            raise NotCovered
        found = "cast(array_position(_frames, X'') AS INT)"
        end = self.lets.let("stack_end", f"if({place.there} = 1, {found}, 0)" if place.there else found)
        what = quoted(f"an empty frame that ends {part.field.name}")
        place.refuse(f"{end} = 0", "frames", what, found=self._frames(), frame=self.count)
        items = self.lets.let(part.field.name, f"slice(_frames, 1, greatest({end} - 1, 0))")
        self._items(part.field, items, stack=True)
        place.frame = Sum(0, (end,))

    def _items(self, field: ir.Field, items: str, *, stack: bool) -> None:
        """Add the faults of the first invalid frame among several."""
        type = field.type
        terminated = isinstance(type, ir.TextType) and type.terminated
        if terminated and not stack:
            raise NotCovered
        if isinstance(type, ir.OctetsType) and type.length.kind == "rest" and type.maximum is None:
            if type.minimum > stack:
                raise NotCovered
            return
        probe = FrameFaults(Place(self.message, self.protocol, self.lets), ITEM, 0)
        fault = probe.item(type)
        if terminated:
            fault += f" OR {ITEM} = X'00'"
        number = f"cast(array_position(transform({items}, {ITEM} -> {fault}), true) AS INT)"
        bad = self.lets.let(f"{field.name}_bad", number)
        item = self.lets.let(f"{field.name}_item", f"try_element_at({items}, greatest({bad}, 1))")
        place, begin = self.place, self.place.frame
        place.enter(f"concat('{field.name}[', {as_text(f'{bad} - 1')}, ']')", field.rule)
        place.frame = Sum(begin.fixed - 1, (*begin.terms, bad))
        at = len(place.rows)
        FrameFaults(place, item, 0).item(type)
        if terminated:
            # Without NUL, the frame would be the empty one that ends the stack.
            place.refuse(f"{item} = X'00'", "length", "'text before the NUL'", found="'none'", offset=Sum())
        place.rows[at:] = [row.replace("WHEN ", f"WHEN {bad} > 0 AND ", 1) for row in place.rows[at:]]
        place.frame = begin

    def _there(self, presence: ir.Presence, part: str, index: int) -> str:
        """Return the name of the expression that is 1 if a part is present, else 0; empty if it always is."""
        name = f"with_{part.lower().replace('-', '_')}"
        match presence:
            case ir.Announced(mask=mask, value=value):
                return self.lets.let(name, f"if(({self.flags} & {mask}) = {value}, 1, 0)")
            case ir.Counted():
                behind = [part for part in self.message.parts[index + 1 :] if not isinstance(part, ir.Rest)]
                needed = sum(isinstance(part.presence, ir.Always) for part in behind)
                return self.lets.let(name, f"if({self.count} > {self.place.frame.plus(needed)}, 1, 0)")
        return ""

    def _known(self, index: int) -> int | None:
        """Return how many octets of a frame the tags determine, None for all."""
        for selector in self.protocol.selectors:
            if selector.frame in (index, index - len(self.message.parts)):
                return selector.octets
        return 0

    def _flags(self) -> str:
        """Return the name of the flags, which are checked before all parts; empty for a protocol without."""
        for index, part in enumerate(self.message.parts):
            offset = 0
            for field in part.fields if isinstance(part, ir.Frame) else ():
                if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
                    return self._read_flags(field, index, offset)
                offset += octets_of(field.type)
        return ""

    def _read_flags(self, field: ir.Field, index: int, offset: int) -> str:
        place, last = self.place, index == len(self.message.parts) - 1
        if self._known(index) == 0:
            raise NotCovered
        place.frame = self.last if last else Sum(index)
        place.enter(quoted(field.name), field.rule)
        octets = self.lets.let("frame", frame_at(-1 if last else index))
        place.refuse(
            f"octet_length({octets}) <= {offset}", "length", "'1 octet'",
            found=as_text(f"octet_length({octets}) - {offset}"), offset=Sum(offset),
        )  # fmt: skip
        name = self.lets.let("flags", f"cast({by_text(octets, Sum(offset), 1)} AS INT)")
        self._check_flags(name, offset)
        return name

    def _check_flags(self, flags: str, offset: int) -> None:
        """Check for bits of parts that the message lacks, and for incomplete combinations of bits."""
        known = 0
        for mask, values in announced(self.message).items():
            known |= mask
            expected = either(f"0x{value:02x}" for value in sorted(values))
            unlike = f"({flags} & {mask}) NOT IN ({', '.join(map(str, sorted(values)))})"
            if values != {0, mask & -mask}:
                self._refuse_flags(unlike, f"{flags} & {mask}", expected, offset)
        announcing = 0
        for bit in self.protocol.flags:
            announcing |= bit.value if bit.announces else 0
        if absent := announcing & ~known:
            found = f"{flags} & {absent}"
            self._refuse_flags(f"({found}) <> 0", found, "0x00: the message has no such part", offset)

    def _refuse_flags(self, condition: str, found: str, expected: str, offset: int) -> None:
        figures = f"concat('0x', lpad(lower(hex({found})), 2, '0'))"
        self.place.refuse(condition, "range", quoted(expected), found=figures, offset=Sum(offset))


def announced(message: ir.Message) -> dict[int, set[int]]:
    """Return the allowed values for each mask of the flags that announces a part."""
    allowed: dict[int, set[int]] = {}
    for part in message.parts:
        presence = ir.Counted() if isinstance(part, ir.Rest) else part.presence
        if not isinstance(presence, ir.Counted) and presence.mask:
            values = allowed.setdefault(presence.mask, set())
            values |= {presence.value, 0} if isinstance(presence, ir.Announced) else {presence.value}
    return allowed


def _field(part: ir.Frame | ir.Stack) -> ir.Field:
    return part.fields[0] if isinstance(part, ir.Frame) else part.field
