"""Faults of one frame in Spark SQL: its fields in order, as in the slow path of the codec.

A fault is evaluated only if no earlier one exists. So the frame exists, and each value begins after
the complete values before it.
"""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.sql_fault_places import Place
from specwire.generator.emit.sql_faults import as_text, counted, position
from specwire.generator.emit.sql_fields import PREFIX_OCTETS
from specwire.generator.emit.sql_numbers import by_text
from specwire.generator.emit.sql_text import NotCovered, Sum, cut, literal, quoted, valid_text
from specwire.generator.support.words import either, octets_word, one_of, show


class FrameFaults:
    """Faults of a frame; constants in the first `known` octets (None: all) are already checked."""

    def __init__(self, place: Place, octets: str, known: int | None) -> None:
        self.place, self.octets, self.known = place, octets, known

    def read(self, fields: tuple[ir.Field, ...]) -> None:
        """Check all fields, then the end of the frame; raise NotCovered for an unsupported type."""
        only = fields[0]
        if len(fields) == 1 and isinstance(only.type, ir.KeywordType | ir.ConstantType):
            if self.known is not None:
                self._words(only.type)
            return
        at: Sum | None = Sum()
        for field in fields:
            if at is None or field.optional:
                raise NotCovered
            self.place.enter(quoted(field.name), field.rule)
            at = self._value(field.type, at)
        if at is not None:
            self.place.enter_message()
            self._trailing(at)

    def item(self, type: ir.Type) -> str:
        """Check a frame that is one of several items; return the condition that it has a fault."""
        match type:
            case ir.TextType(length=ir.Length(kind="rest"), padding=None, terminated=terminated):
                self._text(self.octets, Sum(), terminated)
                return (
                    f"NOT ({valid_text(self.octets)}){f' OR {_inner_nul(self.octets)}' if terminated else ''}"
                )
            case ir.JsonType():
                self._text(self.octets, Sum(), terminated=False)
                return f"NOT {valid_text(self.octets)}"
        raise NotCovered

    def _words(self, type: ir.KeywordType | ir.ConstantType) -> None:
        options = [type.octets] if isinstance(type, ir.ConstantType) else [o.encode() for o in type.options]
        expected = _words_of(type) if isinstance(type, ir.ConstantType) else one_of(options)
        unlike = f"{self.octets} NOT IN ({', '.join(map(literal, options))})"
        self.place.refuse(unlike, "constant", quoted(expected), octets=self.octets, offset=Sum())

    def _trailing(self, at: Sum) -> None:
        left = Sum(0, (f"octet_length({self.octets}) - ({at})",))
        self.place.refuse(
            f"octet_length({self.octets}) > {at}", "trailing", "'the end of the frame'",
            found=counted(left, "more octet"), offset=at,
        )  # fmt: skip

    def _value(self, type: ir.Type, at: Sum) -> Sum | None:
        """Check a value; return where the next one begins, None if there is none."""
        match type:
            case ir.ConstantType(octets=octets):
                self._constant(type, at)
                return at.plus(len(octets))
            case ir.PaddingType(octets=size):
                self._take(at, size)
                return at.plus(size)
            case ir.IntegerType(octets=size):
                if not type.bitmask:  # flags are checked before all fields
                    self._take(at, size)
                self._members(type, at)
                return at.plus(size)
            case ir.TextType(length=length, padding=None, terminated=terminated):
                start, value, end = self._span(length, at)
                self._text(value, start, terminated)
                return end
            case ir.JsonType():
                self._text(cut(self.octets, at, None), at, terminated=False)
                return None
            case ir.OctetsType(length=length):
                return self._opaque(type, *self._span(length, at), at)
        raise NotCovered

    def _take(self, at: Sum, size: int) -> None:
        self._end(at, Sum(size))

    def _end(self, at: Sum, size: Sum) -> None:
        """Add the fault that too few octets are left."""
        self.place.refuse(
            f"octet_length({self.octets}) < {' + '.join((str(at.plus(size.fixed)), *size.terms))}", "length",
            counted(size, "octet"), found=as_text(f"octet_length({self.octets}) - ({at})"), offset=at,
        )  # fmt: skip

    def _constant(self, type: ir.ConstantType, at: Sum) -> None:
        octets = type.octets
        if self.known is None or (not at.terms and at.fixed + len(octets) <= self.known):
            return
        found = cut(self.octets, at, len(octets))
        short = f"startswith({literal(octets)}, {found})"
        self.place.refuse(
            f"octet_length({found}) < {len(octets)} AND {short}", "length", quoted(octets_word(len(octets))),
            found=as_text(f"octet_length({found})"), offset=at,
        )  # fmt: skip
        words = _words_of(type)
        length = octets.removesuffix(words.strip("'").encode())
        unlike = f"{found} <> {literal(octets)}"
        if length in (b"", octets):
            self.place.refuse(unlike, "constant", quoted(words), octets=found, offset=at)
            return
        # For a text with the right length prefix, show both texts without the prefix.
        behind = f"substring({found}, {len(length) + 1})"
        self.place.refuse(
            f"{unlike} AND startswith({found}, {literal(length)})", "constant", quoted(words), octets=behind, offset=at,
        )  # fmt: skip
        whole = f"concat('0x', lower(hex({found})))"
        self.place.refuse(unlike, "constant", quoted(f"0x{octets.hex()} ({words})"), found=whole, offset=at)

    def _members(self, type: ir.IntegerType, at: Sum) -> None:
        named = (enum.members for enum in self.place.protocol.enums if enum.name == type.enum)
        values = tuple(number for members in named for _, number in members) or type.values
        if not values:
            return
        number = by_text(self.octets, at, type.octets)
        others = f"{number} NOT IN ({', '.join(quoted(str(value)) for value in values)})"
        self.place.refuse(others, "range", quoted(either(map(str, values))), found=number, offset=at)

    def _span(self, length: ir.Length, at: Sum) -> tuple[Sum, str, Sum | None]:
        """Return where the octets of a value begin, the octets, and where the next value begins."""
        if length.kind == "rest":
            return at, cut(self.octets, at, None), None
        if length.kind == "fixed":
            self._take(at, length.octets)
            return at, cut(self.octets, at, length.octets), at.plus(length.octets)
        if length.kind == "until" or length.octets > PREFIX_OCTETS:
            raise NotCovered
        self._take(at, length.octets)
        number = f"cast({by_text(self.octets, at, length.octets)} AS BIGINT)"
        size = self.place.lets.let("size", number)
        start = at.plus(length.octets)
        self._end(start, Sum(0, (size,)))
        return start, cut(self.octets, start, size), start.plus(size)

    def _text(self, value: str, start: Sum, terminated: bool) -> None:
        self.place.refuse(f"NOT {valid_text(value)}", "text", "'UTF-8'", octets=value, offset=start)
        if terminated:
            at = start.plus(position("X'00'", value))
            self.place.refuse(_inner_nul(value), "text", "'text without NUL'", found="'0x00'", offset=at)

    def _opaque(self, type: ir.OctetsType, start: Sum, value: str, end: Sum | None, at: Sum) -> Sum | None:
        size = f"octet_length({value})"
        if type.minimum:
            least = f"at least {octets_word(type.minimum)}"
            self.place.refuse(
                f"{size} < {type.minimum}", "length", quoted(least), found=as_text(size), offset=at
            )
        if type.maximum is not None:
            most = f"at most {octets_word(type.maximum)}"
            self.place.refuse(
                f"{size} > {type.maximum}", "length", quoted(most), found=as_text(size), offset=at
            )
        return end


def _inner_nul(text: str) -> str:
    """Return the condition that NUL occurs before the last octet of a text."""
    return f"contains(substring({text}, 1, octet_length({text}) - 1), X'00')"


def _words_of(type: ir.ConstantType) -> str:
    """Return a constant in the words of its layout."""
    return repr(type.text) if type.text is not None else f"0x{type.hex}" if type.hex else show(b"")
