"""Layout of messages as Lua tables for the dissector: the twin of ``layout.py``.

Octets are hexadecimal text. As in decoding, data that only ``strict`` needs is omitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specwire.generator import ir
from specwire.generator.emit.python import announcing_bits, fixed_size
from specwire.generator.emit.wireshark.fields import WIDEST, Fields
from specwire.generator.emit.wireshark.lua import Lua
from specwire.generator.ir.dialogs import Dialog
from specwire.generator.passes.shapes import takes_sender, weight
from specwire.generator.plan.layouts import selected

Table = dict[str, Lua]


def protocol_table(protocol: ir.Protocol) -> Table:
    """Return the table with everything that a dissector needs for a protocol."""
    fields = Fields(protocol)
    patterned = any(selector.pattern for selector in protocol.selectors)
    messages = [
        _Messages(protocol, fields, message).table(message.tags if patterned else ())
        for message in protocol.messages
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
        "selectors": [
            {"frame": selector.frame, "octets": selector.octets} for selector in protocol.selectors
        ],
        "tags": [] if patterned else list(_tag_rows(protocol)),
        "shapes": list(_shapes(protocol)),
        "dialogs": [_dialog(dialog, protocol) for dialog in protocol.dialogs if dialog.key],
        "fields": fields.rows(),
        "messages": messages,
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

    def __init__(self, protocol: ir.Protocol, fields: Fields, message: ir.Message) -> None:
        self._protocol = protocol
        self._fields = fields
        self._message = message

    def table(self, patterns: tuple[str, ...]) -> Table:
        """Return the message: how it is identified, and its parts."""
        message = self._message
        needed = list(_required_after(message.parts))
        return {
            "name": message.name,
            "senders": message.senders,
            "tags": [[piece.hex() for piece in tag] for tag in selected(message, self._protocol)],
            "patterns": patterns,
            "flags": self._flags(),
            "parts": [self._part(part, after) for part, after in zip(message.parts, needed, strict=True)],
        }

    def _flags(self) -> Table | None:
        """Return the position of the octet whose bits announce parts."""
        parts = self._message.parts
        for position, part in enumerate(parts):
            at = 0
            for field in part.fields if isinstance(part, ir.Frame) else ():
                if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
                    rule = field.rule or self._message.name
                    return {
                        "part": position,
                        "last": position == len(parts) - 1,
                        "at": at,
                        "name": field.name,
                        "rule": rule,
                    }
                at += fixed_size(field.type) or 0
        return None

    def _part(self, part: ir.Part, after: int) -> Table:
        if isinstance(part, ir.Rest):
            return {"kind": "rest", "name": part.name, "fields": [self._field(part.field)]}
        kind = "frame" if isinstance(part, ir.Frame) else "stack"
        fields = part.fields if isinstance(part, ir.Frame) else (part.field,)
        table: Table = {"kind": kind, "name": part.name, **_presence(part.presence), "after": after}
        return table | {"fields": [self._field(field) for field in fields]}

    def _field(self, field: ir.Field, path: str = "", owner: str = "") -> Table:
        path = f"{path}.{field.name}" if path else field.name
        return {
            "name": field.name,
            "rule": field.rule or owner or self._message.name,
            "optional": field.optional or None,
            "type": self._type(field, field.type, path),
        }

    def _type(self, field: ir.Field, type: ir.Type, path: str) -> Table:
        message, fields = self._message, self._fields
        match type:
            case ir.ConstantType():
                words = (
                    repr(type.text) if type.text is not None else f"0x{type.hex}" if type.hex else "nothing"
                )
                number = type.number is not None and type.text is None and 0 < len(type.octets) <= WIDEST
                shown = fields.constant(type, path, message, field.doc)
                return {
                    "kind": "constant",
                    "octets": type.hex,
                    "words": words,
                    "text": type.text,
                    "number": number or None,
                    "field": shown,
                }
            case ir.KeywordType(options=options):
                spelled = [option.encode().hex() for option in options]
                return {
                    "kind": "keyword",
                    "options": spelled,
                    "field": fields.plain("text", path, message, field.doc),
                }
            case ir.PaddingType(octets=octets):
                return {
                    "kind": "padding",
                    "octets": octets,
                    "field": fields.plain("octets", path, message, field.doc),
                }
            case ir.SizeType(forms=forms):
                return {
                    "kind": "size",
                    "forms": [{"tag": form.tag, "octets": form.octets} for form in _tagged_first(forms)],
                    "fields": self._sizes(forms, path),
                }
            case ir.IntegerType():
                return self._integer(field, type, path)
            case ir.TextType():
                return self._text(field, type, path)
            case ir.OctetsType():
                shown = fields.plain("octets", path, message, field.doc)
                limits: Table = {
                    "minimum": type.minimum,
                    "maximum": type.maximum,
                    "json": field.content == "json" or None,
                }
                return {"kind": "octets", "span": _span(type.length), **limits, "field": shown}
            case ir.JsonType():
                return {"kind": "json", "field": fields.plain("text", path, message, field.doc)}
            case ir.ListType():
                return self._list(field, type, path)
            case ir.PairsType():
                return self._pairs(field, type, path)
            case ir.RecordType():
                return self._record(field, type, path)
            case ir.UnionType(options=options, tags=tags):
                records = [self._record(field, option, path) for option in options]
                return {
                    "kind": "union",
                    "options": [
                        {"tag": tag, "record": record} for tag, record in zip(tags, records, strict=True)
                    ],
                }

    def _sizes(self, forms: Iterable[ir.SizeForm], path: str) -> list[Lua]:
        """Return a field for each width; the first has the plain name."""
        widths = dict.fromkeys(form.octets for form in forms)
        names = {width: path if number == 0 else f"{path}_{width}" for number, width in enumerate(widths)}
        doc = "Octets that follow."
        return [
            self._fields.plain("integer", names[form.octets], self._message, doc, form.octets)
            for form in _tagged_first(forms)
        ]

    def _integer(self, field: ir.Field, type: ir.IntegerType, path: str) -> Table:
        enum = next((enum for enum in self._protocol.enums if enum.name == type.enum), None)
        members = [value for _, value in enum.members] if enum else list(type.values)
        return {
            "kind": "integer",
            "octets": type.octets,
            "members": [str(value) for value in members] or None,
            "unit": field.unit,
            "sentinels": self._sentinels(field),
            "field": self._fields.integer(field, type, path, self._message),
            "bits": self._fields.bits(type, path, self._message) or None,
        }

    def _sentinels(self, field: ir.Field) -> Table | None:
        """Return names by value; as a table with explicit keys, since a plain list would count from 1."""
        values = {constant.name: constant.value for constant in self._protocol.constants}
        return {f"n{values[name]}": name.lower() for name in field.sentinels} or None

    def _text(self, field: ir.Field, type: ir.TextType, path: str) -> Table:
        return {
            "kind": "text",
            "span": _span(type.length),
            "terminated": type.terminated or None,
            "padding": type.padding,
            "json": field.content == "json" or None,
            "field": self._fields.plain("text", path, self._message, field.doc),
        }

    def _list(self, field: ir.Field, type: ir.ListType, path: str) -> Table:
        return {
            "kind": "list",
            **self._counted(field, type, path),
            "element": self._type(field, type.element, f"{path}.item"),
        }

    def _counted(self, field: ir.Field, type: ir.ListType | ir.PairsType, path: str) -> Table:
        message, octets = self._message, type.count_octets
        count = (
            self._fields.plain("integer", f"{path}.count", message, "Entries that follow.", octets)
            if octets
            else None
        )
        shown = self._fields.plain("group", path, message, field.doc)
        return {"count_octets": octets, "minimum": type.minimum, "field": shown, "count": count}

    def _pairs(self, field: ir.Field, type: ir.PairsType, path: str) -> Table:
        table = {"kind": "pairs", **self._counted(field, type, path), "rule": type.rule, "split": type.split}
        table["name"] = self._type(field, type.name, f"{path}.name")
        if type.value is None:
            return table | {"value_field": self._fields.plain("text", f"{path}.value", self._message)}
        return table | {"value": self._type(field, type.value, f"{path}.value")}

    def _record(self, field: ir.Field, type: ir.RecordType, path: str) -> Table:
        members = [self._field(inner, path, type.rule or "") for inner in type.fields]
        shown = self._fields.plain("group", path, self._message, field.doc)
        return {"kind": "record", "name": type.name, "rule": type.rule, "members": members, "field": shown}


def _tagged_first(forms: Iterable[ir.SizeForm]) -> list[ir.SizeForm]:
    """Return the forms, with one without a tag last, as it applies if no tag matches."""
    return sorted(forms, key=lambda form: not form.tag)


def _span(length: ir.Length) -> Table:
    return {"kind": length.kind, "octets": length.octets, "ending": length.until or None}


def _presence(presence: ir.Presence) -> Table:
    match presence:
        case ir.Always(mask=mask, value=value):
            return {"presence": "always", "mask": mask, "value": value}
        case ir.Announced(mask=mask, value=value):
            return {"presence": "announced", "mask": mask, "value": value}
        case ir.Counted():
            return {"presence": "counted", "mask": 0, "value": 0}


def _required_after(parts: tuple[ir.Part, ...]) -> Iterator[int]:
    """Yield, for each part, the minimum number of frames of the parts after it."""
    for number in range(len(parts)):
        behind = parts[number + 1 :]
        yield sum(not isinstance(part, ir.Rest) and isinstance(part.presence, ir.Always) for part in behind)
