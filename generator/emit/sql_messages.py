"""One message in Spark's SQL: the condition that frames are this message, and the struct of its fields.

Covered are messages whose values stand where SQL can point without a loop: at a fixed place of a frame, or behind
texts and octets whose lengths stand before them; whole frames; a stack of frames and the frames that are left. The
condition is exact: a message that fits is what the codec reads, but for a few that it would read too (a stack with
NUL behind a text), which are left to the codec like everything that does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator import ir
from specwire.generator.emit.layout import selected
from specwire.generator.emit.sql_text import (
    NUL,
    WORD,
    Lets,
    Sum,
    cut,
    integer,
    literal,
    part_of_word,
    quoted,
    valid_text,
    word,
)
from specwire.generator.emit.tables import PRESENT

PREFIX_OCTETS = 4
"""A length of more octets is nowhere used, and would not be a BIGINT."""


class NotCovered(Exception):
    """The message has something that is not written in SQL."""


class MessageText:
    """The conditions and the columns of one message, as they are found from its first part to its last."""

    def __init__(self, message: ir.Message, protocol: ir.Protocol, lets: Lets) -> None:
        """Read the message; NotCovered where that cannot be done."""
        self.message, self.protocol, self.lets = message, protocol, lets
        self.conditions: list[str] = [self._tags()]
        self.columns: list[tuple[str, str]] = []
        self.at = Sum()
        self.flags = self._flags()
        rest = None
        for index, part in enumerate(message.parts):
            match part:
                case ir.Frame():
                    self._frame(part, index)
                case ir.Stack():
                    self._stack(part)
                case ir.Rest():
                    rest = part
        self.conditions.insert(1, f"size(_frames) {'>=' if rest else '='} {self.at}")
        if rest:
            self._rest(rest)
        if not self.columns:
            self.columns.append((PRESENT, "true"))

    @property
    def struct(self) -> list[str]:
        """Name and value of each field."""
        return [f"{quoted(name)}, {value}" for name, value in self.columns]

    def _tags(self) -> str:
        """What tells the message from others."""
        spelled = [
            " AND ".join(self._piece(place, octets) for place, octets in enumerate(pieces))
            for pieces in selected(self.message, self.protocol)
        ]
        return spelled[0] if len(spelled) == 1 else f"({' OR '.join(spelled)})"

    def _piece(self, place: int, octets: bytes) -> str:
        selector = self.protocol.selectors[place]
        head = self._head(selector.frame)
        return f"startswith({head}, {literal(octets)})" if selector.octets else f"{head} = {literal(octets)}"

    def _head(self, frame: int) -> str:
        if frame >= 0:
            return self.lets.let(f"frame_{frame}", f"get(_frames, {frame})")
        return self.lets.let(
            "last_frame" if frame == -1 else "frame", f"get(_frames, size(_frames) - {-frame})"
        )

    def _flags(self) -> str:
        """The name of the flags, and the condition that they announce nothing that cannot be."""
        for index, part in enumerate(self.message.parts):
            if not isinstance(part, ir.Frame):
                continue
            offset = 0
            for field in part.fields:
                if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
                    if self._known(index) == 0:
                        raise NotCovered
                    name = self.lets.let(
                        "flags", integer(self._octets(part, index), Sum(offset), field.type.octets)
                    )
                    self._check_flags(name)
                    return name
                offset += _octets(field.type)
        return ""

    def _check_flags(self, name: str) -> None:
        allowed: dict[int, set[int]] = {}
        for part in self.message.parts:
            presence = ir.Counted() if isinstance(part, ir.Rest) else part.presence
            if not isinstance(presence, ir.Counted) and presence.mask:
                values = allowed.setdefault(presence.mask, set())
                values |= {presence.value, 0} if isinstance(presence, ir.Announced) else {presence.value}
        known, announcing = 0, 0
        for mask, values in allowed.items():
            known |= mask
            if values != {0, mask & -mask}:
                self.conditions.append(f"({name} & {mask}) IN ({', '.join(map(str, sorted(values)))})")
        for bit in self.protocol.flags:
            announcing |= bit.value if bit.announces else 0
        if announcing & ~known:
            self.conditions.append(f"({name} & {announcing & ~known}) = 0")

    def _octets(self, part: ir.Frame, index: int) -> str:
        """The octets of a frame: by its number where a selector has it, else where it is."""
        for selector in self.protocol.selectors:
            if selector.frame in (index, index - len(self.message.parts)):
                return self._head(selector.frame)
        found = f"get(_frames, {self.at})"
        return found if len(part.fields) == 1 else self.lets.let("frame", found)

    def _there(self, presence: ir.Presence, name: str, index: int) -> str:
        """The name of 1 where a part is there and 0 where it is not; empty where it always is."""
        match presence:
            case ir.Announced(mask=mask, value=value):
                return self.lets.let(f"with_{name}", f"if(({self.flags} & {mask}) = {value}, 1, 0)")
            case ir.Counted():
                behind = [part for part in self.message.parts[index + 1 :] if not isinstance(part, ir.Rest)]
                needed = sum(isinstance(part.presence, ir.Always) for part in behind)
                return self.lets.let(f"with_{name}", f"if(size(_frames) > {self.at.plus(needed)}, 1, 0)")
        return ""

    def _frame(self, part: ir.Frame, index: int) -> None:
        there = self._there(part.presence, _name(part.name), index)
        known = self._known(index)
        run = _Run(self.protocol, self.lets, self._octets(part, index), known)
        run.read(part.fields)
        for condition in run.conditions:
            self.conditions.append(f"({there} = 0 OR {condition})" if there else condition)
        for name, value in run.columns:
            self.columns.append((name, f"if({there} = 1, {value}, NULL)" if there else value))
        self.at = self.at.plus(there or 1)

    def _known(self, index: int) -> int | None:
        """Of how many octets of a frame the tags tell the constants, None for all."""
        for selector in self.protocol.selectors:
            if selector.frame in (index, index - len(self.message.parts)):
                return selector.octets
        return 0

    def _stack(self, part: ir.Stack) -> None:
        if self.at != Sum():
            raise NotCovered
        found = "cast(array_position(_frames, X'') AS INT)"
        condition = "true"
        if isinstance(part.presence, ir.Announced):
            condition = f"({self.flags} & {part.presence.mask}) = {part.presence.value}"
            found = f"if({condition}, {found}, 0)"
        end = self.lets.let("stack_end", found)
        items = f"slice(_frames, 1, greatest({end} - 1, 0))"
        self.conditions.append(f"({end} > 0 OR NOT ({condition}))" if condition != "true" else f"{end} > 0")
        # An item is never empty: so there is an answer, which is NULL where an item is.
        sure = f"NOT arrays_overlap({items}, array(X''))"
        value = self._items(part.field, items, sure, f"{end} <= 1")
        self.columns.append(
            (part.field.name, value if condition == "true" else f"if({condition}, {value}, NULL)")
        )
        self.at = self.at.plus(end)

    def _rest(self, part: ir.Rest) -> None:
        items = f"slice(_frames, {self.at.plus(1)}, greatest(size(_frames) - ({self.at}), 0))"
        # NULL is sorted to the front.
        sure = f"get(sort_array({items}), 0) IS NOT NULL"
        self.columns.append(
            (part.field.name, self._items(part.field, items, sure, f"size(_frames) = {self.at}"))
        )

    def _items(self, field: ir.Field, items: str, sure: str, none: str) -> str:
        """Add the condition that frames are what they are to be, and return them."""
        match field.type:
            case ir.OctetsType(length=ir.Length(kind="rest"), minimum=0 | 1, maximum=None):
                self.conditions.append(f"({none} OR {sure})")
                return items
            case ir.TextType(length=ir.Length(kind="rest")) | ir.JsonType():
                texts = f"cast({items} AS ARRAY<STRING>)"
                # Between the texts stands what is no part of a character.
                together = f"array_join({texts}, ',')"
                checks = [sure, f"is_valid_utf8({together})"]
                if isinstance(field.type, ir.TextType) and field.type.terminated:
                    checks.append(f"NOT contains({together}, {NUL})")
                self.conditions.append(f"({none} OR ({' AND '.join(checks)}))")
                return texts
        raise NotCovered


class _Run:
    """The fields of one frame; of the first `known` octets (None: all) the constants have been looked at."""

    def __init__(self, protocol: ir.Protocol, lets: Lets, octets: str, known: int | None) -> None:
        self.protocol, self.lets, self.octets, self.known = protocol, lets, octets, known
        self.at = Sum()
        self.conditions: list[str] = []
        self.columns: list[tuple[str, str]] = []
        self.open = False

    def read(self, fields: tuple[ir.Field, ...]) -> None:
        """Read all fields up to the frame's end; NotCovered where one is of another kind."""
        if any(field.optional for field in fields):
            raise NotCovered
        if len(fields) == 1 and isinstance(fields[0].type, ir.KeywordType | ir.ConstantType):
            self._whole(fields[0].name, fields[0].type)
            return
        waiting = list(fields)
        while waiting:
            words = _together(waiting) if not self.at.terms else []
            if words:
                self._words(words)
                del waiting[: len(words)]
            else:
                self._field(waiting.pop(0))
        if not self.open:
            self.conditions.insert(0, f"octet_length({self.octets}) = {self.at}")
        elif self.at != Sum():
            self.conditions.insert(0, f"octet_length({self.octets}) >= {self.at}")
        else:
            self.conditions.insert(0, f"{self.octets} IS NOT NULL")

    def _whole(self, name: str, type: ir.KeywordType | ir.ConstantType) -> None:
        """A frame that is one of several words."""
        if isinstance(type, ir.KeywordType):
            self.columns.append((name, f"cast({self.octets} AS STRING)"))
        if self.known is not None:
            options = (
                [type.octets] if isinstance(type, ir.ConstantType) else [o.encode() for o in type.options]
            )
            self.conditions.append(f"{self.octets} IN ({', '.join(map(literal, options))})")

    def _words(self, fields: list[ir.Field]) -> None:
        """Integers that are read together."""
        sizes = [_octets(field.type) for field in fields]
        whole = sum(sizes)
        name = self.lets.let(f"word_{self.at}", word(self.octets, self.at, whole))
        behind = whole
        for field, size in zip(fields, sizes, strict=True):
            behind -= size
            self.columns.append((field.name, part_of_word(name, behind, size, whole)))
        self.at = self.at.plus(whole)

    def _field(self, field: ir.Field) -> None:
        match field.type:
            case ir.ConstantType(octets=octets):
                if self.at.terms or self.known is None or self.at.fixed + len(octets) > self.known:
                    self.conditions.append(f"{cut(self.octets, self.at, len(octets))} = {literal(octets)}")
                self.at = self.at.plus(len(octets))
            case ir.PaddingType(octets=size):
                self.at = self.at.plus(size)
            case ir.IntegerType(octets=size):
                self._integer(field, size)
            case ir.TextType(length=length, padding=None) if length.kind != "until":
                self._text(field, self._span(length), field.type.terminated)
            case ir.JsonType():
                self._text(field, self._span(ir.Length("rest")), False)
            case ir.OctetsType(length=length, minimum=least, maximum=most) if length.kind != "until":
                value = self._span(length)
                if least:
                    self.conditions.append(f"octet_length({value}) >= {least}")
                if most is not None:
                    self.conditions.append(f"octet_length({value}) <= {most}")
                self.columns.append((field.name, value))
            case _:
                raise NotCovered

    def _integer(self, field: ir.Field, size: int) -> None:
        value = integer(self.octets, self.at, size)
        assert isinstance(field.type, ir.IntegerType)
        named = (enum.members for enum in self.protocol.enums if enum.name == field.type.enum)
        values = tuple(number for members in named for _, number in members) or field.type.values
        if values:
            self.conditions.append(f"{value} IN ({', '.join(map(str, values))})")
        # The flags have a name already, by which everything else is told.
        self.columns.append((field.name, self.lets.let("flags", value) if field.type.bitmask else value))
        self.at = self.at.plus(size)

    def _span(self, length: ir.Length) -> str:
        """The octets of a value, behind which the next one begins."""
        start = self.at
        if length.kind == "rest":
            self.open = True
            return cut(self.octets, start, None)
        if length.kind == "fixed":
            self.at = start.plus(length.octets)
            return cut(self.octets, start, length.octets)
        if length.octets > PREFIX_OCTETS:
            raise NotCovered
        size = self.lets.let(
            "size", f"cast(conv(hex({cut(self.octets, start, length.octets)}), 16, 10) AS BIGINT)"
        )
        start = start.plus(length.octets)
        self.at = start.plus(size)
        return cut(self.octets, start, size)

    def _text(self, field: ir.Field, octets: str, terminated: bool) -> None:
        value = octets
        if terminated:
            shorter = f"substring({octets}, 1, octet_length({octets}) - 1)"
            self.conditions.append(f"NOT contains({shorter}, X'00')")
            value = f"if(endswith({octets}, X'00'), {shorter}, {octets})"
        self.conditions.append(valid_text(octets))
        self.columns.append((field.name, f"cast({value} AS STRING)"))


def _together(fields: list[ir.Field]) -> list[ir.Field]:
    """The first fields where they are integers that can be read together, two or more of them."""
    found = list(_first_integers(fields))
    return found if len(found) > 1 else []


def _first_integers(fields: list[ir.Field]) -> Iterator[ir.Field]:
    octets = 0
    for field in fields:
        type = field.type
        if not isinstance(type, ir.IntegerType) or type.bitmask or type.enum or type.values:
            return
        octets += type.octets
        if octets > WORD:
            return
        yield field


def _octets(type: ir.Type) -> int:
    """The size of a value before the flags, and of an integer: these are always of one size."""
    if isinstance(type, ir.ConstantType):
        return len(type.octets)
    return type.octets if isinstance(type, ir.IntegerType | ir.PaddingType) else 0


def _name(part: str) -> str:
    return part.lower().replace("-", "_")
