"""Decoding errors of a protocol in Spark SQL: why the frames of a row are no message.

This is one expression over `_frames`, for rows that are no message. It determines the message that
the frames claim to be, as the codec does, then the first fault of that message (`sql_fault_walk`).

It is wrapped in a `zip_with` of one item. Spark interprets that expression with all of its content,
instead of compiling it like `transform` and `aggregate`. So its length is not limited, and a row
that is a message costs only the test whether it is one.
"""

from __future__ import annotations

from typing import NamedTuple

from specwire.generator import ir
from specwire.generator.emit.layout import selected
from specwire.generator.emit.sql_fault_walk import Walk
from specwire.generator.emit.sql_faults import (
    NO_NUMBER,
    NO_TEXT,
    all_known,
    as_text,
    counted,
    fault,
    shown,
    told,
)
from specwire.generator.emit.sql_text import Lets, NotCovered, Sum, cut, frame_at, literal, quoted
from specwire.generator.support.errors import Kind
from specwire.generator.support.words import number_of, one_of

MAX_FRAMES = 65_536
"""Default for the largest number of frames that a codec reads."""


def error_of(protocol: ir.Protocol) -> str:
    """Return the error of a row that is no message; empty if SQL cannot determine it."""
    lets = Lets()
    try:
        walks = [(message, Walk(message, protocol, lets).faults()) for message in protocol.messages]
    except NotCovered:
        return ""
    choice = _Choice(protocol, lets)
    rows = [*_unreadable(protocol, lets)]
    for message, faults in walks:
        found = "\n    ".join(["CASE", *faults, "END"]) if faults else "NULL"
        rows.append(f"WHEN {choice.condition(message)} THEN {found}")
    rows += choice.faults()
    whole = "\n  ".join(["CASE", *rows]) + f"\n  ELSE {choice.no_combination()}\nEND"
    whole = f"coalesce({whole}, {_disagreement(protocol)})"
    error = told(_with_levels(lets, whole), protocol.name)
    frames = "array(coalesce(_frames, array()))"
    return f"get(zip_with({frames}, array(0), (_frames, nothing) -> {error}), 0)"


def _with_levels(lets: Lets, expression: str) -> str:
    """Return an expression with the names that it uses defined level by level, one pass of Spark each."""
    levels = lets.levels(expression)
    owners = {name: f"level_{number}" for number, level in enumerate(levels) for name, _ in level}
    expression = lets.owned(expression, owners)
    structs = [
        ", ".join(f"{quoted(name)}, {lets.owned(text, owners)}" for name, text in level) for level in levels
    ]
    return all_known(
        [(f"level_{number}", f"named_struct({struct})") for number, struct in enumerate(structs)], expression
    )


def _unreadable(protocol: ir.Protocol, lets: Lets) -> list[str]:
    """Return the faults of input that the codec rejects before decoding."""
    first = "cast(array_position(transform(_frames, item -> item IS NULL), true) AS INT)"
    null = lets.let("null", first)
    count = lets.let("count", "size(_frames)")
    no_octets = fault(
        NO_TEXT, "'frames'", f"{null} - 1", NO_NUMBER, "frames", "'octets'", "'columns'", found="'null'"
    )
    many = _of_all(
        protocol, "limit", quoted(f"at most {number_of(MAX_FRAMES, 'frame')}"), found=as_text(count)
    )
    return [f"WHEN {null} > 0 THEN {no_octets}", f"WHEN {count} > {MAX_FRAMES} THEN {many}"]


def _disagreement(protocol: ir.Protocol) -> str:
    """Return the codec's error for a disagreement of its two readings; tests show that none exists."""
    expected = quoted("frames that both readings of the grammar accept")
    return _of_all(protocol, "frames", expected, quoted("a disagreement between them; please report it"))


def _of_all(protocol: ir.Protocol, kind: Kind, expected: str, found: str) -> str:
    """Return a fault without a field."""
    return fault(
        NO_TEXT, NO_TEXT, NO_NUMBER, NO_NUMBER, kind, expected, quoted(protocol.edition), found=found
    )


class _Tag(NamedTuple):
    """Constant that a selector covers, and its position."""

    field: ir.Field
    frame: int
    offset: int
    spellings: tuple[bytes, ...]
    whole: bool
    """The constant fills its frame."""


