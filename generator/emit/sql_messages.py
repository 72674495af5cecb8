"""One message in Spark SQL: the condition that frames are this message, and the struct of its fields.

A message is covered if SQL can locate its values without a loop: at a fixed position in a frame,
after texts and octets with length prefixes, as whole frames, as a stack of frames, or as the
remaining frames. The condition is exact: frames that satisfy it decode with the codec, and all
others are left to the codec. (A text that fills its frame and ends with NUL is left to the codec as
well, which accepts it.)
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.layout import selected
from specwire.generator.emit.sql_fields import Run, octets_of
from specwire.generator.emit.sql_numbers import integer
from specwire.generator.emit.sql_text import BREAK, NUL, Lets, NotCovered, Sum, frame_at, literal, quoted
from specwire.generator.emit.tables import PRESENT


class MessageText:
    """Conditions and columns of one message, collected from its first part to its last."""

    def __init__(self, message: ir.Message, protocol: ir.Protocol, lets: Lets) -> None:
        """Read the message; raise NotCovered if that is impossible."""
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
        """Return name and value of each field."""
        return [f"{quoted(name)}, {value}" for name, value in self.columns]

    def _tags(self) -> str:
        """Add the conditions that distinguish the message from others."""
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
        name = "last_frame" if frame == -1 else "frame" if frame < 0 else f"frame_{frame}"
        return self.lets.let(name, frame_at(frame))

    def _flags(self) -> str:
        """Return the name of the flags, after adding the condition that they announce no invalid parts."""
        for index, part in enumerate(self.message.parts):
            if not isinstance(part, ir.Frame):
                continue
            offset = 0
            for field in part.fields:
                if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
                    if self._known(index) == 0:
                        raise NotCovered
                    name = self.lets.let(
                        "flags",
                        integer(self.lets, self._octets(part, index), Sum(offset), field.type.octets),
                    )
                    self._check_flags(name)
                    return name
                offset += octets_of(field.type)
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

    def _octets(self, part: ir.Frame, index: int, there: str = "") -> str:
        """Return a frame: by number if a selector has it, else by position; NULL if it is missing."""
        for selector in self.protocol.selectors:
            if selector.frame in (index, index - len(self.message.parts)):
                return self._head(selector.frame)
        name = _name(part.name) if self.at.terms or there else f"frame_{self.at}"
        found = frame_at(self.at)
        return self.lets.let(name, f"if({there} = 1, {found}, NULL)" if there else found)

    def _there(self, presence: ir.Presence, name: str, index: int) -> str:
        """Return the name of the expression that is 1 if a part is present, else 0; empty if it always is."""
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
        run = Run(self.protocol, self.lets, self._octets(part, index, there), known)
        run.read(part.fields)
        for condition in run.conditions:
            self.conditions.append(f"({there} = 0 OR {condition})" if there else condition)
        for name, value in run.columns:
            self.columns.append((name, f"if({there} = 1, {value}, NULL)" if there else value))
        self.at = self.at.plus(there or 1)

    def _known(self, index: int) -> int | None:
        """Return how many octets of a frame the tags determine, None for all."""
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
        if condition != "true":
            items = f"if({condition}, {items}, NULL)"
        items = self.lets.let(part.field.name, items)
        self.conditions.append(f"({end} > 0 OR NOT ({condition}))" if condition != "true" else f"{end} > 0")
        # An item is never empty, so the result is NULL only if an item is NULL.
        sure = f"NOT arrays_overlap({items}, array(X''))"
        self.columns.append(
            (part.field.name, self._items(part.field, items, sure, f"{end} <= 1", stack=True))
        )
        self.at = self.at.plus(end)

    def _rest(self, part: ir.Rest) -> None:
        items = f"slice(_frames, {self.at.plus(1)}, greatest(size(_frames) - ({self.at}), 0))"
        items = self.lets.let(part.field.name, items)
        # NULL sorts first.
        sure = f"get(sort_array({items}), 0) IS NOT NULL"
        self.columns.append(
            (part.field.name, self._items(part.field, items, sure, f"size(_frames) = {self.at}", stack=False))
        )

    def _items(self, field: ir.Field, items: str, sure: str, none: str, *, stack: bool) -> str:
        """Add the condition that the frames are valid, and return them."""
        match field.type:
            case ir.OctetsType(length=ir.Length(kind="rest"), minimum=0 | 1, maximum=None):
                self.conditions.append(self._fits(field, f"({none} OR {sure})"))
                return items
            case ir.TextType(length=ir.Length(kind="rest")) | ir.JsonType():
                texts = self.lets.let(f"{field.name}_text", f"cast({items} AS ARRAY<STRING>)")
                # The separator between the texts is no part of any character.
                together = f"array_join({texts}, ',')"
                checks = [sure, f"is_valid_utf8({together})"]
                if isinstance(field.type, ir.TextType) and field.type.terminated:
                    if stack:
                        return self._terminated(field, texts, none, checks)
                    checks.append(f"NOT contains({together}, {NUL})")
                self.conditions.append(self._fits(field, f"({none} OR ({' AND '.join(checks)}))"))
                return texts
        raise NotCovered

    def _terminated(self, field: ir.Field, texts: str, none: str, checks: list[str]) -> str:
        """Add the condition that texts are not empty and contain NUL only at the end; return them without."""
        joined = f"replace(concat(array_join({texts}, {BREAK}), {BREAK}), cast(X'00ff' AS STRING), {BREAK})"
        some = f"contains(array_join({texts}, ','), {NUL})"
        ended = self.lets.let(f"{field.name}_ended", f"if({some}, {joined}, NULL)")
        checks.append(
            f"({ended} IS NULL OR (NOT arrays_overlap({texts}, array({NUL})) AND NOT contains({ended}, {NUL})))"
        )
        self.conditions.append(self._fits(field, f"({none} OR ({' AND '.join(checks)}))"))
        bare = f"split(rtrim({NUL}, replace({ended}, {BREAK}, {NUL})), {NUL})"
        return self.lets.let(f"{field.name}_bare", f"if({ended} IS NULL, {texts}, {bare})")

    def _fits(self, field: ir.Field, condition: str) -> str:
        """Return a name for the condition that a field has a value; messages share it for common fields."""
        return self.lets.let(f"{field.name}_fits", condition)


def _name(part: str) -> str:
    return part.lower().replace("-", "_")
