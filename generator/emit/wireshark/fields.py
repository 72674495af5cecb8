"""Filter fields for Wireshark: one for each name, if all messages give it the same meaning.

A field has the protocol's name and the grammar's name: ``filemq.credit``. Fields inside
dictionaries and records have longer paths: ``filemq.headers.name``. If two messages have fields of
the same name and different types, the later one includes the message name: ``zmtp.ready.id``.
"""

from __future__ import annotations

import re

from specwire.generator import ir
from specwire.generator.emit.wireshark.lua import Lua

RESERVED = frozenset((
    "frame", "malformed", "message_name", "opaque", "reply_in", "reply_time", "request_in", "sender", "strange", "surplus",
    "unread",
))  # fmt: skip
"""Names below the protocol's name that every dissector uses."""

WIDEST = 8
"""Largest width of an integer that Wireshark shows as a number."""

MASKED = 4
"""Largest width of an integer of which Wireshark reads some bits itself, in every version."""


class Fields:
    """Fields of one protocol, numbered from 1 in order of first use."""

    def __init__(self, protocol: ir.Protocol) -> None:
        self._enums = {enum.name: enum for enum in protocol.enums}
        self._flags = protocol.flags
        self._rows: dict[str, dict[str, Lua]] = {}
        self._numbers: dict[str, int] = {}
        self._names: dict[str, dict[int, str]] = {}

    def rows(self) -> list[Lua]:
        """Return the fields as the arguments with which the dissector creates them."""
        return [row | {"names": self._named(name)} for name, row in self._rows.items()]

    def number(self, type: ir.NumberType, path: str, message: ir.Message, doc: str) -> int:
        """Return the number of the field for a number; values of an enumeration have names."""
        match type:
            case ir.FloatType(octets=octets):
                return self._add(path, message, kind="float", octets=octets, doc=doc)[1]
            case ir.BooleanType(octets=octets):
                return self._add(path, message, kind="boolean", octets=octets, doc=doc)[1]
            case ir.VarintType(signed=signed) | ir.DigitsType(signed=signed):
                signed = bool(signed) or None
                return self._add(path, message, kind="integer", octets=WIDEST, signed=signed, doc=doc)[1]
            case ir.IntegerType(octets=octets, enum=enum, bitmask=bitmask, signed=signed):
                name, number = self._add(
                    path, message, kind="integer", octets=octets, signed=signed or None, doc=doc, hex=bitmask
                )
        self._name_members(name, enum)
        return number

    def some_bits(self, type: ir.BitType, path: str, message: ir.Message, doc: str) -> int:
        """Return the number of the field for some bits of an integer."""
        octets, mask = type.octets, (2**type.width - 1) << type.shift
        if type.octets > MASKED:
            kind, octets = ("boolean", 1) if type.boolean else ("integer", WIDEST)
            name, number = self._add(path, message, kind=kind, octets=octets, doc=doc)
        else:
            kind = "bit" if type.boolean else "integer"
            name, number = self._add(path, message, kind=kind, octets=octets, mask=mask, doc=doc)
        self._name_members(name, type.enum)
        return number

    def _name_members(self, name: str, enum: str | None) -> None:
        """Give the values of a field the names of an enumeration."""
        names = self._names.setdefault(name, {})
        if enum in self._enums:
            names |= {value: member.lower() for member, value in self._enums[enum].members}

    def bits(self, type: ir.IntegerType, path: str, message: ir.Message) -> list[int]:
        """Return the numbers of the fields for the bits of the flags."""
        bits = self._flags if type.bitmask else ()
        return [
            self._add(
                f"{path}.{bit.name.lower()}",
                message,
                kind="bit",
                octets=type.octets,
                mask=bit.value,
                doc=bit.doc,
            )[1]
            for bit in bits
        ]

    def constant(self, type: ir.ConstantType, path: str, message: ir.Message, doc: str) -> int:
        """Return the number of the field for constant octets.

        If the constant tells messages apart, its values have the names of the messages.
        """
        octets = len(type.octets)
        if type.text is not None:
            return self._add(path, message, kind="text", doc=doc, constant=True)[1]
        if type.number is None or not 0 < octets <= WIDEST:
            return self._add(path, message, kind="octets", doc=doc, constant=True)[1]
        name, number = self._add(
            path, message, kind="integer", octets=octets, doc=doc, constant=True, hex=True
        )
        names = self._names.setdefault(name, {})
        known = names.get(type.number)
        names[type.number] = (
            f"{known}, {message.name}" if known and message.name not in known.split(", ") else message.name
        )
        return number

    def plain(
        self, kind: str, path: str, message: ir.Message, doc: str = "", octets: int | None = None
    ) -> int:
        """Return the number of a field of kind ``text``, ``octets``, ``uuid``, ``group`` or ``integer``."""
        return self._add(path, message, kind=kind, doc=doc, octets=octets)[1]

    def _add(self, path: str, message: ir.Message, *, doc: str, **row: Lua) -> tuple[str, int]:
        path = f"{path}_" if path in RESERVED else path
        for name in (path, f"{_plain(message.name)}.{path}"):
            known = self._rows.get(name)
            if known is None:
                self._rows[name] = {"name": name, "label": path.rpartition(".")[2], **row, "doc": doc or None}
                self._numbers[name] = len(self._rows)
                return name, self._numbers[name]
            if all(known.get(key) == value for key, value in row.items() if key not in ("hex", "constant")):
                return name, self._numbers[name]
        return self._add(f"{path}_", message, doc=doc, **row)

    def _named(self, name: str) -> dict[int, str] | None:
        names = self._names.get(name, {})
        if self._rows[name].get("constant") and len(names) < 2:
            return None
        return dict(sorted(names.items())) or None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower())