class _Choice:
    """Selection of the message that frames claim to be, and the fault if there is none."""

    def __init__(self, protocol: ir.Protocol, lets: Lets) -> None:
        self.protocol, self.lets = protocol, lets
        self.rows = list(zip(*(_tags(protocol, message) for message in protocol.messages), strict=False))
        self.count = lets.let("count", "size(_frames)")

    def condition(self, message: ir.Message) -> str:
        """Return the condition that a message is selected."""
        spelled = [
            " AND ".join(self._piece(place, octets) for place, octets in enumerate(pieces))
            for pieces in selected(message, self.protocol)
        ]
        return spelled[0] if len(spelled) == 1 else f"({' OR '.join(spelled)})"

    def _piece(self, place: int, octets: bytes) -> str:
        selector = self.protocol.selectors[place]
        head = self._head(selector.frame)
        return f"startswith({head}, {literal(octets)})" if selector.octets else f"{head} = {literal(octets)}"

    def _head(self, frame: int) -> str:
        return self.lets.let("frame", frame_at(frame))

    def faults(self) -> list[str]:
        """Return the faults of tags that belong to no message; the last tag is the message's number."""
        found = []
        for number, row in enumerate(self.rows):
            tag, own = row[0], number == len(self.rows) - 1
            octets, options = self._found(tag), dict.fromkeys(o for one in row for o in one.spellings)
            rule = quoted(f"{self.protocol.edition} {tag.field.rule or self.protocol.messages[0].name}")
            name = quoted(tag.field.name)
            missing = fault(
                NO_TEXT, name, NO_NUMBER, NO_NUMBER, "frames", quoted(f"a frame with {tag.field.name}"), rule,
                found=counted(Sum(0, (self.count,)), "frame"),
            )  # fmt: skip
            found.append(f"WHEN {octets} IS NULL THEN {missing}")
            place = (NO_TEXT, name, self._frame(tag), str(tag.offset))
            expected = quoted(one_of(options))
            if own and not tag.whole:
                size = len(next(iter(options)))
                short = fault(*place, "length", expected, rule, octets=octets)
                found.append(f"WHEN octet_length({octets}) < {size} THEN {short}")
            unlike = fault(*place, "tag" if own else "constant", expected, rule, octets=octets)
            found.append(f"WHEN {octets} NOT IN ({', '.join(map(literal, options))}) THEN {unlike}")
        return found

    def no_combination(self) -> str:
        """Return the fault of tags that are known but do not belong together."""
        *tags, last = (row[0] for row in self.rows)
        others = [f"concat({quoted(f'{tag.field.name} ')}, {shown(self._found(tag))})" for tag in tags]
        expected = (
            f"concat('one that goes with ', concat_ws(' and ', {', '.join(others)}))" if others else "''"
        )
        rule = quoted(f"{self.protocol.edition} {last.field.rule or self.protocol.messages[0].name}")
        return fault(
            NO_TEXT, quoted(last.field.name), self._frame(last), str(last.offset), "tag", expected, rule,
            octets=self._found(last),
        )  # fmt: skip

    def _found(self, tag: _Tag) -> str:
        """Return the octets at the position of a tag, NULL if the frame is missing."""
        head = self._head(tag.frame)
        return head if tag.whole else cut(head, Sum(tag.offset), len(tag.spellings[0]))

    def _frame(self, tag: _Tag) -> str:
        return str(tag.frame) if tag.frame >= 0 else f"{self.count} - {-tag.frame}"


def _tags(protocol: ir.Protocol, message: ir.Message) -> list[_Tag]:
    """Return the constants of a message that the selectors cover."""
    tags: list[_Tag] = []
    for selector in protocol.selectors:
        part, offset = message.parts[selector.frame], 0
        for field in part.fields if isinstance(part, ir.Frame) else ():
            options = _spellings(field.type)
            if not options or (selector.octets is not None and offset >= selector.octets):
                break
            tags.append(_Tag(field, selector.frame, offset, options, selector.octets is None))
            offset += len(options[0])
    return tags


def _spellings(type: ir.Type) -> tuple[bytes, ...]:
    match type:
        case ir.ConstantType(octets=octets):
            return (octets,)
        case ir.KeywordType(options=options):
            return tuple(option.encode() for option in options)
    return ()
