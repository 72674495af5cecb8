"""Facts of a protocol besides its messages: roles, numbers, timers, answers, framing, and remarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from specwire.generator import ir
from specwire.generator.emit.reference.book import Remark


@dataclass(frozen=True, slots=True)
class Table:
    """Table of texts with a caption; the first column is the row header."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class RemarkView:
    """Remark, shown once with all its positions."""

    code: str
    message: str
    help: str
    places: str


def numbers(protocol: ir.Protocol) -> tuple[Table, ...]:
    """Return the tables of flags, constants and enumerations that exist."""
    tables = [
        Table(
            "Bits of the flags octet",
            ("Bit", "Mask", "Name", "Announces", "Meaning"),
            tuple(
                (
                    str(flag.value.bit_length() - 1),
                    f"0x{flag.value:02x}",
                    flag.name,
                    flag.announces or "",
                    flag.doc,
                )
                for flag in protocol.flags
            ),
        ),
        Table(
            "Constants",
            ("Name", "Value", "Hexadecimal", "Meaning"),
            tuple((c.name, str(c.value), f"0x{c.value:x}", c.doc) for c in protocol.constants),
        ),
    ]
    for enum in protocol.enums:
        members = tuple((name, str(value), f"0x{value:x}") for name, value in enum.members)
        tables.append(Table(f"Enumeration {enum.name}", ("Name", "Value", "Hexadecimal"), members))
    return tuple(table for table in tables if table.rows)


def roles(protocol: ir.Protocol) -> Table:
    """Return the roles."""
    rows = ((role.letter, role.name, role.socket, role.doc) for role in protocol.roles)
    return Table("Roles", ("Letter", "Name", "ZeroMQ socket", "Task"), tuple(rows))


def timers(protocol: ir.Protocol) -> Table:
    """Return the timers."""
    rows = ((name, f"{seconds:g} s") for name, seconds in protocol.timers)
    return Table("Timers", ("Name", "Time"), tuple(rows))


def answers(protocol: ir.Protocol) -> tuple[Table, ...]:
    """Return the answers to messages that do not decode, and to messages out of turn."""
    names = {message.class_name: message.name for message in protocol.messages}
    letters = {role.letter: role.name for role in protocol.roles}
    malformed = (
        (
            letters.get(answer.role, answer.role),
            names.get(answer.message or "", answer.message or "any"),
            answer.field or "any",
            answer.kind or "any",
            names.get(answer.reply, answer.reply) if answer.reply else "silence",
        )
        for answer in protocol.answers
    )
    unexpected = ((letters.get(role, role), names.get(reply, reply)) for role, reply in protocol.unexpected)
    tables = (
        Table(
            "Answers to a message that does not decode; the first matching row applies",
            ("Role", "Message", "Field", "Fault", "Answer"),
            tuple(malformed),
        ),
        Table("Answers to a message out of turn", ("Role", "Answer"), tuple(unexpected)),
    )
    return tuple(table for table in tables if table.rows)


def framing(protocol: ir.Protocol) -> tuple[str, ...]:
    """Return sentences on the framing on a byte stream; none if there is no framing."""
    match protocol.stream:
        case None:
            return ()
        case ir.Stream() as stream:
            return _framing(stream)
        case ir.UnitStream(heads=heads):
            told = (f"{_prefix(head)}: {_unit(head)}." for head in heads)
            how = "contains its own length" if heads else "says itself where it ends"
            return (f"Messages follow each other; each {how}.", *told)
        case _:
            assert_never(protocol.stream)


def _framing(stream: ir.Stream) -> tuple[str, ...]:
    magics = " or ".join(map(_hex, stream.magics))
    long = f"from that size on, the octet {stream.escape} and {_octets(stream.long_octets)}"
    return (
        f"A message begins with {magics}; all of these are accepted.",
        f"Then {_octets(stream.length_octets)} count the octets that follow, as an integer in network order.",
        f"Then each frame, preceded by its size: one octet below {stream.escape}; {long}.",
    )


def assumptions(remarks: Iterable[Remark]) -> tuple[RemarkView, ...]:
    """Return the compiler's assumptions about the layout (W4xx)."""
    return tuple(_grouped(remark for remark in remarks if remark.code.startswith("W4")))


def other_remarks(remarks: Iterable[Remark]) -> tuple[RemarkView, ...]:
    """Return the other remarks, on notation and names, each once with its positions."""
    return tuple(_grouped(remark for remark in remarks if not remark.code.startswith("W4")))


def _grouped(remarks: Iterable[Remark]) -> Iterator[RemarkView]:
    """Yield the remarks; those on notation (W1xx) are grouped by code."""
    groups: dict[tuple[str, str], list[Remark]] = {}
    for remark in remarks:
        about = "" if remark.code.startswith("W1") else remark.message
        groups.setdefault((remark.code, about), []).append(remark)
    for found in groups.values():
        places = dict.fromkeys(f"{remark.file}, line {remark.line}" for remark in found)
        help = f"{found[0].help[0].upper()}{found[0].help[1:]}." if found[0].help else ""
        yield RemarkView(found[0].code, found[0].message, help, "; ".join(places))


def _octets(count: int) -> str:
    return "one octet" if count == 1 else f"{count} octets"


def _hex(octets: str) -> str:
    return bytes.fromhex(octets).hex(" ").upper()


def _prefix(head: ir.UnitHead) -> str:
    return f"Beginning with {_hex(head.prefix)}" if head.prefix else "Beginning with any octets"


def _unit(head: ir.UnitHead) -> str:
    if not head.size_octets:
        return f"{_octets(head.octets)} in total"
    skipped = f"{_octets(head.skip)}, then " if head.skip else ""
    return f"{skipped}a size of {_octets(head.size_octets)} that counts what follows it"
