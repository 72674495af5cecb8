"""The plan of a protocol as Lua tables for the dissector, and how it shows the value in each slot.

The dissector performs the operations of the plan. Their slots have the name and the rule of the
field, for errors, and the number of the field in Wireshark. Like the plan, they come from the IR.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from specwire.generator import ir
from specwire.generator.emit.wireshark.fields import MASKED, WIDEST, Fields
from specwire.generator.emit.wireshark.lua import Lua
from specwire.generator.ir.dialogs import Dialog
from specwire.generator.passes.shapes import takes_sender, weight
from specwire.generator.plan import plan_of
from specwire.generator.plan.layouts import announcing_bits, selected
from specwire.generator.support.plan import (
    ITEM,
    NAME,
    VALUE,
    MessagePlan,
    Number,
    Part,
    RecordPlan,
    fixed_octets,
    hidden,
    operations,
)

Table = dict[str, Lua]

_STRICT = frozenset(("letter", "pattern"))
"""Keys of the plan that only strict decoding needs."""

_NUMBERS = frozenset(("members", "values"))
_NUMBER = frozenset(("constant", "mask"))
"""Keys of the plan with numbers that may be too wide for Lua."""


def protocol_table(protocol: ir.Protocol) -> Table:
    """Return the table with everything that a dissector needs for a protocol."""
    fields = Fields(protocol)
    plan = plan_of(protocol)
    patterned = any(selector.pattern for selector in protocol.selectors)
    messages = [
        _Messages(protocol, fields, message, ops).table(message.tags if patterned else ())
        for message, ops in zip(protocol.messages, plan.messages, strict=True)
    ]
    return {
        "name": protocol.name,
        "title": protocol.title,
        "edition": protocol.edition,
        "roles": [
            {"letter": role.letter, "name": role.name, "socket": role.socket} for role in protocol.roles
        ],
        "patterned": patterned,
        "from_end": any(selector.frame < 0 for selector in protocol.selectors),
        "announcing": announcing_bits(protocol),
        "folded": protocol.folded or None,
        "max_depth": protocol.max_depth or None,
        "selectors": [
            {"frame": selector.frame, "octets": selector.octets} for selector in protocol.selectors
        ],
        "tags": [] if patterned else list(_tag_rows(protocol)),
        "shapes": list(_shapes(protocol)),
        "dialogs": [_dialog(dialog, protocol) for dialog in protocol.dialogs if dialog.key],
        "fields": fields.rows(),
        "messages": messages,
        "records": {record.class_name: spelled(record) for record in plan.records},
    }


def _shapes(protocol: ir.Protocol) -> Iterator[Table]:
    """Yield the shapes; `senders` only if they matter and the sockets of all roles are known."""
    declared = {role.letter for role in protocol.roles} if takes_sender(protocol) else set()
    rows = [
        (number, shape) for number, message in enumerate(protocol.messages, 1) for shape in message.shapes
    ]
    for number, shape in sorted(rows, key=lambda row: -weight(row[1])):
        yield {
            "message": number,
            "frames": [{"octets": head.octets, "whole": head.whole} for head in shape.frames],
            "least": shape.least,
            "most": shape.most,
            "senders": shape.senders if declared.issuperset(shape.senders) else (),
        }


def _dialog(dialog: Dialog, protocol: ir.Protocol) -> Table:
    """Return which messages need a reply, which are replies, and the fields that pair them."""
    names = {message.class_name: message.name for message in protocol.messages}

    def messages(labels: Iterable[str]) -> list[Lua]:
        return [*dict.fromkeys(names[label.partition(":")[2]] for label in labels)]

    concurrent = dialog.concurrent
    starts = (start.label for phase in concurrent.phases for start in phase.starts if start.place)
    return {
        "key": dialog.key,
        "keyless": {name: str(value) for name, value in dialog.keyless},
        "requests": messages(starts),
        "replies": messages(reply.label for reply in concurrent.replies),
    }


def _tag_rows(protocol: ir.Protocol) -> Iterator[Table]:
    """Yield the possible values of each constant that a selector covers; the last is the message number."""
    rows = list(zip(*(list(_tags(protocol, message)) for message in protocol.messages), strict=False))
    for number, row in enumerate(rows, 1):
        frame, at, whole, field, message, _ = row[0]
        options = dict.fromkeys(option for *_, spellings in row for option in spellings)
        yield {
            "frame": frame,
            "at": at,
            "whole": whole,
            "name": field.name,
            "rule": field.rule or message.name,
            "options": list(options),
            "own": number == len(rows),
        }


def _tags(
    protocol: ir.Protocol, message: ir.Message
) -> Iterator[tuple[int, int, bool, ir.Field, ir.Message, list[str]]]:
    for selector in protocol.selectors:
        part, at = message.parts[selector.frame], 0
        for field in part.fields if isinstance(part, ir.Frame) else ():
            options = _spellings(field.type)
            if not options or (selector.octets is not None and at >= selector.octets):
                break
            yield selector.frame, at, selector.octets is None, field, message, options
            at += len(options[0]) // 2


def _spellings(type: ir.Type) -> list[str]:
    match type:
        case ir.ConstantType(hex=octets):
            return [octets]
        case ir.KeywordType(options=options):
            return [option.encode().hex() for option in options]
    return []


class _Messages:
    """Builder of the table of one message; adds the fields that it shows to `fields`."""

    def __init__(self, protocol: ir.Protocol, fields: Fields, message: ir.Message, plan: MessagePlan) -> None:
        self._protocol = protocol
        self._fields = fields
        self._message = message
        self._plan = plan

    def table(self, patterns: tuple[str, ...]) -> Table:
        """Return how the message is identified, what its parts do, and how its slots are shown."""
        message = self._message
        return {
            "name": message.name,
            "senders": message.senders,
            "tags": [[piece.hex() for piece in tag] for tag in selected(message, self._protocol)],
            "patterns": patterns,
            "flags": _flags(self._plan.parts),
            "slots": self._frames(),
            "parts": list(self._parts()),
        }

    def _parts(self) -> Iterator[Table]:
        """Yield each part: its operations, the slot of its only field, the frames needed `after` it."""
        after = _required_after(self._message.parts)
        for part, op, behind in zip(self._message.parts, self._plan.parts, after, strict=True):
            inside = _inside(part)
            presence = {"kind": op.presence.kind, "mask": op.presence.mask, "value": op.presence.value}
            slot = inside[0].attribute if len(inside) == 1 else None
            yield spelled(op) | {"presence": presence, "slot": slot, "after": behind}

    # Slots

    def _frames(self) -> Table:
        """Return the slots of all frames; frames with one value each have it in the slot of an item."""
        found: Table = {}
        for part in self._message.parts:
            if isinstance(part, ir.Frame):
                found |= self._slots(part.fields)
                continue
            field = part.field
            items = self._values(ITEM, field, field.type, field.name)
            rule = field.rule or self._message.name
            found[field.attribute] = {"name": field.name, "rule": rule, "slots": items}
        return found

    def _slots(self, fields: Iterable[ir.Field], path: str = "", owner: str = "") -> Table:
        """Return the slots of a run: name and rule of the field, and how its value is shown."""
        found: Table = {}
        for field in fields:
            inner = f"{path}.{field.name}" if path else field.name
            slot = field.attribute
            values = self._values(slot, field, field.type, inner)
            rule = field.rule or owner or self._message.name
            found |= values | {slot: {"name": field.name, "rule": rule, **values[slot]}}
        return found

    def _values(self, slot: str, field: ir.Field, type: ir.Type, path: str) -> dict[str, Table]:
        """Return how the value in a slot is shown, and the count in its hidden slot."""
        found = {slot: self._shown(field, type, path)}
        if isinstance(type, ir.ListType | ir.PairsType) and (count := ir.count_of(type)):
            shown = self._fields.number(count, f"{path}.count", self._message, "Entries that follow.")
            found[hidden(slot)] = {"show": shown, "given": _is_given(count)}
        return found

    def _plain(self, kind: str, path: str, doc: str = "", octets: int | None = None) -> int:
        return self._fields.plain(kind, path, self._message, doc, octets)

    def _shown(self, field: ir.Field, type: ir.Type, path: str) -> Table:
        match type:
            case ir.ConstantType():
                return self._constant(field, type, path)
            case ir.KeywordType():
                return {"as": "text", "show": self._plain("text", path, field.doc)}
            case ir.PaddingType():
                return {"show": self._plain("octets", path, field.doc)}
            case ir.SizeType(forms=forms):
                return {"shows": self._sizes(forms, path)}
            case ir.BitType(octets=octets):
                shown = self._fields.some_bits(type, path, self._message, field.doc)
                return {"show": shown, "given": octets > MASKED or None}
            case ir.CounterType(number=number) | ir.ChecksumType(number=number):
                return self._shown(field, number, path)
            case ir.PresentType():
                return {"show": self._plain("boolean", path, field.doc, 1)}
            case ir.EnclosingType(name=name):
                return {"enclosing": name}
            case ir.IntegerType() | ir.FloatType() | ir.BooleanType() | ir.VarintType() | ir.DigitsType():
                return self._number(field, type, path)
            case ir.UuidType():
                return {"show": self._plain("uuid", path, field.doc)}
            case ir.TextType() | ir.OctetsType():
                kind = "text" if isinstance(type, ir.TextType) else "octets"
                return {"show": self._plain(kind, path, field.doc), "json": field.content == "json" or None}
            case ir.JsonType():
                return {"show": self._plain("text", path, field.doc)}
            case ir.ListType(element=element):
                items = self._values(ITEM, field, element, f"{path}.item")
                return {"show": self._plain("group", path, field.doc), "slots": items}
            case ir.PairsType():
                return self._pairs(field, type, path)
            case ir.RecordType():
                return self._record(field, type, path)
            case ir.UnionType(name=name, options=options):
                records = {one.class_name: self._record(field, one, path) for one in options}
                return {"options": records, "encloses": self._repeatable(name)}

    def _constant(self, field: ir.Field, type: ir.ConstantType, path: str) -> Table:
        number = type.number is not None and 0 < len(type.octets) <= WIDEST
        kind = "text" if type.text is not None else "number" if number else "octets"
        shown = self._fields.constant(type, path, self._message, field.doc)
        return {"as": kind, "text": type.text, "show": shown}

    def _number(self, field: ir.Field, type: ir.NumberType, path: str) -> Table:
        integer = type if isinstance(type, ir.IntegerType) else None
        return {
            "unit": field.unit,
            "sentinels": self._sentinels(field),
            "show": self._fields.number(type, path, self._message, field.doc),
            "bits": (self._fields.bits(integer, path, self._message) or None) if integer else None,
            "given": _is_given(type),
        }

    def _sentinels(self, field: ir.Field) -> Table | None:
        """Return names by value; as a table with explicit keys, since a plain list would count from 1."""
        values = {constant.name: constant.value for constant in self._protocol.constants}
        return {f"n{values[name]}": name.lower() for name in field.sentinels} or None

    def _sizes(self, forms: tuple[ir.SizeForm, ...], path: str) -> list[Lua]:
        """Return a field for each form; that of the first width has the plain name."""
        widths = dict.fromkeys(form.octets for form in forms)
        names = {width: path if number == 0 else f"{path}_{width}" for number, width in enumerate(widths)}
        return [
            self._plain("integer", names[form.octets], "Octets that follow.", form.octets) for form in forms
        ]

    def _pairs(self, field: ir.Field, type: ir.PairsType, path: str) -> Table:
        if type.value is None:
            item: Table = {"show": self._plain("text", f"{path}.name", field.doc)}
            items: dict[str, Table] = {ITEM: item | {"value_show": self._plain("text", f"{path}.value")}}
        else:
            items = self._values(NAME, field, type.name, f"{path}.name")
            items |= self._values(VALUE, field, type.value, f"{path}.value")
        return {"show": self._plain("group", path, field.doc), "slots": items}

    def _record(self, field: ir.Field, type: ir.RecordType, path: str) -> Table:
        slots = self._slots(type.fields, path, type.rule or "")
        name = self._repeatable(type.class_name)
        return {
            "show": self._plain("group", path, field.doc),
            "label": type.name,
            "slots": slots,
            "encloses": name,
        }

    def _repeatable(self, name: str) -> str | None:
        """Return the name of a record or union if values of the protocol can contain themselves."""
        return name if self._protocol.max_depth else None


def _is_given(type: ir.NumberType) -> bool | None:
    """Return whether Wireshark cannot read the number itself."""
    return isinstance(type, ir.VarintType | ir.DigitsType) or None


def spelled(op: Part | RecordPlan) -> Table:
    """Return a part or record of the plan as a table, without defaults and what only ``strict`` needs.

    Octets are hexadecimal text, and values of numbers decimal text, because Lua's numbers may be too
    narrow. The dissector checks each operation, so those in `Fixed` are not grouped.
    """
    builtins: dict[str, object] = msgspec.to_builtins(op, builtin_types=(bytes,))
    return {key: _spelled(key, value) for key, value in builtins.items() if key not in _STRICT}


def _spelled(key: str, value: object) -> Lua:
    match value:
        case bytes():
            return value.hex()
        case dict():
            return {str(key): _spelled(key, item) for key, item in value.items() if key not in _STRICT}
        case list() | tuple() if key in _NUMBERS:
            return [str(member) for member in value]
        case int() if key in _NUMBER:
            return str(value)
        case list() | tuple():
            return [_spelled("", item) for part in value for item in _ungrouped(part)]
    assert value is None or isinstance(value, str | int)
    return value


def _ungrouped(item: object) -> Iterable[object]:
    if isinstance(item, dict) and item.get("op") == "fixed":
        yield from item["body"]
    else:
        yield item


def _flags(parts: tuple[Part, ...]) -> Table | None:
    """Return the position of the octet whose bits announce parts; `at` is None if it varies."""
    for position, part in enumerate(parts):
        at: int | None = 0
        for op in operations(part.body):
            if isinstance(op, Number) and op.flags:
                return {"part": position, "last": position == len(parts) - 1, "at": at, "slot": op.slot}
            size = fixed_octets(op)
            at = None if at is None or size is None else at + size
    return None


def _inside(part: ir.Part) -> tuple[ir.Field, ...]:
    return part.fields if isinstance(part, ir.Frame) else (part.field,)


def _required_after(parts: tuple[ir.Part, ...]) -> Iterator[int]:
    """Yield, for each part, the minimum number of frames of the parts after it."""
    for number in range(len(parts)):
        behind = parts[number + 1 :]
        yield sum(not isinstance(part, ir.Rest) and isinstance(part.presence, ir.Always) for part in behind)
